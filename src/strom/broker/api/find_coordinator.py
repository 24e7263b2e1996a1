"""FindCoordinator (key 10): which broker coordinates a group or a transactional id.

Behaviour:
- The coordinator leads the partition of an internal topic that the key's hash names. The first
  question makes the topic, and waits until it can be used; Kafka has its clients ask again.
- If it cannot be made, or nobody leads the partition, the answer is COORDINATOR_NOT_AVAILABLE,
  which clients take as "ask again later". Share groups have no coordinator yet.
- An unknown type of key is INVALID_REQUEST, and so is the key of a share group's partition that
  is not made of group, topic id and number.

Versions:
- up to v3 one key is asked for, and the answer stands at the top, with its code in words; v4
  takes many. v6 knows share groups.
"""

from __future__ import annotations

import re
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from strom.broker.answers import NO_THROTTLE, STOCK_TEXTS, require_few
from strom.broker.context import Context
from strom.broker.coordination import Coordinators
from strom.broker.internal_topics import make_topic
from strom.wire.errors import ErrorCode
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from kio.schema.find_coordinator.v6 import request as asked
    from kio.schema.find_coordinator.v6 import response as answer

    Reply = answer.FindCoordinatorResponse
else:
    answer = kafka_message("find_coordinator", "response")

KEY = 10
VERSIONS = range(7)

GROUP, TRANSACTION, SHARE = 0, 1, 2
NOBODY = -1
MANY_KEYS_FROM = 4
SHARE_FROM = 6
SHARE_KEY = re.compile(r"[^:]*[^:\s][^:]*:[\w-]{22}:-?\d+", re.ASCII)

CODES_IN_WORDS = {
    ErrorCode.NONE: "NONE",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
}


def upgrade(request: Any, version: int) -> None:  # noqa: ANN401 - with fields of older versions
    """Read the one key of the older versions."""
    if version < MANY_KEYS_FROM:
        request.coordinator_keys = (request.key,)


def downgrade(response: Any, version: int) -> None:  # noqa: ANN401 - as above
    """Put the one answer of the older versions at the top."""
    if version >= MANY_KEYS_FROM:
        return
    (found,) = response.coordinators
    response.error_code, response.node_id = found.error_code, found.node_id
    response.host, response.port = found.host, found.port
    response.error_message = found.error_message or CODES_IN_WORDS.get(found.error_code)


def handle(
    request: asked.FindCoordinatorRequest, context: Context
) -> Reply | Coroutine[None, None, Reply]:
    """Answer for each key, at once if the topic is there."""
    require_few(len(request.coordinator_keys))
    coordinators = coordinators_of(request.key_type, context)
    if coordinators is None or not request.coordinator_keys or coordinators.has_topic:
        return respond(request, coordinators, context)
    return create_and_respond(request, coordinators, context)


def coordinators_of(key_type: int, context: Context) -> Coordinators[Any] | None:
    """Return the coordinators of this type of key, if there are any."""
    if key_type == GROUP:
        return context.parts.groups
    return context.parts.transactions if key_type == TRANSACTION else None


async def create_and_respond(
    request: asked.FindCoordinatorRequest, coordinators: Coordinators[Any], context: Context
) -> Reply:
    """Make the topic first."""
    await make_topic(coordinators.topic, context)
    return respond(request, coordinators, context)


def respond(
    request: asked.FindCoordinatorRequest, coordinators: Coordinators[Any] | None, context: Context
) -> Reply:
    """Answer for each key."""

    def answer_for(key: str) -> answer.Coordinator:
        if coordinators is not None:
            return find(key, coordinators, context)
        if request.key_type == SHARE:
            return nobody(key, code_of_share(key, context.version))
        code = ErrorCode.INVALID_REQUEST
        return nobody(key, code, STOCK_TEXTS[code])

    return answer.FindCoordinatorResponse(
        throttle_time=NO_THROTTLE,
        coordinators=tuple(answer_for(key) for key in request.coordinator_keys),
    )


def code_of_share(key: str, version: int) -> ErrorCode:
    """Say why nobody coordinates a partition of a share group."""
    if version < SHARE_FROM or SHARE_KEY.fullmatch(key) is None:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.COORDINATOR_NOT_AVAILABLE


def find(key: str, coordinators: Coordinators[Any], context: Context) -> answer.Coordinator:
    """Say who coordinates the key."""
    leader = coordinators.leader_of(key, context.image)
    broker = None if leader is None else context.image.brokers.get(leader)
    if broker is None or broker.fenced:
        return nobody(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    endpoint = context.endpoint_of(broker)
    if endpoint is None:
        return nobody(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return answer.Coordinator(
        key=key,
        node_id=broker.id,
        host=endpoint.host,
        port=endpoint.port,
        error_code=ErrorCode.NONE,
        error_message="",
    )


def nobody(key: str, code: ErrorCode, message: str = "") -> answer.Coordinator:
    """Say that nobody coordinates the key, and why."""
    return answer.Coordinator(
        key=key, node_id=NOBODY, host="", port=NOBODY, error_code=code, error_message=message
    )
