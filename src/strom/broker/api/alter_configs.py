"""AlterConfigs (key 33): replace all that is set for a resource.

Behaviour:
- Resources succeed or fail one by one, each as a whole; one given twice is INVALID_REQUEST.
- A broker changes its own settings and those of all brokers (the empty name), no other broker's.
- The levels of loggers cannot be replaced as a whole.
- All resources are one decision: after a crash all of them are changed, or none.

Versions:
- v0 to v2 differ in encoding only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strom.broker.answers import NO_THROTTLE
from strom.broker.context import Context
from strom.broker.resources import alter, check_given, require_own_broker
from strom.metadata.image import Resource
from strom.metadata.outcome import Refusal
from strom.wire.errors import ErrorCode
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from kio.schema.alter_configs.v2 import request as asked
    from kio.schema.alter_configs.v2 import response as answer
else:
    answer = kafka_message("alter_configs", "response")

KEY = 33
VERSIONS = range(3)

Given = tuple["asked.AlterableConfig", ...]


async def handle(
    request: asked.AlterConfigsRequest, context: Context
) -> answer.AlterConfigsResponse:
    """Have the controller replace the settings."""
    wanted = [
        ((each.resource_type, each.resource_name), each.configs) for each in request.resources
    ]
    controller = context.parts.controller
    outcomes = await alter(
        wanted,
        lambda resource, given: check(resource, given, context),
        lambda accepted: controller.replace_configs(
            [(resource, {each.name: each.value for each in given}) for resource, given in accepted],
            validate_only=request.validate_only,
        ),
        context.parts,
    )
    return answer.AlterConfigsResponse(
        throttle_time=NO_THROTTLE,
        responses=tuple(result(resource, outcomes[resource]) for resource, _ in wanted),
    )


def check(resource: Resource, given: Given, context: Context) -> None:
    """Refuse what is not even asked properly, and another broker's settings."""
    check_given([each.name for each in given], (each.name for each in given if each.value is None))
    require_own_broker(resource, context)


def result(resource: Resource, refusal: Refusal | None) -> answer.AlterConfigsResourceResponse:
    """Tell what became of one resource."""
    return answer.AlterConfigsResourceResponse(
        error_code=ErrorCode.NONE if refusal is None else refusal.code,
        error_message=None if refusal is None else refusal.message,
        resource_type=resource[0],
        resource_name=resource[1],
    )
