"""The records of `__transaction_state`, as Kafka has them: one per transactional id.

    key   = type int16 (0) | transactional id
    value = version int16 | the producer, its newest transaction and that one's partitions

Version 1 has tagged fields, and is written from `transaction.version` 1 on; before that, version 0,
so that an older Kafka reads it.

A key of another type, or a value of another version or with a state that nobody knows, is none of
ours: it is stepped over.
"""

from collections.abc import Sequence
from struct import error

from strom.replicated.machine import KeyValue
from strom.wire.messages import read_message, write_message
from strom.wire.primitives import INT16, MalformedFrame
from strom.wire.schema import message, of

TRANSACTION_TYPE = 0
VALUE_VERSIONS = (0, 1)
STATES = range(8)
ONGOING = 1
#: The tagged fields that a transaction may have only once its outcome is fixed, and their lengths.
OUTCOME_BYTES = 32
NO_PRODUCER_ID = -1
NO_EPOCH = -1
NO_TIME = -1
#: The first `transaction.version` at which values have tagged fields.
TAGGED_FROM = 1


@message(api_key=TRANSACTION_TYPE, written=0, flexible_since=1)
class TransactionLogKey:
    """Whose transaction it is."""

    transactional_id: str = of("string")


@message()
class PartitionsSchema:
    """The partitions of one topic that are in a transaction."""

    topic: str = of("string")
    partition_ids: tuple[int, ...] = of("int32")


@message(api_key=TRANSACTION_TYPE, written=1, flexible_since=1)
class TransactionLogValue:
    """All that is known of a transactional id."""

    producer_id: int = of("int64")
    previous_producer_id: int = of("int64", since=1, tag=0, default=NO_PRODUCER_ID)
    next_producer_id: int = of("int64", since=1, tag=1, default=NO_PRODUCER_ID)
    producer_epoch: int = of("int16")
    next_producer_epoch: int = of("int16", since=1, tag=3, default=NO_EPOCH)
    transaction_timeout_ms: int = of("int32")
    transaction_status: int = of("int8")
    transaction_partitions: tuple[PartitionsSchema, ...] | None = of("struct")
    transaction_last_update_timestamp_ms: int = of("int64")
    transaction_start_timestamp_ms: int = of("int64")
    client_transaction_version: int = of("int16", since=1, tag=2, default=0)


@message(api_key=TRANSACTION_TYPE, written=0, flexible_since=1)
class PlainTransactionLogValue(TransactionLogValue):
    """The same, written as it was before there were tagged fields: without them."""


def write_key(key: object) -> bytes:
    """Return the key's bytes, its type in front."""
    return INT16.pack(TRANSACTION_TYPE) + write_message(key)


def write_value(value: object) -> bytes:
    """Return the value's bytes, their version in front."""
    assert isinstance(value, TransactionLogValue)
    is_tagged = not isinstance(value, PlainTransactionLogValue)
    return INT16.pack(is_tagged) + write_message(value)


def room_for_later(records: Sequence[KeyValue]) -> int:
    """Return how much larger the outcomes of open transactions are than what opened them.

    Without it one could be opened that cannot be ended.
    """
    room = 0
    for _, value in records:
        if isinstance(value, TransactionLogValue) and value.transaction_status == ONGOING:
            room += OUTCOME_BYTES
    return room


def read(key: bytes, value: bytes | None) -> KeyValue | None:
    """Read a record; None if it is of a type or a version that is not known here."""
    if _int16(key) != TRANSACTION_TYPE:
        return None
    named = read_message(TransactionLogKey, 0, key, INT16.size)
    if value is None:
        return KeyValue(named, None)
    version = _int16(value)
    if version not in VALUE_VERSIONS:
        return None
    found: TransactionLogValue = read_message(TransactionLogValue, version, value, INT16.size)
    return KeyValue(named, found) if found.transaction_status in STATES else None


def _int16(data: bytes) -> int:
    try:
        number: int = INT16.unpack_from(data)[0]
    except error as too_short:
        raise MalformedFrame(f"no record of a transaction: {too_short}") from too_short
    return number
