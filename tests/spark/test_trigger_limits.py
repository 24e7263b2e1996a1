"""How much a stream's micro-batch waits for, as `minOffsetsPerTrigger` and its company say."""

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from strom.spark import reader
from strom.spark.options import ReadOptions
from strom.spark.reader import StreamReader
from tests.spark.scripted import TOPIC, Cluster, serving

DELAY_MS = 3_600_000


class Stream:
    """A stream over one partition, with a clock of the test's."""

    def __init__(self, cluster, **options):
        servers = ",".join(f"{host}:{port}" for host, port in cluster.addresses)
        given = {"kafka.bootstrap.servers": servers, "subscribe": TOPIC, "maxTriggerDelay": "1h"}
        self._cluster = cluster
        self._reader = StreamReader(ReadOptions.parse({**given, **options}, streaming=True))

    def end_after(self, at, end):
        """Return where a micro-batch from `at` on ends, when the partition does so there."""
        # Without a query's name nothing is committed: these brokers know of no groups.
        start = {TOPIC: {"0": at}}
        self._cluster.offsets = [end]
        limit = self._reader.getDefaultReadLimit()
        return self._reader.latestOffset(start, limit)[TOPIC]["0"]

    def stop_at_what_is_there(self):
        self._reader.prepareForTriggerAvailableNow()


@pytest.fixture
def clock(monkeypatch):
    """The time in milliseconds, which a test moves on."""
    time = [5000]
    monkeypatch.setattr(reader, "now_ms", lambda: time[0])
    return time


@pytest.fixture
def cluster():
    with serving(Cluster(0)) as found:
        yield found


def test_a_micro_batch_waits_for_enough_or_for_its_time(cluster, clock):
    stream = Stream(cluster, minOffsetsPerTrigger="10")
    assert stream.end_after(0, 3) == 3, "the first one does not wait"
    assert stream.end_after(3, 12) == 3
    assert stream.end_after(3, 13) == 13
    clock[0] += DELAY_MS - 1
    assert stream.end_after(13, 14) == 13
    clock[0] += 1
    assert stream.end_after(13, 14) == 14


def test_a_micro_batch_that_waited_takes_no_more_than_its_share(cluster, clock):
    stream = Stream(cluster, minOffsetsPerTrigger="10", maxOffsetsPerTrigger="20")
    assert stream.end_after(0, 100) == 20
    assert stream.end_after(20, 29) == 20
    assert stream.end_after(20, 100) == 40


def test_who_reads_what_is_there_and_ends_does_not_wait(cluster, clock):
    stream = Stream(cluster, minOffsetsPerTrigger="10", maxOffsetsPerTrigger="20")
    stream.stop_at_what_is_there()
    assert stream.end_after(0, 25) == 20
    assert stream.end_after(20, 99) == 25
    assert stream.end_after(25, 99) == 25
