"""The next target assignment of a group: what each member shall have, and the records of it."""

from collections.abc import Iterable, Iterator, Mapping
from uuid import UUID

from strom.groups.consumer.assignors import ASSIGNORS
from strom.groups.consumer.assignors.subscriber import NO_RACKS, Partitions, Racks, Subscriber
from strom.groups.consumer.group import ConsumerGroup
from strom.groups.consumer.limits import Limits
from strom.groups.consumer.member import Member
from strom.groups.consumer.rows import target_epoch_row, target_row
from strom.groups.consumer.topics import racks_of
from strom.metadata.image import Image
from strom.replicated.machine import KeyValue

NO_TARGET: Partitions = {}


def is_due(group: ConsumerGroup, interval_ms: int, now_ms: int) -> bool:
    """Say whether the group needs other targets, and had the last ones for long enough.

    Members that come one after the other are so assigned to together (KIP-1263).
    """
    if group.epoch <= group.assignment_epoch:
        return False
    if not group.assigned_at_ms or not interval_ms:
        return True
    # Where the time of day was set back, nobody knows how long it was.
    return not 0 <= now_ms - group.assigned_at_ms < interval_ms


def next_target(
    group: ConsumerGroup, image: Image, limits: Limits, now_ms: int, asking: str | None
) -> Iterator[KeyValue]:
    """Assign for the group's epoch; give the targets that change, and that all are of it now.

    `asking` is the member that this is done for, if it is one.
    """
    subscribers, topics = _subscribers(group, image, asking)
    counts = {topic: len(image.topics_by_id[topic].partitions) for topic in topics}
    racks = _racks(subscribers, topics, image)
    assigned = ASSIGNORS[group.assignor(limits.assignors)](subscribers, counts, racks)
    for member_id in sorted(_changed(group, assigned)):
        yield target_row(group.id, member_id, assigned[member_id])
    yield target_epoch_row(group.id, group.epoch, now_ms)


def _changed(group: ConsumerGroup, assigned: Mapping[str, Partitions]) -> list[str]:
    """Return the members that shall have something else than before."""
    return [each for each, gets in assigned.items() if group.targets.get(each) != gets]


def _subscribers(
    group: ConsumerGroup, image: Image, asking: str | None
) -> tuple[list[Subscriber], set[UUID]]:
    """Return the members as an assignor sees them, and all topics that they want."""
    # Mostly all members want the same.
    by_wish: dict[tuple[frozenset[str], str | None], frozenset[UUID]] = {}
    subscribers = []
    for member in group.members.values():
        wish = member.topic_names, member.pattern
        topics = by_wish.get(wish)
        if topics is None:
            topics = by_wish[wish] = topic_ids(group, member, image)
        subscribers.append(
            Subscriber(
                member.id,
                member.instance_id,
                topics,
                owned=target_of(group, member.id),
                rack=member.rack,
                is_asking=member.id == asking,
            )
        )
    return subscribers, {topic for topics in by_wish.values() for topic in topics}


def _racks(subscribers: Iterable[Subscriber], topics: Iterable[UUID], image: Image) -> Racks:
    """Return where partitions are; nothing if no member tells where it is itself."""
    if all(each.rack is None for each in subscribers):
        return NO_RACKS
    known = {id_: each.rack for id_, each in image.brokers.items() if each.rack is not None}
    if not known:
        return NO_RACKS
    return {topic: racks_of(image.topics_by_id[topic], known) for topic in topics}


def topic_ids(group: ConsumerGroup, member: Member, image: Image) -> frozenset[UUID]:
    """Return the topics that the member wants and that exist."""
    by_name = image.topics_by_name
    return frozenset(by_name[name].id for name in group.topics_of(member) if name in by_name)


def target_of(group: ConsumerGroup, member_id: str) -> Partitions:
    """Return what the member shall have."""
    return group.targets.get(member_id, NO_TARGET)
