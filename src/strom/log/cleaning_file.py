"""A segment that the cleaner writes: `.cleaned` files beside those of the log.

They count for nothing until they are renamed (`cleaning_swap`); a start removes what it finds.
"""

from collections.abc import Sequence

from strom.log.aborted import AbortedTransaction, write_entry
from strom.log.disk import Disk, write_all
from strom.log.index import OffsetIndex, TimeIndex
from strom.log.segment import (
    CLEANED,
    INDEX,
    LOG,
    RELATIVE_MAX,
    TIME_INDEX,
    TRANSACTION_INDEX,
    file_name,
)
from strom.records.batch import Buffer, read_header

#: So much is written at once.
WRITE_BYTES = 1024 * 1024


class CleanedFile:
    """The files of a segment under way."""

    def __init__(self, disk: Disk, directory: str, base_offset: int, interval_bytes: int) -> None:
        self._disk = disk
        self._directory = directory
        self._base_offset = base_offset
        self._interval_bytes = interval_bytes
        self._waiting = bytearray()
        self._written = 0
        self._offsets = OffsetIndex()
        self._times = TimeIndex()
        self._since_entry = 0
        self._newest = -1, 0
        self._file = disk.open(self._path(LOG), create=True)
        # A cleaning that was broken off may have left one.
        self._file.truncate(0)

    def _path(self, suffix: str) -> str:
        return f"{self._directory}/{file_name(self._base_offset, suffix)}{CLEANED}"

    @property
    def size_bytes(self) -> int:
        """How much there is of batches."""
        return self._written + len(self._waiting)

    def add(self, batch: Buffer) -> None:
        """Append a batch, and index it as a log would have."""
        header = read_header(batch)
        relative = header.last_offset - self._base_offset
        if self.size_bytes + len(batch) > RELATIVE_MAX:
            raise OverflowError("A segment cannot be that large")
        if header.max_timestamp > self._newest[0]:
            self._newest = header.max_timestamp, relative
        if self._since_entry > self._interval_bytes:
            self._offsets.append(relative, self.size_bytes)
            self._times.maybe_append(*self._newest)
            self._since_entry = 0
        self._since_entry += len(batch)
        self._waiting += batch
        if len(self._waiting) >= WRITE_BYTES:
            self._write()

    def _write(self) -> None:
        write_all(self._file, bytes(self._waiting), self._written)
        self._file.start_write_back(self._written, len(self._waiting))
        self._written += len(self._waiting)
        self._waiting.clear()

    def finish(self, aborted: Sequence[AbortedTransaction]) -> int:
        """Make all of it durable; return the size of the batches."""
        self._write()
        self._times.maybe_append(*self._newest)
        beside = {INDEX: self._offsets.pending(), TIME_INDEX: self._times.pending()}
        self._disk.remove(self._path(TRANSACTION_INDEX))
        if aborted:
            beside[TRANSACTION_INDEX] = b"".join(map(write_entry, aborted))
        self._file.sync()
        for suffix, data in beside.items():
            self._disk.write(self._path(suffix), data)
            self._disk.open(self._path(suffix)).sync()
        self._disk.sync_directory(self._directory)
        return self._written

    def discard(self) -> None:
        """Remove what was written."""
        for suffix in (LOG, INDEX, TIME_INDEX, TRANSACTION_INDEX):
            self._disk.remove(self._path(suffix))
