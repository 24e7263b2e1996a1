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

An offset is written in the oldest version that can say it, but for versions that only lack what
has its default.
"""

import struct
from collections.abc import Sequence
from sys import intern
from typing import Any
from uuid import UUID

from strom.replicated.machine import KeyValue
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import read_message, write_message
from strom.wire.primitives import INT16, NO_ID, Buffer, MalformedFrame
from strom.wire.schema import NEVER, message, of

NO_TIMESTAMP = -1
NO_LEADER_EPOCH = -1
NO_TOPIC_ID = NO_ID

OFFSET = 1
#: The form that offsets had when they came from ZooKeeper; read as any other.
LEGACY_OFFSET = 0
LEGACY_OFFSET_NEWEST = 0
#: Versions: the only one that has a time to expire at, and the usual one.
EXPIRING, USUAL = 1, 4


@message(api_key=OFFSET, flexible_since=NEVER)
class OffsetCommitKey:
    """The partition that an offset is of, and the group."""

    group: str = of("string")
    topic: str = of("string")
    partition: int = of("int32")


@message(api_key=OFFSET, written=USUAL, flexible_since=4)
class OffsetCommitValue:
    """The offset that a group will read next."""

    offset: int = of("int64")
    leader_epoch: int = of("int32", since=3, default=NO_LEADER_EPOCH)
    metadata: str = of("string", default="")
    commit_timestamp_ms: int = of("int64", default=NO_TIMESTAMP)
    #: Set by clients of the time when a commit could bring its own retention.
    expire_timestamp_ms: int = of("int64", since=EXPIRING, until=EXPIRING, default=NO_TIMESTAMP)
    topic_id: UUID = of("uuid", since=USUAL, tag=0, default=NO_TOPIC_ID)


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
    (OffsetCommitKey, OffsetCommitValue),
    (GroupMetadataKey, GroupMetadataValue),
    (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
    (ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue),
    (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
    (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue),
    (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
    (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
    (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
)
#: Key and value classes by type.
TYPES = {key.__api_key__: (key, value) for key, value in _PAIRS}


def write_key(key: object) -> bytes:
    """Return the key's bytes, its type in front."""
    marks: Any = type(key)
    return INT16.pack(marks.__api_key__) + write_message(key)


def write_value(value: object) -> bytes:
    """Return the value's bytes, their version in front: the version that Kafka writes."""
    marks: Any = type(value)
    version = marks.__version__
    if isinstance(value, OffsetCommitValue) and value.expire_timestamp_ms != NO_TIMESTAMP:
        version = EXPIRING
    return INT16.pack(version) + write_message(value, version)


def room_for_later(_: Sequence[KeyValue]) -> int:
    """Return how many bytes more must fit where some records do: nothing has to follow them."""
    return 0


def read(key: Buffer, value: Buffer | None) -> KeyValue | None:
    """Read a record of the log; None if it is of a type that is not known."""
    try:
        (kind,) = INT16.unpack_from(key, 0)
        if kind == LEGACY_OFFSET:
            return _read(key, value, OFFSET, LEGACY_OFFSET_NEWEST)
        if kind not in TYPES:
            return None
        _, value_class = TYPES[kind]
        return _read(key, value, kind, value_class.__newest__)
    except struct.error as error:
        raise MalformedFrame(f"no record of a group: {error}") from error


def _read(key: Buffer, value: Buffer | None, kind: int, newest: int) -> KeyValue:
    key_class, value_class = TYPES[kind]
    found = read_message(key_class, 0, key, INT16.size)
    if key_class is OffsetCommitKey:
        # There are many more offsets than names.
        found.group, found.topic = intern(found.group), intern(found.topic)
    if value is None:
        return KeyValue(found, None)
    version = INT16.unpack_from(value, 0)[0]
    if not 0 <= version <= newest:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"{value_class.__name__} of version {version} cannot be read",
        )
    return KeyValue(found, read_message(value_class, version, value, INT16.size))
