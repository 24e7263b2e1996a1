"""ConsumerGroupHeartbeat (key 68), read and written by hand: every member sends it all the time.

v0   the first     v1   subscriptions by a regular expression
"""

import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple
from uuid import UUID

from strom.wire.errors import ErrorCode
from strom.wire.primitives import (
    INT32,
    Buffer,
    nullable_text,
    read_count,
    read_length,
    read_text,
    required,
    skip_tags,
    varint,
)

FLEXIBLE_FROM: Final = 0
PATTERN_FROM: Final = 1

ID_BYTES: Final = 16
#: How many ids of topics are remembered: to make one takes longer than to find it.
IDS_MAX: Final = 1000

_NOBODY: Final = bytes(ID_BYTES)
_START: Final = struct.Struct(">ih")
_EPOCH_AND_INTERVAL: Final = struct.Struct(">ii")
_ABSENT: Final = b"\xff"
_PRESENT: Final = b"\x01"

#: A topic and partitions of it, as they were listed.
Places = tuple[UUID, Sequence[int]]


class ConsumerGroupHeartbeatRequest(NamedTuple):
    """What a member says; None, and -1 for the time-out, for what it does not say."""

    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int
    topic_names: list[str] | None
    topic_pattern: str | None
    assignor: str | None
    owned: list[Places] | None


class ConsumerGroupHeartbeatResponse(NamedTuple):
    """Where the member stands, or why it does not."""

    error_code: ErrorCode
    error_message: str | None
    member_id: str | None
    member_epoch: int
    heartbeat_interval_ms: int
    assignment: Iterable[Places] | None
    throttle_ms: int = 0


def read_request(frame: Buffer, position: int, version: int) -> ConsumerGroupHeartbeatRequest:
    """Read the request behind its header."""
    group_id, position = required(read_text(frame, position, True))
    member_id, position = required(read_text(frame, position, True))
    (member_epoch,) = INT32.unpack_from(frame, position)
    instance_id, position = read_text(frame, position + 4, True)
    rack_id, position = read_text(frame, position, True)
    (rebalance_timeout_ms,) = INT32.unpack_from(frame, position)
    topic_names, position = _read_names(frame, position + 4)
    topic_pattern: str | None = None
    if version >= PATTERN_FROM:
        topic_pattern, position = read_text(frame, position, True)
    assignor, position = read_text(frame, position, True)
    owned, position = _read_owned(frame, position)
    skip_tags(frame, position)
    fields = (
        group_id,
        member_id,
        member_epoch,
        instance_id,
        rack_id,
        rebalance_timeout_ms,
        topic_names,
        topic_pattern,
        assignor,
        owned,
    )
    # The constructor of a named tuple is interpreted.
    return tuple.__new__(ConsumerGroupHeartbeatRequest, fields)


def _read_names(frame: Buffer, position: int) -> tuple[list[str] | None, int]:
    count, position = read_length(frame, position, True)
    if count < 0:
        return None, position
    names: list[str] = []
    for _ in range(count):
        name, position = required(read_text(frame, position, True))
        names.append(name)
    return names, position


def _read_owned(frame: Buffer, position: int) -> tuple[list[Places] | None, int]:
    """Read which partitions the member holds; what has no topic's id is nowhere."""
    count, position = read_length(frame, position, True)
    if count < 0:
        return None, position
    owned: list[Places] = []
    for _ in range(count):
        topic = bytes(frame[position : position + ID_BYTES])
        number, position = read_count(frame, position + ID_BYTES, True)
        partitions: tuple[int, ...] = struct.unpack_from(f">{number}i", frame, position)
        position = skip_tags(frame, position + 4 * number)
        if topic != _NOBODY:
            owned.append((topic_id(topic), partitions))
    return owned, position


@lru_cache(IDS_MAX)
def topic_id(data: bytes) -> UUID:
    """Return the id that the bytes are."""
    return UUID(bytes=data)


def write_response(response: ConsumerGroupHeartbeatResponse, version: int) -> bytes:
    """Write the response behind its header; all versions are the same."""
    parts = [
        _START.pack(response.throttle_ms, response.error_code),
        nullable_text(response.error_message, True),
        nullable_text(response.member_id, True),
        _EPOCH_AND_INTERVAL.pack(response.member_epoch, response.heartbeat_interval_ms),
    ]
    if response.assignment is None:
        parts.append(_ABSENT)
    else:
        _write_assignment(response.assignment, parts)
    parts.append(b"\0")
    return b"".join(parts)


def _write_assignment(assignment: Iterable[Places], parts: list[bytes]) -> None:
    topics = list(assignment)
    parts += (_PRESENT, varint(len(topics) + 1))
    for topic, partitions in topics:
        count = len(partitions)
        parts += (topic.bytes, varint(count + 1), struct.pack(f">{count}ib", *partitions, 0))
    parts.append(b"\0")
