"""The offsets that groups have committed, and those of transactions that are still open.

An offset of a transaction is *pending*: nobody sees it until its producer's marker comes, but that
there is one makes the partition's offset unstable. The commit that was written last counts,
whether it was a transaction's or not; so what was written after a pending offset *supersedes*
it, and nothing of it is left when its transaction is committed (KAFKA-5600).

A group that nobody has joined is there because of its offsets, and also if none of them counted:
Kafka has such a group until it next looks for what expired.

All of it is durable: it follows from the records, in their order, and from the markers.
"""

from collections.abc import Iterator
from typing import NamedTuple

from strom.groups.records import OffsetCommitKey, OffsetCommitValue
from strom.replicated.machine import KeyValue, Transaction

#: A topic's name and the number of a partition.
Place = tuple[str, int]
ByPlace = dict[Place, OffsetCommitValue]
#: A group's id and one of its places.
Spot = tuple[str, Place]

NO_OFFSETS: ByPlace = {}


class Pending(NamedTuple):
    """An offset that counts if its transaction does."""

    #: Numbers the pending offsets in the order of their records.
    order: int
    #: None once a later commit supersedes it.
    value: OffsetCommitValue | None


class Offsets:
    """The offsets of the groups of one shard."""

    def __init__(self) -> None:
        #: By group; a group without offsets is not in it.
        self.by_group: dict[str, ByPlace] = {}
        #: By producer id: what its open transaction will commit.
        self.by_producer: dict[int, dict[Spot, Pending]] = {}
        #: By group: the producers whose transactions may change a place's offset.
        self.open: dict[str, dict[Place, set[int]]] = {}
        #: Groups with offsets that did not count; those with records of their own are not in it.
        self.bare: set[str] = set()
        self._order = 0

    def __contains__(self, group_id: str) -> bool:
        """Whether the group has offsets, may have some when a transaction ends, or might have."""
        return group_id in self.by_group or group_id in self.open or group_id in self.bare

    def group_ids(self) -> set[str]:
        """Return the groups that are there because of offsets."""
        return {*self.by_group, *self.open, *self.bare}

    def of(self, group_id: str) -> ByPlace:
        """Return what the group has committed."""
        return self.by_group.get(group_id, NO_OFFSETS)

    def is_unstable(self, group_id: str, place: Place) -> bool:
        """Whether an open transaction may change the offset."""
        return bool(self.open) and place in self.open.get(group_id, ())

    def places(self, group_id: str) -> list[Place]:
        """Return all places for which the group has offsets or may have, in order."""
        return sorted({*self.of(group_id), *self.open.get(group_id, ())})

    def pending_of(self, group_id: str, place: Place) -> list[OffsetCommitValue]:
        """Return what open transactions will commit for the place."""
        found = [
            self.by_producer[producer_id][group_id, place].value
            for producer_id in sorted(self.open.get(group_id, {}).get(place, ()))
        ]
        return [each for each in found if each is not None]

    # State.

    def apply(self, key: OffsetCommitKey, value: object, transaction: Transaction | None) -> None:
        """Take an offset as committed, or as part of a transaction; None deletes it."""
        group_id, place = key.group, (key.topic, key.partition)
        if value is None:
            self._delete(group_id, place)
            return
        assert isinstance(value, OffsetCommitValue)
        if transaction is None:
            self._set(group_id, place, value)
            if self.open:
                self._supersede((group_id, place), before=self._order)
        else:
            producer_id = transaction[0]
            self.by_producer.setdefault(producer_id, {})[group_id, place] = Pending(
                self._order, value
            )
            self.open.setdefault(group_id, {}).setdefault(place, set()).add(producer_id)
            self._order += 1

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Let the offsets of the producer's transaction count, or forget them."""
        for (group_id, place), pending in self.by_producer.pop(producer_id, {}).items():
            self._close(group_id, place, producer_id)
            if not committed:
                self.bare.add(group_id)
            elif pending.value is not None:
                self._set(group_id, place, pending.value)
                self._supersede((group_id, place), before=pending.order)

    def _set(self, group_id: str, place: Place, value: OffsetCommitValue) -> None:
        found = self.by_group.get(group_id)
        if found is None:
            found = self.by_group[group_id] = {}
        found[place] = value

    def _supersede(self, spot: Spot, *, before: int) -> None:
        group_id, place = spot
        for producer_id in self.open.get(group_id, {}).get(place, ()):
            pending = self.by_producer[producer_id]
            if pending[spot].order < before:
                pending[spot] = pending[spot]._replace(value=None)

    def _delete(self, group_id: str, place: Place) -> None:
        found = self.by_group.get(group_id, {})
        found.pop(place, None)
        if not found:
            self.by_group.pop(group_id, None)
        for producer_id in list(self.open.get(group_id, {}).get(place, ())):
            of_producer = self.by_producer[producer_id]
            del of_producer[group_id, place]
            if not of_producer:
                del self.by_producer[producer_id]
            self._close(group_id, place, producer_id)

    def _close(self, group_id: str, place: Place, producer_id: int) -> None:
        """Take note that the producer will not change the place's offset any more."""
        of_group = self.open[group_id]
        of_group[place].discard(producer_id)
        if not of_group[place]:
            del of_group[place]
        if not of_group:
            del self.open[group_id]

    # Records.

    def tombstones(self, group_id: str) -> Iterator[KeyValue]:
        """Yield what deletes all offsets of the group, also those of open transactions."""
        for topic, partition in self.places(group_id):
            yield tombstone(group_id, topic, partition)


def tombstone(group_id: str, topic: str, partition: int) -> KeyValue:
    """Return the record that deletes an offset."""
    return KeyValue(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)
