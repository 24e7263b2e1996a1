"""A broker as the book uses one: small commands, and a look at what they leave on the disk."""

import os

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)

from tests.conformance.batches import batch
from tests.patience import PATIENCE_SECONDS

#: For who wants to see what is deleted go.
SOON = {"log.retention.check.interval.ms": "20", "log.segment.delete.delay.ms": "1"}


class Book:
    """A broker of a test's own, with the clients that the test talks to it through."""

    def __init__(self, broker):
        self.broker = broker
        self.directory = broker.directory
        self.connect()

    def connect(self):
        self.bootstrap = self.broker.bootstrap
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def create(self, topic, partitions=1, **config):
        settings = {key.replace("_", "."): str(value) for key, value in config.items()}
        new = NewTopic(topic, partitions, 1, config=settings)
        self.admin.create_topics([new])[topic].result()

    def delete(self, topic):
        self.admin.delete_topics([topic])[topic].result()

    def set(self, whose, name, value, kind=ConfigResource.Type.TOPIC):
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(kind, whose, incremental_configs=[entry])
        self.admin.incremental_alter_configs([resource])[resource].result()

    def send(self, topic, *values, key=None, **config):
        """Send values one by one, each a batch of its own; their places."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 0, **config})
        places = []
        for value in values:
            producer.produce(topic, value, key, on_delivery=lambda *told: places.append(told))
            assert producer.flush(PATIENCE_SECONDS) == 0
        assert not [error for error, _ in places if error]
        return [(message.partition(), message.offset()) for _, message in places]

    def read(self, topic, count, offset=0):
        consumer = self.consumer()
        consumer.assign([TopicPartition(topic, 0, offset)])
        found = consumer.consume(count, PATIENCE_SECONDS)
        consumer.close()
        assert [each.error() for each in found] == [None] * count
        return [each.value() for each in found]

    def consumer(self, **config):
        own = {"bootstrap.servers": self.bootstrap, "group.id": "none", "log_level": 0}
        return Consumer(own | {"enable.auto.commit": False} | config)

    def files(self, name=""):
        return sorted(os.listdir(self.directory / name))

    def segment(self, topic, base=0):
        return self.directory / f"{topic}-0" / f"{base:020d}.log"

    def text(self, name):
        return (self.directory / name).read_text().splitlines()


def produce_one(raw, topic, acks=1):
    data = {"index": 0, "records": batch([b"x"])}
    asked = {
        "acks": acks,
        "timeout": 5000,
        "topic_data": [{"name": topic, "partition_data": [data]}],
    }
    raw.send("produce", 9, asked)


def answered(raw):
    return raw.receive("produce", 9)[1]["responses"][0]["partition_responses"][0]["error_code"]
