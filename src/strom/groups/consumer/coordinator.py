"""How the coordinator of all groups comes by what this package decides.

Requests and timers of consumer groups, and requests of the classic protocol that are about one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strom.groups.classic import joining
from strom.groups.consumer import classic, gathering, leaving
from strom.groups.consumer.draft import Moment
from strom.groups.consumer.group import ConsumerGroup
from strom.groups.consumer.heartbeat import heartbeat
from strom.groups.consumer.limits import limits_of
from strom.groups.consumer.replies import group_not_found, not_a_consumer_group
from strom.groups.consumer.rows import group_gone
from strom.replicated.machine import Decision

if TYPE_CHECKING:
    from strom.groups.classic.joining import JoinDecision, JoinRequest
    from strom.groups.classic.syncing import SyncDecision, SyncRequest
    from strom.groups.consumer.replies import Beat
    from strom.groups.consumer.request import Heartbeat
    from strom.groups.machine import GroupMachine
    from strom.groups.members import Beat as ClassicBeat
    from strom.groups.members import BeatDecision, LeaveDecision, Leaving
    from strom.replicated.machine import KeyValue, TimerKey, Wait


def moment_of(machine: GroupMachine, group_id: str, now_ms: int) -> Moment:
    """Return what a decision about the group sees besides it."""
    limits = limits_of(group_id, machine.image, machine.settings)
    return Moment(machine.image, limits, now_ms)


def beat(machine: GroupMachine, said: Heartbeat, now_ms: int) -> Decision[KeyValue, Beat | Wait]:
    """Decide about a ConsumerGroupHeartbeat."""
    group_id = said.group_id
    moment = moment_of(machine, group_id, now_ms)
    return heartbeat(machine.group(group_id), said, moment, machine.soft.get(group_id))


def find(machine: GroupMachine, group_id: str) -> ConsumerGroup:
    """Return the group; refuse with a KafkaError if there is none, or one of another kind."""
    group = machine.group(group_id)
    if isinstance(group, ConsumerGroup):
        return group
    if group is None and group_id not in machine.offsets:
        raise group_not_found(group_id)
    raise not_a_consumer_group(group_id)


def on_timer(machine: GroupMachine, key: TimerKey, now_ms: int) -> Decision[KeyValue, object]:
    """Do what is due in a consumer group."""
    group_id = key[1]
    moment = moment_of(machine, group_id, now_ms)
    return leaving.on_timer(machine.group(group_id), key, moment, machine.soft.get(group_id))


def on_turn_over(machine: GroupMachine, key: TimerKey, now_ms: int) -> Decision[KeyValue, object]:
    """Assign to the group for all who have asked in this turn."""
    group_id = key[1]
    moment = moment_of(machine, group_id, now_ms)
    return gathering.on_turn_over(machine.group(group_id), moment, machine.soft.get(group_id))


def on_loaded(machine: GroupMachine, now_ms: int) -> list[Decision[KeyValue, object]]:
    """Give every member of a consumer group its session, in the order of the groups."""
    return [
        leaving.on_loaded(group, moment_of(machine, group_id, now_ms))
        for group_id, group in sorted(machine.groups.items())
        if isinstance(group, ConsumerGroup)
    ]


# Requests of the classic protocol.


def join(
    machine: GroupMachine, group: ConsumerGroup, request: JoinRequest, now_ms: int
) -> JoinDecision:
    """Take a member of the classic protocol in; a group without members becomes its kind."""
    if not group.is_empty:
        moment = moment_of(machine, group.id, now_ms)
        return classic.join(group, request, moment, machine.soft.get(group.id))
    settings = machine.settings
    limits = joining.Limits(
        settings.number("group.max.size"), settings.number("group.initial.rebalance.delay.ms")
    )
    decision = joining.join(None, request, limits=limits, now_ms=now_ms)
    if not decision.records:
        return decision
    return decision._replace(records=(*group_gone(group), *decision.records))


def sync(
    machine: GroupMachine, group: ConsumerGroup, request: SyncRequest, now_ms: int
) -> SyncDecision:
    """Tell a member of the classic protocol what it has."""
    moment = moment_of(machine, group.id, now_ms)
    return classic.sync(group, request, moment, machine.soft.get(group.id))


def beat_classic(
    machine: GroupMachine, group: ConsumerGroup, request: ClassicBeat, now_ms: int
) -> BeatDecision:
    """Renew the session of a member of the classic protocol."""
    return classic.heartbeat(
        group,
        request.member_id,
        request.instance_id,
        request.generation_id,
        moment=moment_of(machine, group.id, now_ms),
        watch=machine.soft.get(group.id),
    )


def leave(
    machine: GroupMachine, group: ConsumerGroup, request: Leaving, now_ms: int
) -> LeaveDecision:
    """Let members leave, of either protocol."""
    moment = moment_of(machine, group.id, now_ms)
    return classic.leave(group, request.leavers, moment, machine.soft.get(group.id))
