# Compiled by mypyc.
"""A log as a row of segments: rolled, flushed, cut, retained, closed. What is in them is for
appending.py and log.py.

The order of steps, and what a crash between them leaves:

    roll       left segment's indexes, snapshot, new segment's files; no batch depends on any of it
    truncate   later segments' .log files go first, newest first, then the rest is cut: the log
               always ends somewhere, with no hole
    retain     files get the suffix .deleted, oldest segment first, .log first; what has it is
               removed at the next start if nobody did before
    replace    see cleaning_swap
    close      indexes and snapshot are written, batches are synced; then the caller may say "clean"
"""

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from strom.log.cleaning_swap import begin_swap, end_swap
from strom.log.config import LOG_APPEND_TIME, LogConfig
from strom.log.disk import File, is_short, suppress_short
from strom.log.files import OpenFiles
from strom.log.flush import WRITE_BACK_BYTES, Flush, WriteBack
from strom.log.producers import Producers
from strom.log.recovery import Loaded, remove_segment, replay
from strom.log.retention import Extent, Retained, overdue
from strom.log.segment import (
    DELETED,
    INDEX,
    LOG,
    SNAPSHOT,
    TIME_INDEX,
    TRANSACTION_INDEX,
    Segment,
    file_name,
)
from strom.log.snapshots import read_snapshot, write_snapshot
from strom.records.validate import Limits

_SUFFIXES: Final = (LOG, INDEX, TIME_INDEX, TRANSACTION_INDEX)


class SegmentedLog:
    """The segments of one partition and what is kept beside them.

    A broker has thousands of these, most of them idle: what only a log in use needs is made when
    it is first needed.
    """

    __slots__ = (
        "_active",
        "_config",
        "_files",
        "_flushed_ms",
        "_is_touched",
        "_limits",
        "_truncations",
        "_unsynced_aborted",
        "_unsynced_names",
        "_unsynced_parent",
        "_written_back",
        "clean_offset",
        "cut_bytes",
        "directory",
        "end_offset",
        "epochs",
        "failed",
        "name",
        "producers",
        "recovery_point",
        "refused",
        "segments",
        "snapshots",
        "start_offset",
    )

    def __init__(
        self,
        files: OpenFiles,
        directory: str,
        name: tuple[str, int],
        config: LogConfig,
        loaded: Loaded,
    ) -> None:
        self._files = files
        self.directory = directory
        self.name = name
        self._config = config
        self._limits: Limits | None = None
        #: Never empty once the log is open; the last one is the active segment.
        self.segments = loaded.segments
        self.start_offset = 0
        #: Everything in front of it has been through the cleaner.
        self.clean_offset = 0
        #: The offset that the next record will get.
        self.end_offset = loaded.end_offset
        #: Everything in front of it would outlive a power cut.
        self.recovery_point = 0
        self.epochs = loaded.epochs
        #: None while no producer with an id is known.
        self.producers = loaded.producers
        #: Offsets of the snapshots that are there, ascending.
        self.snapshots = loaded.snapshots
        #: The error of the disk after which this log takes nothing more.
        self.failed: OSError | None = None
        #: Why the disk, which is only full, did not take the last batch; for who tells of it.
        self.refused: OSError | None = None
        #: What recovery had to cut off.
        self.cut_bytes = loaded.cut_bytes
        self._flushed_ms = 0
        self._written_back = 0
        self._truncations = 0
        #: Something was written that `close` must make durable.
        self._is_touched = False
        #: The active segment's transaction index may have entries that were not synced.
        self._unsynced_aborted = False
        #: Files were created or renamed since the directory was last synced.
        self._unsynced_names = False
        #: The directory itself was created since the one above it was last synced.
        self._unsynced_parent = False

    # Settings and facts.

    @property
    def label(self) -> str:
        """The name as in messages."""
        return f"{self.name[0]}-{self.name[1]}"

    @property
    def config(self) -> LogConfig:
        """The settings; another one may be assigned at any time."""
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._config = config
        self._limits = None
        self._active.interval_bytes = config.index_interval_bytes

    @property
    def limits(self) -> Limits:
        """What the settings say about batches."""
        limits = self._limits
        if limits is None:
            config = self._config
            limits = self._limits = Limits(
                self.label,
                config.message_bytes_max,
                config.cleanup_compact,
                config.timestamp_type == LOG_APPEND_TIME,
                config.timestamp_before_max_ms,
                config.timestamp_after_max_ms,
            )
        return limits

    @property
    def size_bytes(self) -> int:
        """All batches, without indexes."""
        return sum([segment.size_bytes for segment in self.segments])

    @property
    def active(self) -> Segment:
        """The segment that batches are appended to."""
        return self._active

    def last_stable_offset(self, high_watermark: int) -> int:
        """Return up to where every transaction is decided, and the decision committed."""
        producers = self.producers
        if producers is None:
            return high_watermark
        # A transaction may have begun with records that were deleted since.
        return max(producers.last_stable_offset(high_watermark), self.start_offset)

    # Rolling.

    def roll(self, now_ms: int, base_offset: int | None = None) -> None:
        """Leave the active segment and begin a new one, at the end of the log or behind it."""
        base_offset = self.end_offset if base_offset is None else base_offset
        left = self._active
        if left.size_bytes == 0 and left.base_offset == base_offset:
            return
        left.finish_times()
        left.write_indexes()
        left.trim()
        self.take_snapshot()
        self._add_segment(base_offset, now_ms)
        left.is_active = False
        self._activate()
        if left.size_bytes == 0:
            remove_segment(self._files.disk, left)
            self.segments.remove(left)

    def _add_segment(self, base_offset: int, now_ms: int) -> None:
        segment = Segment(self._files, self.directory, base_offset, 0, now_ms)
        segment.interval_bytes = self._config.index_interval_bytes
        segment.create(self._config.segment_bytes if self._config.preallocate else 0)
        self.segments.append(segment)
        self._is_touched = self._unsynced_names = True

    def _activate(self) -> None:
        segment = self._active = self.segments[-1]
        segment.is_active = True
        segment.interval_bytes = self._config.index_interval_bytes
        self._written_back = segment.size_bytes
        jitter_ms = min(self._config.segment_jitter_ms, self._config.segment_ms)
        segment.jitter_ms = self._files.rng.randrange(jitter_ms) if jitter_ms > 0 else 0

    def _number_of(self, offset: int) -> int:
        """Return which segment the offset falls into."""
        if offset >= self._active.base_offset:
            return len(self.segments) - 1
        return max(0, bisect_right(self.segments, offset, key=attrgetter("base_offset")) - 1)

    # Producers' snapshots.

    def take_snapshot(self) -> None:
        """Write down the producers as of the end of the log, unless that was done before."""
        offset = self.end_offset
        if offset > (self.snapshots[-1] if self.snapshots else 0):
            data = write_snapshot(self.producers or Producers(self.label))
            self._files.disk.write_atomically(self._snapshot_path(offset), data, sync=False)
            self.snapshots = (*self.snapshots, offset)

    def expire_producers(self, now_ms: int) -> int:
        """Forget the producers that were silent for too long; return how many."""
        if self.producers is None:
            return 0
        return self.producers.expire(now_ms, self._config.producer_expiration_ms)

    def _snapshot_path(self, offset: int) -> str:
        return f"{self.directory}/{file_name(offset, SNAPSHOT)}"

    # Flushing.

    def flush_due(self, now_ms: int) -> bool:
        """Whether `flush.messages`, `flush.ms` or a segment that was left ask for a flush."""
        unflushed = self.end_offset - self.recovery_point
        return unflushed > 0 and (
            unflushed >= self._config.flush_messages
            # As in Kafka: a crash is to cost the reading of one segment, not of many.
            or self.recovery_point < self._active.base_offset
            or now_ms - self._flushed_ms >= self._config.flush_ms
        )

    def begin_flush(self) -> Flush:
        """Collect what must be synced to make the log durable up to its end."""
        disk = self._files.disk
        files: list[File] = []
        # With the segment that ends at the point: it was not left yet when the point came there.
        for segment in self.segments[self._number_of(self.recovery_point - 1) :]:
            files.append(segment.file())
            if not segment.is_active:
                files.extend(self._beside(segment))
            elif self.recovery_point <= segment.base_offset in self.snapshots:
                # What recovery begins with: the cleaner may have taken the ends of transactions
                # out of what is in front of it, which an earlier one has as open.
                files.append(disk.open(segment.path(SNAPSHOT)))
        if self._unsynced_aborted and self._active.aborted():
            # It must be there after a clean stop: then nothing would show that it is not.
            files.append(disk.open(self._active.path(TRANSACTION_INDEX)))
            self._unsynced_names = True
        if self.epochs.is_dirty:
            files.append(disk.open(self.epochs.path))
            self.epochs.is_dirty = False
            self._unsynced_names = True
        directories = [self.directory] if self._unsynced_names else []
        if self._unsynced_parent:
            directories.append(self.directory.rpartition("/")[0])
        self._unsynced_names = self._unsynced_parent = False
        self._unsynced_aborted = False
        return Flush(disk, files, directories, self.end_offset, self._truncations)

    def _beside(self, segment: Segment) -> list[File]:
        """Return the files beside a segment's batches, up to date but not synced."""
        segment.write_indexes()
        disk = self._files.disk
        paths = [segment.path(suffix) for suffix in (INDEX, TIME_INDEX)]
        if segment.aborted():
            paths.append(segment.path(TRANSACTION_INDEX))
        if segment.base_offset in self.snapshots:
            paths.append(segment.path(SNAPSHOT))
        return [disk.open(path, create=True) for path in paths]

    def end_flush(self, flush: Flush, now_ms: int | None = None) -> None:
        """Move the recovery point to the end that the log had when the flush began."""
        if flush.is_done and flush.truncations == self._truncations:
            self.recovery_point = max(self.recovery_point, flush.end_offset)
            if now_ms is not None:
                self._flushed_ms = now_ms

    def begin_write_back(self) -> WriteBack | None:
        """Return a hint for the disk once enough was appended since the last one."""
        start, end = self._written_back, self._active.size_bytes
        if end - start < WRITE_BACK_BYTES:
            return None
        self._written_back = end
        return WriteBack(self._active, start)

    def end_write_back(self, hint: WriteBack) -> None:
        """Take notice that room was reserved: a segment that was left meanwhile needs none."""
        if hint.segment is self._active:
            hint.segment.is_allocated = True
        else:
            hint.file.truncate(hint.segment.size_bytes)

    # Cutting.

    def raise_start_offset(self, offset: int) -> bool:
        """Make this the first offset that can be read; whole segments go at the next retention."""
        if not self.start_offset < offset <= self.end_offset:
            return False
        self.epochs.truncate_from_start(offset)
        # The recovery point stays where it is: what is passed over was not synced by that, and if
        # a crash leaves a hole there, nobody would look at it.
        self.start_offset = offset
        self._is_touched = True
        return True

    def truncate_to(self, offset: int, now_ms: int = 0) -> bool:
        """Cut off all from the offset on, with the whole batch that holds it."""
        if offset >= self.end_offset:
            return False
        if offset < self.segments[0].base_offset:
            self.truncate_fully_and_start_at(offset, now_ms)
            return True
        self._begin_truncation()
        while self.segments[-1].base_offset > offset:
            remove_segment(self._files.disk, self.segments.pop())
        self._activate()
        self._active.truncate(offset)
        self._written_back = min(self._written_back, self._active.size_bytes)
        self.end_offset = offset
        self.start_offset = min(self.start_offset, offset)
        self.clean_offset = min(self.clean_offset, offset)
        self.recovery_point = min(self.recovery_point, offset)
        self.epochs.truncate_from_end(offset)
        self._restore_producers()
        return True

    def truncate_fully_and_start_at(self, offset: int, now_ms: int = 0) -> None:
        """Throw everything away and let the log begin anew at the offset."""
        self._begin_truncation()
        while self.segments:
            remove_segment(self._files.disk, self.segments.pop())
        self._add_segment(offset, now_ms)
        self._activate()
        self.start_offset = self.end_offset = self.recovery_point = offset
        self.clean_offset = 0
        self.epochs.clear()
        self.epochs.write()
        for each in self.snapshots:
            self._files.disk.remove(self._snapshot_path(each))
        self.snapshots = ()
        self.producers = None

    def _begin_truncation(self) -> None:
        self._truncations += 1
        self._is_touched = self._unsynced_names = self._unsynced_aborted = True

    def _restore_producers(self) -> None:
        """Find the producers again as they were at the end that the log has now."""
        disk = self._files.disk
        for each in self.snapshots:
            if each > self.end_offset:
                disk.remove(self._snapshot_path(each))
        self.snapshots = tuple(each for each in self.snapshots if each <= self.end_offset)
        start, producers = 0, None
        for start in reversed(self.snapshots):
            producers = read_snapshot(disk.read(self._snapshot_path(start)), self.label)
            if producers is not None:
                break
        if producers is None:
            start, producers = 0, Producers(self.label)
        self.producers = replay(self.segments, producers, start, self.end_offset) or None

    # Retention.

    def retain(self, now_ms: int, high_watermark: int | None = None) -> Retained:
        """Take out the segments that are too old or too much, the active one too if need be.

        A ColdError comes before anything was changed.
        """
        bound = self.end_offset if high_watermark is None else high_watermark
        extent = Extent(self.start_offset, self.end_offset, bound)
        reasons = overdue(self.segments, self._config, extent, now_ms)
        if not reasons:
            return Retained()
        if len(reasons) == len(self.segments):
            # There is always a segment, and the offsets go on.
            self._active.offset_index_now()
            try:
                self.roll(now_ms)
            except OSError as error:
                if not is_short(error) or len(reasons) == 1:
                    raise
                # There is no room for a new one: the others make some.
                reasons.pop()
        gone, self.segments = self.segments[: len(reasons)], self.segments[len(reasons) :]
        files: list[str] = []
        for segment in gone:
            files.extend(self._mark_deleted(segment))
        before = self.start_offset
        self.start_offset = max(before, self.segments[0].base_offset)
        self.recovery_point = max(self.recovery_point, self.segments[0].base_offset)
        with suppress_short():
            self.epochs.truncate_from_start(self.start_offset)
        self._is_touched = self._unsynced_names = True
        return Retained(tuple(files), self.start_offset != before, tuple(reasons))

    def _mark_deleted(self, segment: Segment, *, keep_snapshot: bool = False) -> list[str]:
        disk = self._files.disk
        paths = [segment.path(suffix) for suffix in _SUFFIXES]
        if not keep_snapshot and segment.base_offset in self.snapshots[:-1]:
            self.snapshots = tuple(each for each in self.snapshots if each != segment.base_offset)
            paths.append(segment.path(SNAPSHOT))
        segment.close()
        marked = []
        for path in paths:
            if disk.exists(path):
                disk.rename(path, path + DELETED)
                marked.append(path + DELETED)
        return marked

    # Cleaning.

    def replace(self, sources: Sequence[tuple[int, int]], size_bytes: int) -> tuple[str, ...]:
        """Put the cleaned segment, so large, in the place of those with these offsets and sizes.

        Returns paths to be removed later; none, and nothing has changed, if the log is not as it
        was when the cleaning began.
        """
        first = self._number_of(sources[0][0])
        behind = first + len(sources)
        old = self.segments[first:behind]
        found = [(each.base_offset, each.size_bytes) for each in old]
        if found != [(base, size) for base, size in sources] or self._active in old:
            return ()
        disk = self._files.disk
        cleaned = Segment(
            self._files, self.directory, sources[0][0], size_bytes, old[-1].created_ms
        )
        cleaned.interval_bytes = self._config.index_interval_bytes
        cleaned.written_ms = old[-1].written_ms
        begin_swap(disk, cleaned)
        gone = [self._mark_deleted(each, keep_snapshot=each is old[0]) for each in old]
        end_swap(disk, cleaned)
        self.segments = [*self.segments[:first], cleaned, *self.segments[behind:]]
        self._is_touched = self._unsynced_names = True
        return tuple(path for paths in gone for path in paths)

    # The end.

    def close(self) -> None:
        """Make everything durable and give the files back; then the stop was a clean one."""
        if self._is_touched and self.failed is None:
            active = self._active
            active.finish_times()
            was_allocated = active.is_allocated
            active.trim()
            # Neither indexes nor snapshot are waited for: if a power cut takes them, the next
            # start finds that out and reads the batches, which are.
            active.write_indexes()
            self.take_snapshot()
            is_unsynced = self.end_offset > self.recovery_point or self._unsynced_names
            if is_unsynced or self._truncations or was_allocated:
                flush = self.begin_flush()
                flush.run()
                self.end_flush(flush)
            self._is_touched = False
        for segment in self.segments:
            segment.close()

    def abandon(self, directory: str) -> None:
        """Give the files back as they are, and the directory a name under which it can go."""
        for segment in self.segments:
            segment.close()
        self._files.disk.rename(self.directory, directory)
        self.directory = directory

    def rename_to(self, directory: str) -> None:
        """Give the log's directory another name, and go on in it."""
        disk = self._files.disk
        disk.rename(self.directory, directory)
        self.directory = self.epochs.directory = directory
        for segment in self.segments:
            segment.directory = directory
        disk.sync_directory(directory.rpartition("/")[0])
