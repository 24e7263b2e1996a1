"""Cleaners side by side: what they share, and who waits for whom.

Rows: CMP-03, CMP-05.
"""

import asyncio
import contextlib
import dataclasses
import errno
from types import SimpleNamespace
from uuid import UUID

import pytest

from strom.broker.cleaner_process import Cleaner, CleaningFailedError
from strom.broker.cleaning import Cleaning
from strom.broker.flushing import Flushing
from strom.broker.host import Host
from strom.broker.replicas import Replicas
from strom.log.checkpoints import CLEANER
from strom.log.cleaning import Cleaned
from strom.log.directory import LogDirectory, Meta
from strom.log.log import Log
from strom.metadata.settings.values import BrokerSettings
from strom.records.record import Record, write_batch
from strom.replication.partition import Partition
from strom.testing.disk import FakeDisk
from tests.log.cleaning import COMPACT
from tests.log.making import NOW
from tests.patience import PATIENCE_SECONDS

RATE = "log.cleaner.io.max.bytes.per.second"
MEMORY = "log.cleaner.dedupe.buffer.size"


class Floor:
    """Where cleaners work: it takes as long as the test says, and the files stay as they are."""

    def __init__(self):
        self.begun = []
        self.rates = []
        self.memories = []
        self.held = {}
        self.begins = asyncio.Event()

    def begin(self, topic, job, bytes_per_second):
        self.begun.append(topic)
        self.rates.append(bytes_per_second)
        self.memories.append(job.memory_bytes)
        self.begins.set()

    def hold(self, topic):
        self.held[topic] = asyncio.Event()

    def new_cleaner(self, host):
        return Worker(self)

    async def wait_begun(self, topic):
        while topic not in self.begun:
            self.begins.clear()
            await self.begins.wait()


class Worker:
    """One cleaner."""

    def __init__(self, floor):
        self.floor = floor
        self.over = asyncio.Event()

    async def work(self, job, bytes_per_second):
        topic = job.directory.split("/")[-1].split("-")[0]
        self.over.clear()
        self.floor.begin(topic, job, bytes_per_second)
        held = self.floor.held.get(topic)
        while held is not None and not held.is_set():
            if self.over.is_set():
                raise CleaningFailedError("it was broken off", False)
            await asyncio.sleep(0)
        yield Cleaned((), 0, job.end_offset)

    async def close(self):
        self.over.set()


class Place:
    """A broker's compacted logs, and who cleans them."""

    def __init__(self, topics, **settings):
        disk = FakeDisk()
        LogDirectory.format(disk, "/data", Meta(1, "cluster", UUID(int=9)))
        self.directory = LogDirectory.open(disk, "/data")
        host = Host(now_ms=lambda: NOW, disk=disk, offload=self.offload, has_processes=False)
        self.replicas = Replicas(host, 1, [self.directory], lambda work: work.close())
        self.logs = {topic: self.log(topic) for topic in topics}
        #: The topics that are on their way to another directory.
        self.moving = set()
        self.floor = Floor()
        named = {name.replace("_", "."): str(value) for name, value in settings.items()}
        self.parts = SimpleNamespace(
            settings=BrokerSettings(named),
            host=host,
            replicas=self.replicas,
            flushing=Flushing(host, self.replicas, None),
            moves=SimpleNamespace(is_moving=lambda topic, _: topic in self.moving),
        )
        self.cleaning = Cleaning(self.parts, self.floor.new_cleaner)

    async def offload(self, work):
        return work()

    def log(self, topic):
        path = self.directory.partition_path(topic, 0)
        self.directory.disk.make_directory(path)
        log = Log.open(
            self.replicas.files,
            path,
            COMPACT,
            name=(topic, 0),
            clean=True,
            recovery_point=0,
            start_offset=0,
            now_ms=NOW,
        )
        made = Partition(UUID(int=1), 1, log, self.directory)
        made.lead(0, (1,), 0)
        self.replicas._partitions[topic] = {0: made}
        return made

    def soil(self, topic, segments=4):
        """Write one key over and over, into several segments."""
        partition = self.logs[topic]
        while len(partition.log.segments) < segments:
            batch = write_batch([Record(0, NOW, b"key", b"v" * 300)])
            partition.append_own(memoryview(batch), NOW)

    def note_clean(self, topic):
        """Note, as a cleaning would, that all is clean but what is written to now."""
        log = self.logs[topic].log
        log.clean_offset = log.active.base_offset


@contextlib.asynccontextmanager
async def playing(place):
    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as tasks:
        yield tasks.create_task(place.cleaning.clean())


async def test_all_cleaners_together_keep_to_the_rate_and_the_memory():
    place = Place("ab", log_cleaner_threads=2, **{RATE: 1000, MEMORY: 8 << 20})
    for topic in "ab":
        place.soil(topic)
    async with playing(place) as cleaning:
        await cleaning
    assert sorted(place.floor.begun) == ["a", "b"]
    assert place.floor.rates == [500, 500]
    assert place.floor.memories == [4 << 20, 4 << 20]


@pytest.mark.parametrize(("enabled", "cleaned"), [("true", ["a"]), ("false", [])])
async def test_nothing_is_cleaned_where_the_cleaner_is_turned_off(enabled, cleaned):
    place = Place("a", log_cleaner_enable=enabled)
    place.soil("a")
    async with playing(place) as cleaning:
        await cleaning
    assert place.floor.begun == cleaned


async def test_the_dirtiest_log_is_cleaned_first():
    """CMP-05: it is the share that counts, not the bytes, and not which is looked at first."""
    place = Place("abc", log_cleaner_threads=1)
    for topic, clean, dirty in (("a", 3, 4), ("b", 0, 1), ("c", 2, 6)):
        place.soil(topic, 1 + clean)
        place.note_clean(topic)
        place.soil(topic, 1 + clean + dirty)
    async with playing(place) as cleaning:
        await cleaning
    assert place.floor.begun == ["b", "c", "a"]


async def test_what_may_have_gaps_is_noted_to_be_on_disk_before_it_has_any():
    """After a crash a gap behind that point may end a log that is not compacted any more."""
    place = Place("a")
    place.soil("a")
    place.floor.hold("a")
    async with playing(place) as cleaning:
        await place.floor.wait_begun("a")
        noted = place.directory.recovery_points()
        assert noted["a", 0] == place.logs["a"].log.end_offset
        place.floor.held["a"].set()
        await cleaning


def test_what_is_clean_is_noted():
    """CMP-03."""
    place = Place("ab")
    place.soil("a")
    asyncio.run(place.cleaning.clean())
    clean_offset = place.logs["a"].log.clean_offset
    assert clean_offset > 0
    assert place.directory.read_checkpoint(CLEANER) == {("a", 0): clean_offset}


def test_what_moves_to_another_directory_is_cleaned_there():
    """A copy with values from before a cleaning may lack what took them back."""
    place = Place("ab")
    for topic in "ab":
        place.soil(topic)
    place.moving.add("a")
    asyncio.run(place.cleaning.clean())
    assert place.floor.begun == ["b"]
    place.moving.clear()
    asyncio.run(place.cleaning.clean())
    assert place.floor.begun == ["b", "a"]


def begin_to_move(place):
    place.moving.add("a")


def compact_no_more(place):
    log = place.logs["a"].log
    log.config = dataclasses.replace(log.config, cleanup_compact=False)


@pytest.mark.parametrize("happens", [begin_to_move, compact_no_more])
async def test_a_cleaning_of_what_is_not_to_be_cleaned_any_more_is_broken_off(happens):
    place = Place("a")
    place.soil("a")
    place.floor.hold("a")
    async with playing(place) as cleaning:
        await place.floor.wait_begun("a")
        happens(place)
        await place.cleaning.break_off()
        await cleaning
    assert place.logs["a"].log.clean_offset == 0


def test_a_stop_before_a_cleaning_has_begun_is_heeded():
    place = Place("a")
    place.soil("a")
    flush = place.parts.flushing.flush

    async def stopped_meanwhile(partition):
        await place.cleaning.stop()
        return await flush(partition)

    place.parts.flushing.flush = stopped_meanwhile
    asyncio.run(place.cleaning.clean())
    assert place.floor.begun == []


async def test_what_becomes_dirty_while_another_log_is_cleaned_does_not_wait_for_it():
    place = Place("ab", log_cleaner_threads=2, log_cleaner_backoff_ms=1)
    place.soil("a")
    async with playing(place) as cleaning:
        place.floor.hold("a")
        await place.floor.wait_begun("a")
        # The other one has nothing to do by now.
        for _ in range(5):
            await asyncio.sleep(0)
        place.soil("b")
        await place.floor.wait_begun("b")
        assert not cleaning.done()
        place.floor.held["a"].set()
        await cleaning
    assert all(place.logs[topic].log.clean_offset > 0 for topic in "ab")


async def test_who_waits_for_more_to_do_ends_with_the_last_cleaning():
    hours_ms = 10 * 60 * 60 * 1000
    place = Place("ab", log_cleaner_threads=3, log_cleaner_backoff_ms=hours_ms)
    place.soil("a")
    async with playing(place) as cleaning:
        place.floor.hold("a")
        await place.floor.wait_begun("a")
        place.floor.held["a"].set()
        await cleaning


async def test_a_stop_waits_for_nobody_who_waits_for_more_to_do():
    hours_ms = 10 * 60 * 60 * 1000
    place = Place("ab", log_cleaner_threads=3, log_cleaner_backoff_ms=hours_ms)
    place.soil("a")
    async with playing(place) as cleaning:
        place.floor.hold("a")
        await place.floor.wait_begun("a")
        await place.cleaning.stop()
        await cleaning
    assert place.logs["a"].log.clean_offset == 0


@pytest.mark.parametrize("operation", ["create", "write_at", "sync", "rename"])
def test_a_cleaning_for_which_there_is_no_room_is_given_up_and_tried_again(operation):
    place = Place("a")
    place.cleaning = Cleaning(place.parts, Cleaner)
    place.soil("a")
    partition, disk = place.logs["a"], place.directory.disk
    asyncio.run(place.parts.flushing.flush(partition))
    before = names(disk), partition.log.size_bytes
    disk.fail_next(operation, errno.ENOSPC)
    asyncio.run(place.cleaning.clean())
    assert place.directory.failed is None
    assert (names(disk), partition.log.size_bytes) == before
    assert partition.log.clean_offset == 0
    asyncio.run(place.cleaning.clean())
    assert partition.log.size_bytes < before[1]
    assert partition.log.clean_offset > 0


def test_too_many_open_files_for_a_look_at_a_log_fail_no_directory(monkeypatch):
    place = Place("a")
    place.soil("a")

    def none_left(_partition):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(place.cleaning, "_look_again", none_left)
    asyncio.run(place.cleaning.clean())
    assert place.directory.failed is None
    assert place.floor.begun == []


def names(disk):
    return sorted(name for name, _ in disk.scan("/data/a-0"))
