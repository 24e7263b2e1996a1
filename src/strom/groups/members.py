"""Requests of the classic protocol, taken to whoever knows the kind of group that they are about.

A group that nobody has heard of begins as a classic one. One that has nothing but offsets is an
empty classic group already. Groups of another kind can have members of the classic protocol too
(KIP-848's migration): their package says in `KINDS` how it deals with them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from strom.groups.classic import joining, leaving, presence, syncing
from strom.groups.classic.group import ClassicGroup
from strom.groups.classic.joining import JoinDecision, JoinRequest, Limits
from strom.groups.classic.leaving import Leaver
from strom.groups.classic.syncing import SyncDecision, SyncRequest
from strom.groups.consumer import coordinator as consumer
from strom.groups.consumer.group import ConsumerGroup
from strom.groups.machine import GroupMachine
from strom.replicated.machine import Decision, KeyValue
from strom.wire.errors import ErrorCode

LeaveDecision = Decision[KeyValue, tuple[ErrorCode, ...]]
BeatDecision = Decision[KeyValue, ErrorCode]


class Beat(NamedTuple):
    """A heartbeat."""

    group_id: str
    member_id: str
    instance_id: str | None
    generation_id: int


class Leaving(NamedTuple):
    """Who leaves what."""

    group_id: str
    leavers: tuple[Leaver, ...]


class Kind(NamedTuple):
    """How a group of another kind deals with members of the classic protocol.

    Each takes the machine, the group, the request, and the time.
    """

    join: Callable[[GroupMachine, Any, JoinRequest, int], JoinDecision]
    sync: Callable[[GroupMachine, Any, SyncRequest, int], SyncDecision]
    beat: Callable[[GroupMachine, Any, Beat, int], BeatDecision]
    leave: Callable[[GroupMachine, Any, Leaving, int], LeaveDecision]


#: By the type of group, but for classic ones.
KINDS: dict[type, Kind] = {
    ConsumerGroup: Kind(consumer.join, consumer.sync, consumer.beat_classic, consumer.leave)
}


def join(machine: GroupMachine, request: JoinRequest, now_ms: int) -> JoinDecision:
    """Decide about a JoinGroup."""
    group = find(machine, request.group_id)
    if kind := KINDS.get(type(group)):
        return kind.join(machine, group, request, now_ms)
    settings = machine.settings
    limits = Limits(
        settings.number("group.max.size"), settings.number("group.initial.rebalance.delay.ms")
    )
    return joining.join(group, request, limits=limits, now_ms=now_ms)


def sync(machine: GroupMachine, request: SyncRequest, now_ms: int) -> SyncDecision:
    """Decide about a SyncGroup; refuse with a KafkaError who is not of this generation."""
    group = find(machine, request.group_id)
    if kind := KINDS.get(type(group)):
        return kind.sync(machine, group, request, now_ms)
    return syncing.sync(group, request, now_ms=now_ms)


def fail_to_share(
    machine: GroupMachine, request: SyncRequest, error: ErrorCode, now_ms: int
) -> Decision[KeyValue, None]:
    """Begin a new round after a leader's assignment could not be written."""
    group = find(machine, request.group_id)
    known = group if isinstance(group, ClassicGroup) else None
    return syncing.fail_to_share(known, request.generation_id, error, now_ms=now_ms)


def beat(machine: GroupMachine, request: Beat, now_ms: int) -> BeatDecision:
    """Decide about a heartbeat; refuse with a KafkaError who is not of this generation."""
    group = machine.group(request.group_id)
    if kind := KINDS.get(type(group)):
        return kind.beat(machine, group, request, now_ms)
    return presence.heartbeat(
        group, request.member_id, request.instance_id, request.generation_id, now_ms=now_ms
    )


def leave(machine: GroupMachine, request: Leaving, now_ms: int) -> LeaveDecision:
    """Let members leave; a code for each."""
    group = find(machine, request.group_id)
    if kind := KINDS.get(type(group)):
        return kind.leave(machine, group, request, now_ms)
    return leaving.leave(group, request.leavers, now_ms=now_ms)


def find(machine: GroupMachine, group_id: str) -> Any:  # noqa: ANN401 - one of several kinds
    """Return the group as it is now; one of offsets alone is a classic group without members."""
    group = machine.group(group_id)
    if group is None and group_id in machine.offsets:
        return ClassicGroup(group_id)
    return group
