"""Which protocol a group uses: one that all its members know, and most of them like best."""

from collections.abc import Collection

from strom.groups.classic.group import ClassicGroup


def accepts(group: ClassicGroup, protocol_type: str, names: Collection[str]) -> bool:
    """Say whether somebody who knows these protocols can join without leaving others out."""
    if group.is_empty:
        return bool(protocol_type) and bool(names)
    return protocol_type == group.protocol_type and not frozenset(names).isdisjoint(
        known_to_all(group) if group.members else names
    )


def choose(group: ClassicGroup) -> str:
    """Count the members' votes; among equals the one that the longest-standing member likes."""
    shared = known_to_all(group)
    votes: dict[str, int] = {}
    for member in group.members.values():
        vote = next(each.name for each in member.protocols if each.name in shared)
        votes[vote] = votes.get(vote, 0) + 1
    return max(votes, key=lambda name: votes[name])


def known_to_all(group: ClassicGroup) -> frozenset[str]:
    """Return the names of the protocols that all members know."""
    # There are many members, but few different sets of protocols.
    first, *others = {each.names for each in group.members.values()}
    return first.intersection(*others)
