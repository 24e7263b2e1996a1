# Compiled by mypyc.
"""Appending to a log: a batch is checked, placed, written, and then part of it.

    place_as_leader   the batch is right, and has its offsets in it; the log is as it was
    write_placed      all that was placed is written at once; then the log ends behind it

Requests of one client often come together, each with a batch for the same partitions. To write
their batches at once takes half as long as one by one: the system makes larger pieces of memory for
them. What is placed is no state that anybody sees. If the write fails, nothing was.
"""

from collections.abc import Iterator
from typing import Final

from strom.log.config import LogConfig
from strom.log.disk import is_short
from strom.log.files import OpenFiles
from strom.log.producers import CLIENT, SEQUENCE_MAX, Marker, Origin, Producers, read_marker
from strom.log.recovery import Loaded
from strom.log.segment import RELATIVE_MAX
from strom.log.segmented import SegmentedLog
from strom.records.batch import (
    CODEC_AT,
    CODEC_MASK,
    HEADER_SIZE,
    PREFIX_SIZE,
    TRANSACTIONAL_FLAG,
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

#: So many batches are written at once; each is small, or there would not be so many.
PLACED_MAX: Final = 64


class Appended:
    """Where a batch stands in the log; of one that is placed, where it will."""

    __slots__ = ("append_time_ms", "base_offset", "duplicate", "error", "last_offset")

    def __init__(
        self, base_offset: int, last_offset: int, append_time_ms: int, duplicate: bool
    ) -> None:
        self.base_offset = base_offset
        self.last_offset = last_offset
        #: -1 where the records keep the time that the producer gave them.
        self.append_time_ms = append_time_ms
        #: It was there already; nothing was written.
        self.duplicate = duplicate
        #: Why it is not there after all, if it could not be written.
        self.error: KafkaError | None = None


class PlacedBatch:
    """A batch that has its place in the log, and is not written yet."""

    __slots__ = ("appended", "batch", "header")

    def __init__(self, batch: memoryview, header: Header, appended: Appended) -> None:
        self.batch = batch
        self.header = header
        self.appended = appended


def refuse(placed: list[PlacedBatch], error: KafkaError) -> None:
    """Note why batches are not in the log after all."""
    for each in placed:
        each.appended.error = error


class AppendedLog(SegmentedLog):
    """The segments of one partition, and how batches come into them."""

    __slots__ = ("_placed", "_untold_bytes")

    def __init__(
        self,
        files: OpenFiles,
        directory: str,
        name: tuple[str, int],
        config: LogConfig,
        loaded: Loaded,
    ) -> None:
        super().__init__(files, directory, name, config, loaded)
        #: Batches that have their places and are not written yet: while requests that came
        #: together are looked at, and at no other time.
        self._placed: list[PlacedBatch] | None = None
        #: What was written of such since somebody asked.
        self._untold_bytes = 0

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
        if origin is CLIENT:
            appended = self.place_as_leader(
                batch, header or check_field(batch), leader_epoch, now_ms, facts
            )
            self.write_placed(leader_epoch, now_ms)
            if appended.error is not None:
                raise appended.error
            return appended
        # What was placed before comes before it.
        self._write_all_placed(leader_epoch, now_ms)
        limits = self._limits or self.limits
        header = read_batch(batch)
        marker = read_marker(header, batch)
        if limits.has_append_time:
            patch_append_time(batch, header.attributes, now_ms)
            header = read_header(batch)
        base_offset = self.end_offset
        if header.producer_id >= 0 and self.producers is not None:
            self.producers.check(header, origin, base_offset, marker, transaction_version)
        patch_place(batch, base_offset, leader_epoch)
        append_time = now_ms if limits.has_append_time else -1
        last_offset = base_offset + header.last_offset_delta
        self._write([batch], last_offset, header.max_timestamp, now_ms, (leader_epoch, base_offset))
        self._extend(batch, header, base_offset, marker)
        return Appended(base_offset, last_offset, append_time, False)

    def place_as_leader(
        self,
        batch: memoryview,
        header: Header,
        leader_epoch: int,
        now_ms: int,
        facts: Facts | None = None,
    ) -> Appended:
        """Check a client's batch and give it the next offsets; `write_placed` writes it.

        Nothing else may be asked of the log until then, and the batch must stay where it is. If
        it cannot be written with those that were placed before, these are written first.
        """
        limits = self._limits or self.limits
        size_bytes = header.length + PREFIX_SIZE
        if size_bytes != len(batch):
            # What follows is no whole batch; Kafka cuts it off too.
            batch = batch[:size_bytes]
        header = check_batch(header, batch, limits, now_ms, facts)
        self._require_segment_for(size_bytes)
        if self._placed and not self._goes_with_placed(header, size_bytes, now_ms):
            self._write_all_placed(leader_epoch, now_ms)
        placed, producers = self._placed, self.producers
        if placed is None:
            base_offset = self.end_offset
            if header.producer_id >= 0 and producers is not None:
                earlier = producers.check(header, CLIENT, base_offset, None)
                if earlier is not None:
                    append_time = earlier.timestamp_ms if limits.has_append_time else -1
                    return Appended(earlier.first_offset, earlier.last_offset, append_time, True)
            placed = []
        else:
            base_offset = placed[-1].appended.last_offset + 1
        patch_place(batch, base_offset, leader_epoch)
        # The batch has got it when it was checked.
        append_time = now_ms if limits.has_append_time else -1
        last_offset = base_offset + header.last_offset_delta
        appended = Appended(base_offset, last_offset, append_time, False)
        placed.append(PlacedBatch(batch, header, appended))
        self._placed = placed
        return appended

    def _goes_with_placed(self, header: Header, size_bytes: int, now_ms: int) -> bool:
        """Whether a batch can be written with those that are placed.

        It must be the next of the same producer, so that it is right if those before it are, and
        no segment may be begun between them.
        """
        placed = self._placed
        assert placed is not None
        last = placed[-1].header
        if len(placed) >= PLACED_MAX or header.producer_id != last.producer_id:
            return False
        if header.producer_id >= 0 and (
            header.producer_epoch != last.producer_epoch
            or header.base_sequence != (last.last_sequence + 1) & SEQUENCE_MAX
            or (header.attributes ^ last.attributes) & TRANSACTIONAL_FLAG
        ):
            return False
        segment, config = self._active, self._config
        for each in placed:
            size_bytes += len(each.batch)
        last_offset = placed[-1].appended.last_offset + 1 + header.last_offset_delta
        try:
            return (
                # From the first batch on the segment has an age.
                segment.size_bytes > 0
                and not segment.is_index_full(config.index_bytes_max, len(placed))
                and not self._is_roll_due(size_bytes, last_offset, header.max_timestamp, now_ms)
            )
        except OSError:
            # The write comes upon it too, and tells it.
            return False

    def write_placed(self, leader_epoch: int, now_ms: int) -> int:
        """Write what was placed; return how many bytes were written since this was last called.

        What cannot be written is told in `Appended.error`, and changes nothing.
        """
        self._write_all_placed(leader_epoch, now_ms)
        written, self._untold_bytes = self._untold_bytes, 0
        return written

    def refuse_placed(self, error: KafkaError) -> None:
        """Write nothing of what was placed."""
        placed, self._placed = self._placed, None
        if placed is not None:
            refuse(placed, error)

    def _write_all_placed(self, leader_epoch: int, now_ms: int) -> None:
        placed, self._placed = self._placed, None
        if placed is None:
            return
        first, last_offset = placed[0], placed[-1].appended.last_offset
        epoch = leader_epoch, first.appended.base_offset
        batches = [each.batch for each in placed]
        try:
            # Those behind the first are no reason to begin a segment, or they were not with it.
            self._write(batches, last_offset, first.header.max_timestamp, now_ms, epoch)
        except KafkaError as error:
            refuse(placed, error)
            return
        except BaseException:
            # A fault of ours: whoever asks later must not be told that it is there.
            refuse(placed, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
            raise
        for each in placed:
            self._extend(each.batch, each.header, each.appended.base_offset, None)
            self._untold_bytes += len(each.batch)

    def _extend(
        self, batch: memoryview, header: Header, base_offset: int, marker: Marker | None
    ) -> None:
        """Make a batch that was just written part of the log."""
        last_offset = base_offset + header.last_offset_delta
        self._active.extend(last_offset, header.max_timestamp, len(batch))
        self.end_offset = last_offset + 1
        if header.producer_id >= 0:
            self._apply(header, base_offset, marker)

    def append_as_follower(self, batches: memoryview, *, now_ms: int) -> Appended:
        """Write batches as a leader has placed them; a torn one at the end is left out."""
        found = list(self._whole(batches))
        if not found:
            return Appended(self.end_offset, self.end_offset - 1, -1, False)
        fits = sum(header.length + PREFIX_SIZE for header, _ in found) <= self._config.segment_bytes
        start = 0
        for group in [found] if fits else [[each] for each in found]:
            size = sum(header.length + PREFIX_SIZE for header, _ in group)
            self._write_group(batches[start : start + size], group, now_ms)
            start += size
        return Appended(found[0][0].base_offset, self.end_offset - 1, -1, False)

    def _whole(self, batches: memoryview) -> Iterator[tuple[Header, memoryview]]:
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

    def _write_group(
        self, batches: memoryview, group: list[tuple[Header, memoryview]], now_ms: int
    ) -> None:
        first, last = group[0][0], group[-1][0]
        newest = max(header.max_timestamp for header, _ in group)
        self._write(
            [batches], last.last_offset, newest, now_ms, (first.leader_epoch, first.base_offset)
        )
        for header, batch in group:
            self.epochs.assign(header.leader_epoch, header.base_offset)
            self._extend(batch, header, header.base_offset, read_marker(header, batch))

    def _write(
        self,
        batches: list[memoryview],
        last_offset: int,
        max_timestamp: int,
        now_ms: int,
        epoch: tuple[int, int],
    ) -> None:
        """Write behind the active segment, or a new one; on an error nothing has changed."""
        if self.failed is not None:
            raise self._storage_error(self.failed)
        size_bytes = 0
        for batch in batches:
            size_bytes += len(batch)
        self._require_segment_for(size_bytes)
        try:
            if self._is_roll_due(size_bytes, last_offset, max_timestamp, now_ms):
                # A follower may be given offsets that are far behind the end.
                self.roll(now_ms, max(self.end_offset, last_offset - RELATIVE_MAX))
            if epoch[0] > self.epochs.latest:
                self.epochs.assign(*epoch)
            self._active.write(batches, size_bytes)
        except OSError as error:
            self._note_failure(error)
            raise self._storage_error(error) from error
        if max_timestamp < 0:
            self._active.written_ms = now_ms
        self._is_touched = True

    def _note_failure(self, error: OSError) -> None:
        # A full disk is no broken disk: what was written is cut off, and there may be room soon.
        if not is_short(error) or self._active.is_torn:
            self.failed = error
        else:
            self.refused = error

    def _storage_error(self, error: OSError) -> KafkaError:
        return KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"Error while appending records to {self.label} in dir {self.directory}: {error}",
        )

    def _require_segment_for(self, size_bytes: int) -> None:
        """Refuse what is larger than a segment may be."""
        largest = self._config.segment_bytes
        if size_bytes > largest:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"Message batch size is {size_bytes} bytes in append to partition {self.label}, "
                f"which exceeds the maximum configured segment size of {largest}.",
            )

    def _is_roll_due(
        self, size_bytes: int, last_offset: int, max_timestamp: int, now_ms: int
    ) -> bool:
        segment = self._active
        config = self._config
        if segment.size_bytes > config.segment_bytes - size_bytes:
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
                self._unsynced_aborted = True
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
