"""What was sent, what arrived, and what is on its way."""

from dataclasses import dataclass
from typing import NamedTuple

import psycopg
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from examples.final_project.processing.queries import GROUP, QUERIES
from examples.final_project.scraper import topics
from examples.final_project.scraper.facts import NAME_HEADER

SECONDS_MAX = 30.0


class Told(NamedTuple):
    """What the committed records of a topic are: how many, of how many keys, about what."""

    records: int
    keys: int
    #: How many facts they are about, each told anew when it changes.
    names: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """A number by two ways."""

    what: str
    sent: int
    stored: int

    @property
    def holds(self) -> bool:
        """Return whether both ways lead to the same."""
        return self.sent == self.stored


def told(bootstrap: str, topic: str) -> Told:
    """Count a topic's committed records with a reader of its own."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "final-project-count",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    left, records, keys, names = set(range(topics.PARTITIONS)), 0, set(), set()
    consumer.assign([TopicPartition(topic, number, 0) for number in left])
    try:
        while left:
            message = consumer.poll(SECONDS_MAX)
            if message is None:
                raise TimeoutError(f"{topic} has no end")
            if (error := message.error()) is None:
                records += 1
                keys.add(message.key())
                names.add(dict(message.headers() or ()).get(NAME_HEADER))
            elif error.code() == KafkaError._PARTITION_EOF:
                left.discard(message.partition())
    finally:
        consumer.close()
    return Told(records, len(keys), len(names))


def agreements(bootstrap: str, database: str) -> list[Agreement]:
    """Return what was sent beside what the database holds of it."""
    measured, board = told(bootstrap, "telemetry"), told(bootstrap, "flights")
    series = told(bootstrap, "broker-metrics")
    with psycopg.connect(database) as connection:

        def number(query: str) -> int:
            row = connection.execute(query.encode()).fetchone()
            assert row is not None
            return int(row[0] or 0)

        rejected = number("SELECT count(*) FROM flights.rejected WHERE topic = 'telemetry'")
        stored = number("SELECT count(*) FROM flights.telemetry")
        summed = number("SELECT sum(measurements) FROM flights.telemetry_window")
        unknown = number(
            "SELECT count(DISTINCT text::json->>'flight') FROM flights.rejected "
            "WHERE topic = 'flights'"
        )
        known = number("SELECT count(*) FROM flights.flight")
        unusable = number(
            "SELECT count(DISTINCT text::jsonb - 'value') FROM flights.rejected "
            "WHERE topic = 'broker-metrics'"
        )
        followed = number("SELECT count(*) FROM flights.broker_metric")
    return [
        Agreement(
            "measurements, stored or rejected with a reason", measured.records, stored + rejected
        ),
        Agreement("measurements in all windows", measured.records - rejected, summed),
        Agreement("flights, stored or rejected with a reason", board.keys, known + unknown),
        Agreement(
            "series of the brokers' metrics, stored or rejected", series.names, followed + unusable
        ),
    ]


def lag(admin: AdminClient, query: str) -> int | None:
    """Return how many offsets a query has before it; None if it has committed nothing yet."""
    group, topic = GROUP + query, QUERIES[query]
    asked = ConsumerGroupTopicPartitions(group)
    answer = admin.list_consumer_group_offsets([asked], request_timeout=SECONDS_MAX)[group].result()
    places = [each for each in answer.topic_partitions if each.topic == topic and each.offset >= 0]
    if len(places) < topics.PARTITIONS:
        return None
    latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    ends = admin.list_offsets(dict.fromkeys(places, latest))
    behind: int = sum(ends[place].result().offset - place.offset for place in places)
    return behind
