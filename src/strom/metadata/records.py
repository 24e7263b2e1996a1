"""The records of the metadata log, as Kafka 4.3 has them, and the frame around each.

    frame = frame version (1) | api key | version | body          the first three are varints

Here are the records that Strom acts on; `kept.py` has those it only carries. A record of an
api key that this Kafka does not know is an Unknown: its bytes are kept as they are, so that it
outlives replay and snapshots. An unknown *version* of a known record is refused: its
meaning would be guessed.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from strom.metadata import kept
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import read_message, write_message
from strom.wire.primitives import read_varint
from strom.wire.schema import message, of

FRAME_VERSION = 1

NO_LEADER = -1
NO_LEADER_CHANGE = -2

#: Directory ids with a meaning of their own (KIP-858); of the first hundred none is ever given
#: to a directory.
#: The id of zeros, of a partition not yet looked at since ZooKeeper, is None.
DIRECTORY_UNASSIGNED = UUID(int=1)
DIRECTORY_LOST = UUID(int=2)
RESERVED_IDS = 100

#: The values of BrokerRegistrationChange's tri-state fields.
UNFENCE, UNCHANGED, FENCE = -1, 0, 1
SHUT_DOWN = 1

BROKER_RESOURCE = 4
TOPIC_RESOURCE = 2


@message()
class Endpoint:
    """Where a node listens."""

    name: str = of("string")
    host: str = of("string")
    port: int = of("uint16")
    security_protocol: int = of("int16")


@message()
class SupportedFeature:
    """The levels of a feature that a node can work at."""

    name: str = of("string")
    min_supported_version: int = of("int16")
    max_supported_version: int = of("int16")


@message(api_key=12)
class FeatureLevel:
    """The cluster works at this level of the feature; 0 removes it."""

    name: str = of("string")
    feature_level: int = of("int16")


@message(api_key=27)
class RegisterController:
    """A controller with where to reach it."""

    controller_id: int = of("int32")
    incarnation_id: UUID = of("uuid")
    zk_migration_ready: bool = of("bool")
    end_points: tuple[Endpoint, ...] = of("struct")
    features: tuple[SupportedFeature, ...] = of("struct")


@message(api_key=0, written=4)
class RegisterBroker:
    """A broker, or a new life of one: the incarnation differs, the epoch is higher."""

    broker_id: int = of("int32")
    is_migrating_zk_broker: bool = of("bool", since=2, default=False)
    incarnation_id: UUID = of("uuid")
    broker_epoch: int = of("int64")
    end_points: tuple[Endpoint, ...] = of("struct")
    features: tuple[SupportedFeature, ...] = of("struct")
    rack: str | None = of("string")
    fenced: bool = of("bool", default=True)
    in_controlled_shutdown: bool = of("bool", since=1, default=False)
    log_dirs: tuple[UUID, ...] = of("uuid", tag=0, since=3, default=())
    cordoned_log_dirs: tuple[UUID, ...] | None = of("uuid", tag=1, since=4, default=None)


@message(api_key=17, written=3)
class BrokerRegistrationChange:
    """What changed about a registered broker; a default says "not this"."""

    broker_id: int = of("int32")
    broker_epoch: int = of("int64")
    fenced: int = of("int8", tag=0, default=UNCHANGED)
    in_controlled_shutdown: int = of("int8", tag=1, since=1, default=0)
    log_dirs: tuple[UUID, ...] = of("uuid", tag=2, since=2, default=())
    cordoned_log_dirs: tuple[UUID, ...] | None = of("uuid", tag=3, since=3, default=None)


@message(api_key=7)
class FenceBroker:
    """The old form of a change that fences."""

    id: int = of("int32")
    epoch: int = of("int64")


@message(api_key=8)
class UnfenceBroker:
    """The old form of a change that lifts the fence."""

    id: int = of("int32")
    epoch: int = of("int64")


@message(api_key=1)
class UnregisterBroker:
    """The broker is no longer part of the cluster."""

    broker_id: int = of("int32")
    broker_epoch: int = of("int64")


@message(api_key=2)
class TopicCreated:
    """A topic's name and id; its partitions follow, each a record. (Kafka: TopicRecord)."""

    name: str = of("string")
    topic_id: UUID = of("uuid")


@message(api_key=3, written=2)
class PartitionCreated:
    """All about one partition. (Kafka: PartitionRecord)."""

    partition_id: int = of("int32", default=-1)
    topic_id: UUID = of("uuid")
    replicas: tuple[int, ...] = of("int32")
    isr: tuple[int, ...] = of("int32")
    removing_replicas: tuple[int, ...] = of("int32", default=())
    adding_replicas: tuple[int, ...] = of("int32", default=())
    leader: int = of("int32", default=NO_LEADER)
    leader_recovery_state: int = of("int8", tag=0, default=0)
    leader_epoch: int = of("int32", default=-1)
    partition_epoch: int = of("int32", default=-1)
    directories: tuple[UUID | None, ...] = of("uuid", since=1, default=())
    eligible_leader_replicas: tuple[int, ...] | None = of("int32", tag=1, since=2, default=None)
    last_known_elr: tuple[int, ...] | None = of("int32", tag=2, since=2, default=None)


@message(api_key=5, written=2)
class PartitionChange:
    """What changed about a partition; None (for the leader -2) says "not this"."""

    partition_id: int = of("int32", default=-1)
    topic_id: UUID = of("uuid")
    isr: tuple[int, ...] | None = of("int32", tag=0, default=None)
    leader: int = of("int32", tag=1, default=NO_LEADER_CHANGE)
    replicas: tuple[int, ...] | None = of("int32", tag=2, default=None)
    removing_replicas: tuple[int, ...] | None = of("int32", tag=3, default=None)
    adding_replicas: tuple[int, ...] | None = of("int32", tag=4, default=None)
    leader_recovery_state: int = of("int8", tag=5, default=-1)
    directories: tuple[UUID | None, ...] | None = of("uuid", tag=8, since=1, default=None)
    eligible_leader_replicas: tuple[int, ...] | None = of("int32", tag=6, since=2, default=None)
    last_known_elr: tuple[int, ...] | None = of("int32", tag=7, since=2, default=None)


@message(api_key=9)
class RemoveTopic:
    """The topic and its partitions are gone, and so are its configs."""

    topic_id: UUID = of("uuid")


@message(api_key=28)
class ClearElr:
    """Forget the eligible leaders of a topic's partitions; of all topics if the name is empty."""

    topic_name: str = of("string")


@message(api_key=4)
class Config:
    """One setting of a resource; None takes it back."""

    resource_type: int = of("int8")
    resource_name: str = of("string")
    name: str = of("string")
    value: str | None = of("string")


@message(api_key=15)
class ProducerIds:
    """A broker got the producer ids below this one."""

    broker_id: int = of("int32")
    broker_epoch: int = of("int64", default=-1)
    next_producer_id: int = of("int64")


@message(api_key=20)
class NoOp:
    """Moves the log on, so that all can see how far behind they are."""


@message(api_key=23)
class BeginTransaction:
    """What follows counts only if the transaction ends."""

    name: str | None = of("string", tag=0, default=None)


@message(api_key=24)
class EndTransaction:
    """The transaction counts."""


@message(api_key=25)
class AbortTransaction:
    """The transaction never was."""

    reason: str | None = of("string", tag=0, default=None)


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

BY_API_KEY = {each.__api_key__: each for each in (*USED, *kept.KEPT)}


def write_record(record: Record) -> bytes:
    """Return the record in its frame."""
    if isinstance(record, Unknown):
        return record.frame
    marks: Any = type(record)
    # Varints, but all of ours fit in one byte.
    start = bytes((FRAME_VERSION, marks.__api_key__, marks.__version__))
    return start + write_message(record)


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
    return read_message(cls, version, frame, position)


def new_id(random_bits: int) -> UUID:
    """Return a random id as Kafka makes them; it never prints with a dash in front."""
    made = UUID(int=random_bits, version=4)
    # The first base64 digit is the first six bits; 62 is the dash, which tools take for a flag.
    return UUID(int=made.int ^ (1 << 127)) if made.int >> 122 == 62 else made
