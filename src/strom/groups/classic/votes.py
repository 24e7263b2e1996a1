"""Which protocol a group uses: one that all its members know, and most of them like best."""

from collections.abc import Collection

from strom.groups.classic.group import ClassicGroup


def accepts(group: ClassicGroup, protocol_type: str, names: Collection[str]) -> bool:
    """Say whether somebody who knows these protocols can join without leaving others out."""
    if group.is_empty:
        return bool(protocol_type) and bool(names)
    return protocol_type == group.protocol_type and any(
        _known_to_all(group, name) for name in names
    )


def choose(group: ClassicGroup) -> str:
    """Count the members' votes; among equals the one that the longest-standing member likes."""
    first, *others = group.members.values()
    shared = {each.name for each in first.protocols}
    for member in others:
        shared &= {each.name for each in member.protocols}
    votes: dict[str, int] = {}
    for member in group.members.values():
        vote = next(each.name for each in member.protocols if each.name in shared)
        votes[vote] = votes.get(vote, 0) + 1
    return max(votes, key=lambda name: votes[name])


def _known_to_all(group: ClassicGroup, name: str) -> bool:
    return all(member.supports(name) for member in group.members.values())
