"""How much of what is there one micro-batch takes, and whether it is worth beginning one.

`maxOffsetsPerTrigger` is shared out among the partitions in proportion to what each has, as in
Spark's connector: all of them then come to their ends at the same time.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from strom.spark.places import Place


def limited(start: Mapping[Place, int], end: Mapping[Place, int], limit: int) -> dict[Place, int]:
    """Return ends that are together about `limit` offsets away from the starts.

    Every partition with something to read gets one offset at least, so that none starves. One that
    has no start was deleted meanwhile; who plans the tasks tells of it.
    """
    sizes = {place: end[place] - at for place, at in start.items() if end.get(place, at) > at}
    total = sum(sizes.values())
    if total <= limit:
        return dict(end)
    return {
        place: start[place] + min(sizes[place], max(limit * sizes[place] // total, 1))
        if place in sizes
        else end[place]
        for place in end
    }


@dataclass(slots=True)
class Delay:
    """Whether a micro-batch waits for more: `minOffsetsPerTrigger` within `maxTriggerDelay`."""

    min_offsets: int
    max_delay_ms: int
    #: When the last micro-batch began. The first one does not wait.
    began_ms: int | None = None

    def holds_back(
        self, start: Mapping[Place, int], end: Mapping[Place, int], *, now_ms: int
    ) -> bool:
        """Tell whether to wait; if not, the micro-batch begins now."""
        new = sum(end[place] - start.get(place, 0) for place in end)
        due = self.began_ms is None or now_ms - self.began_ms >= self.max_delay_ms
        if new < self.min_offsets and not due:
            return True
        self.began_ms = now_ms
        return False
