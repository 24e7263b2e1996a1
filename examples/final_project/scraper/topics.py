"""The topics of the project, with their settings as code."""

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewTopic,
    ResourceType,
)

from examples.final_project.scraper.reading import DEAD_LETTERS

WEEK_MS = str(7 * 24 * 3600 * 1000)
PARTITIONS = 4
REQUEST_SECONDS_MAX = 30

_EVENTS = {"cleanup.policy": "delete", "retention.ms": WEEK_MS}
#: The newest of each key stays for ever: a topic that is a table.
_MASTER_DATA = {"cleanup.policy": "compact"}

SETTINGS = {
    "flights": _EVENTS,
    "telemetry": _EVENTS,
    "broker-metrics": _EVENTS,
    "launches": _EVENTS,
    DEAD_LETTERS: _EVENTS,
    "rockets": _MASTER_DATA,
    "astronauts": _MASTER_DATA,
}


def client(bootstrap: str) -> AdminClient:
    """Return a client whose failures are raised; librdkafka need not say them too."""
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 2})


def create(bootstrap: str, replication_factor: int = 1) -> None:
    """Create the topics that are missing."""
    admin = client(bootstrap)
    wanted = [
        NewTopic(name, PARTITIONS, replication_factor, config=settings)
        for name, settings in SETTINGS.items()
    ]
    for created in admin.create_topics(wanted, request_timeout=REQUEST_SECONDS_MAX).values():
        try:
            created.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise


def differences(bootstrap: str) -> list[str]:
    """Return, a line each, where the topics are other than they are here."""
    admin = client(bootstrap)
    known = admin.list_topics(timeout=REQUEST_SECONDS_MAX).topics
    lines = [f"topic {name}: missing" for name in SETTINGS if name not in known]
    there = sorted(SETTINGS.keys() & known.keys())
    counts = {name: len(known[name].partitions) for name in there}
    lines += [
        f"topic {name}: {count} partitions, not {PARTITIONS}"
        for name, count in counts.items()
        if count != PARTITIONS
    ]
    for name, own in _own_settings(admin, there).items():
        lines += _differing(name, own, SETTINGS[name])
    return lines


def _differing(topic: str, own: dict[str, str], wanted: dict[str, str]) -> list[str]:
    return [
        f"topic {topic}: {name} is {own.get(name, 'not set')}, not {wanted.get(name, 'set here')}"
        for name in sorted(own.keys() | wanted.keys())
        if own.get(name) != wanted.get(name)
    ]


def settle(bootstrap: str) -> None:
    """Give the topics that are there the settings that they have here, and no others."""
    admin = client(bootstrap)
    changes = []
    for name, found in _own_settings(admin, sorted(SETTINGS)).items():
        wanted = SETTINGS[name]
        setting, deleting = AlterConfigOpType.SET, AlterConfigOpType.DELETE
        entries = [
            ConfigEntry(each, value, incremental_operation=setting)
            for each, value in wanted.items()
            if found.get(each) != value
        ]
        entries += [
            ConfigEntry(each, "", incremental_operation=deleting)
            for each in found.keys() - wanted.keys()
        ]
        if entries:
            topic = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
            changes.append(topic)
    if changes:
        for changed in admin.incremental_alter_configs(changes).values():
            changed.result(REQUEST_SECONDS_MAX)


def _own_settings(admin: AdminClient, names: list[str]) -> dict[str, dict[str, str]]:
    """Return the settings that were given to the topics themselves."""
    if not names:
        return {}
    asked = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    return {
        resource.name: {
            name: entry.value
            for name, entry in answer.result(REQUEST_SECONDS_MAX).items()
            if entry.source == own
        }
        for resource, answer in admin.describe_configs(asked).items()
    }
