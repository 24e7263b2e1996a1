"""The next target assignment of a group: what each member shall have, and the records of it."""

from collections.abc import Iterator
from uuid import UUID

from strom.groups.consumer.assignors import ASSIGNORS
from strom.groups.consumer.assignors.subscriber import Partitions, Subscriber
from strom.groups.consumer.group import ConsumerGroup
from strom.groups.consumer.limits import Limits
from strom.groups.consumer.member import Member
from strom.groups.consumer.rows import target_epoch_row, target_row
from strom.metadata.image import Image
from strom.replicated.machine import KeyValue


def is_due(group: ConsumerGroup, interval_ms: int, now_ms: int) -> bool:
    """Say whether the group needs other targets, and had the last ones for long enough.

    Members that come one after the other are so assigned to together (KIP-1263).
    """
    if group.epoch <= group.assignment_epoch:
        return False
    if not group.assigned_at_ms or not interval_ms:
        return True
    return now_ms >= group.assigned_at_ms + interval_ms


def next_target(
    group: ConsumerGroup, image: Image, limits: Limits, now_ms: int
) -> Iterator[KeyValue]:
    """Assign for the group's epoch; give the targets that change, and that all are of it now."""
    subscribers = [_subscriber(group, each, image) for each in group.members.values()]
    counts = {
        topic: len(image.topics_by_id[topic].partitions)
        for subscriber in subscribers
        for topic in subscriber.topics
    }
    assigned = ASSIGNORS[group.assignor(limits.assignors)](subscribers, counts)
    for member_id in sorted(assigned):
        if group.targets.get(member_id) != assigned[member_id]:
            yield target_row(group.id, member_id, assigned[member_id])
    yield target_epoch_row(group.id, group.epoch, now_ms)


def _subscriber(group: ConsumerGroup, member: Member, image: Image) -> Subscriber:
    return Subscriber(
        member.id,
        member.instance_id,
        topic_ids(group, member, image),
        group.targets.get(member.id, {}),
    )


def topic_ids(group: ConsumerGroup, member: Member, image: Image) -> frozenset[UUID]:
    """Return the topics that the member wants and that exist."""
    by_name = image.topics_by_name
    return frozenset(by_name[name].id for name in group.topics_of(member) if name in by_name)


def target_of(group: ConsumerGroup, member_id: str) -> Partitions:
    """Return what the member shall have."""
    return group.targets.get(member_id, {})
