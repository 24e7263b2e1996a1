"""The clients that people use, each as the same two functions: send records, read a partition.

A record here is (key, value, headers, timestamp in ms); what a client cannot say it leaves out.
"""

import asyncio
import json
import subprocess
import warnings
from typing import NamedTuple

import confluent_kafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioPartition

with warnings.catch_warnings():
    # kafka-python reads its schemas, while it is imported, in a way that is going out of use.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka

from tests.conformance.batches import headers
from tests.conformance.raw import Raw
from tests.patience import PATIENCE_SECONDS


class Sent(NamedTuple):
    """A record as it is given to a client, and as it must come back."""

    key: bytes | None
    value: bytes | None
    headers: tuple = ()
    time_ms: int = 1_700_000_000_000


class Confluent:
    """librdkafka, through confluent-kafka."""

    name = "confluent"

    @staticmethod
    def send(bootstrap, topic, records, codec, **config):
        failures = []
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 50, **config}
        )
        for each in records:
            producer.produce(
                topic,
                key=each.key,
                value=each.value,
                headers=list(each.headers),
                timestamp=each.time_ms,
                partition=0,
                on_delivery=lambda error, _: failures.append(error) if error else None,
            )
        assert producer.flush(PATIENCE_SECONDS) == 0
        assert not failures, failures[0]

    @staticmethod
    def read(bootstrap, topic, count):
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False}
        )
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        found = []
        while len(found) < count:
            batch = consumer.consume(count - len(found), PATIENCE_SECONDS)
            assert batch, "nothing came"
            for each in batch:
                assert each.error() is None, each.error()
                headers = tuple((name, value) for name, value in each.headers() or ())
                found.append(Sent(each.key(), each.value(), headers, each.timestamp()[1]))
        consumer.close()
        return found


class KafkaPython:
    """kafka-python, in pure Python."""

    name = "kafka-python"

    @staticmethod
    def send(bootstrap, topic, records, codec):
        producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if codec == "none" else codec,
            linger_ms=50,
        )
        futures = [
            producer.send(topic, each.value, each.key, list(each.headers), 0, each.time_ms)
            for each in records
        ]
        for each in futures:
            each.get(PATIENCE_SECONDS)
        producer.close()

    @staticmethod
    def read(bootstrap, topic, count):
        consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, group_id=None)
        partition = kafka.TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        found = []
        while len(found) < count:
            batch = consumer.poll(PATIENCE_SECONDS * 1000)
            assert batch, "nothing came"
            found += [
                Sent(each.key, each.value, tuple(each.headers), each.timestamp)
                for each in batch[partition]
            ]
        consumer.close()
        return found


class AioKafka:
    """aiokafka, in asyncio."""

    name = "aiokafka"

    @staticmethod
    def send(bootstrap, topic, records, codec):
        async def run():
            producer = AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                compression_type=None if codec == "none" else codec,
                linger_ms=50,
            )
            await producer.start()
            try:
                sent = [
                    await producer.send(
                        topic, each.value, each.key, 0, each.time_ms, list(each.headers)
                    )
                    for each in records
                ]
                for each in sent:
                    await each
            finally:
                await producer.stop()

        asyncio.run(run())

    @staticmethod
    def read(bootstrap, topic, count):
        async def run():
            consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
            await consumer.start()
            try:
                consumer.assign([AioPartition(topic, 0)])
                consumer.seek(AioPartition(topic, 0), 0)
                found = []
                while len(found) < count:
                    each = await consumer.getone()
                    found.append(Sent(each.key, each.value, tuple(each.headers), each.timestamp))
                return found
            finally:
                await consumer.stop()

        return asyncio.run(run())


class Kcat:
    """kcat, on the command line; it has no timestamps of its own to give."""

    name = "kcat"

    @staticmethod
    def send(bootstrap, topic, records, codec):
        for each in records:
            command = ["kcat", "-P", "-b", bootstrap, "-t", topic, "-p", "0", "-z", codec, "-Z"]
            for name, value in each.headers:
                command += ["-H", f"{name}={value.decode()}"]
            text = (each.key or b"") + b"\t" + (each.value or b"")
            subprocess.run([*command, "-K", "\t"], input=text, check=True, capture_output=True)

    @staticmethod
    def read(bootstrap, topic, count):
        command = ["kcat", "-C", "-b", bootstrap, "-t", topic, "-p", "0", "-J", "-u"]
        command += ["-o", "beginning", "-c", str(count)]
        done = subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=PATIENCE_SECONDS
        )
        return [as_sent(json.loads(line)) for line in done.stdout.splitlines()]


def as_sent(told):
    """A record from kcat's JSON."""
    flat = told.get("headers", [])
    headers = tuple(
        (flat[n], None if flat[n + 1] is None else flat[n + 1].encode())
        for n in range(0, len(flat), 2)
    )
    key, value = (None if told[k] is None else told[k].encode() for k in ("key", "payload"))
    return Sent(key, value, headers, told["ts"])


CLIENTS = (Confluent, KafkaPython, AioKafka, Kcat)
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def codecs_stored(bootstrap, topic):
    """The codec of each record of the first partition, by the batch that it is in."""
    found = []
    with Raw(bootstrap) as raw:
        # An answer ends where a segment does.
        while some := batches_at(raw, topic, found[-1].last_offset + 1 if found else 0):
            found += some
    return [CODECS[each.attributes & 7] for each in found for _ in range(each.count)]


def batches_at(raw, topic, offset):
    """The headers of the batches from an offset on."""
    place = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 24}
    topics = [{"topic": topic, "partitions": [place | {"current_leader_epoch": -1}]}]
    limits = {"replica_id": -1, "min_bytes": 1, "max_bytes": 1 << 24}
    answer = raw.ask("fetch", 12, {**limits, "topics": topics})
    (partition,) = answer["responses"][0]["partitions"]
    assert partition["error_code"] == "none"
    return headers(partition["records"] or b"")
