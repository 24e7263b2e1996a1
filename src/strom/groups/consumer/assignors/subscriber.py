"""What an assignor is told, and what it answers."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, Protocol
from uuid import UUID

#: Partitions by topic; a topic without partitions is not in it.
Partitions = Mapping[UUID, frozenset[int]]
#: Of each topic, in the order of its partitions: the racks that have a replica.
Racks = Mapping[UUID, Sequence[Collection[str]]]

#: Nobody tells where it is, so that nothing is near.
NO_RACKS: Final[Racks] = {}


class Subscriber:
    """A member as an assignor sees it."""

    def __init__(
        self,
        member_id: str,
        instance_id: str | None,
        topics: frozenset[UUID],
        owned: Partitions,
        rack: str | None = None,
        *,
        is_asking: bool = False,
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        #: The topics that exist and that it wants to read.
        self.topics = topics
        #: What the assignment before gave it.
        self.owned = owned
        #: Where it is, if it tells.
        self.rack = rack
        #: Whether it is the one that asks now, so that it hears of its assignment at once.
        self.is_asking = is_asking


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
