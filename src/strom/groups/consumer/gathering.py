"""Those who join in one turn of the loop are assigned to together.

    heartbeat ──▶ joins, or others do, and ──no──▶ step, answer
                  the group is to be
                  assigned to?
                      │ yes
                      ▼
                  wait for the end of the turn ──▶ one assignment, a step and an answer for each

Where a hundred members start at once each would have the group assigned to anew, be given what the
next one takes from it again, and be a batch of the log. So whoever joins, or subscribes to
something else, waits until all that came with it has been looked at, and so does everybody who
comes until then. Whoever is alone waits for nobody.

What waits is soft state. Who has no place in the group any more is answered at once, so that nobody
is left behind when the turn is over.
"""

from collections.abc import Collection, Iterable, Mapping
from uuid import UUID

from strom.groups.consumer.assignors.subscriber import Partitions
from strom.groups.consumer.draft import Asking, Draft, Moment
from strom.groups.consumer.group import ConsumerGroup
from strom.groups.consumer.member import Member, State, partitions_of
from strom.groups.consumer.progress import assign_if_due, take_step
from strom.groups.consumer.replies import Beat, unknown_member
from strom.replicated.machine import Decision, KeyValue, Ticket, TimerKey, Wait
from strom.wire.errors import KafkaError

#: The first word of the key of the timer that ends a turn.
TURN = "consumer-turn"
#: How long members are waited for that come one after the other, turn by turn.
GATHERING_MS_MAX = 20
#: How many members take their steps in one decision, and how many bytes that may come to, about.
#: It is one batch of the log, and a third of what that may be by default.
STEPS_MAX = 200
BYTES_MAX = 350_000
#: What is written of each: at least, for a character of its names, for a topic, for a partition.
RECORD_BYTES = 64
CHARACTER_BYTES = 3
TOPIC_BYTES = 24
PARTITION_BYTES = 8


def wait_for_turn(draft: Draft, member: Member, asking: Asking) -> Decision[KeyValue, Wait]:
    """Answer the member once all that came with it has been looked at."""
    group_id, asked = draft.group.id, draft.watch.asking
    before = asked.get(member.id)
    if before is not None:
        asking = _joined(before, asking)
    elif not asked:
        draft.timers[turn_key(group_id)] = draft.moment.now_ms
        draft.watch = draft.watch._replace(
            asked_since_ms=draft.moment.now_ms, seen=0, is_assigned=False
        )
    watch = draft.watch
    draft.watch = watch._replace(
        asking=asked.set(member.id, asking), rank=max(watch.rank, asking.rank)
    )
    draft.renew_session(member)
    return draft.decision(Wait(_ticket(group_id, member.id)))


def turn_key(group_id: str) -> TimerKey:
    """Return the key of the timer that ends the turn of a group."""
    return (TURN, group_id)


def _ticket(group_id: str, member_id: str) -> Ticket:
    return (TURN, group_id, member_id)


def _joined(before: Asking, after: Asking) -> Asking:
    """Return what a member has said that asked twice."""
    return Asking(
        before.rank,
        before.owned if after.owned is None else after.owned,
        resubscribed=before.resubscribed or after.resubscribed,
        tells_all=before.tells_all or after.tells_all,
    )


def on_turn_over(found: object, moment: Moment, watch: object) -> Decision[KeyValue, None]:
    """Assign to the group, and have those who wait take their steps."""
    if not isinstance(found, ConsumerGroup):
        return Decision((), None)
    draft = Draft(found, moment, watch)
    key = turn_key(found.id)
    if _are_more_coming(draft):
        draft.watch = draft.watch._replace(seen=len(draft.watch.asking))
        draft.timers[key] = moment.now_ms
        return draft.decision(None)
    if not draft.watch.is_assigned:
        assign_if_due(draft)
        if _bytes_of_targets(found, draft.group) > BYTES_MAX:
            # The steps are another batch, and come next, so that they come at all.
            draft.watch = draft.watch._replace(is_assigned=True)
            draft.timers[key] = moment.now_ms
            return draft.decision(None)
    _take_steps(draft)
    if draft.watch.is_assigned:
        draft.watch = draft.watch._replace(seen=0, is_assigned=False)
    if draft.watch.asking:
        draft.timers[key] = moment.now_ms
    return draft.decision(None)


def _take_steps(draft: Draft) -> None:
    """Have as many take their steps as fit into one batch."""
    group_id, asked, size = draft.group.id, draft.watch.asking, 0
    for member_id in _in_order(draft.group, asked.items())[:STEPS_MAX]:
        asking = asked[member_id]
        asked = asked.delete(member_id)
        draft.answer(((_ticket(group_id, member_id), _step_of(draft, member_id, asking)),))
        member = draft.group.members[member_id]
        size += _bytes_of(group_id, member_id, member.assigned, member.revoking)
        if size > BYTES_MAX:
            break
    if asked is not draft.watch.asking:
        draft.watch = draft.watch._replace(asking=asked)


def _bytes_of_targets(before: ConsumerGroup, after: ConsumerGroup) -> int:
    """Return how much the targets take up, about, that were written anew."""
    if after.targets is before.targets:
        return 0
    return sum(
        _bytes_of(after.id, member_id, target)
        for member_id, target in after.targets.items()
        if before.targets.get(member_id) is not target
    )


def _bytes_of(group_id: str, member_id: str, *some: Mapping[UUID, Collection[int]]) -> int:
    size = RECORD_BYTES + CHARACTER_BYTES * (len(group_id) + len(member_id))
    for held in some:
        for partitions in held.values():
            size += TOPIC_BYTES + PARTITION_BYTES * len(partitions)
    return size


def _are_more_coming(draft: Draft) -> bool:
    """Say whether members have come since the last look, and may still come."""
    watch = draft.watch
    waited_ms = draft.moment.now_ms - watch.asked_since_ms
    # Where the time of day was set back, nobody knows how long it was.
    are_new = not watch.is_assigned and watch.seen != len(watch.asking)
    return are_new and 0 <= waited_ms < GATHERING_MS_MAX


def _in_order(group: ConsumerGroup, asked: Iterable[tuple[str, Asking]]) -> list[str]:
    """Return who waits; first those who may give something up, so that others find it."""
    ranked = [
        (group.members[member_id].state is not State.UNREVOKED_PARTITIONS, asking.rank, member_id)
        for member_id, asking in asked
    ]
    return [member_id for _, _, member_id in sorted(ranked)]


def _step_of(draft: Draft, member_id: str, asking: Asking) -> Beat | KafkaError:
    member = draft.group.members[member_id]
    try:
        return beat_of(
            draft,
            member,
            asking.owned,
            resubscribed=asking.resubscribed,
            tells_all=asking.tells_all,
        )
    except KafkaError as error:
        return error


def beat_of(
    draft: Draft, member: Member, owned: Partitions | None, *, resubscribed: bool, tells_all: bool
) -> Beat:
    """Have a member of the group take its step; return what it is told."""
    after = take_step(draft, member, owned, resubscribed=resubscribed)
    draft.renew_session(after)
    assignment = None
    if tells_all or after.assigned != member.assigned:
        assignment = partitions_of(after.assigned)
    return Beat(after.id, after.epoch, draft.moment.limits.heartbeat_interval_ms, assignment)


def answer_at_once(draft: Draft, beat: Beat) -> Decision[KeyValue, Beat]:
    """Answer a heartbeat; an earlier one of the member that still waits is told the same.

    It has taken its step: what it had said before that does not count any more.
    """
    asked = draft.watch.asking
    if beat.member_id in asked:
        draft.watch = draft.watch._replace(asking=asked.delete(beat.member_id))
        draft.answer(((_ticket(draft.group.id, beat.member_id), beat),))
    return draft.decision(beat)


def dismiss(draft: Draft, member_ids: Iterable[str]) -> None:
    """Answer those of them that wait: they have no place in the group any more."""
    asked = draft.watch.asking
    for member_id in sorted(each for each in member_ids if each in asked):
        asked = asked.delete(member_id)
        told = unknown_member(draft.group.id, member_id)
        draft.answer(((_ticket(draft.group.id, member_id), told),))
    if asked is not draft.watch.asking:
        draft.watch = draft.watch._replace(asking=asked)
