"""A consumer group at one moment: the sum of its records.

A group is a value; `replay.applied` makes the next one. It shares all that a record does not touch
with the one before, so a decision can carry out its own records on the group that it looks at and
read the result, and nobody else sees it.
"""

from collections import Counter
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from immutables import Map

from strom.groups.consumer.assignors.subscriber import Partitions
from strom.groups.consumer.member import Member
from strom.groups.consumer.replies import unknown_member

#: Where a group begins, with nothing assigned: a member that is told 0 would believe to be out.
FIRST_EPOCH = 1
NOBODY: Map[int, str] = Map()


class Phase(StrEnum):
    """How far a group is; the words are those that tools show."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class Resolved(NamedTuple):
    """The topics that a pattern stands for."""

    topics: frozenset[str] = frozenset()
    #: The end offset of the metadata that it was matched against, and when that was.
    version: int = -1
    at_ms: int = -1


class ConsumerGroup(NamedTuple):
    """A consumer group at one moment."""

    id: str
    epoch: int = FIRST_EPOCH
    #: Of the topics that the group reads: another one means that they have changed.
    metadata_hash: int = 0
    #: The group epoch that the targets were computed for, and when.
    assignment_epoch: int = FIRST_EPOCH
    assigned_at_ms: int = 0
    members: Map[str, Member] = Map()
    #: The ids of static members, by instance id.
    instances: Map[str, str] = Map()
    #: What each member shall have.
    targets: Map[str, Partitions] = Map()
    #: Who holds a partition now, also if it is to give it up.
    owners: Map[UUID, Map[int, str]] = Map()
    patterns: Map[str, Resolved] = Map()
    #: There is a record of the time before 4.1 that has to go.
    has_old_metadata: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""
        return not self.members

    @property
    def phase(self) -> Phase:
        """How far the group is."""
        if self.is_empty:
            return Phase.EMPTY
        if self.epoch > self.assignment_epoch:
            return Phase.ASSIGNING
        if all(each.is_reconciled_to(self.assignment_epoch) for each in self.members.values()):
            return Phase.STABLE
        return Phase.RECONCILING

    def member(self, member_id: str) -> Member:
        """Return the member; refuse who is none."""
        member = self.members.get(member_id)
        if member is None:
            raise unknown_member(self.id, member_id)
        return member

    def static_member(self, instance_id: str) -> Member | None:
        """Return the member of that name, if there is one."""
        member_id = self.instances.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def topics_of(self, member: Member) -> frozenset[str]:
        """Return the names of the topics that a member wants, whether they exist or not."""
        if not member.pattern:
            return member.topic_names
        return member.topic_names | self.patterns.get(member.pattern, Resolved()).topics

    @property
    def topic_names(self) -> frozenset[str]:
        """The names of the topics that any member wants."""
        wanted = {(each.topic_names, each.pattern) for each in self.members.values()}
        names: set[str] = set()
        for topic_names, pattern in wanted:
            names |= topic_names
            if pattern:
                names |= self.patterns.get(pattern, Resolved()).topics
        return frozenset(names)

    @property
    def wanted_patterns(self) -> frozenset[str]:
        """The patterns that members subscribe to."""
        return frozenset(each.pattern for each in self.members.values() if each.pattern)

    def assignor(self, known: tuple[str, ...]) -> str:
        """Return the assignor that most of those who choose have chosen, or the first.

        Of as many votes for each, `uniform` wins, as in Kafka: it is the last by its name.
        """
        chosen = [each.assignor for each in self.members.values() if each.assignor in known]
        if not chosen:
            return known[0]
        votes = Counter(chosen)
        most = max(votes.values())
        return max(name for name, count in votes.items() if count == most)

    def owners_of(self, topic: UUID) -> Map[int, str]:
        """Return who holds which partition of the topic."""
        return self.owners.get(topic, NOBODY)


class Became(NamedTuple):
    """What the records of one decision make of a group."""

    id: str
    before: ConsumerGroup
    after: ConsumerGroup
