"""Looking a log up by time, exact to the record.

Which segment, and from which batch on, the indexes tell. Batches are then read and decompressed,
which takes long even if they are in memory: so a thread does it, and a search is tried again, as
after any ColdError, with what the thread has found.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from strom.log.batches import walk
from strom.log.cold import ColdError, Take
from strom.log.disk import File
from strom.log.segment import Segment
from strom.records.batch import Header
from strom.records.record import read_records
from strom.wire.errors import KafkaError


class TimedOffset(NamedTuple):
    """A record found by its time."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


class Span(NamedTuple):
    """The records that may be found: from the first offset on, in front of the second."""

    start_offset: int
    end_offset: int


class Part(NamedTuple):
    """The batches of a segment's file from a position on."""

    file: File
    position: int
    end: int


Found = TimedOffset | None
Scan = Callable[[Part, Span], Found]


class Search(ABC):
    """A search by time, with what was found in each segment so far."""

    __slots__ = ("_found",)

    def __init__(self) -> None:
        #: By the segment's first offset, and whether all of it was read or only its latest batch.
        self._found: dict[tuple[int, bool], Found | KafkaError] = {}

    @abstractmethod
    def find_now(self, segments: Sequence[Segment], span: Span) -> Found:
        """Return the record, as soon as that is known."""

    def _scan_now(
        self, segment: Segment, offset: int, span: Span, scan: Scan, *, whole: bool = True
    ) -> Found:
        """Return what a scan from the offset on has found; first have a thread do it."""
        key = segment.base_offset, whole
        if key not in self._found:
            part = Part(segment.file(), segment.locate(offset), segment.size_bytes)
            raise ColdError(lambda: self._fetch(key, partial(scan, part, span)))
        found = self._found[key]
        if isinstance(found, KafkaError):
            raise found
        return found

    def _fetch(self, key: tuple[int, bool], scan: Callable[[], Found]) -> Take:
        try:
            found: Found | KafkaError = scan()
        except KafkaError as error:
            found = error
        return partial(self._found.__setitem__, key, found)


class FirstAt(Search):
    """Finds the first record with this time or a later one."""

    __slots__ = ("_timestamp_ms",)

    def __init__(self, timestamp_ms: int) -> None:
        super().__init__()
        self._timestamp_ms = timestamp_ms

    def find_now(self, segments: Sequence[Segment], span: Span) -> Found:
        """Return the record, as soon as that is known."""
        timestamp_ms = self._timestamp_ms
        for segment in segments:
            if segment.base_offset >= span.end_offset:
                return None
            if segment.newest_now() < timestamp_ms:
                continue
            offset = max(segment.offset_before_time(timestamp_ms), span.start_offset)
            found = self._scan_now(segment, offset, span, self._first)
            if found is not None:
                return found if found.offset < span.end_offset else None
        return None

    def _first(self, part: Part, span: Span) -> Found:
        for _, header, batch in walk(*part):
            if header.base_offset >= span.end_offset:
                return None
            if header.max_timestamp >= self._timestamp_ms:
                found = _first_at(header, batch, self._timestamp_ms, span.start_offset)
                if found is not None:
                    return found
        return None


class Latest(Search):
    """Finds the first of the records with the largest time."""

    __slots__ = ()

    def find_now(self, segments: Sequence[Segment], span: Span) -> Found:
        """Return the record, as soon as that is known."""
        candidates = [
            each for each in segments if each.base_offset < span.end_offset and each.size_bytes
        ]
        best: Found = None
        for segment in sorted(candidates, key=Segment.newest_now, reverse=True):
            if best is not None and segment.newest_now() <= best.timestamp_ms:
                break
            found = self._latest_in(segment, span)
            if found is not None and (best is None or found.timestamp_ms > best.timestamp_ms):
                best = found
        return best

    def _latest_in(self, segment: Segment, span: Span) -> Found:
        offset = segment.max_time_offset
        if span.start_offset <= offset < span.end_offset:
            found = self._scan_now(segment, offset, span, first_batch, whole=False)
            if found is not None:
                return found
        # The batch with the largest time is not to be seen: whichever of the others has it.
        return self._scan_now(segment, span.start_offset, span, latest_batch)


def first_batch(part: Part, span: Span) -> Found:
    """Return the first record with the largest time of the first batch."""
    for _, header, batch in walk(*part):
        return _first_at(header, batch, header.max_timestamp, span.start_offset)
    return None


def latest_batch(part: Part, span: Span) -> Found:
    """Return the first of the records with the largest time of all batches."""
    best: Found = None
    for _, header, batch in walk(*part):
        if header.last_offset >= span.end_offset:
            break
        if best is None or header.max_timestamp > best.timestamp_ms:
            best = _first_at(header, batch, header.max_timestamp, span.start_offset) or best
    return best


def _first_at(header: Header, batch: memoryview, timestamp_ms: int, start_offset: int) -> Found:
    is_whole = header.record_count == header.last_offset_delta + 1
    if is_whole and (header.has_append_time or header.is_control):
        # All have the same time, so the first one that is asked for is the first.
        offset = max(header.base_offset, start_offset)
        return TimedOffset(offset, header.max_timestamp, header.leader_epoch)
    for record in read_records(batch):
        if record.timestamp_ms >= timestamp_ms and record.offset >= start_offset:
            return TimedOffset(record.offset, record.timestamp_ms, header.leader_epoch)
    return None
