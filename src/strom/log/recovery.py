"""Opening a log: cheaply after a clean stop, by reading the batches after a crash.

After a clean stop the checkpoint says where the log ends, the newest snapshot is of that very
offset, and all files are whole: only the names and sizes in the directory are read.

After a crash everything in front of the recovery point is on disk, since the point moves after the
sync only. Behind it anything can be: missing, torn, zeros, the right length with wrong bytes, later
batches without earlier ones. So the segment with the recovery point and all after it are read,
batch by batch:

    whole, checksum right, offsets ascending    kept; indexes, producers and epochs follow from it
    anything else                               the log ends here: the rest of the segment is cut
                                                off, and later segments are removed

A gap in the offsets is what the cleaner leaves, now or before the topic's policy was changed: bytes
that a file has lost are no batch, so where batch follows batch nothing is missing. Between two
files it is another matter: the end of one may be lost and the next be whole. There a gap ends the
log, unless all of it is in front of the recovery point, or nobody knows where that was, or the
topic is compacted: Apache Kafka's cleaner leaves gaps there too, ours none.

Indexes, snapshots and epochs can be older or newer than the batches, or damaged. Those of the
segments that are read are built anew; the others were synced before the recovery point passed them.
A crash during recovery leaves the same or less to recover.
"""

import contextlib
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final, NamedTuple

from strom.log.batches import walk
from strom.log.cleaning_swap import finish_swaps
from strom.log.cold import DamagedSegmentError
from strom.log.config import LogConfig
from strom.log.disk import Disk
from strom.log.epochs import Epochs
from strom.log.files import OpenFiles
from strom.log.flush import WRITE_BACK_BYTES
from strom.log.producers import Producers, read_marker
from strom.log.segment import (
    CLEANED,
    DELETED,
    INDEX,
    LOG,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    TRANSACTION_INDEX,
    Segment,
    file_name,
)
from strom.log.snapshots import read_snapshot
from strom.records.batch import Header, compute_crc
from strom.wire.errors import KafkaError

_INDEX_SUFFIXES = (INDEX, TIME_INDEX, TRANSACTION_INDEX)
#: What an interrupted removal, compaction or replacement leaves.
_UNFINISHED = (DELETED, CLEANED, SWAP, ".tmp")

#: For a recovery point where the checkpoint is lost: it may have been anywhere.
NO_POINT: Final = -1


class Known(NamedTuple):
    """What the checkpoints say of a log, and whether they were the last thing written."""

    clean: bool
    #: Or NO_POINT.
    recovery_point: int
    start_offset: int


class Loaded(NamedTuple):
    """A log as it was found, or as it was made of what was found."""

    segments: list[Segment]
    end_offset: int
    #: None if there are none.
    producers: Producers | None
    epochs: Epochs
    snapshots: tuple[int, ...]
    #: Bytes that were cut off because they were no whole batches.
    cut_bytes: int


class Loader:
    """Finds out what a log's directory holds."""

    def __init__(
        self, files: OpenFiles, directory: str, config: LogConfig, name: tuple[str, int]
    ) -> None:
        self._files = files
        self._disk = files.disk
        self._directory = directory
        self._config = config
        self._name = name
        self.epochs = Epochs(files.disk, directory)
        self._segments: list[Segment] = []
        self._snapshots: list[int] = []
        self._cut_bytes = 0
        self._recovery_point = 0

    def load(self, known: Known, now_ms: int) -> Loaded:
        """Return the log; nothing of a segment's data is read if the stop was clean."""
        is_new = not self._take_stock(now_ms)
        has_epochs = self.epochs.load()
        segments = self._segments
        if is_new:
            return self._loaded(known.start_offset, None)
        if known.clean and not has_epochs:
            self._rebuild_epochs(segments)
            self.epochs.write()
        end_offset = known.recovery_point
        if known.clean and end_offset >= segments[-1].base_offset:
            producers = self._snapshot_at(end_offset)
            if producers is None:
                producers = self._replayed_to(end_offset)
            self._drop_stray_snapshots()
            return self._loaded(end_offset, producers)
        # Segments behind the end of a log that was closed are no part of it.
        return self._recover(known, rebuild_epochs=not has_epochs)

    def _loaded(self, end_offset: int, producers: Producers | None) -> Loaded:
        if self._segments:
            # Room that was reserved when the process ended is still taken.
            last = self._segments[-1]
            last.is_allocated = last.size_bytes >= WRITE_BACK_BYTES
        return Loaded(
            self._segments,
            end_offset,
            producers or None,
            self.epochs,
            tuple(self._snapshots),
            self._cut_bytes,
        )

    def _take_stock(self, now_ms: int) -> bool:
        """Note segments and snapshots; remove what an interrupted removal has left."""
        try:
            listed = dict(self._disk.scan(self._directory))
        except FileNotFoundError:
            self._disk.make_directory(self._directory)
            return False
        if [name for name in listed if name.endswith(_UNFINISHED)]:
            listed = self._tidy(listed)
        for name in sorted(listed):
            base, dot, suffix = name.partition(".")
            if not base.isdigit() or not dot:
                continue
            if suffix == "log":
                segment = Segment(self._files, self._directory, int(base), listed[name], now_ms)
                segment.interval_bytes = self._config.index_interval_bytes
                segment.written_ms = self._disk.modified_ms(segment.path(LOG))
                self._segments.append(segment)
            elif suffix == "snapshot":
                self._snapshots.append(int(base))
            elif "." + suffix in _INDEX_SUFFIXES and f"{base}.log" not in listed:
                self._disk.remove(f"{self._directory}/{name}")
        return bool(self._segments)

    def _tidy(self, listed: dict[str, int]) -> dict[str, int]:
        for name in sorted(listed):
            if name.endswith((DELETED, CLEANED, ".tmp")):
                self._disk.remove(f"{self._directory}/{name}")
        finish_swaps(self._disk, self._directory, listed)
        return dict(self._disk.scan(self._directory))

    # Producers.

    @property
    def _label(self) -> str:
        return f"{self._name[0]}-{self._name[1]}"

    def _snapshot_at(self, offset: int) -> Producers | None:
        """Return the producers in front of the offset, if there is a whole snapshot of it."""
        if offset not in self._snapshots:
            return None
        path = f"{self._directory}/{file_name(offset, SNAPSHOT)}"
        return read_snapshot(self._disk.read(path), self._label)

    def _newest_snapshot(self, offset: int) -> tuple[int, Producers]:
        """Return the newest whole snapshot not above the offset, or nothing from the start.

        Behind one that is older than all segments something is missing: transactions that it has
        as open may have ended there, and sequences have gone on.
        """
        for each in sorted(self._snapshots, reverse=True):
            if self._segments[0].base_offset <= each <= offset:
                producers = self._snapshot_at(each)
                if producers is not None:
                    return each, producers
        return 0, Producers(self._label)

    def _replayed_to(self, offset: int) -> Producers:
        """Return the producers in front of the offset, from a snapshot and what follows it."""
        start, producers = self._newest_snapshot(offset)
        return replay(self._segments, producers, start, offset)

    def _drop_stray_snapshots(self) -> None:
        """Keep the newest and those that a segment begins with."""
        if len(self._snapshots) < 2:
            return
        kept = {segment.base_offset for segment in self._segments} | {max(self._snapshots)}
        for each in set(self._snapshots) - kept:
            self._remove_snapshot(each)

    def _remove_snapshot(self, offset: int) -> None:
        self._disk.remove(f"{self._directory}/{file_name(offset, SNAPSHOT)}")
        self._snapshots.remove(offset)

    # Recovery.

    def _recover(self, known: Known, *, rebuild_epochs: bool) -> Loaded:
        segments = self._segments
        bases = [segment.base_offset for segment in segments]
        self._recovery_point = known.recovery_point
        # A segment that ends at the point may have been left since, its indexes not synced.
        first = max(0, bisect_left(bases, known.recovery_point) - 1)
        if rebuild_epochs:
            self._rebuild_epochs(segments[:first])
        end_offset = bases[first]
        # Of what follows, the batches know better: a start that was raised and forgotten again
        # has left its mark there.
        self.epochs.truncate_from_end(end_offset)
        producers = self._replayed_to(end_offset)
        for number, segment in enumerate(segments[first:], first):
            if number > first and not self._may_follow(end_offset, segment):
                self._remove_from(number)
                break
            if number > first and segment.base_offset == known.recovery_point:
                # The cleaner may have taken a marker out in front of the point, where everything
                # is sure: its snapshot knows of that, and the batches do not.
                producers = self._replayed_to(segment.base_offset)
            start = max(end_offset, segment.base_offset)
            whole, end_offset = self._recover_segment(segment, start, producers)
            if not whole:
                self._remove_from(number + 1)
                break
        for each in [each for each in self._snapshots if each > end_offset]:
            self._remove_snapshot(each)
        self._drop_stray_snapshots()
        self.epochs.truncate_from_end(end_offset)
        self.epochs.write()
        return self._loaded(end_offset, producers)

    def _rebuild_epochs(self, segments: list[Segment]) -> None:
        """Find the epochs of segments that need no recovery in their batches."""
        self.epochs.clear()
        for segment in segments:
            for _, header, _ in walk(segment.file(), 0, segment.size_bytes):
                self.epochs.note(header.leader_epoch, header.base_offset)

    def _recover_segment(
        self, segment: Segment, next_offset: int, producers: Producers
    ) -> tuple[bool, int]:
        """Check every batch; return whether all were whole, and the offset behind the last one."""
        found_bytes = segment.size_bytes
        valid_bytes = 0
        segment.begin_indexes()
        segment.clear_aborted()
        for position, header, batch in _valid_batches(segment, next_offset):
            try:
                marker = read_marker(header, batch)
            except KafkaError:
                break
            next_offset = header.last_offset + 1
            segment.note(header, position)
            valid_bytes = position + header.size_bytes
            self.epochs.note(header.leader_epoch, header.base_offset)
            if header.producer_id >= 0:
                aborted = producers.apply(header, header.base_offset, marker)
                if aborted is not None:
                    segment.add_aborted(aborted)
        if valid_bytes < found_bytes:
            segment.cut(valid_bytes)
            # What was cut off must not be found again behind what is written next.
            segment.file().sync()
            self._cut_bytes += found_bytes - valid_bytes
        segment.finish_times()
        segment.write_indexes()
        return valid_bytes == found_bytes, next_offset

    def _may_follow(self, next_offset: int, segment: Segment) -> bool:
        """Whether the segment may follow one that ends in front of the offset."""
        if segment.base_offset <= next_offset:
            return segment.base_offset == next_offset
        if self._recovery_point == NO_POINT:
            return True
        # A gap that reaches behind the point is what a crash has lost, also where the log is
        # compacted, which happens in front of the point: what follows would be served out of turn.
        return segment.base_offset <= self._recovery_point

    def _remove_from(self, number: int) -> None:
        for segment in self._segments[number:]:
            self._cut_bytes += segment.size_bytes
            remove_segment(self._disk, segment)
        del self._segments[number:]


def _valid_batches(segment: Segment, next_offset: int) -> Iterator[tuple[int, Header, memoryview]]:
    """Yield the batches up to the first one that is wrong.

    No checksum covers the base offset. One that is too large looks like a gap, but the next batch
    then goes back behind it: so a batch is held until its successor has been seen.
    """
    held: tuple[int, Header, memoryview] | None = None
    expected = next_offset
    for found in walk(segment.file(), 0, segment.size_bytes):
        _, header, batch = found
        if not segment.can_hold(header.last_offset) or header.crc != compute_crc(batch):
            break
        if header.base_offset < next_offset:
            if held is not None and expected < header.base_offset <= held[1].base_offset:
                return
            break
        if held is not None:
            yield held
        held, expected, next_offset = found, next_offset, header.last_offset + 1
    if held is not None:
        yield held


def replay(
    segments: list[Segment], producers: Producers, start_offset: int, end_offset: int
) -> Producers:
    """Bring the producers from the start to the end by what the batches between say."""
    for number, segment in enumerate(segments):
        is_before = number + 1 < len(segments) and segments[number + 1].base_offset <= start_offset
        if is_before or segment.base_offset >= end_offset:
            continue
        # What is behind a damaged batch cannot be reached; that is for its readers to hear.
        with contextlib.suppress(DamagedSegmentError):
            for _, header, batch in segment.batches(max(start_offset, segment.base_offset)):
                if header.base_offset >= end_offset:
                    break
                if header.producer_id < 0 or header.base_offset < start_offset:
                    continue
                # Nobody has looked at it since it was written: what is rotten says nothing.
                if header.crc == compute_crc(batch):
                    producers.apply(header, header.base_offset, read_marker(header, batch))
    return producers


def remove_segment(disk: Disk, segment: Segment) -> None:
    """Remove a segment's files at once."""
    segment.close()
    # The log goes first: a segment without it is no segment, without an index it still is.
    for suffix in (LOG, *_INDEX_SUFFIXES):
        disk.remove(segment.path(suffix))
