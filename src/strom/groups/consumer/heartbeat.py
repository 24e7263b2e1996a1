"""ConsumerGroupHeartbeat: the one request of the protocol.

A member joins with epoch 0, stays with the epoch that it was last told, and leaves with -1, or with
-2 if it is static and will be back. What it does not say has not changed.
"""

from typing import TypeVar

from strom.groups.classic.group import ClassicGroup
from strom.groups.classic.logged import group_tombstone
from strom.groups.consumer.draft import Asking, Draft, Moment
from strom.groups.consumer.gathering import answer_at_once, beat_of, wait_for_turn
from strom.groups.consumer.group import ConsumerGroup
from strom.groups.consumer.leaving import leave
from strom.groups.consumer.member import AWAY, JOINING, LEFT, NO_TIMEOUT, Member
from strom.groups.consumer.membership import check_epoch, check_room, find_static, take_place
from strom.groups.consumer.progress import assign_if_due, is_to_assign, take_in
from strom.groups.consumer.replies import Beat, not_a_consumer_group
from strom.groups.consumer.request import Heartbeat
from strom.groups.consumer.upgrade import upgraded
from strom.replicated.machine import Decision, KeyValue, Wait
from strom.wire.errors import ErrorCode, KafkaError

Said = TypeVar("Said")

#: What there is under a group's name.
Found = ConsumerGroup | ClassicGroup | None


def heartbeat(
    found: Found, said: Heartbeat, moment: Moment, watch: object = None
) -> Decision[KeyValue, Beat | Wait]:
    """Decide about a heartbeat; a group that is not there begins with its first member."""
    if said.epoch in (LEFT, AWAY):
        return leave(found, said, moment, watch)
    draft = _begin(found, said, moment, watch)
    check_room(draft.group, said.member_id, said.instance_id, moment.limits.max_size)
    before = _find(draft, said)
    member = _told(before, said)
    resubscribed = take_in(draft, before, member)
    tells_all = said.epoch == JOINING or said.is_full
    if (resubscribed or draft.watch.asking) and is_to_assign(draft):
        asking = Asking(
            draft.watch.rank + 1, said.owned, resubscribed=resubscribed, tells_all=tells_all
        )
        return wait_for_turn(draft, member, asking)
    assign_if_due(draft, member.id)
    beat = beat_of(draft, member, said.owned, resubscribed=resubscribed, tells_all=tells_all)
    return answer_at_once(draft, beat)


def _begin(found: Found, said: Heartbeat, moment: Moment, watch: object) -> Draft:
    """Begin with the group as it is, or with a new one for a member that joins."""
    if isinstance(found, ConsumerGroup):
        return Draft(found, moment, watch)
    if said.epoch != JOINING:
        if found is not None:
            raise not_a_consumer_group(said.group_id)
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {said.group_id} not found.")
    if found is None or found.is_empty:
        draft = Draft(ConsumerGroup(said.group_id), moment)
        if found is not None:
            draft.write_first((group_tombstone(said.group_id),))
        return draft
    return upgraded(found, moment)


def _find(draft: Draft, said: Heartbeat) -> Member:
    """Return who it is, before what it says of itself now."""
    group, joins = draft.group, said.epoch == JOINING
    if said.instance_id is None:
        if joins and said.member_id not in group.members:
            return Member(said.member_id)
        member = group.member(said.member_id)
    elif joins:
        return _join_by_name(draft, said.member_id, said.instance_id)
    else:
        member = find_static(group, said.member_id, said.instance_id)
    check_epoch(member, said.epoch, said.owned)
    return member


def _join_by_name(draft: Draft, member_id: str, instance_id: str) -> Member:
    present = draft.group.static_member(instance_id)
    if present is None:
        return draft.group.members.get(member_id) or Member(member_id)
    if present.classic is None and not present.is_away:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group "
            f"because the instance id is owned by {present.id} member.",
        )
    return take_place(draft, present, member_id)


def _told(member: Member, said: Heartbeat) -> Member:
    """Return the member with what it says of itself, as it is if that is nothing new."""
    if said.is_bare and member.is_known_as(said.client_id, said.client_host):
        return member
    timeout_ms = said.rebalance_timeout_ms
    return member._replace(
        instance_id=_or(said.instance_id, member.instance_id),
        rack=_or(said.rack, member.rack),
        client_id=said.client_id,
        client_host=said.client_host,
        topic_names=_or(said.topic_names, member.topic_names),
        pattern=_or(said.pattern, member.pattern),
        rebalance_timeout_ms=member.rebalance_timeout_ms
        if timeout_ms == NO_TIMEOUT
        else timeout_ms,
        assignor=_or(said.assignor, member.assignor),
        classic=None,
    )


def _or(said: Said | None, known: Said) -> Said:
    return known if said is None else said
