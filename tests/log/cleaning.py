"""Logs of keyed records, cleaned as the broker does it."""

from random import Random

from strom.log.cleaning import Cleaned, Job, Source, clean
from strom.log.cleaning_batches import LastWritten
from strom.log.cleaning_choice import find_cleanable
from strom.log.config import LogConfig
from strom.log.log import Log
from strom.records.batch import TRANSACTIONAL_FLAG
from strom.records.record import NO_PRODUCER, Producer, Record, read_records, write_batch
from tests.log.making import NOW

COMPACT = LogConfig(
    segment_bytes=2000, index_interval_bytes=100, cleanup_delete=False, cleanup_compact=True
)
DAY = COMPACT.delete_retention_ms


def put(log: Log, *pairs, at=NOW, producer: Producer = NO_PRODUCER, codec=0, flags=0):
    """Append one batch of keys and values."""
    records = [Record(index, at + index, key, value) for index, (key, value) in enumerate(pairs)]
    batch = write_batch(records, producer=producer, codec=codec, flags=flags)
    return log.append_as_leader(memoryview(batch), leader_epoch=0, now_ms=at)


def put_transactional(log: Log, producer: Producer, *pairs, at=NOW):
    return put(log, *pairs, at=at, producer=producer, flags=TRANSACTIONAL_FLAG)


def contents(log: Log) -> list[tuple[int, int, bytes | None, bytes | None]]:
    """Return offset, time, key and value of every record of data."""
    return [
        (each.offset, each.timestamp_ms, each.key, each.value)
        for header, batch in log.read_batches(log.start_offset)
        if not header.is_control
        for each in read_records(batch)
    ]


def headers(log: Log):
    return [header for header, _ in log.read_batches(log.start_offset)]


def pairs_of(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(offset, key, value) for offset, _, key, value in contents(log)]


def job_of(log: Log, *, now_ms=NOW, memory_bytes=1 << 20) -> Job:
    cleanable = find_cleanable(log, log.end_offset, now_ms)
    sources = [each for each in log.segments if each.base_offset < cleanable.end_offset]
    config = log.config
    known = {} if log.producers is None else dict(log.producers.items())
    return Job(
        directory=log.directory,
        sources=tuple(Source(each.base_offset, each.size_bytes) for each in sources),
        later=tuple(each.base_offset for each in log.segments[len(sources) :]),
        first_dirty_offset=cleanable.first_dirty_offset,
        end_offset=cleanable.end_offset,
        producers={id_: LastWritten(it.last_offset, it.epoch) for id_, it in known.items()},
        segment_bytes=config.segment_bytes,
        index_bytes_max=config.index_bytes_max,
        interval_bytes=config.index_interval_bytes,
        delete_retention_ms=config.delete_retention_ms,
        now_ms=now_ms,
        memory_bytes=memory_bytes,
        load_factor=0.9,
        seed=Random(3).randbytes(16),
    )


def clean_log(log: Log, disk, *, now_ms=NOW, memory_bytes=1 << 20) -> list[Cleaned]:
    """Clean all that can be cleaned; return the groups that were replaced."""
    job = job_of(log, now_ms=now_ms, memory_bytes=memory_bytes)
    done = []
    if job.end_offset <= job.first_dirty_offset:
        return done
    for cleaned in clean(disk, job, lambda _: None):
        if cleaned.sources:
            assert log.replace(cleaned.sources, cleaned.size_bytes)
            done.append(cleaned)
        else:
            log.clean_offset = cleaned.end_offset
    return done
