"""Moving a log between directories: under load, and cut off after every change on the disk.

Rows: DSK-01, DSK-09; nothing acknowledged and flushed is lost by a move.
"""

import asyncio
from random import Random
from uuid import UUID

import pytest

from strom.log.config import LogConfig
from strom.log.directory import LogDirectory
from strom.log.files import OpenFiles
from strom.log.log import Log
from strom.records.record import Producer, Record, read_records, write_batch
from strom.replication.mover import Move, MoveStoppedError, first_to_copy, longest
from strom.replication.partition import Partition
from strom.testing.disk import FakeDisk, PowerCutError

NOW = 1_700_000_000_000
NAME = ("flug", 0)
OLD = "/one/flug-0"
NEW = "/two/flug-0"
FUTURE = "/two/flug-0.abc-future"
#: Small segments, so that a move goes over many of them.
CONFIG = LogConfig(segment_bytes=500, index_interval_bytes=100)


def new_disk():
    disk = FakeDisk()
    for path in ("/one", "/two"):
        disk.make_directory(path)
        disk.sync_directory(path)
    disk.sync_directory("/")
    return disk


def open_log(disk, path, *, clean=True, start_offset=0):
    disk.make_directory(path)
    return Log.open(
        OpenFiles(disk, rng=Random(1)),
        path,
        CONFIG,
        name=NAME,
        clean=clean,
        recovery_point=start_offset if clean else 0,
        start_offset=start_offset,
        now_ms=NOW,
    )


def batch(*values, producer=None):
    records = [Record(index, NOW, None, value) for index, value in enumerate(values)]
    given = {} if producer is None else {"producer": producer}
    return memoryview(write_batch(records, **given))


def append(log, *values, **given):
    log.append_as_leader(batch(*values, **given), leader_epoch=3, now_ms=NOW)


def flush(log):
    flushing = log.begin_flush()
    flushing.run()
    log.end_flush(flushing, NOW)


def values(log):
    """Every record from the log's start on, with its offset."""
    return [
        (record.offset, bytes(record.value))
        for _, data in log.read_batches(log.start_offset)
        for record in read_records(data)
        if record.offset >= log.start_offset
    ]


def new_partition(disk):
    directory = LogDirectory(disk, "/one", None, None)
    partition = Partition(UUID(int=7), 1, open_log(disk, OLD), directory)
    partition.lead(3, (1,), 0)
    return partition


async def no_pace(_):
    return


def inline(between=lambda: None):
    """Runs what is offloaded at once, and lets something happen meanwhile."""

    async def offload(work):
        result = work()
        between()
        return result

    return offload


def new_move(partition, future, between=lambda: None, wanted=lambda: True):
    return Move(
        partition,
        future,
        offload=inline(between),
        now_ms=lambda: NOW,
        is_wanted=wanted,
        pace=no_pace,
    )


def move(partition, future, **given):
    return asyncio.run(new_move(partition, future, **given).run(NEW))


def test_everything_is_in_the_new_directory():
    disk = new_disk()
    partition = new_partition(disk)
    for number in range(50):
        append(partition.log, b"%d" % number, b"x" * 40)
    before = values(partition.log)
    left = move(partition, open_log(disk, FUTURE))
    assert left.directory == OLD
    assert partition.log.directory == NEW
    assert not disk.exists(FUTURE)
    assert values(partition.log) == before


def test_what_is_appended_meanwhile_is_moved_too_and_appending_goes_on():
    disk = new_disk()
    partition = new_partition(disk)
    append(partition.log, b"first")
    written = []

    def produce():
        if len(written) < 40:
            written.append(b"%d" % len(written))
            append(partition.log, written[-1])

    move(partition, open_log(disk, FUTURE), between=produce)
    append(partition.log, b"last")
    assert [value for _, value in values(partition.log)] == [b"first", *written, b"last"]
    assert [offset for offset, _ in values(partition.log)] == list(range(len(written) + 2))


def test_a_log_that_begins_within_a_batch_keeps_its_start():
    disk = new_disk()
    partition = new_partition(disk)
    for _ in range(3):
        append(partition.log, b"a", b"b", b"c")
    partition.log.raise_start_offset(4)
    start = first_to_copy(partition.log)
    assert start == 3
    before = values(partition.log)
    move(partition, open_log(disk, FUTURE, start_offset=start))
    assert partition.log.start_offset == 4
    assert values(partition.log) == before


def test_retention_may_overtake_the_copy():
    disk = new_disk()
    partition = new_partition(disk)
    for _ in range(20):
        append(partition.log, b"x" * 100)
    future = open_log(disk, FUTURE)
    partition.log.raise_start_offset(15)
    partition.log.retain(NOW)
    before = values(partition.log)
    move(partition, future)
    assert values(partition.log) == before


def test_producers_and_epochs_move_along():
    disk = new_disk()
    partition = new_partition(disk)
    append(partition.log, b"a", producer=Producer(11, 0, 0))
    partition.lead(8, (1,), 0)
    move(partition, open_log(disk, FUTURE))
    again = partition.log.append_as_leader(
        batch(b"a", producer=Producer(11, 0, 0)), leader_epoch=8, now_ms=NOW
    )
    assert again.duplicate
    assert partition.log.epochs.latest == 8
    assert partition.log.end_offset_for_epoch(3) == (3, 1)


def test_a_move_that_is_no_longer_wanted_leaves_the_partition_alone():
    disk = new_disk()
    partition = new_partition(disk)
    append(partition.log, b"a")
    with pytest.raises(MoveStoppedError):
        move(partition, open_log(disk, FUTURE), wanted=lambda: False)
    assert partition.log.directory == OLD


def test_a_broken_off_copy_is_gone_on_with():
    disk = new_disk()
    partition = new_partition(disk)
    for _ in range(10):
        append(partition.log, b"x" * 100)
    half = open_log(disk, FUTURE)
    for _, data in partition.log.read_batches(0, 5):
        half.append_as_follower(memoryview(bytes(data)), now_ms=NOW)
    half.close()
    move(partition, open_log(disk, FUTURE, clean=False))
    assert len(values(partition.log)) == 10


# Crashes.

ACKNOWLEDGED = 12


def filled(disk, flushed):
    """A partition with durable records; noted is up to where."""
    partition = new_partition(disk)
    disk.sync_directory("/one")
    for number in range(ACKNOWLEDGED):
        append(partition.log, b"%d" % number)
    flush(partition.log)
    flushed.append(partition.log.end_offset)
    return partition


def play(disk, partition, flushed):
    """Move under load, and take the old log away as the broker does."""

    def produce():
        if partition.log.end_offset < 3 * ACKNOWLEDGED:
            append(partition.log, b"%d" % partition.log.end_offset)
            flush(partition.log)
            flushed.append(partition.log.end_offset)

    left = move(partition, open_log(disk, FUTURE), between=produce)
    append(partition.log, b"%d" % partition.log.end_offset)
    flush(partition.log)
    flushed.append(partition.log.end_offset)
    left.abandon("/one/flug-0.def-delete")
    disk.remove_tree("/one/flug-0.def-delete")


def recovered(disk):
    """What a start finds, by the rules of `broker.replicas`."""
    current = [path for path in (OLD, NEW) if disk.exists(path)]
    if not current:
        assert disk.exists(FUTURE)
        disk.rename(FUTURE, NEW)
        current = [NEW]
    return longest([open_log(disk, path, clean=False) for path in current])


def count_changes():
    disk = new_disk()
    partition = filled(disk, [])
    before = disk.changes
    play(disk, partition, [])
    return disk.changes - before


@pytest.mark.slow
@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_a_power_cut_after_any_change_loses_nothing_that_was_flushed(seed):
    for cut in range(count_changes()):
        disk = new_disk()
        flushed = []
        partition = filled(disk, flushed)
        disk.cut_power_after(cut)
        with pytest.raises(PowerCutError):
            play(disk, partition, flushed)
        disk.crash(None if seed is None else Random(seed * 1000 + cut))
        found = recovered(disk)
        got = values(found)
        assert got == [(n, b"%d" % n) for n in range(len(got))], cut
        assert len(got) >= flushed[-1], cut
