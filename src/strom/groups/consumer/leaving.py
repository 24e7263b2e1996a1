"""The ways out of a group: a member leaves, or its time is over.

A static member that says that it will be back is only *away*: it keeps what it has until its
session ends. When the last member of the consumer protocol goes and others, of the classic one,
stay, the group becomes a classic group.
"""

from collections.abc import Collection
from typing import TypeVar

from strom.groups.consumer.downgrade import can_downgrade, downgrade
from strom.groups.consumer.draft import REBALANCE, TIMERS, Draft, Moment
from strom.groups.consumer.gathering import dismiss
from strom.groups.consumer.group import ConsumerGroup
from strom.groups.consumer.member import AWAY, NOTHING, Member, State
from strom.groups.consumer.membership import find_static
from strom.groups.consumer.replies import Beat, group_not_found, not_a_consumer_group
from strom.groups.consumer.request import Heartbeat
from strom.groups.consumer.rows import current_row, group_row, member_gone, pattern_gone
from strom.groups.consumer.topics import metadata_hash
from strom.replicated.machine import Decision, KeyValue, TimerKey

Reply = TypeVar("Reply")


def leave(
    found: object, said: Heartbeat, moment: Moment, watch: object
) -> Decision[KeyValue, Beat]:
    """Let a member go, for good or for a while."""
    if not isinstance(found, ConsumerGroup):
        none = found is None
        raise (group_not_found if none else not_a_consumer_group)(said.group_id)
    draft = Draft(found, moment, watch)
    if said.instance_id is None:
        member = found.member(said.member_id)
    else:
        member = find_static(found, said.member_id, said.instance_id)
        if said.epoch == AWAY:
            return _go_away(draft, member)
    return remove(draft, (member,), Beat(member.id, said.epoch))


def _go_away(draft: Draft, member: Member) -> Decision[KeyValue, Beat]:
    """Note that a static member will be back: it has given up what it was told to."""
    kept = {topic: dict.fromkeys(held, 0) for topic, held in member.assigned.items()}
    away = member._replace(epoch=AWAY, assigned=kept, revoking=NOTHING)
    draft.write(current_row(draft.group.id, away))
    draft.call_no_more(member.id, REBALANCE)
    dismiss(draft, (member.id,))
    return draft.decision(Beat(member.id, AWAY))


def remove(draft: Draft, gone: Collection[Member], reply: Reply) -> Decision[KeyValue, Reply]:
    """Take members out of the group; those who stay are assigned to anew."""
    if not gone:
        return draft.decision(reply)
    ids = frozenset(each.id for each in gone)
    dismiss(draft, ids)
    if can_downgrade(draft.group, ids, draft.moment.limits):
        return downgrade(draft, ids, reply)
    group_id = draft.group.id
    for member_id in sorted(ids):
        draft.write(*member_gone(group_id, member_id))
        draft.call_no_more(member_id, *TIMERS)
    for pattern in sorted(set(draft.group.patterns) - draft.group.wanted_patterns):
        draft.write(pattern_gone(group_id, pattern))
    found = metadata_hash(draft.group.topic_names, draft.moment.image)
    draft.write(group_row(group_id, draft.group.epoch + 1, found))
    draft.expect_no_more(ids)
    return draft.decision(reply)


def on_timer(
    found: object, key: TimerKey, moment: Moment, watch: object
) -> Decision[KeyValue, None]:
    """Take out a member whose time is over; a timer of something that is over has no effect."""
    kind, _, member_id = key
    if not isinstance(found, ConsumerGroup) or member_id not in found.members:
        return Decision((), None)
    member = found.members[member_id]
    if kind == REBALANCE and member.state is not State.UNREVOKED_PARTITIONS:
        return Decision((), None)
    return remove(Draft(found, moment, watch), (member,), None)


def on_loaded(group: ConsumerGroup, moment: Moment) -> Decision[KeyValue, None]:
    """Give every member a session, and those that must give partitions up their time."""
    draft = Draft(group, moment)
    for member in group.members.values():
        draft.renew_session(member)
        if member.classic is None and member.state is State.UNREVOKED_PARTITIONS:
            draft.call_after(REBALANCE, member.id, member.rebalance_timeout_ms)
    return draft.decision(None)
