"""A case of the bench: one load, the numbers that it returns, and what must hold of them."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent


class Measure(Enum):
    """What of two numbers, ours and the peer's, a bar is on."""

    RATIO = "ratio"
    DIFFERENCE = "difference"
    #: Our number itself, whatever the peer's is.
    OWN = "own"


class Bar(NamedTuple):
    """A number of a case, and what it must reach; without a limit it is just told."""

    number: str
    at_least: float | None = None
    at_most: float | None = None
    of: Measure = Measure.RATIO

    @property
    def limit(self):
        return self.at_most if self.at_least is None else self.at_least

    def compare(self, own, peer):
        """What is held against the limit."""
        if self.of is Measure.OWN:
            return own
        return own / peer if self.of is Measure.RATIO else own - peer

    def is_met(self, found):
        return found <= self.limit if self.at_least is None else found >= self.limit

    def __str__(self):
        if self.limit is None:
            return ""
        sign = "+" if self.of is Measure.DIFFERENCE else ""
        return f"{'≤' if self.at_least is None else '≥'} {sign}{self.limit}"


@dataclass(frozen=True)
class Case:
    """One load and its bars."""

    name: str
    group: str
    run: Callable
    bars: tuple
    #: Whether only ours is loaded, for there is nothing of the peer's to compare with.
    is_alone: bool = False
    #: How often it is run in a round, in turn with the peer; more where it is short and differs.
    turns: int = 1


def in_turn(sides, turns):
    """The sides, as often as there are turns; in each turn another goes first."""
    for turn in range(turns):
        yield from sides if turn % 2 == 0 else sides[::-1]


@dataclass(frozen=True)
class Effort:
    """How long a load goes on; `--quick` makes it short to try the bench itself."""

    seconds: float = 2
    #: Of a load, of which there are many; Kafka's tools are told megabytes instead.
    load_seconds: float = 1
    java_mb: int = 200
    latency_seconds: float = 15
    warm_seconds: float = 10
    partitions_many: int = 10_000
    repetitions: int = 3
    compacted_mb: int = 1000
    spark_mb: int = 1000
    spark_reads: int = 10


def load(*arguments, module="bench.load"):
    """Run a load; what it reports."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, arguments))}:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])
