# Messages compiled by mypyc.
"""Heartbeat (key 12): a member of a classic group says that it lives.

Behaviour:
- It renews the member's session, and is told REBALANCE_IN_PROGRESS when everybody is called in.
- While the coordinator loads, all is said to be well, as in Kafka: the sessions begin anew then.

Versions:
- v3 brings instance ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from strom.broker.answers import NO_THROTTLE
from strom.broker.context import Context, Waiting
from strom.broker.coordinating import settle, shard_of
from strom.groups import members
from strom.groups.members import Beat
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from kio.schema.heartbeat.v4 import request as asked
    from kio.schema.heartbeat.v4 import response as answer
else:
    answer = kafka_message("heartbeat", "response")

KEY = 12
VERSIONS = range(5)


def handle(
    request: asked.HeartbeatRequest, context: Context
) -> answer.HeartbeatResponse | Coroutine[Any, Any, answer.HeartbeatResponse] | Waiting:
    """Have the coordinator note that the member lives."""
    try:
        shard = shard_of(request.group_id, context)
    except KafkaError as error:
        return respond(error)
    beat = Beat(
        request.group_id, request.member_id, request.group_instance_id, request.generation_id
    )
    return settle(shard, members.beat, beat, context.now_ms, respond)


def respond(reply: ErrorCode | KafkaError) -> answer.HeartbeatResponse:
    """Tell the member whether all is well."""
    code = reply.code if isinstance(reply, KafkaError) else reply
    if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        code = ErrorCode.NONE
    return answer.HeartbeatResponse(throttle_time=NO_THROTTLE, error_code=code)
