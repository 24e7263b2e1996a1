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
from typing import NamedTuple, Self

from strom.log.aborted import AbortedTransaction
from strom.log.config import LogConfig
from strom.log.disk import File, is_short
from strom.log.files import OpenFiles
from strom.log.producers import CLIENT, Marker, Origin, Producers, read_marker
from strom.log.recovery import Known, Loader
from strom.log.segment import RELATIVE_MAX, Segment
from strom.log.segmented import SegmentedLog
from strom.log.times import Search, Span, TimedOffset
from strom.records.batch import (
    CODEC_AT,
    CODEC_MASK,
    HEADER_SIZE,
    PREFIX_SIZE,
    Buffer,
    Header,
    compute_crc,
    patch_append_time,
    patch_place,
    read_header,
    read_prefix,
)
from strom.records.compression import CODECS_BY_NAME
from strom.records.record import read_batch
from strom.records.validate import check_batch, check_field, check_size, recompress
from strom.records.walk import Facts
from strom.wire.errors import ErrorCode, KafkaError


class Appended:
    """Where a batch stands in the log."""

    __slots__ = ("append_time_ms", "base_offset", "duplicate", "last_offset")

    def __init__(
        self, base_offset: int, last_offset: int, append_time_ms: int, duplicate: bool
    ) -> None:
        self.base_offset = base_offset
        self.last_offset = last_offset
        #: -1 where the records keep the time that the producer gave them.
        self.append_time_ms = append_time_ms
        #: It was there already; nothing was written.
        self.duplicate = duplicate


class Slice(NamedTuple):
    """A range of a segment's file. Whoever keeps it keeps the file open."""

    file: File
    position: int
    size: int

    def read_bytes(self) -> bytes:
        """Return the bytes, for those who cannot send from the file."""
        return self.file.read_at(self.position, self.size)


class Log(SegmentedLog):
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
        log.recovery_point = max(min(recovery_point, log.end_offset), log.start_offset)
        if not clean:
            # Recovery may have cut and removed; a clean stop must not be said before it is sure.
            log._is_touched = log._unsynced_names = True
            log._truncations = 1
        if log.start_offset > log.end_offset:
            # The batches in front of the first offset went too: nothing before it is wanted.
            log.truncate_fully_and_start_at(log.start_offset, now_ms)
        return log

    # Appending.

    def append_as_leader(  # noqa: PLR0913 - each but the batch with a name at the call
        self,
        batch: memoryview,
        *,
        leader_epoch: int,
        now_ms: int,
        header: Header | None = None,
        facts: Facts | None = None,
        origin: Origin = CLIENT,
        transaction_version: int = 0,
    ) -> Appended:
        """Check the one batch, give it the next offsets and write it; all or nothing.

        The batch is changed in place: its offset, its leader's epoch, perhaps its time. Who has
        read the header with `check_field` already, or looked at the records with `inspect_batch`,
        passes on what was found.
        """
        limits = self._limits or self.limits
        marker = None
        if origin is CLIENT:
            header = header or check_field(batch)
            if header.length + PREFIX_SIZE != len(batch):
                # What follows is no whole batch; Kafka cuts it off too.
                batch = batch[: header.length + PREFIX_SIZE]
            header = check_batch(header, batch, limits, now_ms, facts)
        else:
            header = read_batch(batch)
            marker = read_marker(header, batch)
            if limits.has_append_time:
                patch_append_time(batch, header.attributes, now_ms)
                header = read_header(batch)
        base_offset = self.end_offset
        producers = self.producers
        if header.producer_id >= 0 and producers is not None:
            earlier = producers.check(header, origin, base_offset, marker, transaction_version)
            if earlier is not None:
                append_time = earlier.timestamp_ms if limits.has_append_time else -1
                return Appended(earlier.first_offset, earlier.last_offset, append_time, True)
        patch_place(batch, base_offset, leader_epoch)
        # A client's batch has got it when it was checked.
        append_time = now_ms if limits.has_append_time else -1
        last_offset = self._write_one(batch, header, leader_epoch, now_ms)
        if header.producer_id >= 0:
            self._apply(header, base_offset, marker)
        return Appended(base_offset, last_offset, append_time, False)

    def _write_one(self, batch: memoryview, header: Header, leader_epoch: int, now_ms: int) -> int:
        """Write a batch at the log's end; return its last offset."""
        base_offset = self.end_offset
        last_offset = base_offset + header.last_offset_delta
        max_timestamp = header.max_timestamp
        self._write(batch, last_offset, max_timestamp, now_ms, (leader_epoch, base_offset))
        self._active.extend(last_offset, max_timestamp, len(batch))
        self.end_offset = last_offset + 1
        return last_offset

    def append_as_follower(self, batches: memoryview, *, now_ms: int) -> Appended:
        """Write batches as a leader has placed them; a torn one at the end is left out."""
        found = list(self._placed(batches))
        if not found:
            return Appended(self.end_offset, self.end_offset - 1, -1, False)
        fits = sum(header.length + PREFIX_SIZE for header, _ in found) <= self._config.segment_bytes
        start = 0
        for group in [found] if fits else [[each] for each in found]:
            size = sum(header.length + PREFIX_SIZE for header, _ in group)
            self._write_placed(batches[start : start + size], group, now_ms)
            start += size
        return Appended(found[0][0].base_offset, self.end_offset - 1, -1, False)

    def _placed(self, batches: memoryview) -> Iterator[tuple[Header, memoryview]]:
        """Yield the whole batches, each checked against the one before."""
        position, next_offset = 0, self.end_offset
        while len(batches) - position >= PREFIX_SIZE:
            size = read_prefix(batches, position)[1]
            if size > len(batches) - position:
                return
            batch = batches[position : position + size]
            header = read_batch(batch)
            if header.crc != compute_crc(batch):
                raise KafkaError(
                    ErrorCode.CORRUPT_MESSAGE,
                    f"Record is corrupt (stored crc = {header.crc}) in topic partition "
                    f"{self.label}.",
                )
            if header.base_offset < next_offset:
                raise KafkaError(
                    ErrorCode.UNKNOWN_SERVER_ERROR,
                    f"Append to {self.label} at {header.base_offset}, "
                    f"but the log ends at {next_offset}",
                )
            yield header, batch
            next_offset = header.last_offset + 1
            position += size

    def _write_placed(
        self, batches: memoryview, group: list[tuple[Header, memoryview]], now_ms: int
    ) -> None:
        first, last = group[0][0], group[-1][0]
        newest = max(header.max_timestamp for header, _ in group)
        self._write(
            batches, last.last_offset, newest, now_ms, (first.leader_epoch, first.base_offset)
        )
        for header, batch in group:
            self._active.extend(header.last_offset, header.max_timestamp, len(batch))
            self.end_offset = header.last_offset + 1
            self.epochs.assign(header.leader_epoch, header.base_offset)
            if header.producer_id >= 0:
                self._apply(header, header.base_offset, read_marker(header, batch))

    def _write(
        self,
        batch: memoryview,
        last_offset: int,
        max_timestamp: int,
        now_ms: int,
        epoch: tuple[int, int],
    ) -> None:
        """Write behind the active segment, or a new one; on an error nothing has changed."""
        if self.failed is not None:
            raise self._storage_error(self.failed)
        try:
            if self._is_roll_due(len(batch), last_offset, max_timestamp, now_ms):
                # A follower may be given offsets that are far behind the end.
                self.roll(now_ms, max(self.end_offset, last_offset - RELATIVE_MAX))
            if epoch[0] > self.epochs.latest:
                self.epochs.assign(*epoch)
            self._active.write(batch)
        except OSError as error:
            self._note_failure(error)
            raise self._storage_error(error) from error
        self._is_touched = True

    def _note_failure(self, error: OSError) -> None:
        # A full disk is no broken disk: what was written is cut off, and there may be room soon.
        if not is_short(error) or self._active.is_torn:
            self.failed = error

    def _storage_error(self, error: OSError) -> KafkaError:
        return KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"Error while appending records to {self.label} in dir {self.directory}: {error}",
        )

    def _is_roll_due(
        self, size_bytes: int, last_offset: int, max_timestamp: int, now_ms: int
    ) -> bool:
        segment = self._active
        config = self._config
        if segment.size_bytes > config.segment_bytes - size_bytes:
            if size_bytes > config.segment_bytes:
                raise KafkaError(
                    ErrorCode.RECORD_LIST_TOO_LARGE,
                    f"Message batch size is {size_bytes} bytes in append to partition "
                    f"{self.label}, which exceeds the maximum configured segment size "
                    f"of {config.segment_bytes}.",
                )
            return True
        if segment.size_bytes > 0:
            first_ms = segment.first_time_ms()
            waited_ms = max_timestamp - first_ms if first_ms >= 0 else now_ms - segment.created_ms
            if waited_ms > config.segment_ms_max - segment.jitter_ms:
                return True
        return segment.is_index_full(config.index_bytes_max) or not segment.can_hold(last_offset)

    def _apply(self, header: Header, base_offset: int, marker: Marker | None) -> None:
        if self.producers is None:
            self.producers = Producers(self.label)
        aborted = self.producers.apply(header, base_offset, marker)
        if aborted is not None:
            try:
                self._active.add_aborted(aborted)
            except OSError as error:
                # The marker is written; recovery finds from it what could not be noted.
                self.failed = error

    def needs_recompression(self, batch: Buffer) -> bool:
        """Whether the topic wants another codec than the producer used."""
        wanted = self._config.compression_type
        if wanted == "producer" or len(batch) < HEADER_SIZE:
            return False
        return batch[CODEC_AT] & CODEC_MASK != CODECS_BY_NAME[wanted]

    def recompress(self, batch: Buffer) -> bytearray:
        """Return the batch in the topic's codec; it may take long, so a thread may call it."""
        # What is too large as it came is refused, however small it could be made.
        check_size(read_prefix(batch)[1], self.limits)
        config = self._config
        levels = {"gzip": config.gzip_level, "lz4": config.lz4_level, "zstd": config.zstd_level}
        wanted = config.compression_type
        return recompress(batch, CODECS_BY_NAME[wanted], levels.get(wanted))

    # Reading. None of it waits for the disk, but for `read_batches`: see `log.cold`.

    def read(
        self, offset: int, *, max_bytes: int, end_offset: int, whole_first: bool
    ) -> Slice | None:
        """Return a range of one segment that begins with the batch that holds the offset.

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
