# Compiled by mypyc.
"""Which segments of a log have to go, oldest first: read no more, too old, or too much (RET-05)."""

from typing import NamedTuple

from strom.log.config import LogConfig
from strom.log.segment import Segment


class Retained(NamedTuple):
    """What retention has taken out of a log."""

    #: Paths that already end in .deleted, to be removed after `file.delete.delay.ms`.
    files: tuple[str, ...] = ()
    start_offset_changed: bool = False
    #: One line for each segment that went.
    reasons: tuple[str, ...] = ()


class Extent(NamedTuple):
    """How far a log goes, and up to where it may be deleted."""

    start_offset: int
    end_offset: int
    bound: int


def overdue(segments: list[Segment], config: LogConfig, extent: Extent, now_ms: int) -> list[str]:
    """Return for each of the oldest segments, as far as they have to go, the reason."""
    excess = -1
    if config.retention_bytes >= 0:
        excess = sum([each.size_bytes for each in segments]) - config.retention_bytes
    reasons: list[str] = []
    for number, segment in enumerate(segments):
        is_last = number == len(segments) - 1
        end = extent.end_offset if is_last else segments[number + 1].base_offset
        if end > extent.bound or (is_last and segment.size_bytes == 0):
            break
        if end <= extent.start_offset:
            reason: str | None = f"before the log start offset {extent.start_offset}"
        else:
            reason = _reason(segment, config, excess, now_ms)
        if reason is None:
            break
        excess -= segment.size_bytes
        reasons.append(f"segment {segment.base_offset} ({segment.size_bytes} bytes): {reason}")
    return reasons


def _reason(segment: Segment, config: LogConfig, excess: int, now_ms: int) -> str | None:
    if not config.cleanup_delete:
        return None
    if config.retention_ms >= 0:
        newest = segment.newest_now()
        if now_ms - (newest if newest >= 0 else segment.written_ms) > config.retention_ms:
            return f"older than retention.ms {config.retention_ms}"
    if excess - segment.size_bytes >= 0:
        return f"over retention.bytes {config.retention_bytes}"
    return None
