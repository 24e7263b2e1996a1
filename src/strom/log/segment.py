# Compiled by mypyc.
"""One segment of a log: a file of batches, and the indexes that help to find one.

The name of all its files is the offset that its first batch has or would have. Batches are
appended in ascending order of offsets, which may have gaps. `size_bytes` says where the valid part
of the file ends; what lies behind it (allocated ahead, or left by a failed write) is never read.

The file is opened and the indexes are read on first use, so one that nobody asks for costs a few
hundred bytes. Who appends or cuts waits for that; a look-up raises a ColdError, and a thread reads.
"""

import contextlib
from collections.abc import Iterator
from functools import partial
from typing import Final

from strom.log.aborted import ENTRY as ABORTED_ENTRY
from strom.log.aborted import AbortedTransaction, read_aborted, write_entry
from strom.log.batches import find, has_later, is_whole, peek, walk
from strom.log.cold import ColdError, DamagedSegmentError, Take, patiently
from strom.log.disk import File, write_all
from strom.log.files import OpenFiles
from strom.log.index import PENDING_MAX, DamagedIndexError, OffsetIndex, TimeIndex, write_pending
from strom.records.batch import HEADER_SIZE, Header, read_header

LOG: Final = ".log"
INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TRANSACTION_INDEX: Final = ".txnindex"
SNAPSHOT: Final = ".snapshot"
DELETED: Final = ".deleted"
CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"

#: Relative offsets and positions in the indexes have 32 bits.
RELATIVE_MAX: Final = 2**31 - 1
#: Stands for the largest time until the indexes have told it.
TIME_UNKNOWN: Final = -2
#: Places that readers will probably ask for next; a few per reader at the log's end.
HINTS_MAX: Final = 64


def file_name(offset: int, suffix: str) -> str:
    """Return the name of a segment's file."""
    return f"{offset:020d}{suffix}"


class Segment:
    """A file of batches with its indexes."""

    __slots__ = (
        "_aborted",
        "_file",
        "_files",
        "_first_time",
        "_hints",
        "_offset_index",
        "_time_index",
        "base_offset",
        "bytes_since_entry",
        "created_ms",
        "directory",
        "interval_bytes",
        "is_active",
        "is_allocated",
        "is_damaged",
        "is_torn",
        "jitter_ms",
        "max_time_ms",
        "max_time_offset",
        "size_bytes",
        "used",
        "written_ms",
    )

    def __init__(
        self, files: OpenFiles, directory: str, base_offset: int, size_bytes: int, created_ms: int
    ) -> None:
        self._files = files
        self.directory = directory
        self.base_offset = base_offset
        self.size_bytes = size_bytes
        #: When it was last written to counts where its records have no time; this process notes it.
        self.created_ms = self.written_ms = created_ms
        #: After so many bytes the next batch is indexed.
        self.interval_bytes = 4096
        self.jitter_ms = 0
        self.is_active = False
        #: The file may have room behind what is in it: made longer (`preallocate`), or reserved.
        self.is_allocated = False
        #: Behind the valid part there may be bytes of a failed write that could not be cut off.
        self.is_torn = False
        #: A batch was found rotten, so it is not the indexes that lead nowhere.
        self.is_damaged = False
        self.used = False
        self.bytes_since_entry = 0
        #: The largest time, and the last offset of the first batch with it; kept once it is read.
        self.max_time_ms = TIME_UNKNOWN
        self.max_time_offset = base_offset
        self._file: File | None = None
        self._first_time: int | None = None
        self._hints: dict[int, int] | None = None
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._aborted: list[AbortedTransaction] | None = None

    def create(self, preallocate_bytes: int = 0) -> None:
        """Make the segment's files, empty."""
        disk = self._files.disk
        # An index left over from a segment of that name would be taken for this one's.
        for suffix in (INDEX, TIME_INDEX):
            disk.write(self.path(suffix), b"")
        disk.remove(self.path(TRANSACTION_INDEX))
        self.max_time_ms = -1
        self._aborted = []
        file = disk.open(self.path(LOG), create=True)
        file.truncate(0)
        if preallocate_bytes:
            file.truncate(preallocate_bytes)
            self.is_allocated = True
        self._file = file
        self._files.admit(self)

    def path(self, suffix: str) -> str:
        """Return the path of one of the segment's files."""
        return f"{self.directory}/{self.base_offset:020d}{suffix}"

    # The parts that are opened or read on first use.

    def file(self) -> File:
        """Return the open .log file; whoever keeps it keeps it open."""
        self.used = True
        file = self._file
        if file is None:
            file = self._file = self._files.disk.open(self.path(LOG))
            self._files.admit(self)
        return file

    def is_in(self, file: object) -> bool:
        """Whether this is the open file that holds the segment."""
        return self._file is file

    def release(self) -> None:
        """Give back what can be had again from the disk."""
        self._file = None
        self._hints = None
        if not self.is_active:
            self._offset_index = self._time_index = self._aborted = None

    def close(self) -> None:
        """Give everything back, for good."""
        self._files.forget(self)
        self.is_active = False
        self.release()

    @property
    def is_loaded(self) -> bool:
        """Whether the indexes are there: then nothing need be read to append."""
        return self._offset_index is not None or not self.size_bytes

    def offset_index(self) -> OffsetIndex:
        """Return the index from offsets to positions."""
        if self._offset_index is None:
            self._load_indexes()
        assert self._offset_index is not None
        return self._offset_index

    def time_index(self) -> TimeIndex:
        """Return the index from times to offsets."""
        if self._time_index is None:
            self._load_indexes()
        assert self._time_index is not None
        return self._time_index

    def _load_indexes(self) -> None:
        if self.size_bytes == 0:
            self.set_indexes(OffsetIndex(), TimeIndex())
            self.max_time_ms = -1
            return
        disk = self._files.disk
        try:
            offsets = OffsetIndex.read(disk.read(self.path(INDEX)), self.size_bytes)
            times = TimeIndex.read(disk.read(self.path(TIME_INDEX)))
            self.set_indexes(offsets, times)
            self.max_time_ms, relative = times.last()
            self.max_time_offset = self.base_offset + relative
            # Even a segment that is too small for an index has its last entry of time.
            is_right = patiently(lambda: self._has_time(self.max_time_ms, self.max_time_offset))
            last_offset, position = offsets.recent(relative, self.base_offset)
            part = self.file(), position, self.size_bytes
            # What was written at the end may be lost, and the rest of an index is right too.
            if not is_right or has_later(*part, self.max_time_ms, last_offset):
                self._mend_indexes()
        except DamagedSegmentError:
            # They cannot be checked, and lead to what is left.
            self.is_damaged = True
        except (FileNotFoundError, DamagedIndexError):
            self.rebuild_indexes()

    def offset_index_now(self) -> OffsetIndex:
        """Return the index from offsets to positions, if it is there."""
        index = self._offset_index
        if index is None:
            self._require_indexes()
            index = self.offset_index()
        return index

    def _require_indexes(self) -> None:
        if not self.is_loaded:
            raise self._cold()

    def newest_now(self) -> int:
        """Return the largest time, -1 if there is none."""
        if self.max_time_ms == TIME_UNKNOWN:
            self._require_indexes()
            self.time_index()
        return self.max_time_ms

    def _cold(self, wrong: OffsetIndex | None = None) -> ColdError | DamagedSegmentError:
        """Return the error by which the indexes are read, or built anew if they are wrong."""
        if wrong is not None and self.is_damaged:
            return DamagedSegmentError(f"A batch is damaged in {self.path(LOG)}")
        files = OpenFiles(self._files.disk)
        twin = Segment(files, self.directory, self.base_offset, self.size_bytes, self.created_ms)
        twin.interval_bytes, twin.is_damaged = self.interval_bytes, self.is_damaged

        def fetch() -> Take:
            if wrong is not None:
                twin._mend_indexes()
            if wrong is None or not twin.is_damaged:
                twin.offset_index()
                twin.first_time_ms()
            return partial(self._take_from, twin, wrong)

        return ColdError(fetch)

    def _take_from(self, twin: "Segment", wrong: OffsetIndex | None) -> None:
        """Take over what was read, unless it is known or the segment was cut since."""
        if self._offset_index is not wrong or twin.size_bytes > self.size_bytes:
            return
        self.is_damaged = twin.is_damaged
        if wrong is not None and self.is_damaged:
            return
        if self._file is None:
            self._file = twin.file()
            self._files.admit(self)
        for position, header, _ in walk(self._file, twin.size_bytes, self.size_bytes):
            # Appended a moment ago, so it is in memory.
            twin.note(header, position)
        self.set_indexes(twin.offset_index(), twin.time_index())
        self.max_time_ms, self.max_time_offset = twin.max_time_ms, twin.max_time_offset
        self.bytes_since_entry = twin.bytes_since_entry
        self._first_time = twin.first_time_ms()
        self._hints = None

    def set_indexes(self, offsets: OffsetIndex, times: TimeIndex) -> None:
        """Take these for the segment's indexes."""
        self._offset_index, self._time_index = offsets, times

    def _mend_indexes(self) -> None:
        """Build anew what is wrong; but of a damaged segment what is there leads further."""
        offsets = range(self.base_offset, self.base_offset + RELATIVE_MAX + 1)
        self.is_damaged = not is_whole(self.file(), self.size_bytes, offsets)
        if not self.is_damaged:
            self.rebuild_indexes()

    def rebuild_indexes(self) -> None:
        """Compute the indexes from the batches, and write them."""
        self.begin_indexes()
        for position, header, _ in walk(self.file(), 0, self.size_bytes):
            self.note(header, position)
        self.finish_times()
        self.write_indexes()

    def begin_indexes(self) -> None:
        """Start with empty indexes, in memory and in the files."""
        for suffix in (INDEX, TIME_INDEX):
            self._files.disk.write(self.path(suffix), b"")
        self.set_indexes(OffsetIndex(), TimeIndex())
        self.bytes_since_entry = 0
        self.max_time_ms = -1
        self.max_time_offset = self.base_offset
        self._hints = None
        self.is_damaged = False

    # Appending.

    def can_hold(self, last_offset: int) -> bool:
        """Whether the indexes can express the offset."""
        return last_offset - self.base_offset <= RELATIVE_MAX

    def is_index_full(self, index_bytes_max: int, coming: int = 0) -> bool:
        """Whether the indexes have grown as large as they may, with so many entries more."""
        offsets, times = self.offset_index(), self.time_index()
        return offsets.is_full(index_bytes_max, coming) or times.is_full(index_bytes_max, coming)

    def write(self, batches: list[memoryview], size_bytes: int) -> None:
        """Put the bytes behind the valid part; they belong to it once `extend` was called.

        If that fails, what was written of them is cut off before the error is raised. If even
        the cutting fails, it is that error, and the segment must not be written to again.
        """
        file, position = self.file(), self.size_bytes
        if position == 0:
            # From the first batch on they are kept; many a partition never has one.
            self.offset_index()
        try:
            if len(batches) == 1:
                written = file.write_at(batches[0], position)
            else:
                written = file.write_parts_at(batches, position)
            if written < size_bytes:
                write_all(file, b"".join(batches)[written:], position + written)
        except OSError:
            self.is_torn = True
            file.truncate(position)
            self.is_torn = False
            raise

    def note(self, header: Header, position: int) -> None:
        """Take a batch at the position into account, whose offsets are already right."""
        self._note(header.last_offset, header.max_timestamp, position, header.size_bytes)

    def extend(self, last_offset: int, max_timestamp: int, size_bytes: int) -> None:
        """Make the batch that was just written part of the segment."""
        if self.size_bytes == 0:
            self._first_time = max_timestamp
        self._note(last_offset, max_timestamp, self.size_bytes, size_bytes)
        self.size_bytes += size_bytes

    def _note(self, last_offset: int, max_timestamp: int, position: int, size_bytes: int) -> None:
        if max_timestamp > self.max_time_ms:
            self.max_time_ms = max_timestamp
            self.max_time_offset = last_offset
        if self.bytes_since_entry > self.interval_bytes:
            self._add_entries(last_offset - self.base_offset, position)
        self.bytes_since_entry += size_bytes

    def _add_entries(self, relative_offset: int, position: int) -> None:
        offsets = self.offset_index()
        offsets.append(relative_offset, position)
        self.time_index().maybe_append(self.max_time_ms, self.max_time_offset - self.base_offset)
        self.bytes_since_entry = 0
        if len(offsets) - offsets.written > PENDING_MAX:
            # They stay pending; the next flush tries again, and then says so.
            with contextlib.suppress(OSError):
                self.write_indexes()

    def finish_times(self) -> None:
        """Note the largest time, as for every segment that is left or closed."""
        self.time_index().maybe_append(self.max_time_ms, self.max_time_offset - self.base_offset)

    def write_indexes(self) -> None:
        """Bring the index files up to date."""
        for index, suffix in ((self._offset_index, INDEX), (self._time_index, TIME_INDEX)):
            if index is not None and index.written < len(index):
                write_pending(index, self._files.disk.open(self.path(suffix), create=True))

    def first_time_ms(self) -> int:
        """Return the largest time of the first batch, from which age is counted; -1 if none."""
        if self._first_time is None:
            if self.size_bytes == 0:
                return -1
            header = self.file().read_at(0, HEADER_SIZE).ljust(HEADER_SIZE, b"\0")
            self._first_time = read_header(header).max_timestamp
        return self._first_time

    # Finding. None of these waits for the disk, but for `batches`.

    def locate(self, offset: int) -> int:
        """Return where the first batch that ends at the offset or later begins."""
        hints = self._hints
        if hints is not None and (position := hints.get(offset)) is not None:
            return position
        return self._search(offset)

    def _search(self, offset: int) -> int:
        index = self.offset_index_now()
        relative, position = index.floor(offset - self.base_offset)
        last_offset = self.base_offset + relative if relative >= 0 else -1
        try:
            return find(self.file(), offset, position, self.size_bytes, last_offset)
        except DamagedSegmentError:
            # An index that points between batches; or a disk that has spoiled one.
            raise self._cold(index) from None

    def boundary_before(self, position: int) -> int:
        """Return a beginning of a batch that is not above the position, as late as is known.

        A reader who is given what is in front of it will ask for that batch next.
        """
        index = self.offset_index_now()
        relative, found = index.boundary_before(position)
        if not found:
            return 0
        base_offset, last_offset = peek(self.file(), found)
        if last_offset != self.base_offset + relative:
            if self.is_damaged:
                return 0
            raise self._cold(index)
        self.hint(base_offset, found)
        return found

    def offset_before_time(self, timestamp_ms: int) -> int:
        """Return an offset up to which no record has this time or a later one."""
        self._require_indexes()
        time, relative = self.time_index().floor(timestamp_ms)
        if time >= 0 and not self._has_time(time, self.base_offset + relative):
            raise self._cold(self._offset_index)
        return self.base_offset + relative

    def _has_time(self, time_ms: int, offset: int) -> bool:
        """Whether an entry of the time index is of the batch that it names."""
        header = bytes(self.file().read_now(self._search(offset), HEADER_SIZE))
        return read_header(header.ljust(HEADER_SIZE, b"\0")).max_timestamp == time_ms

    def hint(self, offset: int, position: int) -> None:
        """Remember that the batch with this offset begins at the position, for the next reader."""
        hints = self._hints
        if hints is None or len(hints) >= HINTS_MAX:
            hints = self._hints = {}
        hints[offset] = position

    def batches(self, offset: int) -> Iterator[tuple[int, Header, memoryview]]:
        """Yield position, header and bytes from the batch with the offset on."""
        yield from walk(self.file(), patiently(lambda: self.locate(offset)), self.size_bytes)

    # Transactions.

    def aborted(self) -> list[AbortedTransaction]:
        """Return the transactions whose abort marker is in this segment."""
        if self._aborted is None:
            self._aborted = read_aborted(self._files.disk, self.path(TRANSACTION_INDEX))
        return self._aborted

    def aborted_now(self) -> list[AbortedTransaction]:
        """Return them if they are known."""
        if self._aborted is None:
            disk, path = self._files.disk, self.path(TRANSACTION_INDEX)
            raise ColdError(lambda: partial(self._take_aborted, read_aborted(disk, path)))
        return self._aborted

    def _take_aborted(self, found: list[AbortedTransaction]) -> None:
        if self._aborted is None:
            self._aborted = found

    def add_aborted(self, aborted: AbortedTransaction) -> None:
        """Note a transaction whose abort marker was just written."""
        known = self.aborted()
        file = self._files.disk.open(self.path(TRANSACTION_INDEX), create=True)
        write_all(file, write_entry(aborted), len(known) * ABORTED_ENTRY.size)
        known.append(aborted)

    def clear_aborted(self) -> None:
        """Forget all, before they are found again from the batches."""
        self._files.disk.remove(self.path(TRANSACTION_INDEX))
        self._aborted = []

    # Cutting.

    def truncate(self, offset: int) -> None:
        """Cut off every batch that ends at the offset or later."""
        self.cut(patiently(lambda: self.locate(offset)))
        relative = offset - self.base_offset
        times = self.time_index().truncated(relative)
        self.set_indexes(self.offset_index().truncated(relative), times)
        # The cut batches may have held the largest time; what follows the last entry counts.
        self.max_time_ms, last = times.last()
        self.max_time_offset = self.base_offset + last
        start = self.offset_index().floor(last)[1]
        for _, header, _ in walk(self.file(), start, self.size_bytes):
            if header.max_timestamp > self.max_time_ms:
                self.max_time_ms = header.max_timestamp
                self.max_time_offset = header.last_offset
        self._trim_indexes()
        kept = [each for each in self.aborted() if each.last_offset < offset]
        self.clear_aborted()
        for each in kept:
            self.add_aborted(each)
        self.bytes_since_entry = 0

    def trim(self) -> None:
        """Give back the room behind the batches."""
        if self.is_allocated:
            self.file().truncate(self.size_bytes)
            self.is_allocated = False

    def cut(self, position: int) -> None:
        """Let the segment end at the position."""
        self.file().truncate(position)
        self.is_allocated = False
        self.size_bytes = position
        self.is_damaged = False
        self._hints = None
        if position == 0:
            self._first_time = None

    def _trim_indexes(self) -> None:
        for index, suffix in ((self.offset_index(), INDEX), (self.time_index(), TIME_INDEX)):
            write_pending(index, self._files.disk.open(self.path(suffix), create=True))
