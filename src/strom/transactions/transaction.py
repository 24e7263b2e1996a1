"""One transactional id: its producer, and the newest of its transactions.

    EMPTY ──add──▶ ONGOING ──end──▶ PREPARE_COMMIT ──complete──▶ COMPLETE_COMMIT ──add──▶ ONGOING
                      │
                      └─────end──▶ PREPARE_ABORT ───complete──▶ COMPLETE_ABORT ───add──▶ ONGOING

From EMPTY and from both COMPLETE states a producer may also abort what it has not begun (version 2
of transactions, where nobody but the partitions knows whether it has), and begin anew
(InitProducerId), which leads to EMPTY. A PREPARE fixes the outcome: from then on the only way is
forward, and a coordinator that finds one in its log writes the markers and completes it.

DEAD and PREPARE_EPOCH_FENCE have names in Kafka and may be asked for, but nothing is ever in
them here: an id that expires is gone with one record, and fencing is part of the abort.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from strom.replicated.machine import KeyValue
from strom.transactions.records import (
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_TIME,
    TAGGED_FROM,
    PartitionsSchema,
    PlainTransactionLogValue,
    TransactionLogKey,
    TransactionLogValue,
)

TopicPartition = tuple[str, int]

#: The highest epoch. A client never gets it, so there is always one left to fence with.
EPOCH_MAX = 2**15 - 1
#: From this `transaction.version` on every end raises the producer's epoch (KIP-890).
RAISES_EPOCH_FROM = 2


class State(IntEnum):
    """Where a transaction stands; the numbers are those of the log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def title(self) -> str:
        """The name as clients know it."""
        return "".join(word.capitalize() for word in self.name.split("_"))


PREPARED = frozenset({State.PREPARE_COMMIT, State.PREPARE_ABORT})
#: Nothing is open: a producer may begin, and the id may expire.
AT_REST = frozenset({State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT})

NEXT_STATES = {
    State.EMPTY: {State.EMPTY, State.ONGOING, State.PREPARE_ABORT},
    State.ONGOING: {State.ONGOING, State.PREPARE_COMMIT, State.PREPARE_ABORT},
    State.PREPARE_COMMIT: {State.COMPLETE_COMMIT},
    State.PREPARE_ABORT: {State.COMPLETE_ABORT},
    State.COMPLETE_COMMIT: {State.EMPTY, State.ONGOING, State.PREPARE_ABORT},
    State.COMPLETE_ABORT: {State.EMPTY, State.ONGOING, State.PREPARE_ABORT},
}


class Producer(NamedTuple):
    """A producer's id, and the epoch that fences off its earlier selves."""

    id: int
    epoch: int


NOBODY = Producer(NO_PRODUCER_ID, NO_EPOCH)
#: Connections are numbered as they come, from 1; this is where it does not matter by which one.
NO_CONNECTION = 0


class Transaction(NamedTuple):
    """A transactional id's producer and its newest transaction."""

    transactional_id: str
    producer: Producer
    timeout_ms: int
    state: State = State.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    started_ms: int = NO_TIME
    updated_ms: int = NO_TIME
    #: Whose id it was before: a retry of what used up its epochs comes with that one.
    previous_id: int = NO_PRODUCER_ID
    #: The id that takes over once the transaction is complete: the epochs are used up.
    next_id: int = NO_PRODUCER_ID
    #: The version of transactions by which the producer last acted.
    version: int = 0

    @property
    def committed(self) -> bool:
        """Whether the outcome, once there is one, is that all of it counts."""
        return self.state in (State.PREPARE_COMMIT, State.COMPLETE_COMMIT)

    @property
    def epochs_used_up(self) -> bool:
        """Whether the producer must get a new id instead of the next epoch."""
        return are_used_up(self.producer.epoch)

    @property
    def successor(self) -> Producer:
        """The producer as it is known once the transaction is complete."""
        if self.next_id != NO_PRODUCER_ID:
            return Producer(self.next_id, 0)
        return self.producer


def are_used_up(epoch: int) -> bool:
    """Whether no client may get an epoch after this one: the last is kept to fence with."""
    return epoch >= EPOCH_MAX - 1


def record_of(transaction: Transaction, transaction_version: int) -> KeyValue:
    """Return the record of the transaction, for the cluster's `transaction.version`."""
    is_tagged = transaction_version >= TAGGED_FROM
    is_empty = transaction.state is State.EMPTY
    cls = TransactionLogValue if is_tagged else PlainTransactionLogValue
    value = cls(
        producer_id=transaction.producer.id,
        previous_producer_id=transaction.previous_id if is_tagged else NO_PRODUCER_ID,
        next_producer_id=transaction.next_id if is_tagged else NO_PRODUCER_ID,
        producer_epoch=transaction.producer.epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=None if is_empty else by_topic(transaction.partitions),
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
        client_transaction_version=transaction.version if is_tagged else 0,
    )
    return KeyValue(TransactionLogKey(transactional_id=transaction.transactional_id), value)


def by_topic(partitions: frozenset[TopicPartition]) -> tuple[PartitionsSchema, ...]:
    """Return the partitions topic by topic, in a fixed order."""
    indexes: dict[str, list[int]] = {}
    for topic, index in partitions:
        indexes.setdefault(topic, []).append(index)
    return tuple(
        PartitionsSchema(topic=topic, partition_ids=tuple(sorted(indexes[topic])))
        for topic in sorted(indexes)
    )


def transaction_of(transactional_id: str, value: TransactionLogValue) -> Transaction:
    """Return the transaction that a record tells of."""
    return Transaction(
        transactional_id,
        Producer(value.producer_id, value.producer_epoch),
        timeout_ms=value.transaction_timeout_ms,
        state=State(value.transaction_status),
        partitions=frozenset(
            (each.topic, index)
            for each in value.transaction_partitions or ()
            for index in each.partition_ids
        ),
        started_ms=value.transaction_start_timestamp_ms,
        updated_ms=value.transaction_last_update_timestamp_ms,
        previous_id=value.previous_producer_id,
        next_id=value.next_producer_id,
        version=value.client_transaction_version,
    )
