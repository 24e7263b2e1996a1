"""Decisions about brokers: register, let serve, fence, let go; and their directories.

    register ──▶ fenced ──heartbeat──▶ active ──wants to stop──▶ in controlled shutdown
                   ▲                     │
                   └──session lost───────┘            unregister: from any state

A broker that comes back under the epoch of its clean stop has lost nothing: what it led it leads
on. Any other return is a fall: others take over what they can lead, and the rest it leads
under new leader epochs, so that clients look for what may be missing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from strom.metadata.image import METADATA_VERSION, Broker, Image, applied
from strom.metadata.outcome import Refusal, attempt
from strom.metadata.partitions import assigned, elect, elections, is_live, is_reserved
from strom.metadata.records import (
    FENCE,
    NO_LEADER,
    SHUT_DOWN,
    UNFENCE,
    BrokerRegistrationChange,
    Endpoint,
    PartitionChange,
    ProducerIds,
    Record,
    RegisterBroker,
    SupportedFeature,
    UnregisterBroker,
)
from strom.replicated.machine import Decision
from strom.wire.errors import ErrorCode, KafkaError

NO_EPOCH = -1
#: How many ids a broker gets at once to give to its producers.
PRODUCER_ID_BLOCK = 1000
_PRODUCER_ID_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Registration:
    """What a broker says about itself when it starts."""

    broker_id: int
    cluster_id: str
    incarnation_id: UUID
    endpoints: tuple[Endpoint, ...]
    features: tuple[SupportedFeature, ...]
    rack: str | None = None
    directories: tuple[UUID, ...] = ()
    #: The epoch that it noted when it last stopped cleanly.
    previous_epoch: int = NO_EPOCH


def register_broker(
    image: Image,
    registration: Registration,
    *,
    cluster_id: str,
    broker_epoch: int,
    has_session: bool,
) -> Decision[Record, int]:
    """Take the broker in, fenced; the reply is its epoch.

    The epoch must be above all earlier ones: the log's end offset is. `has_session` says whether
    an earlier incarnation still sends heartbeats.
    """
    _check_registration(image, registration, cluster_id)
    before = image.brokers.get(registration.broker_id)
    is_same = before is not None and before.incarnation_id == registration.incarnation_id
    if before is not None and not is_same and has_session:
        raise KafkaError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            "Another broker is registered with that broker id. If the broker was recently "
            "restarted this should self-resolve once the heartbeat manager expires the broker's "
            "session.",
        )
    epoch = before.epoch if before is not None and is_same else broker_epoch
    record = RegisterBroker(
        broker_id=registration.broker_id,
        incarnation_id=registration.incarnation_id,
        broker_epoch=epoch,
        end_points=registration.endpoints,
        features=registration.features,
        rack=registration.rack,
        fenced=before.fenced if before is not None and is_same else True,
        log_dirs=tuple(sorted(registration.directories)),
    )
    has_fallen = before is not None and not is_same and before.epoch != registration.previous_epoch
    after = applied(image, record)
    fallen = frozenset((record.broker_id,)) if has_fallen else frozenset()
    changes = elections(after, is_live(after), record.broker_id, fallen=fallen) if fallen else ()
    return Decision((record, *changes), epoch)


def _check_registration(image: Image, registration: Registration, cluster_id: str) -> None:
    if registration.cluster_id != cluster_id:
        raise KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"Expected cluster ID {cluster_id}, but got cluster ID {registration.cluster_id}",
        )
    _check_directories(image, registration)
    supported = {each.name: each for each in registration.features}
    if METADATA_VERSION not in supported:
        raise KafkaError(
            ErrorCode.INVALID_REGISTRATION, "Request features do not contain 'metadata.version'"
        )
    for name, level in image.features.items():
        given = supported.get(name)
        low, high = (
            (0, 0) if given is None else (given.min_supported_version, given.max_supported_version)
        )
        if not low <= level <= high:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Unable to register because the broker does not support finalized version {level} "
                f"of {name}. The broker wants a version between {low} and {high}, inclusive.",
            )


def _check_directories(image: Image, registration: Registration) -> None:
    directories = registration.directories
    if not directories:
        raise _bad_request("No directories specified in request")
    if any(is_reserved(each) for each in directories):
        raise _bad_request("Reserved directory ID in request")
    if len(set(directories)) < len(directories):
        raise _bad_request("Duplicate directory ID in request")
    for other in image.brokers.values():
        shared = set(other.directories) & set(directories)
        if other.id != registration.broker_id and shared:
            raise _bad_request(
                f"Broker {other.id} is already registered with directory {min(shared)}"
            )


def _bad_request(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """What a registered broker says about itself again and again."""

    broker_id: int
    broker_epoch: int
    want_fence: bool = False
    want_shut_down: bool = False
    offline_directories: tuple[UUID, ...] = ()
    #: None to leave them as they are.
    cordoned_directories: tuple[UUID, ...] | None = None


@dataclass(frozen=True, slots=True)
class Pulse:
    """What the controller answers to a heartbeat."""

    is_fenced: bool
    should_shut_down: bool


def heartbeat(image: Image, beat: Heartbeat) -> Decision[Record, Pulse]:
    """Let the broker serve, fence it, or move its leaders away, as it wishes."""
    broker = registered(image, beat.broker_id, beat.broker_epoch)
    change = BrokerRegistrationChange(
        broker_id=broker.id,
        broker_epoch=broker.epoch,
        fenced=_fencing(broker, beat),
        in_controlled_shutdown=SHUT_DOWN
        if beat.want_shut_down and not broker.in_controlled_shutdown
        else 0,
        log_dirs=_remaining(broker, beat),
        cordoned_log_dirs=_cordoned(broker, beat),
    )
    if change == BrokerRegistrationChange(broker_id=broker.id, broker_epoch=broker.epoch):
        return Decision((), Pulse(broker.fenced, _is_idle(image, broker.id, beat)))
    after = applied(image, change)
    moved = tuple(elections(after, is_live(after), broker.id))
    if beat.want_shut_down:
        # What nobody else can lead stays with it until it is gone.
        moved = tuple(each for each in moved if each.leader != NO_LEADER)
    for each in moved:
        after = applied(after, each)
    pulse = Pulse(after.brokers[broker.id].fenced, _is_idle(after, broker.id, beat))
    return Decision((change, *moved), pulse)


def _fencing(broker: Broker, beat: Heartbeat) -> int:
    if beat.want_fence and not broker.fenced:
        return FENCE
    if not beat.want_fence and not beat.want_shut_down and broker.fenced:
        return UNFENCE
    return 0


def _remaining(broker: Broker, beat: Heartbeat) -> tuple[UUID, ...]:
    """Return the directories that are left; nothing if none of them was lost."""
    left = tuple(each for each in broker.directories if each not in beat.offline_directories)
    return () if left == broker.directories else left


def _cordoned(broker: Broker, beat: Heartbeat) -> tuple[UUID, ...] | None:
    """Return the directories that get no new partitions; None if they are those of before."""
    known = broker.cordoned_directories or ()
    return None if beat.cordoned_directories == known else beat.cordoned_directories


def _is_idle(image: Image, broker_id: int, beat: Heartbeat) -> bool:
    """Whether a broker that wants to stop leads nothing that another one could lead."""
    if not beat.want_shut_down:
        return False
    changes = elections(image, is_live(image), broker_id)
    return all(each.leader == NO_LEADER for each in changes)


def registered(image: Image, broker_id: int, broker_epoch: int) -> Broker:
    """Return the broker, if it is the one that is registered."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            f"No broker registration found for broker id {broker_id}",
        )
    if broker.epoch != broker_epoch:
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"Expected broker epoch {broker.epoch}, but got broker epoch {broker_epoch}",
        )
    return broker


def fence_broker(image: Image, broker_id: int) -> Decision[Record, None]:
    """Take the lead and the in-sync places from a broker that was not heard of for too long."""
    broker = image.brokers.get(broker_id)
    if broker is None or broker.fenced:
        return Decision((), None)
    beat = Heartbeat(broker_id, broker.epoch, want_fence=True)
    return Decision(heartbeat(image, beat).records, None)


def unregister_broker(image: Image, broker_id: int) -> Decision[Record, None]:
    """Forget the broker; what it led is led by others."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            f"Broker ID {broker_id} is not currently registered",
        )
    record = UnregisterBroker(broker_id=broker_id, broker_epoch=broker.epoch)
    after = applied(image, record)
    return Decision((record, *elections(after, is_live(after), broker_id)), None)


def allocate_producer_ids(
    image: Image, broker_id: int, broker_epoch: int
) -> Decision[Record, range]:
    """Give the broker a block of producer ids that nobody else has or had."""
    registered(image, broker_id, broker_epoch)
    first = image.next_producer_id
    after = first + PRODUCER_ID_BLOCK
    if after > _PRODUCER_ID_MAX:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "Exhausted all producerIds as the next block's end producerId has exceeded the int64 "
            "type limit",
        )
    record = ProducerIds(broker_id=broker_id, broker_epoch=broker_epoch, next_producer_id=after)
    return Decision((record,), range(first, after))


Place = tuple[UUID, int]


def assign_directories(
    image: Image, broker_id: int, broker_epoch: int, asked: Sequence[tuple[UUID, Place]]
) -> Decision[Record, Mapping[tuple[UUID, Place], Refusal | None]]:
    """Note in which directory the broker has which partition."""
    registered(image, broker_id, broker_epoch)
    reply: dict[tuple[UUID, Place], Refusal | None] = {}
    records: list[Record] = []
    for directory, place in asked:
        outcome = attempt(lambda at=directory, of=place: _assign(image, broker_id, at, of))  # type: ignore[misc]
        reply[directory, place] = outcome if isinstance(outcome, Refusal) else None
        if not isinstance(outcome, Refusal):
            records.extend(outcome)
    return Decision(tuple(records), reply)


def _assign(image: Image, broker_id: int, directory: UUID, place: Place) -> tuple[Record, ...]:
    topic_id, index = place
    topic = image.topics_by_id.get(topic_id)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    partition = topic.partitions.get(index)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if broker_id not in partition.replicas:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    directories = assigned(partition, broker_id, directory)
    if directories == partition.directories:
        return ()
    record = PartitionChange(partition_id=index, topic_id=topic_id, directories=directories)
    after = applied(image, record)
    # The directory may have gone offline since.
    change = elect(after.topics_by_id[topic_id], index, is_live(after))
    return (record,) if change is None else (record, change)
