"""IncrementalAlterConfigs (key 44): set, delete, append to or subtract from single settings.

Behaviour:
- Resources succeed or fail one by one, each as a whole; one given twice is INVALID_REQUEST.
- A broker changes its own settings and those of all brokers (the empty name), no other broker's.
- The levels of the broker's loggers change at once and are forgotten when it stops.
- An operation that does not exist is UNKNOWN_SERVER_ERROR, for a broker's settings INVALID_REQUEST,
  as in Kafka.
- All resources are one decision: after a crash all of them are changed, or none.

Versions:
- v0 and v1 differ in encoding only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strom.broker.answers import NO_THROTTLE
from strom.broker.context import Context
from strom.broker.resources import (
    LOGGER_RESOURCE,
    alter,
    change_logger,
    check_each,
    check_given,
    check_logger_change,
    read_node_id,
    require_own_broker,
)
from strom.metadata.config_decisions import Alteration, Altered, Operation
from strom.metadata.image import Resource
from strom.metadata.outcome import Refusal
from strom.metadata.records import BROKER_RESOURCE
from strom.metadata.settings.catalogue import BROKER
from strom.metadata.settings.definition import LIST
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from kio.schema.incremental_alter_configs.v1 import request as asked
    from kio.schema.incremental_alter_configs.v1 import response as answer
else:
    answer = kafka_message("incremental_alter_configs", "response")

KEY = 44
VERSIONS = range(2)

OPERATIONS = {int(each) for each in Operation}

Given = tuple["asked.AlterableConfig", ...]
Item = tuple[Resource, Given]


async def handle(
    request: asked.IncrementalAlterConfigsRequest, context: Context
) -> answer.IncrementalAlterConfigsResponse:
    """Change the loggers here, and have the controller change the rest."""
    wanted = [
        ((each.resource_type, each.resource_name), each.configs) for each in request.resources
    ]
    loggers = [item for item in wanted if item[0][0] == LOGGER_RESOURCE]
    others = [item for item in wanted if item[0][0] != LOGGER_RESOURCE]
    outcomes = alter_loggers(loggers, context, validate_only=request.validate_only)
    if others:
        outcomes |= await alter_settings(others, context, validate_only=request.validate_only)
    return answer.IncrementalAlterConfigsResponse(
        throttle_time=NO_THROTTLE,
        responses=tuple(result(resource, outcomes[resource]) for resource, _ in wanted),
    )


def check(resource: Resource, given: Given, context: Context) -> None:
    """Refuse what is not even asked properly, and what is the broker's own affair."""
    without_value = (
        each.name
        for each in given
        if each.value is None and each.config_operation != Operation.DELETE
    )
    check_given([each.name for each in given], without_value)
    if resource[0] == LOGGER_RESOURCE:
        check_operations(given)
        check_loggers(resource[1], given, context.parts.node_id)
        return
    require_own_broker(resource, context)
    if resource[0] == BROKER_RESOURCE:
        check_broker_operations(given)
    check_operations(given)


def check_operations(given: Given) -> None:
    """Refuse an operation that does not exist."""
    if any(each.config_operation not in OPERATIONS for each in given):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)


def check_broker_operations(given: Given) -> None:
    """Refuse operations on a broker's settings; Kafka has other words for it than for a topic's."""
    for each in given:
        if each.config_operation not in OPERATIONS:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"Unknown operations type {each.config_operation}"
            )
    for each in given:
        operation = Operation(each.config_operation)
        if operation not in (Operation.APPEND, Operation.SUBTRACT):
            continue
        setting = BROKER.get(each.name)
        if setting is None:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown config name: {each.name}")
        if setting.type != LIST:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"Config value {operation.name.lower()} is not allowed for config key: {each.name}",
            )


def check_loggers(name: str, given: Given, own: int) -> None:
    """Refuse changes of another broker's loggers, or such that cannot be made."""
    if read_node_id(name) != own:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Unexpected node id. Expected {own}, but received {name}"
        )
    for each in given:
        check_logger_change(each.name, Operation(each.config_operation), each.value)


def alter_loggers(items: list[Item], context: Context, *, validate_only: bool) -> Altered:
    """Change the levels of loggers."""
    altered, accepted = check_each(items, lambda resource, given: check(resource, given, context))
    for resource, given in accepted:
        altered[resource] = None
        for each in () if validate_only else given:
            change_logger(each.name, each.value)
    return altered


async def alter_settings(items: list[Item], context: Context, *, validate_only: bool) -> Altered:
    """Have the controller change settings."""
    controller = context.parts.controller
    return await alter(
        items,
        lambda resource, given: check(resource, given, context),
        lambda accepted: controller.incrementally_alter_configs(
            [(resource, alterations(given)) for resource, given in accepted],
            validate_only=validate_only,
        ),
        context.parts,
    )


def alterations(given: Given) -> tuple[Alteration, ...]:
    """Read what is to change."""
    return tuple(
        Alteration(each.name, Operation(each.config_operation), each.value) for each in given
    )


def result(resource: Resource, refusal: Refusal | None) -> answer.AlterConfigsResourceResponse:
    """Tell what became of one resource."""
    return answer.AlterConfigsResourceResponse(
        error_code=ErrorCode.NONE if refusal is None else refusal.code,
        error_message=None if refusal is None else refusal.message,
        resource_type=resource[0],
        resource_name=resource[1],
    )
