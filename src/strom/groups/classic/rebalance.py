"""The steps of a round: everybody is called in, all are in, the leader has shared the work.

    Empty, Stable, CompletingRebalance ──prepare──▶ PreparingRebalance ──complete_join──▶
    CompletingRebalance ──share──▶ Stable                 (nobody left: ▶ Empty)

Every step is bounded in time: `prepare` sets the timer that ends the joining, `complete_join` the
one that ends the fetching of assignments, and a member that waits for nothing has a session.
"""

from collections.abc import Mapping
from dataclasses import replace

from strom.groups.classic import votes
from strom.groups.classic.change import Change
from strom.groups.classic.group import NOBODY, ClassicGroup, InitialDelay, Phase
from strom.wire.errors import ErrorCode

#: How often a round that nobody joined is looked at, at most; members may ask for no time at all.
RETRY_MS_MIN = 1000


def prepare_or_complete(change: Change, initial_delay_ms: int = 0) -> None:
    """Begin a round if none is being prepared, or end the joining if everybody is in."""
    if change.group.phase is Phase.PREPARING:
        complete_if_all_joined(change)
    else:
        prepare(change, initial_delay_ms)


def prepare(change: Change, initial_delay_ms: int = 0) -> None:
    """Begin a round: whoever sends a heartbeat now is told to join again."""
    group = change.group
    if group.phase is Phase.COMPLETING:
        _take_assignments_back(change)
        change.answer_syncs(ErrorCode.REBALANCE_IN_PROGRESS)
    change.call_sync_after(None)
    initial = None
    if group.is_empty:
        left_ms = max(group.rebalance_timeout_ms - initial_delay_ms, 0)
        initial = InitialDelay(initial_delay_ms, left_ms)
        change.call_join_after(initial_delay_ms)
    change.enter(Phase.PREPARING)
    change.group = change.group._replace(unsynced=NOBODY, initial=initial)
    if initial is None:
        if change.group.all_joined:
            complete_join(change)
        else:
            change.call_join_after(change.group.rebalance_timeout_ms)


def complete_if_all_joined(change: Change) -> None:
    """End the joining early if nobody is missing; a first round has its delay all the same."""
    group = change.group
    if group.phase is Phase.PREPARING and group.initial is None and group.all_joined:
        complete_join(change)


def end_joining(change: Change) -> None:
    """Do what is due when the time to join is over."""
    group = change.group
    if group.phase is not Phase.PREPARING:
        return
    initial = group.initial
    if initial is not None and initial.grew and initial.left_ms:
        delay_ms = min(initial.delay_ms, initial.left_ms)
        left_ms = max(initial.left_ms - initial.delay_ms, 0)
        change.group = group._replace(initial=InitialDelay(initial.delay_ms, left_ms))
        change.call_join_after(delay_ms)
    else:
        complete_join(change)


def complete_join(change: Change) -> None:
    """End the joining: who did not come is out, but for static members, and a generation begins."""
    _remove_missing(change)
    group = change.group
    leader = _leader_of(group)
    if group.members and leader is None:
        # Only static members are left, all of them away. Their sessions end this, or they do.
        change.call_join_after(max(group.rebalance_timeout_ms, RETRY_MS_MIN))
        return
    change.call_join_after(None)
    change.group = group._replace(
        generation_id=group.generation_id + 1,
        leader=leader,
        protocol=votes.choose(group) if group.members else None,
        initial=None,
        fresh=NOBODY,
        unsynced=frozenset(group.members),
    )
    if group.members:
        change.enter(Phase.COMPLETING)
        change.answer_joins()
        for member_id in group.members:
            change.renew_session(member_id)
        change.call_sync_after(group.rebalance_timeout_ms)
    else:
        change.enter(Phase.EMPTY)
        change.write()


def share(change: Change, assignments: Mapping[str, bytes]) -> None:
    """End the round: every member has what the leader gave it, or nothing."""
    members = {
        key: replace(member, assignment=assignments.get(key, b""))
        for key, member in change.group.members.items()
    }
    change.group = change.group._replace(members=members)
    change.enter(Phase.STABLE)
    change.write()
    change.answer_syncs()


def end_syncing(change: Change) -> None:
    """Remove who has not asked for its assignment in time; the others share its work."""
    late = change.group.unsynced
    if change.group.phase in (Phase.COMPLETING, Phase.STABLE) and late:
        for member_id in sorted(late):
            change.call_session_after(member_id, None)
        change.group = change.group.without(late)
        prepare(change)


def remove(change: Change, member_id: str, error: ErrorCode = ErrorCode.UNKNOWN_MEMBER_ID) -> None:
    """Take a member, or one that is expected, out of the group; no round follows by itself."""
    change.dismiss(member_id, error)
    change.call_session_after(member_id, None)
    change.group = change.group.without((member_id,))


def _take_assignments_back(change: Change) -> None:
    members = {key: replace(member, assignment=b"") for key, member in change.group.members.items()}
    change.group = change.group._replace(members=members)


def _remove_missing(change: Change) -> None:
    group = change.group
    missing = [
        each.id
        for each in group.members.values()
        if each.id not in group.joining and not each.is_static
    ]
    for member_id in missing:
        change.call_session_after(member_id, None)
    if missing:
        change.group = group.without(missing)


def _leader_of(group: ClassicGroup) -> str | None:
    """Return who leads the next generation: the leader if it came, else the longest-standing."""
    if group.leader in group.joining:
        return group.leader
    return next((each for each in group.members if each in group.joining), None)
