# Compiled by mypyc.
"""How far the replicas of a partition have come, as its leader sees it.

The high watermark is the smallest end offset among the in-sync replicas (REP-10): what is
below it is on every one of them, so it is committed and may be read. It never falls. The
leader counts itself by its own log's end; a leader whose in-sync set is itself alone commits
what it appends as it appends it.

There is one of these for every partition that a broker leads, so it is kept small: the sets of
in-sync replicas are shared, and only a leader that has heard of a follower keeps a dict.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

UNHEARD: Final = -1
#: Partitions of a cluster have few different sets of replicas.
SETS_MAX: Final = 1024


@lru_cache(SETS_MAX)
def shared_set(replica_ids: tuple[int, ...]) -> frozenset[int]:
    """Return the ids as a set that all partitions with the same ids share."""
    return frozenset(replica_ids)


class Progress:
    """The end offsets of one partition's replicas and what is committed."""

    __slots__ = ("_end", "_follower_ends", "high_watermark", "in_sync", "leader_id")

    def __init__(self, leader_id: int, in_sync: Iterable[int], high_watermark: int) -> None:
        self.leader_id = leader_id
        #: The leader is always one of them.
        self.in_sync = shared_set((*in_sync, leader_id))
        self.high_watermark = high_watermark
        self._end = UNHEARD
        #: What each follower has fetched up to; those never heard of are missing.
        self._follower_ends: dict[int, int] | None = None

    def on_append(self, end_offset: int) -> bool:
        """Take the leader's new log end; return whether the high watermark rose."""
        self._end = end_offset
        return self._advance()

    def on_fetch(self, replica_id: int, offset: int) -> bool:
        """Take it that a follower has everything before the offset; return as `on_append`."""
        if self._follower_ends is None:
            self._follower_ends = {}
        self._follower_ends[replica_id] = offset
        return self._advance()

    def on_in_sync(self, in_sync: Iterable[int]) -> bool:
        """Take a new in-sync set; return as `on_append`."""
        self.in_sync = shared_set((*in_sync, self.leader_id))
        return self._advance()

    def _advance(self) -> bool:
        smallest = self._end
        if len(self.in_sync) > 1:
            ends = self._follower_ends or {}
            followers = self.in_sync - {self.leader_id}
            smallest = min(smallest, min(ends.get(each, UNHEARD) for each in followers))
        if smallest <= self.high_watermark:
            return False
        self.high_watermark = smallest
        return True
