"""From where to where a partition is read.

    beginning   the oldest record there is          end    what comes next
    17          that offset                         -5     the last five
    2026-11-16T10:30, @1700000000000                the first record at or after that time

As an end, an offset or a time is exclusive, and `end` is the end as it is when reading starts.
"""

from enum import Enum, auto
from typing import NamedTuple

from strom.cli.quantity import read_time_ms

#: What a broker takes as a time.
TIME_MS_MAX = 2**63 - 1


class Kind(Enum):
    """How a point is given."""

    BEGINNING = auto()
    END = auto()
    OFFSET = auto()
    #: Counted back from the end.
    LAST = auto()
    TIME = auto()


class Point(NamedTuple):
    """A place in a partition; the number is an offset, a count or a time."""

    kind: Kind
    number: int = 0


class Bounds(NamedTuple):
    """What a partition holds: start offset, and end offset (exclusive)."""

    start_offset: int
    end_offset: int


def read_point(text: str) -> Point:
    """Read a point as a user writes it."""
    if text in {"beginning", "earliest"}:
        return Point(Kind.BEGINNING)
    if text in {"end", "latest"}:
        return Point(Kind.END)
    if text.isdecimal():
        return Point(Kind.OFFSET, int(text))
    if text.startswith("-") and text[1:].isdecimal():
        return Point(Kind.LAST, int(text[1:]))
    try:
        # Below 0 a number means other things to a broker, and more than it takes no record has.
        return Point(Kind.TIME, min(max(read_time_ms(text), 0), TIME_MS_MAX))
    except ValueError:
        raise ValueError(
            f"{text!r} is no place to read from or to: write beginning, end, an offset, "
            "-N for the last N, a time like 2026-11-16T10:30, or @ and milliseconds"
        ) from None


def offset_of(point: Point, bounds: Bounds, offset_at_time: int | None) -> int:
    """Return the offset of a point; the offset at its time must be looked up before."""
    match point.kind:
        case Kind.BEGINNING:
            return bounds.start_offset
        case Kind.END:
            return bounds.end_offset
        case Kind.LAST:
            return max(bounds.start_offset, bounds.end_offset - point.number)
        case Kind.TIME:
            return bounds.end_offset if offset_at_time is None else offset_at_time
        case Kind.OFFSET:
            return point.number
