"""SyncGroup: the leader brings the assignment, everybody fetches its own part."""

from collections.abc import Mapping
from typing import NamedTuple

from strom.groups.classic.change import Change
from strom.groups.classic.group import ClassicGroup, Phase
from strom.groups.classic.rebalance import prepare, share
from strom.groups.classic.replies import Synced, synced
from strom.replicated.machine import Decision, KeyValue, Wait
from strom.wire.errors import ErrorCode, KafkaError

NO_ASSIGNMENTS: Mapping[str, bytes] = {}

SyncDecision = Decision[KeyValue, Synced | Wait]


class SyncRequest(NamedTuple):
    """Who wants to know its part; the leader brings everybody's."""

    group_id: str
    member_id: str
    instance_id: str | None
    generation_id: int
    #: None from clients before version 5.
    protocol_type: str | None = None
    protocol: str | None = None
    assignments: Mapping[str, bytes] = NO_ASSIGNMENTS


def sync(group: ClassicGroup | None, request: SyncRequest, *, now_ms: int) -> SyncDecision:
    """Decide about a SyncGroup; refuse with a KafkaError who is not of this generation."""
    if group is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    _check(group, request)
    if group.phase is Phase.PREPARING:
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
    change = Change(group, now_ms)
    member_id = request.member_id
    unsynced = group.unsynced - {member_id}
    if group.unsynced and not unsynced:
        change.call_sync_after(None)
    if group.phase is Phase.STABLE:
        if member_id in group.unsynced:
            change.group = group._replace(unsynced=unsynced)
        return change.decision(synced(group, member_id))
    change.group = group._replace(syncing=group.syncing | {member_id}, unsynced=unsynced)
    if member_id == group.leader:
        share(change, request.assignments)
    return change.wait_to_sync(member_id)


def fail_to_share(
    group: ClassicGroup | None, generation_id: int, error: ErrorCode, *, now_ms: int
) -> Decision[KeyValue, None]:
    """Begin a new round after the leader's assignment could not be written; tell who waits."""
    if group is None or group.phase is not Phase.COMPLETING or group.generation_id != generation_id:
        return Decision((), None)
    change = Change(group, now_ms)
    change.answer_syncs(error)
    prepare(change)
    return change.decision(None)


def _check(group: ClassicGroup, request: SyncRequest) -> None:
    group.check_member(request.member_id, request.instance_id)
    if request.generation_id != group.generation_id:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    if _differ(request.protocol_type, group.protocol_type) or _differ(
        request.protocol, group.protocol
    ):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _differ(asked: str | None, current: str | None) -> bool:
    return asked is not None and current is not None and asked != current
