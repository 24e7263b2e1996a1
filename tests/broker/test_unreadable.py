"""What cannot be read is told to who asked for it, and the rest is served.

A disk in memory stands under a broker with two log directories. One of them
cannot be read any more; or one batch has rotted.
"""

import asyncio
import contextlib
import logging
from pathlib import Path

import pytest

from strom.broker.host import Host
from strom.log.cold import patiently
from strom.testing.broker import LocalBroker
from strom.testing.disk import FakeDisk
from tests.broker.api.conftest import create, log_directories, offsets, produce
from tests.conformance.batches import NOW_MS, batch, headers
from tests.conformance.raw import Raw
from tests.patience import PATIENCE_SECONDS

TOPIC = "flug"
ONE, TWO = "/data/one", "/data/two"
#: Larger than what a look-up reads of it.
VALUE = b"x" * 50_000
BATCHES = 3


class Node:
    """A broker whose partition `lost` is in the second directory, `kept` in the first."""

    def __init__(self):
        self.disk = FakeDisk()
        self.disk.make_directory("/data")
        settings = {"log.dirs": f"{ONE},{TWO}"}
        host = Host(disk=self.disk)
        self.local = LocalBroker(settings, directory=Path("/data"), host=host)
        with self.local, Raw(self.local.bootstrap) as raw:
            create(raw, TOPIC, partitions=2)
            for index in range(2):
                for number in range(BATCHES):
                    time_ms = NOW_MS + number * 1000
                    produce(raw, TOPIC, batch([VALUE], time_ms=time_ms), index=index)
            partitions = self.local.broker.parts.replicas.partitions()
            (self.lost,) = [each.index for each in partitions if each.directory.path == TWO]
        self.kept = 1 - self.lost

    @contextlib.contextmanager
    def cooled(self):
        """Start it again, with nothing in memory."""
        with self.local:
            self.disk.cool()
            yield self.local.bootstrap

    def on_loop(self, work):
        coming = asyncio.run_coroutine_threadsafe(work, self.local._loop)
        return coming.result(PATIENCE_SECONDS)

    async def look_up(self, offset):
        """Have in memory what a reader needs to find the offset."""
        log = self.local.broker.parts.replicas.find(TOPIC, self.lost).log
        patiently(lambda: log.read(offset, max_bytes=1, end_offset=10, whole_first=True))


@pytest.fixture
def node():
    return Node()


def asking(*offsets):
    """A fetch of both partitions at once."""
    partitions = [
        {"partition": index, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
        for index, offset in enumerate(offsets)
    ]
    return {
        "replica_id": -1,
        "max_bytes": 1 << 24,
        "min_bytes": 1,
        "session_epoch": -1,
        "topics": [{"topic": TOPIC, "partitions": partitions}],
    }


def fetched(raw, *offsets):
    """Return the error or the first offset of each partition."""
    found = raw.ask("fetch", 12, asking(*offsets))["responses"][0]["partitions"]
    return {
        each["partition_index"]: headers(each["records"])[0].base_offset
        if each["error_code"] == "none"
        else each["error_code"]
        for each in found
    }


def errors_in(caplog):
    return [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR]


def test_a_disk_that_fails_on_reading_takes_its_own_partitions_offline(node, caplog):
    with node.cooled() as bootstrap, Raw(bootstrap) as raw:
        node.disk.break_reads(TWO)
        for _ in range(2):
            assert fetched(raw, 0, 0) == {node.kept: 0, node.lost: "kafka_storage_error"}
        assert log_directories(raw) == {ONE: ("none", 1), TWO: ("kafka_storage_error", 0)}
    (told,) = errors_in(caplog)
    assert told.startswith(f"The log directory {TWO} failed ([Errno 5] Input/output error")
    assert told.endswith("1 partitions are offline")


def test_so_does_a_search_by_time(node):
    with node.cooled() as bootstrap, Raw(bootstrap) as raw:
        node.disk.break_reads(TWO)
        found = offsets(raw, TOPIC, 2, NOW_MS + 500)
        assert found == {node.kept: 1, node.lost: "kafka_storage_error"}
        assert log_directories(raw) == {ONE: ("none", 1), TWO: ("kafka_storage_error", 0)}


def test_so_does_what_was_found_and_cannot_be_sent(node, caplog):
    with node.cooled() as bootstrap:
        node.on_loop(node.look_up(0))
        node.disk.break_reads(TWO)
        with Raw(bootstrap) as raw:
            raw.send("fetch", 12, asking(0, 0))
            # The answer is begun, and broken off.
            raw.read_frame()
            assert raw.closed()
        with Raw(bootstrap) as raw:
            assert fetched(raw, 0, 0) == {node.kept: 0, node.lost: "kafka_storage_error"}
    (told,) = errors_in(caplog)
    assert told.startswith(f"The log directory {TWO} failed")


def test_a_rotten_batch_is_told_and_nothing_is_taken_offline(node, caplog):
    path = f"{TWO}/{TOPIC}-{node.lost}/00000000000000000000.log"
    size = len(batch([VALUE]))
    node.disk.corrupt(path, size + 8, 0x40)
    with node.cooled() as bootstrap, Raw(bootstrap) as raw:
        assert fetched(raw, 0, 0) == {0: 0, 1: 0}
        for _ in range(2):
            assert fetched(raw, 1, 1) == {node.kept: 1, node.lost: "corrupt_message"}
        assert offsets(raw, TOPIC, 2) == {0: BATCHES, 1: BATCHES}
        assert log_directories(raw) == {ONE: ("none", 1), TWO: ("none", 1)}
        assert produce(raw, TOPIC, batch([b"more"]), index=node.lost) == BATCHES
        assert fetched(raw, BATCHES - 1, BATCHES)[node.lost] == BATCHES
    assert errors_in(caplog) == [
        f"{TOPIC}-{node.lost} cannot be read: A batch is damaged in {path}"
    ]
