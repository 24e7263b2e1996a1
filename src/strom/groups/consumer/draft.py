"""One decision about a consumer group while it is made.

What it writes is carried out on the draft's own group at once, so that the next step of the
decision reads the result. Nothing outside sees it before it is decided: the group is a value.
"""

from collections.abc import Iterable
from typing import NamedTuple, TypeVar

from immutables import Map

from strom.groups.consumer.assignors.subscriber import Partitions
from strom.groups.consumer.group import Became, ConsumerGroup
from strom.groups.consumer.limits import Limits
from strom.groups.consumer.member import Member
from strom.groups.consumer.replay import step
from strom.metadata.image import Image, Topic
from strom.replicated.machine import Decision, KeyValue, Ticket, TimerKey

#: The first word of the keys of this package's timers: the end of a member's session, of the time
#: to give partitions up, and, for members of the classic protocol, to join again and to sync.
SESSION = "consumer-session"
REBALANCE = "consumer-rebalance"
JOIN = "consumer-join"
SYNC = "consumer-sync"
TIMERS = (SESSION, REBALANCE, JOIN, SYNC)

Reply = TypeVar("Reply")


class Moment(NamedTuple):
    """What a decision sees besides the group: the cluster, the settings, the time."""

    image: Image
    limits: Limits
    now_ms: int


class Asking(NamedTuple):
    """What a heartbeat has said that waits for the end of the turn."""

    #: Its place in the order in which they came.
    rank: int
    #: What it holds; None if it does not say.
    owned: Partitions | None
    #: Whether it wants other topics than before.
    resubscribed: bool
    #: Whether it is told all that it shall hold, also if that is what it had.
    tells_all: bool


class Watch(NamedTuple):
    """The soft state of a consumer group: what need not be looked at again, and who waits."""

    #: The topics of the cluster when the group's own were last compared with them.
    topics: Map[str, Topic] | None = None
    #: The topics that patterns were last matched against, and when.
    matched: Map[str, Topic] | None = None
    matched_at_ms: int = 0
    #: Members of the classic protocol that were told to join again and have a timer for it.
    called_in: frozenset[str] = frozenset()
    #: Members that wait for the end of the turn.
    asking: Map[str, Asking] = Map()
    #: When the first of them came, and how many there were at the last look.
    asked_since_ms: int = 0
    seen: int = 0
    #: Whether the group was assigned to for them: the next turn is for their steps, whoever comes.
    is_assigned: bool = False
    #: The rank of the last one that came.
    rank: int = 0


class Draft:
    """What one decision does to a group."""

    def __init__(self, group: ConsumerGroup, moment: Moment, watch: object = None) -> None:
        self.group = self._group_before = group
        self.moment = moment
        self.watch = self._before = watch if isinstance(watch, Watch) else Watch()
        self.records: list[KeyValue] = []
        self.timers: dict[TimerKey, int | None] = {}
        self.answers: list[tuple[Ticket, object]] = []

    def write_first(self, records: Iterable[KeyValue]) -> None:
        """Write what is about something else that was there under the group's name."""
        assert not self.records
        self.records.extend(records)

    def write(self, *records: KeyValue) -> None:
        """Write records of the group, and take them as facts."""
        for record in records:
            self.records.append(record)
            self.group = step(self.group, record)

    def answer(self, answers: Iterable[tuple[Ticket, object]]) -> None:
        """Answer requests that wait."""
        self.answers.extend(answers)

    def forget(self, timers: Iterable[TimerKey]) -> None:
        """Forget timers."""
        self.timers.update(dict.fromkeys(timers))

    def call_after(self, kind: str, member_id: str, delay_ms: int) -> None:
        """Be called when a member's time is over."""
        self.timers[kind, self.group.id, member_id] = self.moment.now_ms + delay_ms

    def call_no_more(self, member_id: str, *kinds: str) -> None:
        """Forget timers of a member."""
        self.forget((kind, self.group.id, member_id) for kind in kinds)

    def expect_no_more(self, member_ids: frozenset[str]) -> None:
        """Note of members that were told to join again that they have, or are gone."""
        if self.watch.called_in & member_ids:
            self.watch = self.watch._replace(called_in=self.watch.called_in - member_ids)

    def renew_session(self, member: Member) -> None:
        """Let the member's session begin now."""
        timeout_ms = self.moment.limits.session_timeout_ms
        if member.classic is not None:
            timeout_ms = member.classic.session_timeout_ms
        self.call_after(SESSION, member.id, timeout_ms)

    def decision(self, reply: Reply) -> Decision[KeyValue, Reply]:
        """Return what it has come to."""
        records = tuple(self.records)
        changed = self.watch is not self._before
        return Decision(
            records,
            reply,
            timers=tuple(self.timers.items()),
            soft=((self.group.id, self.watch),) if changed else (),
            answers=tuple(self.answers),
            outcome=Became(self.group.id, self._group_before, self.group) if records else None,
        )
