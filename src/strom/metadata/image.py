"""What the cluster is: an immutable image, the sum of all metadata records.

`applied` gives the image that a record leads to. It shares all that the record does not touch
with the one before (immutable maps), so a change among 10,000 partitions costs microseconds, and
whoever holds an image may keep it. Partitions that are alike share one value, in all images:
a cluster has many partitions, but few different sets of replicas.

A metadata transaction (Begin … End) needs no undo: the image from before its Begin is kept, and
an Abort goes back to it.
"""

from collections.abc import Callable, Container
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

from immutables import Map

from strom.metadata import kept, records
from strom.metadata.records import Endpoint, Record, SupportedFeature
from strom.metadata.topics import may_collide, unified

METADATA_VERSION = "metadata.version"

#: How many values of partitions are remembered to be shared; those before stay as they are.
SHARED_MAX = 4096

#: A resource that has configs: its type (Kafka's number) and its name.
Resource = tuple[int, str]


class Partition(NamedTuple):
    """Where a partition's replicas are, and which of them leads."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    directories: tuple[UUID | None, ...]
    leader_recovery_state: int = 0
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    eligible_leaders: tuple[int, ...] = ()
    last_known_leaders: tuple[int, ...] = ()

    def directory_of(self, broker_id: int) -> UUID | None:
        """Return the directory that holds the broker's replica; None if it has none here."""
        if broker_id not in self.replicas:
            return None
        return self.directories[self.replicas.index(broker_id)]


@lru_cache(SHARED_MAX)
def shared(partition: Partition) -> Partition:
    """Return an equal value that others have already, if there is one."""
    return partition


class Topic(NamedTuple):
    """A topic with its partitions; they are numbered from 0 without gaps."""

    name: str
    id: UUID
    partitions: Map[int, Partition]


class Broker(NamedTuple):
    """A registered broker. A fenced one serves nobody and leads nothing."""

    id: int
    epoch: int
    incarnation_id: UUID
    endpoints: tuple[Endpoint, ...]
    features: tuple[SupportedFeature, ...]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    directories: tuple[UUID, ...]
    cordoned_directories: tuple[UUID, ...] | None

    @property
    def is_active(self) -> bool:
        """Whether it can be given partitions and can lead them."""
        return not self.fenced and not self.in_controlled_shutdown

    def has_online(self, directory: UUID | None) -> bool:
        """Whether it uses the directory; one that is not known yet counts as used."""
        return directory in (None, records.DIRECTORY_UNASSIGNED) or directory in self.directories


class Image(NamedTuple):
    """The cluster at one moment."""

    topics_by_id: Map[UUID, Topic] = Map()
    topics_by_name: Map[str, Topic] = Map()
    #: The names that could collide with others, by what they would have in common.
    names_alike: Map[str, tuple[str, ...]] = Map()
    brokers: Map[int, Broker] = Map()
    controllers: Map[int, records.RegisterController] = Map()
    configs: Map[Resource, Map[str, str]] = Map()
    features: Map[str, int] = Map()
    next_producer_id: int = 0
    #: Records about what Strom does not act on yet, by what they are about.
    others: Map[kept.Identity, Record] = Map()
    #: Records of types that a newer Kafka has, in their order.
    unknown: tuple[records.Unknown, ...] = ()
    #: The image to go back to if the metadata transaction under way is aborted.
    before_transaction: "Image | None" = None
    #: The offset behind the last record in it, and that record's leader epoch.
    end_offset: int = 0
    leader_epoch: int = 0

    @property
    def metadata_version(self) -> int:
        """The level that the cluster's records are written for; 0 before there is one."""
        return self.features.get(METADATA_VERSION, 0)

    def partition(self, topic_name: str, index: int) -> Partition | None:
        """Return the partition, if there is one."""
        topic = self.topics_by_name.get(topic_name)
        return None if topic is None else topic.partitions.get(index)

    def offline_replicas(self, partition: Partition, reachable: Container[int]) -> tuple[int, ...]:
        """Return the partition's replicas on brokers out of reach, or in lost directories."""
        brokers = self.brokers
        return tuple(
            each
            for each, directory in zip(partition.replicas, partition.directories, strict=True)
            if each not in reachable or not brokers[each].has_online(directory)
        )

    def config(self, resource: Resource) -> Map[str, str]:
        """Return what is set for the resource itself."""
        return self.configs.get(resource, _NOTHING_SET)


_NOTHING_SET: Map[str, str] = Map()


def applied(image: Image, record: Record) -> Image:
    """Return the image that the record leads to."""
    apply = _APPLY.get(type(record))
    return _keep(image, record) if apply is None else apply(image, record)


# How each record changes the image.


def _create_topic(image: Image, record: records.TopicCreated) -> Image:
    name = record.name
    if may_collide(name):
        alike = (*image.names_alike.get(unified(name), ()), name)
        image = image._replace(names_alike=image.names_alike.set(unified(name), alike))
    return _with_topic(image, Topic(name, record.topic_id, Map()))


def _with_topic(image: Image, topic: Topic) -> Image:
    return image._replace(
        topics_by_id=image.topics_by_id.set(topic.id, topic),
        topics_by_name=image.topics_by_name.set(topic.name, topic),
    )


def _create_partition(image: Image, record: records.PartitionCreated) -> Image:
    topic = image.topics_by_id[record.topic_id]
    partition = Partition(
        replicas=record.replicas,
        isr=record.isr,
        leader=record.leader,
        leader_epoch=record.leader_epoch,
        partition_epoch=record.partition_epoch,
        directories=record.directories or (records.DIRECTORY_UNASSIGNED,) * len(record.replicas),
        leader_recovery_state=record.leader_recovery_state,
        removing_replicas=record.removing_replicas,
        adding_replicas=record.adding_replicas,
        eligible_leaders=record.eligible_leader_replicas or (),
        last_known_leaders=record.last_known_elr or (),
    )
    return _with_partition(image, topic, record.partition_id, partition)


def _with_partition(image: Image, topic: Topic, index: int, partition: Partition) -> Image:
    partitions = topic.partitions.set(index, shared(partition))
    return _with_topic(image, topic._replace(partitions=partitions))


def _change_partition(image: Image, record: records.PartitionChange) -> Image:
    topic = image.topics_by_id[record.topic_id]
    before = topic.partitions[record.partition_id]
    has_leader = record.leader != records.NO_LEADER_CHANGE
    after = Partition(
        replicas=_or(record.replicas, before.replicas),
        isr=_or(record.isr, before.isr),
        leader=record.leader if has_leader else before.leader,
        # Whoever is named leads anew, also if it is who led before.
        leader_epoch=before.leader_epoch + has_leader,
        partition_epoch=before.partition_epoch + 1,
        directories=_directories_after(before, record),
        leader_recovery_state=before.leader_recovery_state
        if record.leader_recovery_state < 0
        else record.leader_recovery_state,
        removing_replicas=_or(record.removing_replicas, before.removing_replicas),
        adding_replicas=_or(record.adding_replicas, before.adding_replicas),
        eligible_leaders=_or(record.eligible_leader_replicas, before.eligible_leaders),
        last_known_leaders=_or(record.last_known_elr, before.last_known_leaders),
    )
    return _with_partition(image, topic, record.partition_id, after)


def _or(changed: tuple[int, ...] | None, before: tuple[int, ...]) -> tuple[int, ...]:
    return before if changed is None else changed


def _directories_after(
    before: Partition, record: records.PartitionChange
) -> tuple[UUID | None, ...]:
    if record.directories is not None:
        return record.directories
    if record.replicas is None:
        return before.directories
    known = dict(zip(before.replicas, before.directories, strict=True))
    return tuple(known.get(each, records.DIRECTORY_UNASSIGNED) for each in record.replicas)


def _remove_topic(image: Image, record: records.RemoveTopic) -> Image:
    topic = image.topics_by_id[record.topic_id]
    resource = (records.TOPIC_RESOURCE, topic.name)
    configs = image.configs.delete(resource) if resource in image.configs else image.configs
    return image._replace(
        topics_by_id=image.topics_by_id.delete(topic.id),
        topics_by_name=image.topics_by_name.delete(topic.name),
        names_alike=_names_without(image.names_alike, topic.name),
        configs=configs,
    )


def _names_without(names_alike: Map[str, tuple[str, ...]], name: str) -> Map[str, tuple[str, ...]]:
    if not may_collide(name):
        return names_alike
    left = tuple(each for each in names_alike[unified(name)] if each != name)
    return names_alike.set(unified(name), left) if left else names_alike.delete(unified(name))


def topics_called(image: Image, name: str) -> tuple[Topic, ...]:
    """Return the topic of that name; all topics for the empty name."""
    if not name:
        return tuple(image.topics_by_id.values())
    topic = image.topics_by_name.get(name)
    return () if topic is None else (topic,)


def _clear_eligible_leaders(image: Image, record: records.ClearElr) -> Image:
    for topic in topics_called(image, record.topic_name):
        for index, partition in topic.partitions.items():
            if partition.eligible_leaders or partition.last_known_leaders:
                cleared = partition._replace(
                    eligible_leaders=(),
                    last_known_leaders=(),
                    partition_epoch=partition.partition_epoch + 1,
                )
                image = _with_partition(image, image.topics_by_id[topic.id], index, cleared)
    return image


def _register_broker(image: Image, record: records.RegisterBroker) -> Image:
    broker = Broker(
        id=record.broker_id,
        epoch=record.broker_epoch,
        incarnation_id=record.incarnation_id,
        endpoints=record.end_points,
        features=record.features,
        rack=record.rack,
        fenced=record.fenced,
        in_controlled_shutdown=record.in_controlled_shutdown,
        directories=record.log_dirs,
        cordoned_directories=record.cordoned_log_dirs,
    )
    return image._replace(brokers=image.brokers.set(broker.id, broker))


def _change_broker(image: Image, record: records.BrokerRegistrationChange) -> Image:
    before = image.brokers[record.broker_id]
    cordoned = record.cordoned_log_dirs
    after = before._replace(
        fenced=before.fenced if record.fenced == 0 else record.fenced > 0,
        in_controlled_shutdown=before.in_controlled_shutdown or record.in_controlled_shutdown > 0,
        directories=record.log_dirs or before.directories,
        cordoned_directories=before.cordoned_directories if cordoned is None else cordoned,
    )
    return image._replace(brokers=image.brokers.set(after.id, after))


def _fence_broker(image: Image, record: records.FenceBroker) -> Image:
    fenced = image.brokers[record.id]._replace(fenced=True)
    return image._replace(brokers=image.brokers.set(record.id, fenced))


def _unfence_broker(image: Image, record: records.UnfenceBroker) -> Image:
    unfenced = image.brokers[record.id]._replace(fenced=False)
    return image._replace(brokers=image.brokers.set(record.id, unfenced))


def _unregister_broker(image: Image, record: records.UnregisterBroker) -> Image:
    return image._replace(brokers=image.brokers.delete(record.broker_id))


def _register_controller(image: Image, record: records.RegisterController) -> Image:
    return image._replace(controllers=image.controllers.set(record.controller_id, record))


def _set_config(image: Image, record: records.Config) -> Image:
    resource = (record.resource_type, record.resource_name)
    before = image.configs.get(resource, _NOTHING_SET)
    if record.value is not None:
        after = before.set(record.name, record.value)
        return image._replace(configs=image.configs.set(resource, after))
    if record.name not in before:
        return image
    after = before.delete(record.name)
    # A resource with nothing set is as one that never had anything.
    configs = image.configs.set(resource, after) if after else image.configs.delete(resource)
    return image._replace(configs=configs)


def _set_feature(image: Image, record: records.FeatureLevel) -> Image:
    if record.feature_level:
        features = image.features.set(record.name, record.feature_level)
    else:
        features = (
            image.features.delete(record.name)
            if record.name in image.features
            else (image.features)
        )
    return image._replace(features=features)


def _allocate_producer_ids(image: Image, record: records.ProducerIds) -> Image:
    return image._replace(next_producer_id=record.next_producer_id)


def _begin(image: Image, _: records.BeginTransaction) -> Image:
    return image._replace(before_transaction=image)


def _end(image: Image, _: records.EndTransaction) -> Image:
    return image._replace(before_transaction=None)


def _abort(image: Image, _: records.AbortTransaction) -> Image:
    return image.before_transaction or image


def _do_nothing(image: Image, _: records.NoOp) -> Image:
    return image


def _keep(image: Image, record: Record) -> Image:
    if isinstance(record, records.Unknown):
        return image._replace(unknown=(*image.unknown, record))
    identity = kept.identity(record)
    if not kept.is_removal(record):
        return image._replace(others=image.others.set(identity, record))
    if identity not in image.others:
        return image
    return image._replace(others=image.others.delete(identity))


_APPLY: dict[type, Callable[[Image, Any], Image]] = {
    records.TopicCreated: _create_topic,
    records.PartitionCreated: _create_partition,
    records.PartitionChange: _change_partition,
    records.RemoveTopic: _remove_topic,
    records.ClearElr: _clear_eligible_leaders,
    records.RegisterBroker: _register_broker,
    records.BrokerRegistrationChange: _change_broker,
    records.FenceBroker: _fence_broker,
    records.UnfenceBroker: _unfence_broker,
    records.UnregisterBroker: _unregister_broker,
    records.RegisterController: _register_controller,
    records.Config: _set_config,
    records.FeatureLevel: _set_feature,
    records.ProducerIds: _allocate_producer_ids,
    records.BeginTransaction: _begin,
    records.EndTransaction: _end,
    records.AbortTransaction: _abort,
    records.NoOp: _do_nothing,
}
