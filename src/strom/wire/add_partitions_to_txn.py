"""AddPartitionsToTxn (key 24), read and written by hand: older clients begin transactions with it.

v0   the first, with one transaction       v4   many transactions, and whether to verify only
v3   the flexible encoding

Whatever the version, a request is read as one for many, and an answer is given as one for many.
"""

import struct
from typing import Final, NamedTuple

from strom.wire.errors import ErrorCode
from strom.wire.primitives import (
    INT16,
    INT32,
    Buffer,
    count_of,
    read_count,
    read_text,
    required,
    skip_tags,
    text,
    write_codes,
)

FLEXIBLE_FROM: Final = 3
MANY_FROM: Final = 4

_PRODUCER: Final = struct.Struct(">qh")


class TopicToAdd(NamedTuple):
    """A topic, and the partitions of it that are to be in a transaction."""

    name: str
    partitions: tuple[int, ...]


class TransactionToAdd(NamedTuple):
    """One producer's transaction, and the partitions that are to be in it."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    verify_only: bool
    topics: list[TopicToAdd]


class AddPartitionsToTxnRequest(NamedTuple):
    """Partitions for transactions: for one up to version 3."""

    transactions: list[TransactionToAdd]


class TopicAdded(NamedTuple):
    """What became of one topic: number and code of each partition."""

    name: str
    partitions: list[tuple[int, ErrorCode]]


class TransactionAdded(NamedTuple):
    """What became of one transaction's topics."""

    transactional_id: str
    topics: list[TopicAdded]


class AddPartitionsToTxnResponse(NamedTuple):
    """What became of the partitions."""

    transactions: list[TransactionAdded]
    error_code: ErrorCode = ErrorCode.NONE
    throttle_ms: int = 0


def read_request(frame: Buffer, position: int, version: int) -> AddPartitionsToTxnRequest:
    """Read the request behind its header."""
    if version < MANY_FROM:
        transaction, _ = _read_transaction(frame, position, version)
        return AddPartitionsToTxnRequest([transaction])
    count, position = read_count(frame, position, True)
    transactions = []
    for _ in range(count):
        transaction, position = _read_transaction(frame, position, version)
        position = skip_tags(frame, position)
        transactions.append(transaction)
    return AddPartitionsToTxnRequest(transactions)


def _read_transaction(frame: Buffer, position: int, version: int) -> tuple[TransactionToAdd, int]:
    """Read one transaction, up to its tagged fields."""
    flexible = version >= FLEXIBLE_FROM
    name, position = required(read_text(frame, position, flexible))
    producer_id, producer_epoch = _PRODUCER.unpack_from(frame, position)
    position += 10
    verify_only = False
    if version >= MANY_FROM:
        verify_only = frame[position] != 0
        position += 1
    count, position = read_count(frame, position, flexible)
    topics = []
    for _ in range(count):
        topic, position = required(read_text(frame, position, flexible))
        number, position = read_count(frame, position, flexible)
        partitions: tuple[int, ...] = struct.unpack_from(f">{number}i", frame, position)
        position += 4 * number
        if flexible:
            position = skip_tags(frame, position)
        topics.append(TopicToAdd(topic, partitions))
    return TransactionToAdd(name, producer_id, producer_epoch, verify_only, topics), position


def write_response(response: AddPartitionsToTxnResponse, version: int) -> bytes:
    """Write the response behind its header."""
    flexible = version >= FLEXIBLE_FROM
    parts = [INT32.pack(response.throttle_ms)]
    if version < MANY_FROM:
        (only,) = response.transactions
        _write_topics(parts, only.topics, flexible)
    else:
        parts.append(INT16.pack(response.error_code))
        parts.append(count_of(len(response.transactions), True))
        for name, topics in response.transactions:
            parts.append(text(name, True))
            _write_topics(parts, topics, True)
            parts.append(b"\0")
    if flexible:
        parts.append(b"\0")
    return b"".join(parts)


def _write_topics(parts: list[bytes], topics: list[TopicAdded], flexible: bool) -> None:
    parts.append(count_of(len(topics), flexible))
    for name, partitions in topics:
        parts.append(text(name, flexible))
        write_codes(parts, partitions, flexible)
