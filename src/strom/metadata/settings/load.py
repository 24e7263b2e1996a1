"""From the text of a settings file to settings that a broker can start with.

Nothing is opened or created here, so a mistake costs nothing: the first one raises SettingsError
with one line that says what to do. What is odd but harmless comes back as notes for the log.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from strom.metadata.settings.catalogue import BROKER, FOR_A_LISTENER, listener_setting
from strom.metadata.settings.definition import RUN_TIME, USED, SettingsError
from strom.metadata.settings.group_rules import require_sound_groups
from strom.metadata.settings.listeners import Listeners, connection_limits, read_listeners
from strom.metadata.settings.values import BrokerSettings

REMOVED: Final = {
    "broker.id.generation.enable": "ids are not generated: give every node its own node.id",
    "reserved.broker.max.id": "ids are not generated: give every node its own node.id",
    "zookeeper.connect": "there is no ZooKeeper: the node itself keeps the cluster's metadata",
    "inter.broker.protocol.version": "the version is a feature level now, not a setting",
    "log.message.format.version": "records have one format, version 2",
    "log.message.downconversion.enable": "records are not converted for old clients",
    "log.message.timestamp.difference.max.ms": (
        "use log.message.timestamp.before.max.ms and log.message.timestamp.after.max.ms"
    ),
    "delegation.token.master.key": "use delegation.token.secret.key",
    "port": "use listeners, for example listeners=PLAINTEXT://:9092",
    "host.name": "use listeners, for example listeners=PLAINTEXT://localhost:9092",
    "advertised.port": "use advertised.listeners",
    "advertised.host.name": "use advertised.listeners",
    "control.plane.listener.name": "use controller.listener.names",
    "leader.imbalance.per.broker.percentage": "leaders are balanced whenever they can be",
    "offsets.commit.required.acks": "commits always wait for all replicas in sync",
    "controlled.shutdown.max.retries": "a stopping broker tries until it is let go",
    "controlled.shutdown.retry.backoff.ms": "a stopping broker tries until it is let go",
    "auto.include.jmx.reporter": "metrics are served over HTTP",
}

MEBIBYTE: Final = 2**20

#: Where a node names those of its quorum; who names one names itself, and is a cluster of its own.
QUORUM: Final = ("controller.quorum.voters", "controller.quorum.bootstrap.servers")
#: What such a node has if nobody says otherwise: Kafka's three replicas would never be in sync,
#: and its first group or transaction would wait for them.
ALONE: Final = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}

OF_A_LISTENER: Final = "listener.name."
#: Keys that begin so are handed on to something else, and so are not ours to know.
HANDED_ON: Final = (OF_A_LISTENER, "rsm.config.", "rlmm.config.", "config.providers.")


class Loaded(NamedTuple):
    """Settings that fit together."""

    settings: BrokerSettings
    listeners: Listeners
    #: Whole sentences for the log, one for each thing the user may want to know.
    notes: tuple[str, ...]


def load(static: Mapping[str, str]) -> Loaded:
    """Check the settings of a file (and of the command line over it), alone and together."""
    require_one_id(static)
    given = {key: value.strip() for key, value in static.items()}
    settings = BrokerSettings(given, defaults=ALONE if is_alone(given) else {})
    require_single_node(settings)
    require_sound(settings)
    require_sound_groups(settings)
    listeners = read_listeners(settings)
    return Loaded(settings, listeners, tuple(notes_on(static, listeners)))


def is_alone(given: Mapping[str, str]) -> bool:
    """Whether no other node is named."""
    named = [[each for each in given.get(key, "").split(",") if each.strip()] for key in QUORUM]
    return all(len(each) <= 1 for each in named)


def notes_on(static: Mapping[str, str], listeners: Listeners) -> list[str]:
    """Say what the user may want to know of keys that do not do what they seem to."""
    heeded = {
        listener_setting(each.name, name) for each in listeners.bound for name in FOR_A_LISTENER
    }
    notes = [note for key in sorted(static) if (note := note_on(key))]
    if "broker.id" in static and "node.id" not in static:
        notes.append(f"broker.id is taken as node.id: write node.id={static['broker.id']} instead")
    idle = [
        key
        for key in sorted(static)
        if (key in BROKER and BROKER[key].accepted != USED)
        or (key.startswith(OF_A_LISTENER) and key not in heeded)
    ]
    if idle:
        notes.append(f"without effect here, see docs/configuration.md: {', '.join(idle)}")
    return notes


def note_on(key: str) -> str | None:
    """Say what is odd about a key, None if nothing is."""
    if key in BROKER:
        counts = BROKER[key].hidden != RUN_TIME
        return None if counts else f"{key} counts only when it is set at run time: remove it"
    if key.startswith(HANDED_ON):
        return None
    if key in REMOVED or key.startswith("zookeeper."):
        return f"{key} has no effect: {REMOVED.get(key, REMOVED['zookeeper.connect'])}; remove it"
    return unknown(key)


def unknown(key: str) -> str:
    """Say that a key is not known, and which was perhaps meant."""
    from difflib import get_close_matches  # a start without such a key does without it

    near = get_close_matches(key, BROKER, n=1)
    meant = f": did you mean {near[0]}?" if near else ""
    return f"unknown setting {key} is ignored{meant}"


def require_one_id(static: Mapping[str, str]) -> None:
    """Refuse an old and a new id that differ, and an old one that asks for a generated id."""
    if "broker.id" not in static:
        return
    old = static["broker.id"].strip()
    if old != static.get("node.id", old).strip():
        raise SettingsError("You must set `node.id` to the same value as `broker.id`.")
    if old.startswith("-"):
        raise SettingsError(
            f"broker.id={old} asks for a generated id: set node.id to a number from 0 up"
        )


def require_single_node(settings: BrokerSettings) -> None:
    """Refuse a role in a cluster that this node cannot play."""
    if settings.roles != {"broker", "controller"}:
        raise SettingsError(
            f"process.roles={','.join(settings.roles)} is half a node: "
            "set process.roles=broker,controller, or leave it out"
        )
    voters = settings.items("controller.quorum.voters")
    ids = [int(each.partition("@")[0]) for each in voters]
    if ids and settings.node_id not in ids:
        raise SettingsError(
            f"If process.roles contains the 'controller' role, the node id {settings.node_id} must "
            f"be included in the set of voters controller.quorum.voters={ids}"
        )
    if len(ids) > 1:
        raise SettingsError(
            f"controller.quorum.voters={','.join(voters)} names several voters, and a node runs "
            "alone: name only this one, or leave it out"
        )


def require_sound(settings: BrokerSettings) -> None:
    """Refuse values that contradict each other, in Kafka's words."""
    for is_broken, message in RULES:
        if is_broken(settings):
            raise SettingsError(message)
    cordoned = settings.items("cordoned.log.dirs")
    if "*" in cordoned and len(cordoned) > 1:
        raise SettingsError("When cordoned.log.dirs is set to *, it must not contain other values")
    missing = [each for each in cordoned if each != "*" and each not in settings.log_dirs]
    if missing:
        raise SettingsError(
            "All entries in cordoned.log.dirs must be present in log.dirs or log.dir. "
            f"Missing entries : {', '.join(missing)}"
        )
    connection_limits(settings)


CODECS: Final = range(5)

Rule = tuple[Callable[[BrokerSettings], bool], str]

RULES: Final[tuple[Rule, ...]] = (
    (
        lambda its: its.flag("log.cleaner.enable") and its.number("log.cleaner.threads") < 1,
        "log.cleaner.threads must be at least 1",
    ),
    (
        lambda its: its.duration_ms("log.roll.ms") < 1,
        "log.roll.ms must be greater than or equal to 1",
    ),
    (
        lambda its: its.duration_ms("log.roll.jitter.ms") < 0,
        "log.roll.jitter.ms must be greater than or equal to 0",
    ),
    (
        lambda its: its.duration_ms("log.retention.ms") == 0,
        "log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
    ),
    (
        lambda its: (
            its.flag("log.cleaner.enable")
            and its.number("log.cleaner.dedupe.buffer.size")
            <= MEBIBYTE * its.number("log.cleaner.threads")
        ),
        "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
    ),
    (
        lambda its: (
            its.number("replica.fetch.wait.max.ms") > its.number("replica.socket.timeout.ms")
        ),
        "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms to prevent "
        "unnecessary socket timeouts",
    ),
    (
        lambda its: its.number("replica.fetch.wait.max.ms") > its.number("replica.lag.time.max.ms"),
        "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms "
        "to prevent frequent changes in ISR",
    ),
    (
        lambda its: (
            2 * its.number("broker.heartbeat.interval.ms") > its.number("broker.session.timeout.ms")
        ),
        "broker.heartbeat.interval.ms must be less than or equal to half of the "
        "broker.session.timeout.ms",
    ),
    (
        lambda its: its.number("offsets.topic.compression.codec") not in CODECS,
        "Unknown compression type id for offsets.topic.compression.codec: it must be 0 to 4",
    ),
    (
        lambda its: (
            0 < its.number("queued.max.request.bytes") < its.number("socket.request.max.bytes")
        ),
        "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
    ),
    (
        lambda its: (
            its.number("max.connections.per.ip") == 0
            and not its.text("max.connections.per.ip.overrides")
        ),
        "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides "
        "property is set.",
    ),
    (
        lambda its: (
            0
            <= its.number("connections.max.idle.ms")
            <= its.number("connection.failed.authentication.delay.ms")
        ),
        "connection.failed.authentication.delay.ms should always be less than "
        "connections.max.idle.ms to prevent failed authentication responses from timing out",
    ),
)
