"""What the offsets ask of the group they belong to, whichever kind of group it is.

A group that has offsets and nothing else is a *simple* one, of a consumer that assigns its
partitions itself: it is an empty classic group without a type.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol
from uuid import UUID

from strom.groups.classic.group import ClassicGroup, Phase
from strom.groups.classic.logged import group_tombstone
from strom.groups.classic.presence import check_commit, commit_timers
from strom.groups.classic.subscription import CONSUMER, reads, subscribed_topics
from strom.groups.records import OffsetCommitValue
from strom.replicated.machine import KeyValue, TimerKey
from strom.wire.errors import ErrorCode, KafkaError

NO_EPOCH = -1
NO_MEMBER = ""

#: Refuses the offset of one partition, given the topic's name and id: it may be another's by now.
CheckPartition = Callable[[str, UUID, int], None]
Timers = tuple[tuple[TimerKey, int], ...]


class Author(NamedTuple):
    """Who commits: a member of the group, or somebody who only knows its name."""

    member_id: str = NO_MEMBER
    #: The generation of a classic group, or the member's epoch.
    epoch: int = NO_EPOCH
    instance_id: str | None = None
    #: In a transaction.
    is_transactional: bool = False
    #: The version of the request.
    version: int = 0


class Owner(Protocol):
    """A group, as its offsets see it."""

    def check_commit(self, author: Author) -> CheckPartition | None:
        """Refuse offsets from who may not commit; return what refuses single partitions."""

    def commit_timers(self, author: Author, now_ms: int) -> Timers:
        """Return the timers that a commit sets: it shows that the member lives."""

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Refuse who may not read the offsets."""

    def check_delete(self) -> None:
        """Refuse to delete single offsets."""

    def reads(self, topic: str) -> bool:
        """Say whether members read the topic: its offsets neither expire nor can be deleted."""

    def expires_from(self, offset: OffsetCommitValue) -> int | None:
        """Return since when the offset is out of use, None if it is in use."""

    def is_empty(self) -> bool:
        """Whether the group goes once its last offset has gone."""

    def tombstones(self) -> tuple[KeyValue, ...]:
        """Return what deletes the group."""


class ClassicOwner(NamedTuple):
    """A classic group, as its offsets see it."""

    group: ClassicGroup

    def check_commit(self, author: Author) -> CheckPartition | None:
        """Refuse offsets from who is not of this generation."""
        check_commit(
            self.group,
            author.member_id,
            author.instance_id,
            author.epoch,
            transactional=author.is_transactional,
        )
        return None

    def commit_timers(self, author: Author, now_ms: int) -> Timers:
        """Renew the member's session, as a heartbeat does."""
        if author.is_transactional or self.group.phase not in (Phase.STABLE, Phase.PREPARING):
            return ()
        return commit_timers(self.group, author.member_id, now_ms)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Let everybody read the offsets."""

    def check_delete(self) -> None:
        """Refuse while there are members of whom it is not known what they read."""
        if not self.group.is_empty and self.group.protocol_type != CONSUMER:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def reads(self, topic: str) -> bool:
        """Say whether members read the topic, as far as it can be known."""
        return reads(self.group, topic)

    def expires_from(self, offset: OffsetCommitValue) -> int | None:
        """Return when the group became empty; when the offset was committed if it never had
        members, or if they are known to read other topics.
        """
        group = self.group
        if group.protocol_type is None:
            return offset.commit_timestamp_ms
        if group.is_empty:
            return group.since_ms if group.since_ms >= 0 else offset.commit_timestamp_ms
        if group.phase is Phase.STABLE and subscribed_topics(group) is not None:
            return offset.commit_timestamp_ms
        return None

    def is_empty(self) -> bool:
        """Whether the group has no members."""
        return self.group.is_empty

    def tombstones(self) -> tuple[KeyValue, ...]:
        """Return what deletes the group."""
        return (group_tombstone(self.group.id),)
