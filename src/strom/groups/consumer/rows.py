"""The records of a consumer group, as Kafka writes them. What is written is sorted.

The order of the records of a change matters to who reads the log, here and in Kafka: a member's
assignments go before the member, and all that a group has goes before the group.
"""

from collections.abc import Iterator
from uuid import UUID

from strom.groups.consumer.assignors.subscriber import Partitions
from strom.groups.consumer.group import ConsumerGroup, Resolved
from strom.groups.consumer.member import Held, Member
from strom.groups.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicPartition,
    TopicPartitions,
)
from strom.replicated.machine import KeyValue


def group_row(group_id: str, epoch: int, metadata_hash: int) -> KeyValue:
    """Say that the group has come to an epoch, for topics of that hash."""
    return KeyValue(
        ConsumerGroupMetadataKey(group_id=group_id),
        ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def member_row(group_id: str, member: Member) -> KeyValue:
    """Say who the member is and what it subscribes to."""
    return KeyValue(
        ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.id),
        ConsumerGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=tuple(sorted(member.topic_names)),
            subscribed_topic_regex=member.pattern,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            server_assignor=member.assignor,
            classic_member_metadata=member.classic,
        ),
    )


def current_row(group_id: str, member: Member) -> KeyValue:
    """Say what the member has and how far it is."""
    return KeyValue(
        ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.id),
        ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=int(member.state),
            assigned_partitions=_write_held(member.assigned),
            partitions_pending_revocation=_write_held(member.revoking),
        ),
    )


def _write_held(held: Held) -> tuple[TopicPartitions, ...]:
    rows = []
    for topic in sorted(held, key=_by_number):
        epochs = dict(sorted(held[topic].items()))
        rows.append(
            TopicPartitions(
                topic_id=topic,
                partitions=tuple(epochs),
                assignment_epochs=tuple(epochs.values()),
            )
        )
    return tuple(rows)


def target_row(group_id: str, member_id: str, target: Partitions) -> KeyValue:
    """Say what a member shall have."""
    return KeyValue(
        ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=tuple(
                TopicPartition(topic_id=topic, partitions=tuple(sorted(target[topic])))
                for topic in sorted(target, key=_by_number)
            )
        ),
    )


def target_epoch_row(group_id: str, epoch: int, at_ms: int) -> KeyValue:
    """Say that what members shall have is that of the epoch."""
    return KeyValue(
        ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        ConsumerGroupTargetAssignmentMetadataValue(
            assignment_epoch=epoch, assignment_timestamp=at_ms
        ),
    )


def pattern_row(group_id: str, pattern: str, resolved: Resolved) -> KeyValue:
    """Say what topics a pattern stands for."""
    return KeyValue(
        ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern),
        ConsumerGroupRegularExpressionValue(
            topics=tuple(sorted(resolved.topics)),
            version=resolved.version,
            timestamp=resolved.at_ms,
        ),
    )


def _by_number(topic: UUID) -> int:
    return topic.int


# Records that delete.


def pattern_gone(group_id: str, pattern: str) -> KeyValue:
    """Say that nobody subscribes to the pattern any more."""
    return KeyValue(
        ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern), None
    )


def old_metadata_gone(group_id: str) -> KeyValue:
    """Delete what was known of topics before 4.1."""
    return KeyValue(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def member_gone(group_id: str, member_id: str) -> tuple[KeyValue, ...]:
    """Say that the member is none any more."""
    return (
        KeyValue(
            ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None
        ),
        KeyValue(
            ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None
        ),
        KeyValue(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    )


def group_gone(group: ConsumerGroup) -> Iterator[KeyValue]:
    """Say that the group, with all that it has, is no more."""
    for member_id in sorted(group.members):
        yield from member_gone(group.id, member_id)
    yield KeyValue(ConsumerGroupTargetAssignmentMetadataKey(group_id=group.id), None)
    if group.has_old_metadata:
        yield old_metadata_gone(group.id)
    for pattern in sorted(group.patterns):
        yield pattern_gone(group.id, pattern)
    yield KeyValue(ConsumerGroupMetadataKey(group_id=group.id), None)
