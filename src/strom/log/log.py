# Compiled by mypyc.
"""One partition on disk: append at the end, read from an offset on.

    directory/
      00000000000000000000.log .index .timeindex             a segment
      00000000000000004711.log .index .timeindex .snapshot   the next one, the active segment
      leader-epoch-checkpoint

Batches are appended to the last segment only, which is left for a new one when it is full or old
enough. Between socket and disk a batch stays as it is, but for its offset and its leader's epoch.

All state belongs to one thread, the loop's. After a crash, `open` finds all batches in front of
the recovery point, as many of the later ones as reached the disk without a gap, and nothing else.
"""

from collections.abc import Iterator
from typing import Self

from strom.log.aborted import AbortedTransaction
from strom.log.appending import AppendedLog
from strom.log.config import LogConfig
from strom.log.files import OpenFiles
from strom.log.recovery import Known, Loader
from strom.log.segment import Segment
from strom.log.times import Search, Span, TimedOffset
from strom.records.batch import PREFIX_SIZE, Header, read_prefix
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.fetch import Slice


class Log(AppendedLog):
    """The batches of one partition."""

    __slots__ = ()

    @classmethod
    def open(  # noqa: PLR0913 - four facts from the checkpoints, each with a name at the call
        cls,
        files: OpenFiles,
        directory: str,
        config: LogConfig,
        *,
        name: tuple[str, int],
        clean: bool,
        recovery_point: int,
        start_offset: int,
        now_ms: int,
    ) -> Self:
        """Open the log in the directory, or create it there.

        `clean` says that the log was closed and the recovery point is its end; then no batch is
        read. Otherwise all from the recovery point's segment on are, which may take long.
        """
        loader = Loader(files, directory, config, name)
        loaded = loader.load(Known(clean, recovery_point, start_offset), now_ms)
        log = cls(files, directory, name, config, loaded)
        log._flushed_ms = now_ms
        if not log.segments:
            log.epochs.write()
            log._add_segment(start_offset, now_ms)
            log._unsynced_parent = True
        log._activate()
        log.start_offset = max(start_offset, log.segments[0].base_offset)
        log.recovery_point = max(min(recovery_point, log.end_offset), log.segments[0].base_offset)
        if not clean:
            # Recovery may have cut and removed; a clean stop must not be said before it is sure.
            log._is_touched = log._unsynced_names = log._unsynced_aborted = True
            log._truncations = 1
        if log.start_offset > log.end_offset:
            # The batches in front of the first offset went too: nothing before it is wanted.
            log.truncate_fully_and_start_at(log.start_offset, now_ms)
        return log

    # Reading. None of it waits for the disk, but for `read_batches`: see `log.cold`.

    def read(
        self, offset: int, *, max_bytes: int, end_offset: int, whole_first: bool
    ) -> Slice | None:
        """Return a range of one segment that begins with the batch that holds the offset.

        Whoever keeps it keeps the file open.
        It ends in front of `end_offset`, and at about `max_bytes`, perhaps within a batch; but
        `whole_first` gives the first batch whole. None if there is nothing to read.
        """
        end = self.end_offset
        if not self.start_offset <= offset <= end:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Received request for offset {offset} for partition {self.label}, but "
                f"we only have log segments from offset {self.start_offset} to {end}.",
            )
        limit = min(end_offset, end)
        number = self._number_of(offset)
        while offset < limit and number < len(self.segments):
            segment = self.segments[number]
            position = segment.locate(offset)
            stop = self._stop(number, limit)
            if position < stop:
                size = stop - position
                if size > max_bytes:
                    size = _fit(segment, position, max_bytes, whole_first)
                return Slice(segment.file(), position, size) if size else None
            # Compaction may have emptied the end of a segment.
            number += 1
        return None

    def _stop(self, number: int, limit: int) -> int:
        """Return the position in the segment where batches from the limit on begin."""
        segment = self.segments[number]
        if limit == self.end_offset:
            stop = segment.size_bytes
            if number == len(self.segments) - 1:
                # Whoever reads to the end will ask for what comes next.
                segment.hint(limit, stop)
            return stop
        if number + 1 < len(self.segments) and limit >= self.segments[number + 1].base_offset:
            return segment.size_bytes
        stop = segment.locate(limit)
        segment.hint(limit, stop)
        return stop

    def read_batches(
        self, offset: int, end_offset: int | None = None
    ) -> Iterator[tuple[Header, memoryview]]:
        """Yield whole batches from the one with the offset on, for those who load a state."""
        end = self.end_offset if end_offset is None else min(end_offset, self.end_offset)
        number = self._number_of(offset)
        for segment in self.segments[number:]:
            for _, header, batch in segment.batches(max(offset, segment.base_offset)):
                if header.base_offset >= end:
                    return
                yield header, batch

    def search_now(self, search: Search, end_offset: int) -> TimedOffset | None:
        """Return the record that the search is for, in front of the end."""
        return search.find_now(self.segments, Span(self.start_offset, end_offset))

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the largest epoch not above this one and where it ends; (-1, -1) if unknown."""
        return self.epochs.end_offset_for(epoch, self.end_offset)

    def aborted_within(self, offset: int, found: Slice) -> list[AbortedTransaction]:
        """Return the aborted transactions that a reader of the slice must know of.

        The offset is the one that the slice was read for. A few that begin just behind the slice
        may be among them, as in Kafka.
        """
        number = self._number_of(offset)
        while number + 1 < len(self.segments) and not self.segments[number].is_in(found.file):
            # Compaction may have emptied the end of a segment.
            number += 1
        segment = self.segments[number]
        behind = segment.offset_index_now().offset_behind(found.position + found.size)
        if behind is not None:
            return self.aborted(offset, segment.base_offset + behind)
        is_last = number + 1 == len(self.segments)
        return self.aborted(
            offset, self.end_offset if is_last else self.segments[number + 1].base_offset
        )

    def aborted(self, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """Return the aborted transactions that have records between the two offsets."""
        found = []
        for segment in self.segments[self._number_of(start_offset) :]:
            for each in segment.aborted_now():
                if each.last_offset >= start_offset and each.first_offset < end_offset:
                    found.append(each)
                if each.last_stable_offset >= end_offset:
                    return found
        return found


def _fit(segment: Segment, position: int, max_bytes: int, whole_first: bool) -> int:
    """Return how many bytes from the position on are given to a reader who wants no more."""
    cut = segment.boundary_before(position + max_bytes)
    if cut > position:
        return cut - position
    first = read_prefix(segment.file().read_now(position, PREFIX_SIZE))[1]
    if first <= max_bytes:
        return max_bytes
    return first if whole_first else 0
