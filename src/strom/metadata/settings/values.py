"""The values in force: what the file says, under what was changed at run time.

For a broker setting counts, in this order: what was set for this broker, what was set for all
brokers, the file, the default, which may be another for a node like this one. A topic's own setting
goes before all of them. A change makes a new `BrokerSettings`; whoever holds the old one keeps a
consistent view.
"""

from collections.abc import Mapping
from typing import Final

from strom.log.config import LogConfig
from strom.metadata.settings.catalogue import (
    BROKER,
    DYNAMIC,
    TOPIC,
    UNITS,
    broker_setting,
    listener_setting,
    without_listener,
)
from strom.metadata.settings.definition import SettingsError, Value

#: How many different topic configurations are remembered; far more are not seen in practice.
LOG_CONFIGS_MAX: Final = 1000

DEFAULTS: Final = {name: each.default for name, each in BROKER.items()}
NOTHING: Final[Mapping[str, str]] = {}
#: What cordons all log directories.
EVERY_DIRECTORY: Final = "*"

# The settings of a log that are its own matter, by the field that holds each.
LOG_FIELDS: Final = {
    "segment_bytes": "segment.bytes",
    "segment_ms": "segment.ms",
    "segment_jitter_ms": "segment.jitter.ms",
    "index_bytes_max": "segment.index.bytes",
    "index_interval_bytes": "index.interval.bytes",
    "retention_ms": "retention.ms",
    "retention_bytes": "retention.bytes",
    "delete_delay_ms": "file.delete.delay.ms",
    "delete_retention_ms": "delete.retention.ms",
    "compaction_lag_min_ms": "min.compaction.lag.ms",
    "compaction_lag_max_ms": "max.compaction.lag.ms",
    "cleanable_dirty_ratio_min": "min.cleanable.dirty.ratio",
    "message_bytes_max": "max.message.bytes",
    "timestamp_type": "message.timestamp.type",
    "timestamp_before_max_ms": "message.timestamp.before.max.ms",
    "timestamp_after_max_ms": "message.timestamp.after.max.ms",
    "compression_type": "compression.type",
    "gzip_level": "compression.gzip.level",
    "lz4_level": "compression.lz4.level",
    "zstd_level": "compression.zstd.level",
    "preallocate": "preallocate",
    "flush_messages": "flush.messages",
    "flush_ms": "flush.ms",
}


class BrokerSettings:
    """The settings of one broker, typed; never changed once made."""

    __slots__ = ("_log_configs", "_values", "cluster", "defaults", "ignored", "own", "static")

    def __init__(
        self,
        static: Mapping[str, str] = NOTHING,
        own: Mapping[str, str] = NOTHING,
        cluster: Mapping[str, str] = NOTHING,
        *,
        defaults: Mapping[str, str] = NOTHING,
    ) -> None:
        """Take the file's settings, those set for this broker, and those set for all.

        Of the defaults only those are given that are not the definitions'.
        """
        self.static = with_both_ids(static)
        self.defaults = defaults
        self.own = own
        self.cluster = cluster
        self._values: dict[str, Value] = {
            **DEFAULTS,
            **read_static(defaults),
            **read_static(self.static),
        }
        #: What was set at run time and cannot be followed, with the reason; the log shows it.
        self.ignored: dict[str, str] = {}
        for layer in (cluster, own):
            self._overlay(layer)
        self._log_configs: dict[frozenset[tuple[str, str]], LogConfig] = {}

    def with_dynamic(self, own: Mapping[str, str], cluster: Mapping[str, str]) -> "BrokerSettings":
        """Return the settings with other changes made at run time."""
        return BrokerSettings(self.static, own, cluster, defaults=self.defaults)

    def changed_from(self, before: "BrokerSettings") -> frozenset[str]:
        """Return the names whose value in force is not what it was."""
        return frozenset(
            name for name, value in self._values.items() if value != before._values.get(name)
        )

    def is_given(self, name: str) -> bool:
        """Whether somebody has said what it shall be."""
        return any(name in each for each in (self.static, self.cluster, self.own))

    def __getitem__(self, name: str) -> Value:
        """Return the value in force."""
        return self._values[name]

    def default(self, name: str) -> str | None:
        """Return what a broker setting is while nobody sets it, as text."""
        setting = BROKER[name]
        return self.defaults.get(name, setting.show(setting.default))

    def number(self, name: str) -> int:
        """Return a whole number."""
        value = self._values[name]
        assert isinstance(value, int)
        return value

    def number_for(self, listener: str, name: str) -> int:
        """Return a whole number that one listener may have of its own."""
        own = listener_setting(listener, name)
        return self.number(own if own in self._values else name)

    def ratio(self, name: str) -> float:
        """Return a number with a fraction."""
        value = self._values[name]
        assert isinstance(value, float)
        return value

    def flag(self, name: str) -> bool:
        """Return a yes or no."""
        value = self._values[name]
        assert isinstance(value, bool)
        return value

    def text(self, name: str) -> str | None:
        """Return a text, None if it is not given."""
        value = self._values[name]
        assert value is None or isinstance(value, str)
        return value

    def items(self, name: str) -> tuple[str, ...]:
        """Return a list, empty if it is not given."""
        value = self._values[name]
        assert value is None or isinstance(value, tuple)
        return value or ()

    def duration_ms(self, name: str) -> int:
        """Return a time that may be given in several units, by its name in milliseconds."""
        for each, factor in UNITS[name]:
            value = self._values[each]
            if value is not None:
                assert isinstance(value, int)
                return -1 if value < 0 else value * factor
        raise AssertionError(name)

    @property
    def node_id(self) -> int:
        """The number of this node."""
        return self.number("node.id")

    @property
    def roles(self) -> frozenset[str]:
        """What this node is: a broker, a controller, or both."""
        return frozenset(self.items("process.roles"))

    @property
    def log_dirs(self) -> tuple[str, ...]:
        """The directories that hold partitions."""
        return self.items("log.dirs") or self.items("log.dir")

    @property
    def metadata_log_dir(self) -> str:
        """The directory that holds the metadata log."""
        return self.text("metadata.log.dir") or self.log_dirs[0]

    def is_cordoned(self, log_dir: str) -> bool:
        """Whether a directory gets no new partitions."""
        cordoned = self.items("cordoned.log.dirs")
        return log_dir in cordoned or EVERY_DIRECTORY in cordoned

    def log_config(self, overrides: Mapping[str, str] = NOTHING) -> LogConfig:
        """Return the settings of a topic's logs; topics that agree share the value."""
        key = frozenset(overrides.items())
        found = self._log_configs.get(key)
        if found is None:
            if len(self._log_configs) >= LOG_CONFIGS_MAX:
                self._log_configs.clear()
            found = self._log_configs[key] = log_config(self, overrides)
        return found

    def of_topic(self, name: str, overrides: Mapping[str, str] = NOTHING) -> Value:
        """Return the value in force of a topic's setting."""
        if name in overrides:
            try:
                return TOPIC[name].read(overrides[name])
            except ValueError:
                # A value that another version wrote; the broker's own is the safe one.
                pass
        broker_name = TOPIC[name].stand_in
        if not broker_name:
            return TOPIC[name].default
        return self.duration_ms(broker_name) if broker_name in UNITS else self[broker_name]

    def min_insync_replicas(self, overrides: Mapping[str, str] = NOTHING) -> int:
        """Return how many replicas of a topic must be in sync for acks=all."""
        value = self.of_topic("min.insync.replicas", overrides)
        assert isinstance(value, int)
        return value

    def _overlay(self, layer: Mapping[str, str]) -> None:
        """Put what was set at run time over what is there, as far as it can be followed."""
        for name, text in layer.items():
            setting = broker_setting(name)
            if setting is None:
                self.ignored[name] = "there is nothing here that it could change"
                continue
            if without_listener(name) not in DYNAMIC:
                self.ignored[name] = "it cannot change at run time"
                continue
            try:
                self._values[name] = setting.read(text)
            except ValueError as problem:
                self.ignored[name] = str(problem)


def with_both_ids(static: Mapping[str, str]) -> Mapping[str, str]:
    """Give the node's id under its old and its new name, as Kafka does, if either is there."""
    given = static.get("node.id", static.get("broker.id"))
    return static if given is None else {"node.id": given, "broker.id": given, **static}


def read_static(static: Mapping[str, str]) -> dict[str, Value]:
    """Parse the file's settings; raise on the first that will not do."""
    read: dict[str, Value] = {}
    for name, text in static.items():
        setting = broker_setting(name)
        if setting is None:
            continue
        try:
            read[name] = setting.read(text)
        except ValueError as problem:
            raise SettingsError(str(problem)) from None
    return read


def log_config(settings: BrokerSettings, overrides: Mapping[str, str]) -> LogConfig:
    """Make the settings of a topic's logs from the broker's and the topic's own."""
    fields = {field: settings.of_topic(name, overrides) for field, name in LOG_FIELDS.items()}
    policies = settings.of_topic("cleanup.policy", overrides)
    assert isinstance(policies, tuple)
    small = settings.of_topic("internal.segment.bytes", overrides)
    if small is not None:
        fields["segment_bytes"] = small
    return LogConfig(
        **fields,  # type: ignore[arg-type]  # each field's type is that of its setting
        cleanup_delete="delete" in policies,
        cleanup_compact="compact" in policies,
        producer_expiration_ms=settings.number("producer.id.expiration.ms"),
        transaction_partition_verification=settings.flag(
            "transaction.partition.verification.enable"
        ),
    )
