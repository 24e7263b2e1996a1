"""FindCoordinator (key 10): which broker coordinates a group or a transactional id.

Behaviour:
- Groups, transactions and share groups have no coordinator yet: each key of those types is
  answered with COORDINATOR_NOT_AVAILABLE, which clients take as "ask again later".
- An unknown type of key, or an empty one, is INVALID_REQUEST.

Versions:
- up to v3 one key is asked for, and the answer stands at the top; v4 takes many.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from strom.broker.answers import NO_THROTTLE
from strom.broker.context import Context, Large
from strom.broker.turns import answer_of
from strom.wire.errors import ErrorCode
from strom.wire.lazy import lazy

if TYPE_CHECKING:
    from kio.schema.find_coordinator.v6 import request as asked
    from kio.schema.find_coordinator.v6 import response as answer
else:
    answer = lazy("kio.schema.find_coordinator.v6.response")

KEY = 10
VERSIONS = range(7)

KEY_TYPES = (0, 1, 2)
NOBODY = -1
MANY_KEYS_FROM = 4


def upgrade(old: Any, request: asked.FindCoordinatorRequest) -> asked.FindCoordinatorRequest:  # noqa: ANN401
    """Read the one key of the older versions."""
    if old.__version__ < MANY_KEYS_FROM:
        return replace(request, coordinator_keys=(old.key,))
    return request


def downgrade(response: answer.FindCoordinatorResponse, old: Any) -> Any:  # noqa: ANN401
    """Put the one answer of the older versions at the top."""
    if old.__version__ >= MANY_KEYS_FROM:
        return old
    (found,) = response.coordinators
    values = {name: getattr(found, name) for name in ("error_code", "node_id", "host", "port")}
    if old.__version__ > 0:
        values["error_message"] = found.error_message
    return replace(old, **values)


def handle(
    request: asked.FindCoordinatorRequest, context: Context
) -> answer.FindCoordinatorResponse | Large:
    """Answer for each key."""
    keys = request.coordinator_keys
    return answer_of(
        len(keys),
        lambda: answer.FindCoordinatorResponse(
            throttle_time=NO_THROTTLE,
            coordinators=tuple(find(key, request.key_type) for key in keys),
        ),
    )


def find(key: str, key_type: int) -> answer.Coordinator:
    """Say who coordinates the key."""
    known = key_type in KEY_TYPES and key
    return answer.Coordinator(
        key=key,
        node_id=NOBODY,
        host="",
        port=NOBODY,
        error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE if known else ErrorCode.INVALID_REQUEST,
        error_message=None,
    )
