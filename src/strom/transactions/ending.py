"""How a transaction ends: by its producer's word, by another producer's coming, by time.

What EndTxn is answered in each state. "Again" is a producer that missed the first answer: with
version 2 the epoch was raised meanwhile, so it comes with the one before.

    version 2        abort             abort again   commit            commit again
    ONGOING          ends, new epoch   fenced        ends, new epoch   fenced
    PREPARE_ABORT    concurrent        concurrent    concurrent        concurrent
    PREPARE_COMMIT   concurrent        concurrent    concurrent        concurrent
    COMPLETE_ABORT   ends, new epoch   as it was     invalid           invalid
    COMPLETE_COMMIT  ends, new epoch   invalid       invalid           as it was
    EMPTY            ends, new epoch   fenced        invalid           fenced

    version 1        abort             commit        (the epoch stays, so "again" looks the same)
    ONGOING          ends              ends
    PREPARE_ABORT    concurrent        invalid
    PREPARE_COMMIT   invalid           concurrent
    COMPLETE_ABORT   as it was         invalid
    COMPLETE_COMMIT  invalid           as it was
    EMPTY            invalid           invalid

A producer may know its new epoch, or its new id, before the markers are written; so with version 2
nobody is judged by these until they are.

With version 1 a request that was delayed until the next transaction is open looks as if it were
meant for that one. Version 2 raises the epoch with every end, so there it can only be meant for
what it ended. Before, one thing tells: a producer that waits no more for an answer hangs up, and
goes on by a newer connection. So what comes by an older connection than the transaction's
partitions were added by is doubted once. Whoever is still there is told so, and asks again.
"""

from typing import NamedTuple

from strom.transactions.records import NO_EPOCH, NO_PRODUCER_ID
from strom.transactions.transaction import (
    AT_REST,
    EPOCH_MAX,
    NO_CONNECTION,
    PREPARED,
    RAISES_EPOCH_FROM,
    Producer,
    State,
    Transaction,
)
from strom.wire.errors import ErrorCode, KafkaError

COMPLETED = {
    State.PREPARE_COMMIT: State.COMPLETE_COMMIT,
    State.PREPARE_ABORT: State.COMPLETE_ABORT,
}


class End(NamedTuple):
    """A producer's word that its transaction is over."""

    producer: Producer
    commit: bool
    #: The version of transactions in which it asks.
    version: int
    connection: int = NO_CONNECTION

    @property
    def raises_epoch(self) -> bool:
        """Whether the producer goes on with another epoch."""
        return self.version >= RAISES_EPOCH_FROM


def check_end(transaction: Transaction | None, end: End) -> tuple[Transaction, bool]:
    """Return the transaction, and whether it is to be ended now; False if it was already."""
    if transaction is None:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    ends = _ends_by_version_2 if end.raises_epoch else _ends_by_version_1
    return transaction, ends(transaction, end.producer, commit=end.commit)


def _ends_by_version_1(transaction: Transaction, producer: Producer, *, commit: bool) -> bool:
    if transaction.producer.id != producer.id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if transaction.producer.epoch != producer.epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if transaction.state is State.ONGOING:
        return True
    _check_same(transaction, commit=commit)
    return False


def _ends_by_version_2(transaction: Transaction, producer: Producer, *, commit: bool) -> bool:
    current, state = transaction.producer, transaction.state
    if state in PREPARED:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    has_new_id = current.epoch == 0 and producer == (transaction.previous_id, EPOCH_MAX - 1)
    if producer.id != current.id and not has_new_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if producer == current:
        if commit and state is not State.ONGOING:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE)
        return True
    is_again = has_new_id or current.epoch == producer.epoch + 1
    if not is_again or state in (State.ONGOING, State.EMPTY):
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    _check_same(transaction, commit=commit)
    # The last epoch is nobody's: whoever was aborted with it gets another id, by one more end.
    return current.epoch == EPOCH_MAX


def _check_same(transaction: Transaction, *, commit: bool) -> None:
    """Refuse to end a transaction that has ended the other way, or never was; or not yet."""
    if transaction.state is State.EMPTY or transaction.committed is not commit:
        raise KafkaError(ErrorCode.INVALID_TXN_STATE)
    if transaction.state in PREPARED:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)


def is_doubtful(end: End, newest: int) -> bool:
    """Whether a request may have been delayed, by all that its connection tells.

    `newest` is the newest connection by which partitions were added to what is open.
    """
    return not end.raises_epoch and NO_CONNECTION < end.connection < newest


def needs_id(transaction: Transaction, version: int) -> bool:
    """Whether ending the transaction uses up the producer's epochs."""
    return version >= RAISES_EPOCH_FROM and transaction.epochs_used_up


def prepared(
    transaction: Transaction, *, commit: bool, version: int, next_id: int | None, now_ms: int
) -> Transaction:
    """Return the transaction with its outcome fixed."""
    producer = transaction.producer
    if version >= RAISES_EPOCH_FROM:
        producer = Producer(producer.id, min(producer.epoch + 1, EPOCH_MAX))
    is_open = transaction.state is State.ONGOING
    return transaction._replace(
        producer=producer,
        state=State.PREPARE_COMMIT if commit else State.PREPARE_ABORT,
        previous_id=producer.id,
        next_id=NO_PRODUCER_ID if next_id is None else next_id,
        # Nobody told the coordinator when it began, if it did.
        started_ms=transaction.started_ms if is_open else now_ms,
        updated_ms=now_ms,
        version=version,
    )


def fenced(transaction: Transaction, *, version: int, now_ms: int) -> Transaction:
    """Return the open transaction on its way to be aborted, out of its producer's reach."""
    if version < RAISES_EPOCH_FROM:
        epoch = min(transaction.producer.epoch + 1, EPOCH_MAX)
        transaction = transaction._replace(producer=Producer(transaction.producer.id, epoch))
    return prepared(transaction, commit=False, version=version, next_id=None, now_ms=now_ms)


def last_epoch_after(before: Transaction, after: Transaction, known: int) -> int:
    """Return the epoch that a producer may still come with whose answer was lost."""
    if after.version < RAISES_EPOCH_FROM:
        fenced_by_epoch = before.producer.epoch != after.producer.epoch
        return NO_EPOCH if fenced_by_epoch else known
    return after.producer.epoch - 1


def completed(transaction: Transaction, now_ms: int) -> Transaction:
    """Return the prepared transaction with every marker written."""
    return transaction._replace(
        producer=transaction.successor,
        previous_id=transaction.producer.id,
        next_id=NO_PRODUCER_ID,
        state=COMPLETED[transaction.state],
        partitions=frozenset(),
        updated_ms=now_ms,
    )


def is_overdue(transaction: Transaction, now_ms: int) -> bool:
    """Whether an open transaction has taken longer than its producer said it would."""
    return transaction.started_ms + transaction.timeout_ms < now_ms


def is_forgotten(transaction: Transaction, expiration_ms: int, now_ms: int) -> bool:
    """Whether a transactional id was not used for so long that it is dropped."""
    return transaction.state in AT_REST and transaction.updated_ms + expiration_ms <= now_ms
