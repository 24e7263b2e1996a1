"""Batches and logs for the tests of the log."""

from random import Random

from strom.log.cold import patiently
from strom.log.config import LogConfig
from strom.log.disk import Disk
from strom.log.files import OpenFiles
from strom.log.log import Log
from strom.log.producers import Origin
from strom.log.times import FirstAt, Latest
from strom.records.batch import TRANSACTIONAL_FLAG
from strom.records.control_key import ControlType
from strom.records.marker import write_marker
from strom.records.record import NO_PRODUCER, Producer, Record, read_records, write_batch
from strom.testing.disk import FakeDisk

NOW = 1_700_000_000_000
PATH = "/data/flug-0"
SMALL = LogConfig(segment_bytes=2000, index_interval_bytes=100)


def new_disk() -> FakeDisk:
    disk = FakeDisk()
    disk.make_directory("/data")
    disk.sync_directory("/data")
    return disk


def open_log(  # noqa: PLR0913 - what a test does not name has a default
    disk: Disk,
    config: LogConfig = SMALL,
    *,
    clean: bool = True,
    recovery_point: int = 0,
    start_offset: int = 0,
    path: str = PATH,
    now_ms: int = NOW,
    open_max: int = 100,
) -> Log:
    return Log.open(
        OpenFiles(disk, open_max=open_max, rng=Random(1)),
        path,
        config,
        name=("flug", 0),
        clean=clean,
        recovery_point=recovery_point,
        start_offset=start_offset,
        now_ms=now_ms,
    )


def reopen(log: Log, disk: Disk, config: LogConfig = SMALL) -> Log:
    """Close the log and open it as after a clean stop."""
    log.close()
    return open_log(disk, config, recovery_point=log.recovery_point, start_offset=log.start_offset)


def flush(log: Log) -> Log:
    """Have all that was appended on disk; return the log."""
    begun = log.begin_flush()
    begun.run()
    log.end_flush(begun, NOW)
    return log


def batch(*values: bytes, at: int = NOW, producer: Producer = NO_PRODUCER, flags: int = 0):
    """Return a batch as a client sends it."""
    records = [Record(index, at + index, None, value) for index, value in enumerate(values)]
    return memoryview(write_batch(records, producer=producer, flags=flags))


def append(log: Log, *values: bytes, at: int = NOW, epoch: int = 0, **options):
    return log.append_as_leader(batch(*values, at=at, **options), leader_epoch=epoch, now_ms=at)


def append_transactional(log: Log, producer: Producer, *values: bytes, at: int = NOW):
    return append(log, *values, at=at, producer=producer, flags=TRANSACTIONAL_FLAG)


def end_transaction(
    log: Log,
    producer: Producer,
    outcome: ControlType,
    *,
    coordinator_epoch: int = 0,
    version: int = 0,
):
    marker = write_marker(
        outcome, producer=producer, coordinator_epoch=coordinator_epoch, now_ms=NOW
    )
    return log.append_as_leader(
        memoryview(marker),
        leader_epoch=0,
        now_ms=NOW,
        origin=Origin.COORDINATOR,
        transaction_version=version,
    )


def read(log: Log, offset: int, **given):
    return patiently(lambda: log.read(offset, **given))


def first_at(log: Log, timestamp_ms: int, end_offset: int):
    """Return the first record with this time or a later one."""
    search = FirstAt(timestamp_ms)
    return patiently(lambda: log.search_now(search, end_offset))


def latest(log: Log, end_offset: int):
    """Return the first of the records with the largest time."""
    search = Latest()
    return patiently(lambda: log.search_now(search, end_offset))


def aborted(log: Log, start_offset: int, end_offset: int):
    return patiently(lambda: log.aborted(start_offset, end_offset))


def values_of(log: Log, offset: int | None = None) -> list[tuple[int, bytes | None]]:
    """Return offset and value of every record from the offset on, read as a consumer reads."""
    found = []
    offset = log.start_offset if offset is None else offset
    while offset < log.end_offset:
        part = read(log, offset, max_bytes=700, end_offset=log.end_offset, whole_first=True)
        if part is None:
            break
        for each in whole_batches(part.read_bytes()):
            records = read_records(each)
            found.extend((it.offset, it.value) for it in records if it.offset >= offset)
        offset = found[-1][0] + 1
    return found


def whole_batches(data: bytes) -> list[bytes]:
    """Split what a fetch returned, without the torn batch at its end."""
    parts, position = [], 0
    while position + 12 <= len(data):
        size = int.from_bytes(data[position + 8 : position + 12], "big") + 12
        if position + size > len(data):
            break
        parts.append(data[position : position + size])
        position += size
    return parts
