"""From a consumer group to a classic one: when nobody of the consumer protocol is left.

Those who stay go on with what they have, as members of a classic group of the same generation, and
share the work among themselves from the next round on, which begins at once. Until it is over they
read what they had: Kafka takes down what they should have got, and whoever makes it a consumer
group again before that is given what others still read.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from typing import TypeVar

from strom.groups.classic.change import Change
from strom.groups.classic.group import ClassicGroup, Phase, Protocol
from strom.groups.classic.group import Member as ClassicMember
from strom.groups.classic.rebalance import prepare
from strom.groups.classic.votes import choose
from strom.groups.consumer.assignors.subscriber import Partitions
from strom.groups.consumer.draft import TIMERS, Draft
from strom.groups.consumer.embedded import CONSUMER, read_version, write_assignment
from strom.groups.consumer.gathering import dismiss
from strom.groups.consumer.group import ConsumerGroup
from strom.groups.consumer.limits import Limits
from strom.groups.consumer.member import Member, partitions_of
from strom.groups.consumer.replies import cannot_downgrade
from strom.groups.consumer.rows import group_gone
from strom.metadata.image import Image
from strom.replicated.machine import Decision, KeyValue, TimerKey
from strom.wire.primitives import MalformedFrame

Reply = TypeVar("Reply")


def can_downgrade(group: ConsumerGroup, leaving: Set[str], limits: Limits) -> bool:
    """Say whether those who stay are a classic group, if these leave."""
    staying = [each for each in group.members.values() if each.id not in leaving]
    return bool(staying) and _can_be_classic(staying, len(staying), limits)


def can_downgrade_with(group: ConsumerGroup, member: Member, limits: Limits) -> bool:
    """Say whether the group is a classic group if this one comes to speak the classic protocol."""
    others = [each for each in group.members.values() if each.id != member.id]
    return member.classic is None and _can_be_classic(others, len(others) + 1, limits)


def _can_be_classic(members: Iterable[Member], size: int, limits: Limits) -> bool:
    return (
        all(each.classic is not None for each in members)
        and limits.migration.allows_downgrade
        and size <= limits.classic_max_size
    )


def downgrade(
    draft: Draft, leaving: Set[str], reply: Reply, *, rebalance: bool = True
) -> Decision[KeyValue, Reply]:
    """Make the group a classic one of those who stay."""
    group, moment = draft.group, draft.moment
    try:
        classic = _classic_group(group, leaving, moment.image, moment.now_ms)
    except MalformedFrame as error:
        raise cannot_downgrade(group.id, str(error)) from None
    dismiss(draft, draft.watch.asking)
    change = Change(classic, moment.now_ms)
    change.write()
    for member_id in classic.members:
        change.renew_session(member_id)
    if rebalance:
        prepare(change)
    decision = change.decision(reply)
    forgotten: dict[TimerKey, int | None] = {
        (kind, group.id, member_id): None for member_id in group.members for kind in TIMERS
    }
    return decision._replace(
        records=(*draft.records, *group_gone(group), *decision.records),
        timers=(*(draft.timers | forgotten).items(), *decision.timers),
        answers=(*draft.answers, *decision.answers),
    )


def _classic_group(
    group: ConsumerGroup, leaving: Set[str], image: Image, now_ms: int
) -> ClassicGroup:
    staying = [group.members[each] for each in sorted(group.members) if each not in leaving]
    members = {each.id: _classic_member(each) for each in staying}
    classic = ClassicGroup(
        group.id,
        phase=Phase.STABLE,
        since_ms=now_ms,
        generation_id=group.epoch,
        protocol_type=CONSUMER,
        leader=staying[0].id,
        members=members,
        instances={each.instance_id: each.id for each in staying if each.instance_id is not None},
    )
    classic = classic._replace(protocol=choose(classic))
    return classic._replace(members=_assigned(classic, group, image))


def _classic_member(member: Member) -> ClassicMember:
    assert member.classic is not None
    return ClassicMember(
        member.id,
        member.instance_id,
        member.client_id,
        member.client_host,
        session_timeout_ms=member.classic.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        protocols=tuple(
            Protocol(each.name, each.metadata) for each in member.classic.supported_protocols
        ),
    )


def _assigned(
    classic: ClassicGroup, group: ConsumerGroup, image: Image
) -> Mapping[str, ClassicMember]:
    """Return the members with what they have."""
    return {
        key: replace(
            member,
            assignment=write_assignment(
                _held(group.members[key]), read_version(member.metadata(classic.protocol)), image
            ),
        )
        for key, member in classic.members.items()
    }


def _held(member: Member) -> Partitions:
    """Return what the member has, also what it was told to give up and has not yet."""
    held = dict(partitions_of(member.assigned))
    for topic, partitions in partitions_of(member.revoking).items():
        held[topic] = held.get(topic, frozenset()).union(partitions)
    return held
