"""ListConfigResources (key 74): the names of what can have settings.

Behaviour:
- Topics and brokers are listed because they exist; groups and client-metrics subscriptions
  because something is set for them. Every broker has loggers.
- No list of types means all types; one that is not known is UNSUPPORTED_VERSION.

Versions:
- v0 lists client-metrics subscriptions only, and has no types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from strom.broker.answers import NO_THROTTLE, answer_of
from strom.broker.context import Context, Large
from strom.metadata.image import Image
from strom.wire.errors import ErrorCode
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from kio.schema.list_config_resources.v1 import request as asked
    from kio.schema.list_config_resources.v1 import response as answer
else:
    answer = kafka_message("list_config_resources", "response")

KEY = 74
VERSIONS = range(2)

TOPIC = 2
BROKER = 4
BROKER_LOGGER = 8
CLIENT_METRICS = 16
GROUP = 32
TYPES = (BROKER_LOGGER, BROKER, TOPIC, GROUP, CLIENT_METRICS)
#: The first version in which a client says what it wants.
TYPES_FROM = 1


def handle(
    request: asked.ListConfigResourcesRequest, context: Context
) -> answer.ListConfigResourcesResponse | Large:
    """List the resources of the types asked for."""
    wanted = set(request.resource_types or TYPES)
    if context.version < TYPES_FROM:
        wanted = {CLIENT_METRICS}
    if not wanted <= set(TYPES):
        return response(ErrorCode.UNSUPPORTED_VERSION, ())
    found = [
        (name, each) for each in TYPES if each in wanted for name in names(each, context.image)
    ]
    return answer_of(len(found), lambda: response(ErrorCode.NONE, found))


def names(resource_type: int, image: Image) -> list[str]:
    """List the resources of one type."""
    if resource_type == TOPIC:
        return sorted(image.topics_by_name)
    if resource_type in (BROKER, BROKER_LOGGER):
        return [str(broker_id) for broker_id in sorted(image.brokers)]
    return sorted(name for each, name in image.configs if each == resource_type)


def response(
    code: ErrorCode, resources: Sequence[tuple[str, int]]
) -> answer.ListConfigResourcesResponse:
    """Return the answer, with each resource's name and type."""
    return answer.ListConfigResourcesResponse(
        throttle_time=NO_THROTTLE,
        error_code=code,
        config_resources=tuple(
            answer.ConfigResource(resource_name=name, resource_type=each)
            for name, each in resources
        ),
    )
