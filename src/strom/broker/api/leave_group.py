"""LeaveGroup (key 13): members leave a classic group, or are sent away.

Behaviour:
- Each gets its own answer; one round follows for all of them.
- A static member is found by its instance id alone if no member id is given (KIP-345).
- In a group that does not exist, nobody is a member: UNKNOWN_MEMBER_ID for each.

Versions:
- up to v2 there is one member and one code. v5 brings a reason, which nobody asks for here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from strom.broker.answers import NO_THROTTLE
from strom.broker.context import Context, Waiting
from strom.broker.coordinating import settle, shard_of
from strom.groups import members
from strom.groups.classic.leaving import Leaver
from strom.groups.members import Leaving
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from kio.schema.leave_group.v5 import request as asked
    from kio.schema.leave_group.v5 import response as answer
else:
    asked = kafka_message("leave_group", "request")
    answer = kafka_message("leave_group", "response")

KEY = 13
VERSIONS = range(6)

MANY_FROM = 3


def upgrade(request: Any, version: int) -> None:  # noqa: ANN401 - with fields of older versions
    """Read the one member of the older versions."""
    if version < MANY_FROM:
        request.members = (asked.MemberIdentity(member_id=request.member_id),)


def downgrade(response: Any, version: int) -> None:  # noqa: ANN401 - as above
    """Put the one member's code at the top, as the older versions have it."""
    if version < MANY_FROM and response.members:
        response.error_code = response.error_code or response.members[0].error_code


def handle(
    request: asked.LeaveGroupRequest, context: Context
) -> answer.LeaveGroupResponse | Coroutine[Any, Any, answer.LeaveGroupResponse] | Waiting:
    """Have the coordinator let the members go."""

    def told(reply: tuple[ErrorCode, ...] | KafkaError) -> answer.LeaveGroupResponse:
        return respond(request, reply)

    try:
        shard = shard_of(request.group_id, context)
    except KafkaError as error:
        return told(error)
    leavers = tuple(Leaver(each.member_id, each.group_instance_id) for each in request.members)
    leaving = Leaving(request.group_id, leavers)
    return settle(shard, members.leave, leaving, context.now_ms, told)


def respond(
    request: asked.LeaveGroupRequest, reply: tuple[ErrorCode, ...] | KafkaError
) -> answer.LeaveGroupResponse:
    """Tell each whether it has left."""
    if isinstance(reply, KafkaError):
        return answer.LeaveGroupResponse(
            throttle_time=NO_THROTTLE, error_code=reply.code, members=()
        )
    return answer.LeaveGroupResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.NONE,
        members=tuple(
            answer.MemberResponse(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                error_code=code,
            )
            for member, code in zip(request.members, reply, strict=True)
        ),
    )
