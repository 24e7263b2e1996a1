"""Making a log durable: what to sync is collected on the loop, the waiting is done in a thread.

The recovery point moves only after the sync has returned, and only to the end that the log had
when the flush began. Behind it everything must outlive a power cut: the batches, the indexes and
snapshots of segments that are no longer appended to, the leader epochs, and the names of the files.
The active segment's indexes need not: recovery reads that segment in any case.
"""

from collections.abc import Sequence
from typing import Final

from strom.log.disk import Disk, File
from strom.log.segment import Segment

#: So much may gather before the disk is told to begin; it keeps fsync short later on.
WRITE_BACK_BYTES: Final = 8 * 1024 * 1024
#: How much room is reserved behind that: a log that has grown so much will go on to.
RESERVED_BYTES: Final = 2 * WRITE_BACK_BYTES


class Flush:
    """The syncs that make a log durable up to an offset."""

    __slots__ = ("_directories", "_disk", "_files", "end_offset", "is_done", "truncations")

    def __init__(
        self,
        disk: Disk,
        files: Sequence[File],
        directories: Sequence[str],
        end_offset: int,
        truncations: int,
    ) -> None:
        self._disk = disk
        self._files = files
        self._directories = directories
        self.end_offset = end_offset
        #: How often the log had been cut when this began; after a cut it proves nothing.
        self.truncations = truncations
        self.is_done = False

    def run(self) -> None:
        """Wait for the disk. Touches nothing of the log, so it may run in a thread."""
        for file in self._files:
            file.sync()
        for directory in self._directories:
            self._disk.sync_directory(directory)
        self.is_done = True


class WriteBack:
    """Hints to the disk: to begin with some bytes before anybody waits for them, and that as
    many will come."""

    __slots__ = ("_position", "_size", "file", "segment")

    def __init__(self, segment: Segment, position: int) -> None:
        self.segment = segment
        self.file = segment.file()
        self._position = position
        self._size = segment.size_bytes - position

    def run(self) -> None:
        """Give the hints; that may block for a while, so it may run in a thread."""
        self.file.start_write_back(self._position, self._size)
        self.file.reserve(self._position + self._size, RESERVED_BYTES)
