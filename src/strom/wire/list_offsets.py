"""ListOffsets (key 2), read and written by hand: whoever is given a partition asks it.

v1   one offset for each partition         v6   the flexible encoding
v2   isolation level; throttle time        v10  how long to wait for other storage
v4   leader epochs, asked and answered
"""

import struct
from typing import Final, NamedTuple

from strom.wire.errors import ErrorCode
from strom.wire.primitives import (
    INT32,
    Buffer,
    count_of,
    read_count,
    read_text,
    required,
    skip_tags,
    text,
)

ISOLATION_FROM: Final = 2
THROTTLE_FROM: Final = 2
LEADER_EPOCH_FROM: Final = 4
FLEXIBLE_FROM: Final = 6

NO_LEADER_EPOCH: Final = -1
READ_UNCOMMITTED: Final = 0

_WANTED: Final = struct.Struct(">iq")
_WANTED_WITH_EPOCH: Final = struct.Struct(">iiq")
_FOUND: Final = struct.Struct(">ihqq")
_FOUND_WITH_EPOCH: Final = struct.Struct(">ihqqi")
_FOUND_FLEXIBLE: Final = struct.Struct(">ihqqib")


class PartitionWanted(NamedTuple):
    """A partition, and the time, or the number for a place, that is looked for."""

    partition_index: int
    timestamp: int
    current_leader_epoch: int = NO_LEADER_EPOCH


class TopicWanted(NamedTuple):
    """A topic, and what is asked about its partitions."""

    name: str
    partitions: list[PartitionWanted]


class ListOffsetsRequest(NamedTuple):
    """Which offsets are looked for, and how much the reader may see."""

    topics: list[TopicWanted]
    isolation_level: int = READ_UNCOMMITTED


class PartitionFound(NamedTuple):
    """What was found in a partition, or why nothing was."""

    partition_index: int
    error_code: ErrorCode
    timestamp: int
    offset: int
    leader_epoch: int


class TopicFound(NamedTuple):
    """What was found in a topic."""

    name: str
    partitions: list[PartitionFound]


class ListOffsetsResponse(NamedTuple):
    """What was found."""

    topics: list[TopicFound]
    throttle_ms: int = 0


def read_request(frame: Buffer, position: int, version: int) -> ListOffsetsRequest:
    """Read the request behind its header; who asks as a replica sees no more than others."""
    flexible = version >= FLEXIBLE_FROM
    position += INT32.size
    isolation_level = READ_UNCOMMITTED
    if version >= ISOLATION_FROM:
        isolation_level = frame[position]
        position += 1
    count, position = read_count(frame, position, flexible)
    topics = []
    for _ in range(count):
        topic, position = _read_topic(frame, position, version)
        topics.append(topic)
    return ListOffsetsRequest(topics, isolation_level)


def _read_topic(frame: Buffer, position: int, version: int) -> tuple[TopicWanted, int]:
    flexible, with_epoch = version >= FLEXIBLE_FROM, version >= LEADER_EPOCH_FROM
    name, position = required(read_text(frame, position, flexible))
    count, position = read_count(frame, position, flexible)
    partitions = []
    for _ in range(count):
        if with_epoch:
            index, epoch, timestamp = _WANTED_WITH_EPOCH.unpack_from(frame, position)
            position += _WANTED_WITH_EPOCH.size
        else:
            index, timestamp = _WANTED.unpack_from(frame, position)
            epoch = NO_LEADER_EPOCH
            position += _WANTED.size
        if flexible:
            position = skip_tags(frame, position)
        partitions.append(PartitionWanted(index, timestamp, epoch))
    if flexible:
        position = skip_tags(frame, position)
    return TopicWanted(name, partitions), position


def write_response(response: ListOffsetsResponse, version: int) -> bytes:
    """Write the response behind its header."""
    flexible = version >= FLEXIBLE_FROM
    parts = [INT32.pack(response.throttle_ms)] if version >= THROTTLE_FROM else []
    parts.append(count_of(len(response.topics), flexible))
    for name, partitions in response.topics:
        parts.append(text(name, flexible))
        parts.append(count_of(len(partitions), flexible))
        if flexible:
            parts += [_FOUND_FLEXIBLE.pack(*each, 0) for each in partitions]
            parts.append(b"\0")
        elif version >= LEADER_EPOCH_FROM:
            parts += [_FOUND_WITH_EPOCH.pack(*each) for each in partitions]
        else:
            parts += [_FOUND.pack(*each[:4]) for each in partitions]
    if flexible:
        parts.append(b"\0")
    return b"".join(parts)
