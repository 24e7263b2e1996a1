# Messages compiled by mypyc.
"""JoinGroup (key 11): become a member of a classic group, or stay one in its next round.

Behaviour:
- The answer comes when all members have joined or their time is over; other requests, of
  this connection too, are served meanwhile.
- A newcomer without an id is told one with MEMBER_ID_REQUIRED and comes back with it (KIP-394).
- The session time-out must lie within `group.min.session.timeout.ms` and
  `group.max.session.timeout.ms`: INVALID_SESSION_TIMEOUT.
- A static member (with an instance id) that comes back takes its old place under a new id, without
  a round (KIP-345); if it leads, it is told to leave the assignment as it is (KIP-814).
- What is shared is not looked into: any protocol type will do.
- A client or static member with a name so long that no id can be made of it is refused, with
  UNKNOWN_SERVER_ERROR as in Kafka; there it is in the group all the same.

Versions:
- v0 has no rebalance time-out: the session's counts. Up to v3 a newcomer needs no round trip for
  its id. v5 brings instance ids, v7 the protocol's type in the answer, v8 a reason, which nobody
  asks for here, v9 what to skip.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from strom.broker.answers import NO_THROTTLE
from strom.broker.context import Context, Waiting
from strom.broker.coordinating import settle, shard_of
from strom.groups import members
from strom.groups.classic.group import Protocol
from strom.groups.classic.joining import JoinRequest
from strom.groups.classic.replies import Joined
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import kafka_message
from strom.wire.primitives import TEXT_BYTES_MAX, ms_of

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from kio.schema.join_group.v9 import request as asked
    from kio.schema.join_group.v9 import response as answer
else:
    answer = kafka_message("join_group", "response")

KEY = 11
VERSIONS = range(10)

KNOWN_ID_FROM = 4
SKIPPING_FROM = 9


def handle(
    request: asked.JoinGroupRequest, context: Context
) -> answer.JoinGroupResponse | Coroutine[Any, Any, answer.JoinGroupResponse] | Waiting:
    """Have the coordinator take the member in."""

    def told(reply: Joined | KafkaError) -> answer.JoinGroupResponse:
        if isinstance(reply, KafkaError):
            reply = Joined(request.member_id, reply.code)
        return respond(reply)

    try:
        shard = shard_of(request.group_id, context)
        check_session(ms_of(request.session_timeout), context)
        asked = read_request(request, context)
    except KafkaError as error:
        return told(error)
    return settle(shard, members.join, asked, context.now_ms, told)


def check_session(timeout_ms: int, context: Context) -> None:
    """Refuse a session that is shorter or longer than sessions may be."""
    settings = context.settings
    shortest = settings.number("group.min.session.timeout.ms")
    if not shortest <= timeout_ms <= settings.number("group.max.session.timeout.ms"):
        raise KafkaError(ErrorCode.INVALID_SESSION_TIMEOUT)


def read_request(request: asked.JoinGroupRequest, context: Context) -> JoinRequest:
    """Read who wants to join what."""
    session_timeout_ms = ms_of(request.session_timeout)
    rebalance_timeout_ms = ms_of(request.rebalance_timeout)
    client_id = context.header.client_id or ""
    new_member_id = ""
    if not request.member_id:
        new_member_id = make_id(request.group_instance_id or client_id, context)
    return JoinRequest(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        client_id,
        f"/{context.connection.address[0]}",
        session_timeout_ms,
        session_timeout_ms if rebalance_timeout_ms < 0 else rebalance_timeout_ms,
        request.protocol_type,
        tuple([Protocol(each.name, each.metadata) for each in request.protocols]),
        new_member_id=new_member_id,
        must_return=context.version >= KNOWN_ID_FROM,
        can_skip=context.version >= SKIPPING_FROM,
    )


def make_id(name: str, context: Context) -> str:
    """Return an id for a newcomer; refuse a name that is too long to be part of one.

    The group's record would have no room for it, and that is written for all members at once.
    """
    made = f"{name}-{context.parts.host.new_id()}"
    if len(made.encode()) > TEXT_BYTES_MAX:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return made


def respond(joined: Joined) -> answer.JoinGroupResponse:
    """Tell a member what it is in, or why it is not."""
    return answer.JoinGroupResponse(
        throttle_time=NO_THROTTLE,
        error_code=joined.error,
        generation_id=joined.generation_id,
        protocol_type=joined.protocol_type,
        protocol_name=joined.protocol,
        leader=joined.leader,
        skip_assignment=joined.skip_assignment,
        member_id=joined.member_id,
        members=tuple(
            answer.JoinGroupResponseMember(
                member_id=member_id, group_instance_id=instance_id, metadata=metadata
            )
            for member_id, instance_id, metadata in joined.members
        ),
    )
