"""Real clients: what one sends, every other reads.

Rows: MSG-01 to MSG-14, PRO-01, PRO-06, PRO-08, CON-01; KAFKA-18659.
"""

import pytest
from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)

from tests import nodes
from tests.conformance.batches import headers
from tests.conformance.clients import CLIENTS, CODECS, Confluent, Kcat, Sent, codecs_stored
from tests.patience import PATIENCE_SECONDS

T0 = 1_700_000_000_000
RECORDS = [
    Sent(b"key", b"value", (("h", b"1"), ("h", b"2"), ("empty", b"")), T0),
    Sent(None, b"no key", (), T0 + 1),
    Sent(b"no value", None, (), T0 + 2),
    Sent(b"", b"", (), T0 + 3),
    *(Sent(b"k%d" % n, b"again and again " * 20, (), T0 + 10 + n) for n in range(50)),
]
#: kcat gives no times, starts once per record, and has no other way to say "nothing" than nothing.
KCAT_RECORDS = [Sent(b"key", b"value", (("h", b"1"),)), Sent(b"k", b"again and again " * 20)]


@pytest.mark.slow
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("sender", CLIENTS, ids=lambda each: each.name)
def test_what_one_client_sends_every_other_reads(strom, topic, sender, codec):
    """MSG-03, MSG-07."""
    reason = nodes.kcat_missing()
    if sender is Kcat and reason:
        pytest.skip(reason)
    records = KCAT_RECORDS if sender is Kcat else RECORDS
    sender.send(strom.bootstrap, topic, records, codec)
    # The last record becomes smaller by any codec, whichever others are in its batch.
    assert codecs_stored(strom.bootstrap, topic)[-1] == codec
    for reader in CLIENTS:
        if reader is Kcat and reason:
            continue
        found = reader.read(strom.bootstrap, topic, len(records))
        if sender is Kcat:
            found = [each._replace(time_ms=T0) for each in found]
        assert found == records, reader.name


@pytest.mark.parametrize("codec", CODECS)
def test_librdkafkas_batches_are_compressed_on_disk(strom_only, topic, codec):
    """Were Produce told from version 3, librdkafka would send everything uncompressed."""
    # A batch that a codec does not make smaller goes out as it is, and which records are in one
    # batch is the client's affair: so each record is one that becomes smaller.
    records = [Sent(b"k%d" % n, b"again and again " * 60, (), T0 + n) for n in range(50)]
    Confluent.send(strom_only.bootstrap, topic, records, codec)
    (segment,) = (strom_only.directory / f"{topic}-0").glob("*.log")
    found = headers(segment.read_bytes())
    assert sum(each.count for each in found) == len(records)
    assert {each.attributes & 7 for each in found} == {CODECS.index(codec)}


@pytest.mark.parametrize("size", [1, 900_000, 999_000, 8_000_000])
def test_large_messages(strom, make_topic, size):
    topic = make_topic(max_message_bytes=10_000_000)
    record = Sent(None, bytes(range(256)) * (size // 256 + 1))
    limits = {"message.max.bytes": 10_000_000}
    Confluent.send(strom.bootstrap, topic, [record], "none", **limits)
    assert Confluent.read(strom.bootstrap, topic, 1) == [record]


def test_a_message_over_the_limit_is_refused_to_the_client(strom, topic):
    record = Sent(None, b"x" * 2_000_000)
    with pytest.raises(AssertionError, match="too large"):
        Confluent.send(
            strom.bootstrap, topic, [record], "none", **{"message.max.bytes": 10_000_000}
        )


def test_times_of_the_broker_reach_the_client(strom, make_topic):
    topic = make_topic(message_timestamp_type="LogAppendTime")
    Confluent.send(strom.bootstrap, topic, [Sent(b"k", b"v")], "lz4")
    (found,) = Confluent.read(strom.bootstrap, topic, 1)
    assert found.time_ms > T0


def consumer_of(strom, **config):
    own = {"bootstrap.servers": strom.bootstrap, "group.id": "none", "enable.auto.commit": False}
    return Consumer(own | config)


def test_offsets_are_found_by_time(strom, topic):
    records = [Sent(None, b"%d" % n, (), T0 + 10 * n) for n in range(20)]
    Confluent.send(strom.bootstrap, topic, records, "zstd")
    consumer = consumer_of(strom)
    for time, offset in ((T0, 0), (T0 + 51, 6), (T0 + 190, 19), (T0 + 191, -1)):
        asked = TopicPartition(topic, 0, time)
        (found,) = consumer.offsets_for_times([asked], timeout=PATIENCE_SECONDS)
        assert found.offset == offset
    assert consumer.get_watermark_offsets(TopicPartition(topic, 0)) == (0, 20)
    consumer.close()


@pytest.mark.parametrize(
    ("spec", "offset"),
    [
        (OffsetSpec.earliest(), 0),
        (OffsetSpec.latest(), 20),
        (OffsetSpec.max_timestamp(), 7),
        (OffsetSpec.for_timestamp(T0 + 1), 1),
    ],
    ids=["earliest", "latest", "largest time", "by time"],
)
def test_the_admin_client_lists_offsets(strom, admin, topic, spec, offset):
    records = [Sent(None, b"x", (), T0 + (500 if n == 7 else n)) for n in range(20)]
    Confluent.send(strom.bootstrap, topic, records, "none")
    partition = TopicPartition(topic, 0)
    for isolation in IsolationLevel:
        asked = admin.list_offsets({partition: spec}, isolation_level=isolation)
        assert asked[partition].result().offset == offset


def test_the_admin_client_deletes_records(strom, admin, topic):
    Confluent.send(strom.bootstrap, topic, RECORDS, "none")
    asked = admin.delete_records([TopicPartition(topic, 0, 10)])
    (future,) = asked.values()
    assert future.result().low_watermark == 10
    consumer = consumer_of(strom)
    assert consumer.get_watermark_offsets(TopicPartition(topic, 0)) == (10, len(RECORDS))
    consumer.close()


def changed(admin, topic, name, operation, value):
    entry = ConfigEntry(name, value, incremental_operation=operation)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result()


def test_the_admin_client_changes_settings(admin, topic):
    changed(admin, topic, "retention.ms", AlterConfigOpType.SET, "4321")
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    while True:
        told = admin.describe_configs([resource])[resource].result()
        if told["retention.ms"].value == "4321":
            break
    assert told["retention.ms"].source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    changed(admin, topic, "retention.ms", AlterConfigOpType.DELETE, None)


def test_the_admin_client_makes_grows_and_deletes_topics(admin, name):
    admin.create_topics([NewTopic(name, 2, 1)])[name].result()
    with pytest.raises(KafkaException) as refused:
        admin.create_topics([NewTopic(name, 2, 1)])[name].result()
    assert refused.value.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
    admin.create_partitions([NewPartitions(name, 5)])[name].result()
    while len(admin.list_topics(name, timeout=PATIENCE_SECONDS).topics[name].partitions) != 5:
        pass
    admin.delete_topics([name])[name].result()
    while name in admin.list_topics(timeout=PATIENCE_SECONDS).topics:
        pass


def test_a_topic_is_made_by_the_first_record_sent_to_it(strom, admin, name):
    Confluent.send(strom.bootstrap, name, [Sent(None, b"first")], "none")
    told = admin.list_topics(name, timeout=PATIENCE_SECONDS)
    (partition,) = told.topics[name].partitions.values()
    assert partition.leader > 0
    assert Confluent.read(strom.bootstrap, name, 1)[0].value == b"first"


def test_an_idempotent_producer_sends_in_order(strom, topic):
    """PRO-14, TOP-16."""
    records = [Sent(None, b"%d" % n) for n in range(2000)]
    Confluent.send(
        strom.bootstrap,
        topic,
        records,
        "lz4",
        **{"enable.idempotence": True, "batch.num.messages": 7},
    )
    assert Confluent.read(strom.bootstrap, topic, 2000) == records


@pytest.mark.slow
def test_a_thousand_topics(strom, admin, name):
    """Made in one request, all written to, all read back."""
    topics = [f"{name}-{n}" for n in range(1000)]
    new = [NewTopic(each, 1, 1) for each in topics]
    for future in admin.create_topics(new, request_timeout=60).values():
        future.result()
    producer = Producer({"bootstrap.servers": strom.bootstrap, "linger.ms": 0})
    for each in topics:
        producer.produce(each, each.encode())
    assert producer.flush(PATIENCE_SECONDS) == 0
    consumer = consumer_of(strom)
    consumer.assign([TopicPartition(each, 0, 0) for each in topics])
    found = set()
    while len(found) < 1000:
        batch = consumer.consume(1000, PATIENCE_SECONDS)
        assert batch, f"only {len(found)} came"
        found |= {each.value() for each in batch if each.error() is None}
    consumer.close()
    assert found == {each.encode() for each in topics}
    for future in admin.delete_topics(topics, request_timeout=60).values():
        future.result()
