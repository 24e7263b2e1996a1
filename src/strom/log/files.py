"""Which segments have their file open: few, however many partitions there are.

One `OpenFiles` serves all logs of a broker. A segment that needs its file opens it and is
admitted; when there are too many, one that was not used for a round gives its file (and, unless it
is the segment being appended to, its indexes) back. Whoever still sends from the file keeps it
open by referring to it.
"""

from collections import deque
from random import Random
from typing import Protocol

from strom.log.disk import Disk

#: Well below the 1,024 descriptors that a process may have by default.
OPEN_SEGMENTS_MAX = 512


class Holder(Protocol):
    """Something that holds a file open and can do without."""

    used: bool

    def release(self) -> None:
        """Give back what can be had again from the disk."""


class OpenFiles:
    """The segments that hold a file open, with a limit; beside it what all logs share."""

    __slots__ = ("_holders", "_limit", "disk", "rng")

    def __init__(
        self, disk: Disk, *, open_max: int = OPEN_SEGMENTS_MAX, rng: Random | None = None
    ) -> None:
        self.disk = disk
        #: Spreads the rolling of segments by `segment.jitter.ms`.
        self.rng = rng or Random(0)
        self._limit = open_max
        self._holders: deque[Holder] = deque()

    def __len__(self) -> int:
        return len(self._holders)

    def admit(self, holder: Holder) -> None:
        """Count a file that was just opened; have another one closed if there are too many."""
        # Whoever has just opened it needs it: it is not the one that is closed.
        holder.used = True
        holders = self._holders
        holders.append(holder)
        while len(holders) > self._limit:
            oldest = holders.popleft()
            if oldest.used:
                # Used since it was last looked at: it gets a second chance.
                oldest.used = False
                holders.append(oldest)
            else:
                oldest.release()

    def forget(self, holder: Holder) -> None:
        """Stop counting a holder that gives its file back by itself."""
        if holder in self._holders:
            self._holders.remove(holder)
