"""One decision about a group while it is made: what becomes of the group, and who hears of it.

A decision of this package makes a `Change`, lets the steps of the protocol (`rebalance`) work
on it, and returns what it has become. Nothing outside sees it before that.
"""

from typing import TypeVar

from strom.groups.classic.group import ClassicGroup, Phase
from strom.groups.classic.logged import group_record
from strom.groups.classic.replies import (
    NO_MEMBER,
    Joined,
    Synced,
    join_ticket,
    joined,
    sync_ticket,
    synced,
)
from strom.replicated.machine import Decision, KeyValue, Ticket, TimerKey, Wait
from strom.wire.errors import ErrorCode

#: The first word of the keys of this package's timers.
SESSION = "classic-session"
JOIN = "classic-join"
SYNC = "classic-sync"

Reply = TypeVar("Reply")


def session_key(group_id: str, member_id: str) -> TimerKey:
    """Return the key of the timer that ends a member's session."""
    return (SESSION, group_id, member_id)


class Change:
    """What one decision does to a group."""

    def __init__(self, group: ClassicGroup, now_ms: int) -> None:
        self.group = group
        self.now_ms = now_ms
        self._before = group
        self._records: list[KeyValue] = []
        self._timers: dict[TimerKey, int | None] = {}
        self._joins: dict[str, Joined] = {}
        self._syncs: dict[str, Synced] = {}

    def enter(self, phase: Phase) -> None:
        """Begin a phase now."""
        self.group = self.group._replace(phase=phase, since_ms=self.now_ms)

    def write(self) -> None:
        """Have the group written as it is."""
        self._records.append(group_record(self.group))

    def call_join_after(self, delay_ms: int | None) -> None:
        """Be called when the time to join is over; None: no more."""
        self._set_timer((JOIN, self.group.id), delay_ms)

    def call_sync_after(self, delay_ms: int | None) -> None:
        """Be called when the time to fetch assignments is over; None: no more."""
        self._set_timer((SYNC, self.group.id), delay_ms)

    def call_session_after(self, member_id: str, delay_ms: int | None) -> None:
        """Be called when the member's session is over; None: it has none any more."""
        self._set_timer(session_key(self.group.id, member_id), delay_ms)

    def renew_session(self, member_id: str) -> None:
        """Let the member's session begin now."""
        self.call_session_after(member_id, self.group.members[member_id].session_timeout_ms)

    def _set_timer(self, key: TimerKey, delay_ms: int | None) -> None:
        self._timers[key] = None if delay_ms is None else self.now_ms + delay_ms

    def answer_joins(self) -> None:
        """Tell all who wait in JoinGroup of the generation that they are in."""
        for member_id in self.group.members:
            if member_id in self.group.joining:
                self._answer_join(member_id, joined(self.group, member_id))
        self.group = self.group._replace(joining=frozenset())

    def answer_syncs(self, error: ErrorCode = ErrorCode.NONE) -> None:
        """Tell all who wait in SyncGroup what they got, or why nothing comes of it."""
        for member_id in self.group.members:
            if member_id in self.group.syncing:
                reply = Synced(error) if error else synced(self.group, member_id)
                self._answer_sync(member_id, reply)
                self.renew_session(member_id)
        self.group = self.group._replace(syncing=frozenset())

    def dismiss(self, member_id: str, error: ErrorCode, told_id: str = NO_MEMBER) -> None:
        """Answer whatever the member waits for: it has no place here any more."""
        self._answer_join(member_id, Joined(told_id, error))
        self._answer_sync(member_id, Synced(error))

    def _answer_join(self, member_id: str, reply: Joined) -> None:
        if member_id in self.group.joining:
            self._joins[member_id] = reply

    def _answer_sync(self, member_id: str, reply: Synced) -> None:
        if member_id in self.group.syncing:
            self._syncs[member_id] = reply

    def wait_to_join(self, member_id: str) -> Decision[KeyValue, Joined | Wait]:
        """Answer who asked when all have joined, which may be now."""
        return self.decision(
            self._joins.get(member_id) or Wait(join_ticket(self.group.id, member_id))
        )

    def wait_to_sync(self, member_id: str) -> Decision[KeyValue, Synced | Wait]:
        """Answer who asked when the leader has shared the work, which may be now."""
        return self.decision(
            self._syncs.get(member_id) or Wait(sync_ticket(self.group.id, member_id))
        )

    def decision(self, reply: Reply) -> Decision[KeyValue, Reply]:
        """Return what it has come to."""
        group = self.group
        soft: tuple[tuple[str, object], ...] = ()
        if group is not self._before or self._records:
            # All that there is to know of an empty group is in the log.
            nothing_soft = group.is_empty and not group.promised
            soft = ((group.id, None if nothing_soft else group),)
        timers = tuple(self._timers.items())
        return Decision(tuple(self._records), reply, timers, soft, self._answers())

    def _answers(self) -> tuple[tuple[Ticket, object], ...]:
        group_id = self.group.id
        joins = [(join_ticket(group_id, key), reply) for key, reply in self._joins.items()]
        syncs = [(sync_ticket(group_id, key), reply) for key, reply in self._syncs.items()]
        return (*joins, *syncs)
