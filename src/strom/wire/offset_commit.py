"""OffsetCommit (key 8), read and written by hand: consumers send it all the time.

v2   the oldest, with a retention time     v7   the name of a static member
v3   throttle time in the answer           v8   the flexible encoding
v5   no retention time any more            v9   a member epoch where the generation was
v6   the leader epoch of each offset       v10  topic ids instead of names
"""

import struct
from typing import Final, NamedTuple
from uuid import UUID

from strom.wire.errors import ErrorCode
from strom.wire.primitives import (
    INT32,
    INT64,
    Buffer,
    count_of,
    read_count,
    read_text,
    read_uuid,
    required,
    skip_tags,
    text,
    write_codes,
)

THROTTLE_FROM: Final = 3
RETENTION_UNTIL: Final = 4
LEADER_EPOCH_FROM: Final = 6
INSTANCE_ID_FROM: Final = 7
FLEXIBLE_FROM: Final = 8
TOPIC_IDS_FROM: Final = 10

NO_RETENTION: Final = -1
NO_LEADER_EPOCH: Final = -1

_OFFSET: Final = struct.Struct(">iq")
_OFFSET_AND_EPOCH: Final = struct.Struct(">iqi")


class PartitionOffset(NamedTuple):
    """What a group will read next in a partition."""

    partition_index: int
    offset: int
    leader_epoch: int
    metadata: str | None


class TopicOffsets(NamedTuple):
    """A topic, by name or (from version 10) by id, and the offsets in it."""

    name: str | None
    topic_id: UUID | None
    partitions: list[PartitionOffset]


class OffsetCommitRequest(NamedTuple):
    """Offsets of one group, and who says so."""

    group_id: str
    #: The generation of a classic group, or the member's epoch.
    epoch: int
    member_id: str
    instance_id: str | None
    retention_ms: int
    topics: list[TopicOffsets]


class TopicCommitted(NamedTuple):
    """What became of one topic's offsets: number and code of each partition."""

    name: str | None
    topic_id: UUID | None
    partitions: list[tuple[int, ErrorCode]]


class OffsetCommitResponse(NamedTuple):
    """What became of the offsets."""

    topics: list[TopicCommitted]
    throttle_ms: int = 0


def read_request(frame: Buffer, position: int, version: int) -> OffsetCommitRequest:
    """Read the request behind its header."""
    flexible = version >= FLEXIBLE_FROM
    group_id, position = required(read_text(frame, position, flexible))
    (epoch,) = INT32.unpack_from(frame, position)
    member_id, position = required(read_text(frame, position + 4, flexible))
    instance_id, retention_ms = None, NO_RETENTION
    if version >= INSTANCE_ID_FROM:
        instance_id, position = read_text(frame, position, flexible)
    elif version <= RETENTION_UNTIL:
        (retention_ms,) = INT64.unpack_from(frame, position)
        position += 8
    count, position = read_count(frame, position, flexible)
    topics = []
    for _ in range(count):
        topic, position = _read_topic(frame, position, version)
        topics.append(topic)
    return OffsetCommitRequest(group_id, epoch, member_id, instance_id, retention_ms, topics)


def _read_topic(frame: Buffer, position: int, version: int) -> tuple[TopicOffsets, int]:
    flexible = version >= FLEXIBLE_FROM
    name: str | None = None
    topic_id: UUID | None = None
    if version >= TOPIC_IDS_FROM:
        topic_id, position = read_uuid(frame, position)
    else:
        name, position = required(read_text(frame, position, flexible))
    count, position = read_count(frame, position, flexible)
    partitions = []
    leader_epoch = NO_LEADER_EPOCH
    for _ in range(count):
        if version >= LEADER_EPOCH_FROM:
            index, offset, leader_epoch = _OFFSET_AND_EPOCH.unpack_from(frame, position)
            position += 16
        else:
            index, offset = _OFFSET.unpack_from(frame, position)
            position += 12
        metadata, position = read_text(frame, position, flexible)
        if flexible:
            position = skip_tags(frame, position)
        partitions.append(PartitionOffset(index, offset, leader_epoch, metadata))
    if flexible:
        position = skip_tags(frame, position)
    return TopicOffsets(name, topic_id, partitions), position


def write_response(response: OffsetCommitResponse, version: int) -> bytes:
    """Write the response behind its header."""
    flexible = version >= FLEXIBLE_FROM
    parts = []
    if version >= THROTTLE_FROM:
        parts.append(INT32.pack(response.throttle_ms))
    parts.append(count_of(len(response.topics), flexible))
    for name, topic_id, partitions in response.topics:
        if version >= TOPIC_IDS_FROM:
            assert topic_id is not None
            parts.append(topic_id.bytes)
        else:
            parts.append(text(name or "", flexible))
        write_codes(parts, partitions, flexible)
    if flexible:
        parts.append(b"\0")
    return b"".join(parts)
