"""JoinGroup: who may join, as whom, and whether that calls everybody in.

A newcomer without an id is given one, and comes back with it (KIP-394): one that never hears
the answer leaves no member behind. A static member has its name; if somebody of that name is in the
group, the newcomer takes its place and its work, and the old one is fenced. A member that
comes back with nothing changed is told again what it should know.
"""

from dataclasses import replace
from typing import NamedTuple

from strom.groups.classic import votes
from strom.groups.classic.change import Change
from strom.groups.classic.group import ClassicGroup, Member, Phase, Protocol
from strom.groups.classic.rebalance import (
    complete_if_all_joined,
    prepare,
    prepare_or_complete,
    remove,
)
from strom.groups.classic.replies import NO_LEADER, NO_MEMBER, Joined, joined
from strom.replicated.machine import Decision, KeyValue, Wait
from strom.wire.errors import ErrorCode, KafkaError

#: How long a newcomer's JoinGroup may wait. Its client may be gone, and it has no session yet.
NEW_MEMBER_TIMEOUT_MS = 5 * 60 * 1000

JoinDecision = Decision[KeyValue, Joined | Wait]


class Limits(NamedTuple):
    """What the broker's settings say of classic groups."""

    max_size: int
    initial_delay_ms: int


class JoinRequest(NamedTuple):
    """Who wants to join what."""

    group_id: str
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[Protocol, ...]
    #: The id for a newcomer; nothing for who has one.
    new_member_id: str
    #: Whether a newcomer must come back with the id that it is given (from version 4).
    must_return: bool = True
    #: Whether a leader can be told to leave the assignment as it is (from version 9).
    can_skip: bool = True


def join(
    group: ClassicGroup | None, request: JoinRequest, *, limits: Limits, now_ms: int
) -> JoinDecision:
    """Decide about a JoinGroup; a group that is not there begins with its first newcomer."""
    if group is None and request.member_id:
        return Decision((), Joined(request.member_id, ErrorCode.UNKNOWN_MEMBER_ID))
    change = Change(group or ClassicGroup(request.group_id, since_ms=now_ms), now_ms)
    if group is None:
        change.write()
    refusal = _refuse(change, request, limits)
    if refusal is not None:
        return change.decision(refusal)
    if request.member_id:
        return _join_with_id(change, request, limits)
    if request.instance_id is not None:
        return _join_by_name(change, request, limits)
    if request.must_return:
        return _promise(change, request)
    return _add(change, request, request.new_member_id, limits)


def _refuse(change: Change, request: JoinRequest, limits: Limits) -> Joined | None:
    """Return why the group does not take this one in, if it does not."""
    if not _has_room(change.group, request, limits.max_size):
        _turn_away(change, request.member_id)
        return Joined(NO_MEMBER, ErrorCode.GROUP_MAX_SIZE_REACHED)
    if not _fits(change.group, request):
        return Joined(request.member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    return None


def _fits(group: ClassicGroup, request: JoinRequest) -> bool:
    """Say whether this one can share the work with the others."""
    member = group.members.get(request.member_id)
    if member is not None and member.protocols == request.protocols:
        # All who are in the group have a protocol in common; no need to ask each of them again.
        return request.protocol_type == group.protocol_type
    names = [each.name for each in request.protocols]
    return votes.accepts(group, request.protocol_type, names)


def _has_room(group: ClassicGroup, request: JoinRequest, max_size: int) -> bool:
    """Say whether the group takes this one in.

    While everybody is called in, those count who came: so a group that is too large, because the
    setting was lowered, loses those who come last.
    """
    place = request.member_id or group.instances.get(request.instance_id or "")
    match group.phase:
        case Phase.PREPARING:
            return place in group.joining or len(group.joining) < max_size
        case Phase.COMPLETING | Phase.STABLE:
            return place in group.members or len(group.members) < max_size
        case Phase.EMPTY | Phase.DEAD:
            return True


def _turn_away(change: Change, member_id: str) -> None:
    if member_id in change.group.members or member_id in change.group.promised:
        remove(change, member_id)
        complete_if_all_joined(change)


def _promise(change: Change, request: JoinRequest) -> JoinDecision:
    """Give a newcomer its id; it has one session's time to come back with it."""
    member_id = request.new_member_id
    group = change.group
    change.group = group._replace(promised=group.promised | {member_id})
    change.call_session_after(member_id, request.session_timeout_ms)
    return change.decision(Joined(member_id, ErrorCode.MEMBER_ID_REQUIRED))


def _add(change: Change, request: JoinRequest, member_id: str, limits: Limits) -> JoinDecision:
    group = change.group
    if not group.members:
        group = group._replace(protocol_type=request.protocol_type, leader=None)
    initial = group.initial and group.initial._replace(grew=True)
    group = group.with_member(_member_of(request, member_id))
    change.group = group._replace(
        joining=group.joining | {member_id},
        fresh=group.fresh | {member_id},
        initial=initial,
    )
    change.call_session_after(member_id, NEW_MEMBER_TIMEOUT_MS)
    prepare_or_complete(change, limits.initial_delay_ms)
    return change.wait_to_join(member_id)


def _join_with_id(change: Change, request: JoinRequest, limits: Limits) -> JoinDecision:
    group = change.group
    member_id = request.member_id
    if member_id in group.promised and request.instance_id is None:
        return _add(change, request, member_id, limits)
    try:
        group.check_member(member_id, request.instance_id)
    except KafkaError as error:
        return change.decision(Joined(member_id, error.code))
    changed = group.members[member_id].protocols != request.protocols
    leads = group.phase is Phase.STABLE and member_id == group.leader
    if group.phase is Phase.PREPARING or changed or leads:
        # A leader that comes back of its own accord wants to share the work anew.
        return _join_again(change, request)
    return change.decision(joined(group, member_id))


def _join_again(change: Change, request: JoinRequest) -> JoinDecision:
    """Take what the member says of itself now, and have everybody called in."""
    group = change.group
    member = group.members[request.member_id]
    said = _saying(member, request)
    if said != member:
        group = group.with_member(said)
    change.group = group._replace(joining=group.joining | {member.id})
    prepare_or_complete(change)
    return change.wait_to_join(member.id)


def _join_by_name(change: Change, request: JoinRequest, limits: Limits) -> JoinDecision:
    """Add a static member, or let it take the place that it left."""
    assert request.instance_id is not None
    old_id = change.group.instances.get(request.instance_id)
    if old_id is None:
        return _add(change, request, request.new_member_id, limits)
    old_leader = change.group.leader or NO_LEADER
    _replace(change, request, old_id)
    member_id = request.new_member_id
    group = change.group
    if group.phase is Phase.STABLE and votes.choose(group) == group.protocol:
        return _resume(change, request, old_leader)
    change.group = group._replace(joining=group.joining | {member_id})
    if group.phase is Phase.PREPARING:
        complete_if_all_joined(change)
    else:
        # The leader may be sharing the work with the id of the old one: that has to be done again.
        prepare(change)
    return change.wait_to_join(member_id)


def _replace(change: Change, request: JoinRequest, old_id: str) -> None:
    change.dismiss(old_id, ErrorCode.FENCED_INSTANCE_ID, told_id=old_id)
    change.call_session_after(old_id, None)
    said = _saying(change.group.members[old_id], request)
    member = replace(said, id=request.new_member_id)
    change.group = change.group.with_replaced(old_id, member)
    change.renew_session(member.id)


def _resume(change: Change, request: JoinRequest, old_leader: str) -> JoinDecision:
    """Let a static member go on with what its last life had; nobody else notices."""
    change.write()
    reply = joined(change.group, request.new_member_id)
    leads = request.new_member_id == change.group.leader
    if request.can_skip:
        reply = reply._replace(skip_assignment=leads)
    else:
        # A client that does not know of skipping would share the work anew: it is not told that
        # it leads.
        reply = reply._replace(leader=old_leader, members=())
    return change.decision(reply)


def _saying(member: Member, request: JoinRequest) -> Member:
    """Return the member with what it says of itself now."""
    return replace(
        member,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        protocols=request.protocols,
    )


def _member_of(request: JoinRequest, member_id: str) -> Member:
    return Member(
        member_id,
        request.instance_id,
        request.client_id,
        request.client_host,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        protocols=request.protocols,
    )
