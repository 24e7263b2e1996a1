"""An image as the records that lead to it, from nothing.

The order is such that each record finds what it is about: features first, for they say how to
read the rest; a topic before its partitions.
"""

from collections.abc import Iterator
from uuid import UUID

from strom.metadata.image import METADATA_VERSION, Broker, Image, Partition
from strom.metadata.records import (
    Config,
    FeatureLevel,
    PartitionCreated,
    ProducerIds,
    Record,
    RegisterBroker,
    TopicCreated,
)

#: Nobody's: a snapshot keeps which ids were given out, not to whom.
_NO_BROKER = -1


def snapshot_records(image: Image) -> Iterator[Record]:
    """Yield the records that lead to the image."""
    yield from _features(image)
    yield from (controller for _, controller in sorted(image.controllers.items()))
    yield from (_broker_record(broker) for _, broker in sorted(image.brokers.items()))
    yield from _topics(image)
    yield from _configs(image)
    if image.next_producer_id:
        yield ProducerIds(
            broker_id=_NO_BROKER, broker_epoch=-1, next_producer_id=image.next_producer_id
        )
    yield from (image.others[identity] for identity in sorted(image.others, key=repr))
    yield from image.unknown


def _features(image: Image) -> Iterator[Record]:
    for name in sorted(image.features, key=lambda each: (each != METADATA_VERSION, each)):
        yield FeatureLevel(name=name, feature_level=image.features[name])


def _topics(image: Image) -> Iterator[Record]:
    for name, topic in sorted(image.topics_by_name.items()):
        yield TopicCreated(name=name, topic_id=topic.id)
        for index, partition in sorted(topic.partitions.items()):
            yield _partition_record(topic.id, index, partition)


def _configs(image: Image) -> Iterator[Record]:
    for (kind, name), config in sorted(image.configs.items()):
        for key, value in sorted(config.items()):
            yield Config(resource_type=kind, resource_name=name, name=key, value=value)


def _broker_record(broker: Broker) -> RegisterBroker:
    return RegisterBroker(
        broker_id=broker.id,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=broker.endpoints,
        features=broker.features,
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=broker.directories,
        cordoned_log_dirs=broker.cordoned_directories,
    )


def _partition_record(topic_id: UUID, index: int, partition: Partition) -> PartitionCreated:
    return PartitionCreated(
        partition_id=index,
        topic_id=topic_id,
        replicas=partition.replicas,
        isr=partition.isr,
        removing_replicas=partition.removing_replicas,
        adding_replicas=partition.adding_replicas,
        leader=partition.leader,
        leader_recovery_state=partition.leader_recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=partition.directories,
        eligible_leader_replicas=partition.eligible_leaders or None,
        last_known_elr=partition.last_known_leaders or None,
    )
