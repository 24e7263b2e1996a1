"""The coordinator of the groups in one partition of `__consumer_offsets`, as a machine.

Durable state: the offsets, and the groups, classic ones and consumer groups by one name each.
What their own packages know of them is called by the type of record, of timer, of group. A group
that has nothing but offsets, a *simple* one, is in `offsets` alone.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any
from uuid import UUID

from strom.groups import committing
from strom.groups.classic import leaving, presence
from strom.groups.classic.change import JOIN, SESSION, SYNC
from strom.groups.classic.group import ClassicGroup
from strom.groups.classic.logged import read_group
from strom.groups.committing import Answers, Commit, Query
from strom.groups.consumer import coordinator as consumer
from strom.groups.consumer import replay
from strom.groups.consumer.draft import TIMERS as CONSUMER_TIMERS
from strom.groups.consumer.gathering import TURN as CONSUMER_TURN
from strom.groups.consumer.group import Became, ConsumerGroup
from strom.groups.consumer.owner import ConsumerOwner
from strom.groups.offsets import Offsets, Place
from strom.groups.owners import ClassicOwner, Owner
from strom.groups.records import GroupMetadataKey, GroupMetadataValue, OffsetCommitKey
from strom.metadata.delta import Delta
from strom.metadata.image import Image
from strom.metadata.settings.values import BrokerSettings
from strom.replicated.machine import Decision, KeyValue, TimerKey, Transaction
from strom.wire.errors import ErrorCode

Outcome = Decision[KeyValue, object]

#: Timers of offsets: look at the groups behind this one; a topic that is gone, by name and id; look
#: for the offsets of topics that are gone in the groups behind this one.
EXPIRE = "offsets-expire"
DELETED_TOPIC = "offsets-of-deleted"
MISSING_TOPICS = "offsets-of-missing"
#: How many groups are looked at in one go.
GROUPS_AT_ONCE = 200
MINUTE_MS = 60_000
#: How many simple groups are remembered as what they are.
SIMPLE_MAX = 1000

NOTHING: Outcome = Decision((), None)


class GroupMachine:
    """Groups and their offsets."""

    def __init__(self, image: Image, settings: BrokerSettings) -> None:
        self.image = image
        self.settings = settings
        #: Durable.
        self.offsets = Offsets()
        #: Durable: classic and consumer groups by their ids.
        self.groups: dict[str, Any] = {}
        #: By group id, never logged. Of a classic group: the whole of it as it is now.
        self.soft: dict[str, object] = {}

    def see(self, image: Image, settings: BrokerSettings) -> None:
        """Decide by this image and these settings from now on."""
        self.image, self.settings = image, settings

    def group(self, group_id: str) -> Any:  # noqa: ANN401 - one of several kinds
        """Return the group as it is now, None if it is a simple one or none."""
        soft = self.soft.get(group_id)
        return soft if isinstance(soft, ClassicGroup) else self.groups.get(group_id)

    def owner(self, group_id: str) -> Owner | None:
        """Return the group as its offsets see it, None if there is no group."""
        group = self.group(group_id)
        if group is not None:
            return OWNERS[type(group)](group)
        return simple(group_id) if group_id in self.offsets else None

    def group_ids(self) -> list[str]:
        """Return the ids of all groups, simple ones too, in order."""
        return sorted({*self.groups, *self.soft, *self.offsets.group_ids()})

    # State.

    def apply(self, record: KeyValue, transaction: Transaction | None = None) -> None:
        """Take the record as a fact; one of a transaction counts once that is committed."""
        key, value = record
        if isinstance(key, OffsetCommitKey):
            self.offsets.apply(key, value, transaction)
            return
        apply = APPLY.get(type(key))
        if apply is not None:
            apply(self.groups, key, value)
            if self.offsets.bare:
                self.offsets.bare.discard(group_of(key))

    def take_over(self, outcome: object) -> bool:
        """Have what a consumer group has become, if it was worked out of the one that is here."""
        if not isinstance(outcome, Became) or self.groups.get(outcome.id) is not outcome.before:
            return False
        self.groups[outcome.id] = outcome.after
        self.offsets.bare.discard(outcome.id)
        return True

    def on_marker(self, producer_id: int, producer_epoch: int, *, committed: bool) -> None:
        """Let the offsets of the producer's transaction count, or forget them."""
        self.offsets.end_transaction(producer_id, committed=committed)

    def set_soft(self, key: str, value: object) -> None:
        """Replace the soft state of a group; None forgets it."""
        if value is None:
            self.soft.pop(key, None)
        else:
            self.soft[key] = value

    # Offsets.

    def commit_offsets(self, asked: Commit, now_ms: int) -> Decision[KeyValue, list[ErrorCode]]:
        """Commit offsets; a code for each."""
        return committing.commit(
            self.owner(asked.group_id),
            asked,
            now_ms=now_ms,
            metadata_max=self.settings.number("offset.metadata.max.bytes"),
        )

    def fetch_offsets(self, asked: Query) -> Decision[KeyValue, Answers]:
        """Return what a group has committed."""
        return committing.fetch(self.owner(asked.group_id), self.offsets, asked)

    def delete_offsets(
        self, group_id: str, asked: Sequence[Place]
    ) -> Decision[KeyValue, list[ErrorCode]]:
        """Delete single offsets; a code for each."""
        decision = committing.delete(self.owner(group_id), self.offsets, group_id, asked)
        return decision._replace(soft=self.kept(decision.records))

    def kept(self, records: Iterable[KeyValue]) -> tuple[tuple[str, object], ...]:
        """Return simple groups that stay although their offsets go; they expire as others do."""
        ids = {group_of(each.key) for each in records}
        return tuple((each, ClassicGroup(each)) for each in sorted(ids) if self.group(each) is None)

    # What happens by itself.

    def on_timer(self, key: TimerKey, now_ms: int) -> Outcome:
        """Decide what follows from the time of that timer having come."""
        return ON_TIMER[key[0]](self, key, now_ms)

    def on_loaded(self, now_ms: int) -> Outcome:
        """Decide what to do first, now that the log was read: sessions, and when to clean up."""
        timers: tuple[tuple[TimerKey, int], ...] = (((EXPIRE, ""), self._next_expiry(now_ms)),)
        if self.offsets.group_ids():
            # Topics may have been deleted while nobody looked, or before the last was written.
            timers += (((MISSING_TOPICS, ""), now_ms),)
        return merged([each(self, now_ms) for each in ON_LOADED], timers=timers)

    def on_metadata(self, delta: Delta, now_ms: int) -> Outcome:
        """Decide what follows from a change of the metadata."""
        gone = tuple(
            ((DELETED_TOPIC, topic.name, topic.id.hex), now_ms) for topic in delta.deleted_topics()
        )
        return merged([each(self, delta, now_ms) for each in ON_METADATA], timers=gone)

    def expire(self, key: TimerKey, now_ms: int) -> Outcome:
        """Let go of offsets that expired, and of groups without any, some at a time."""
        cursor = key[1]
        records: list[KeyValue] = []
        ids = [each for each in self.group_ids() if each > cursor or not cursor]
        for group_id in ids[:GROUPS_AT_ONCE]:
            found = committing.portion(self._expired(group_id, now_ms))
            if len(records) + len(found) > committing.RECORDS_MAX:
                break
            records += found
            if len(found) == committing.RECORDS_MAX:
                break
            cursor = group_id
        is_over = not ids or cursor == ids[-1]
        again = ((EXPIRE, ""), self._next_expiry(now_ms)) if is_over else ((EXPIRE, cursor), now_ms)
        gone = [each.key for each in records if not isinstance(each.key, OffsetCommitKey)]
        soft = tuple((group_of(each), None) for each in gone)
        return Decision(tuple(records), None, timers=(again,), soft=soft)

    def _expired(self, group_id: str, now_ms: int) -> Iterator[KeyValue]:
        owner = self.owner(group_id)
        assert owner is not None, "it is one of group_ids"
        retention_ms = self.settings.number("offsets.retention.minutes") * MINUTE_MS
        return committing.expired(
            owner, self.offsets, group_id, now_ms=now_ms, retention_ms=retention_ms
        )

    def _next_expiry(self, now_ms: int) -> int:
        return now_ms + self.settings.number("offsets.retention.check.interval.ms")


def group_of(key: object) -> str:
    """Return the id of the group that a record is about."""
    marks: Any = key
    group_id: str = marks.group if hasattr(marks, "group") else marks.group_id
    return group_id


@lru_cache(SIMPLE_MAX)
def simple(group_id: str) -> Owner:
    """Return a group that has nothing but offsets."""
    return ClassicOwner(ClassicGroup(group_id))


def merged(decisions: Iterable[Outcome], timers: tuple[tuple[TimerKey, int], ...]) -> Outcome:
    """Return one decision that does what all of them do, and sets these timers."""
    records: list[KeyValue] = []
    soft: list[tuple[str, object]] = []
    answers: list[tuple[Any, object]] = []
    all_timers: list[tuple[TimerKey, int | None]] = [*timers]
    for each in decisions:
        records += each.records
        soft += each.soft
        answers += each.answers
        all_timers += each.timers
    return Decision(tuple(records), None, tuple(all_timers), tuple(soft), tuple(answers))


def delete_offsets_of_topic(machine: GroupMachine, key: TimerKey, now_ms: int) -> Outcome:
    """Delete the offsets of a topic that is gone, some at a time."""
    _, name, topic_id = key
    records = committing.portion(committing.of_deleted_topic(machine.offsets, name, UUID(topic_id)))
    again = ((key, now_ms),) if len(records) == committing.RECORDS_MAX else ()
    return Decision(records, None, timers=again, soft=machine.kept(records))


def delete_offsets_of_missing(machine: GroupMachine, key: TimerKey, now_ms: int) -> Outcome:
    """Delete the offsets of topics that are gone, some groups at a time."""
    offsets, cursor = machine.offsets, key[1]
    ids = sorted(each for each in offsets.group_ids() if each > cursor or not cursor)
    ids = ids[:GROUPS_AT_ONCE]
    records = committing.portion(committing.of_missing_topics(offsets, ids, machine.image))
    again: tuple[tuple[TimerKey, int], ...] = ()
    if len(records) == committing.RECORDS_MAX:
        again = ((key, now_ms),)
    elif len(ids) == GROUPS_AT_ONCE:
        again = (((MISSING_TOPICS, ids[-1]), now_ms),)
    return Decision(records, None, timers=again, soft=machine.kept(records))


# Classic groups.


def apply_classic(
    groups: dict[str, Any], key: GroupMetadataKey, value: GroupMetadataValue | None
) -> None:
    """Take a classic group as it is in the log."""
    if value is None:
        groups.pop(key.group, None)
    else:
        groups[key.group] = read_group(key.group, value)


def on_classic_timer(machine: GroupMachine, key: TimerKey, now_ms: int) -> Outcome:
    """Do what is due in a classic group."""
    group = machine.group(key[1])
    return leaving.on_timer(group if isinstance(group, ClassicGroup) else None, key, now_ms)


def begin_sessions(machine: GroupMachine, now_ms: int) -> Outcome:
    """Give every member of a classic group its session."""
    max_size = machine.settings.number("group.max.size")
    return merged(
        [
            presence.on_loaded(group, max_size, now_ms)
            for _, group in sorted(machine.groups.items())
            if isinstance(group, ClassicGroup)
        ],
        timers=(),
    )


def begin_consumer_sessions(machine: GroupMachine, now_ms: int) -> Outcome:
    """Give every member of a consumer group its session."""
    return merged(consumer.on_loaded(machine, now_ms), timers=())


# Who knows of what.

#: By the type of key: takes the record as a fact (the groups, the key, the value or None).
APPLY: dict[type, Callable[[dict[str, Any], Any, Any], None]] = {
    GroupMetadataKey: apply_classic,
    **dict.fromkeys(replay.KEYS, replay.apply),
}
#: By the type of group: the group as its offsets see it.
OWNERS: dict[type, Callable[[Any], Owner]] = {
    ClassicGroup: ClassicOwner,
    ConsumerGroup: ConsumerOwner,
}
#: By the first word of the key: decides what follows from a timer.
ON_TIMER: dict[str, Callable[[GroupMachine, TimerKey, int], Outcome]] = {
    EXPIRE: GroupMachine.expire,
    DELETED_TOPIC: delete_offsets_of_topic,
    MISSING_TOPICS: delete_offsets_of_missing,
    SESSION: on_classic_timer,
    JOIN: on_classic_timer,
    SYNC: on_classic_timer,
    **dict.fromkeys(CONSUMER_TIMERS, consumer.on_timer),
    CONSUMER_TURN: consumer.on_turn_over,
}
#: Each decides what to do once the log was read, and when the metadata changed.
ON_LOADED: list[Callable[[GroupMachine, int], Outcome]] = [
    begin_sessions,
    begin_consumer_sessions,
]
ON_METADATA: list[Callable[[GroupMachine, Delta, int], Outcome]] = []
