# Compiled by mypyc.
"""Which leader wrote what: `leader-epoch-checkpoint`, one line for each leader's first offset.

    0           version
    2           count
    3 0         epoch and the offset at which it begins
    5 1280

Epochs and offsets ascend. A follower asks for the end of its last epoch to find where it parted
from the leader. The same can be read from the batches, each of which has its leader's epoch; so the
file is written without waiting for the disk, and synced when the batches are.
"""

from bisect import bisect_right
from functools import lru_cache
from operator import itemgetter
from typing import Final, NamedTuple

from strom.log.checkpoints import DamagedCheckpointError, read_lines, write_lines
from strom.log.disk import Disk

FILE_NAME: Final = "leader-epoch-checkpoint"
UNDEFINED: Final = -1
#: How many rows of epochs are remembered to be shared; those of empty logs are alike.
SHARED_MAX: Final = 256


class Epoch(NamedTuple):
    """A leader's epoch, and the first offset it wrote or would have written."""

    epoch: int
    start_offset: int


@lru_cache(SHARED_MAX)
def shared(entries: tuple[Epoch, ...]) -> tuple[Epoch, ...]:
    """Return an equal row that another log has already, if there is one."""
    return entries


class Epochs:
    """The leader epochs of one log."""

    __slots__ = ("_disk", "_entries", "directory", "is_dirty")

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self.directory = directory
        self._entries: tuple[Epoch, ...] = ()
        #: Written since it was last synced.
        self.is_dirty = False

    def load(self) -> bool:
        """Read the file; tell whether it was whole."""
        try:
            data = self._disk.read(self.path)
            self._entries = _read(data)
        except (FileNotFoundError, DamagedCheckpointError):
            return False
        ascending = tuple(sorted(set(self._entries))) == self._entries
        return bool(data) and ascending

    @property
    def path(self) -> str:
        """Where the file is."""
        return f"{self.directory}/{FILE_NAME}"

    @property
    def latest(self) -> int:
        """The latest epoch, or -1 if there is none."""
        return self._entries[-1].epoch if self._entries else UNDEFINED

    @property
    def entries(self) -> tuple[Epoch, ...]:
        """All epochs, in ascending order."""
        return self._entries

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that the epoch begins at the offset, unless it is already known."""
        if epoch > self.latest:
            before = self._entries
            self.note(epoch, start_offset)
            self._write_or_keep(before)

    def note(self, epoch: int, start_offset: int) -> None:
        """Note an epoch in memory only; for those that write once for many."""
        if epoch <= self.latest:
            return
        # An epoch in which nothing was written is replaced by the next one.
        kept = (each for each in self._entries if each.start_offset < start_offset)
        self._entries = shared((*kept, Epoch(epoch, start_offset)))

    def clear(self) -> None:
        """Forget all, before they are found again from the batches."""
        self._entries = ()

    def end_offset_for(self, epoch: int, end_offset: int) -> tuple[int, int]:
        """Return the largest epoch not above this one and where it ends; (-1, -1) if unknown."""
        if epoch < 0 or not self._entries or epoch > self.latest:
            return UNDEFINED, UNDEFINED
        if epoch == self.latest:
            return epoch, end_offset
        at = bisect_right(self._entries, epoch, key=itemgetter(0))
        # Older than all we know: whatever it wrote ended before the first one began.
        known = self._entries[at - 1].epoch if at else epoch
        return known, self._entries[at].start_offset

    def epoch_of(self, offset: int) -> int:
        """Return the epoch in which the offset was written, or -1 if that is not known."""
        at = bisect_right(self._entries, offset, key=itemgetter(1))
        return self._entries[at - 1].epoch if at else UNDEFINED

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget the epochs that begin at the offset or later."""
        kept = tuple(each for each in self._entries if each.start_offset < end_offset)
        if len(kept) != len(self._entries):
            before, self._entries = self._entries, kept
            self._write_or_keep(before)

    def truncate_from_start(self, start_offset: int) -> None:
        """Let the epoch that holds the offset begin there, and forget those before it."""
        at = bisect_right(self._entries, start_offset, key=itemgetter(1))
        if at and self._entries[0].start_offset < start_offset:
            first = Epoch(self._entries[at - 1].epoch, start_offset)
            before, self._entries = self._entries, (first, *self._entries[at:])
            self._write_or_keep(before)

    def _write_or_keep(self, before: tuple[Epoch, ...]) -> None:
        """Replace the file; what cannot be written does not count."""
        try:
            self.write()
        except OSError:
            self._entries = before
            raise

    def write(self) -> None:
        """Replace the file."""
        data = write_lines([f"{each.epoch} {each.start_offset}" for each in self._entries])
        if len(self._entries) > 1:
            self._disk.write_atomically(self.path, data, sync=False)
        else:
            # As of a new partition: what a crash takes is known from its first batch.
            self._disk.write(self.path, data)
        self.is_dirty = True


@lru_cache(SHARED_MAX)
def _read(data: bytes) -> tuple[Epoch, ...]:
    return shared(tuple(map(_read_line, read_lines(data))))


def _read_line(line: str) -> Epoch:
    try:
        epoch, start_offset = line.split(" ")
        return Epoch(int(epoch), int(start_offset))
    except ValueError:
        raise DamagedCheckpointError(line) from None
