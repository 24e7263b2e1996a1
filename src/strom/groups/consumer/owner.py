"""A consumer group, as its offsets see it."""

from typing import NamedTuple

from strom.groups.consumer.commits import check_commit, check_fetch
from strom.groups.consumer.group import ConsumerGroup
from strom.groups.consumer.rows import group_gone
from strom.groups.owners import Author, CheckPartition, Timers
from strom.groups.records import OffsetCommitValue
from strom.replicated.machine import KeyValue


class ConsumerOwner(NamedTuple):
    """A consumer group."""

    group: ConsumerGroup

    def check_commit(self, author: Author) -> CheckPartition | None:
        """Refuse offsets from who is no member; one that is late has had some partitions since."""
        late = check_commit(
            self.group,
            author.member_id,
            author.instance_id,
            author.epoch,
            version=author.version,
            transactional=author.is_transactional,
        )
        return None if late is None else late.check

    def commit_timers(self, author: Author, now_ms: int) -> Timers:
        """Set none: only a heartbeat shows that a member follows what it is told."""
        return ()

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Refuse members of another epoch."""
        check_fetch(self.group, member_id, member_epoch)

    def check_delete(self) -> None:
        """Let single offsets be deleted, also while there are members: what they read is known."""

    def reads(self, topic: str) -> bool:
        """Say whether a member subscribes to the topic."""
        return topic in self.group.topic_names

    def expires_from(self, offset: OffsetCommitValue) -> int | None:
        """Return when it was committed: nobody subscribes to the topic any more."""
        return offset.commit_timestamp_ms

    def is_empty(self) -> bool:
        """Whether the group has no members."""
        return self.group.is_empty

    def tombstones(self) -> tuple[KeyValue, ...]:
        """Return what deletes the group."""
        return tuple(group_gone(self.group))
