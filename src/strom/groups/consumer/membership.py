"""Who a request comes from: a member, a newcomer, or the next life of a static member.

A static member has a name of its own, the instance id. When it comes back under another member id
it takes the place of its last life, with all that this had, and nobody else notices.
"""

from strom.groups.consumer.assignors.subscriber import Partitions
from strom.groups.consumer.draft import TIMERS, Draft
from strom.groups.consumer.gathering import dismiss
from strom.groups.consumer.group import ConsumerGroup
from strom.groups.consumer.member import JOINING, Member, holds_all
from strom.groups.consumer.rows import current_row, member_gone, member_row, target_row
from strom.groups.consumer.target import target_of
from strom.wire.errors import ErrorCode, KafkaError


def check_room(
    group: ConsumerGroup, member_id: str, instance_id: str | None, max_size: int
) -> None:
    """Refuse a newcomer to a group that is full; who takes a place that is taken is none."""
    if len(group.members) < max_size or member_id in group.members:
        return
    if instance_id is None or group.static_member(instance_id) is None:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {max_size} members.",
        )


def find_static(group: ConsumerGroup, member_id: str, instance_id: str) -> Member:
    """Return the member of that name; refuse another member that uses it."""
    member = group.static_member(instance_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{member.id}.",
        )
    return member


def check_epoch(member: Member, epoch: int, owned: Partitions | None) -> None:
    """Refuse a member that is at another epoch than the broker knows it to be.

    One that is an epoch behind may have missed an answer: it is, if it holds no more than it was
    given. Epoch 0 is one that starts over.
    """
    if epoch in (JOINING, member.epoch):
        return
    missed_one = epoch == member.previous_epoch and epoch < member.epoch
    if missed_one and owned is not None and holds_all(owned, member.assigned):
        return
    which = "greater" if epoch > member.epoch else "smaller"
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {which} member epoch ({epoch}) than the one known by "
        f"the group coordinator ({member.epoch}). The member must abandon all its partitions and "
        "rejoin.",
    )


def take_place(draft: Draft, old: Member, member_id: str) -> Member:
    """Let the next life of a static member, under that id, have all that the last one had."""
    group_id = draft.group.id
    target = target_of(draft.group, old.id)
    new = old._replace(id=member_id, epoch=JOINING, previous_epoch=JOINING)
    draft.write(
        *member_gone(group_id, old.id),
        member_row(group_id, new),
        target_row(group_id, new.id, target),
        current_row(group_id, new),
    )
    if old.id != member_id:
        draft.call_no_more(old.id, *TIMERS)
        draft.expect_no_more(frozenset((old.id,)))
        dismiss(draft, (old.id,))
    return new
