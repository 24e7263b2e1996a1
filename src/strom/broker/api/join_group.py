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

from collections.abc import Coroutine
from typing import Any

from strom.broker.context import Context, Waiting
from strom.broker.coordinating import settle, shard_of
from strom.groups import members
from strom.groups.classic.group import Protocol
from strom.groups.classic.joining import JoinRequest
from strom.groups.classic.replies import Joined
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.join_group import SKIPPING_FROM, JoinGroupRequest, JoinGroupResponse
from strom.wire.primitives import TEXT_BYTES_MAX

KEY = 11
VERSIONS = range(10)

KNOWN_ID_FROM = 4


def handle(
    request: JoinGroupRequest, context: Context
) -> JoinGroupResponse | Coroutine[Any, Any, JoinGroupResponse] | Waiting:
    """Have the coordinator take the member in."""

    def told(reply: Joined | KafkaError) -> JoinGroupResponse:
        if isinstance(reply, KafkaError):
            reply = Joined(request.member_id, reply.code)
        return respond(reply)

    try:
        shard = shard_of(request.group_id, context)
        check_session(request.session_timeout_ms, context)
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


def read_request(request: JoinGroupRequest, context: Context) -> JoinRequest:
    """Read who wants to join what."""
    rebalance_timeout_ms = request.rebalance_timeout_ms
    client_id = context.header.client_id or ""
    new_member_id = ""
    if not request.member_id:
        new_member_id = make_id(request.instance_id or client_id, context)
    return JoinRequest(
        request.group_id,
        request.member_id,
        request.instance_id,
        client_id,
        f"/{context.connection.address[0]}",
        request.session_timeout_ms,
        request.session_timeout_ms if rebalance_timeout_ms < 0 else rebalance_timeout_ms,
        request.protocol_type,
        tuple([Protocol(*each) for each in request.protocols]),
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


def respond(joined: Joined) -> JoinGroupResponse:
    """Tell a member what it is in, or why it is not."""
    return JoinGroupResponse(
        joined.error,
        joined.generation_id,
        joined.protocol_type,
        joined.protocol,
        joined.leader,
        joined.skip_assignment,
        joined.member_id,
        joined.members,
    )
