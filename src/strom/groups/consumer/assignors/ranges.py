"""The `range` assignor: each topic is cut into one piece per subscriber, in the same order.

Topics of as many partitions are cut in the same places, so members with the same subscriptions get
the same partition numbers of all of them: what belongs together by key is read by one member. The
first members get one partition more where it does not divide evenly. Nothing is sticky but the
order: members with an instance id come first, by that, so that one which comes back under
another member id finds its place again. Racks do not count. All of that is as in Kafka 4.3.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from uuid import UUID

from strom.groups.consumer.assignors.subscriber import NO_RACKS, Partitions, Racks, Subscriber


def assign(
    subscribers: Sequence[Subscriber], counts: Mapping[UUID, int], racks: Racks = NO_RACKS
) -> dict[str, Partitions]:
    """Cut every topic into ranges."""
    in_order = sorted(subscribers, key=place)
    assignment: dict[str, dict[UUID, frozenset[int]]] = {each.member_id: {} for each in in_order}
    by_topic: dict[UUID, list[str]] = {}
    for subscriber in in_order:
        for topic in subscriber.topics:
            by_topic.setdefault(topic, []).append(subscriber.member_id)
    for topic, member_ids in by_topic.items():
        for member_id, piece in zip(
            member_ids, pieces(counts[topic], len(member_ids)), strict=True
        ):
            if piece:
                assignment[member_id][topic] = frozenset(piece)
    return dict(assignment)


def place(subscriber: Subscriber) -> tuple[bool, str]:
    """Return what members are ordered by."""
    if subscriber.instance_id is None:
        return True, subscriber.member_id
    return False, subscriber.instance_id


def pieces(count: int, shares: int) -> list[range]:
    """Cut the numbers below count into that many pieces; the first are longer by one at most."""
    least, longer = divmod(count, shares)
    cuts = [index * least + min(index, longer) for index in range(shares + 1)]
    return [range(start, end) for start, end in pairwise(cuts)]
