"""How the records of `__transaction_state` become bytes, and bytes become records.

Every step of every transaction writes one, so they are written by hand; what is written is what
`write_message` makes of them. A start reads them: by their declarations, in every version.

A key of another type, or a value of another version or with a state that nobody knows, is none of
ours: it is stepped over.
"""

from collections.abc import Sequence
from struct import Struct, error, pack
from typing import Final

from strom.replicated.machine import KeyValue
from strom.transactions.records import (
    NO_EPOCH,
    NO_PRODUCER_ID,
    TRANSACTION_TYPE,
    PartitionsSchema,
    PlainTransactionLogValue,
    TransactionLogKey,
    TransactionLogValue,
)
from strom.wire.primitives import INT16, MalformedFrame, count_of, text
from strom.wire.versioned import read_message

VALUE_VERSIONS: Final = (0, 1)
STATES: Final = range(8)
ONGOING: Final = 1
NO_ARRAY: Final = -1
#: The tagged fields that a transaction may have only once its outcome is fixed, and their lengths.
OUTCOME_BYTES: Final = 32

_HEAD: Final = Struct(">hqhib")
_TIMES: Final = Struct(">qq")
#: A tag, the length of its field, and the field.
_TAGGED_INT64: Final = Struct(">bbq")
_TAGGED_INT16: Final = Struct(">bbh")


def write_key(key: object) -> bytes:
    """Return the key's bytes, its type in front."""
    assert isinstance(key, TransactionLogKey)
    return INT16.pack(TRANSACTION_TYPE) + text(key.transactional_id, False)


def write_value(value: object) -> bytes:
    """Return the value's bytes, their version in front."""
    assert isinstance(value, TransactionLogValue)
    is_tagged = not isinstance(value, PlainTransactionLogValue)
    parts = [
        _HEAD.pack(
            is_tagged,
            value.producer_id,
            value.producer_epoch,
            value.transaction_timeout_ms,
            value.transaction_status,
        )
    ]
    topics = value.transaction_partitions
    if topics is None:
        parts.append(count_of(NO_ARRAY, is_tagged))
    else:
        parts.append(count_of(len(topics), is_tagged))
        parts += [_topic(topic, is_tagged) for topic in topics]
    parts.append(
        _TIMES.pack(
            value.transaction_last_update_timestamp_ms, value.transaction_start_timestamp_ms
        )
    )
    if is_tagged:
        parts += _tags(value)
    return b"".join(parts)


def _topic(topic: PartitionsSchema, is_tagged: bool) -> bytes:
    ids = topic.partition_ids
    start = text(topic.topic, is_tagged) + count_of(len(ids), is_tagged)
    return start + pack(f">{len(ids)}i", *ids) + (b"\0" if is_tagged else b"")


def _tags(value: TransactionLogValue) -> list[bytes]:
    """Return the tagged fields that do not have their defaults, and how many there are."""
    parts = [b""]
    if value.previous_producer_id != NO_PRODUCER_ID:
        parts.append(_TAGGED_INT64.pack(0, 8, value.previous_producer_id))
    if value.next_producer_id != NO_PRODUCER_ID:
        parts.append(_TAGGED_INT64.pack(1, 8, value.next_producer_id))
    if value.client_transaction_version:
        parts.append(_TAGGED_INT16.pack(2, 2, value.client_transaction_version))
    if value.next_producer_epoch != NO_EPOCH:
        parts.append(_TAGGED_INT16.pack(3, 2, value.next_producer_epoch))
    parts[0] = bytes((len(parts) - 1,))
    return parts


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
