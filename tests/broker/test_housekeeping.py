"""Chores: one that fails is tried again, and none is done once the broker stops."""

import asyncio
import threading
from types import SimpleNamespace
from uuid import UUID

import pytest

from strom.broker.host import Host
from strom.broker.housekeeping import STALL_CHECK_SECONDS, Housekeeping
from strom.broker.metrics import Metrics
from strom.broker.replicas import Replicas
from strom.log.config import LogConfig
from strom.log.directory import LogDirectory, Meta
from strom.log.log import Log
from strom.metadata.settings.values import BrokerSettings
from strom.replication.partition import Partition
from strom.testing.disk import FakeDisk
from tests.patience import PATIENCE_SECONDS

BLOCKED_SECONDS = 0.2
EVERY = "log.flush.offset.checkpoint.interval.ms"


class Chore:
    """Something that goes wrong the first time, and can be kept waiting."""

    def __init__(self):
        self.begun = 0
        self.done = 0
        self.begins = asyncio.Event()
        self.may_end = asyncio.Event()
        self.may_end.set()

    async def __call__(self):
        self.begun += 1
        self.begins.set()
        await self.may_end.wait()
        if self.begun == 1:
            raise LookupError("a fault")
        self.done += 1

    async def wait_begun(self, times):
        while self.begun < times:
            self.begins.clear()
            await self.begins.wait()


async def test_a_chore_that_fails_is_tried_again_and_none_begins_after_the_stop(caplog):
    settings = BrokerSettings({EVERY: "1"})
    keeping = Housekeeping(SimpleNamespace(settings=settings), None)
    chore = Chore()
    async with asyncio.TaskGroup() as tasks:
        repeating = tasks.create_task(keeping._repeat(EVERY, 0, chore))
        await chore.wait_begun(2)
        chore.may_end.clear()
        await chore.wait_begun(chore.begun + 1)
        stopping = tasks.create_task(keeping.stop())
        await asyncio.sleep(0)
        before = stopping.done()
        chore.may_end.set()
        await stopping
        begun, done = chore.begun, chore.done
        repeating.cancel()
    assert (before, begun - done) == (False, 1)
    assert "a fault" in caplog.text


@pytest.fixture
def place():
    """A directory with one partition, and who holds it."""
    disk = FakeDisk()
    LogDirectory.format(disk, "/data", Meta(1, "cluster", UUID(int=9)))
    directory = LogDirectory.open(disk, "/data")
    replicas = Replicas(Host(disk=disk), 1, [directory], None)
    return directory, replicas, partition_in(directory, replicas)


def partition_in(directory, replicas):
    path = directory.partition_path("t", 0)
    directory.disk.make_directory(path)
    log = Log.open(
        replicas.files,
        path,
        LogConfig(),
        name=("t", 0),
        clean=True,
        recovery_point=0,
        start_offset=0,
        now_ms=0,
    )
    made = Partition(UUID(int=1), 1, log, directory)
    replicas._partitions["t"] = {0: made}
    return made


def test_a_log_that_fails_takes_its_directory_out_of_use(place):
    directory, replicas, partition = place
    partition.log.failed = OSError(5, "Input/output error")
    replicas.check(partition)
    assert directory.failed is not None


def test_a_deleted_log_says_nothing_of_the_disk_of_its_namesake(place):
    """Its flush or retention was under way, and does not find its files any more."""
    directory, replicas, deleted = place
    deleted.log.abandon("/data/t-0.x-delete")
    namesake = partition_in(directory, replicas)
    deleted.log.failed = FileNotFoundError(2, "No such file or directory")
    replicas.check(deleted)
    assert directory.failed is None
    assert replicas.holds(namesake)
    assert not replicas.holds(deleted)


def test_retention_leaves_the_files_of_a_namesake_alone(place):
    directory, replicas, deleted = place
    looked_at = []

    class Turning:
        """Replaces the partition when the chore looks for the first one."""

        def partitions(self):
            yield deleted
            deleted.log.abandon("/data/t-0.x-delete")
            partition_in(directory, replicas)

        def holds(self, partition):
            looked_at.append(partition)
            return replicas.holds(partition)

    host = SimpleNamespace(now_ms=lambda: 10**15, offload=None)
    parts = SimpleNamespace(replicas=Turning(), host=host)
    before = directory.disk.scan("/data/t-0")
    asyncio.run(Housekeeping(parts, None).retain())
    assert looked_at == [deleted]
    assert directory.disk.scan("/data/t-0") == before


def block_the_loop():
    threading.Event().wait(BLOCKED_SECONDS)


async def test_the_longest_stall_of_the_loop_is_kept():
    metrics = Metrics()
    parts = SimpleNamespace(settings=BrokerSettings(), metrics=metrics)
    watching = asyncio.get_running_loop().create_task(Housekeeping(parts, None)._watch_loop())
    await asyncio.sleep(0)
    block_the_loop()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not metrics.longest_stall_ms:  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0)
    watching.cancel()
    assert metrics.longest_stall_ms >= (BLOCKED_SECONDS - STALL_CHECK_SECONDS) * 1000
