"""How the offsets to be read are cut into tasks.

A function of the offsets and the options alone: a batch that is planned again, after a restart,
is cut in the same places. That is what lets a sink skip what one task has written before.
"""

from collections.abc import Iterable
from typing import NamedTuple

from strom.spark.places import Place


class Range(NamedTuple):
    """The offsets of one partition from `start` up to, but without, `end`."""

    place: Place
    start: int
    end: int

    @property
    def size(self) -> int:
        """How many offsets there are; records may be fewer, for compaction leaves gaps."""
        return self.end - self.start


def cut(
    ranges: Iterable[Range], min_partitions: int | None, max_records: int | None
) -> list[Range]:
    """Cut the ranges into tasks: none larger than `max_records`, about `min_partitions` in all.

    Empty ones are left out. As in Spark's connector the larger ranges are cut into more pieces,
    and those that are too small to be cut are not counted among what is shared out.
    """
    pieces = [each for each in ranges if each.size > 0]
    if max_records is not None:
        pieces = [part for each in pieces for part in split(each, -(-each.size // max_records))]
    if min_partitions is None or len(pieces) >= min_partitions:
        return pieces
    total = sum(each.size for each in pieces)
    small = {each for each in pieces if _share(each.size, total, min_partitions) == 1}
    total -= sum(each.size for each in small)
    left = max(min_partitions - len(small), 1)
    return [
        part
        for each in pieces
        for part in split(each, 1 if each in small else _share(each.size, total, left))
    ]


def split(whole: Range, parts: int) -> list[Range]:
    """Cut a range into so many parts of about the same size; none of them is empty."""
    parts = max(1, min(parts, whole.size))
    ends = [whole.start + whole.size * n // parts for n in range(parts + 1)]
    return [Range(whole.place, ends[n], ends[n + 1]) for n in range(parts)]


def _share(size: int, total: int, parts: int) -> int:
    """Return how many of the parts a range of this size gets: rounded half up, as in Java."""
    return max((2 * size * parts + total) // (2 * total), 1)
