"""OffsetFetch (key 9), read and written by hand: its versions differ too much to translate.

v1   one group; errors by partition        v7   only what no open transaction may change
v2   all topics, if none is named; a code  v8   many groups
     for the whole answer                  v9   who asks, by member id and epoch
v3   throttle time in the answer           v10  topic ids instead of names
v5   leader epochs in the answer
v6   the flexible encoding
"""

import struct
from typing import Final, NamedTuple
from uuid import UUID

from strom.wire.errors import ErrorCode
from strom.wire.primitives import (
    INT16,
    INT32,
    Buffer,
    count_of,
    read_count,
    read_text,
    read_uuid,
    read_varint,
    required,
    skip_tags,
    text,
)

CODE_FROM: Final = 2
THROTTLE_FROM: Final = 3
LEADER_EPOCH_FROM: Final = 5
FLEXIBLE_FROM: Final = 6
STABLE_FROM: Final = 7
GROUPS_FROM: Final = 8
MEMBERS_FROM: Final = 9
TOPIC_IDS_FROM: Final = 10

NO_OFFSET: Final = -1
NO_LEADER_EPOCH: Final = -1
NO_MEMBER_EPOCH: Final = -1

_FOUND: Final = struct.Struct(">iq")
_FOUND_WITH_EPOCH: Final = struct.Struct(">iqi")


class TopicWanted(NamedTuple):
    """A topic, by name or (from version 10) by id, and the partitions asked for."""

    name: str | None
    topic_id: UUID | None
    partitions: list[int]


class GroupWanted(NamedTuple):
    """A group, and which of its offsets are asked for; None for all it has."""

    group_id: str
    topics: list[TopicWanted] | None
    member_id: str | None = None
    member_epoch: int = NO_MEMBER_EPOCH


class OffsetFetchRequest(NamedTuple):
    """Which offsets of which groups are asked for."""

    groups: list[GroupWanted]
    require_stable: bool = False


class PartitionFound(NamedTuple):
    """What a group has committed for a partition."""

    partition_index: int
    offset: int = NO_OFFSET
    leader_epoch: int = NO_LEADER_EPOCH
    metadata: str = ""
    error_code: ErrorCode = ErrorCode.NONE


class TopicFound(NamedTuple):
    """What a group has committed for a topic."""

    name: str | None
    topic_id: UUID | None
    partitions: list[PartitionFound]


class GroupFound(NamedTuple):
    """What a group has committed."""

    group_id: str
    topics: list[TopicFound]
    error_code: ErrorCode = ErrorCode.NONE


class OffsetFetchResponse(NamedTuple):
    """What the groups have committed."""

    groups: list[GroupFound]
    throttle_ms: int = 0


def read_request(frame: Buffer, position: int, version: int) -> OffsetFetchRequest:
    """Read the request behind its header."""
    flexible = version >= FLEXIBLE_FROM
    if version < GROUPS_FROM:
        group_id, position = required(read_text(frame, position, flexible))
        topics, position = _read_topics(frame, position, version)
        groups = [GroupWanted(group_id, topics)]
    else:
        groups = []
        count, position = read_count(frame, position, flexible)
        for _ in range(count):
            group, position = _read_group(frame, position, version)
            groups.append(group)
    return OffsetFetchRequest(groups, version >= STABLE_FROM and bool(frame[position]))


def _read_group(frame: Buffer, position: int, version: int) -> tuple[GroupWanted, int]:
    group_id, position = required(read_text(frame, position, flexible=True))
    member_id, member_epoch = None, NO_MEMBER_EPOCH
    if version >= MEMBERS_FROM:
        member_id, position = read_text(frame, position, flexible=True)
        (member_epoch,) = INT32.unpack_from(frame, position)
        position += 4
    topics, position = _read_topics(frame, position, version)
    position = skip_tags(frame, position)
    return GroupWanted(group_id, topics, member_id, member_epoch), position


def _read_topics(
    frame: Buffer, position: int, version: int
) -> tuple[list[TopicWanted] | None, int]:
    flexible = version >= FLEXIBLE_FROM
    is_null = not read_varint(frame, position)[0] if flexible else frame[position] > 0x7F
    count, position = read_count(frame, position, flexible)
    if is_null:
        return None, position
    topics = []
    for _ in range(count):
        topic, position = _read_topic(frame, position, version)
        topics.append(topic)
    return topics, position


def _read_topic(frame: Buffer, position: int, version: int) -> tuple[TopicWanted, int]:
    flexible = version >= FLEXIBLE_FROM
    name: str | None = None
    topic_id: UUID | None = None
    if version >= TOPIC_IDS_FROM:
        topic_id, position = read_uuid(frame, position)
    else:
        name, position = required(read_text(frame, position, flexible))
    count, position = read_count(frame, position, flexible)
    partitions = list(struct.unpack_from(f">{count}i", frame, position))
    position += 4 * count
    if flexible:
        position = skip_tags(frame, position)
    return TopicWanted(name, topic_id, partitions), position


def write_response(response: OffsetFetchResponse, version: int) -> bytes:
    """Write the response behind its header."""
    flexible = version >= FLEXIBLE_FROM
    parts = []
    if version >= THROTTLE_FROM:
        parts.append(INT32.pack(response.throttle_ms))
    if version >= GROUPS_FROM:
        parts.append(count_of(len(response.groups), flexible))
        for group in response.groups:
            parts.append(text(group.group_id, flexible))
            _write_topics(parts, group.topics, version)
            parts.append(INT16.pack(group.error_code) + b"\0")
    else:
        (group,) = response.groups
        _write_topics(parts, group.topics, version)
        if version >= CODE_FROM:
            parts.append(INT16.pack(group.error_code))
    if flexible:
        parts.append(b"\0")
    return b"".join(parts)


def _write_topics(parts: list[bytes], topics: list[TopicFound], version: int) -> None:
    flexible = version >= FLEXIBLE_FROM
    parts.append(count_of(len(topics), flexible))
    for name, topic_id, partitions in topics:
        if version >= TOPIC_IDS_FROM:
            assert topic_id is not None
            parts.append(topic_id.bytes)
        else:
            parts.append(text(name or "", flexible))
        parts.append(count_of(len(partitions), flexible))
        parts += [_partition(each, version, flexible) for each in partitions]
        if flexible:
            parts.append(b"\0")


def _partition(found: PartitionFound, version: int, flexible: bool) -> bytes:
    index, offset, leader_epoch, metadata, code = found
    if version >= LEADER_EPOCH_FROM:
        start = _FOUND_WITH_EPOCH.pack(index, offset, leader_epoch)
    else:
        start = _FOUND.pack(index, offset)
    end = b"\0" if flexible else b""
    return start + text(metadata, flexible) + INT16.pack(code) + end
