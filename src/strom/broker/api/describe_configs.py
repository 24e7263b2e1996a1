"""DescribeConfigs (key 32): what is set for a resource, where it comes from, what it overrides.

Behaviour:
- Resources succeed or fail one by one. Names that do not exist are left out; no names, or an empty
  list of them, means all settings.
- A broker describes itself, by its number, and what is set for all brokers, by the empty name.
- A group or a client-metrics subscription need not exist to be described.
- What is named more than a hundred times is INVALID_REQUEST from then on.
- Secrets are never shown. The levels of loggers are those in force now.
- An answer about more than a few resources is put together in a thread.

Versions:
- v1 has synonyms; v3 types and documentation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING, NoReturn

from strom.broker.answers import NO_THROTTLE, answer_of, require_few, text_of
from strom.broker.context import Context, Large
from strom.broker.resources import logger_levels
from strom.metadata.settings.catalogue import Kind, Resource
from strom.metadata.settings.definition import whole
from strom.metadata.settings.describe import FROM_LOGGER, Described, describe
from strom.metadata.topics import check_topic_name
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from kio.schema.describe_configs.v4 import request as asked
    from kio.schema.describe_configs.v4 import response as answer

    Reply = answer.DescribeConfigsResponse
else:
    answer = kafka_message("describe_configs", "response")

KEY = 32
VERSIONS = range(1, 5)

#: A resource has dozens of settings, each with its synonyms.
RESOURCES_AT_ONCE = 8
#: A broker's settings are a thousand times as long as what asks for them.
REPEATED_MAX = 100
LOGGER = 8
UNKNOWN_TYPE = 0
NAMELESS: dict[int, str] = {
    Kind.GROUP: "Group name must not be empty",
    Kind.CLIENT_METRICS: "Client metrics subscription name must not be empty",
}


def handle(request: asked.DescribeConfigsRequest, context: Context) -> Reply | Large:
    """Describe every resource."""
    require_few(len(request.resources))
    return answer_of(
        len(request.resources), lambda: respond(request, context), at_once=RESOURCES_AT_ONCE
    )


def respond(request: asked.DescribeConfigsRequest, context: Context) -> Reply:
    """Describe every resource."""
    asked_for: Counter[tuple[int, str]] = Counter()

    def describe_one(wanted: asked.DescribeConfigsResource) -> answer.DescribeConfigsResult:
        place = wanted.resource_type, wanted.resource_name
        asked_for[place] += 1
        return result(wanted, request, context, repeated=asked_for[place] > REPEATED_MAX)

    return answer.DescribeConfigsResponse(
        throttle_time=NO_THROTTLE, results=tuple(describe_one(each) for each in request.resources)
    )


def result(
    wanted: asked.DescribeConfigsResource,
    request: asked.DescribeConfigsRequest,
    context: Context,
    *,
    repeated: bool,
) -> answer.DescribeConfigsResult:
    """Describe one resource, or say why not."""
    code, message = ErrorCode.NONE, ""
    found: list[Described] = []
    try:
        if repeated:
            refuse_repeated()
        found = settings_of(wanted, context)
    except KafkaError as error:
        code, message = error.code, text_of(error) or ""
    return answer.DescribeConfigsResult(
        error_code=code,
        error_message=message,
        resource_type=wanted.resource_type,
        resource_name=wanted.resource_name,
        configs=tuple(entry(each, request) for each in found),
    )


def refuse_repeated() -> NoReturn:
    """Refuse to say the same once more."""
    raise KafkaError(
        ErrorCode.INVALID_REQUEST, f"Each resource is described {REPEATED_MAX} times at most."
    )


def settings_of(wanted: asked.DescribeConfigsResource, context: Context) -> list[Described]:
    """Return the settings asked for."""
    kind, name, names = wanted.resource_type, wanted.resource_name, wanted.configuration_keys
    if kind == LOGGER:
        return loggers(name, names, context)
    if kind not in tuple(Kind):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    resource = Resource(Kind(kind), name)
    require(resource, context)
    overrides = context.image.config((resource.kind, name))
    return describe(resource, context.settings, overrides, names)


def require(resource: Resource, context: Context) -> None:
    """Refuse a resource that is not there."""
    kind, name = resource
    if kind in NAMELESS and not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, NAMELESS[kind])
    if kind == Kind.TOPIC:
        check_topic_name(name)
        if name not in context.image.topics_by_name:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    elif kind == Kind.BROKER and name:
        own = context.parts.node_id
        require_own(name, own, f"{own} or empty string,")


def require_own(name: str, own: int, expected: str) -> None:
    """Refuse to describe another broker."""
    asked = whole(name)
    if asked is None:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}"
        )
    if asked != own:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {expected} but received {name}",
        )


def loggers(name: str, names: Collection[str] | None, context: Context) -> list[Described]:
    """Describe the levels of this broker's loggers."""
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
    own = context.parts.node_id
    require_own(name, own, str(own))
    return [
        Described(logger, level, False, FROM_LOGGER, False, (), UNKNOWN_TYPE, "")
        for logger, level in sorted(logger_levels().items())
        if not names or logger in names
    ]


def entry(
    setting: Described, request: asked.DescribeConfigsRequest
) -> answer.DescribeConfigsResourceResult:
    """Describe one setting, as far as the client wants to know."""
    synonyms = setting.synonyms if request.include_synonyms else ()
    return answer.DescribeConfigsResourceResult(
        name=setting.name,
        value=setting.value,
        read_only=setting.read_only,
        config_source=setting.source,
        is_sensitive=setting.sensitive,
        synonyms=tuple(
            answer.DescribeConfigsSynonym(name=each.name, value=each.value, source=each.source)
            for each in synonyms
        ),
        config_type=setting.type,
        documentation=setting.documentation if request.include_documentation else None,
    )
