"""What the book shows on one node, step by step, and the defaults that it names.

Rows are named at each test; docs/requirements.md has the table of all. What is on the disk is in
test_book_disk.py.
"""

import re
import time

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import ConfigResource, NewPartitions

from tests import nodes
from tests.conformance.batches import NOW_MS, headers
from tests.conformance.book import SOON
from tests.conformance.clients import CODECS, Confluent, Sent
from tests.conformance.raw import Raw
from tests.patience import PATIENCE_SECONDS


def test_without_compaction_old_messages_of_a_key_stay(book):
    """MSG-11, MSG-06, MSG-10, LOG-06, LOG-14, §2.3: three states of Alice, all of them kept."""
    node = book(SOON)
    states = [
        f'{{"name": "Alice", "Nächster Flug": "{day}", "Geburtsdatum": "1990-05-07"}}'
        for day in ("2030-01-01", "2025-01-01", "2024-05-07")
    ]
    node.create("astronauten", segment_ms=1)
    node.send("astronauten", *[each.encode() for each in states], key=b"1")
    for _ in range(2):
        assert [each.decode() for each in node.read("astronauten", 3)] == states


def test_every_reader_has_a_place_of_its_own(book):
    """LOG-05, LOG-07, LOG-08, LOG-09, LOG-10, LOG-12, CON-02: a reader is one number."""
    node = book()
    node.create("flugdaten")
    sent = [b"%d" % n for n in range(10)]
    node.send("flugdaten", *sent)
    fast, slow = node.consumer(), node.consumer()
    fast.assign([TopicPartition("flugdaten", 0, 0)])
    slow.assign([TopicPartition("flugdaten", 0, 0)])
    assert [each.value() for each in fast.consume(10, PATIENCE_SECONDS)] == sent
    assert [each.value() for each in slow.consume(3, PATIENCE_SECONDS)] == sent[:3]
    (place,) = slow.position([TopicPartition("flugdaten", 0)])
    slow.close()
    # Another takes over from the number alone; the fast one goes back to where it began.
    assert node.read("flugdaten", 7, offset=place.offset) == sent[3:]
    fast.seek(TopicPartition("flugdaten", 0, 0))
    assert [each.value() for each in fast.consume(10, PATIENCE_SECONDS)] == sent
    fast.close()


@pytest.mark.parametrize(("reset", "expected"), [("earliest", b"eins"), ("latest", b"drei")])
def test_who_has_no_valid_offset_begins_where_it_likes(book, reset, expected):
    """CON-04."""
    node = book()
    node.create("flugdaten")
    node.send("flugdaten", b"eins", b"zwei")
    consumer = node.consumer(**{"auto.offset.reset": reset})
    consumer.assign([TopicPartition("flugdaten", 0, 4711)])
    found, deadline = [], time.monotonic() + PATIENCE_SECONDS
    while not found and time.monotonic() < deadline:
        found = [each for each in consumer.consume(1, 0.1) if each.error() is None]
        if reset == "latest":
            node.send("flugdaten", b"drei")
    assert found[0].value() == expected
    consumer.close()


def test_a_key_has_its_partition_until_their_number_changes(book):
    """TOP-07, TOP-09, TOP-16, TOP-24, MSG-08, PRO-05: murmur2 of the key, modulo the number."""
    node = book()
    node.create("flugdaten", 2)
    murmur = {"partitioner": "murmur2_random"}
    before = node.send("flugdaten", *[b"x"] * 3, key=b"rakete1", **murmur)
    assert len({partition for partition, _ in before}) == 1
    assert [offset for _, offset in before] == [0, 1, 2]
    node.admin.create_partitions([NewPartitions("flugdaten", 7)])["flugdaten"].result()
    after = node.send("flugdaten", b"x", key=b"rakete1", **murmur)
    positive = 491040472  # murmur2("rakete1") & 0x7fffffff, as the Java client computes it
    assert (before[0][0], after[0][0]) == (positive % 2, positive % 7)
    assert after[0][1] == 0, "a new partition is empty"


def test_one_stream_goes_to_several_topics_and_is_read_from_all(book):
    """PRO-22, PRO-18, CON-14."""
    node = book()
    producers = [Producer({"bootstrap.servers": node.bootstrap}) for _ in range(2)]
    for topic in ("flugdaten", "raketen"):
        node.create(topic)
        for number, producer in enumerate(producers):
            producer.produce(topic, b"%s from %d" % (topic.encode(), number))
    assert [each.flush(PATIENCE_SECONDS) for each in producers] == [0, 0]
    consumer = node.consumer()
    consumer.assign([TopicPartition(topic, 0, 0) for topic in ("flugdaten", "raketen")])
    found = {each.value() for each in consumer.consume(4, PATIENCE_SECONDS)}
    consumer.close()
    assert found == {b"%s from %d" % (t, n) for t in (b"flugdaten", b"raketen") for n in range(2)}


def test_a_client_outlives_a_restart_of_its_leader(book):
    """PRO-16, PRO-20, BRK-05, TXN-04: it looks again, sends again, and nothing is there twice."""
    node = book({"listeners": f"PLAINTEXT://127.0.0.1:{nodes.free_port()}"})
    node.create("flugdaten")
    producer = Producer(
        {
            "bootstrap.servers": node.bootstrap,
            "enable.idempotence": True,
            "reconnect.backoff.max.ms": 100,
            "log_level": 0,
        }
    )
    producer.produce("flugdaten", b"before")
    assert producer.flush(PATIENCE_SECONDS) == 0
    node.broker.stop()
    producer.produce("flugdaten", b"meanwhile")
    node.broker.start()
    producer.produce("flugdaten", b"after")
    assert producer.flush(PATIENCE_SECONDS) == 0
    assert node.read("flugdaten", 3) == [b"before", b"meanwhile", b"after"]
    consumer = node.consumer()
    assert consumer.get_watermark_offsets(TopicPartition("flugdaten", 0)) == (0, 3)
    consumer.close()


@pytest.mark.parametrize("codec", CODECS)
def test_a_topic_may_choose_its_codec_for_real_clients(book, codec):
    """PRO-13, BRK-15: `compression.type` other than `producer` is what every reader gets."""
    node = book()
    chosen = "uncompressed" if codec == "none" else codec
    node.create("gepackt", compression_type=chosen)
    records = [Sent(b"k", b"again and again " * 20, (("h", b"v"),), NOW_MS + n) for n in range(20)]
    Confluent.send(node.bootstrap, "gepackt", records, "lz4" if codec == "gzip" else "gzip")
    found = headers(node.segment("gepackt").read_bytes())
    assert {each.attributes & 7 for each in found} == {CODECS.index(codec)}
    assert Confluent.read(node.bootstrap, "gepackt", 20) == records


LOG_LINE = re.compile(r"\[\d{4}-\d\d-\d\d [\d:]{8},\d{3}\] (?P<level>[A-Z]+) .* \(strom[.\w]*\)")


def test_the_log_of_a_broker_from_start_to_stop(broker_process):
    """MON-12, BRK-17, BRK-18: one line an event, in the form and with the levels of Kafka's."""
    process = broker_process(strange_setting=1)
    with Raw(process.bootstrap) as raw:
        raw.send_bytes(b"GET / HTTP/1.1\r\n\r\n")
        assert raw.closed()
    process.stop()
    lines = process.log().splitlines()
    found = [LOG_LINE.fullmatch(line) for line in lines]
    assert all(found), lines
    assert {each["level"] for each in found} == {"INFO", "WARN"}
    started = f"will use broker {process.bootstrap} (id: 1 rack: null)"
    assert [line for line in lines if f"Recorded new controller, from now on {started}" in line]
    assert [line for line in lines if "strange.setting" in line]
    assert len([line for line in lines if "Closed the connection" in line]) == 1


#: §3.1, Kafka 4.3's value where the book's is older; the rest is of clients or of later parts.
DEFAULTS = {
    "auto.leader.rebalance.enable": "true",
    "leader.imbalance.check.interval.seconds": "300",
    "log.cleaner.backoff.ms": "15000",
    "log.cleaner.delete.retention.ms": "86400000",
    "log.cleaner.max.compaction.lag.ms": "9223372036854775807",
    "log.cleaner.min.cleanable.ratio": "0.5",
    "log.cleaner.min.compaction.lag.ms": "0",
    "log.cleanup.policy": "delete",
    "log.flush.interval.messages": "9223372036854775807",
    "log.index.interval.bytes": "4096",
    "log.retention.bytes": "-1",
    "log.retention.check.interval.ms": "300000",
    "log.retention.hours": "168",
    "log.roll.hours": "168",
    "log.segment.bytes": "1073741824",
    "log.segment.delete.delay.ms": "60000",
    "message.max.bytes": "1048588",
    "num.io.threads": "8",
    "num.network.threads": "3",
    "offsets.retention.check.interval.ms": "600000",
    "offsets.retention.minutes": "10080",
    "queued.max.requests": "500",
    "replica.fetch.wait.max.ms": "500",
    "replica.lag.time.max.ms": "30000",
}
TOPIC_DEFAULTS = {
    "cleanup.policy": "delete",
    "compression.type": "producer",
    "delete.retention.ms": "86400000",
    "file.delete.delay.ms": "60000",
    "flush.messages": "9223372036854775807",
    "flush.ms": "9223372036854775807",
    "index.interval.bytes": "4096",
    "max.compaction.lag.ms": "9223372036854775807",
    "max.message.bytes": "1048588",
    "message.timestamp.type": "CreateTime",
    "min.cleanable.dirty.ratio": "0.5",
    "min.compaction.lag.ms": "0",
    "min.insync.replicas": "1",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
    "segment.bytes": "1073741824",
    "segment.ms": "604800000",
}


def test_defaults_are_those_of_the_book(book):
    """BRK-08, BRK-11, DSK-13, DSK-16, DSK-18, RET-01, RET-02, RET-03, RET-05, MSG-04, §3.1."""
    node = book()
    node.create("flugdaten")
    broker = ConfigResource(ConfigResource.Type.BROKER, "1")
    topic = ConfigResource(ConfigResource.Type.TOPIC, "flugdaten")
    for resource, expected in ((broker, DEFAULTS), (topic, TOPIC_DEFAULTS)):
        told = node.admin.describe_configs([resource])[resource].result()
        assert {name: told[name].value for name in expected} == expected
