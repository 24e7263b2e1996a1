"""A classic group in the log: written when a round is over, read when a coordinator begins.

In between nothing is written. So a coordinator that begins anew knows the last generation that
was complete; its members still have what they were given then.
"""

from strom.groups.classic.group import ClassicGroup, Member, Phase, Protocol
from strom.groups.records import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from strom.replicated.machine import KeyValue

NO_TIMEOUT = -1


def group_record(group: ClassicGroup) -> KeyValue:
    """Return the record of a group whose round is over."""
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation_id,
        protocol=group.protocol,
        leader=group.leader,
        current_state_timestamp=group.since_ms,
        members=tuple(_write_member(each, group.protocol) for each in group.members.values()),
    )
    return KeyValue(GroupMetadataKey(group=group.id), value)


def group_tombstone(group_id: str) -> KeyValue:
    """Return the record that deletes a group."""
    return KeyValue(GroupMetadataKey(group=group_id), None)


def read_group(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    """Return the group as the record has it."""
    members = [_read_member(each, value.protocol) for each in value.members]
    return ClassicGroup(
        group_id,
        phase=Phase.STABLE if members else Phase.EMPTY,
        since_ms=value.current_state_timestamp,
        generation_id=value.generation,
        protocol_type=value.protocol_type or None,
        protocol=value.protocol,
        leader=value.leader,
        members={each.id: each for each in members},
        instances={each.instance_id: each.id for each in members if each.instance_id is not None},
    )


def _write_member(member: Member, protocol: str | None) -> MemberMetadata:
    return MemberMetadata(
        member_id=member.id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=member.session_timeout_ms,
        subscription=member.metadata(protocol),
        assignment=member.assignment,
    )


def _read_member(member: MemberMetadata, protocol: str | None) -> Member:
    rebalance_timeout_ms = member.rebalance_timeout
    if rebalance_timeout_ms == NO_TIMEOUT:
        rebalance_timeout_ms = member.session_timeout
    return Member(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        session_timeout_ms=member.session_timeout,
        rebalance_timeout_ms=rebalance_timeout_ms,
        protocols=() if protocol is None else (Protocol(protocol, member.subscription),),
        assignment=member.assignment,
    )
