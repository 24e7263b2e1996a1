"""What a partition's leader tells those who wait when a transaction ends (TXN-11)."""

import asyncio
from uuid import UUID

from strom.log.config import LogConfig
from strom.records.batch import TRANSACTIONAL_FLAG, read_header
from strom.records.control_key import ControlType
from strom.records.marker import write_marker
from strom.records.record import Producer
from strom.replication.partition import READ_COMMITTED, Partition
from strom.replication.waiting import Waiter
from tests.log.making import NOW, batch, new_disk, open_log

PRODUCER = Producer(7, 0, 0)


def leader():
    partition = Partition(UUID(int=9), 1, open_log(new_disk(), LogConfig()), None)
    partition.lead(0, (1,), 0)
    return partition


def append(partition, *values, producer=PRODUCER):
    records = batch(*values, producer=producer, flags=TRANSACTIONAL_FLAG)
    appended = partition.place(records, read_header(records), NOW, all_in_sync=True)
    partition.write_placed(NOW)
    return appended


def end(partition, producer=PRODUCER):
    marker = write_marker(ControlType.COMMIT, producer=producer, coordinator_epoch=0, now_ms=NOW)
    partition.append_own(memoryview(marker), NOW)


async def test_an_end_wakes_careful_readers_although_it_is_small():
    """What they wait for was there before: it is the marker that lets them see it."""
    partition = leader()
    append(partition, b"x" * 5000)
    view = partition.read(0, 10**6, isolation_level=READ_COMMITTED, whole_first=True)
    assert view.records is None
    waiter = Waiter([partition], 5000, 600_000)
    end(partition)
    async with asyncio.timeout(60):
        assert await waiter.wait()
    view = partition.read(0, 10**6, isolation_level=READ_COMMITTED, whole_first=True)
    assert view.records.size > 5000


def test_ends_are_not_remembered_where_nobody_reads():
    partition = leader()
    for number in range(100):
        append(partition, b"x", producer=Producer(7, 0, number))
        end(partition)
    assert partition.log.producers._unreplicated == []


def test_the_last_stable_offset_is_never_before_the_first_record():
    partition = leader()
    append(partition, b"a", b"b")
    append(partition, b"c", producer=Producer(7, 0, 2))
    partition.log.raise_start_offset(2)
    view = partition.read(2, 10**6, isolation_level=READ_COMMITTED, whole_first=True)
    assert (view.last_stable_offset, view.start_offset, view.high_watermark) == (2, 2, 3)


async def test_a_high_watermark_of_what_a_power_cut_took_is_not_believed():
    """The checkpoint is synced, the records are not: it may be ahead of the log."""
    partition = Partition(UUID(int=9), 1, open_log(new_disk(), LogConfig()), None)
    partition.lead(0, (1,), 100)
    assert partition.high_watermark == 0
    waiter = Waiter([partition], 1, 600_000)
    append(partition, b"x")
    async with asyncio.timeout(60):
        assert await waiter.wait()
    assert partition.high_watermark == 1
