"""From a classic group to a consumer group: when a member of the consumer protocol joins.

The members of the classic group stay, with what they have, and go on to speak their protocol; the
broker takes the part of their leader. Those who wait in a round are told to join again.

What they have is what their leader gave them. But who has not fetched that yet may still read what
it said to hold when it joined, which the leader has taken from it, or which is noted no more in the
midst of a round. That stays with it until it says otherwise; Kafka gives it to the next one at
once.
"""

from collections.abc import Iterator
from uuid import UUID

from strom.groups.classic.change import JOIN, SYNC, session_key
from strom.groups.classic.group import ClassicGroup, Phase
from strom.groups.classic.group import Member as ClassicMember
from strom.groups.classic.logged import group_tombstone
from strom.groups.classic.replies import Joined, Synced, join_ticket, sync_ticket
from strom.groups.consumer.assignors.subscriber import Partitions
from strom.groups.consumer.draft import Draft, Moment
from strom.groups.consumer.embedded import (
    CONSUMER,
    Subscription,
    partitions_in,
    read_assignment,
    read_subscription,
)
from strom.groups.consumer.group import ConsumerGroup
from strom.groups.consumer.limits import Limits
from strom.groups.consumer.member import Member, partitions_of
from strom.groups.consumer.replies import cannot_upgrade
from strom.groups.consumer.rows import (
    current_row,
    group_row,
    member_row,
    target_epoch_row,
    target_row,
)
from strom.groups.consumer.topics import metadata_hash
from strom.groups.records import ClassicMemberMetadata, ClassicProtocol
from strom.metadata.image import Image
from strom.replicated.machine import Ticket, TimerKey
from strom.wire.errors import ErrorCode
from strom.wire.primitives import MalformedFrame

#: When the assignment that a classic group has was made is not known: the next may come at once.
NO_TIME = 0


def upgraded(classic: ClassicGroup, moment: Moment) -> Draft:
    """Return the draft of the consumer group that the classic group becomes."""
    _check(classic, moment.limits)
    try:
        members = _members(classic, moment.image)
    except MalformedFrame:
        raise cannot_upgrade(classic.id, "the embedded consumer protocol is malformed.") from None
    draft = Draft(ConsumerGroup(classic.id), moment)
    draft.write_first((group_tombstone(classic.id),))
    draft.answer(_answers(classic))
    draft.forget(_timers(classic))
    _write(draft, members, classic.generation_id)
    for member in members:
        draft.renew_session(member)
    return draft


def _check(classic: ClassicGroup, limits: Limits) -> None:
    if not limits.migration.allows_upgrade:
        raise cannot_upgrade(classic.id, "online upgrade is disabled.")
    if classic.protocol_type != CONSUMER:
        raise cannot_upgrade(classic.id, "the group does not use the consumer embedded protocol.")
    if len(classic.members) > limits.max_size:
        raise cannot_upgrade(classic.id, "the group size exceeds the consumer group maximum size.")


def _members(classic: ClassicGroup, image: Image) -> list[Member]:
    members = [_member(each, classic, image) for each in classic.members.values()]
    taken = {place for each in members for place in _places(partitions_of(each.assigned))}
    in_doubt = classic.unsynced if classic.phase is Phase.STABLE else classic.members
    found = []
    for member in members:
        held: Partitions = {}
        if member.id in in_doubt:
            subscription = _subscription(classic.members[member.id], classic)
            held = partitions_in(subscription.owned_partitions, image)
        free = _places(held) - taken
        taken |= free
        found.append(_holding(member, free))
    return found


def _places(partitions: Partitions) -> set[tuple[UUID, int]]:
    return {(topic, index) for topic, indexes in partitions.items() for index in indexes}


def _holding(member: Member, places: set[tuple[UUID, int]]) -> Member:
    """Return the member with these partitions more."""
    if not places:
        return member
    assigned = {topic: dict(held) for topic, held in member.assigned.items()}
    for topic, index in sorted(places):
        assigned.setdefault(topic, {})[index] = member.epoch
    return member._replace(assigned=assigned)


def _subscription(member: ClassicMember, classic: ClassicGroup) -> Subscription:
    # A group in its first round has not chosen yet; all protocols of a member say the same.
    return read_subscription(member.metadata(classic.protocol) or member.protocols[0].metadata)


def _member(member: ClassicMember, classic: ClassicGroup, image: Image) -> Member:
    subscription = _subscription(member, classic)
    epoch = classic.generation_id
    assigned = {}
    if member.assignment:
        assignment = read_assignment(member.assignment)
        if assignment.user_data:
            raise cannot_upgrade(
                classic.id,
                "an unsupported custom assignor is in use. Please refer to the documentation or "
                "switch to a default assignor before re-attempting the upgrade.",
            )
        assigned = {
            topic: dict.fromkeys(partitions, epoch)
            for topic, partitions in partitions_in(assignment.assigned_partitions, image).items()
        }
    return Member(
        member.id,
        instance_id=member.instance_id,
        rack=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topic_names=frozenset(subscription.topics),
        pattern="",
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicMemberMetadata(
            session_timeout_ms=member.session_timeout_ms,
            supported_protocols=tuple(
                ClassicProtocol(name=each.name, metadata=each.metadata) for each in member.protocols
            ),
        ),
        epoch=epoch,
        previous_epoch=epoch,
        assigned=assigned,
    )


def _write(draft: Draft, members: list[Member], epoch: int) -> None:
    group_id = draft.group.id
    draft.write(*(member_row(group_id, each) for each in members))
    found = metadata_hash(draft.group.topic_names, draft.moment.image)
    draft.write(
        group_row(group_id, epoch, found),
        *(target_row(group_id, each.id, partitions_of(each.assigned)) for each in members),
        target_epoch_row(group_id, epoch, NO_TIME),
        *(current_row(group_id, each) for each in members),
    )


def _answers(classic: ClassicGroup) -> Iterator[tuple[Ticket, object]]:
    error = ErrorCode.REBALANCE_IN_PROGRESS
    for member_id in sorted(classic.joining):
        yield join_ticket(classic.id, member_id), Joined(member_id, error)
    for member_id in sorted(classic.syncing):
        yield sync_ticket(classic.id, member_id), Synced(error)


def _timers(classic: ClassicGroup) -> Iterator[TimerKey]:
    yield (JOIN, classic.id)
    yield (SYNC, classic.id)
    for member_id in (*classic.members, *sorted(classic.promised)):
        yield session_key(classic.id, member_id)
