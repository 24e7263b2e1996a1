"""What the book shows on one node, step by step, and the defaults that it names.

Rows are named at each test; docs/requirements.md has the table of all.
"""

import errno
import os
import re
import threading
import time

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
)

from strom.broker.host import Host
from strom.log.disk import RealDisk, RealFile
from tests import nodes
from tests.conformance.batches import NOW_MS, batch, headers
from tests.conformance.clients import CODECS, Confluent, Sent
from tests.conformance.raw import Raw

PATIENCE_SECONDS = 20
SOON = {"log.retention.check.interval.ms": "20", "log.segment.delete.delay.ms": "1"}
CHECKPOINTS = [
    "cleaner-offset-checkpoint",
    "log-start-offset-checkpoint",
    "meta.properties",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
]
#: Beside what the book shows: the log of the metadata (KRaft), and the lock.
KRAFT = [".lock", "__cluster_metadata-0", "bootstrap.checkpoint"]


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

    def set(self, topic, name, value):
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
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

    def until(self, condition):
        """Wait for it; the questions in between keep this from being a busy loop."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        with Raw(self.bootstrap) as raw:
            while not condition():
                assert time.monotonic() < deadline, "it never came to be"
                raw.ask("metadata", 12, {"topics": []})


@pytest.fixture
def book(strom_brokers):
    """A maker of books; the settings are those of the broker."""

    def make(settings=None, **options):
        return Book(strom_brokers(settings, **options))

    return make


def segment_files(base, *more):
    return [f"{base:020d}{each}" for each in (".index", ".log", *more, ".timeindex")]


PARTITION = ["leader-epoch-checkpoint", "partition.metadata"]


def test_the_directory_of_a_new_broker(book):
    """DSK-01, DSK-02, DSK-03, DSK-04, DSK-09, DSK-10, DSK-12, TOP-15, §2.10."""
    node = book({"replica.high.watermark.checkpoint.interval.ms": "10"})
    assert node.files() == sorted(CHECKPOINTS + KRAFT)
    for name in CHECKPOINTS:
        if name != "meta.properties":
            assert node.text(name) == ["0", "0"]
    meta = dict(line.split("=") for line in node.text("meta.properties") if "=" in line)
    assert (meta["node.id"], meta["version"]) == ("1", "1")
    assert re.fullmatch(r"\S{22}", meta["cluster.id"])
    node.create("datei-struktur", 3)
    noted = [f"datei-struktur {n} 0" for n in range(3)]
    node.until(lambda: node.text("replication-offset-checkpoint") == ["0", "3", *noted])
    partitions = [f"datei-struktur-{n}" for n in range(3)]
    assert node.files() == sorted(CHECKPOINTS + KRAFT + partitions)
    for each in partitions:
        assert node.files(each) == segment_files(0) + PARTITION
    assert node.text("datei-struktur-0/leader-epoch-checkpoint") == ["0", "1", "0 0"]


def test_batches_have_the_sizes_of_the_book(book):
    """BRK-01, MSG-14, PRO-02, LOG-02, DSK-05, DSK-11, §2.10: 70, 80, 72 from a real client."""
    node = book({"replica.high.watermark.checkpoint.interval.ms": "10"})
    node.create("datei-struktur")
    assert node.send("datei-struktur", b"M1") == [(0, 0)]
    two = [Sent(None, b"M2", (), NOW_MS), Sent(None, b"M3", (), NOW_MS + 100)]
    Confluent.send(node.bootstrap, "datei-struktur", two, "none")
    assert node.send("datei-struktur", b"M4", key=b"k1") == [(0, 3)]
    data = node.segment("datei-struktur").read_bytes()
    assert [each.size for each in headers(data)] == [70, 80, 72]
    assert len(data) == 222
    expected = ["0", "1", "datei-struktur 0 4"]
    node.until(lambda: node.text("replication-offset-checkpoint") == expected)


def test_segments_roll_when_a_message_arrives(book):
    """DSK-10, DSK-11, DSK-15, DSK-16, §2.10: by age, and only then; by size too."""
    node = book()
    node.create("datei-struktur")
    old = [Sent(None, b"M%d" % n, (), NOW_MS) for n in range(3)]
    Confluent.send(node.bootstrap, "datei-struktur", old, "none")
    node.set("datei-struktur", "retention.ms", "-1")
    node.set("datei-struktur", "segment.ms", "60000")
    assert node.files("datei-struktur-0") == segment_files(0) + PARTITION
    node.send("datei-struktur", b"M10", b"M11")
    rolled = segment_files(0) + segment_files(3, ".snapshot")
    assert node.files("datei-struktur-0") == rolled + PARTITION
    node.set("datei-struktur", "segment.bytes", "1048576")
    node.send("datei-struktur", *[b"x" * 400_000] * 3)
    rolled += segment_files(7, ".snapshot")
    assert node.files("datei-struktur-0") == rolled + PARTITION


def test_a_deleted_topic_waits_a_while_under_another_name(book):
    """DSK-18, TOP-06, §2.10: its directories are renamed, and go when their time is up."""
    node = book()
    node.create("datei-struktur", 3)
    node.send("datei-struktur", b"M1")
    node.delete("datei-struktur")
    renamed = re.compile(r"datei-struktur-\d\.[0-9a-f]{32}-delete")

    def waiting():
        return [name for name in node.files() if renamed.fullmatch(name)]

    node.until(lambda: len(waiting()) == 3)
    rescued = [name for name in waiting() if node.files(name)[0].endswith(".index")]
    assert len(rescued) == 3
    assert [name for name in node.files() if name not in waiting()] == sorted(CHECKPOINTS + KRAFT)


def test_what_was_deleted_goes_also_when_the_broker_was_stopped_meanwhile(strom_brokers, tmp_path):
    """DSK-18: nobody else would remove it. What the cluster never knew is kept apart instead."""
    first = Book(strom_brokers(directory=tmp_path))
    first.create("weg")
    first.delete("weg")
    first.until(lambda: any(name.endswith("-delete") for name in first.files()))
    first.broker.stop()
    (tmp_path / "fremd-0").mkdir()
    (tmp_path / "fremd-0" / f"{0:020d}.log").write_bytes(batch([b"x"]))
    second = Book(strom_brokers(SOON, directory=tmp_path))
    second.until(lambda: not any(name.endswith("-delete") for name in second.files()))
    (stray,) = [name for name in second.files() if name.startswith("fremd-0")]
    assert re.fullmatch(r"fremd-0\.[0-9a-f]{32}-stray", stray)
    assert second.files(stray) == [f"{0:020d}.log"]


def test_retention_takes_the_active_segment_too(book):
    """RET-02, RET-05, RET-06, RET-07, RET-08, DSK-17, DSK-19, DSK-21, §2.12."""
    node = book(SOON)
    node.create("retention-test")
    old = [Sent(None, b"M%d" % n, (), NOW_MS) for n in range(4)]
    node.set("retention-test", "retention.ms", "-1")
    Confluent.send(node.bootstrap, "retention-test", old, "none")
    assert node.files("retention-test-0") == segment_files(0) + PARTITION
    node.set("retention-test", "retention.ms", "60000")
    left = segment_files(4, ".snapshot") + PARTITION
    node.until(lambda: node.files("retention-test-0") == left)
    node.until(lambda: node.text("recovery-point-offset-checkpoint")[2:] == ["retention-test 0 4"])
    assert node.text("retention-test-0/leader-epoch-checkpoint") == ["0", "1", "0 4"]
    assert node.segment("retention-test", 4).stat().st_size == 0
    assert node.send("retention-test", b"M5") == [(0, 4)]
    assert node.read("retention-test", 1, offset=4) == [b"M5"]


@pytest.mark.parametrize("setting", ["retention.ms", "retention.bytes"])
def test_a_topic_is_emptied_by_its_retention(book, setting):
    """TOP-22, RET-03: set to 0 until the topic is empty, then back."""
    node = book(SOON)
    node.create("flugdaten")
    node.send("flugdaten", b"eins", b"zwei")
    node.set("flugdaten", setting, "0")
    partition = TopicPartition("flugdaten", 0)
    consumer = node.consumer()
    node.until(lambda: consumer.get_watermark_offsets(partition, timeout=10) == (2, 2))
    node.set("flugdaten", setting, "-1")
    assert node.send("flugdaten", b"drei") == [(0, 2)]
    assert node.read("flugdaten", 1, offset=2) == [b"drei"]
    assert consumer.get_watermark_offsets(partition, timeout=10) == (2, 3)
    consumer.close()


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
    assert consumer.get_watermark_offsets(TopicPartition("flugdaten", 0), timeout=10) == (0, 3)
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


class WatchedFile(RealFile):
    """A file of which it is known when it was synced."""

    def __init__(self, fd, path, watch):
        super().__init__(fd)
        self.path, self.watch = path, watch

    def sync(self):
        if self.path.endswith(".log") and "flugdaten" in self.path:
            self.watch.on_sync()
        super().sync()


class WatchedDisk(RealDisk):
    """A disk that waits with a sync until it may, or refuses it."""

    def __init__(self):
        self.asked, self.may = threading.Event(), threading.Event()
        self.fails = False

    def on_sync(self):
        self.asked.set()
        assert self.may.wait(PATIENCE_SECONDS)
        if self.fails:
            raise OSError(errno.EIO, "Input/output error")

    def open(self, path, *, create=False):
        file = super().open(path, create=create)
        return WatchedFile(os.dup(file.fileno()), path, self)


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


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize(("fails", "code"), [(False, "none"), (True, "kafka_storage_error")])
def test_flush_messages_makes_the_answer_wait_for_the_disk(book, acks, fails, code):
    """BRK-10, BRK-11, ACK-02: never without it, always with it, and never a lie about it."""
    disk = WatchedDisk()
    node = book({"log.flush.scheduler.interval.ms": "20"}, host=Host(disk=disk))
    node.create("flugdaten")
    with Raw(node.bootstrap) as raw, Raw(node.bootstrap) as other:
        produce_one(raw, "flugdaten", acks)
        assert answered(raw) == "none"
        assert not disk.asked.is_set(), "nobody asked for an fsync"
        node.set("flugdaten", "flush.messages", "1")
        disk.fails = fails
        produce_one(raw, "flugdaten", acks)
        assert disk.asked.wait(PATIENCE_SECONDS)
        # Others are served meanwhile.
        other.ask("metadata", 12, {"topics": []})
        raw.socket.settimeout(0.05)
        with pytest.raises(TimeoutError):
            raw.socket.recv(1)
        raw.socket.settimeout(PATIENCE_SECONDS)
        disk.may.set()
        assert answered(raw) == code


def test_flush_ms_flushes_by_the_clock(book):
    """BRK-11, DSK-06: and the recovery point says how far."""
    intervals = ("log.flush.scheduler.interval.ms", "log.flush.offset.checkpoint.interval.ms")
    node = book(dict.fromkeys(intervals, "20"))
    node.create("flugdaten", flush_ms=10)
    node.send("flugdaten", b"eins", b"zwei")
    expected = ["0", "1", "flugdaten 0 2"]
    node.until(lambda: node.text("recovery-point-offset-checkpoint") == expected)


def test_deleted_records_are_noted_where_the_log_begins(book):
    """DSK-07."""
    node = book({"log.flush.start.offset.checkpoint.interval.ms": "20"})
    node.create("flugdaten")
    node.send("flugdaten", b"eins", b"zwei", b"drei")
    place = TopicPartition("flugdaten", 0, 2)
    (future,) = node.admin.delete_records([place]).values()
    assert future.result().low_watermark == 2
    expected = ["0", "1", "flugdaten 0 2"]
    node.until(lambda: node.text("log-start-offset-checkpoint") == expected)


def test_preallocated_segments_have_their_size_until_they_are_left(book):
    """The setting `preallocate`."""
    node = book()
    node.create("flugdaten", preallocate="true", segment_bytes=1048576)
    node.send("flugdaten", b"M1")
    assert node.segment("flugdaten").stat().st_size == 1048576
    assert node.read("flugdaten", 1) == [b"M1"]
    node.broker.stop()
    assert node.segment("flugdaten").stat().st_size == 70


def test_partitions_are_spread_over_the_log_directories(book, tmp_path):
    """DSK-01: each with files of its own, all of them there again after a restart."""
    paths = [tmp_path / "eins", tmp_path / "zwei"]
    node = book({"log.dirs": ",".join(map(str, paths))})
    node.create("flugdaten", 4)
    held = [sorted(name for name in os.listdir(path) if "flug" in name) for path in paths]
    assert sorted(held[0] + held[1]) == [f"flugdaten-{n}" for n in range(4)]
    assert [len(each) for each in held] == [2, 2]
    for path in paths:
        assert set(CHECKPOINTS) <= set(os.listdir(path))
    node.send("flugdaten", *[b"x"] * 8)
    node.broker.stop()
    node.broker.start()
    node.connect()
    consumer = node.consumer()
    places = [TopicPartition("flugdaten", n) for n in range(4)]
    assert sum(consumer.get_watermark_offsets(each, timeout=10)[1] for each in places) == 8
    consumer.close()


def test_too_few_in_sync_replicas_refuse_acks_all_only(book):
    """PRO-12, PRO-23."""
    node = book()
    node.create("flugdaten", min_insync_replicas=2)
    with Raw(node.bootstrap) as raw:
        produce_one(raw, "flugdaten", acks=-1)
        assert answered(raw) == "not_enough_replicas"
        produce_one(raw, "flugdaten", acks=1)
        assert answered(raw) == "none"


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
