"""What every request of a member leads to, whichever protocol it speaks.

1. What it says of itself is written, if it is new.
2. The group's epoch rises if somebody subscribes to something else, or its topics have changed.
3. The group is assigned to anew if its epoch has risen and that is due.
4. The member takes its next step.
"""

from strom.groups.consumer.assignors.subscriber import Partitions
from strom.groups.consumer.draft import REBALANCE, Draft
from strom.groups.consumer.member import Member, State
from strom.groups.consumer.reconcile import Aim, reconcile
from strom.groups.consumer.rows import current_row, member_row
from strom.groups.consumer.subscription import follow_topics
from strom.groups.consumer.target import is_due, next_target, target_of, topic_ids


def take_in(draft: Draft, before: Member, member: Member) -> bool:
    """Take in what the member says of itself; say whether it subscribes to something else."""
    if member != before or member.id not in draft.group.members:
        draft.write(member_row(draft.group.id, member))
    was, wanted = (before.topic_names, before.pattern), (member.topic_names, member.pattern)
    follow_topics(draft, resubscribed=was != wanted)
    return was != wanted


def is_to_assign(draft: Draft) -> bool:
    """Say whether the group is to be assigned to anew: its epoch has risen, its time has come."""
    moment = draft.moment
    return is_due(draft.group, moment.limits.assignment_interval_ms, moment.now_ms)


def assign_if_due(draft: Draft, asking: str | None = None) -> None:
    """Assign to the group anew, if that is to be done now, for the member that asks."""
    if is_to_assign(draft):
        moment = draft.moment
        draft.write(*next_target(draft.group, moment.image, moment.limits, moment.now_ms, asking))


def take_step(
    draft: Draft, member: Member, owned: Partitions | None, *, resubscribed: bool
) -> Member:
    """Move the member one step towards its target, and give it time to do what that asks for."""
    group = draft.group
    if not resubscribed and member.is_reconciled_to(group.assignment_epoch):
        return member
    aim = Aim(
        epoch=group.assignment_epoch,
        target=target_of(group, member.id),
        topics=topic_ids(group, member, draft.moment.image),
        owned=owned,
        resubscribed=resubscribed,
    )
    after = reconcile(group, member, aim)
    if after == member:
        return member
    draft.write(current_row(group.id, after))
    if after.classic is None:
        if after.state is State.UNREVOKED_PARTITIONS:
            draft.call_after(REBALANCE, after.id, after.rebalance_timeout_ms)
        elif member.state is State.UNREVOKED_PARTITIONS:
            draft.call_no_more(after.id, REBALANCE)
    return after
