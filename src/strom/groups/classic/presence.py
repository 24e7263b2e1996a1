"""What members do between rounds: send heartbeats, commit offsets. And what a restart does to them.

A heartbeat moves one timer and touches nothing else, however large the group is.
"""

from strom.groups.classic.change import Change, session_key
from strom.groups.classic.group import ClassicGroup, Phase
from strom.groups.classic.rebalance import prepare
from strom.replicated.machine import Decision, KeyValue, TimerKey
from strom.wire.errors import ErrorCode, KafkaError


def heartbeat(
    group: ClassicGroup | None,
    member_id: str,
    instance_id: str | None,
    generation_id: int,
    *,
    now_ms: int,
) -> Decision[KeyValue, ErrorCode]:
    """Renew the member's session; tell it if everybody is called in."""
    if group is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    _check_generation(group, member_id, instance_id, generation_id)
    called_in = group.phase is Phase.PREPARING
    code = ErrorCode.REBALANCE_IN_PROGRESS if called_in else ErrorCode.NONE
    return Decision((), code, timers=(session_timer(group, member_id, now_ms),))


def session_timer(group: ClassicGroup, member_id: str, now_ms: int) -> tuple[TimerKey, int]:
    """Return the timer of a member's session that begins now."""
    timeout_ms = group.members[member_id].session_timeout_ms
    return session_key(group.id, member_id), now_ms + timeout_ms


def check_commit(
    group: ClassicGroup,
    member_id: str,
    instance_id: str | None,
    generation_id: int,
    *,
    transactional: bool = False,
) -> None:
    """Refuse offsets from who is not of this generation.

    Without generation and id it is a consumer that does not use the group's rounds: it may commit
    while the group is empty, or within a transaction (old clients do not say who they are).
    """
    if generation_id < 0 and group.is_empty:
        return
    if generation_id >= 0 or member_id or instance_id is not None:
        _check_generation(group, member_id, instance_id, generation_id)
    elif not transactional:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    if group.phase is Phase.COMPLETING and not transactional:
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)


def commit_timers(
    group: ClassicGroup, member_id: str, now_ms: int
) -> tuple[tuple[TimerKey, int], ...]:
    """Return the timers that a commit sets: like a heartbeat, it shows that the member lives."""
    if member_id not in group.members:
        return ()
    return (session_timer(group, member_id, now_ms),)


def on_loaded(group: ClassicGroup, max_size: int, now_ms: int) -> Decision[KeyValue, None]:
    """Give every member of the logged generation a session; a group over the limit must shrink."""
    change = Change(group, now_ms)
    for member_id in group.members:
        change.renew_session(member_id)
    if len(group.members) > max_size:
        prepare(change)
    return change.decision(None)


def _check_generation(
    group: ClassicGroup, member_id: str, instance_id: str | None, generation_id: int
) -> None:
    group.check_member(member_id, instance_id)
    if generation_id != group.generation_id:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
