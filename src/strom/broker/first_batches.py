"""What a leader remembers of transactions' first batches that it asks the coordinator about.

    guard ──▶ release      the coordinator is being asked; a marker in between takes the guard away
    put_off ──▶ take       it could not say, so the producer sends the batch again; what the
                           producer had sent behind it must not be written in front of it

All of it is by partition and producer, and is over with the marker that ends the transaction.
"""

from strom.transactions.transaction import Producer, TopicPartition

#: Of how many producers it is remembered that they have to send a batch again.
PUT_OFF_MAX = 10_000


class FirstBatches:
    """Those that are asked about, and those that have to come again."""

    def __init__(self) -> None:
        self._guards: dict[tuple[TopicPartition, int], set[object]] = {}
        #: Epoch and first sequence number.
        self._put_off: dict[tuple[TopicPartition, int], tuple[int, int]] = {}

    def __len__(self) -> int:
        return len(self._guards) + len(self._put_off)

    def guard(self, place: TopicPartition, producer_id: int) -> object:
        """Note that it is being asked whether the producer has a transaction open."""
        token = object()
        self._guards.setdefault((place, producer_id), set()).add(token)
        return token

    def release(self, place: TopicPartition, producer_id: int, token: object) -> bool:
        """Whether no transaction of the producer has ended there since; the guard is gone."""
        tokens = self._guards.get((place, producer_id))
        if tokens is None or token not in tokens:
            return False
        tokens.discard(token)
        if not tokens:
            del self._guards[place, producer_id]
        return True

    def put_off(self, place: TopicPartition, producer: Producer, sequence: int) -> None:
        """Note that the batch has to come again, unless one in front of it has to as well."""
        if self._is_behind(place, producer, sequence):
            return
        if len(self._put_off) >= PUT_OFF_MAX:
            del self._put_off[next(iter(self._put_off))]
        self._put_off[place, producer.id] = producer.epoch, sequence

    def take(self, place: TopicPartition, producer: Producer, sequence: int) -> bool:
        """Whether the batch may be written: no other one has to come again in front of it."""
        if self._is_behind(place, producer, sequence):
            return False
        self._put_off.pop((place, producer.id), None)
        return True

    def _is_behind(self, place: TopicPartition, producer: Producer, sequence: int) -> bool:
        expected = self._put_off.get((place, producer.id))
        return expected is not None and expected[0] == producer.epoch and expected[1] < sequence

    def end(self, place: TopicPartition, producer_id: int) -> None:
        """A marker ends the producer's transaction there."""
        self._guards.pop((place, producer_id), None)
        self._put_off.pop((place, producer_id), None)
