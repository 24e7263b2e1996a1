"""A member's next step from what it has to what it shall have. The heart of the protocol.

1. What it has and shall not have, it is told to give up. Until it says that it has, it stays at its
   epoch and is given nothing.
2. Then it moves to the epoch of its target, and is given all of it that nobody else holds.
3. What others hold comes later, one heartbeat after they let go of it.

So a partition is with one member at a time, whatever the order in which members come by. A client
says what it holds in its heartbeats; one that does not say is taken to hold what it had.
"""

from collections.abc import Mapping, Set
from typing import NamedTuple
from uuid import UUID

from strom.groups.consumer.assignors.subscriber import Partitions
from strom.groups.consumer.group import ConsumerGroup
from strom.groups.consumer.member import NOTHING, Held, Member, State, holds_any, moved
from strom.wire.errors import ErrorCode, KafkaError

NO_PARTITIONS: frozenset[int] = frozenset()
NO_EPOCHS: Mapping[int, int] = {}


class Aim(NamedTuple):
    """Where a member is to come to, and what is known of where it is."""

    epoch: int
    target: Partitions
    #: The topics that it wants; what its target has of others is not for it.
    topics: Set[UUID]
    #: What the client says that it holds; None if it does not say.
    owned: Partitions | None
    #: Whether it wants other topics than before.
    resubscribed: bool


def reconcile(group: ConsumerGroup, member: Member, aim: Aim) -> Member:
    """Return the member after its next step, or as it is if it cannot take one."""
    match member.state:
        case State.STABLE if member.epoch == aim.epoch:
            return _drop_unwanted(member, aim)
        case State.UNREVOKED_PARTITIONS if _still_holds(aim, member.revoking):
            return _drop_unwanted(member, aim) if aim.resubscribed else member
        case State.STABLE | State.UNREVOKED_PARTITIONS | State.UNRELEASED_PARTITIONS:
            return _step(group, member, aim)
        case State.UNKNOWN:
            if aim.owned is None or aim.owned:
                raise KafkaError(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    "The consumer group member is in a unknown state. "
                    "The member must abandon all its partitions and rejoin.",
                )
            return _step(group, member, aim)


def _still_holds(aim: Aim, held: Held) -> bool:
    return aim.owned is None or holds_any(aim.owned, held)


def _drop_unwanted(member: Member, aim: Aim) -> Member:
    """Have the member give up topics that it does not want any more, without waiting for more."""
    unwanted = {topic: held for topic, held in member.assigned.items() if topic not in aim.topics}
    if not unwanted:
        return member
    kept = {topic: held for topic, held in member.assigned.items() if topic in aim.topics}
    revoking = _merged(member.revoking, unwanted)
    if _still_holds(aim, revoking):
        return moved(member, member.epoch, State.UNREVOKED_PARTITIONS, kept, revoking)
    return moved(member, member.epoch, member.state, kept, member.revoking)


def _merged(one: Held, other: Held) -> Held:
    return {
        topic: {**one.get(topic, {}), **other.get(topic, {})} for topic in one.keys() | other.keys()
    }


def _step(group: ConsumerGroup, member: Member, aim: Aim) -> Member:
    target = {topic: partitions for topic, partitions in aim.target.items() if topic in aim.topics}
    kept, revoking = _split(member.assigned, target)
    if revoking and _still_holds(aim, revoking):
        return moved(member, member.epoch, State.UNREVOKED_PARTITIONS, kept, revoking)
    assigned, is_complete = _with_free(group, member, kept, target, aim.epoch)
    state = State.STABLE if is_complete else State.UNRELEASED_PARTITIONS
    return moved(member, aim.epoch, state, assigned, NOTHING)


def _split(held: Held, target: Partitions) -> tuple[Held, Held]:
    """Return what of the held is in the target, and what is not."""
    kept: dict[UUID, Mapping[int, int]] = {}
    rest: dict[UUID, Mapping[int, int]] = {}
    for topic, partitions in held.items():
        wanted = target.get(topic, NO_PARTITIONS)
        if wanted.issuperset(partitions):
            kept[topic] = partitions
            continue
        mine = {each: epoch for each, epoch in partitions.items() if each in wanted}
        others = {each: epoch for each, epoch in partitions.items() if each not in wanted}
        if mine:
            kept[topic] = mine
        if others:
            rest[topic] = others
    return kept, rest


def _with_free(
    group: ConsumerGroup, member: Member, kept: Held, target: Partitions, epoch: int
) -> tuple[Held, bool]:
    """Add what of the target nobody else holds; say whether that is all of it."""
    assigned: dict[UUID, Mapping[int, int]] = {}
    is_complete = True
    for topic, partitions in target.items():
        mine = kept.get(topic, NO_EPOCHS)
        missing = partitions.difference(mine)
        if missing:
            owners = group.owners_of(topic)
            free = [each for each in missing if owners.get(each, member.id) == member.id]
            if free:
                mine = {**mine, **dict.fromkeys(free, epoch)}
            is_complete = is_complete and len(free) == len(missing)
        if mine:
            assigned[topic] = mine
    return assigned, is_complete
