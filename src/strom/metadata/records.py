"""The records of the metadata log, as Kafka 4.3 has them, and the frame around each.

    frame = frame version (1) | api key | version | body          the first three are varints

Here are the records that Strom acts on; `kept.py` has those it only carries. A record of an
api key that this Kafka does not know is an Unknown: its bytes are kept as they are, so that it
outlives replay and snapshots. An unknown *version* of a known record is refused: its
meaning would be guessed.
"""

from dataclasses import dataclass, field, fields
from struct import Struct
from typing import Any
from uuid import UUID

from strom.metadata import kept
from strom.metadata.entities import entity, kafka, reader, write
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.primitives import read_varint

FRAME_VERSION = 1

NO_LEADER = -1
NO_LEADER_CHANGE = -2

#: Directory ids with a meaning of their own (KIP-858); of the first hundred none is ever given
#: to a directory.
#: kio reads the id of zeros, a partition not yet looked at since ZooKeeper, as None.
DIRECTORY_UNASSIGNED = UUID(int=1)
DIRECTORY_LOST = UUID(int=2)
RESERVED_IDS = 100

#: The values of BrokerRegistrationChange's tri-state fields.
UNFENCE, UNCHANGED, FENCE = -1, 0, 1
SHUT_DOWN = 1

BROKER_RESOURCE = 4
TOPIC_RESOURCE = 2


@entity()
class Endpoint:
    """Where a node listens."""

    name: str = field(metadata=kafka("string"))
    host: str = field(metadata=kafka("string"))
    port: int = field(metadata=kafka("uint16"))
    security_protocol: int = field(metadata=kafka("int16"))


@entity()
class SupportedFeature:
    """The levels of a feature that a node can work at."""

    name: str = field(metadata=kafka("string"))
    min_supported_version: int = field(metadata=kafka("int16"))
    max_supported_version: int = field(metadata=kafka("int16"))


@entity(api_key=12)
class FeatureLevel:
    """The cluster works at this level of the feature; 0 removes it."""

    name: str = field(metadata=kafka("string"))
    feature_level: int = field(metadata=kafka("int16"))


@entity(api_key=27)
class RegisterController:
    """A controller with where to reach it."""

    controller_id: int = field(metadata=kafka("int32"))
    incarnation_id: UUID = field(metadata=kafka("uuid"))
    zk_migration_ready: bool = field(metadata=kafka("bool"))
    end_points: tuple[Endpoint, ...]
    features: tuple[SupportedFeature, ...]


@entity(api_key=0, version=4)
class RegisterBroker:
    """A broker, or a new life of one: the incarnation differs, the epoch is higher."""

    broker_id: int = field(metadata=kafka("int32"))
    is_migrating_zk_broker: bool = field(default=False, metadata=kafka("bool", since=2))
    incarnation_id: UUID = field(metadata=kafka("uuid"))
    broker_epoch: int = field(metadata=kafka("int64"))
    end_points: tuple[Endpoint, ...]
    features: tuple[SupportedFeature, ...]
    rack: str | None = field(metadata=kafka("string"))
    fenced: bool = field(default=True, metadata=kafka("bool"))
    in_controlled_shutdown: bool = field(default=False, metadata=kafka("bool", since=1))
    log_dirs: tuple[UUID, ...] = field(default=(), metadata=kafka("uuid", tag=0, since=3))
    cordoned_log_dirs: tuple[UUID, ...] | None = field(
        default=None, metadata=kafka("uuid", tag=1, since=4)
    )


@entity(api_key=17, version=3)
class BrokerRegistrationChange:
    """What changed about a registered broker; a default says "not this"."""

    broker_id: int = field(metadata=kafka("int32"))
    broker_epoch: int = field(metadata=kafka("int64"))
    fenced: int = field(default=UNCHANGED, metadata=kafka("int8", tag=0))
    in_controlled_shutdown: int = field(default=0, metadata=kafka("int8", tag=1, since=1))
    log_dirs: tuple[UUID, ...] = field(default=(), metadata=kafka("uuid", tag=2, since=2))
    cordoned_log_dirs: tuple[UUID, ...] | None = field(
        default=None, metadata=kafka("uuid", tag=3, since=3)
    )


@entity(api_key=7)
class FenceBroker:
    """The old form of a change that fences."""

    id: int = field(metadata=kafka("int32"))
    epoch: int = field(metadata=kafka("int64"))


@entity(api_key=8)
class UnfenceBroker:
    """The old form of a change that lifts the fence."""

    id: int = field(metadata=kafka("int32"))
    epoch: int = field(metadata=kafka("int64"))


@entity(api_key=1)
class UnregisterBroker:
    """The broker is no longer part of the cluster."""

    broker_id: int = field(metadata=kafka("int32"))
    broker_epoch: int = field(metadata=kafka("int64"))


@entity(api_key=2)
class TopicCreated:
    """A topic's name and id; its partitions follow, each a record. (Kafka: TopicRecord)."""

    name: str = field(metadata=kafka("string"))
    topic_id: UUID = field(metadata=kafka("uuid"))


@entity(api_key=3, version=2)
class PartitionCreated:
    """All about one partition. (Kafka: PartitionRecord)."""

    partition_id: int = field(default=-1, metadata=kafka("int32"))
    topic_id: UUID = field(metadata=kafka("uuid"))
    replicas: tuple[int, ...] = field(metadata=kafka("int32"))
    isr: tuple[int, ...] = field(metadata=kafka("int32"))
    removing_replicas: tuple[int, ...] = field(default=(), metadata=kafka("int32"))
    adding_replicas: tuple[int, ...] = field(default=(), metadata=kafka("int32"))
    leader: int = field(default=NO_LEADER, metadata=kafka("int32"))
    leader_recovery_state: int = field(default=0, metadata=kafka("int8", tag=0))
    leader_epoch: int = field(default=-1, metadata=kafka("int32"))
    partition_epoch: int = field(default=-1, metadata=kafka("int32"))
    directories: tuple[UUID | None, ...] = field(default=(), metadata=kafka("uuid", since=1))
    eligible_leader_replicas: tuple[int, ...] | None = field(
        default=None, metadata=kafka("int32", tag=1, since=2)
    )
    last_known_elr: tuple[int, ...] | None = field(
        default=None, metadata=kafka("int32", tag=2, since=2)
    )


@entity(api_key=5, version=2)
class PartitionChange:
    """What changed about a partition; None (for the leader -2) says "not this"."""

    partition_id: int = field(default=-1, metadata=kafka("int32"))
    topic_id: UUID = field(metadata=kafka("uuid"))
    isr: tuple[int, ...] | None = field(default=None, metadata=kafka("int32", tag=0))
    leader: int = field(default=NO_LEADER_CHANGE, metadata=kafka("int32", tag=1))
    replicas: tuple[int, ...] | None = field(default=None, metadata=kafka("int32", tag=2))
    removing_replicas: tuple[int, ...] | None = field(default=None, metadata=kafka("int32", tag=3))
    adding_replicas: tuple[int, ...] | None = field(default=None, metadata=kafka("int32", tag=4))
    leader_recovery_state: int = field(default=-1, metadata=kafka("int8", tag=5))
    directories: tuple[UUID | None, ...] | None = field(
        default=None, metadata=kafka("uuid", tag=8, since=1)
    )
    eligible_leader_replicas: tuple[int, ...] | None = field(
        default=None, metadata=kafka("int32", tag=6, since=2)
    )
    last_known_elr: tuple[int, ...] | None = field(
        default=None, metadata=kafka("int32", tag=7, since=2)
    )


@entity(api_key=9)
class RemoveTopic:
    """The topic and its partitions are gone, and so are its configs."""

    topic_id: UUID = field(metadata=kafka("uuid"))


@entity(api_key=28)
class ClearElr:
    """Forget the eligible leaders of a topic's partitions; of all topics if the name is empty."""

    topic_name: str = field(metadata=kafka("string"))


@entity(api_key=4)
class Config:
    """One setting of a resource; None takes it back."""

    resource_type: int = field(metadata=kafka("int8"))
    resource_name: str = field(metadata=kafka("string"))
    name: str = field(metadata=kafka("string"))
    value: str | None = field(metadata=kafka("string"))


@entity(api_key=15)
class ProducerIds:
    """A broker got the producer ids below this one."""

    broker_id: int = field(metadata=kafka("int32"))
    broker_epoch: int = field(default=-1, metadata=kafka("int64"))
    next_producer_id: int = field(metadata=kafka("int64"))


@entity(api_key=20)
class NoOp:
    """Moves the log on, so that all can see how far behind they are."""


@entity(api_key=23)
class BeginTransaction:
    """What follows counts only if the transaction ends."""

    name: str | None = field(default=None, metadata=kafka("string", tag=0))


@entity(api_key=24)
class EndTransaction:
    """The transaction counts."""


@entity(api_key=25)
class AbortTransaction:
    """The transaction never was."""

    reason: str | None = field(default=None, metadata=kafka("string", tag=0))


@dataclass(frozen=True, slots=True)
class Unknown:
    """A record that a newer Kafka wrote: the frame as it came."""

    api_key: int
    frame: bytes


USED: tuple[type[Any], ...] = (
    FeatureLevel,
    RegisterController,
    RegisterBroker,
    BrokerRegistrationChange,
    FenceBroker,
    UnfenceBroker,
    UnregisterBroker,
    TopicCreated,
    PartitionCreated,
    PartitionChange,
    RemoveTopic,
    ClearElr,
    Config,
    ProducerIds,
    NoOp,
    BeginTransaction,
    EndTransaction,
    AbortTransaction,
)

#: A record: an instance of one of these classes, or an Unknown.
Record = object

#: How many different ends of PartitionCreated records are remembered: a topic has many partitions,
#: and a cluster few sets of replicas.
RESTS_MAX = 1024
_RESTS: dict[tuple[Any, ...], bytes] = {}
_REST = tuple(each.name for each in fields(PartitionCreated))[2:]
_INT32 = Struct(">i")
_REST_AT = _INT32.size + 16

BY_API_KEY = {each.__api_key__: each for each in (*USED, *kept.KEPT)}


def write_record(record: Record) -> bytes:
    """Return the record in its frame."""
    if isinstance(record, Unknown):
        return record.frame
    marks: Any = type(record)
    # Varints, but all of ours fit in one byte.
    start = bytes((FRAME_VERSION, marks.__api_key__, marks.__version__))
    if isinstance(record, PartitionCreated):
        return start + _INT32.pack(record.partition_id) + record.topic_id.bytes + _rest_of(record)
    return start + write(record)


def _rest_of(record: PartitionCreated) -> bytes:
    """Return what stands behind the partition's number and its topic: mostly seen before."""
    key = tuple(getattr(record, name) for name in _REST)
    rest = _RESTS.get(key)
    if rest is None:
        if len(_RESTS) >= RESTS_MAX:
            _RESTS.clear()
        rest = _RESTS[key] = write(record)[_REST_AT:]
    return rest


def read_record(frame: bytes) -> Record:
    """Read the record in the frame; refuse one that cannot be understood."""
    frame_version, position = read_varint(frame, 0)
    if frame_version != FRAME_VERSION:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"Could not deserialize metadata record with frame version {frame_version}",
        )
    api_key, position = read_varint(frame, position)
    version, position = read_varint(frame, position)
    cls = BY_API_KEY.get(api_key)
    if cls is None:
        return Unknown(api_key, bytes(frame))
    if version > cls.__version__:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"A {cls.__name__} record of version {version} was written by a newer Kafka",
        )
    record, _ = reader(cls, version)(frame, position)
    return record


def new_id(random_bits: int) -> UUID:
    """Return a random id as Kafka makes them; it never prints with a dash in front."""
    made = UUID(int=random_bits, version=4)
    # The first base64 digit is the first six bits; 62 is the dash, which tools take for a flag.
    return UUID(int=made.int ^ (1 << 127)) if made.int >> 122 == 62 else made
