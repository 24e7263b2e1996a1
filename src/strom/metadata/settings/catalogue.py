"""All settings by name, and which broker settings stand in for a topic's or a group's."""

from enum import IntEnum
from typing import Final, NamedTuple

from strom.metadata.settings import (
    groups,
    log,
    network,
    observing,
    quorum,
    replication,
    resources,
    sasl,
    share,
    tiered,
    tls,
    topics,
    transactions,
)
from strom.metadata.settings.definition import READ_ONLY, Setting


class Kind(IntEnum):
    """What can have settings; the numbers are the protocol's."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Resource(NamedTuple):
    """Something that has settings; a broker without a name stands for all of them."""

    kind: int
    name: str


#: The subjects of the broker's settings, in the order in which they are documented.
BROKER_SUBJECTS: Final = {
    "Node and metadata quorum": quorum.SETTINGS,
    "Listeners, connections, requests": network.SETTINGS,
    "Logs": log.SETTINGS,
    "Replication": replication.SETTINGS,
    "Groups and offsets": groups.SETTINGS,
    "Share groups": share.SETTINGS,
    "Transactions": transactions.SETTINGS,
    "TLS, authorisation, tokens": tls.SETTINGS,
    "SASL": sasl.SETTINGS,
    "Tiered storage": tiered.SETTINGS,
    "Metrics and quotas": observing.SETTINGS,
}

BROKER: Final[dict[str, Setting]] = {
    each.name: each for settings in BROKER_SUBJECTS.values() for each in settings
}
TOPIC: Final[dict[str, Setting]] = {each.name: each for each in topics.SETTINGS}
GROUP: Final[dict[str, Setting]] = {each.name: each for each in resources.GROUP}
CLIENT_METRICS: Final[dict[str, Setting]] = {each.name: each for each in resources.CLIENT_METRICS}

#: Broker settings that exist only while somebody has set them at run time.
RUN_TIME_ONLY: Final = frozenset(
    {
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    }
)

#: Settings that no description shows.
INTERNAL: Final = frozenset(
    {
        "controller.performance.always.log.threshold.ms",
        "controller.performance.sample.period.ms",
        "group.consumer.regex.refresh.interval.ms",
        "group.share.initialize.retry.interval.ms",
        "group.share.persister.class.name",
        "internal.metadata.delete.delay.millis",
        "internal.metadata.log.segment.bytes",
        "internal.metadata.max.batch.size.in.bytes",
        "internal.segment.bytes",
        "log.initial.task.delay.ms",
        "producer.id.expiration.check.interval.ms",
        "remote.log.index.file.cache.ttl.ms",
        "remote.log.manager.task.retry.backoff.max.ms",
        "remote.log.manager.task.retry.backoff.ms",
        "remote.log.manager.task.retry.jitter",
        "server.max.startup.time.ms",
        "share.coordinator.cold.partition.snapshot.interval.ms",
        "share.coordinator.state.topic.prune.interval.ms",
        "unclean.leader.election.interval.ms",
        "unstable.api.versions.enable",
        "unstable.feature.versions.enable",
    }
)

#: Broker settings that may change at run time, for one broker or for all.
#: What has an effect for one listener alone, with its prefix.
FOR_A_LISTENER: Final = ("max.connections", "max.connection.creation.rate")
DYNAMIC: Final = frozenset(name for name, each in BROKER.items() if each.mode != READ_ONLY)

MINUTE_MS: Final = 60 * 1000
HOUR_MS: Final = 60 * MINUTE_MS

#: Several names for one thing in other units, the most telling first, with its factor.
UNITS: Final = {
    "log.retention.ms": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", MINUTE_MS),
        ("log.retention.hours", HOUR_MS),
    ),
    "log.roll.ms": (("log.roll.ms", 1), ("log.roll.hours", HOUR_MS)),
    "log.roll.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", HOUR_MS)),
    "log.flush.interval.ms": (
        ("log.flush.interval.ms", 1),
        ("log.flush.scheduler.interval.ms", 1),
    ),
}

#: The broker setting that stands in for a topic setting that is not given.
TOPIC_STANDS_FOR: Final = {
    "cleanup.policy": "log.cleanup.policy",
    "compression.gzip.level": "compression.gzip.level",
    "compression.lz4.level": "compression.lz4.level",
    "compression.type": "compression.type",
    "compression.zstd.level": "compression.zstd.level",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "flush.messages": "log.flush.interval.messages",
    "flush.ms": "log.flush.interval.ms",
    "index.interval.bytes": "log.index.interval.bytes",
    "local.retention.bytes": "log.local.retention.bytes",
    "local.retention.ms": "log.local.retention.ms",
    "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
    "max.message.bytes": "message.max.bytes",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.type": "log.message.timestamp.type",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "min.insync.replicas": "min.insync.replicas",
    "preallocate": "log.preallocate",
    "retention.bytes": "log.retention.bytes",
    "retention.ms": "log.retention.ms",
    "segment.bytes": "log.segment.bytes",
    "segment.index.bytes": "log.index.size.max.bytes",
    "segment.jitter.ms": "log.roll.jitter.ms",
    "segment.ms": "log.roll.ms",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
}

#: Group settings that no broker setting stands in for.
GROUP_ALONE: Final = frozenset(
    {"share.auto.offset.reset", "share.isolation.level", "share.renew.acknowledge.enable"}
)


def broker_names(name: str) -> tuple[str, ...]:
    """Return the broker settings that say the same as this one, the most telling first."""
    for names in UNITS.values():
        if any(name == each for each, _ in names):
            return tuple(each for each, _ in names)
    return (name,)


def group_stands_for(name: str) -> str | None:
    """Return the broker setting that stands in for a group setting that is not given."""
    return None if name in GROUP_ALONE else f"group.{name}"


def broker_setting(name: str) -> Setting | None:
    """Return the definition of a broker setting, also of one for a single listener."""
    base = without_listener(name)
    return BROKER.get(base) if base == name or base in FOR_A_LISTENER else None


def listener_setting(listener: str, name: str) -> str:
    """Return the name that sets something for one listener alone."""
    return f"listener.name.{listener.lower()}.{name}"


def without_listener(name: str) -> str:
    """Return the setting that a name with a listener's prefix sets for that listener alone."""
    return name.split(".", 3)[-1] if name.startswith("listener.name.") else name
