"""How far the replicas of a partition have come, as its leader sees it.

The high watermark is the smallest end offset among the in-sync replicas (REP-10): what is
below it is on every one of them, so it is committed and may be read. It never falls. The
leader counts itself by its own log's end; a leader whose in-sync set is itself alone commits
what it appends as it appends it.
"""

from collections.abc import Iterable


class Progress:
    """The end offsets of one partition's replicas and what is committed."""

    __slots__ = ("_ends", "high_watermark", "in_sync", "leader_id")

    def __init__(self, leader_id: int, in_sync: Iterable[int], high_watermark: int) -> None:
        self.leader_id = leader_id
        #: The leader is always one of them.
        self.in_sync = frozenset(in_sync) | {leader_id}
        self.high_watermark = high_watermark
        #: What each follower has fetched up to; those never heard of are missing.
        self._ends: dict[int, int] = {}

    def on_append(self, end_offset: int) -> bool:
        """Take the leader's new log end; return whether the high watermark rose."""
        self._ends[self.leader_id] = end_offset
        return self._advance()

    def on_fetch(self, replica_id: int, offset: int) -> bool:
        """Take it that a follower has everything before the offset; return as `on_append`."""
        self._ends[replica_id] = offset
        return self._advance()

    def on_in_sync(self, in_sync: Iterable[int]) -> bool:
        """Take a new in-sync set; return as `on_append`."""
        self.in_sync = frozenset(in_sync) | {self.leader_id}
        return self._advance()

    def _advance(self) -> bool:
        ends = self._ends
        smallest = min([ends.get(replica_id, -1) for replica_id in self.in_sync])
        if smallest <= self.high_watermark:
            return False
        self.high_watermark = smallest
        return True
