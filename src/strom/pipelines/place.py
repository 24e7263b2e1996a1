"""Where in its topics a micro-batch is: from the checkpoint, where Spark notes it before it begins.

    checkpoints/<sink>/offsets/<batch>    a version, Spark's own notes, then a line per source

It ends where its own file says, and begins where the one before it ends; the first one says itself
where it begins.
"""

import json
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from strom.spark.places import Progress

HEAD_LINES = 2
#: So many partitions are named.
PARTITIONS_MAX = 8


def place_of(checkpoint: Path, batch: int) -> str | None:
    """Return the offsets of a micro-batch in words; None if they cannot be told."""
    try:
        parts = list(_parts(checkpoint, batch))
    except (OSError, ValueError, TypeError, AttributeError):
        # It is said beside an error, which is to be told in any case.
        return None
    more = len(parts) - PARTITIONS_MAX
    named = parts[:PARTITIONS_MAX] + ([f"{more} more"] if more > 0 else [])
    return ", ".join(named) or None


def _parts(checkpoint: Path, batch: int) -> Iterator[str]:
    before = _ends(checkpoint, batch - 1) if batch else []
    for end, last in zip_longest(_ends(checkpoint, batch), before):
        if end is None:
            continue
        begins = end.began if end.began is not None else last.offsets if last is not None else {}
        for (topic, number), offset in sorted(end.offsets.items()):
            begin = begins.get((topic, number), 0)
            if begin < offset:
                yield f"offsets {begin} to {offset - 1} of {topic}-{number}"


def _ends(checkpoint: Path, batch: int) -> list[Progress | None]:
    """Return how far each source is after a micro-batch; None for one that was not read."""
    lines = (checkpoint / "offsets" / str(batch)).read_text().splitlines()[HEAD_LINES:]
    return [None if line == "-" else Progress.read(json.loads(line)) for line in lines]
