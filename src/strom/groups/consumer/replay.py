"""How each record changes a consumer group; the only way to another one.

A log may have lost records to the cleaner, though never the newest of a key. So nothing is taken
for granted: a member's assignment may come before the member, and a record that deletes what is
not there has no effect.
"""

from collections.abc import Callable, Mapping, MutableMapping
from typing import Any
from uuid import UUID

from immutables import Map

from strom.groups.consumer.group import NOBODY, ConsumerGroup, Resolved
from strom.groups.consumer.member import LEFT, NOTHING, Held, Member, State
from strom.groups.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicPartitions,
)
from strom.replicated.machine import KeyValue


def apply(groups: MutableMapping[str, Any], key: Any, value: Any) -> None:  # noqa: ANN401 - by type
    """Take a record as a fact."""
    group_id: str = key.group_id
    before = groups.get(group_id)
    if not isinstance(before, ConsumerGroup):
        if value is None:
            return
        # What was there before was of another kind and is no more.
        before = ConsumerGroup(group_id)
    after = applied(before, KeyValue(key, value))
    if after is None:
        del groups[group_id]
    else:
        groups[group_id] = after


def step(group: ConsumerGroup, record: KeyValue) -> ConsumerGroup:
    """Return the group that the record leads to, where there still is one."""
    after = applied(group, record)
    assert after is not None, "a draft is of a group that lives on"
    return after


def applied(group: ConsumerGroup, record: KeyValue) -> ConsumerGroup | None:
    """Return the group that the record leads to; None if there is none any more."""
    key, value = record
    if type(key) is ConsumerGroupMetadataKey:
        return _epoch(group, value)
    return _APPLY[type(key)](group, key, value)


def _epoch(group: ConsumerGroup, value: object) -> ConsumerGroup | None:
    if value is None:
        return None
    assert isinstance(value, ConsumerGroupMetadataValue)
    return group._replace(epoch=value.epoch, metadata_hash=value.metadata_hash)


def _old_metadata(
    group: ConsumerGroup,
    _: ConsumerGroupPartitionMetadataKey,
    value: ConsumerGroupPartitionMetadataValue | None,
) -> ConsumerGroup:
    return group._replace(has_old_metadata=value is not None)


def _member(
    group: ConsumerGroup,
    key: ConsumerGroupMemberMetadataKey,
    value: ConsumerGroupMemberMetadataValue | None,
) -> ConsumerGroup:
    before = group.members.get(key.member_id)
    if value is None:
        return group if before is None else _without_member(group, before)
    after = (before or Member(key.member_id))._replace(
        instance_id=value.instance_id,
        rack=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topic_names=frozenset(value.subscribed_topic_names),
        pattern=value.subscribed_topic_regex or "",
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        assignor=value.server_assignor,
        classic=value.classic_member_metadata,
    )
    instances = group.instances
    if before is not None and before.instance_id != after.instance_id:
        instances = _without_name(instances, before)
    if after.instance_id is not None:
        instances = instances.set(after.instance_id, after.id)
    return group._replace(members=group.members.set(after.id, after), instances=instances)


def _without_member(group: ConsumerGroup, member: Member) -> ConsumerGroup:
    group = _with_held(group, member, member._replace(assigned=NOTHING, revoking=NOTHING))
    instances = _without_name(group.instances, member)
    return group._replace(members=group.members.delete(member.id), instances=instances)


def _without_name(instances: Map[str, str], member: Member) -> Map[str, str]:
    # The name may have gone to the member's next life already.
    if member.instance_id is not None and instances.get(member.instance_id) == member.id:
        return instances.delete(member.instance_id)
    return instances


def _target_epoch(
    group: ConsumerGroup,
    _: ConsumerGroupTargetAssignmentMetadataKey,
    value: ConsumerGroupTargetAssignmentMetadataValue | None,
) -> ConsumerGroup:
    if value is None:
        return group._replace(assignment_epoch=LEFT, assigned_at_ms=0)
    return group._replace(
        assignment_epoch=value.assignment_epoch, assigned_at_ms=value.assignment_timestamp
    )


def _target(
    group: ConsumerGroup,
    key: ConsumerGroupTargetAssignmentMemberKey,
    value: ConsumerGroupTargetAssignmentMemberValue | None,
) -> ConsumerGroup:
    if value is None:
        if key.member_id not in group.targets:
            return group
        return group._replace(targets=group.targets.delete(key.member_id))
    target = {each.topic_id: frozenset(each.partitions) for each in value.topic_partitions}
    return group._replace(targets=group.targets.set(key.member_id, target))


def _current(
    group: ConsumerGroup,
    key: ConsumerGroupCurrentMemberAssignmentKey,
    value: ConsumerGroupCurrentMemberAssignmentValue | None,
) -> ConsumerGroup:
    before = group.members.get(key.member_id)
    if value is None:
        if before is None:
            return group
        gone = before._replace(epoch=LEFT, previous_epoch=LEFT, assigned=NOTHING, revoking=NOTHING)
        return _with_held(group, before, gone)
    before = before or Member(key.member_id)
    after = before._replace(
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=State(value.state),
        assigned=_read_held(value.assigned_partitions, value.member_epoch),
        revoking=_read_held(value.partitions_pending_revocation, value.member_epoch),
    )
    return _with_held(group, before, after)


def _read_held(found: tuple[TopicPartitions, ...], member_epoch: int) -> Held:
    """Read partitions with their epochs; before 4.3 these were not written."""
    held = {}
    for each in found:
        epochs = each.assignment_epochs
        if epochs is None or len(epochs) != len(each.partitions):
            held[each.topic_id] = dict.fromkeys(each.partitions, member_epoch)
        else:
            held[each.topic_id] = dict(zip(each.partitions, epochs, strict=True))
    return held


def _with_held(group: ConsumerGroup, before: Member, after: Member) -> ConsumerGroup:
    """Return the group in which the member has come from one place to the other."""
    members = group.members.set(after.id, after)
    if after.assigned == before.assigned and after.revoking == before.revoking:
        # As of all who only come to another epoch.
        return group._replace(members=members)
    owners = group.owners
    for topic in {*before.assigned, *before.revoking, *after.assigned, *after.revoking}:
        had, has = _numbers(before, topic), _numbers(after, topic)
        if had != has:
            owners = _moved(owners, topic, after.id, had - has, has - had)
    return group._replace(members=members, owners=owners)


def _numbers(member: Member, topic: UUID) -> set[int]:
    """Return the partitions of the topic that are with the member."""
    return {*member.assigned.get(topic, ()), *member.revoking.get(topic, ())}


def _moved(
    owners: Map[UUID, Map[int, str]], topic: UUID, member_id: str, given: set[int], got: set[int]
) -> Map[UUID, Map[int, str]]:
    changed = owners.get(topic, NOBODY).mutate()
    for partition in given:
        # In a log that the cleaner has been through, the next owner may come first.
        if changed.get(partition) == member_id:
            del changed[partition]
    for partition in got:
        changed[partition] = member_id
    left = changed.finish()
    if left:
        return owners.set(topic, left)
    return owners.delete(topic) if topic in owners else owners


def _pattern(
    group: ConsumerGroup,
    key: ConsumerGroupRegularExpressionKey,
    value: ConsumerGroupRegularExpressionValue | None,
) -> ConsumerGroup:
    pattern = key.regular_expression
    if value is None:
        if pattern not in group.patterns:
            return group
        return group._replace(patterns=group.patterns.delete(pattern))
    resolved = Resolved(frozenset(value.topics), value.version, value.timestamp)
    return group._replace(patterns=group.patterns.set(pattern, resolved))


#: By the type of key; the group's own record is the one that can end it.
_APPLY: Mapping[type, Callable[[ConsumerGroup, Any, Any], ConsumerGroup]] = {
    ConsumerGroupPartitionMetadataKey: _old_metadata,
    ConsumerGroupMemberMetadataKey: _member,
    ConsumerGroupTargetAssignmentMetadataKey: _target_epoch,
    ConsumerGroupTargetAssignmentMemberKey: _target,
    ConsumerGroupCurrentMemberAssignmentKey: _current,
    ConsumerGroupRegularExpressionKey: _pattern,
}
#: All keys of consumer groups.
KEYS = (ConsumerGroupMetadataKey, *_APPLY)
