"""Cleaning a log: of each key only the newest record stays, at the offset that it has.

    1. The keys of the dirty part go into a map, each with its newest offset. If its memory is
       used up, the cleaning goes as far as the map does.
    2. All segments up to there, clean ones too, are copied group by group without the records
       that the map knows a newer one of. A group becomes one segment, so small ones grow together.

A group's segment is written beside the old ones, as `.cleaned` files, and is durable when it is
yielded; the caller then swaps it for its sources (`cleaning_swap`) before the next group begins. So
no more space is needed than for one segment, and whoever reads meanwhile reads the old ones.

Nothing here touches a log's state: all that is to be known is in the `Job`, and a process of its
own may do it. Readers and writers go on; only the segments that were left are read.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from strom.log.aborted import AbortedTransaction, read_aborted
from strom.log.batches import walk
from strom.log.cleaning_batches import LastWritten, Sieve, Transactions, check
from strom.log.cleaning_file import CleanedFile
from strom.log.cold import DamagedSegmentError
from strom.log.disk import Disk
from strom.log.producers import read_marker
from strom.log.segment import INDEX, RELATIVE_MAX, TIME_INDEX, TRANSACTION_INDEX, file_name
from strom.records.batch import CODEC_MASK, HEADER_SIZE, Header
from strom.records.compression import expand
from strom.records.plain_walk import MAP_ENTRY_BYTES
from strom.records.walk import OffsetMap

#: As many as one swap renames on the loop; what is left over is for the next cleaning.
GROUP_SEGMENTS_MAX = 64

Pace = Callable[[int], None]


class Source(NamedTuple):
    """A segment that was left: it is read from, and not changed any more."""

    base_offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Job:
    """All that is to be known to clean a log, as of now."""

    directory: str
    #: All segments in front of `end_offset`, oldest first.
    sources: tuple[Source, ...]
    #: Base offsets of the segments behind them; they may tell of transactions that are void.
    later: tuple[int, ...]
    first_dirty_offset: int
    end_offset: int
    producers: Mapping[int, LastWritten]
    segment_bytes: int
    index_bytes_max: int
    interval_bytes: int
    delete_retention_ms: int
    now_ms: int
    memory_bytes: int
    load_factor: float
    #: Of the hash that stands for a key.
    seed: bytes


class Cleaned(NamedTuple):
    """What has become of a group of segments, or of the whole job."""

    #: Empty at the end.
    sources: tuple[Source, ...]
    size_bytes: int
    #: Up to where the log is clean when all is done.
    end_offset: int


class UncleanableError(Exception):
    """A log that cannot be cleaned as it is."""


def clean(disk: Disk, job: Job, pace: Pace) -> Iterator[Cleaned]:
    """Yield each group's segment, to be swapped before the next is asked for; then the end.

    `pace` is told of every piece that was read or written, and may take its time.
    """
    aborted = _all_aborted(disk, job)
    offsets, latest_offset = _build_map(disk, job, aborted, pace)
    end_offset = latest_offset + 1
    if end_offset <= job.first_dirty_offset:
        raise UncleanableError(
            f"The keys of one batch do not fit into {job.memory_bytes} bytes "
            "(log.cleaner.dedupe.buffer.size)"
        )
    sieve = Sieve(
        offsets,
        latest_offset,
        Transactions(aborted, job.sources[0].base_offset),
        job.producers,
        now_ms=job.now_ms,
        delete_retention_ms=job.delete_retention_ms,
    )
    for group in groups(disk, job, end_offset):
        size_bytes = _copy(disk, job, group, sieve, pace)
        if size_bytes:
            yield Cleaned(group, size_bytes, end_offset)
    yield Cleaned((), 0, end_offset)


def _all_aborted(disk: Disk, job: Job) -> list[AbortedTransaction]:
    bases = [*(each.base_offset for each in job.sources), *job.later]
    paths = [f"{job.directory}/{file_name(base, TRANSACTION_INDEX)}" for base in bases]
    return [each for path in paths for each in read_aborted(disk, path)]


def batches_of(disk: Disk, job: Job, source: Source) -> Iterator[tuple[int, Header, memoryview]]:
    """Yield all batches of a segment; it is an error if they are not all of it."""
    file = disk.open(f"{job.directory}/{file_name(source.base_offset, '.log')}")
    end = 0
    for position, header, batch in walk(file, 0, source.size_bytes):
        end = position + len(batch)
        yield position, header, batch
    if end != source.size_bytes:
        raise DamagedSegmentError(f"No batch at position {end} of segment {source.base_offset}")


# The map.


def _build_map(
    disk: Disk, job: Job, aborted: list[AbortedTransaction], pace: Pace
) -> tuple[OffsetMap, int]:
    """Return the newest offset of each key, and up to which offset the map goes."""
    needed = job.end_offset - job.first_dirty_offset
    needed_bytes = int(needed / max(job.load_factor, 0.01) + 3) * MAP_ENTRY_BYTES
    offsets = OffsetMap(min(job.memory_bytes, needed_bytes), job.load_factor, job.seed)
    latest_offset = job.first_dirty_offset - 1
    ends = [*(each.base_offset for each in job.sources[1:]), job.end_offset]
    dirty = [
        (source, end)
        for source, end in zip(job.sources, ends, strict=True)
        if end > job.first_dirty_offset
    ]
    if not dirty:
        return offsets, latest_offset
    transactions = Transactions(aborted, dirty[0][0].base_offset)
    for source, end in dirty:
        for _, header, batch in batches_of(disk, job, source):
            pace(len(batch))
            if not _add(offsets, transactions, header, batch, job.first_dirty_offset):
                return offsets, latest_offset
            latest_offset = max(latest_offset, header.last_offset)
        latest_offset = end - 1
    return offsets, latest_offset


def _add(
    offsets: OffsetMap,
    transactions: Transactions,
    header: Header,
    batch: memoryview,
    first_offset: int,
) -> bool:
    """Note a batch's keys, unless its transaction was aborted; False if they do not fit."""
    check(header, batch)
    if header.is_control:
        transactions.is_spent(header, read_marker(header, batch))
        return True
    if transactions.is_void(header) or header.last_offset < first_offset:
        return True
    codec = header.attributes & CODEC_MASK
    data = expand(codec, batch[HEADER_SIZE:]) if codec else batch[HEADER_SIZE:]
    return offsets.add(data, 0, len(data), header.record_count, header.base_offset, first_offset)


# The copies.


def groups(disk: Disk, job: Job, end_offset: int) -> list[tuple[Source, ...]]:
    """Return the segments that are to be one, as far as size, indexes and offsets allow."""
    listed = dict(disk.scan(job.directory))
    found: list[tuple[Source, ...]] = []
    group: list[Source] = []
    ends = [*(each.base_offset for each in job.sources[1:]), job.end_offset]
    for source, end in zip(job.sources, ends, strict=True):
        if source.base_offset >= end_offset:
            break
        if group and not _fits(job, listed, [*group, source], end):
            found.append(tuple(group))
            group = []
        group.append(source)
    return [*found, tuple(group)] if group else found


def _fits(job: Job, listed: dict[str, int], group: list[Source], end: int) -> bool:
    if len(group) > GROUP_SEGMENTS_MAX or end - 1 - group[0].base_offset > RELATIVE_MAX:
        return False
    indexes = [
        sum(listed.get(file_name(each.base_offset, suffix), 0) for each in group)
        for suffix in (INDEX, TIME_INDEX)
    ]
    size = sum(each.size_bytes for each in group)
    return size <= job.segment_bytes and max(indexes) <= job.index_bytes_max


def _copy(disk: Disk, job: Job, group: tuple[Source, ...], sieve: Sieve, pace: Pace) -> int:
    """Write what is left of the group; return its size, 0 if that is what is there already."""
    target = CleanedFile(disk, job.directory, group[0].base_offset, job.interval_bytes)
    is_changed = len(group) > 1
    kept_before = len(sieve.transactions.kept)
    last = max((each for each in group if each.size_bytes), default=None)
    try:
        for source in group:
            for position, header, batch in batches_of(disk, job, source):
                # A start after a crash tells from the last offset which segments this one replaces.
                is_last = source is last and position + len(batch) == source.size_bytes
                left = sieve.left_of(header, batch, keep_place=is_last)
                pace(len(batch) + (len(left) if left is not None else 0))
                is_changed = is_changed or left is not batch
                if left is not None:
                    target.add(left)
        if is_changed and target.size_bytes:
            return target.finish(sieve.transactions.kept[kept_before:])
    except BaseException:
        target.discard()
        raise
    target.discard()
    return 0
