"""What can have settings, as the requests that change them see it: whose they are to change.

The controller decides about settings, but three things are the broker's own affair: that nobody
changes another broker's settings through it, that a resource is named once, and the levels of its
loggers, which are no metadata and are forgotten when it stops.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

from strom.broker.context import Context, Parts
from strom.broker.deciding import TIMEOUT_DEFAULT, decide
from strom.metadata.config_decisions import Altered, Operation, check_type
from strom.metadata.image import Resource
from strom.metadata.outcome import Refusal, attempt
from strom.metadata.records import BROKER_RESOURCE, Record
from strom.metadata.settings.definition import whole
from strom.replicated.machine import Decision
from strom.wire.errors import ErrorCode, KafkaError

LOGGER_RESOURCE: Final = 8
#: All that this broker logs is logged below it.
ROOT_LOGGER: Final = "strom"
#: Kafka's names of levels; there is nothing below DEBUG here.
LEVELS: Final[Mapping[str, int]] = {
    "DEBUG": logging.DEBUG,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "INFO": logging.INFO,
    "TRACE": logging.DEBUG,
    "WARN": logging.WARNING,
}
LEVEL_NAMES: Final = {
    logging.DEBUG: "DEBUG",
    logging.INFO: "INFO",
    logging.WARNING: "WARN",
    logging.ERROR: "ERROR",
    logging.CRITICAL: "FATAL",
}

Given = TypeVar("Given")


async def alter(
    wanted: Sequence[tuple[Resource, Given]],
    check: Callable[[Resource, Given], None],
    decision: Callable[[list[tuple[Resource, Given]]], Decision[Record, Altered]],
    parts: Parts,
) -> Altered:
    """Return what became of each resource: those that pass the check are decided on."""
    refused, accepted = check_each(wanted, check)
    try:
        altered = await decide(parts, TIMEOUT_DEFAULT, decision, accepted)
    except KafkaError as error:
        altered = dict.fromkeys((resource for resource, _ in accepted), Refusal.of(error))
    return refused | altered


def check_each(
    items: Sequence[tuple[Resource, Given]], check: Callable[[Resource, Given], None]
) -> tuple[Altered, list[tuple[Resource, Given]]]:
    """Return why some resources are refused, and the others."""
    counted = Counter(resource for resource, _ in items)
    refused: Altered = {}
    accepted = []
    for item in items:
        refusal = attempt(partial(check_one, item, counted, check))
        if refusal is None:
            accepted.append(item)
        else:
            refused[item[0]] = refusal
    return refused, accepted


def check_one(
    item: tuple[Resource, Given],
    counted: Mapping[Resource, int],
    check: Callable[[Resource, Given], None],
) -> None:
    """Refuse a resource that is named twice, or that does not pass the check."""
    if counted[item[0]] > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    check(*item)


def check_given(names: Sequence[str], without_value: Iterable[str]) -> None:
    """Refuse settings that are named twice, or that have no value and need one."""
    if len(set(names)) < len(names):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    if nothing := ", ".join(without_value):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {nothing}")


def require_own_broker(resource: Resource, context: Context) -> None:
    """Refuse the settings of another broker, and of what has none."""
    kind, name = resource
    check_type(kind)
    if kind != BROKER_RESOURCE or not name:
        return
    own = context.parts.node_id
    if read_node_id(name) != own:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {own}, but received {name}",
        )


def read_node_id(name: str) -> int:
    """Read a broker's number."""
    number = whole(name)
    if number is None:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}"
        )
    return number


# Loggers.


def logger_levels() -> dict[str, str]:
    """Return the level of each of the broker's loggers that exist by now."""
    names = [ROOT_LOGGER]
    # Of a copy: a thread may ask while a module makes its logger.
    names += [name for name in list(logging.root.manager.loggerDict) if name.startswith("strom.")]
    return {name: level_name(logging.getLogger(name).getEffectiveLevel()) for name in names}


def level_name(level: int) -> str:
    """Return Kafka's name of the nearest level that shows no more than this one."""
    return LEVEL_NAMES[min((each for each in LEVEL_NAMES if each >= level), default=logging.FATAL)]


def check_logger_change(name: str, operation: Operation, value: str | None) -> None:
    """Refuse a change of a logger's level that cannot be made, in Kafka's words."""
    if operation in (Operation.APPEND, Operation.SUBTRACT):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"{operation.name} operation is not allowed for the BROKER_LOGGER resource",
        )
    if name not in logger_levels():
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
    if operation is Operation.SET and value not in LEVELS:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {name} to {value} as it is not a supported log level. "
            f"Valid log levels are {', '.join(LEVELS)}",
        )
    if operation is Operation.DELETE and name == ROOT_LOGGER:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger is not allowed"
        )


def change_logger(name: str, value: str | None) -> None:
    """Set the level of a logger, or let it follow the one above it."""
    logging.getLogger(name).setLevel(logging.NOTSET if value is None else LEVELS[value])
