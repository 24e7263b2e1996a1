"""The ways out of a group: members leave, fall silent, or were never heard of again."""

from collections.abc import Sequence
from typing import NamedTuple

from strom.groups.classic.change import JOIN, SESSION, SYNC, Change
from strom.groups.classic.group import ClassicGroup
from strom.groups.classic.rebalance import (
    complete_if_all_joined,
    end_joining,
    end_syncing,
    prepare_or_complete,
    remove,
)
from strom.replicated.machine import Decision, KeyValue, TimerKey
from strom.wire.errors import ErrorCode, KafkaError


class Leaver(NamedTuple):
    """A member that leaves, or a static one that is sent away by its name alone."""

    member_id: str
    instance_id: str | None = None


def leave(
    group: ClassicGroup | None, leavers: Sequence[Leaver], *, now_ms: int
) -> Decision[KeyValue, tuple[ErrorCode, ...]]:
    """Let members leave, each with its own answer; one round follows for all of them."""
    if group is None:
        return Decision((), (ErrorCode.UNKNOWN_MEMBER_ID,) * len(leavers))
    change = Change(group, now_ms)
    codes = tuple(_leave(change, each) for each in leavers)
    _close_ranks(change, len(group.members))
    return change.decision(codes)


def _leave(change: Change, leaver: Leaver) -> ErrorCode:
    try:
        member_id = _find(change.group, leaver)
    except KafkaError as error:
        return error.code
    remove(change, member_id)
    return ErrorCode.NONE


def _find(group: ClassicGroup, leaver: Leaver) -> str:
    """Return the id of the one that leaves."""
    if leaver.member_id in group.promised:
        return leaver.member_id
    if leaver.member_id:
        group.check_member(leaver.member_id, leaver.instance_id)
        return leaver.member_id
    by_name = None if leaver.instance_id is None else group.instances.get(leaver.instance_id)
    if by_name is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    return by_name


def _close_ranks(change: Change, members_before: int) -> None:
    """Share the work anew among those who stay; one who was only expected had none."""
    if len(change.group.members) < members_before:
        prepare_or_complete(change)
    else:
        complete_if_all_joined(change)


def on_timer(group: ClassicGroup | None, key: TimerKey, now_ms: int) -> Decision[KeyValue, None]:
    """Do what is due; a timer of something that is over has no effect."""
    if group is None:
        return Decision((), None)
    change = Change(group, now_ms)
    match key:
        case (kind, _, member_id) if kind == SESSION:
            _end_session(change, member_id)
        case (kind, _) if kind == JOIN:
            end_joining(change)
        case (kind, _) if kind == SYNC:
            end_syncing(change)
    return change.decision(None)


def _end_session(change: Change, member_id: str) -> None:
    group = change.group
    waits = member_id in group.joining or member_id in group.syncing
    if waits and member_id not in group.fresh:
        # Who waits here cannot send heartbeats. A newcomer's client may be gone: it has its time.
        return
    if member_id in group.members or member_id in group.promised:
        remove(change, member_id)
        _close_ranks(change, len(group.members))
