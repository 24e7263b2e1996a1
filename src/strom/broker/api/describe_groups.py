"""DescribeGroups (key 15): the members of classic groups, and what each has.

Behaviour:
- The protocol, and what members say of themselves by it, is told of a stable group only: in a
  round both may change.
- A group that does not exist, or is of another kind, is "Dead".

Versions:
- v3 can ask which operations are allowed, v4 brings instance ids. From v6 a group that does not
  exist is GROUP_ID_NOT_FOUND, with a text; before, there was no error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strom.broker.answers import (
    GROUP_OPERATIONS,
    NO_THROTTLE,
    NOT_ASKED,
    answer_of,
    require_few,
)
from strom.broker.context import Context, Large
from strom.groups.classic.group import ClassicGroup, Member, Phase
from strom.groups.overview import find_classic
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from kio.schema.describe_groups.v6 import request as asked
    from kio.schema.describe_groups.v6 import response as answer

    Reply = answer.DescribeGroupsResponse
else:
    answer = kafka_message("describe_groups", "response")

KEY = 15
VERSIONS = range(7)

NOT_FOUND_FROM = 6
#: A group is described with its members.
GROUPS_AT_ONCE = 50


def handle(request: asked.DescribeGroupsRequest, context: Context) -> Reply | Large:
    """Describe each group, once."""
    require_few(len(request.groups))
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NOT_ASKED
    groups = tuple(describe(each, operations, context) for each in dict.fromkeys(request.groups))
    return answer_of(
        len(groups),
        lambda: answer.DescribeGroupsResponse(throttle_time=NO_THROTTLE, groups=groups),
        at_once=GROUPS_AT_ONCE,
    )


def describe(group_id: str, operations: int, context: Context) -> answer.DescribedGroup:
    """Describe a group, or say why not."""
    try:
        shard = context.parts.groups.shard_for(group_id)
        group = find_classic(shard.machine, group_id)
    except KafkaError as error:
        return refused(group_id, error, operations, context)
    stable = group.phase is Phase.STABLE
    return answer.DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group_id,
        group_state=group.phase,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if stable else "",
        members=tuple(described(each, group) for each in group.members.values()),
        authorized_operations=operations,
    )


def described(member: Member, group: ClassicGroup) -> answer.DescribedGroupMember:
    """Describe a member; in a round without what may change."""
    stable = group.phase is Phase.STABLE
    return answer.DescribedGroupMember(
        member_id=member.id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.metadata(group.protocol) if stable else b"",
        member_assignment=member.assignment,
    )


def refused(
    group_id: str, error: KafkaError, operations: int, context: Context
) -> answer.DescribedGroup:
    """Say that there is no such group, or no coordinator that could tell."""
    missing = error.code is ErrorCode.GROUP_ID_NOT_FOUND
    as_before = missing and context.version < NOT_FOUND_FROM
    return answer.DescribedGroup(
        error_code=ErrorCode.NONE if as_before else error.code,
        error_message=error.message,
        group_id=group_id,
        group_state=Phase.DEAD if missing else "",
        protocol_type="",
        protocol_data="",
        members=(),
        authorized_operations=operations if as_before else NOT_ASKED,
    )
