"""Looking a log up by time, exact to the record."""

from collections.abc import Sequence
from typing import NamedTuple

from strom.log.segment import Segment
from strom.records.batch import Header
from strom.records.record import read_records


class TimedOffset(NamedTuple):
    """A record found by its time."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


def find_time(
    segments: Sequence[Segment], timestamp_ms: int, start_offset: int, end_offset: int
) -> TimedOffset | None:
    """Return the first record with this time or a later one between the two offsets."""
    for segment in segments:
        if segment.base_offset >= end_offset:
            return None
        # The largest time is read with the indexes.
        segment.time_index()
        if segment.max_time_ms < timestamp_ms:
            continue
        offset = max(segment.offset_before_time(timestamp_ms), start_offset)
        for _, header, batch in segment.batches(offset):
            if header.base_offset >= end_offset:
                return None
            if header.max_timestamp >= timestamp_ms:
                found = _first_at(header, batch, timestamp_ms, start_offset)
                if found is not None:
                    return found if found.offset < end_offset else None
    return None


def find_latest(
    segments: Sequence[Segment], start_offset: int, end_offset: int
) -> TimedOffset | None:
    """Return the first of the records with the largest time between the two offsets."""
    for segment in segments:
        # The largest times are read with the indexes.
        segment.time_index()
    candidates = [each for each in segments if each.base_offset < end_offset and each.size_bytes]
    best: TimedOffset | None = None
    for segment in sorted(candidates, key=lambda each: each.max_time_ms, reverse=True):
        if best is not None and segment.max_time_ms <= best.timestamp_ms:
            break
        found = _latest_in(segment, start_offset, end_offset)
        if found is not None and (best is None or found.timestamp_ms > best.timestamp_ms):
            best = found
    return best


def _latest_in(segment: Segment, start_offset: int, end_offset: int) -> TimedOffset | None:
    if segment.max_time_offset < end_offset and segment.max_time_offset >= start_offset:
        for _, header, batch in segment.batches(segment.max_time_offset):
            found = _first_at(header, batch, header.max_timestamp, start_offset)
            if found is not None:
                return found
            break
    # The batch with the largest time is not to be seen: whichever of the others has it.
    best: TimedOffset | None = None
    for _, header, batch in segment.batches(start_offset):
        if header.last_offset >= end_offset:
            break
        if best is None or header.max_timestamp > best.timestamp_ms:
            best = _first_at(header, batch, header.max_timestamp, start_offset) or best
    return best


def _first_at(
    header: Header, batch: memoryview, timestamp_ms: int, start_offset: int
) -> TimedOffset | None:
    if header.has_append_time or header.is_control:
        # All have the same time, so the first one that is asked for is the first.
        offset = max(header.base_offset, start_offset)
        return TimedOffset(offset, header.max_timestamp, header.leader_epoch)
    for record in read_records(batch):
        if record.timestamp_ms >= timestamp_ms and record.offset >= start_offset:
            return TimedOffset(record.offset, record.timestamp_ms, header.leader_epoch)
    return None
