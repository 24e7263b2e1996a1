"""Changes at run time: what a client may change, and what is then to be written down.

`change` and `replace` take what is set now and what is asked for. They return the names whose value
differs afterwards, None for one that is gone, or raise a KafkaError with Kafka's code and words, in
which case nothing changes. Whether the topic, broker or group exists is for the caller to know, and
the levels of loggers are for who owns the loggers.
"""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from strom.metadata.settings.catalogue import (
    BROKER,
    CLIENT_METRICS,
    DYNAMIC,
    GROUP,
    TOPIC,
    Kind,
    Resource,
    without_listener,
)
from strom.metadata.settings.definition import LIST, PER_BROKER, Setting, SettingsError
from strom.metadata.settings.load import require_sound
from strom.metadata.settings.values import BrokerSettings
from strom.wire.errors import ErrorCode, KafkaError

VALUE_BYTES_MAX: Final = 2**15 - 1
INTERVAL_MS_MIN: Final = 100
INTERVAL_MS_MAX: Final = 3_600_000
GROUP_KINDS: Final = ("consumer", "share", "streams")

#: What each broker must do for itself: keys and certificates belong to one listener.
PER_LISTENER: Final = frozenset(
    {
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)

CLIENT_PROPERTIES: Final = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)

Written = dict[str, str | None]


class Op(IntEnum):
    """What to do with a setting; the numbers are the protocol's."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    """One change of one setting."""

    name: str
    op: int
    value: str | None = None


#: The definitions that say which settings are lists that can be added to. Those of a subscription
#: to client metrics cannot, in Kafka either.
LISTS: Final[Mapping[int, Mapping[str, Setting]]] = {
    Kind.TOPIC: TOPIC,
    Kind.BROKER: BROKER,
    Kind.GROUP: GROUP,
    Kind.CLIENT_METRICS: {},
}

NAMELESS: Final[Mapping[int, str]] = {
    Kind.TOPIC: "Default topic resources are not allowed.",
    Kind.GROUP: "Default group resources are not allowed.",
    Kind.CLIENT_METRICS: "Subscription name can't be empty",
}


def change(
    resource: Resource,
    now: Mapping[str, str],
    changes: Iterable[Change],
    settings: BrokerSettings,
) -> Written:
    """Change some settings of a resource (IncrementalAlterConfigs)."""
    require_named(resource)
    listed = list(changes)
    if resource.kind == Kind.BROKER:
        for each in listed:
            if each.op in (Op.APPEND, Op.SUBTRACT):
                require_broker_list(each)
    after = apply(now, listed, LISTS[resource.kind])
    require(resource, after, settings)
    return difference(now, after)


def replace(
    resource: Resource,
    now: Mapping[str, str],
    values: Mapping[str, str | None],
    settings: BrokerSettings,
) -> Written:
    """Replace all settings of a resource (AlterConfigs)."""
    require_named(resource)
    after = {}
    for name, value in values.items():
        if value is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {name}")
        after[name] = value
    require(resource, after, settings)
    return difference(now, after)


def require_named(resource: Resource) -> None:
    """Refuse a resource that is not one, or has no name where it needs one."""
    if resource.kind not in LISTS:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource.kind}")
    if resource.kind == Kind.BROKER:
        require_broker_id(resource.name)
    elif not resource.name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, NAMELESS[resource.kind])


def require_broker_id(name: str) -> None:
    """Refuse a name that is neither a broker's number nor empty, which means all brokers."""
    if not name:
        return
    if not name.removeprefix("-").isdecimal():
        message = "Unable to parse broker name as a base 10 number."
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    if int(name) < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid negative broker ID.")


def require(resource: Resource, after: Mapping[str, str], settings: BrokerSettings) -> None:
    """Refuse settings that the resource cannot have."""
    if resource.kind == Kind.TOPIC:
        require_topic(after, settings)
    elif resource.kind == Kind.BROKER:
        require_broker(after, settings, for_all=not resource.name)
    elif resource.kind == Kind.GROUP:
        require_group(after, settings)
    else:
        require_client_metrics(after)


def apply(
    now: Mapping[str, str], changes: Iterable[Change], definitions: Mapping[str, Setting]
) -> dict[str, str]:
    """Make the changes to a copy."""
    after = dict(now)
    seen = set()
    for name, op, value in changes:
        if name in seen:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
        seen.add(name)
        if op == Op.DELETE:
            after.pop(name, None)
            continue
        if value is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {name}")
        if op == Op.SET:
            after[name] = value
        else:
            after[name] = edit_list(after.get(name), Change(name, op, value), definitions)
        if len(after[name].encode()) > VALUE_BYTES_MAX:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                "The configuration value cannot be added because it exceeds the maximum value size "
                f"of {VALUE_BYTES_MAX} bytes.",
            )
    return after


def edit_list(now: str | None, change: Change, definitions: Mapping[str, Setting]) -> str:
    """Add items to a list, or take some away; without a list, begin with the default."""
    if change.op not in (Op.APPEND, Op.SUBTRACT):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {change.op}")
    setting = definitions.get(change.name)
    if setting is None or setting.type != LIST:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Can't {Op(change.op).name} to key {change.name} because its type is not LIST.",
        )
    items = split((setting.show(setting.default) or "") if now is None else now)
    asked = split(change.value or "")
    if change.op == Op.APPEND:
        items += [item for item in asked if item not in items]
    else:
        items = [item for item in items if item not in asked]
    return ",".join(items)


def split(text: str) -> list[str]:
    """Return the items of a list, without empty ones."""
    return [item for item in (part.strip() for part in text.split(",")) if item]


def difference(now: Mapping[str, str], after: Mapping[str, str]) -> Written:
    """Return what must be written to get from one to the other, sorted by name."""
    names = sorted(now.keys() | after.keys())
    return {name: after.get(name) for name in names if now.get(name) != after.get(name)}


def require_topic(after: Mapping[str, str], settings: BrokerSettings) -> None:
    """Refuse settings that a topic cannot have; also for a topic that is being created."""
    for name in after:
        if name not in TOPIC:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name}")
    require_readable(after, TOPIC, ErrorCode.INVALID_CONFIG)
    least = settings.of_topic("min.compaction.lag.ms", after)
    most = settings.of_topic("max.compaction.lag.ms", after)
    assert isinstance(least, int)
    assert isinstance(most, int)
    if least > most:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"conflict topic config setting min.compaction.lag.ms ({least}) "
            f"> max.compaction.lag.ms ({most})",
        )
    if settings.of_topic("remote.storage.enable", after):
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        )


def require_broker_list(change: Change) -> None:
    """Refuse to add to, or take from, what is not a list."""
    setting = BROKER.get(change.name)
    if setting is None:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown config name: {change.name}")
    if setting.type != LIST:
        verb = Op(change.op).name.lower()
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Config value {verb} is not allowed for config key: {change.name}",
        )


def require_broker(after: Mapping[str, str], settings: BrokerSettings, *, for_all: bool) -> None:
    """Refuse settings that one broker, or all of them, cannot take at run time.

    A name that nobody defined is taken, as in Kafka: a plug-in may know it.
    """
    fixed = {name for name in after if name in BROKER and name not in DYNAMIC}
    refuse(fixed, "Cannot update these configs dynamically")
    refuse(
        after.keys() & PER_LISTENER,
        "These security configs can be dynamically updated only per-listener using the listener "
        "prefix",
    )
    require_readable(after, BROKER, ErrorCode.INVALID_REQUEST)
    if for_all:
        refuse(
            {name for name in after if is_per_broker(name)},
            "Cannot update these configs at default cluster level, broker id must be specified",
        )
        changed = settings.with_dynamic(settings.own, after)
    else:
        changed = settings.with_dynamic(after, settings.cluster)
    try:
        require_sound(changed)
    except SettingsError as problem:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"requirement failed: {problem}") from None


def is_per_broker(name: str) -> bool:
    """Whether a setting makes sense for one broker only."""
    if name != without_listener(name):
        return True
    return name in BROKER and BROKER[name].mode == PER_BROKER


def refuse(names: Iterable[str], why: str) -> None:
    """Refuse the names, if there are any."""
    listed = ", ".join(sorted(names))
    if listed:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{why}: [{listed}]")


def require_readable(
    after: Mapping[str, str], definitions: Mapping[str, Setting], code: ErrorCode
) -> None:
    """Refuse the first value that its definition does not allow."""
    for name, text in after.items():
        setting = definitions.get(name)
        if setting is not None:
            try:
                setting.read(text)
            except ValueError as problem:
                raise KafkaError(code, str(problem)) from None


def require_group(after: Mapping[str, str], settings: BrokerSettings) -> None:
    """Refuse settings that a group cannot have, by the bounds that the broker sets."""
    for name in after:
        if name not in GROUP:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown group config name: {name}")
    require_readable(after, GROUP, ErrorCode.INVALID_CONFIG)
    for name, text in after.items():
        require_within_bounds(name, GROUP[name].read(text), settings)
    for kind in GROUP_KINDS:
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if in_force(session, after, settings) <= in_force(heartbeat, after, settings):
            raise KafkaError(
                ErrorCode.INVALID_CONFIG, f"{session} must be greater than {heartbeat}"
            )


def in_force(name: str, after: Mapping[str, str], settings: BrokerSettings) -> int:
    """Return a group's own number, or else the broker's."""
    return int(after[name]) if name in after else settings.number(f"group.{name}")


def require_within_bounds(name: str, value: object, settings: BrokerSettings) -> None:
    """Refuse a number outside of the bounds that the broker sets for it."""
    kind, _, rest = name.partition(".")
    least, most = f"group.{kind}.min.{rest}", f"group.{kind}.max.{rest.removeprefix('num.')}"
    if not isinstance(value, int) or isinstance(value, bool):
        return
    if least in BROKER and value < settings.number(least):
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"{name} must be greater than or equal to {least}"
        )
    if most in BROKER and value > settings.number(most):
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"{name} must be less than or equal to {most}")


def require_client_metrics(after: Mapping[str, str]) -> None:
    """Refuse settings that a subscription to the metrics of clients cannot have."""
    for name in after:
        if name not in CLIENT_METRICS:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {name}"
            )
    require_readable(after, CLIENT_METRICS, ErrorCode.INVALID_CONFIG)
    interval = after.get("interval.ms")
    if interval is not None and not INTERVAL_MS_MIN <= int(interval) <= INTERVAL_MS_MAX:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Invalid value {int(interval)} for interval.ms, interval must be between 100 and "
            "3600000 (1 hour)",
        )
    read_match(after.get("match", ""))


def read_match(text: str) -> dict[str, str]:
    """Read which clients are meant: a pattern for each property that matters."""
    import re

    patterns = {}
    for item in split(text):
        name, equals, pattern = (part.strip() for part in item.partition("="))
        try:
            re.compile(pattern)
        except re.error:
            equals = ""
        if not equals or name not in CLIENT_PROPERTIES:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {item}")
        patterns[name] = pattern
    return patterns
