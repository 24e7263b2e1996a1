"""The offsets that groups have committed, and those of transactions that are still open."""

from strom.groups.records import OffsetCommitKey, OffsetCommitValue
from strom.replicated.machine import Transaction

Partitions = dict[tuple[str, int], OffsetCommitValue]


class Offsets:
    """Offsets by group, topic and partition: the newest that was committed."""

    def __init__(self) -> None:
        self.by_group: dict[str, Partitions] = {}
        #: By producer id: what its open transaction will commit.
        self.pending: dict[int, dict[str, Partitions]] = {}

    def apply(self, key: OffsetCommitKey, value: object, transaction: Transaction | None) -> None:
        """Take an offset as committed, or as part of a transaction; None deletes it."""
        group, topic, partition = key
        if value is None:
            self._delete(group, (topic, partition))
            return
        assert isinstance(value, OffsetCommitValue)
        if transaction is None:
            self.by_group.setdefault(group, {})[topic, partition] = value
        else:
            of_producer = self.pending.setdefault(transaction[0], {})
            of_producer.setdefault(group, {})[topic, partition] = value

    def _delete(self, group: str, place: tuple[str, int]) -> None:
        found = self.by_group.get(group, {})
        found.pop(place, None)
        if not found:
            self.by_group.pop(group, None)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Let the offsets of the producer's transaction count, or forget them."""
        for group, found in self.pending.pop(producer_id, {}).items():
            if committed:
                self.by_group.setdefault(group, {}).update(found)
