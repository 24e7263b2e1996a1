"""What members of a consumer group are told."""

from typing import NamedTuple

from strom.groups.consumer.assignors.subscriber import Partitions
from strom.wire.errors import ErrorCode, KafkaError


class Beat(NamedTuple):
    """The answer to a heartbeat."""

    member_id: str
    epoch: int
    #: When to send the next one; 0 to who leaves.
    heartbeat_interval_ms: int = 0
    #: All that the member shall hold now; None if that is what it was told last.
    assignment: Partitions | None = None


def unknown_member(group_id: str, member_id: str) -> KafkaError:
    """Return what is said to who is no member, or no more."""
    return KafkaError(
        ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group_id}."
    )


def group_not_found(group_id: str) -> KafkaError:
    """Return what is said to who asks for a group that is not there."""
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")


def not_a_consumer_group(group_id: str) -> KafkaError:
    """Return what is said to who asks for a group of another kind."""
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")


def cannot_upgrade(group_id: str, why: str) -> KafkaError:
    """Return what is said to a member whose protocol the group cannot come to speak."""
    return KafkaError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group_id} to consumer group because {why}",
    )


def cannot_downgrade(group_id: str, why: str) -> KafkaError:
    """Return what is said when members of the classic protocol cannot be left to themselves."""
    return KafkaError(
        ErrorCode.GROUP_ID_NOT_FOUND, f"Cannot downgrade the classic group {group_id}: {why}."
    )
