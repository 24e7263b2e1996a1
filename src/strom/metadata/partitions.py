"""Who leads a partition when brokers and directories come and go.

A replica is *live* if its broker is active and its directory is not known to be offline. The
leader is the first live replica in the in-sync set, in the order of the assignment; there
is none if no in-sync replica is live. A replica that is no longer live leaves the in-sync set,
unless it would be the last: that one has all the data and gets the lead back when it returns.

Kafka lets the in-sync set become empty and remembers who was in it last (KIP-966); where it
left a partition so, one of those leads again.
"""

from collections.abc import Callable, Iterator
from uuid import UUID

from strom.metadata.image import Broker, Image, Partition, Topic
from strom.metadata.records import (
    DIRECTORY_UNASSIGNED,
    NO_LEADER,
    NO_LEADER_CHANGE,
    RESERVED_IDS,
    PartitionChange,
    PartitionCreated,
)

IsLive = Callable[[int, UUID | None], bool]


def is_live(image: Image) -> IsLive:
    """Return the judgement of replicas by what the image says about their brokers."""
    return lambda broker_id, directory: _can_serve(image.brokers.get(broker_id), directory)


def _can_serve(broker: Broker | None, directory: UUID | None) -> bool:
    return broker is not None and broker.is_active and broker.has_online(directory)


def default_directory(broker: Broker) -> UUID:
    """Return where a new replica goes: the only directory, or one the broker is to choose."""
    cordoned = broker.cordoned_directories or ()
    usable = [each for each in broker.directories if each not in cordoned]
    return usable[0] if len(usable) == 1 else DIRECTORY_UNASSIGNED


def new_partition(
    image: Image, topic_id: UUID, index: int, replicas: tuple[int, ...]
) -> PartitionCreated:
    """Return the record of a partition that is led by the first of its active replicas."""
    brokers = image.brokers
    isr = tuple(each for each in replicas if brokers[each].is_active)
    return PartitionCreated(
        partition_id=index,
        topic_id=topic_id,
        replicas=replicas,
        isr=isr,
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=tuple(default_directory(brokers[each]) for each in replicas),
    )


def elect(
    topic: Topic, index: int, live: IsLive, *, fallen: frozenset[int] = frozenset()
) -> PartitionChange | None:
    """Return what must change so that a live replica leads; None if nothing must.

    Those who have `fallen` may have lost some of what they had. What nobody else can lead they
    keep, but under a new epoch, so that clients look for what may be missing.
    """
    partition = topic.partitions[index]
    serving = [
        each
        for each, directory in zip(partition.replicas, partition.directories, strict=True)
        if live(each, directory)
    ]
    if not partition.isr:
        return _elect_from_memory(topic.id, index, partition, serving)
    isr = tuple(each for each in partition.isr if each in serving) or partition.isr[:1]
    leader = _next_leader(partition, isr, serving)
    if leader == NO_LEADER and partition.leader in fallen:
        leader = partition.leader
    must_lead_anew = leader != partition.leader or leader in fallen
    if not must_lead_anew and isr == partition.isr:
        return None
    return PartitionChange(
        partition_id=index,
        topic_id=topic.id,
        isr=None if isr == partition.isr else isr,
        leader=leader if must_lead_anew else NO_LEADER_CHANGE,
    )


def _elect_from_memory(
    topic_id: UUID, index: int, partition: Partition, serving: list[int]
) -> PartitionChange | None:
    remembered = (*partition.eligible_leaders, *partition.last_known_leaders)
    leader = next((each for each in remembered if each in serving), None)
    if leader is None:
        return None
    return PartitionChange(
        partition_id=index,
        topic_id=topic_id,
        isr=(leader,),
        leader=leader,
        eligible_leader_replicas=tuple(
            each for each in partition.eligible_leaders if each != leader
        ),
        last_known_elr=(),
    )


def _next_leader(partition: Partition, isr: tuple[int, ...], serving: list[int]) -> int:
    if partition.leader in isr and partition.leader in serving:
        return partition.leader
    return next((each for each in serving if each in isr), NO_LEADER)


def elections(
    image: Image, live: IsLive, broker_id: int, *, fallen: frozenset[int] = frozenset()
) -> Iterator[PartitionChange]:
    """Yield the changes that a broker's new state makes necessary, in a fixed order."""
    for name in sorted(image.topics_by_name):
        topic = image.topics_by_name[name]
        for index in sorted(topic.partitions):
            if broker_id in topic.partitions[index].replicas:
                change = elect(topic, index, live, fallen=fallen)
                if change is not None:
                    yield change


def assigned(partition: Partition, broker_id: int, directory: UUID) -> tuple[UUID | None, ...]:
    """Return the partition's directories with the broker's replaced."""
    return tuple(
        directory if replica == broker_id else before
        for replica, before in zip(partition.replicas, partition.directories, strict=True)
    )


def is_reserved(directory: UUID) -> bool:
    """Whether the id means something else than a directory."""
    return directory.int < RESERVED_IDS
