"""What the book shows of a broker's files: which there are, how they grow, and when they go.

Rows are named at each test; docs/requirements.md has the table of all.
"""

import errno
import os
import re
import threading

import pytest
from confluent_kafka import TopicPartition

from strom.broker.broker import StorageLostError
from strom.broker.host import Host
from strom.log.disk import RealDisk, RealFile
from tests.conformance.batches import NOW_MS, batch, headers
from tests.conformance.book import SOON, Book, answered, produce_one
from tests.conformance.clients import Confluent, Sent
from tests.conformance.raw import Raw
from tests.patience import PATIENCE_SECONDS, until

CHECKPOINTS = [
    "cleaner-offset-checkpoint",
    "log-start-offset-checkpoint",
    "meta.properties",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
]
#: Beside what the book shows: the log of the metadata (KRaft), and the lock.
KRAFT = [".lock", "__cluster_metadata-0", "bootstrap.checkpoint"]


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
    until(lambda: node.text("replication-offset-checkpoint") == ["0", "3", *noted])
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
    # Both in one batch: nothing is sent before all of it was given.
    Confluent.send(node.bootstrap, "datei-struktur", two, "none", **{"linger.ms": 60_000})
    assert node.send("datei-struktur", b"M4", key=b"k1") == [(0, 3)]
    data = node.segment("datei-struktur").read_bytes()
    assert [each.size for each in headers(data)] == [70, 80, 72]
    assert len(data) == 222
    expected = ["0", "1", "datei-struktur 0 4"]
    until(lambda: node.text("replication-offset-checkpoint") == expected)


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

    until(lambda: len(waiting()) == 3)
    rescued = [name for name in waiting() if node.files(name)[0].endswith(".index")]
    assert len(rescued) == 3
    assert [name for name in node.files() if name not in waiting()] == sorted(CHECKPOINTS + KRAFT)


def test_what_was_deleted_goes_also_when_the_broker_was_stopped_meanwhile(strom_brokers, tmp_path):
    """DSK-18: nobody else would remove it. What the cluster never knew is kept apart instead."""
    first = Book(strom_brokers(directory=tmp_path))
    first.create("weg")
    first.delete("weg")
    until(lambda: any(name.endswith("-delete") for name in first.files()))
    first.broker.stop()
    (tmp_path / "fremd-0").mkdir()
    (tmp_path / "fremd-0" / f"{0:020d}.log").write_bytes(batch([b"x"]))
    second = Book(strom_brokers(SOON, directory=tmp_path))
    until(lambda: not any(name.endswith("-delete") for name in second.files()))
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
    until(lambda: node.files("retention-test-0") == left)
    until(lambda: node.text("recovery-point-offset-checkpoint")[2:] == ["retention-test 0 4"])
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
    until(lambda: consumer.get_watermark_offsets(partition) == (2, 2))
    node.set("flugdaten", setting, "-1")
    assert node.send("flugdaten", b"drei") == [(0, 2)]
    assert node.read("flugdaten", 1, offset=2) == [b"drei"]
    assert consumer.get_watermark_offsets(partition) == (2, 3)
    consumer.close()


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
    if fails:
        # It was the only directory, and the metadata log is in it.
        with pytest.raises(StorageLostError, match="the log directories failed that are needed"):
            node.broker.stop()


def test_flush_ms_flushes_by_the_clock(book):
    """BRK-11, DSK-06: and the recovery point says how far."""
    intervals = ("log.flush.scheduler.interval.ms", "log.flush.offset.checkpoint.interval.ms")
    node = book(dict.fromkeys(intervals, "20"))
    node.create("flugdaten", flush_ms=10)
    node.send("flugdaten", b"eins", b"zwei")
    expected = ["0", "1", "flugdaten 0 2"]
    until(lambda: node.text("recovery-point-offset-checkpoint") == expected)


def test_deleted_records_are_noted_where_the_log_begins(book):
    """DSK-07."""
    node = book({"log.flush.start.offset.checkpoint.interval.ms": "20"})
    node.create("flugdaten")
    node.send("flugdaten", b"eins", b"zwei", b"drei")
    place = TopicPartition("flugdaten", 0, 2)
    (future,) = node.admin.delete_records([place]).values()
    assert future.result().low_watermark == 2
    expected = ["0", "1", "flugdaten 0 2"]
    until(lambda: node.text("log-start-offset-checkpoint") == expected)


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
    assert sum(consumer.get_watermark_offsets(each)[1] for each in places) == 8
    consumer.close()
