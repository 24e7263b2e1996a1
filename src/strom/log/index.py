# Compiled by mypyc.
"""The two sparse indexes of a segment: offset to position, and time to offset.

    .index      8 bytes: last offset of a batch, relative to the segment's base | its position
    .timeindex  12 bytes: largest time up to a batch | last offset of the batch that has it

Entries are ascending in both columns. They are only a help for finding a place quickly: all of
them can be computed from the .log file again. So new ones wait in memory until there are some
hundred, and a crash loses them; recovery, or the first look-up that finds them wrong, builds
the index anew.

Apache Kafka allocates these files in full and cuts them when a segment is closed; after a crash
they end in zeros. No entry but a first one is all zeros, so zeros at the end are not entries.
"""

import sys
from array import array
from bisect import bisect_left, bisect_right
from struct import Struct
from typing import Final

from strom.log.disk import File, write_all

OFFSET_ENTRY: Final = Struct(">ii")
TIME_ENTRY: Final = Struct(">qi")
#: So many entries may wait in memory, which is 1 MiB of records or more.
PENDING_MAX: Final = 256


class DamagedIndexError(Exception):
    """The file cannot be what was written; build it anew."""


class OffsetIndex:
    """Where batches begin: every so many bytes, one batch's last offset and its position."""

    __slots__ = ("offsets", "positions", "written")

    def __init__(self) -> None:
        #: Relative to the segment's base offset.
        self.offsets = array("i")
        self.positions = array("i")
        #: How many entries are in the file.
        self.written = 0

    @classmethod
    def read(cls, data: bytes, log_size: int) -> "OffsetIndex":
        """Return the index that the file holds, of a segment with so many bytes."""
        index = cls()
        columns = _read_ints(data, OFFSET_ENTRY.size)
        index.offsets, index.positions = columns[0::2], columns[1::2]
        # A batch in front of the indexed one means that position 0 is never indexed.
        while index.positions and index.positions[-1] == 0:
            index.offsets.pop()
            index.positions.pop()
        if not _ascends(index.offsets) or not _ascends(index.positions):
            raise DamagedIndexError
        if index.positions and not 0 < index.positions[0] <= index.positions[-1] < log_size:
            raise DamagedIndexError
        if index.offsets and index.offsets[0] < 0:
            raise DamagedIndexError
        index.written = len(index.offsets)
        return index

    def __len__(self) -> int:
        return len(self.offsets)

    def is_full(self, bytes_max: int, coming: int = 0) -> bool:
        """Whether the file is as large as it may be, with so many entries more."""
        return len(self.offsets) + coming >= bytes_max // OFFSET_ENTRY.size

    def append(self, relative_offset: int, position: int) -> None:
        """Note the batch that ends with the offset and begins at the position."""
        self.offsets.append(relative_offset)
        self.positions.append(position)

    def floor(self, relative_offset: int) -> tuple[int, int]:
        """Return the last entry that is not above the offset, or (-1, 0) for the beginning."""
        at = bisect_right(self.offsets, relative_offset)
        return (self.offsets[at - 1], self.positions[at - 1]) if at else (-1, 0)

    def recent(self, relative_offset: int, base_offset: int) -> tuple[int, int]:
        """Return the same with its whole offset, or a later entry if that one is old.

        What the two indexes get at once is never more than what lies behind it.
        """
        at = max(bisect_right(self.offsets, relative_offset), len(self.offsets) - PENDING_MAX - 1)
        return (base_offset + self.offsets[at - 1], self.positions[at - 1]) if at > 0 else (-1, 0)

    def boundary_before(self, position: int) -> tuple[int, int]:
        """Return the last entry whose position is not above this one, or (-1, 0)."""
        at = bisect_right(self.positions, position)
        return (self.offsets[at - 1], self.positions[at - 1]) if at else (-1, 0)

    def offset_behind(self, position: int) -> int | None:
        """Return an offset in front of which everything before the position is, if one is known."""
        at = bisect_left(self.positions, position)
        return self.offsets[at] if at < len(self.offsets) else None

    def truncated(self, relative_offset: int) -> "OffsetIndex":
        """Return an index without what is at the offset and above."""
        at = bisect_left(self.offsets, relative_offset)
        index = OffsetIndex()
        index.offsets, index.positions = self.offsets[:at], self.positions[:at]
        index.written = min(self.written, at)
        return index

    def pending(self) -> bytes:
        """Return the entries that the file lacks, in its form."""
        return b"".join(
            map(OFFSET_ENTRY.pack, self.offsets[self.written :], self.positions[self.written :])
        )


class TimeIndex:
    """How far time has come: the largest timestamp so far, and which batch has it."""

    __slots__ = ("offsets", "times", "written")

    def __init__(self) -> None:
        self.times = array("q")
        #: Relative to the segment's base offset.
        self.offsets = array("i")
        self.written = 0

    @classmethod
    def read(cls, data: bytes) -> "TimeIndex":
        """Return the index that the file holds."""
        index = cls()
        columns = _read_ints(data, TIME_ENTRY.size)
        offsets = columns[2::3]
        times = array("q", bytes(8 * len(offsets)))
        # In the machine's own order, a 64-bit number is its two halves in one of two orders.
        halves = memoryview(times).cast("B").cast("i")
        low, high = (0, 1) if sys.byteorder == "little" else (1, 0)
        halves[high::2], halves[low::2] = columns[0::3], columns[1::3]
        halves.release()
        while times and times[-1] == 0 and offsets[-1] == 0:
            times.pop()
            offsets.pop()
        if not _ascends(times) or not _ascends(offsets, strictly=False):
            raise DamagedIndexError
        if times and (times[0] < 0 or offsets[0] < 0):
            raise DamagedIndexError
        index.times, index.offsets, index.written = times, offsets, len(times)
        return index

    def __len__(self) -> int:
        return len(self.times)

    def is_full(self, bytes_max: int, coming: int = 0) -> bool:
        """Whether the file is as large as it may be before the last entry, which has to fit."""
        return len(self.times) + coming >= bytes_max // TIME_ENTRY.size - 1

    def maybe_append(self, timestamp_ms: int, relative_offset: int) -> bool:
        """Note the time if it is later than all before; tell whether it was."""
        if self.times and timestamp_ms <= self.times[-1]:
            return False
        if timestamp_ms < 0:
            return False
        self.times.append(timestamp_ms)
        self.offsets.append(relative_offset)
        return True

    def last(self) -> tuple[int, int]:
        """Return the largest time and the offset that has it, or (-1, 0) if none is known."""
        return (self.times[-1], self.offsets[-1]) if self.times else (-1, 0)

    def floor(self, timestamp_ms: int) -> tuple[int, int]:
        """Return the last entry in front of this time, or (-1, 0); up to it all is earlier."""
        at = bisect_left(self.times, timestamp_ms)
        return (self.times[at - 1], self.offsets[at - 1]) if at else (-1, 0)

    def truncated(self, relative_offset: int) -> "TimeIndex":
        """Return an index without what is at the offset and above."""
        at = bisect_left(self.offsets, relative_offset)
        index = TimeIndex()
        index.offsets, index.times = self.offsets[:at], self.times[:at]
        index.written = min(self.written, at)
        return index

    def pending(self) -> bytes:
        """Return the entries that the file lacks, in its form."""
        return b"".join(
            map(TIME_ENTRY.pack, self.times[self.written :], self.offsets[self.written :])
        )


def write_pending(index: OffsetIndex | TimeIndex, file: File) -> None:
    """Bring the index's file up to date."""
    size = OFFSET_ENTRY.size if isinstance(index, OffsetIndex) else TIME_ENTRY.size
    write_all(file, index.pending(), index.written * size)
    # Behind the entries there may be zeros that Kafka allocated, or older entries.
    file.truncate(len(index) * size)
    index.written = len(index)


def _read_ints(data: bytes, entry_size: int) -> "array[int]":
    """Return the entries' 32-bit columns one after the other, without the zeros at the end."""
    columns = array("i")
    # Kafka's allocated files are megabytes of zeros; a half entry at the end is a torn write.
    kept = len(data.rstrip(b"\0"))
    kept += -kept % entry_size
    columns.frombytes(data[: kept if kept <= len(data) else kept - entry_size])
    if sys.byteorder == "little":
        columns.byteswap()
    return columns


def _ascends(column: "array[int]", *, strictly: bool = True) -> bool:
    values = column.tolist()
    # Sorting what is sorted takes one pass in C.
    return values == sorted(values) and (not strictly or len(set(values)) == len(values))
