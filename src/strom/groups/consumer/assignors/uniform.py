"""The `uniform` assignor: as even as the subscriptions allow, and then with as few moves as can be.

1. Everybody keeps what it had, as far as it still subscribes to it and the partition exists.
2. If all subscribe to the same, those that have more than their share give the rest up: rather
   what is in no rack of theirs, where members tell theirs.
3. What nobody has goes to the subscriber with the least, topic by topic; of those that have as
   little, to the one that asks, as the others hear of it only when they do. How many each gets is
   so decided; which of them, by racks (`nearness`).
4. If subscriptions differ, that need not be even yet: the member with the least looks for one that
   has at least two more, directly or over others: A gives to B what B reads too, and B gives to C.
   The shortest such chain moves one partition along each of its links. When nobody finds a chain,
   no other assignment is more even.
"""

from collections.abc import Collection, Mapping, Sequence
from heapq import heapify, heapreplace
from uuid import UUID

from strom.groups.consumer.assignors.nearness import nearest
from strom.groups.consumer.assignors.subscriber import NO_RACKS, Partitions, Racks, Subscriber

#: The place of a topic that nobody wants any more.
NOWHERE = -1
NONE: frozenset[int] = frozenset()


def assign(
    subscribers: Sequence[Subscriber], counts: Mapping[UUID, int], racks: Racks = NO_RACKS
) -> dict[str, Partitions]:
    """Spread the partitions evenly, moving as few as possible, then as near as can be."""
    shares = Shares(sorted(subscribers, key=lambda each: each.member_id), counts, racks)
    shares.keep()
    alike = len({each.topics for each in subscribers}) == 1
    if alike:
        shares.trim()
    shares.hand_out()
    if not alike:
        shares.even_out()
    return shares.assignment()


class Shares:
    """An assignment in the making; members and topics are known by their places in the lists."""

    def __init__(
        self, subscribers: Sequence[Subscriber], counts: Mapping[UUID, int], racks: Racks
    ) -> None:
        self._subscribers = subscribers
        self._racks = racks
        subscribed = {each.topics for each in subscribers}
        self._topics = sorted(frozenset().union(*subscribed), key=lambda topic: topic.int)
        self._places = {topic: place for place, topic in enumerate(self._topics)}
        self._counts = [counts[topic] for topic in self._topics]
        self._existing = [frozenset(range(count)) for count in self._counts]
        wishes = {each: frozenset(self._places[topic] for topic in each) for each in subscribed}
        #: Of each member, the topics that it wants.
        self._wishes = [wishes[each.topics] for each in subscribers]
        #: Of each member, by topic: what it had as it was, until something of that changes.
        self._held: list[dict[int, frozenset[int]]] = [{} for _ in subscribers]
        self._loads = [0] * len(subscribers)
        #: Those that get something else than what they had.
        self._changed: set[int] = set()
        #: Of each topic, those that hold some of its partitions, and what is held of it.
        self._holders: list[set[int]] = [set() for _ in self._topics]
        self._taken: list[set[int]] = [set() for _ in self._topics]

    def keep(self) -> None:
        """Let everybody keep what it may keep."""
        taken, existing = self._taken, self._existing
        for member, subscriber in enumerate(self._subscribers):
            wish, held = self._wishes[member], self._held[member]
            for topic, partitions in subscriber.owned.items():
                kept, place = NONE, self._places.get(topic, NOWHERE)
                if place in wish:
                    kept = (partitions - taken[place]) & existing[place]
                if len(kept) < len(partitions):
                    self._changed.add(member)
                if kept:
                    taken[place] |= kept
                    held[place] = kept
                    self._loads[member] += len(kept)
                    self._holders[place].add(member)

    def trim(self) -> None:
        """Take from each what is more than its share, the same from all its topics."""
        least, longer = divmod(sum(self._counts), max(1, len(self._subscribers)))
        # One more is for those that have it already.
        by_load = sorted(range(len(self._loads)), key=self._loads.__getitem__, reverse=True)
        for rank, member in enumerate(by_load):
            quota = least + (rank < longer)
            if self._loads[member] > quota:
                for place, rest in self._beyond(member, quota).items():
                    self._remove(member, place, rest)

    def _beyond(self, member: int, quota: int) -> dict[int, list[int]]:
        """Return what a member has beyond its share, by topic."""
        ranked = [
            (index, place, partition)
            for place in self._held[member]
            for index, partition in enumerate(self._in_order(member, place))
        ]
        rest: dict[int, list[int]] = {}
        for _, place, partition in sorted(ranked)[quota:]:
            rest.setdefault(place, []).append(partition)
        return rest

    def _in_order(self, member: int, place: int) -> list[int]:
        """Return what a member has of a topic; first what it should rather keep."""
        partitions = sorted(self._held[member][place])
        if self._racks:
            rack, racks = self._subscribers[member].rack, self._racks[self._topics[place]]
            partitions.sort(key=lambda each: rack not in racks[each])
        return partitions

    def hand_out(self) -> None:
        """Give what nobody has to the subscriber with the least; the choosiest topics first."""
        readers: list[list[int]] = [[] for _ in self._topics]
        for member, wish in enumerate(self._wishes):
            for place in wish:
                readers[place].append(member)
        # Of those with as little the one that asks comes first, then those behind it.
        size, asking = len(self._loads), self._asking()
        for place in sorted(range(len(readers)), key=lambda place: len(readers[place])):
            free = sorted(self._existing[place] - self._taken[place])
            if not free:
                continue
            waiting = [
                (self._loads[member], (member - asking) % size, member) for member in readers[place]
            ]
            heapify(waiting)
            got: dict[int, list[int]] = {}
            for partition in free:
                load, rank, member = waiting[0]
                got.setdefault(member, []).append(partition)
                heapreplace(waiting, (load + 1, rank, member))
            if self._racks:
                got = nearest(got, self._subscribers, self._racks[self._topics[place]])
            for member, partitions in got.items():
                self._add(member, place, partitions)

    def _asking(self) -> int:
        """Return the member that asks, whoever is first if none does."""
        for member, subscriber in enumerate(self._subscribers):
            if subscriber.is_asking:
                return member
        return 0

    def even_out(self) -> None:
        """Move partitions until no move, and no chain of moves, makes it more even."""
        #: Those that nothing can be done for, with all that they could get something from.
        settled: set[int] = set()
        while len(settled) < len(self._loads):
            open_members = (each for each in range(len(self._loads)) if each not in settled)
            start = min(open_members, key=lambda member: self._loads[member])
            chain, reached = self._find_chain(start, settled)
            for giver, taker, place in chain:
                self._move(giver, taker, place)
            if not chain:
                settled |= reached

    def _find_chain(
        self, start: int, settled: set[int]
    ) -> tuple[list[tuple[int, int, int]], set[int]]:
        """Return the links from one that has two more, and all that were looked at on the way."""
        enough = self._loads[start] + 2
        came_by: dict[int, tuple[int, int]] = {}
        reached = {start}
        looked_at: set[int] = set()
        level = [start]
        while level:
            found: list[int] = []
            for taker in level:
                places = self._wishes[taker].difference(looked_at)
                looked_at |= places
                for place in sorted(places):
                    for giver in sorted(self._holders[place] - reached - settled):
                        reached.add(giver)
                        came_by[giver] = (taker, place)
                        found.append(giver)
            richest = max(found, key=lambda member: (self._loads[member], -member), default=start)
            if self._loads[richest] >= enough:
                return self._links(richest, start, came_by), reached
            level = found
        return [], reached

    def _links(
        self, giver: int, start: int, came_by: Mapping[int, tuple[int, int]]
    ) -> list[tuple[int, int, int]]:
        links = []
        while giver != start:
            taker, place = came_by[giver]
            links.append((giver, taker, place))
            giver = taker
        # The last taker first: who passes on gives what it had before.
        return links[::-1]

    def _move(self, giver: int, taker: int, place: int) -> None:
        had, own = self._owned(taker, place), self._owned(giver, place)
        # Best is what goes home, then what the giver has just got, then the highest number.
        partition = max(
            self._held[giver][place], key=lambda each: (each in had, each not in own, each)
        )
        self._remove(giver, place, (partition,))
        self._add(taker, place, (partition,))

    def _owned(self, member: int, place: int) -> frozenset[int]:
        return self._subscribers[member].owned.get(self._topics[place], NONE)

    def _add(self, member: int, place: int, partitions: Collection[int]) -> None:
        held = self._held[member]
        held[place] = held.get(place, NONE).union(partitions)
        self._loads[member] += len(partitions)
        self._holders[place].add(member)
        self._taken[place].update(partitions)
        self._changed.add(member)

    def _remove(self, member: int, place: int, partitions: Collection[int]) -> None:
        held = self._held[member]
        held[place] = held[place].difference(partitions)
        self._loads[member] -= len(partitions)
        self._taken[place].difference_update(partitions)
        self._changed.add(member)
        if not held[place]:
            del held[place]
            self._holders[place].remove(member)

    def assignment(self) -> dict[str, Partitions]:
        """Return what each member shall have: what it had, as it was, if it keeps just that."""
        shares = {each.member_id: each.owned for each in self._subscribers}
        for member in self._changed:
            held = self._held[member]
            shares[self._subscribers[member].member_id] = {
                self._topics[place]: partitions for place, partitions in held.items()
            }
        return shares
