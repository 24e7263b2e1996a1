"""A member of a consumer group at one moment, and the words for what members hold.

STABLE ──target changed──▶ UNREVOKED_PARTITIONS ──given up──▶ STABLE, or UNRELEASED_PARTITIONS
                                                              while others still hold its own
"""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple
from uuid import UUID

from strom.groups.consumer.assignors.subscriber import Partitions
from strom.groups.records import ClassicMemberMetadata

#: Partitions by topic, each with the epoch in which the member got it.
Held = Mapping[UUID, Mapping[int, int]]

NOTHING: Held = {}

#: Epochs with a meaning of their own: joining, gone for good, gone but coming back.
JOINING = 0
LEFT = -1
AWAY = -2

NO_TIMEOUT = -1


class State(IntEnum):
    """Where a member is on its way to its target; the numbers are the log's."""

    STABLE = 0
    #: It was told to give partitions up, and has not said yet that it has.
    UNREVOKED_PARTITIONS = 1
    #: Partitions of its target are with others still.
    UNRELEASED_PARTITIONS = 2
    #: A newer Kafka's.
    UNKNOWN = 127

    @classmethod
    def _missing_(cls, value: object) -> "State":
        return cls.UNKNOWN


class Member(NamedTuple):
    """One member of a consumer group. A value: a change makes another one."""

    id: str
    #: Of a static member: the name that it keeps when it comes back.
    instance_id: str | None = None
    rack: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    #: A regular expression for names of topics; empty for none.
    pattern: str = ""
    rebalance_timeout_ms: int = NO_TIMEOUT
    assignor: str | None = None
    #: Set while the member speaks the classic protocol.
    classic: ClassicMemberMetadata | None = None

    epoch: int = JOINING
    #: A member that missed the answer with its new epoch repeats this one.
    previous_epoch: int = -1
    state: State = State.STABLE
    assigned: Held = NOTHING
    #: What it was told to give up.
    revoking: Held = NOTHING

    @property
    def is_away(self) -> bool:
        """Whether it is a static member that said that it will be back."""
        return self.epoch == AWAY

    def is_known_as(self, client_id: str, client_host: str) -> bool:
        """Whether it is a member of the consumer protocol that this client has spoken for."""
        return (
            self.classic is None and self.client_id == client_id and self.client_host == client_host
        )

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Whether it has all of the target of that epoch."""
        return self.state is State.STABLE and self.epoch == assignment_epoch


def moved(member: Member, epoch: int, state: State, assigned: Held, revoking: Held) -> Member:
    """Return the member at another epoch, or at the same one once more."""
    return member._replace(
        epoch=epoch,
        previous_epoch=member.epoch,
        state=state,
        assigned=assigned,
        revoking=revoking,
    )


def partitions_of(held: Held) -> Partitions:
    """Return what is held, without epochs."""
    return {topic: frozenset(partitions) for topic, partitions in held.items()}


def holds_any(owned: Partitions, held: Held) -> bool:
    """Say whether one of the owned partitions is held."""
    return any(
        topic in held and not partitions.isdisjoint(held[topic])
        for topic, partitions in owned.items()
    )


def holds_all(owned: Partitions, held: Held) -> bool:
    """Say whether all of the owned partitions are held."""
    return all(
        topic in held and partitions <= held[topic].keys() for topic, partitions in owned.items()
    )


def by_topic(places: Iterable[tuple[UUID, Iterable[int]]]) -> Partitions:
    """Gather partitions by topic, as a client lists them: a topic may come twice."""
    gathered: dict[UUID, frozenset[int]] = {}
    for topic, partitions in places:
        gathered[topic] = gathered.get(topic, frozenset()).union(partitions)
    return gathered
