"""Fetch (key 1) as one who asks: the request written and the answer read by hand, at version 13.

That version names a topic by its id, so a topic that was deleted and made anew is not taken for
the one before. Every broker since Kafka 3.1 knows it. One partition is asked for at a time, and
without a session: the answer's records stay where they were received.
"""

import struct
from typing import NamedTuple
from uuid import UUID

from strom.wire.errors import ErrorCode
from strom.wire.primitives import MalformedFrame, read_count, read_varint, skip_tags

KEY = 1
VERSION = 13

_CONSUMER = -1
_NO_SESSION = (0, -1)
#: Replica, time, least and most bytes, isolation, session and its epoch; topics: one.
_TERMS = struct.Struct(">iiiibiiB")
#: Partitions: one; its index, epoch, offset, epoch and log start of a follower, most bytes.
_PLACE = struct.Struct(">BiiqiqiBBBBB")
_HEAD = struct.Struct(">ihi")
_ANSWER = struct.Struct(">ihqqq")
_ABORTED = struct.Struct(">qq")
_ONE = 2


class Terms(NamedTuple):
    """How long the broker may wait for how much, and what may be seen."""

    wait_max_ms: int
    bytes_min: int
    bytes_max: int
    partition_bytes_max: int
    read_committed: bool


class Aborted(NamedTuple):
    """A transaction whose records do not count."""

    producer_id: int
    first_offset: int


class Answer(NamedTuple):
    """What the partition had."""

    error: ErrorCode
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: tuple[Aborted, ...]
    #: A view of what was received, gone with the next answer.
    records: memoryview


def write_request(topic_id: UUID, partition: int, offset: int, terms: Terms) -> bytes:
    """Return the request's body."""
    head = _TERMS.pack(
        _CONSUMER,
        terms.wait_max_ms,
        terms.bytes_min,
        terms.bytes_max,
        int(terms.read_committed),
        *_NO_SESSION,
        _ONE,
    )
    # Behind the partition: its tags, the topic's, nothing forgotten, no rack, the request's tags.
    place = _PLACE.pack(
        _ONE, partition, -1, offset, -1, -1, terms.partition_bytes_max, 0, 0, 1, 1, 0
    )
    return head + topic_id.bytes + place


def read_answer(body: memoryview) -> Answer:
    """Read the answer behind its header; whatever is wrong with it is a MalformedFrame."""
    try:
        return _read_answer(body)
    except (struct.error, IndexError, ValueError) as error:
        raise MalformedFrame(f"no answer to a Fetch: {error}") from None


def _read_answer(body: memoryview) -> Answer:
    _, error, _ = _HEAD.unpack_from(body)
    topics, position = read_count(body, _HEAD.size, True)
    if error or not topics:
        return Answer(ErrorCode(error), -1, -1, -1, (), body[:0])
    _, position = read_count(body, position + 16, True)
    _, error, watermark, stable, start = _ANSWER.unpack_from(body, position)
    aborted, position = _read_aborted(body, position + _ANSWER.size)
    # Behind the replica that would be preferred.
    size, position = read_varint(body, position + 4)
    size = max(size - 1, 0)
    if position + size > len(body):
        raise MalformedFrame("the records are longer than their frame")
    records = body[position : position + size]
    return Answer(ErrorCode(error), watermark, stable, start, aborted, records)


def _read_aborted(body: memoryview, position: int) -> tuple[tuple[Aborted, ...], int]:
    count, position = read_count(body, position, True)
    found = []
    for _ in range(count):
        found.append(Aborted._make(_ABORTED.unpack_from(body, position)))
        position = skip_tags(body, position + _ABORTED.size)
    return tuple(found), position
