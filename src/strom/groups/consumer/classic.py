"""Members of the classic protocol in a consumer group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

To such a member the broker is the group's leader. Joining is one step towards its target, answered
at once with its epoch as the generation; syncing tells it what it has. When there is another step
to take, its heartbeat is answered with REBALANCE_IN_PROGRESS, and it joins again with what it holds
by then. It has the rebalance time-out for each of these.
"""

from collections import Counter
from collections.abc import Sequence

from strom.groups.classic.group import Protocol
from strom.groups.classic.joining import JoinRequest
from strom.groups.classic.leaving import Leaver
from strom.groups.classic.replies import NO_MEMBER, Joined, Synced
from strom.groups.classic.syncing import SyncRequest
from strom.groups.consumer.downgrade import can_downgrade_with, downgrade
from strom.groups.consumer.draft import JOIN, SYNC, Draft, Moment
from strom.groups.consumer.embedded import (
    CONSUMER,
    Subscription,
    partitions_in,
    read_subscription,
    read_version,
    write_assignment,
)
from strom.groups.consumer.gathering import dismiss
from strom.groups.consumer.group import ConsumerGroup
from strom.groups.consumer.leaving import remove
from strom.groups.consumer.limits import Migration
from strom.groups.consumer.member import NO_TIMEOUT, Member, State, partitions_of
from strom.groups.consumer.membership import check_room, find_static, take_place
from strom.groups.consumer.progress import assign_if_due, take_in, take_step
from strom.groups.consumer.subscription import follow_topics
from strom.groups.consumer.target import target_of
from strom.groups.records import ClassicMemberMetadata, ClassicProtocol
from strom.replicated.machine import Decision, KeyValue
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.primitives import MalformedFrame


def join(
    group: ConsumerGroup, request: JoinRequest, moment: Moment, watch: object
) -> Decision[KeyValue, Joined]:
    """Take a member of the classic protocol in, or one step further."""
    try:
        return _join(Draft(group, moment, watch), request)
    except KafkaError as error:
        return Decision((), Joined(NO_MEMBER, error.code))


def _join(draft: Draft, request: JoinRequest) -> Decision[KeyValue, Joined]:
    member_id = request.member_id or request.new_member_id
    _check_joining(draft, request, member_id)
    if request.must_return and not request.member_id and request.instance_id is None:
        return Decision((), Joined(member_id, ErrorCode.MEMBER_ID_REQUIRED))
    subscription = _read_subscription(request.protocols)
    before, was_last = _find(draft, request, member_id)
    member = _told(before, request, subscription)
    dismiss(draft, (member.id,))
    resubscribed = take_in(draft, before, member)
    owned = partitions_in(subscription.owned_partitions, draft.moment.image)
    if was_last:
        stale = resubscribed or draft.group.epoch > draft.group.assignment_epoch
        if not stale:
            member = take_step(draft, member, owned, resubscribed=False)
        return downgrade(draft, frozenset(), _joined(member), rebalance=stale)
    assign_if_due(draft, member.id)
    member = take_step(draft, member, owned, resubscribed=resubscribed)
    _has_come(draft, member)
    draft.renew_session(member)
    draft.call_after(SYNC, member.id, request.rebalance_timeout_ms)
    return draft.decision(_joined(member))


def _check_joining(draft: Draft, request: JoinRequest, member_id: str) -> None:
    group, limits = draft.group, draft.moment.limits
    if limits.migration is Migration.DISABLED:
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"Cannot join the consumer group {group.id} with the classic protocol because the "
            "group migration is disabled.",
        )
    check_room(group, member_id, request.instance_id, limits.max_size)
    if not _supports(group, request):
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"Member {member_id}'s protocols are not supported.",
        )


def _supports(group: ConsumerGroup, request: JoinRequest) -> bool:
    """Say whether the newcomer has a protocol that all who speak the classic one have."""
    if request.protocol_type != CONSUMER:
        return False
    known = [each.classic for each in group.members.values() if each.classic is not None]
    votes = Counter(name for each in known for name in _names(each))
    return any(votes[each.name] == len(known) for each in request.protocols)


def _names(classic: ClassicMemberMetadata) -> frozenset[str]:
    return frozenset(each.name for each in classic.supported_protocols)


def _read_subscription(protocols: Sequence[Protocol]) -> Subscription:
    """Read what the member wants; all its protocols say the same."""
    try:
        return read_subscription(protocols[0].metadata)
    except MalformedFrame:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "Malformed embedded consumer protocol in subscription deserialization.",
        ) from None


def _find(draft: Draft, request: JoinRequest, member_id: str) -> tuple[Member, bool]:
    """Return who it is, and whether it was the last one that spoke the consumer protocol."""
    group = draft.group
    if request.instance_id is None:
        return group.members.get(member_id) or Member(member_id), False
    present = group.static_member(request.instance_id)
    if present is None and not request.member_id:
        return Member(member_id), False
    if request.member_id:
        present = find_static(group, member_id, request.instance_id)
    assert present is not None
    was_last = can_downgrade_with(group, present, draft.moment.limits)
    return present if request.member_id else take_place(draft, present, member_id), was_last


def _told(member: Member, request: JoinRequest, subscription: Subscription) -> Member:
    """Return the member with what it says of itself."""
    timeout_ms = request.rebalance_timeout_ms
    return member._replace(
        instance_id=request.instance_id or member.instance_id,
        rack=subscription.rack_id or member.rack,
        client_id=request.client_id,
        client_host=request.client_host,
        topic_names=frozenset(subscription.topics),
        pattern="",
        rebalance_timeout_ms=member.rebalance_timeout_ms
        if timeout_ms == NO_TIMEOUT
        else timeout_ms,
        classic=ClassicMemberMetadata(
            session_timeout_ms=request.session_timeout_ms,
            supported_protocols=tuple(
                ClassicProtocol(name=each.name, metadata=each.metadata)
                for each in request.protocols
            ),
        ),
    )


def _joined(member: Member) -> Joined:
    """Tell a member that it is in; it leads nobody."""
    return Joined(
        member.id,
        generation_id=member.epoch,
        protocol_type=CONSUMER,
        protocol=_protocol_of(member).name,
    )


def _protocol_of(member: Member) -> ClassicProtocol:
    assert member.classic is not None
    return member.classic.supported_protocols[0]


def sync(
    group: ConsumerGroup, request: SyncRequest, moment: Moment, watch: object
) -> Decision[KeyValue, Synced]:
    """Tell a member what it has; refuse with a KafkaError who is not of this generation."""
    member = _present(group, request.member_id, request.instance_id, request.generation_id)
    protocol = _protocol_of(member)
    right_type = request.protocol_type in (None, CONSUMER)
    if not right_type or request.protocol not in (None, protocol.name):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    draft = Draft(group, moment, watch)
    if _is_behind(group, member) and member.state is not State.UNREVOKED_PARTITIONS:
        _call_in(draft, member)
        return draft.decision(Synced(ErrorCode.REBALANCE_IN_PROGRESS))
    draft.call_no_more(member.id, SYNC)
    draft.renew_session(member)
    return draft.decision(
        Synced(
            protocol_type=request.protocol_type,
            protocol=request.protocol,
            assignment=write_assignment(
                partitions_of(member.assigned), read_version(protocol.metadata), moment.image
            ),
        )
    )


def heartbeat(
    group: ConsumerGroup,
    member_id: str,
    instance_id: str | None,
    generation_id: int,
    *,
    moment: Moment,
    watch: object,
) -> Decision[KeyValue, ErrorCode]:
    """Renew a member's session; tell it to join again if there is a step to take."""
    member = _present(group, member_id, instance_id, generation_id)
    draft = Draft(group, moment, watch)
    follow_topics(draft, resubscribed=False)
    assign_if_due(draft)
    draft.renew_session(member)
    if not _has_step(draft.group, member):
        return draft.decision(ErrorCode.NONE)
    _call_in(draft, member)
    return draft.decision(ErrorCode.REBALANCE_IN_PROGRESS)


def _present(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation_id: int
) -> Member:
    """Return the member; refuse one of the other protocol, or of another generation."""
    if instance_id is None:
        member = group.member(member_id)
    else:
        member = find_static(group, member_id, instance_id)
    if member.classic is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} does not use the classic protocol."
        )
    if member.epoch != generation_id:
        raise KafkaError(
            ErrorCode.ILLEGAL_GENERATION,
            f"The request generation id {generation_id} is not equal to the member epoch "
            f"{member.epoch} of member {member_id}.",
        )
    return member


def _is_behind(group: ConsumerGroup, member: Member) -> bool:
    return member.epoch < group.assignment_epoch


def _has_step(group: ConsumerGroup, member: Member) -> bool:
    """Say whether the member would come closer to its target by joining again."""
    match member.state:
        case State.STABLE:
            return _is_behind(group, member)
        case State.UNRELEASED_PARTITIONS:
            return _is_behind(group, member) or not _waits(group, member)
        case State.UNREVOKED_PARTITIONS | State.UNKNOWN:
            return True


def _waits(group: ConsumerGroup, member: Member) -> bool:
    """Say whether others hold what the member shall have."""
    return any(
        group.owners_of(topic).get(each, member.id) != member.id
        for topic, partitions in target_of(group, member.id).items()
        for each in partitions
    )


def _call_in(draft: Draft, member: Member) -> None:
    """Give the member its time to join again, once."""
    if member.id not in draft.watch.called_in:
        draft.watch = draft.watch._replace(called_in=draft.watch.called_in | {member.id})
        draft.call_after(JOIN, member.id, member.rebalance_timeout_ms)


def _has_come(draft: Draft, member: Member) -> None:
    draft.expect_no_more(frozenset((member.id,)))
    draft.call_no_more(member.id, JOIN)


def leave(
    group: ConsumerGroup, leavers: Sequence[Leaver], moment: Moment, watch: object
) -> Decision[KeyValue, tuple[ErrorCode, ...]]:
    """Let members leave, of either protocol, each with its own answer."""
    gone: dict[str, Member] = {}
    codes = []
    for leaver in leavers:
        try:
            member = _find_leaver(group, leaver)
        except KafkaError as error:
            codes.append(error.code)
        else:
            gone[member.id] = member
            codes.append(ErrorCode.NONE)
    return remove(Draft(group, moment, watch), tuple(gone.values()), tuple(codes))


def _find_leaver(group: ConsumerGroup, leaver: Leaver) -> Member:
    if leaver.instance_id is None:
        return group.member(leaver.member_id)
    if leaver.member_id:
        return find_static(group, leaver.member_id, leaver.instance_id)
    # Whoever administers the group names a static member without knowing its id.
    member = group.static_member(leaver.instance_id)
    if member is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {leaver.instance_id} is unknown."
        )
    return member
