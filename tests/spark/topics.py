"""Topics for the tests of Spark's side: filled by librdkafka, and read by it for comparison."""

import itertools
import os
import time
from typing import NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.patience import PATIENCE_SECONDS

NAMES = itertools.count()
COPY_SECONDS = 120


class Row(NamedTuple):
    """A record as it is compared."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple


class Topics:
    """Makes, fills and reads topics at one broker."""

    def __init__(self, bootstrap):
        self.bootstrap = bootstrap
        self.admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    def make(self, partitions=1, name=None, **config):
        name = name or f"spark{os.getpid()}-{next(NAMES)}"
        settings = {key.replace("_", "."): str(value) for key, value in config.items()}
        new = NewTopic(name, partitions, 1, config=settings)
        self.admin.create_topics([new])[name].result()
        return name

    def delete(self, name):
        self.admin.delete_topics([name])[name].result()

    def fill(self, topic, values, partitions=1, keys=None, headers=None, **settings):
        """Send the values to the partitions in turn."""
        named = {key.replace("_", "."): value for key, value in settings.items()}
        producer = Producer({"bootstrap.servers": self.bootstrap, "log_level": 0, **named})
        self._produce(producer, topic, values, partitions, keys, headers)
        assert producer.flush(PATIENCE_SECONDS) == 0

    def fill_at(self, topic, times_ms):
        """Send a record at each of these times, partition by partition."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "log_level": 0})
        for partition, times in enumerate(times_ms):
            for time_ms in times:
                producer.produce(topic, b"%d" % time_ms, partition=partition, timestamp=time_ms)
        assert producer.flush(PATIENCE_SECONDS) == 0

    def fill_transaction(self, topic, values, *, commits, partitions=1):
        """Send the values in a transaction."""
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "transactional.id": f"id-{next(NAMES)}",
                "log_level": 0,
            }
        )
        producer.init_transactions(PATIENCE_SECONDS)
        producer.begin_transaction()
        self._produce(producer, topic, values, partitions, None, None)
        assert producer.flush(PATIENCE_SECONDS) == 0
        if commits:
            producer.commit_transaction(PATIENCE_SECONDS)
        else:
            producer.abort_transaction(PATIENCE_SECONDS)

    @staticmethod
    def _produce(producer, topic, values, partitions, keys, headers):
        for number, value in enumerate(values):
            producer.produce(
                topic,
                value=value,
                key=keys[number % len(keys)] if keys else None,
                partition=number % partitions,
                headers=headers[number % len(headers)] if headers else None,
            )
            producer.poll(0)

    def read(self, topic, partitions=1, isolation="read_committed"):
        """Return what librdkafka reads, from the beginnings to the ends."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": f"g{next(NAMES)}",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": isolation,
                "log_level": 0,
            }
        )
        consumer.assign([TopicPartition(topic, n, 0) for n in range(partitions)])
        rows, ended = [], 0
        while ended < partitions:
            message = consumer.poll(PATIENCE_SECONDS)
            assert message is not None, "nothing came"
            if message.error():
                ended += 1
            else:
                rows.append(_row(message))
        consumer.close()
        return sorted(rows)

    def read_once_there(self, topic, count, partitions=1):
        """Return what is there, once it is at least so much: a commit takes effect later."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            found = self.read(topic, partitions)
            if len(found) >= count or time.monotonic() > deadline:
                return found


def copy(spark, topics, source, target, checkpoint, *, connector="strom", **options):
    """Copy a topic as far as it goes now."""
    rows = (
        spark.readStream.format(connector)
        .option("kafka.bootstrap.servers", topics.bootstrap)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 150)
        .load()
    )
    query = (
        rows.select("key", "value")
        .writeStream.format(connector)
        .option("kafka.bootstrap.servers", topics.bootstrap)
        .option("topic", target)
        .option("checkpointLocation", str(checkpoint))
        .options(**options)
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(COPY_SECONDS)


def _row(message):
    return Row(
        message.topic(),
        message.partition(),
        message.offset(),
        message.key(),
        message.value(),
        message.timestamp()[1],
        tuple(message.headers() or ()),
    )
