"""What the controller hears of log directories (DSK-01): which partition is where, what failed."""

import asyncio
from uuid import UUID

import pytest

from strom.broker import reports
from strom.broker.reports import Reports
from strom.log.directory import LogDirectory, Meta
from strom.testing.broker import LocalBroker
from strom.testing.disk import FakeDisk
from strom.wire.errors import ErrorCode, KafkaError
from tests.broker.api.conftest import create
from tests.broker.test_broker import do
from tests.conformance.raw import Raw

TOPIC_ID = UUID(int=7)
#: How often the loop turns until all has been said.
TURNS = 30
NOT_NOW = KafkaError(ErrorCode.REQUEST_TIMED_OUT)


def directory_of(number):
    disk = FakeDisk()
    LogDirectory.format(disk, "/data", Meta(1, "cluster", UUID(int=number)))
    return LogDirectory.open(disk, "/data")


class Controlled:
    """Stands for replicas, controller and runtime: keeps what the controller was told."""

    assign_directories = "assign"
    heartbeat = "heartbeat"

    def __init__(self, *directories):
        self.directories = list(directories)
        self.unnoted = {}
        self.news = asyncio.Event()
        self.told = []
        self.refusals = []

    @property
    def online_directories(self):
        return [each for each in self.directories if each.failed is None]

    async def execute(self, what, *arguments):
        if self.refusals:
            raise self.refusals.pop()
        if what == "assign":
            self.told.append((what, len(arguments[2])))
        else:
            self.told.append((what, arguments[0].offline_directories))
        await asyncio.sleep(0)

    def run(self):
        """Report for a while; return whether that came to an end by itself."""

        async def for_a_while():
            reporting = Reports(1, self, self, self).run(self.directories[0])
            work = asyncio.get_running_loop().create_task(reporting)
            for _ in range(TURNS):
                await asyncio.sleep(0)
            ended = work.done()
            work.cancel()
            return ended

        return asyncio.run(for_a_while())


def test_places_come_before_failures_and_many_at_once():
    one, two = directory_of(101), directory_of(102)
    controlled = Controlled(one, two)
    two.failed = OSError(5, "Input/output error")
    controlled.unnoted = {(TOPIC_ID, index): two for index in range(600)}
    controlled.news.set()
    assert not controlled.run()
    assert controlled.told == [
        ("assign", 250),
        ("assign", 250),
        ("assign", 100),
        ("heartbeat", (UUID(int=102),)),
    ]


def test_what_the_controller_did_not_take_is_said_again(monkeypatch):
    monkeypatch.setattr(reports, "RETRY_SECONDS", 0)
    controlled = Controlled(one := directory_of(101))
    controlled.refusals = [NOT_NOW, NOT_NOW]
    controlled.unnoted = {(TOPIC_ID, 0): one}
    controlled.news.set()
    assert not controlled.run()
    assert controlled.told == [("assign", 1)]
    assert controlled.unnoted == {}


def test_a_directory_that_was_never_known_is_not_told():
    lost = LogDirectory.lost(FakeDisk(), "/two", OSError(5, "Input/output error"))
    controlled = Controlled(directory_of(101), lost)
    controlled.news.set()
    assert not controlled.run()
    assert controlled.told == []


@pytest.mark.parametrize("failed", [[0], [0, 1]])
def test_without_the_metadata_log_there_is_nobody_to_tell(failed):
    controlled = Controlled(directory_of(101), directory_of(102))
    for number in failed:
        controlled.directories[number].failed = OSError(5, "Input/output error")
    controlled.news.set()
    assert controlled.run()
    assert controlled.told == []


def leaders(raw):
    (topic,) = raw.ask("metadata", 12, {"topics": [{"name": "t"}]})["topics"]
    return {each["partition_index"]: each["leader_id"] for each in topic["partitions"]}


def test_a_broker_tells_where_it_has_put_what_it_was_to_choose_a_place_for(tmp_path):
    paths = [str(tmp_path / "one"), str(tmp_path / "two")]
    with LocalBroker({"log.dirs": ",".join(paths)}, directory=tmp_path) as local:
        replicas = local.broker.parts.replicas
        with Raw(local.bootstrap) as raw:
            create(raw, "t", partitions=4)
            while do(local, lambda: bool(replicas.unnoted)):
                leaders(raw)
            image = local.broker.parts.image
            places = {each.index: each.directory.id for each in replicas.partitions()}
            for index, place in places.items():
                assert image.partition("t", index).directory_of(1) == place
            assert len(set(places.values())) == 2
            broken = replicas.directories[1]
            do(local, lambda: replicas.fail(broken, OSError(5, "Input/output error")))
            expected = {index: -1 if place == broken.id else 1 for index, place in places.items()}
            while leaders(raw) != expected:
                assert set(leaders(raw).values()) <= {1, -1}
