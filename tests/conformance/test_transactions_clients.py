"""Transactions with the clients that people use (TXN-05 to TXN-14, ACK-06, STR-13).

What the book tells about transactions is played here with the producers and consumers that its
readers have: librdkafka's, aiokafka's, kafka-python's and Java's.
"""

import asyncio
import itertools
import re
import time

import confluent_kafka
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import KafkaException, TopicPartition

from strom.broker.coordination import java_hash
from strom.records.record import read_records
from strom.transactions.records import read
from tests.conformance.members import kafka
from tests.conformance.raw import Raw
from tests.log.making import whole_batches
from tests.patience import PATIENCE_SECONDS, until

QUIET_SECONDS = 1.0
GROUPS = itertools.count()
SOON_AGAIN = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200, "log_level": 0}


def producer_of(bootstrap, transactional_id, **config):
    made = confluent_kafka.Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "partitioner": "murmur2_random",
            **SOON_AGAIN,
            **config,
        }
    )
    made.init_transactions(PATIENCE_SECONDS)
    return made


def consumer_of(bootstrap, topics, isolation, group=None):
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group or f"readers-{next(GROUPS)}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            **SOON_AGAIN,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0) for topic in topics])
    return consumer


def values_of(consumer, count):
    """So many values, and then nothing more for a while."""
    found = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(found) < count and time.monotonic() < deadline:
        came = consumer.consume(count - len(found), 0.2)
        found += [each.value() for each in came if each.error() is None]
    assert len(found) == count, found
    more = consumer.consume(1, QUIET_SECONDS)
    assert not more, more[0].value()
    return found


def test_txn_06_07_10_committed_records_of_all_topics_appear_together(strom, make_topic, name):
    debits, deposits = make_topic(), make_topic()
    producer = producer_of(strom.bootstrap, f"{name}-ueberweisungen-1")
    careful = consumer_of(strom.bootstrap, [debits, deposits], "read_committed")
    hasty = consumer_of(strom.bootstrap, [debits, deposits], "read_uncommitted")
    producer.begin_transaction()
    producer.produce(debits, key="bob", value="-10€")
    producer.produce(deposits, key="alice", value="+10€")
    assert producer.flush(PATIENCE_SECONDS) == 0
    assert sorted(values_of(hasty, 2)) == ["+10€".encode(), "-10€".encode()]
    assert values_of(careful, 0) == []
    producer.commit_transaction(PATIENCE_SECONDS)
    assert sorted(values_of(careful, 2)) == ["+10€".encode(), "-10€".encode()]
    careful.close()
    hasty.close()


def test_txn_09_10_aborted_records_stay_in_the_log_and_are_skipped(strom, topic, name):
    producer = producer_of(strom.bootstrap, name)
    for number in range(6):
        producer.begin_transaction()
        producer.produce(topic, value=b"%d" % number)
        if number % 2:
            producer.commit_transaction(PATIENCE_SECONDS)
        else:
            producer.flush(PATIENCE_SECONDS)
            producer.abort_transaction(PATIENCE_SECONDS)
    careful = consumer_of(strom.bootstrap, [topic], "read_committed")
    hasty = consumer_of(strom.bootstrap, [topic], "read_uncommitted")
    assert values_of(careful, 3) == [b"1", b"3", b"5"]
    assert values_of(hasty, 6) == [b"%d" % each for each in range(6)]
    # Each transaction is a record and its marker.
    assert careful.get_watermark_offsets(TopicPartition(topic, 0))[1] == 12
    careful.close()
    hasty.close()


def test_txn_11_a_careful_reader_waits_behind_an_open_transaction(strom, topic, name):
    """Whatever comes after the first record of an open transaction has to wait for its end."""
    first = producer_of(strom.bootstrap, f"{name}-a")
    second = producer_of(strom.bootstrap, f"{name}-b")
    plain = confluent_kafka.Producer({"bootstrap.servers": strom.bootstrap})
    plain.produce(topic, value=b"before")
    plain.flush(PATIENCE_SECONDS)
    first.begin_transaction()
    first.produce(topic, value=b"open")
    first.flush(PATIENCE_SECONDS)
    second.begin_transaction()
    second.produce(topic, value=b"done")
    second.commit_transaction(PATIENCE_SECONDS)
    plain.produce(topic, value=b"after")
    plain.flush(PATIENCE_SECONDS)
    careful = consumer_of(strom.bootstrap, [topic], "read_committed")
    assert values_of(careful, 1) == [b"before"]
    end = careful.get_watermark_offsets(TopicPartition(topic, 0), timeout=PATIENCE_SECONDS)[1]
    assert end == 1, "the last stable offset is the end for a careful reader"
    first.abort_transaction(PATIENCE_SECONDS)
    assert values_of(careful, 2) == [b"done", b"after"]
    careful.close()


def test_txn_05_a_second_producer_of_the_same_id_fences_the_first(strom, topic, name):
    first = producer_of(strom.bootstrap, name)
    first.begin_transaction()
    first.produce(topic, value=b"of the first")
    first.flush(PATIENCE_SECONDS)
    second = producer_of(strom.bootstrap, name)
    with pytest.raises(KafkaException) as caught:
        first.commit_transaction(PATIENCE_SECONDS)
    assert caught.value.args[0].fatal()
    second.begin_transaction()
    second.produce(topic, value=b"of the second")
    second.commit_transaction(PATIENCE_SECONDS)
    careful = consumer_of(strom.bootstrap, [topic], "read_committed")
    assert values_of(careful, 1) == [b"of the second"]
    careful.close()


def test_txn_06_offsets_are_sent_by_the_producer_and_count_with_the_rest(strom, make_topic, name):
    """STR-13: what was read, what was written and how far it was read are one thing."""
    source, target = make_topic(), make_topic()
    feed = confluent_kafka.Producer({"bootstrap.servers": strom.bootstrap})
    for number in range(10):
        feed.produce(source, value=b"%d" % number)
    feed.flush(PATIENCE_SECONDS)
    producer = producer_of(strom.bootstrap, name)
    consumer = consumer_of(strom.bootstrap, [source], "read_committed", group=f"{name}-group")
    place = TopicPartition(source, 0)

    def committed():
        (found,) = consumer.committed([place], timeout=PATIENCE_SECONDS)
        return found.offset

    for outcome, expected in (("abort", -1001), ("commit", 5), ("abort", 5), ("commit", 10)):
        read = [each.value() for each in consumer.consume(5, PATIENCE_SECONDS)]
        producer.begin_transaction()
        for value in read:
            producer.produce(target, value=value * 2)
        at = consumer.position([place])
        producer.send_offsets_to_transaction(at, consumer.consumer_group_metadata())
        if outcome == "abort":
            producer.abort_transaction(PATIENCE_SECONDS)
            consumer.seek(TopicPartition(source, 0, at[0].offset - len(read)))
        else:
            producer.commit_transaction(PATIENCE_SECONDS)
        assert committed() == expected
    careful = consumer_of(strom.bootstrap, [target], "read_committed")
    assert values_of(careful, 10) == [b"%d" % each * 2 for each in range(10)]
    careful.close()
    consumer.close()


def test_txn_12_a_transaction_that_takes_too_long_is_aborted(broker_process):
    process = broker_process(
        transaction_abort_timed_out_transaction_cleanup_interval_ms=200,
        log_initial_task_delay_ms=1000,
    )
    producer = producer_of(process.bootstrap, "slow", **{"transaction.timeout.ms": 1000})
    other = confluent_kafka.Producer({"bootstrap.servers": process.bootstrap})
    producer.begin_transaction()
    producer.produce("slow", value=b"never")
    producer.flush(PATIENCE_SECONDS)
    other.produce("slow", value=b"behind it")
    other.flush(PATIENCE_SECONDS)
    careful = consumer_of(process.bootstrap, ["slow"], "read_committed")
    assert values_of(careful, 1) == [b"behind it"]
    careful.close()
    with pytest.raises(KafkaException):
        producer.commit_transaction(PATIENCE_SECONDS)


def test_txn_12_a_restarted_coordinator_knows_every_transaction(broker_process):
    """Killed with one transaction open and others done; the open one ends afterwards."""
    process = broker_process()
    done, open_one = (producer_of(process.bootstrap, each) for each in ("done", "open"))
    done.begin_transaction()
    done.produce("kept", value=b"done")
    done.commit_transaction(PATIENCE_SECONDS)
    open_one.begin_transaction()
    open_one.produce("kept", value=b"open")
    open_one.flush(PATIENCE_SECONDS)
    process.kill()
    process.start()
    careful = consumer_of(process.bootstrap, ["kept"], "read_committed")
    assert values_of(careful, 1) == [b"done"]
    open_one.commit_transaction(PATIENCE_SECONDS)
    assert values_of(careful, 1) == [b"open"]
    careful.close()


def test_txn_14_snapshots_hold_open_transactions_over_a_clean_stop(broker_process):
    process = broker_process()
    producer = producer_of(process.bootstrap, "held")
    producer.begin_transaction()
    producer.produce("held", value=b"a")
    producer.flush(PATIENCE_SECONDS)
    process.stop()
    assert list((process.directory / "held-0").glob("*.snapshot"))
    process.start()
    with Raw(process.bootstrap) as raw:
        asked = {"topics": [{"name": "held", "partition_indexes": [0]}]}
        (told,) = raw.ask("describe_producers", 0, asked)["topics"][0]["partitions"]
        assert [each["current_txn_start_offset"] for each in told["active_producers"]] == [0]
    producer.produce("held", value=b"b")
    producer.commit_transaction(PATIENCE_SECONDS)
    careful = consumer_of(process.bootstrap, ["held"], "read_committed")
    assert values_of(careful, 2) == [b"a", b"b"]
    careful.close()


def test_txn_13_a_transaction_costs_its_partitions_not_its_messages(strom, make_topic, name):
    topic = make_topic(partitions=3)
    producer = producer_of(strom.bootstrap, name)
    with Raw(strom.bootstrap) as raw:
        for count in (3, 3000):
            before = sum_of_ends(raw, topic, 3), len(logged(raw, name))
            producer.begin_transaction()
            for number in range(count):
                producer.produce(topic, value=b"x", partition=number % 3)
            producer.commit_transaction(PATIENCE_SECONDS)
            until_complete(raw, name)
            # A marker for each partition; begun with one or more, prepared and complete.
            assert sum_of_ends(raw, topic, 3) - before[0] == count + 3
            assert 3 <= len(logged(raw, name)) - before[1] <= 5


def until_complete(raw, name):
    """Wait until all is written that the end of a transaction is; its state then."""
    asked = {"transactional_id_pattern": re.escape(name)}
    (told,) = until(
        lambda: raw.ask("list_transactions", 2, asked)["transaction_states"],
        lambda states: not states[0]["transaction_state"].startswith("Prepare"),
    )
    return told["transaction_state"]


def logged(raw, name):
    """The records that the coordinator has written of a transactional id."""
    place = {"partition": coordinating(name), "fetch_offset": 0, "partition_max_bytes": 1 << 30}
    topics = [{"topic": "__transaction_state", "partitions": [place]}]
    asked = {"replica_id": -1, "max_wait": 0, "max_bytes": 1 << 30, "topics": topics}
    (told,) = raw.ask("fetch", 12, asked)["responses"][0]["partitions"]
    records = [each for batch in whole_batches(told["records"]) for each in read_records(batch)]
    return [each for each in records if read(each.key, each.value).key.transactional_id == name]


def coordinating(name):
    return java_hash(name) % 50


def sum_of_ends(raw, topic, partitions):
    return sum(end_of(raw, topic, each) for each in range(partitions))


def end_of(raw, topic, partition):
    asked = [{"partition_index": partition, "timestamp": -1}]
    (told,) = raw.ask("list_offsets", 7, {"topics": [{"name": topic, "partitions": asked}]})[
        "topics"
    ]
    return told["partitions"][0]["offset"]


async def with_aiokafka(bootstrap, source, target, name):
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=name)
    await producer.start()
    group = f"{name}-group"
    try:
        for number in range(4):
            async with producer.transaction():
                await producer.send_and_wait(target, b"%d" % number)
                offsets = {AioPartition(source, 0): number + 1}
                await producer.send_offsets_to_transaction(offsets, group)
        await producer.begin_transaction()
        await producer.send_and_wait(target, b"aborted")
        await producer.send_offsets_to_transaction({AioPartition(source, 0): 99}, group)
        await producer.abort_transaction()
    finally:
        await producer.stop()
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        isolation_level="read_committed",
        group_id=group,
        enable_auto_commit=False,
    )
    await consumer.start()
    try:
        place = AioPartition(target, 0)
        consumer.assign([place])
        await consumer.seek_to_beginning(place)
        found = [(await consumer.getone()).value for _ in range(4)]
        return found, await consumer.committed(AioPartition(source, 0))
    finally:
        await consumer.stop()


def test_aiokafka_writes_and_reads_transactions(strom, make_topic, name):
    source, target = make_topic(), make_topic()
    running = with_aiokafka(strom.bootstrap, source, target, name)
    found, committed = asyncio.run(asyncio.wait_for(running, PATIENCE_SECONDS))
    assert found == [b"0", b"1", b"2", b"3"]
    assert committed == 4


def test_kafka_python_writes_and_reads_transactions(strom, make_topic, name):
    """TXN-06, TXN-09, TXN-10: records and offsets, committed and aborted."""
    source, target = make_topic(), make_topic()
    producer = kafka.KafkaProducer(bootstrap_servers=strom.bootstrap, transactional_id=name)
    producer.init_transactions()
    place = kafka.TopicPartition(source, 0)
    for number in range(4):
        producer.begin_transaction()
        producer.send(target, b"%d" % number)
        producer.send_offsets_to_transaction({place: kafka.OffsetAndMetadata(number, "", -1)}, name)
        if number % 2:
            producer.commit_transaction()
        else:
            producer.flush()
            producer.abort_transaction()
    producer.close()
    reader = kafka.KafkaConsumer(
        bootstrap_servers=strom.bootstrap,
        group_id=name,
        isolation_level="read_committed",
        consumer_timeout_ms=PATIENCE_SECONDS * 1000,
    )
    reader.assign([kafka.TopicPartition(target, 0)])
    reader.seek_to_beginning()
    assert [each.value for each in itertools.islice(reader, 2)] == [b"1", b"3"]
    assert reader.committed(place) == 3
    reader.close()


# Apache Kafka's own tools: the Java clients.


def java(test):
    """What is told by a JVM takes seconds."""
    for mark in (pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(600)):
        test = mark(test)
    return test


@pytest.fixture
def tool(strom, kafka_tool):
    def run(name, *arguments, fails=False):
        done = kafka_tool(name, "--bootstrap-server", strom.bootstrap, *arguments)
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        return done.stdout

    return run


@java
def test_javas_perf_test_writes_transactions(tool, strom, make_topic, name):
    topic = make_topic(partitions=3)
    told = tool(
        *("kafka-producer-perf-test", "--topic", topic, "--num-records", 20_000),
        *("--record-size", 100, "--throughput", 10_000, "--transactional-id", name),
        *("--transaction-duration-ms", 100),
    )
    assert re.search(r"20000 records sent", told)
    with Raw(strom.bootstrap) as raw:
        assert until_complete(raw, name) == "CompleteCommit"
    read = tool(
        *("kafka-console-consumer", "--topic", topic, "--from-beginning"),
        *("--isolation-level", "read_committed", "--max-messages", 20_000),
        *("--timeout-ms", 60_000),
    )
    assert read.count("\n") == 20_000


@java
def test_the_state_is_in_kafkas_own_format(tool, strom, topic, name):
    """TXN-08: Kafka's formatter and its dump tool read `__transaction_state`."""
    producer = producer_of(strom.bootstrap, name)
    producer.begin_transaction()
    producer.produce(topic, value=b"a")
    producer.commit_transaction(PATIENCE_SECONDS)
    with Raw(strom.bootstrap) as raw:
        until_complete(raw, name)
        end = end_of(raw, "__transaction_state", coordinating(name))
    told = tool(
        *("kafka-console-consumer", "--topic", "__transaction_state", "--max-messages", end),
        *("--partition", coordinating(name), "--offset", "earliest"),
        *("--formatter", "org.apache.kafka.tools.consumer.TransactionLogMessageFormatter"),
    )
    records = told.split('{"key":')
    own = [each for each in records if f'"transactionalId":"{name}"' in each]
    states = [int(re.search(r'"transactionStatus":(\d)', each)[1]) for each in own]
    assert states == [0, 1, 2, 4], told


@java
def test_a_hanging_transaction_is_found_and_aborted(tool, strom, topic, name):
    """To an admin who looks at the partition alone, one that is open looks the same."""
    producer = producer_of(strom.bootstrap, name, **{"transaction.timeout.ms": 600_000})
    producer.begin_transaction()
    producer.produce(topic, value=b"a")
    producer.flush(PATIENCE_SECONDS)
    described = tool("kafka-transactions", "describe", "--transactional-id", name)
    assert "Ongoing" in described and f"{topic}-0" in described
    assert name in tool("kafka-transactions", "list")
    told = tool("kafka-transactions", "describe-producers", "--topic", topic, "--partition", 0)
    header, row = told.rstrip("\n").splitlines()[-2:]
    cells = dict(zip(header.split(), row.split(), strict=True))
    assert cells["CurrentTransactionStartOffset"] == "0"
    tool(
        *("kafka-transactions", "abort", "--topic", topic, "--partition", 0),
        *("--start-offset", 0),
    )
    careful = consumer_of(strom.bootstrap, [topic], "read_committed")
    end = careful.get_watermark_offsets(TopicPartition(topic, 0), timeout=PATIENCE_SECONDS)[1]
    assert end == 2, "the record and the marker that aborted it"
    assert values_of(careful, 0) == []
    careful.close()
