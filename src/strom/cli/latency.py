"""Times that were measured, and what to say about them."""

from array import array
from collections.abc import Sequence
from dataclasses import asdict, dataclass

PERCENTILES = (50.0, 95.0, 99.0, 99.9)


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run of measurements looked like, in milliseconds."""

    average_ms: float
    max_ms: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    p999_ms: float

    def text(self) -> str:
        """Return the summary as Kafka's perf tool words it."""
        return (
            f"{self.average_ms:.2f} ms avg latency, {self.max_ms:.2f} ms max latency, "
            f"{self.p50_ms:.2f} ms 50th, {self.p95_ms:.2f} ms 95th, "
            f"{self.p99_ms:.2f} ms 99th, {self.p999_ms:.2f} ms 99.9th"
        )

    def rounded(self) -> dict[str, float]:
        """Return the numbers by name, without digits that mean nothing."""
        return {name: round(value, 3) for name, value in asdict(self).items()}


class Latencies:
    """Every measurement of a run: four bytes each, so ten million take 40 MB."""

    def __init__(self) -> None:
        self._all_ms = array("f")
        #: Where the latest stretch, the one since `stretch` was last called, begins.
        self._stretch_from = 0

    def add(self, milliseconds: float) -> None:
        """Take one measurement."""
        self._all_ms.append(milliseconds)

    def __len__(self) -> int:
        return len(self._all_ms)

    def stretch(self) -> Summary:
        """Summarise what came since the last call."""
        begin, self._stretch_from = self._stretch_from, len(self._all_ms)
        return summarise(self._all_ms[begin:])

    def summary(self) -> Summary:
        """Summarise everything."""
        return summarise(self._all_ms)


def summarise(milliseconds: Sequence[float]) -> Summary:
    """Return the summary of measurements in any order; all zero for none."""
    if not milliseconds:
        return Summary(0, 0, 0, 0, 0, 0)
    ordered = sorted(milliseconds)
    return Summary(
        sum(ordered) / len(ordered),
        ordered[-1],
        *(percentile(ordered, share) for share in PERCENTILES),
    )


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the least value that at least that share (in percent) of all do not exceed."""
    # In whole thousandths, because 0.999 * 1000 is a little more than 999.
    rank = -(-len(ordered) * round(share * 1000) // 100_000)
    return ordered[max(rank, 1) - 1]
