"""Where replicas go: spread over racks first, then over brokers.

Racks stand in a circle, and so do the brokers of each rack. Every partition starts one rack
further than the one before, so leaders spread; each of its replicas goes one rack further, so
replicas do; and a rack hands out its brokers in turn. Only an unfenced broker is given the first
place, the leader's. After as many partitions as there are unfenced brokers everything is
shuffled, or the same brokers would always be each other's neighbours.
"""

from collections.abc import Iterable, Sequence
from random import Random
from typing import NamedTuple, TypeVar

from strom.wire.errors import ErrorCode, KafkaError

Item = TypeVar("Item")


class Usable(NamedTuple):
    """A broker that can be given replicas."""

    id: int
    rack: str | None
    fenced: bool


class Placer:
    """Places the partitions of one topic, one after the other."""

    def __init__(self, brokers: Iterable[Usable], rng: Random) -> None:
        self._rng = rng
        by_rack: dict[str, list[Usable]] = {}
        for broker in sorted(brokers, key=lambda each: each.id):
            by_rack.setdefault(broker.rack or "", []).append(broker)
        self._racks = [_Rack(by_rack[name]) for name in sorted(by_rack)]
        self._broker_count = sum(len(rack) for rack in by_rack.values())
        self._unfenced_count = sum(not each.fenced for rack in by_rack.values() for each in rack)
        self._round = 0
        self._shuffle()

    def _shuffle(self) -> None:
        self._rng.shuffle(self._racks)
        for rack in self._racks:
            rack.shuffle(self._rng)

    def place(self, replication_factor: int) -> tuple[int, ...]:
        """Return the brokers for the next partition, its first leader in front."""
        self._check(replication_factor)
        if self._round == self._unfenced_count:
            self._shuffle()
            self._round = 0
        circle = _turned(self._racks, self._round)
        self._round += 1
        first = next(index for index, rack in enumerate(circle) if rack.can_lead)
        for index, rack in enumerate(circle):
            rack.begin_partition(leads=index == first)
        leader = circle[first].take()
        assert leader is not None
        return (leader, *_followers(circle, first, replication_factor - 1))

    def _check(self, replication_factor: int) -> None:
        if replication_factor <= 0:
            raise _refused(
                f"Invalid replication factor {replication_factor}: "
                "the replication factor must be positive."
            )
        if not self._unfenced_count:
            raise _refused(
                "All brokers are currently fenced, or have all their log directories cordoned."
            )
        if replication_factor > self._broker_count:
            raise _refused(
                f"The target replication factor of {replication_factor} cannot be reached because "
                f"only {self._broker_count} broker(s) are registered or some brokers have all "
                "their log directories cordoned."
            )


def _followers(circle: Sequence["_Rack"], first: int, count: int) -> list[int]:
    """Go round the racks, the leader's rack being passed over the first time."""
    found: list[int] = []
    turn = 0
    while len(found) < count:
        broker = circle[turn % len(circle)].take() if turn != first else None
        if broker is not None:
            found.append(broker)
        turn += 1
    return found


class _Rack:
    """The brokers of one rack, each handed out at most once a partition."""

    def __init__(self, brokers: Sequence[Usable]) -> None:
        self._unfenced = [each.id for each in brokers if not each.fenced]
        self._fenced = [each.id for each in brokers if each.fenced]
        #: Counted apart: where two racks take turns, one count would only ever be odd in one.
        self._led = self._followed = 0
        self._free: list[int] = []

    @property
    def can_lead(self) -> bool:
        return bool(self._unfenced)

    def shuffle(self, rng: Random) -> None:
        rng.shuffle(self._unfenced)
        rng.shuffle(self._fenced)

    def begin_partition(self, *, leads: bool) -> None:
        turn = self._led if leads else self._followed
        self._free = _turned(self._unfenced, turn) + _turned(self._fenced, turn)
        if leads:
            self._led += 1
        else:
            self._followed += 1

    def take(self) -> int | None:
        return self._free.pop(0) if self._free else None


def _turned(circle: list[Item], turn: int) -> list[Item]:
    at = turn % len(circle) if circle else 0
    return circle[at:] + circle[:at]


def _refused(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, message)
