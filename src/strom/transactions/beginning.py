"""How a producer gets hold of its transactional id, and how it takes partitions into a transaction.

Only the newest producer of a transactional id may act for it. Each that comes along gets a higher
epoch, and whatever the one before it left open is aborted first: the newcomer is told to come
again, and may begin once the markers are written. A producer that lost track of its own sequence
numbers says which epoch it thinks it has (KIP-360); if that is still the newest, or was when this
request was first sent, it gets the next one, and otherwise it is the one that is fenced.
"""

from collections.abc import Set as AbstractSet
from enum import Enum, auto

from strom.transactions.records import NO_EPOCH, NO_TIME
from strom.transactions.transaction import (
    EPOCH_MAX,
    PREPARED,
    Producer,
    State,
    TopicPartition,
    Transaction,
    are_used_up,
)
from strom.wire.errors import ErrorCode, KafkaError


class NoProducer(Enum):
    """Why a producer cannot be given, or let go on, yet."""

    #: A transaction was open. It is being aborted; the client comes again.
    ABORTING = auto()
    #: A new producer id is needed: the decision is asked again with one.
    NEEDS_ID = auto()
    #: What was asked may have been delayed until a later transaction; the client comes again.
    DOUBTED = auto()


def created(transactional_id: str, producer_id: int, timeout_ms: int) -> Transaction:
    """Return what is known of an id at first: it has a producer that was never given out."""
    return Transaction(transactional_id, Producer(producer_id, NO_EPOCH), timeout_ms)


def check_expected(transaction: Transaction, expected: Producer) -> None:
    """Refuse a producer that claims an id which is another's now."""
    producer = transaction.producer
    if producer.epoch == NO_EPOCH or expected.id == producer.id:
        is_known = True
    else:
        # It may have missed the answer that gave it its new id.
        is_known = expected.id == transaction.previous_id and are_used_up(expected.epoch)
    # Kafka would abort what is open for anybody with the right id, and refuse a wrong epoch only
    # when it comes again. By then one that is fenced has ended its successor's transaction.
    if not is_known or (transaction.state is State.ONGOING and expected != producer):
        raise KafkaError(ErrorCode.PRODUCER_FENCED)


def next_producer(
    transaction: Transaction, expected: Producer | None, last_epoch: int, spare_id: int | None
) -> tuple[Producer, int] | None:
    """Return the producer to give out and the epoch it had before; None if an id is needed.

    The epoch before is -1 for a newcomer, so that nobody older can pass for it.
    """
    producer = transaction.producer
    is_current = expected is None or expected.epoch == producer.epoch
    if producer.epoch == EPOCH_MAX:
        # Nobody has it: it was kept to fence off the one before, who may be the one that asks.
        is_current = is_current or (expected is not None and expected.epoch == last_epoch)
    is_new = expected is None or producer.epoch == NO_EPOCH
    before = NO_EPOCH if expected is None or is_new else expected.epoch
    if transaction.epochs_used_up and is_current:
        return None if spare_id is None else (Producer(spare_id, 0), before)
    if is_current or is_new:
        return Producer(producer.id, producer.epoch + 1), before
    assert expected is not None
    if expected.epoch == last_epoch:
        # Its request was answered once already.
        return producer, last_epoch
    raise KafkaError(ErrorCode.PRODUCER_FENCED)


def emptied(
    transaction: Transaction, producer: Producer, timeout_ms: int, now_ms: int
) -> Transaction:
    """Return the id as the producer has it that begins anew."""
    return transaction._replace(
        producer=producer,
        previous_id=transaction.producer.id,
        timeout_ms=timeout_ms,
        state=State.EMPTY,
        partitions=frozenset(),
        started_ms=NO_TIME,
        updated_ms=now_ms,
    )


def check_producer(transaction: Transaction | None, producer: Producer) -> Transaction:
    """Return the transaction if this producer is the one that may act for it."""
    if transaction is None or transaction.producer.id != producer.id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if transaction.producer.epoch != producer.epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if transaction.state in PREPARED:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    return transaction


def with_partitions(
    transaction: Transaction, partitions: AbstractSet[TopicPartition], version: int, now_ms: int
) -> Transaction | None:
    """Return the transaction with the partitions in it, begun if need be; None if they are."""
    if transaction.state is State.ONGOING and partitions <= transaction.partitions:
        return None
    is_open = transaction.state is State.ONGOING
    return transaction._replace(
        state=State.ONGOING,
        partitions=transaction.partitions | partitions,
        previous_id=transaction.producer.id,
        started_ms=transaction.started_ms if is_open else now_ms,
        updated_ms=now_ms,
        version=version,
    )


def missing(transaction: Transaction, partition: TopicPartition) -> ErrorCode:
    """Say whether the partition is in the transaction, as a leader asks before it appends."""
    if partition in transaction.partitions:
        return ErrorCode.NONE
    return ErrorCode.TRANSACTION_ABORTABLE
