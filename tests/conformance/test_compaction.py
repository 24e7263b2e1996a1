"""Compaction as a client sees it, on a broker that cleans as soon as it can.

Rows are named at each test; docs/requirements.md has the table of all.
"""

import random
import re
import time
import urllib.request
from contextlib import suppress

import pytest
from confluent_kafka import KafkaError, Producer, TopicPartition
from confluent_kafka.admin import ConfigResource

from strom.log.dump import dump_lines
from tests import nodes
from tests.conformance.book import SOON
from tests.patience import PATIENCE_SECONDS, until

EAGER = {**SOON, "log.cleaner.backoff.ms": "20", "strom.http.port": "0"}
#: What no codec makes smaller; a segment holds some seventeen of them.
VALUE = random.Random(4).randbytes(60_000)
TOPIC = {
    "cleanup_policy": "compact",
    "segment_bytes": 1024 * 1024,
    "min_cleanable_dirty_ratio": 0.01,
    "file_delete_delay_ms": 1,
}
#: The book's, which is a minute; its messages have times of their own, so that nobody waits.
LAG_MS = 60_000
RECORD = re.compile(r"\| offset: (\d+) .* key: (\w+) payload: (\w+)")
#: What a partition has beside its segments.
LISTED = {"leader-epoch-checkpoint", "partition.metadata"}


def send(node, topic, pairs, **config):
    """Send keys and values, each a batch of its own; which were refused."""
    producer = Producer({"bootstrap.servers": node.bootstrap, "linger.ms": 0, **config})
    refused = []
    for key, value in pairs:
        producer.produce(
            topic, value, key, on_delivery=lambda error, _: error and refused.append(error)
        )
        assert producer.flush(PATIENCE_SECONDS) == 0
    return refused


def read_all(node, topic):
    """Return offset, key and value of all that a new reader is given."""
    consumer = node.consumer(**{"enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = []
    while (message := consumer.poll(PATIENCE_SECONDS)).error() is None:
        found.append((message.offset(), message.key(), message.value()))
    consumer.close()
    assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
    return found


def clean_offset(node, topic):
    lines = [line.split() for line in node.text("cleaner-offset-checkpoint")[2:]]
    return next((int(offset) for name, _, offset in lines if name == topic), 0)


def active_offset(node, topic):
    """Return where the active segment begins: up to there a log can be clean."""
    return max(int(name[:-4]) for name in node.files(f"{topic}-0") if name.endswith(".log"))


def cleaned(node, topic, **more):
    """Fill a topic with the newest of ten keys many times over; wait until all of it is clean."""
    node.create(topic, **TOPIC, **more)
    sent = [(b"key %d" % (n % 10), b"%d" % n + VALUE) for n in range(100)]
    assert send(node, topic, sent) == []
    until(lambda: clean_offset(node, topic) == active_offset(node, topic) > 60)
    return [(offset, *pair) for offset, pair in enumerate(sent)]


def test_of_each_key_the_newest_is_left(book):
    """CMP-01, CMP-03, CMP-06, CMP-09, CMP-10, RET-01, LOG-12, BRK-12, MSG-09, DSK-08."""
    node = book(EAGER)
    sent = cleaned(node, "preise")
    found = read_all(node, "preise")
    end = clean_offset(node, "preise")
    newest = {key: offset for offset, key, _ in sent if offset < end}
    assert found == [each for each in sent if each[0] >= end or newest[each[1]] == each[0]]
    assert 10 <= len(found) < 50
    assert node.files("preise-0")[0] == "00000000000000000000.index"


def test_a_restart_goes_on_from_the_checkpoint(book):
    """CMP-09: what was cleaned stays so, is not cleaned again, and is written and read on."""
    node = book(EAGER)
    cleaned(node, "preise")
    before, file = read_all(node, "preise"), node.segment("preise").stat().st_ino
    node.broker.stop()
    node.broker.start()
    node.connect()
    assert read_all(node, "preise")[-10:] == before[-10:]
    assert send(node, "preise", [(b"key 0", b"last")]) == []
    assert read_all(node, "preise")[-1] == (100, b"key 0", b"last")
    # Nothing that is due waits for another topic that becomes so later.
    cleaned(node, "andere")
    assert node.segment("preise").stat().st_ino == file


def test_a_tombstone_takes_its_key_and_goes_itself(book):
    """CMP-11."""
    node = book(EAGER)
    node.create("preise", delete_retention_ms=100, **TOPIC)
    assert send(node, "preise", [(b"gone", b"1"), (b"stays", b"2"), (b"gone", None)]) == []
    filling = [(b"other", VALUE)] * 40

    def is_gone():
        send(node, "preise", filling)
        return b"gone" not in {key for _, key, _ in read_all(node, "preise")}

    until(is_gone)
    assert (1, b"stays", b"2") in read_all(node, "preise")


def test_a_record_without_a_key_is_refused(book):
    """CMP-02."""
    node = book(EAGER)
    node.create("preise", **TOPIC)
    (error,) = send(node, "preise", [(None, b"1")])
    assert error.name() == "INVALID_RECORD"


@pytest.mark.java
@pytest.mark.slow
def test_cmp_02_javas_console_is_told_why_a_record_without_a_key_is_refused(book):
    """§2.13; today's client shows the reason of the single record."""
    if reason := nodes.java_missing():
        pytest.skip(reason)
    node = book(EAGER)
    node.create("compaction-test", 3, cleanup_policy="compact")
    named = ("--bootstrap-server", node.bootstrap, "--topic", "compaction-test")
    told = nodes.kafka_tool("kafka-console-producer", *named, text="M1\n")
    said = told.stdout + told.stderr
    assert "topic compaction-test with key: null, value: 2 bytes with error" in said, said
    assert "InvalidRecordException: Compacted topic cannot accept message without key" in said, said


def test_cmp_07_the_books_seventh_key(book):
    """§2.13: a new message rolls what is older than the lag; what is rolled is cleaned."""
    node = book(EAGER)
    node.create("compaction-test", 3, cleanup_policy="compact")
    now_ms = round(time.time() * 1000)
    for number in range(1, 9):
        send_at(node, f"K{number}", f"M{number}", now_ms - 10 * LAG_MS)
    assert dumped(node, 0) == [(0, "K7", "M7")]
    send_at(node, "K7", "M9", now_ms - 9 * LAG_MS)
    assert dumped(node, 0) == [(0, "K7", "M7"), (1, "K7", "M9")]
    node.set("compaction-test", "max.compaction.lag.ms", str(LAG_MS))
    send_at(node, "K7", "M10", now_ms - 5 * LAG_MS)
    until(lambda: dumped(node, 0) == [(1, "K7", "M9")])
    assert dumped(node, 2) == [(2, "K7", "M10")]
    until(lambda: listing(node) == LISTED | segment_files(0) | segment_files(2, "snapshot"))
    send_at(node, "K7", "M11", now_ms)
    send_at(node, "K7", "M12", now_ms + 1)
    until(lambda: listing(node) == LISTED | segment_files(0) | segment_files(3, "snapshot"))
    assert dumped(node, 3) == [(3, "K7", "M11"), (4, "K7", "M12")]
    assert dumped(node, 0) == [(2, "K7", "M10")]
    assert [each[0] for each in read_all(node, "compaction-test")] == [2, 3, 4]


def send_at(node, key, value, time_ms):
    """Send one message of that time, to the partition that Java's clients choose for its key."""
    producer = Producer({"bootstrap.servers": node.bootstrap, "partitioner": "murmur2_random"})
    refused = []
    producer.produce(
        "compaction-test",
        value,
        key,
        timestamp=time_ms,
        on_delivery=lambda error, _: error and refused.append(error),
    )
    assert producer.flush(PATIENCE_SECONDS) == 0
    assert refused == []


def dumped(node, base):
    """Offset, key and value of what a dump shows of a segment of the first partition."""
    path = str(node.segment("compaction-test", base))
    found = []
    # For a moment it is not there, when a clean one takes its place.
    with suppress(FileNotFoundError):
        found = [RECORD.search(line) for line in dump_lines(path, with_records=True)]
    return [(int(each[1]), each[2], each[3]) for each in found if each]


def listing(node):
    return set(node.files("compaction-test-0"))


def segment_files(base, *more):
    return {f"{base:020d}.{suffix}" for suffix in ("index", "log", "timeindex", *more)}


@pytest.mark.java
@pytest.mark.slow
def test_kafka_reads_what_was_cleaned(book):
    """CMP-08: the files are Kafka's own, records and indexes."""
    if reason := nodes.java_missing():
        pytest.skip(reason)
    node = book(EAGER)
    cleaned(node, "preise", compression_type="zstd")
    segment = node.segment("preise")
    told = nodes.kafka_tool(
        "kafka-dump-log",
        "--files",
        f"{segment},{segment.with_suffix('.index')}",
        "--deep-iteration",
    )
    assert told.returncode == 0, told.stderr
    assert "isvalid: true" in told.stdout
    assert "isvalid: false" not in told.stdout
    assert "Found" not in told.stdout


def test_metrics_tell_of_the_cleaner(book):
    """MON-01: what a Kafka operator looks at."""
    node = book(EAGER)
    cleaned(node, "preise")
    with urllib.request.urlopen(node.broker.metrics_url) as answer:
        lines = dict(
            line.rsplit(" ", 1) for line in answer.read().decode().splitlines() if line[0] != "#"
        )
    assert float(lines["kafka_log_logcleanermanager_uncleanable_partitions_count"]) == 0
    assert "kafka_log_logcleanermanager_max_dirty_percent" in lines
    assert "kafka_log_logcleanermanager_time_since_last_run_ms" in lines


def test_a_damaged_log_is_left_alone_and_counted(book):
    """CMP-08: what cannot be read is not written anew."""
    node = book(EAGER | {"log.cleaner.backoff.ms": "500"})
    node.create("preise", **TOPIC)
    assert send(node, "preise", [(b"k", VALUE)] * 10) == []
    with node.segment("preise").open("r+b") as file:
        file.seek(300)
        file.write(b"V")
    assert send(node, "preise", [(b"k", VALUE)] * 40) == []
    cleaning = node.broker.broker.parts.metrics

    def count():
        return {each.name: each.read() for each in cleaning._gauges}[
            "kafka_log_logcleanermanager_uncleanable_partitions_count"
        ]

    until(lambda: count() == 1)
    assert clean_offset(node, "preise") == 0


def test_a_topic_goes_and_comes_back_while_it_is_cleaned(book):
    """TOP-06: nothing of the old one gets into the new one, and a stop waits for no cleaner."""
    # So slow that it is seen at work, however the test is held up.
    node = book(EAGER | {"log.cleaner.io.max.bytes.per.second": "400000"})
    node.create("preise", **TOPIC)
    assert send(node, "preise", [(b"k%d" % n, VALUE) for n in range(100)]) == []
    until(lambda: any(each.endswith(".cleaned") for each in node.files("preise-0")))
    node.delete("preise")
    node.set("1", "log.cleaner.io.max.bytes.per.second", "1e12", ConfigResource.Type.BROKER)
    node.create("preise", **TOPIC)
    assert send(node, "preise", [(b"k", b"new")]) == []
    assert read_all(node, "preise") == [(0, b"k", b"new")]
    assert send(node, "preise", [(b"k", VALUE)] * 40) == []
    until(lambda: clean_offset(node, "preise") > 0)
    assert node.broker.broker.parts.replicas.is_complete
