"""Whose offsets a consumer group takes, and who may read them.

A commit carries the epoch of the member that sends it. One that comes late, from an epoch before,
counts for the partitions that the member has had since then: nobody else can have read them.
TxnOffsetCommit knows no epochs: there, and for members of the classic protocol, one that does not
count is an ILLEGAL_GENERATION.
"""

from typing import NamedTuple
from uuid import UUID

from strom.groups.consumer.group import ConsumerGroup
from strom.groups.consumer.member import Member
from strom.wire.errors import ErrorCode, KafkaError

#: The first version of OffsetCommit that a member of the consumer protocol may use.
EPOCHS_SINCE = 9


class LateCommit(NamedTuple):
    """A commit from an epoch before: its partitions count or not one by one."""

    member: Member
    epoch: int
    transactional: bool

    def check(self, topic_name: str, topic_id: UUID, partition: int) -> None:
        """Refuse the offset of a partition that the member has not had since that epoch."""
        member = self.member
        since = member.assigned.get(topic_id, {}).get(partition)
        if since is None:
            since = member.revoking.get(topic_id, {}).get(partition)
        if since is None:
            raise self.refusal(
                f"Partition {topic_name}-{partition} is not assigned or pending revocation for "
                "member."
            )
        if self.epoch < since:
            raise self.refusal(
                f"Received {_word(member)} {self.epoch} is older than assignment epoch {since} "
                f"for partition {topic_name}-{partition}."
            )

    def refusal(self, message: str) -> KafkaError:
        """Return what the author is told."""
        return _stale(self.member, message, self.transactional)


def check_commit(
    group: ConsumerGroup,
    member_id: str,
    instance_id: str | None,
    epoch: int,
    *,
    version: int,
    transactional: bool = False,
) -> LateCommit | None:
    """Refuse offsets from who is no member; return what is to be checked of each partition, if so.

    Without members anybody may commit; in a transaction, old clients do not say who they are.
    """
    if epoch < 0 and group.is_empty:
        return None
    if transactional and epoch == -1 and not member_id and instance_id is None:
        return None
    member = group.member(member_id)
    if not transactional and member.classic is None and version < EPOCHS_SINCE:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "OffsetCommit version 9 or above must be used by members using the consumer group "
            "protocol",
        )
    if epoch > member.epoch:
        raise _stale(
            member,
            f"Received {_word(member)} {epoch} is newer than current member epoch {member.epoch}.",
            transactional,
        )
    return None if epoch == member.epoch else LateCommit(member, epoch, transactional)


def check_fetch(group: ConsumerGroup, member_id: str | None, epoch: int) -> None:
    """Refuse to tell offsets to a member of another epoch; who is none may know them."""
    if member_id is None and epoch < 0:
        return
    member = group.member(member_id or "")
    if epoch != member.epoch:
        raise _stale(
            member,
            f"The received {_word(member)} {epoch} does not match the expected member epoch "
            f"{member.epoch}.",
        )


def _word(member: Member) -> str:
    return "member epoch" if member.classic is None else "generation id"


def _stale(member: Member, message: str, transactional: bool = False) -> KafkaError:
    if transactional or member.classic is not None:
        return KafkaError(ErrorCode.ILLEGAL_GENERATION, message)
    return KafkaError(ErrorCode.STALE_MEMBER_EPOCH, message)
