"""What can have settings, as the requests that change them see it: whose they are to change.

The controller decides about settings, but three things are the broker's own affair: that nobody
changes another broker's settings through it, that a resource is named once, and the levels of its
loggers, which are no metadata and are forgotten when it stops.
"""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeVar

from strom.broker.context import Context
from strom.metadata.config_decisions import Operation
from strom.metadata.image import Resource
from strom.metadata.outcome import Refusal, attempt
from strom.metadata.records import BROKER_RESOURCE
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


async def alter_each(
    wanted: Sequence[tuple[Resource, Given]],
    check: Callable[[Resource, Given], None],
    alter: Callable[[list[tuple[Resource, Given]]], Awaitable[Mapping[Resource, Refusal | None]]],
) -> list[Refusal | None]:
    """Return what became of each resource: those that pass the check are altered together."""
    counted = Counter(resource for resource, _ in wanted)
    refusals = [
        attempt(lambda item=item: check_one(item, counted, check))  # type: ignore[misc]
        for item in wanted
    ]
    accepted = [item for item, refusal in zip(wanted, refusals, strict=True) if refusal is None]
    altered: Mapping[Resource, Refusal | None] = {}
    if accepted:
        try:
            altered = await alter(accepted)
        except KafkaError as error:
            failed = Refusal.of(error)
            altered = {resource: failed for resource, _ in accepted}
    return [
        altered[resource] if refusal is None else refusal
        for (resource, _), refusal in zip(wanted, refusals, strict=True)
    ]


def check_one(
    item: tuple[Resource, Given],
    counted: Mapping[Resource, int],
    check: Callable[[Resource, Given], None],
) -> None:
    """Refuse a resource that is named twice, or that does not pass the check."""
    if counted[item[0]] > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    check(*item)


def require_own_broker(resource: Resource, context: Context) -> None:
    """Refuse the settings of another broker."""
    kind, name = resource
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
    try:
        return int(name)
    except ValueError:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}"
        ) from None


# Loggers.


def logger_levels() -> dict[str, str]:
    """Return the level of each of the broker's loggers that exist by now."""
    names = [ROOT_LOGGER]
    names += [name for name in logging.root.manager.loggerDict if name.startswith("strom.")]
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
