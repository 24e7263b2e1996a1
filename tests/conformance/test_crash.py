"""A broker that is killed under load: what it acknowledged is there when it is back, and nothing
that was not sent.

The process is killed, not the machine, so what was written but not flushed survives as well; the
tests of the log lose that too, on a disk that forgets. Rows: BRK-11, DSK, ACK-02.
"""

import contextlib
import os
import random
import signal
import subprocess
import time

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.conformance.raw import Raw
from tests.patience import PATIENCE_SECONDS

SEED = int(os.environ.get("STROM_CRASH_SEED", "4711"))
ROUNDS = 3
SOAK_SECONDS = float(os.environ.get("STROM_SOAK_SECONDS", "0"))
PARTITIONS = 2


class Load:
    """A producer that notes what it sent, and what was acknowledged, and where."""

    def __init__(self, topic):
        self.topic = topic
        self.acknowledged = {}
        #: Each with its partition.
        self.sent = set()

    def note(self, error, message):
        if error is None:
            self.acknowledged[message.partition(), message.offset()] = message.value()

    def run_until(self, process, count):
        """Send until so many more are acknowledged; then kill the broker with others under way."""
        producer = Producer(
            {
                "bootstrap.servers": process.bootstrap,
                "acks": "all",
                "linger.ms": 1,
                "compression.type": random.Random(count).choice(["none", "lz4", "zstd"]),
                "batch.num.messages": 50,
                "message.timeout.ms": 20000,
                "log_level": 0,
            }
        )
        goal = len(self.acknowledged) + count
        while len(self.acknowledged) < goal:
            number = len(self.sent)
            partition, value = number % PARTITIONS, b"%d" % number
            self.sent.add((partition, value))
            producer.produce(self.topic, value, partition=partition, on_delivery=self.note)
            producer.poll(0)
            while len(producer) > 5000:
                producer.poll(0.01)
        process.kill()
        producer.purge()
        producer.flush(5)


def read_all(process, topic):
    """Everything that is served, by partition and offset, checked by the client's checksums."""
    consumer = Consumer(
        {
            "bootstrap.servers": process.bootstrap,
            "group.id": "none",
            "enable.auto.commit": False,
            "check.crcs": True,
            "log_level": 0,
        }
    )
    places = [TopicPartition(topic, n, 0) for n in range(PARTITIONS)]
    missing = sum(consumer.get_watermark_offsets(each)[1] for each in places)
    consumer.assign(places)
    found = {}
    while len(found) < missing:
        batch = consumer.consume(min(10000, missing - len(found)), PATIENCE_SECONDS)
        assert batch, f"{missing - len(found)} records are not served"
        for each in batch:
            assert each.error() is None, each.error()
            found[each.partition(), each.offset()] = each.value()
    consumer.close()
    return found


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("flush", [1, 2**63 - 1], ids=["every batch flushed", "never flushed"])
def test_what_was_acknowledged_outlives_a_kill(broker_process, flush):
    seed = time.time_ns() if SOAK_SECONDS else SEED
    dice = random.Random(seed)
    process = broker_process()
    admin = AdminClient({"bootstrap.servers": process.bootstrap, "log_level": 0})
    config = {"flush.messages": str(flush), "segment.bytes": "1048576"}
    admin.create_topics([NewTopic("crash", PARTITIONS, 1, config=config)])["crash"].result()
    load, rounds, end = Load("crash"), 0, time.monotonic() + SOAK_SECONDS / 2
    while rounds < ROUNDS or time.monotonic() < end:
        load.run_until(process, dice.randint(1, 20000))
        process.start()
        found = read_all(process, "crash")
        lost = {place for place in load.acknowledged if place not in found}
        assert not lost, f"seed {seed}: {len(lost)} acknowledged records are gone"
        wrong = [p for p, value in load.acknowledged.items() if found[p] != value]
        assert not wrong, f"seed {seed}: {len(wrong)} records are not what was sent"
        served = {(partition, value) for (partition, _), value in found.items()}
        assert served <= load.sent, f"seed {seed}: nobody sent {sorted(served - load.sent)[:5]}"
        rounds += 1
    process.stop()


def test_a_clean_stop_answers_and_leaves_its_marker(broker_process):
    process = broker_process()
    producer = Producer({"bootstrap.servers": process.bootstrap})
    producer.produce("kept", b"value")
    assert producer.flush(PATIENCE_SECONDS) == 0
    assert process.end(signal.SIGTERM) == 0
    assert (process.directory / ".kafka_cleanshutdown").exists()
    process.start()
    assert process.end(signal.SIGINT) == 0


def test_a_second_signal_ends_it_at_once(broker_process):
    process = broker_process()
    with Raw(process.bootstrap) as deaf:
        # Answers that nobody reads are something to wait for at a stop.
        deaf.send_bytes(deaf.encode("api_versions", 4, {}) * 20_000)
        process.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while "Stopping" not in process.log() and time.monotonic() < deadline:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.process.wait(0.01)
        # Had it waited for those answers, its end would have been a clean one.
        assert process.end(signal.SIGTERM) == 130
    assert not (process.directory / ".kafka_cleanshutdown").exists()


def test_a_second_process_is_kept_out(broker_process):
    first = broker_process()
    with pytest.raises(AssertionError, match="another process uses"):
        broker_process(log_dirs=first.directory)


def write(process, topic, *values):
    producer = Producer({"bootstrap.servers": process.bootstrap, "acks": "all", "log_level": 0})
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(PATIENCE_SECONDS) == 0


def test_a_topic_made_anew_keeps_its_records_through_a_kill(broker_process):
    """What was noted of the deleted one of its name, its start above all, is not taken for it."""
    process = broker_process()
    admin = AdminClient({"bootstrap.servers": process.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic("anew", 1, 1)])["anew"].result(PATIENCE_SECONDS)
    write(process, "anew", b"a", b"b", b"c", b"d")
    (cut,) = admin.delete_records([TopicPartition("anew", 0, 3)]).values()
    cut.result(PATIENCE_SECONDS)
    process.stop()
    assert "anew 0 3" in (process.directory / "log-start-offset-checkpoint").read_text()
    process.start()
    admin.delete_topics(["anew"])["anew"].result(PATIENCE_SECONDS)
    admin.create_topics([NewTopic("anew", 1, 1)])["anew"].result(PATIENCE_SECONDS)
    write(process, "anew", b"e", b"f")
    process.kill()
    process.start()
    consumer = Consumer({"bootstrap.servers": process.bootstrap, "group.id": "none"})
    assert consumer.get_watermark_offsets(TopicPartition("anew", 0)) == (0, 2)
    consumer.close()
