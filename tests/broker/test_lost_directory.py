"""A log directory that cannot be used at start (DSK-01): the others serve, and nothing is lost.

What the clients are told was asked of Apache Kafka 4.3 with the same directories: no leader and
an offline replica in Metadata, KAFKA_STORAGE_ERROR from whoever wants the partition itself.
"""

import os
import random
import shutil
import signal
import time
from urllib.request import urlopen

import pytest

from strom.log.directory import read_meta
from tests import nodes
from tests.broker.api.conftest import create, log_directories, offsets
from tests.conformance.batches import batch
from tests.conformance.raw import Raw

pytestmark = pytest.mark.slow

SOAK_SECONDS = float(os.environ.get("STROM_SOAK_SECONDS", "0"))
ROUNDS = 6
PARTITIONS = 4
RECORDS = 3
STOP_SECONDS = 60
SERVED = ("none", 1, ())
OFFLINE = ("leader_not_available", -1, (1,))


class Node(nodes.StromProcess):
    """A broker with two log directories."""

    def __init__(self, root, **settings):
        self.one, self.two = root / "one", root / "two"
        self.http_port = nodes.free_port()
        own = {"log.dirs": f"{self.one},{self.two}", "strom.http.port": self.http_port}
        super().__init__(root, **{**own, **settings})

    def lose(self):
        """Let the second directory be out of reach."""
        self.two.rename(self.root / "aside")
        self.two.write_text("no directory")

    def bring_back(self):
        self.two.unlink()
        (self.root / "aside").rename(self.two)

    def held(self, directory):
        return {int(each.name.rpartition("-")[2]) for each in directory.glob("t-?")}

    def refusal(self):
        """Start it in vain; return the exit code and what it said."""
        with pytest.raises(AssertionError, match="no broker"):
            self.start()
        return self.log()

    def metric(self, name):
        with urlopen(f"http://127.0.0.1:{self.http_port}/metrics") as page:
            (line,) = [each for each in page.read().decode().split("\n") if each.startswith(name)]
        return float(line.split()[-1])


@pytest.fixture
def node(tmp_path):
    node = Node(tmp_path)
    yield node
    node.remove()


def fill(node):
    """Give every partition of a topic some records; return which partitions are in `two`."""
    with Raw(node.bootstrap) as raw:
        create(raw, "t", partitions=PARTITIONS)
        assert {produce(raw, index) for index in range(PARTITIONS)} == {"none"}
    lost = node.held(node.two)
    assert len(lost) == PARTITIONS // 2
    return lost


def produce(raw, index, topic="t"):
    data = {"index": index, "records": bytes(batch([b"v"] * RECORDS))}
    topics = [{"name": topic, "partition_data": [data]}]
    asked = {"acks": -1, "timeout": 10_000, "topic_data": topics}
    (answer,) = raw.ask("produce", 9, asked)["responses"]
    return answer["partition_responses"][0]["error_code"]


def ends(raw, topic="t"):
    return offsets(raw, topic, PARTITIONS)


def described(raw, topic="t"):
    """Return error, leader and offline replicas of every partition."""
    (answer,) = raw.ask("metadata", 12, {"topics": [{"name": topic}]})["topics"]
    return {
        each["partition_index"]: (
            each["error_code"],
            each["leader_id"],
            tuple(each["offline_replicas"]),
        )
        for each in answer["partitions"]
    }


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_its_partitions_are_offline_and_come_back_with_it(node, how):
    node.start()
    lost = fill(node)
    node.end(how)
    node.lose()
    node.start()
    with Raw(node.bootstrap) as raw:
        assert described(raw) == {
            index: OFFLINE if index in lost else SERVED for index in range(PARTITIONS)
        }
        assert ends(raw) == {
            index: "kafka_storage_error" if index in lost else RECORDS
            for index in range(PARTITIONS)
        }
        assert produce(raw, min(lost)) == "kafka_storage_error"
        assert log_directories(raw) == {
            str(node.one): ("none", 1),
            str(node.two): ("kafka_storage_error", 0),
        }
    assert node.metric("kafka_log_logmanager_offlinelogdirectorycount") == 1
    assert f"The log directory {node.two} cannot be used (Not a directory)" in node.log()
    assert f"{len(lost)} partitions are offline until their log directory is back: t-" in node.log()
    node.end(how)
    assert node.held(node.one).isdisjoint(lost), "an empty log is no substitute"
    node.bring_back()
    node.start()
    with Raw(node.bootstrap) as raw:
        assert ends(raw) == dict.fromkeys(range(PARTITIONS), RECORDS)
        assert set(described(raw).values()) == {SERVED}
    assert node.metric("kafka_log_logmanager_offlinelogdirectorycount") == 0
    node.stop()


def test_what_is_new_goes_where_there_is_room(node):
    node.start()
    fill(node)
    node.stop()
    node.lose()
    node.start()
    with Raw(node.bootstrap) as raw:
        create(raw, "new", partitions=PARTITIONS)
        assert produce(raw, 3, "new") == "none"
        assert set(described(raw, "new").values()) == {SERVED}
        delete = {"topics": [{"name": "t"}], "timeout": 10_000}
        assert raw.ask("delete_topics", 6, delete)["responses"][0]["error_code"] == "none"
    node.stop()
    node.bring_back()
    node.start()
    with Raw(node.bootstrap) as raw:
        assert ends(raw, "new")[3] == RECORDS
    node.stop()
    assert node.held(node.two) == set()
    assert len(list(node.two.glob("t-*-stray"))) == PARTITIONS // 2, "put aside, not removed"


def test_an_empty_directory_in_its_place_is_no_substitute(node):
    """A disk that is not mounted: its mount point is there, and empty."""
    node.start()
    lost = fill(node)
    node.stop()
    node.two.rename(node.root / "aside")
    node.start()
    with Raw(node.bootstrap) as raw:
        assert {index for index, end in ends(raw).items() if end != RECORDS} == lost
        assert set(log_directories(raw).values()) == {("none", 1), ("none", 0)}
    node.stop()
    assert node.held(node.two) == set()
    shutil.rmtree(node.two)
    (node.root / "aside").rename(node.two)
    node.start()
    with Raw(node.bootstrap) as raw:
        assert ends(raw) == dict.fromkeys(range(PARTITIONS), RECORDS)
    node.stop()


def test_logs_are_served_from_where_they_are_also_under_another_id(node):
    """`meta.properties` was lost and the directory has a new id, but all logs are there."""
    node.start()
    fill(node)
    node.stop()
    before = read_meta((node.two / "meta.properties").read_bytes())
    (node.two / "meta.properties").unlink()
    node.start()
    with Raw(node.bootstrap) as raw:
        while {leader for _, leader, _ in described(raw).values()} != {1}:
            raw.ask("api_versions", 3, {})
        assert ends(raw) == dict.fromkeys(range(PARTITIONS), RECORDS)
    node.stop()
    assert read_meta((node.two / "meta.properties").read_bytes()) != before


def test_without_the_metadata_log_there_is_no_start_and_one_line_says_so(node):
    node.start()
    node.stop()
    shutil.rmtree(node.one)
    node.one.write_text("no directory")
    told = node.refusal().splitlines()[-1]
    assert told == f"strom: cannot use {node.one}: Not a directory"
    assert node.process.returncode == 1


def test_a_broker_that_loses_its_last_directory_ends_with_one_line(node):
    node.start()
    with Raw(node.bootstrap) as raw:
        create(raw, "t", partitions=1)
        for each in (node.one, node.two):
            each.rename(each.with_suffix(".aside"))
        create_in_vain = {"topics": [{"name": "u", "num_partitions": 1, "replication_factor": 1}]}
        raw.send_bytes(raw.encode("create_topics", 7, {**create_in_vain, "timeout": 10_000}))
        assert node.process.wait(STOP_SECONDS) == 1
    last = node.log().splitlines()[-1]
    assert last.startswith("strom: the "), node.log()
    assert "Traceback" not in node.log()


class Story:
    """A node whose second directory comes and goes, and what clients were told by it."""

    def __init__(self, node, dice):
        self.node, self.dice = node, dice
        self.is_lost = False
        #: How many records each partition has that were acknowledged.
        self.acknowledged = {}

    def run_once(self):
        """Start, look, create, send, and go down in one way or the other."""
        node, dice = self.node, self.dice
        node.start()
        with Raw(node.bootstrap) as raw:
            self.check(raw)
            for _ in range(dice.randrange(3)):
                self.create(raw)
            for place in dice.sample(sorted(self.acknowledged), min(len(self.acknowledged), 8)):
                topic, index = place
                if produce(raw, index, topic) == "none":
                    self.acknowledged[place] += RECORDS
        node.end(dice.choice([signal.SIGTERM, signal.SIGKILL, signal.SIGKILL]))
        if dice.random() < 0.6:
            (node.bring_back if self.is_lost else node.lose)()
            self.is_lost = not self.is_lost

    def create(self, raw):
        topic = f"topic-{len(self.acknowledged)}"
        create(raw, topic, partitions=PARTITIONS)
        self.acknowledged.update(dict.fromkeys(((topic, n) for n in range(PARTITIONS)), 0))

    def check(self, raw):
        """Every partition has what was acknowledged, or says that it is out of reach."""
        for topic in sorted({topic for topic, _ in self.acknowledged}):
            for index, end in ends(raw, topic).items():
                is_offline = end == "kafka_storage_error"
                assert (self.is_lost and is_offline) or end == self.acknowledged[topic, index], (
                    f"{topic}-{index} ends at {end}: {self.node.log()}"
                )


@pytest.mark.soak
def test_a_directory_that_comes_and_goes_loses_nothing(node):
    seed = time.time_ns() if SOAK_SECONDS else 7
    story, rounds, end = Story(node, random.Random(seed)), 0, time.monotonic() + SOAK_SECONDS
    try:
        while rounds < ROUNDS or time.monotonic() < end:
            story.run_once()
            rounds += 1
    except AssertionError as error:
        raise AssertionError(f"seed {seed}, round {rounds}: {error}") from error
    assert any(story.acknowledged.values())


# Starts that fail, and who is not disturbed by them.


def test_a_port_in_use_leaves_nothing_behind(node, tmp_path):
    """Neither the port of the metrics nor that of a listener."""
    node.start()
    root = tmp_path / "second"
    other = Node(root, **{"strom.http.port": node.http_port})
    assert f"cannot serve metrics at port {node.http_port}" in other.refusal()
    same_port = Node(root, listeners=f"PLAINTEXT://{node.bootstrap}")
    assert f"cannot listen at PLAINTEXT://{node.bootstrap}" in same_port.refusal()
    assert sorted(each.name for each in root.iterdir()) == ["broker.log", "server.properties"]
    node.stop()


def state_of(directory):
    """Return what would show that somebody has changed something."""
    return {
        path: (path.stat().st_ino, path.stat().st_size, path.stat().st_mtime_ns)
        for path in (directory, *sorted(directory.rglob("*")))
    }


@pytest.fixture
def quiet(tmp_path):
    """A broker that writes nothing by the clock."""
    never_ms = 24 * 60 * 60 * 1000
    node = Node(tmp_path, **{"replica.high.watermark.checkpoint.interval.ms": never_ms})
    yield node
    node.remove()


def test_a_second_process_touches_no_directory_in_use(quiet, tmp_path):
    node = quiet
    node.start()
    before = state_of(node.one), state_of(node.two)
    new = tmp_path / "new"
    for paths, reason in (
        (f"{node.one},{node.two}", f"another process uses {node.one}"),
        (f"{new},{node.two}", f"the metadata log should be in {new}, which is not formatted"),
        (f"{node.one},{new},{node.two}", f"another process uses {node.one}"),
    ):
        second = Node(tmp_path / "second", **{"log.dirs": paths})
        assert second.refusal().splitlines()[-1].startswith(f"strom: {reason}")
        assert second.process.returncode == 1
        assert not new.exists()
    assert (state_of(node.one), state_of(node.two)) == before
    node.stop()
