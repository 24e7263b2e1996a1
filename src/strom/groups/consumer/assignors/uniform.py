"""The `uniform` assignor: as even as the subscriptions allow, and then with as few moves as can be.

1. Everybody keeps what it had, as far as it still subscribes to it and the partition exists.
2. If all subscribe to the same, those that have more than their share give the rest up.
3. What nobody has goes to the subscriber with the least, topic by topic.
4. If subscriptions differ, that need not be even yet: the member with the least looks for one that
   has at least two more, directly or over others: A gives to B what B reads too, and B gives to C.
   The shortest such chain moves one partition along each of its links. When nobody finds a chain,
   no other assignment is more even.
"""

from collections.abc import Mapping, Sequence
from heapq import heapify, heapreplace
from uuid import UUID

from strom.groups.consumer.assignors.subscriber import Partitions, Subscriber


def assign(subscribers: Sequence[Subscriber], counts: Mapping[UUID, int]) -> dict[str, Partitions]:
    """Spread the partitions evenly, moving as few as possible."""
    shares = Shares(sorted(subscribers, key=lambda each: each.member_id), counts)
    shares.keep()
    alike = len({each.topics for each in subscribers}) == 1
    if alike:
        shares.trim()
    shares.hand_out()
    if not alike:
        shares.even_out()
    return shares.assignment()


class Shares:
    """An assignment in the making; members are known by their place in the list."""

    def __init__(self, subscribers: Sequence[Subscriber], counts: Mapping[UUID, int]) -> None:
        self._subscribers = subscribers
        self._counts = counts
        self._held: list[dict[UUID, set[int]]] = [{} for _ in subscribers]
        self._loads = [0] * len(subscribers)
        #: Those that get something else than what they had.
        self._changed: set[int] = set()
        subscribed = frozenset().union(*{each.topics for each in subscribers})
        self._topics = sorted(subscribed, key=lambda topic: topic.int)
        self._order = {topic: place for place, topic in enumerate(self._topics)}
        #: Of each topic, those that hold some of its partitions.
        self._holders: dict[UUID, set[int]] = {topic: set() for topic in self._topics}

    def keep(self) -> None:
        """Let everybody keep what it may keep."""
        taken: dict[UUID, set[int]] = {topic: set() for topic in self._topics}
        for member, subscriber in enumerate(self._subscribers):
            for topic, partitions in subscriber.owned.items():
                kept: set[int] = set()
                if topic in subscriber.topics:
                    kept = set(partitions.difference(taken[topic]))
                    count = self._counts[topic]
                    if kept and max(kept) >= count:
                        kept = {each for each in kept if each < count}
                if len(kept) < len(partitions):
                    self._changed.add(member)
                if kept:
                    taken[topic] |= kept
                    self._held[member][topic] = kept
                    self._loads[member] += len(kept)
                    self._holders[topic].add(member)

    def trim(self) -> None:
        """Take from each what is more than its share, the same from all its topics."""
        total = sum(self._counts[topic] for topic in self._topics)
        least, longer = divmod(total, max(1, len(self._subscribers)))
        # One more is for those that have it already.
        by_load = sorted(range(len(self._loads)), key=lambda member: -self._loads[member])
        for rank, member in enumerate(by_load):
            quota = least + (rank < longer)
            if self._loads[member] > quota:
                ranked = [
                    (index, self._order[topic], topic, partition)
                    for topic, partitions in self._held[member].items()
                    for index, partition in enumerate(sorted(partitions))
                ]
                for _, _, topic, partition in sorted(ranked)[quota:]:
                    self._remove(member, topic, partition)

    def hand_out(self) -> None:
        """Give what nobody has to the subscriber with the least; the choosiest topics first."""
        readers: dict[UUID, list[int]] = {topic: [] for topic in self._topics}
        for member, subscriber in enumerate(self._subscribers):
            for topic in subscriber.topics:
                readers[topic].append(member)
        for topic in sorted(self._topics, key=lambda topic: len(readers[topic])):
            held = (self._held[member][topic] for member in self._holders[topic])
            free = sorted(set(range(self._counts[topic])).difference(*held))
            if not free:
                continue
            waiting = [(self._loads[member], member) for member in readers[topic]]
            heapify(waiting)
            for partition in free:
                load, member = waiting[0]
                self._add(member, topic, partition)
                heapreplace(waiting, (load + 1, member))

    def even_out(self) -> None:
        """Move partitions until no move, and no chain of moves, makes it more even."""
        #: Those that nothing can be done for, with all that they could get something from.
        settled: set[int] = set()
        while len(settled) < len(self._loads):
            open_members = (each for each in range(len(self._loads)) if each not in settled)
            start = min(open_members, key=lambda member: self._loads[member])
            chain, reached = self._find_chain(start, settled)
            for giver, taker, topic in chain:
                self._move(giver, taker, topic)
            if not chain:
                settled |= reached

    def _find_chain(
        self, start: int, settled: set[int]
    ) -> tuple[list[tuple[int, int, UUID]], set[int]]:
        """Return the links from one that has two more, and all that were looked at on the way."""
        enough = self._loads[start] + 2
        came_by: dict[int, tuple[int, UUID]] = {}
        reached = {start}
        looked_at: set[UUID] = set()
        level = [start]
        while level:
            found: list[int] = []
            for taker in level:
                topics = self._subscribers[taker].topics - looked_at
                looked_at |= topics
                for topic in sorted(topics, key=self._order.__getitem__):
                    for giver in sorted(self._holders[topic] - reached - settled):
                        reached.add(giver)
                        came_by[giver] = (taker, topic)
                        found.append(giver)
            richest = max(found, key=lambda member: (self._loads[member], -member), default=start)
            if self._loads[richest] >= enough:
                return self._links(richest, start, came_by), reached
            level = found
        return [], reached

    def _links(
        self, giver: int, start: int, came_by: Mapping[int, tuple[int, UUID]]
    ) -> list[tuple[int, int, UUID]]:
        links = []
        while giver != start:
            taker, topic = came_by[giver]
            links.append((giver, taker, topic))
            giver = taker
        # The last taker first: who passes on gives what it had before.
        return links[::-1]

    def _move(self, giver: int, taker: int, topic: UUID) -> None:
        had = self._subscribers[taker].owned.get(topic, frozenset())
        own = self._subscribers[giver].owned.get(topic, frozenset())
        # Best is what goes home, then what the giver has just got, then the highest number.
        partition = max(
            self._held[giver][topic], key=lambda each: (each in had, each not in own, each)
        )
        self._remove(giver, topic, partition)
        self._add(taker, topic, partition)

    def _add(self, member: int, topic: UUID, partition: int) -> None:
        self._held[member].setdefault(topic, set()).add(partition)
        self._loads[member] += 1
        self._holders[topic].add(member)
        self._changed.add(member)

    def _remove(self, member: int, topic: UUID, partition: int) -> None:
        held = self._held[member][topic]
        held.remove(partition)
        self._loads[member] -= 1
        self._changed.add(member)
        if not held:
            del self._held[member][topic]
            self._holders[topic].remove(member)

    def assignment(self) -> dict[str, Partitions]:
        """Return what each member shall have: what it had, as it was, if it keeps just that."""
        shares: dict[str, Partitions] = {}
        for member, subscriber in enumerate(self._subscribers):
            if member in self._changed:
                held = self._held[member]
                shares[subscriber.member_id] = {each: frozenset(held[each]) for each in held}
            else:
                shares[subscriber.member_id] = subscriber.owned
        return shares
