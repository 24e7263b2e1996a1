"""Which part of a log can be cleaned, and whether it is time for it: Kafka's rules.

    |--------- clean ---------|--------- dirty ---------|---- not yet ----|
    first segment      first dirty offset           end offset      active segment

Clean is what an earlier cleaning has been through. Not yet: the active segment, what open
transactions or uncommitted records are in, and what is younger than `min.compaction.lag.ms`. A log
is due once the dirty part is a larger share of clean and dirty than `min.cleanable.dirty.ratio`, or
once something dirty is older than `max.compaction.lag.ms`.
"""

from itertools import pairwise
from typing import NamedTuple

from strom.log.config import NEVER
from strom.log.log import Log
from strom.log.segment import Segment


class Cleanable(NamedTuple):
    """The part of a log that could be cleaned now."""

    first_dirty_offset: int
    #: Where the first segment begins that is left alone.
    end_offset: int
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool

    @property
    def ratio(self) -> float:
        """The dirty share of what can be cleaned; the dirtiest log goes first (CMP-05)."""
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    def is_due(self, ratio_min: float) -> bool:
        """Whether it is worth while, or has to be."""
        return self.ratio > ratio_min or (self.is_overdue and self.dirty_bytes > 0)


def find_cleanable(log: Log, high_watermark: int, now_ms: int) -> Cleanable:
    """Return what could be cleaned of a log; a ColdError if an index must be read first."""
    first_dirty = max(log.clean_offset, log.start_offset)
    dirty = [each for each, end in _with_ends(log) if end > first_dirty]
    end_offset = _first_uncleanable(log, dirty, high_watermark, now_ms)
    clean_bytes = sum(each.size_bytes for each, end in _with_ends(log) if end <= first_dirty)
    dirty_bytes = sum(each.size_bytes for each in dirty if each.base_offset < end_offset)
    return Cleanable(
        first_dirty, end_offset, clean_bytes, dirty_bytes, _is_overdue(log, dirty, now_ms)
    )


def _with_ends(log: Log) -> list[tuple[Segment, int]]:
    """Return the segments that were left, each with where the next one begins."""
    segments = log.segments
    return [(each, after.base_offset) for each, after in pairwise(segments)]


def _first_uncleanable(log: Log, dirty: list[Segment], high_watermark: int, now_ms: int) -> int:
    stable = log.last_stable_offset(high_watermark)
    lag_ms = log.config.compaction_lag_min_ms
    for segment, end in _with_ends(log):
        if end > stable:
            return segment.base_offset
        if lag_ms > 0 and segment in dirty and segment.newest_now() > now_ms - lag_ms:
            return segment.base_offset
    return log.active.base_offset


def _is_overdue(log: Log, dirty: list[Segment], now_ms: int) -> bool:
    lag_ms = log.config.compaction_lag_max_ms
    if lag_ms == NEVER:
        return False
    for segment in dirty:
        # With the indexes comes the first batch's time, so that nothing is waited for.
        segment.offset_index_now()
        if 0 < segment.first_time_ms() < now_ms - lag_ms:
            return True
    return False
