"""The records of `__consumer_offsets`, as Kafka 4.3 writes and reads them.

    key   = type int16 | body          value = version int16 | body, or none: the key is gone

| type | about | | type | about |
|---|---|---|---|---|
| 0, 1 | an offset of a group | | 6 | which epoch a consumer group's target assignment is of |
| 2 | a classic group | | 7 | what a member shall have |
| 3 | a consumer group (KIP-848) | | 8 | what a member has |
| 4 | what it knew of its topics, before 4.1 | | 16 | what a regular expression stands for |
| 5 | a member of it | | | |

A type that is not known here is a newer Kafka's, or of share and streams groups: `read` gives
None and the record stays in the log for whoever knows it. A version of a value that is not
known is refused: its meaning would be guessed.

Offsets are read and written by hand: there is one of them for every partition of every commit.
"""

import struct
from collections.abc import Sequence
from functools import lru_cache
from sys import intern
from typing import Any, NamedTuple
from uuid import UUID

from strom.groups.member_records import (
    Write,
    group_key_writer,
    key_writer,
    member_writer,
    write_current,
    write_epoch,
    write_target,
    write_target_epoch,
    writer_by_type,
)
from strom.replicated.machine import KeyValue
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.primitives import (
    INT16,
    INT32,
    Buffer,
    MalformedFrame,
    read_tags,
    read_text,
    text,
)
from strom.wire.versioned import message, of, read_message, write_message

#: The first flexible version of anything that is "none" in Kafka's schema.
NEVER = 2**15
NO_TIMESTAMP = -1
NO_LEADER_EPOCH = -1
NO_TOPIC_ID = UUID(int=0)
ID_BYTES = 16
#: How many ids of topics are remembered, to have each of them once.
SHARED_MAX = 10_000


class OffsetCommitKey(NamedTuple):
    """Whose offset, and of what."""

    group: str
    topic: str
    partition: int


class OffsetCommitValue(NamedTuple):
    """The offset that a group will read next."""

    offset: int
    leader_epoch: int = NO_LEADER_EPOCH
    metadata: str = ""
    commit_timestamp_ms: int = NO_TIMESTAMP
    #: Set by clients of the time when a commit could bring its own retention.
    expire_timestamp_ms: int = NO_TIMESTAMP
    topic_id: UUID = NO_TOPIC_ID


@message(api_key=2, flexible_since=NEVER)
class GroupMetadataKey:
    """A classic group."""

    group: str = of("string")


@message(flexible_since=4)
class MemberMetadata:
    """A member of a classic group."""

    member_id: str = of("string")
    group_instance_id: str | None = of("string", since=3, default=None)
    client_id: str = of("string")
    client_host: str = of("string")
    rebalance_timeout: int = of("int32", since=1, default=-1)
    session_timeout: int = of("int32")
    subscription: bytes = of("bytes")
    assignment: bytes = of("bytes")


@message(api_key=2, written=3, newest=4, flexible_since=4)
class GroupMetadataValue:
    """A classic group after a round: who is in it and what each got."""

    protocol_type: str = of("string")
    generation: int = of("int32")
    protocol: str | None = of("string")
    leader: str | None = of("string")
    current_state_timestamp: int = of("int64", since=2, default=-1)
    members: tuple[MemberMetadata, ...] = of("struct")


@message(api_key=3, flexible_since=NEVER)
class ConsumerGroupMetadataKey:
    """A consumer group."""

    group_id: str = of("string")


@message(api_key=3)
class ConsumerGroupMetadataValue:
    """The epoch of a consumer group, and a hash of the topics that it was computed for."""

    epoch: int = of("int32")
    metadata_hash: int = of("int64", tag=0, default=0)


@message(api_key=4, flexible_since=NEVER)
class ConsumerGroupPartitionMetadataKey:
    """A consumer group."""

    group_id: str = of("string")


@message()
class PartitionMetadata:
    """The racks of a partition's replicas."""

    partition: int = of("int32")
    racks: tuple[str, ...] = of("string")


@message()
class TopicMetadata:
    """A topic that a group has subscribed to."""

    topic_id: UUID = of("uuid")
    topic_name: str = of("string")
    num_partitions: int = of("int32")
    partition_metadata: tuple[PartitionMetadata, ...] = of("struct")


@message(api_key=4)
class ConsumerGroupPartitionMetadataValue:
    """What a consumer group knew of its topics; since 4.1 there is a hash instead."""

    topics: tuple[TopicMetadata, ...] = of("struct")


@message(api_key=5, flexible_since=NEVER)
class ConsumerGroupMemberMetadataKey:
    """A member of a consumer group."""

    group_id: str = of("string")
    member_id: str = of("string")


@message()
class ClassicProtocol:
    """A protocol that a member of the classic kind supports."""

    name: str = of("string")
    metadata: bytes = of("bytes")


@message()
class ClassicMemberMetadata:
    """What a member that uses the classic protocol has besides."""

    session_timeout_ms: int = of("int32")
    supported_protocols: tuple[ClassicProtocol, ...] = of("struct")


@message(api_key=5)
class ConsumerGroupMemberMetadataValue:
    """Who a member is and what it subscribes to."""

    instance_id: str | None = of("string")
    rack_id: str | None = of("string")
    client_id: str = of("string")
    client_host: str = of("string")
    subscribed_topic_names: tuple[str, ...] = of("string")
    subscribed_topic_regex: str | None = of("string")
    rebalance_timeout_ms: int = of("int32", default=-1)
    server_assignor: str | None = of("string")
    classic_member_metadata: ClassicMemberMetadata | None = of("struct", tag=0, default=None)


@message(api_key=6, flexible_since=NEVER)
class ConsumerGroupTargetAssignmentMetadataKey:
    """A consumer group."""

    group_id: str = of("string")


@message(api_key=6)
class ConsumerGroupTargetAssignmentMetadataValue:
    """For which epoch of the group the target assignment was computed, and when (KIP-1263)."""

    assignment_epoch: int = of("int32")
    assignment_timestamp: int = of("int64", tag=0, default=0)


@message(api_key=7, flexible_since=NEVER)
class ConsumerGroupTargetAssignmentMemberKey:
    """A member of a consumer group."""

    group_id: str = of("string")
    member_id: str = of("string")


@message()
class TopicPartition:
    """Partitions of one topic."""

    topic_id: UUID = of("uuid")
    partitions: tuple[int, ...] = of("int32")


@message(api_key=7)
class ConsumerGroupTargetAssignmentMemberValue:
    """What a member shall have."""

    topic_partitions: tuple[TopicPartition, ...] = of("struct")


@message(api_key=8, flexible_since=NEVER)
class ConsumerGroupCurrentMemberAssignmentKey:
    """A member of a consumer group."""

    group_id: str = of("string")
    member_id: str = of("string")


@message()
class TopicPartitions:
    """Partitions of one topic, with the epochs in which the member got them."""

    topic_id: UUID = of("uuid")
    partitions: tuple[int, ...] = of("int32")
    assignment_epochs: tuple[int, ...] | None = of("int32", tag=0, default=None)


@message(api_key=8)
class ConsumerGroupCurrentMemberAssignmentValue:
    """What a member has, and what it must give up first."""

    member_epoch: int = of("int32")
    previous_member_epoch: int = of("int32")
    state: int = of("int8")
    assigned_partitions: tuple[TopicPartitions, ...] = of("struct")
    partitions_pending_revocation: tuple[TopicPartitions, ...] = of("struct")


@message(api_key=16, flexible_since=NEVER)
class ConsumerGroupRegularExpressionKey:
    """A regular expression of a consumer group."""

    group_id: str = of("string")
    regular_expression: str = of("string")


@message(api_key=16)
class ConsumerGroupRegularExpressionValue:
    """The topics that a regular expression stands for, in which version of the metadata."""

    topics: tuple[str, ...] = of("string")
    version: int = of("int64")
    timestamp: int = of("int64")


_PAIRS: tuple[tuple[type[Any], type[Any]], ...] = (
    (GroupMetadataKey, GroupMetadataValue),
    (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
    (ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue),
    (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
    (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue),
    (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
    (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
    (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
)
#: Key and value classes by type, but for offsets.
TYPES = {key.__api_key__: (key, value) for key, value in _PAIRS}

OFFSET = 1
#: The form that offsets had when they came from ZooKeeper; read as any other.
LEGACY_OFFSET = 0
OFFSET_VERSION_NEWEST = 4
#: Versions: the only one that has a time to expire at, the first with an epoch, the usual one.
EXPIRING, WITH_EPOCH, FLEXIBLE = 1, 3, 4
TOPIC_ID_TAG = 0

_OFFSET_START = INT16.pack(OFFSET)
_OFFSET_AND_EPOCH = struct.Struct(">hqi")
_EXPIRING_START = struct.Struct(">hq")
_TWO_TIMES = struct.Struct(">qq")
_INT64 = struct.Struct(">q")


# Writing.


def _write_offset_key(key: OffsetCommitKey) -> bytes:
    group, topic = key.group.encode(), key.topic.encode()
    return b"".join(
        (
            _OFFSET_START,
            INT16.pack(len(group)),
            group,
            INT16.pack(len(topic)),
            topic,
            INT32.pack(key.partition),
        )
    )


def _write_offset(value: OffsetCommitValue) -> bytes:
    offset, leader_epoch, metadata, committed_ms, expires_ms, topic_id = value
    if expires_ms != NO_TIMESTAMP:
        start = _EXPIRING_START.pack(EXPIRING, offset)
        return start + text(metadata, flexible=False) + _TWO_TIMES.pack(committed_ms, expires_ms)
    start = _OFFSET_AND_EPOCH.pack(FLEXIBLE, offset, leader_epoch)
    rest = text(metadata, flexible=True) + _INT64.pack(committed_ms)
    if topic_id == NO_TOPIC_ID:
        return start + rest + b"\0"
    # One tagged field of sixteen bytes.
    return start + rest + bytes((1, TOPIC_ID_TAG, 16)) + topic_id.bytes


def _write_other_key(key: object) -> bytes:
    marks: Any = type(key)
    return INT16.pack(marks.__api_key__) + write_message(key)


def _write_other_value(value: object) -> bytes:
    marks: Any = type(value)
    return INT16.pack(marks.__version__) + write_message(value)


_OF_GROUPS: tuple[type[Any], ...] = (
    ConsumerGroupMetadataKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)
_OF_MEMBERS: tuple[type[Any], ...] = (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupCurrentMemberAssignmentKey,
)
#: What is written by hand, by type.
_KEY_WRITERS: dict[type, Write] = {
    OffsetCommitKey: _write_offset_key,
    **{key: group_key_writer(key.__api_key__) for key in _OF_GROUPS},
    **{key: key_writer(key.__api_key__) for key in _OF_MEMBERS},
}
_VALUE_WRITERS: dict[type, Write] = {
    OffsetCommitValue: _write_offset,
    ConsumerGroupMetadataValue: write_epoch,
    ConsumerGroupMemberMetadataValue: member_writer(_write_other_value),
    ConsumerGroupTargetAssignmentMetadataValue: write_target_epoch,
    ConsumerGroupTargetAssignmentMemberValue: write_target,
    ConsumerGroupCurrentMemberAssignmentValue: write_current,
}

#: Returns the key's bytes.
write_key = writer_by_type(_KEY_WRITERS, _write_other_key)
#: Returns the value's bytes, in the version that Kafka writes.
write_value = writer_by_type(_VALUE_WRITERS, _write_other_value)


# Reading.


def room_for_later(_: Sequence[KeyValue]) -> int:
    """Return how many bytes more must fit where some records do: nothing has to follow them."""
    return 0


def read(key: Buffer, value: Buffer | None) -> KeyValue | None:
    """Read a record of the log; None if it is of a type that is not known."""
    try:
        (kind,) = INT16.unpack_from(key, 0)
        if kind in (OFFSET, LEGACY_OFFSET):
            return KeyValue(_read_offset_key(key), _read_offset(kind, value))
        if kind not in TYPES:
            return None
        key_class, value_class = TYPES[kind]
        found = read_message(key_class, 0, key, 2)
        if value is None:
            return KeyValue(found, None)
        version = _version_of(value, value_class.__newest__, value_class.__name__)
        return KeyValue(found, read_message(value_class, version, value, 2))
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise MalformedFrame(f"no record of a group: {error}") from error


def _version_of(value: Buffer, newest: int, name: str) -> int:
    version: int = INT16.unpack_from(value, 0)[0]
    if not 0 <= version <= newest:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION, f"{name} of version {version} cannot be read"
        )
    return version


def _read_offset_key(key: Buffer) -> OffsetCommitKey:
    group, position = read_text(key, 2, flexible=False)
    topic, position = read_text(key, position, flexible=False)
    if group is None or topic is None:
        raise MalformedFrame("the key of an offset lacks its group or topic")
    # There are many more offsets than names.
    return OffsetCommitKey(intern(group), intern(topic), INT32.unpack_from(key, position)[0])


def _read_offset(kind: int, value: Buffer | None) -> OffsetCommitValue | None:
    if value is None:
        return None
    newest = 0 if kind == LEGACY_OFFSET else OFFSET_VERSION_NEWEST
    version = _version_of(value, newest, "OffsetCommitValue")
    (offset,) = _INT64.unpack_from(value, 2)
    leader_epoch, position = NO_LEADER_EPOCH, 10
    if version >= WITH_EPOCH:
        (leader_epoch,) = INT32.unpack_from(value, 10)
        position = 14
    flexible = version >= FLEXIBLE
    metadata, position = read_text(value, position, flexible)
    (committed_ms,) = _INT64.unpack_from(value, position)
    expires_ms, topic_id = NO_TIMESTAMP, NO_TOPIC_ID
    if version == EXPIRING:
        (expires_ms,) = _INT64.unpack_from(value, position + 8)
    elif flexible:
        topic_id = _read_topic_id(value, position + 8)
    return OffsetCommitValue(
        offset, leader_epoch, metadata or "", committed_ms, expires_ms, topic_id
    )


def _read_topic_id(value: Buffer, position: int) -> UUID:
    tags, _ = read_tags(value, position)
    if TOPIC_ID_TAG not in tags:
        return NO_TOPIC_ID
    start = tags[TOPIC_ID_TAG]
    return _shared_id(bytes(value[start : start + ID_BYTES]))


@lru_cache(SHARED_MAX)
def _shared_id(data: bytes) -> UUID:
    if len(data) < ID_BYTES:
        raise MalformedFrame("an id is longer than its record")
    return UUID(bytes=data)
