"""Which settings a topic, a broker, a group can have, as the controller asks before it writes them.

A refusal is a KafkaError with the code and the words that Apache Kafka 4.3.1 gives. What is checked
is always all that a resource will have after the change, since values can contradict each other.
Whether the topic, broker or group exists is for the caller to know.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NoReturn

from strom.metadata.settings.catalogue import (
    BROKER,
    CLIENT_METRICS,
    DYNAMIC,
    FOR_A_LISTENER,
    GROUP,
    TOPIC,
    Kind,
    broker_setting,
    without_listener,
)
from strom.metadata.settings.definition import LIST, PER_BROKER, Setting, SettingsError, whole
from strom.metadata.settings.group_rules import require_sound_groups
from strom.metadata.settings.listeners import Listeners, read_listeners
from strom.metadata.settings.load import require_sound
from strom.metadata.settings.values import BrokerSettings
from strom.wire.errors import ErrorCode, KafkaError

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

#: They are doubled or halved at most by one change.
THREADS: Final = (
    "background.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
)
CLEANERS: Final = "log.cleaner.threads"

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

#: What all brokers can be told of a listener; all else of one is a broker's own.
LISTENER_LIMITS: Final = frozenset(
    {"max.connections", "max.connection.creation.rate", "num.network.threads"}
)

#: What says which settings are lists that can be added to. Those of a subscription to client
#: metrics cannot, in Kafka either.
LISTS: Final[Mapping[int, Mapping[str, Setting]]] = {
    Kind.TOPIC: TOPIC,
    Kind.BROKER: BROKER,
    Kind.GROUP: GROUP,
}


class SettingRules:
    """The rules, under the broker's settings of the moment."""

    __slots__ = ("settings",)

    def __init__(self, settings: BrokerSettings) -> None:
        self.settings = settings

    def check(self, resource: tuple[int, str], config: Mapping[str, str]) -> None:
        """Raise a KafkaError if the resource cannot have these settings."""
        kind, name = resource
        if kind == Kind.TOPIC:
            require_topic(config, self.settings)
        elif kind == Kind.BROKER:
            require_broker_id(name)
            require_broker(config, self.settings, for_all=not name)
        elif kind == Kind.GROUP:
            require_group(config, self.settings)
        else:
            require_client_metrics(config)

    def is_list(self, resource_type: int, name: str) -> bool:
        """Whether the setting's value is a list that can be added to."""
        setting = LISTS.get(resource_type, {}).get(name)
        return setting is not None and setting.type == LIST

    def default(self, resource_type: int, name: str) -> str | None:
        """Return the list that is added to while none is set: the definition's, as in Kafka."""
        setting = LISTS.get(resource_type, {}).get(name)
        return None if setting is None else setting.show(setting.default)


def require_broker_id(name: str) -> None:
    """Refuse a name that is neither a broker's number nor empty, which means all brokers."""
    if not name:
        return
    number = whole(name)
    if number is None:
        message = "Unable to parse broker name as a base 10 number."
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    if number < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid negative broker ID.")


def require_topic(after: Mapping[str, str], settings: BrokerSettings) -> None:
    """Refuse settings that a topic cannot have; also for a topic that is being created."""
    for name in after:
        if name not in TOPIC:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name}")
    require_readable(after, TOPIC.get, ErrorCode.INVALID_CONFIG)
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
    require_readable(after, broker_setting, ErrorCode.INVALID_REQUEST)
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
        listeners = read_listeners(changed)
    except SettingsError as problem:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"requirement failed: {problem}") from None
    require_gradual(changed, settings)
    require_reachable(changed, listeners)
    try:
        require_sound_groups(changed)
    except SettingsError as problem:
        # What Kafka checks in Java rather than in Scala says no more than what is wrong.
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(problem)) from None


def require_gradual(changed: BrokerSettings, settings: BrokerSettings) -> None:
    """Refuse more than twice, and less than half, of the threads that there are.

    Most of these numbers change nothing here, but who tries them out hears what Kafka says.
    """
    for name in THREADS:
        before, after = settings.number(name), changed.number(name)
        failed = f"Dynamic thread count update validation failed for {name}={after}, value should"
        if after < before // 2:
            refuse_step(f"{failed} be at least half the current value {before}")
        if after > before * 2:
            refuse_step(f"{failed} not be greater than double the current value {before}")
    before, after = settings.number(CLEANERS), changed.number(CLEANERS)
    failed = "Log cleaner threads cannot be"
    if after < before // 2:
        refuse_step(f"{failed} reduced to less than half the current value {before}")
    if after > before * 2:
        refuse_step(f"{failed} increased to more than double the current value {before}")


def require_reachable(changed: BrokerSettings, listeners: Listeners) -> None:
    """Refuse limits that let nobody in, who could take them back."""
    for endpoint in listeners.broker:
        for name in FOR_A_LISTENER:
            if changed.number_for(endpoint.name, name) == 0:
                refuse_step(f"Invalid {name} 0")


def refuse_step(why: str) -> NoReturn:
    """Refuse a change that cannot be made while the broker runs."""
    wrapped = f"org.apache.kafka.common.config.ConfigException: {why}"
    message = f"Invalid value {wrapped} for configuration Invalid dynamic configuration"
    raise KafkaError(ErrorCode.INVALID_REQUEST, message)


def is_per_broker(name: str) -> bool:
    """Whether a setting makes sense for one broker only."""
    base = without_listener(name)
    if name != base:
        return base not in LISTENER_LIMITS
    return name in BROKER and BROKER[name].mode == PER_BROKER


def refuse(names: Iterable[str], why: str) -> None:
    """Refuse the names, if there are any."""
    listed = ", ".join(sorted(names))
    if listed:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{why}: [{listed}]")


def require_readable(
    after: Mapping[str, str], definition_of: Callable[[str], Setting | None], code: ErrorCode
) -> None:
    """Refuse the first value that its definition does not allow."""
    for name, text in after.items():
        setting = definition_of(name)
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
    require_readable(after, GROUP.get, ErrorCode.INVALID_CONFIG)
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
    require_readable(after, CLIENT_METRICS.get, ErrorCode.INVALID_CONFIG)
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
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, _, pattern = (part.strip() for part in item.partition("="))
        readable = bool(pattern) and "=" not in pattern
        try:
            re.compile(pattern)
        except re.error:
            readable = False
        if not readable or name not in CLIENT_PROPERTIES:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {item}")
        patterns[name] = pattern
    return patterns
