"""What an assignor is told, and what it answers."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

#: Partitions by topic; a topic without partitions is not in it.
Partitions = Mapping[UUID, frozenset[int]]
#: Of each topic, in the order of its partitions: the racks that have a replica.
Racks = Mapping[UUID, Sequence[Collection[str]]]

#: Nobody tells where it is, so that nothing is near.
NO_RACKS: Racks = {}


class Subscriber(NamedTuple):
    """A member as an assignor sees it."""

    member_id: str
    instance_id: str | None
    #: The topics that exist and that it wants to read.
    topics: frozenset[UUID]
    #: What the assignment before gave it.
    owned: Partitions
    #: Where it is, if it tells.
    rack: str | None = None
    #: Whether it is the one that asks now, so that it hears of its assignment at once.
    is_asking: bool = False


class Assignor(Protocol):
    """Gives each partition of each subscribed topic to one of the topic's subscribers.

    The same arguments give the same answer. A member that gets nothing is in the answer too.
    """

    def __call__(
        self, subscribers: Sequence[Subscriber], counts: Mapping[UUID, int], racks: Racks = NO_RACKS
    ) -> dict[str, Partitions]:
        """Return what each member shall have, given how many partitions each topic has, and where
        they are if there is a member that tells its rack.
        """
