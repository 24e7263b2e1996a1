"""A classic group at one moment: its phase, its generation, its members, and who waits for what.

The same class serves twice. What the log gives back is a group in the phase Empty or Stable;
while this broker coordinates the group, the soft state is the group with all that is not
logged: those who are joining, those who have not fetched their assignment yet, and every protocol
that a member offered (the log has the chosen one only). Losing it means what a restart of
the coordinator means: the members of the last generation go on.

A group is a value. Whoever changes one makes a new one; the mappings in it are never written to.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from strom.wire.errors import ErrorCode, KafkaError

NOBODY: frozenset[str] = frozenset()
NO_TIME = -1


class Phase(StrEnum):
    """Where a group is in its round; the words are those that tools show."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class Protocol(NamedTuple):
    """A way to share the work that a member knows, with what it tells the leader about itself."""

    name: str
    metadata: bytes


@dataclass(frozen=True)
class Member:
    """One member of a classic group. A value: a change makes another one."""

    id: str
    #: Of a static member: the name that it keeps when it comes back.
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    #: The best one first.
    protocols: tuple[Protocol, ...]
    assignment: bytes = b""

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of the protocols; each newcomer is compared with those of all members."""
        return frozenset(each.name for each in self.protocols)

    @property
    def is_static(self) -> bool:
        """Whether the member keeps its place while it is away."""
        return self.instance_id is not None

    def metadata(self, protocol: str | None) -> bytes:
        """Return what the member says of itself under that protocol."""
        for each in self.protocols:
            if each.name == protocol:
                return each.metadata
        return b""


NO_MEMBERS: Mapping[str, Member] = {}
NO_INSTANCES: Mapping[str, str] = {}


class InitialDelay(NamedTuple):
    """The first members of a group wait for more of them; each newcomer lengthens it once."""

    delay_ms: int
    #: What is left for lengthening.
    left_ms: int
    grew: bool = False


class ClassicGroup(NamedTuple):
    """A classic group at one moment."""

    id: str
    phase: Phase = Phase.EMPTY
    #: When the group came to its phase; NO_TIME if the log does not say.
    since_ms: int = NO_TIME
    generation_id: int = 0
    #: What the group is for ("consumer", "connect", …); None until the first member says it.
    protocol_type: str | None = None
    #: The protocol of this generation.
    protocol: str | None = None
    leader: str | None = None
    #: By id, in the order in which they came.
    members: Mapping[str, Member] = NO_MEMBERS
    #: The ids of static members, by instance id.
    instances: Mapping[str, str] = NO_INSTANCES

    #: Those who were given an id and are expected to come back with it.
    promised: frozenset[str] = NOBODY
    #: Members whose JoinGroup waits for the others.
    joining: frozenset[str] = NOBODY
    #: Members whose SyncGroup waits for the leader's.
    syncing: frozenset[str] = NOBODY
    #: Members of this generation that have not asked for their assignment yet.
    unsynced: frozenset[str] = NOBODY
    #: Members that never were in a generation: they do not know yet that they have a session.
    fresh: frozenset[str] = NOBODY
    #: Set while the group prepares its first generation since it was empty.
    initial: InitialDelay | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members and expects none in this round."""
        return self.phase is Phase.EMPTY

    @property
    def all_joined(self) -> bool:
        """Whether nobody is missing any more."""
        return len(self.joining) == len(self.members) and not self.promised

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long members get to come back: what the slowest of them asked for."""
        return max((each.rebalance_timeout_ms for each in self.members.values()), default=0)

    def check_member(self, member_id: str, instance_id: str | None) -> None:
        """Refuse who is no member, or a static member whose place another one has taken."""
        if instance_id is not None:
            current = self.instances.get(instance_id)
            if current is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            if current != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    def with_member(self, member: Member) -> "ClassicGroup":
        """Add a member, or put it in the place of the one with its id."""
        instances = self.instances
        if member.instance_id is not None and instances.get(member.instance_id) != member.id:
            instances = {**instances, member.instance_id: member.id}
        return self._replace(
            members={**self.members, member.id: member},
            instances=instances,
            leader=self.leader or member.id,
            promised=self.promised - {member.id},
        )

    def without(self, gone: Iterable[str]) -> "ClassicGroup":
        """Remove members and expected ones; if the leader goes, the longest-standing follows."""
        leaving = frozenset(gone)
        members = {key: value for key, value in self.members.items() if key not in leaving}
        leader = next(iter(members), None) if self.leader in leaving else self.leader
        return self._replace(
            members=members,
            instances={key: value for key, value in self.instances.items() if value in members},
            leader=leader,
            promised=self.promised - leaving,
            joining=self.joining - leaving,
            syncing=self.syncing - leaving,
            unsynced=self.unsynced - leaving,
            fresh=self.fresh - leaving,
        )

    def with_replaced(self, old_id: str, member: Member) -> "ClassicGroup":
        """Give a static member's place, with its order and rank, to its next life."""
        assert member.instance_id is not None
        members = {
            (member.id if key == old_id else key): (member if key == old_id else value)
            for key, value in self.members.items()
        }
        unsynced = self.unsynced
        if old_id in unsynced:
            unsynced = unsynced - {old_id} | {member.id}
        return self._replace(
            members=members,
            instances={**self.instances, member.instance_id: member.id},
            leader=member.id if self.leader == old_id else self.leader,
            joining=self.joining - {old_id},
            syncing=self.syncing - {old_id},
            unsynced=unsynced,
            fresh=self.fresh - {old_id},
        )
