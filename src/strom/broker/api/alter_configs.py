"""AlterConfigs (key 33): replace all that is set for a resource.

Behaviour:
- Resources succeed or fail one by one, each as a whole; one given twice is INVALID_REQUEST.
- A broker changes its own settings and those of all brokers (the empty name), no other broker's.
- The levels of loggers cannot be replaced as a whole.

Versions:
- v0 to v2 differ in encoding only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strom.broker.answers import NO_THROTTLE
from strom.broker.context import Context
from strom.broker.deciding import TIMEOUT_DEFAULT, decide
from strom.broker.resources import alter_each, require_own_broker
from strom.metadata.config_decisions import Altered
from strom.metadata.image import Resource
from strom.metadata.outcome import Refusal
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.lazy import lazy

if TYPE_CHECKING:
    from kio.schema.alter_configs.v2 import request as asked
    from kio.schema.alter_configs.v2 import response as answer
else:
    answer = lazy("kio.schema.alter_configs.v2.response")

KEY = 33
VERSIONS = range(3)


async def handle(
    request: asked.AlterConfigsRequest, context: Context
) -> answer.AlterConfigsResponse:
    """Have the controller replace the settings."""
    wanted = [
        ((each.resource_type, each.resource_name), each.configs) for each in request.resources
    ]

    async def replace(
        accepted: list[tuple[Resource, tuple[asked.AlterableConfig, ...]]],
    ) -> Altered:
        parts = context.parts
        return await decide(
            parts,
            TIMEOUT_DEFAULT,
            parts.controller.replace_configs,
            [(resource, {each.name: each.value for each in given}) for resource, given in accepted],
            validate_only=request.validate_only,
        )

    def check(resource: Resource, given: tuple[asked.AlterableConfig, ...]) -> None:
        require_own_broker(resource, context)
        if len({each.name for each in given}) < len(given):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")

    outcomes = await alter_each(wanted, check, replace)
    return answer.AlterConfigsResponse(
        throttle_time=NO_THROTTLE,
        responses=tuple(
            result(resource, outcome)
            for (resource, _), outcome in zip(wanted, outcomes, strict=True)
        ),
    )


def result(resource: Resource, refusal: Refusal | None) -> answer.AlterConfigsResourceResponse:
    """Tell what became of one resource."""
    return answer.AlterConfigsResourceResponse(
        error_code=ErrorCode.NONE if refusal is None else refusal.code,
        error_message=None if refusal is None else refusal.message,
        resource_type=resource[0],
        resource_name=resource[1],
    )
