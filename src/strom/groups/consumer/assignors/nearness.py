"""Which partitions go to which members, when it is decided how many each of them gets.

Who reads from a replica in its own rack waits less and pays less (KIP-392, KIP-881). That never
counts more than an even share, nor does it move what a member has: only what is given out anyway
is given to one that has a replica near, as far as those have room for it.
"""

from collections.abc import Collection, Mapping, Sequence

from strom.groups.consumer.assignors.subscriber import Subscriber


def nearest(
    got: Mapping[int, Sequence[int]],
    subscribers: Sequence[Subscriber],
    racks: Sequence[Collection[str]],
) -> dict[int, list[int]]:
    """Give each member as many of a topic's partitions as it got, rather those in its rack."""
    room: dict[str, list[int]] = {}
    for member in sorted(got):
        rack = subscribers[member].rack
        if rack is not None:
            room.setdefault(rack, []).extend([member] * len(got[member]))
    given: dict[int, list[int]] = {member: [] for member in got}
    far = []
    # Those first that have the fewest to go to.
    partitions = sorted(each for some in got.values() for each in some)
    for partition in sorted(partitions, key=lambda each: room_in(racks[each], room)):
        places = [room[rack] for rack in sorted(racks[partition]) if room.get(rack)]
        if places:
            given[max(places, key=len).pop()].append(partition)
        else:
            far.append(partition)
    left = iter(sorted(far))
    for member, some in given.items():
        some.extend(next(left) for _ in range(len(got[member]) - len(some)))
    return given


def room_in(racks: Collection[str], room: Mapping[str, Sequence[int]]) -> int:
    """Return how many partitions members in these racks can take."""
    return sum(len(room[rack]) for rack in racks if rack in room)
