"""Decisions about settings: incremental changes, and replacing all that is set.

Which names and values are right is not decided here: `Rules` say so, from the definitions of all
settings. A resource is changed as a whole or not at all; the others of the request are not
affected by its refusal.
"""

from collections import Counter
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from strom.metadata.image import Image, Resource
from strom.metadata.outcome import Refusal, attempt, check_changes
from strom.metadata.records import BROKER_RESOURCE, TOPIC_RESOURCE, Config, Record
from strom.metadata.topics import check_topic_name
from strom.replicated.machine import Decision
from strom.wire.errors import ErrorCode, KafkaError

#: A value's length is written in 16 bits where clients read it.
VALUE_BYTES_MAX = 32767

CLIENT_METRICS_RESOURCE = 16
GROUP_RESOURCE = 32
RESOURCE_TYPES = (TOPIC_RESOURCE, BROKER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE)

#: The name of the resource that stands for all brokers.
ALL_BROKERS = ""
MIN_INSYNC = "min.insync.replicas"
ELIGIBLE_LEADERS = "eligible.leader.replicas.version"


class Operation(IntEnum):
    """What to do with a setting; the numbers are the protocol's."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class Alteration:
    """One setting to change."""

    name: str
    operation: Operation
    value: str | None = None


class Rules(Protocol):
    """What the definitions of all settings say about a resource's."""

    def check(self, resource: Resource, config: Mapping[str, str]) -> None:
        """Raise a KafkaError if the resource cannot have these settings."""

    def is_list(self, resource_type: int, name: str) -> bool:
        """Whether the setting's value is a list."""

    def default(self, resource_type: int, name: str) -> str | None:
        """Return the value that holds while none is set."""


Altered = dict[Resource, Refusal | None]


def checked_config(
    image: Image, resource: Resource, config: Mapping[str, str], rules: Rules
) -> dict[str, str]:
    """Return the settings if the resource can have them all."""
    for value in config.values():
        if len(value.encode()) > VALUE_BYTES_MAX:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                "The configuration value cannot be added because it exceeds the maximum value "
                f"size of {VALUE_BYTES_MAX} bytes.",
            )
    rules.check(resource, config)
    return dict(config)


def incrementally_alter_configs(
    image: Image,
    asked: Sequence[tuple[Resource, tuple[Alteration, ...]]],
    rules: Rules,
    *,
    validate_only: bool,
) -> Decision[Record, Altered]:
    """Change single settings of the resources."""
    _check_size(asked)
    changes = [
        (resource, _incremental(image, resource, alterations, rules))
        for resource, alterations in asked
    ]
    return _decide(image, changes, rules, validate_only)


def replace_configs(
    image: Image,
    asked: Sequence[tuple[Resource, Mapping[str, str | None]]],
    rules: Rules,
    *,
    validate_only: bool,
) -> Decision[Record, Altered]:
    """Set these settings of the resources, and take back all others."""
    _check_size(asked)
    changes = [(resource, _replacing(image, resource, config, rules)) for resource, config in asked]
    return _decide(image, changes, rules, validate_only)


def _check_size(asked: Sequence[tuple[Resource, Sized]]) -> None:
    check_changes(max(len(asked), sum(len(settings) for _, settings in asked)))


#: The new value of each setting that changes, None to take it back; or why that cannot be.
_Change = dict[str, str | None] | Refusal


def _incremental(
    image: Image, resource: Resource, alterations: Sequence[Alteration], rules: Rules
) -> _Change:
    if len({each.name for each in alterations}) < len(alterations):
        return Refusal(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    for each in alterations:
        if each.value is None and each.operation is not Operation.DELETE:
            return _null_value(each.name)
    before = image.config(resource)

    def changes() -> dict[str, str | None]:
        altered = {
            each.name: _altered(resource, before.get(each.name), each, rules)
            for each in alterations
        }
        # A broker is told again what it has: it may want to read its key stores anew.
        always = resource[0] == BROKER_RESOURCE
        return {
            name: value for name, value in altered.items() if always or value != before.get(name)
        }

    return attempt(changes)


def _altered(
    resource: Resource, before: str | None, alteration: Alteration, rules: Rules
) -> str | None:
    operation, name = alteration.operation, alteration.name
    if operation is Operation.DELETE:
        return None
    if operation is Operation.SET:
        assert alteration.value is not None
        return alteration.value
    if not rules.is_list(resource[0], name):
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Can't {operation.name} to key {name} because its type is not LIST.",
        )
    present = _split(rules.default(resource[0], name) if before is None else before)
    given = _given(alteration.value or "")
    for each in given:
        # One by one, as in Kafka: what is given twice is added once, but what is there twice is
        # taken away once for each time that it is given.
        if operation is Operation.APPEND and each not in present:
            present.append(each)
        if operation is Operation.SUBTRACT and each in present:
            present.remove(each)
    return ",".join(present)


def _split(value: str | None) -> list[str]:
    return [each.strip() for each in value.split(",")] if value else []


def _given(value: str) -> list[str]:
    # As Java splits: an empty text is one empty item, but behind the last comma there is none.
    text = value.rstrip(",")
    return [each.strip() for each in text.split(",")] if text or not value else []


def _replacing(
    image: Image, resource: Resource, config: Mapping[str, str | None], rules: Rules
) -> _Change:
    given: dict[str, str] = {}
    for name, value in config.items():
        if value is None:
            return _null_value(name)
        given[name] = value
    before = image.config(resource)
    changes: dict[str, str | None] = {
        name: value for name, value in given.items() if value != before.get(name)
    }
    return changes | dict.fromkeys(set(before) - set(given))


def _null_value(name: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {name}")


def _decide(
    image: Image,
    changes: Sequence[tuple[Resource, _Change]],
    rules: Rules,
    validate_only: bool,
) -> Decision[Record, Altered]:
    counted = Counter(resource for resource, _ in changes)
    reply: Altered = {}
    records: list[Record] = []
    for resource, change in changes:
        if counted[resource] > 1:
            change = Refusal(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        outcome = _checked(image, resource, change, rules)
        reply[resource] = outcome if isinstance(outcome, Refusal) else None
        if not isinstance(outcome, Refusal):
            records.extend(outcome)
    return Decision(() if validate_only else tuple(records), reply)


def _checked(
    image: Image, resource: Resource, change: _Change, rules: Rules
) -> tuple[Record, ...] | Refusal:
    if isinstance(change, Refusal):
        return change
    altered = change

    def records() -> tuple[Record, ...]:
        check_resource(resource)
        after = dict(image.config(resource)) | altered
        config = {name: value for name, value in after.items() if value is not None}
        checked_config(image, resource, config, rules)
        check_exists(image, resource)
        _check_min_insync(image, resource, altered)
        return tuple(
            Config(resource_type=resource[0], resource_name=resource[1], name=name, value=value)
            for name, value in sorted(altered.items())
        )

    return attempt(records)


def check_type(kind: int) -> None:
    """Refuse what has no settings."""
    if kind not in RESOURCE_TYPES:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")


def check_resource(resource: Resource) -> None:
    """Refuse a resource that cannot have settings, whether it exists or not."""
    kind, name = resource
    check_type(kind)
    if kind == TOPIC_RESOURCE:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        check_topic_name(name)
    elif kind == GROUP_RESOURCE and not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    elif kind == CLIENT_METRICS_RESOURCE and not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")


def check_exists(image: Image, resource: Resource) -> None:
    """Refuse the settings of a topic that is not there."""
    kind, name = resource
    if kind == TOPIC_RESOURCE and name not in image.topics_by_name:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
        )


def _check_min_insync(image: Image, resource: Resource, changes: Mapping[str, str | None]) -> None:
    # KIP-966: which replicas may lead is remembered against this number, so all brokers share it.
    if (
        resource[0] != BROKER_RESOURCE
        or MIN_INSYNC not in changes
        or not image.features.get(ELIGIBLE_LEADERS)
    ):
        return
    if resource[1] != ALL_BROKERS:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
        )
    if changes[MIN_INSYNC] is None:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
        )
