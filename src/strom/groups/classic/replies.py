"""What members are told: the answers to JoinGroup and SyncGroup, and the tickets to wait with."""

from typing import NamedTuple

from strom.groups.classic.group import ClassicGroup
from strom.wire.errors import ErrorCode

NO_GENERATION = -1
NO_LEADER = ""
NO_MEMBER = ""


class JoinedMember(NamedTuple):
    """What the leader is told about a member."""

    member_id: str
    instance_id: str | None
    metadata: bytes


class Joined(NamedTuple):
    """The answer to a JoinGroup."""

    member_id: str
    error: ErrorCode = ErrorCode.NONE
    generation_id: int = NO_GENERATION
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = NO_LEADER
    #: For the leader only.
    members: tuple[JoinedMember, ...] = ()
    #: The leader came back to an assignment that stands (KIP-814).
    skip_assignment: bool = False


class Synced(NamedTuple):
    """The answer to a SyncGroup."""

    error: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


def joined(group: ClassicGroup, member_id: str) -> Joined:
    """Tell a member of the generation that it is in; the leader also of the others."""
    return Joined(
        member_id,
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol=group.protocol,
        leader=group.leader or NO_LEADER,
        members=everybody(group) if member_id == group.leader else (),
    )


def everybody(group: ClassicGroup) -> tuple[JoinedMember, ...]:
    """Return what the leader needs to know to share the work."""
    return tuple(
        JoinedMember(each.id, each.instance_id, each.metadata(group.protocol))
        for each in group.members.values()
    )


def synced(group: ClassicGroup, member_id: str) -> Synced:
    """Tell a member what it got."""
    return Synced(
        protocol_type=group.protocol_type,
        protocol=group.protocol,
        assignment=group.members[member_id].assignment,
    )


def join_ticket(group_id: str, member_id: str) -> tuple[str, str, str]:
    """Return what a JoinGroup waits with."""
    return ("join", group_id, member_id)


def sync_ticket(group_id: str, member_id: str) -> tuple[str, str, str]:
    """Return what a SyncGroup waits with."""
    return ("sync", group_id, member_id)
