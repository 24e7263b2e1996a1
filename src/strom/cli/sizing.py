"""How many partitions a topic needs, and how many brokers its data (TOP-20, BRK-24).

    partitions = max(t / c, t / p)        t wanted, p per producer and c per consumer and partition
    brokers    = data a day * days * replication factor / disk of one broker

A number of partitions that many numbers of consumers divide spreads the load evenly, so the next
such number at or above the result is taken. Nobody who knows no throughput is wrong with 12.
"""

import math
from dataclasses import dataclass

DEFAULT_PARTITIONS = 12

#: Numbers with many divisors, ascending; beyond the last, its multiples.
WELL_DIVISIBLE = (1, 2, 4, 6, 12, 24, 36, 48, 60, 120)


@dataclass(frozen=True, slots=True)
class Volume:
    """How much data arrives, how long it stays, how often it is kept."""

    bytes_per_day: float
    days: float
    replication_factor: int

    @property
    def total_bytes(self) -> float:
        """All that lies on disks at a time."""
        return self.bytes_per_day * self.days * self.replication_factor


def partitions_needed(throughput: float, per_producer: float, per_consumer: float) -> int:
    """Return the least number of partitions that lets the throughput through."""
    return max(1, math.ceil(max(throughput / per_consumer, throughput / per_producer)))


def well_divisible(partitions: int) -> int:
    """Return the next number that many numbers of consumers divide."""
    for number in WELL_DIVISIBLE:
        if number >= partitions:
            return number
    return math.ceil(partitions / WELL_DIVISIBLE[-1]) * WELL_DIVISIBLE[-1]


def brokers_needed(volume: Volume, disk_bytes: float) -> int:
    """Return how many brokers hold the data; each copy needs a broker of its own."""
    return max(volume.replication_factor, math.ceil(volume.total_bytes / disk_bytes))


def divisors(number: int) -> list[int]:
    """Return how many consumers can share that many partitions evenly."""
    small = [count for count in range(1, math.isqrt(number) + 1) if number % count == 0]
    return sorted({*small, *(number // count for count in small)})
