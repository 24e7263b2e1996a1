"""The topics of the project, with their settings as code."""

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

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
    DEAD_LETTERS: _EVENTS,
    "rockets": _MASTER_DATA,
    "astronauts": _MASTER_DATA,
}


def create(bootstrap: str, replication_factor: int = 1) -> None:
    """Create the topics that are missing."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
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
