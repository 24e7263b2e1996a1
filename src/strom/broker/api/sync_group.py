"""SyncGroup (key 14): the leader brings everybody's part of the work, each member fetches its own.

Behaviour:
- Who comes before the leader waits for it. Who does not come within the group's rebalance time-out
  is removed, and the others share its part.
- REBALANCE_IN_PROGRESS: everybody is called in again, join. ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID,
  FENCED_INSTANCE_ID: not a member, or not any more.
- If the assignment cannot be written, all who wait hear so and a new round begins.

Versions:
- v3 brings instance ids; v5 must say the protocol and its type, else INCONSISTENT_GROUP_PROTOCOL.
"""

from collections.abc import Coroutine
from typing import Any

from strom.broker.context import Context, Waiting
from strom.broker.coordinating import settle, shard_of
from strom.broker.shard import Shard
from strom.groups import members
from strom.groups.classic.replies import Synced
from strom.groups.classic.syncing import SyncRequest
from strom.groups.machine import GroupMachine
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.sync_group import PROTOCOL_FROM, SyncGroupRequest, SyncGroupResponse

KEY = 14
VERSIONS = range(6)

#: Of an assignment that could not be written; a refusal has one of the others.
UNWRITTEN = (
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


def handle(
    request: SyncGroupRequest, context: Context
) -> SyncGroupResponse | Coroutine[Any, Any, SyncGroupResponse] | Waiting:
    """Have the coordinator share the work, or wait until it is shared."""
    try:
        shard = shard_of(request.group_id, context)
        check_protocol(request, context)
    except KafkaError as error:
        return respond(Synced(error.code))
    sync = read_request(request)
    now_ms = context.now_ms

    def told(reply: Synced | KafkaError) -> SyncGroupResponse:
        if isinstance(reply, KafkaError):
            if sync.assignments and reply.code in UNWRITTEN:
                share_again(shard, sync, reply.code, now_ms)
            reply = Synced(reply.code)
        return respond(reply)

    return settle(shard, members.sync, sync, now_ms, told)


def check_protocol(request: SyncGroupRequest, context: Context) -> None:
    """Refuse who must say what it thinks to be in, and does not."""
    silent = request.protocol_type is None or request.protocol_name is None
    if silent and context.version >= PROTOCOL_FROM:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def read_request(request: SyncGroupRequest) -> SyncRequest:
    """Read who wants its part, and what the leader brings."""
    return SyncRequest(
        request.group_id,
        request.member_id,
        request.instance_id,
        request.generation_id,
        request.protocol_type,
        request.protocol_name,
        request.assignments,
    )


def share_again(
    shard: Shard[GroupMachine], sync: SyncRequest, code: ErrorCode, now_ms: int
) -> None:
    """Let the others not wait for an assignment that could not be written."""
    shard.decide_alone(members.fail_to_share, shard.machine, sync, code, now_ms)


def respond(synced: Synced) -> SyncGroupResponse:
    """Tell a member its part."""
    return SyncGroupResponse(synced.error, synced.protocol_type, synced.protocol, synced.assignment)
