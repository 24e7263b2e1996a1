"""Heartbeat (key 12): a member of a classic group says that it lives.

Behaviour:
- It renews the member's session, and is told REBALANCE_IN_PROGRESS when everybody is called in.
- While the coordinator loads, all is said to be well, as in Kafka: the sessions begin anew then.

Versions:
- v3 brings instance ids.
"""

from collections.abc import Coroutine
from typing import Any

from strom.broker.context import Context, Waiting
from strom.broker.coordinating import settle, shard_of
from strom.groups import members
from strom.groups.members import Beat
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.heartbeat import HeartbeatRequest, HeartbeatResponse

KEY = 12
VERSIONS = range(5)


def handle(
    request: HeartbeatRequest, context: Context
) -> HeartbeatResponse | Coroutine[Any, Any, HeartbeatResponse] | Waiting:
    """Have the coordinator note that the member lives."""
    try:
        shard = shard_of(request.group_id, context)
    except KafkaError as error:
        return respond(error)
    beat = Beat(request.group_id, request.member_id, request.instance_id, request.generation_id)
    return settle(shard, members.beat, beat, context.now_ms, respond)


def respond(reply: ErrorCode | KafkaError) -> HeartbeatResponse:
    """Tell the member whether all is well."""
    code = reply.code if isinstance(reply, KafkaError) else reply
    if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        code = ErrorCode.NONE
    return HeartbeatResponse(code)
