"""STR-13: a streaming write is killed, again and again, and every row is there once.

Drivers, workers and the broker are killed while a task is held at a known point: before it writes,
between its write and its commit, and between its commit and Spark's knowing of it. An orphan is a
worker whose driver was killed and which is let go then: it was given up, and tries to commit all
the same.

`make soak` goes on for as long as it is given, `STROM_KILLS=100` until so many drivers and workers
were killed. `--log-cli-level=INFO` tells how many there were of each kind.
"""

import logging
import os
import random
import shutil
import signal
import time
from collections import Counter

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests import nodes

pytest.importorskip("pyspark", reason="PySpark is not installed")

from tests.patience import until
from tests.spark import crashing
from tests.spark.killing import PATIENCE_SECONDS, Query, is_forked_with_all_loaded, parent_of

ROWS_PER_ROUND = 600
FROM, TO = "from", "to"
#: Where a task is held, and what is killed then; half of them between write and commit. A new life
#: of the query takes longest, so there is one.
ROUNDS = [
    ("written", "worker"),
    ("begun", "worker"),
    ("committed", "worker"),
    ("written", "broker"),
    ("committed", "broker"),
    ("written", "orphan"),
]
#: For those who have the time: all of them, in an order that chance gives, again and again.
MORE_ROUNDS = [
    *ROUNDS,
    ("written", "worker"),
    ("committed", "driver"),
    ("written", "driver"),
    ("begun", "orphan"),
    ("written", "broker"),
]
TEST_SECONDS_MAX = 1200
KILL_SECONDS_MAX = 120
SOAK_SECONDS = float(os.environ.get("STROM_SOAK_SECONDS", "0"))
KILLS_WANTED = int(os.environ.get("STROM_KILLS", "0"))

_log = logging.getLogger(__name__)


class Case:
    """Broker, query and the rows between them."""

    def __init__(self):
        self._directory = nodes.new_directory("exactly-once-crash")
        self.broker = nodes.StromProcess(self._directory / "broker")
        where = self.broker.bootstrap, FROM, TO, self._directory
        self.query = Query(self._directory, "tests.spark.crashing", *where)
        self.sent = 0

    def start(self):
        self.broker.start()
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        topics = [NewTopic(name, crashing.PARTITIONS, 1) for name in (FROM, TO)]
        for created in admin.create_topics(topics).values():
            created.result(PATIENCE_SECONDS)
        self.query.start()
        return self

    def remove(self):
        self.query.remove()
        self.broker.remove()
        shutil.rmtree(self._directory, ignore_errors=True)

    def send(self, count):
        producer = Producer({"bootstrap.servers": self.broker.bootstrap})
        for number in range(self.sent, self.sent + count):
            producer.produce(FROM, b"%d" % number, b"%d" % number)
        assert producer.flush(PATIENCE_SECONDS) == 0
        self.sent += count

    def round(self, phase, victim, chance):
        """Kill a victim while a task is held at the phase."""
        self.send(ROWS_PER_ROUND)
        held = self.query.hold(phase)
        worker = int(held.name.rpartition("-")[2])
        assert is_forked_with_all_loaded(worker)
        match victim:
            case "worker":
                os.kill(worker, signal.SIGKILL)
                held.unlink()
            case "driver" | "orphan":
                if victim == "orphan":
                    # Who started the worker would take it along.
                    os.kill(parent_of(worker), signal.SIGSTOP)
                self.query.kill_driver()
                if chance.random() < 0.5:
                    held.unlink()
                self.query.start()
                held.unlink(missing_ok=True)
            case "broker":
                self.broker.end(signal.SIGKILL)
                held.unlink()
                self.broker.start()

    def seen(self):
        """The numbers that a reader of committed records gets, as far as they go now."""
        settings = {"bootstrap.servers": self.broker.bootstrap, "group.id": "judge"}
        consumer = Consumer(
            settings | {"isolation.level": "read_committed", "enable.partition.eof": "true"}
        )
        try:
            consumer.assign([TopicPartition(TO, each, 0) for each in range(crashing.PARTITIONS)])
            found, ends = [], 0
            while ends < crashing.PARTITIONS:
                each = consumer.poll(PATIENCE_SECONDS)
                assert each is not None
                if each.error() is None:
                    found.append(int(each.value()))
                else:
                    ends += 1
            return found
        finally:
            consumer.close()

    def judge(self):
        """See that all rows come, and that none has come twice."""

        def all_there():
            self.query.check_alive()
            found = self.seen()
            return found if len(found) >= self.sent else None

        found = until(all_there, told=self.query.log, seconds=PATIENCE_SECONDS)
        assert sorted(found) == list(range(self.sent))

    def story(self):
        return (self.query.directory / "story").read_text().split()


@pytest.fixture
def case():
    if reason := nodes.java_missing():
        pytest.skip(reason)
    made = Case()
    try:
        yield made.start()
    finally:
        made.remove()


def of_the_query(kills):
    """How many drivers and workers were killed."""
    return sum(count for (_, victim), count in kills.items() if victim != "broker")


def split(kills):
    """How many kills there were of each kind, in words."""
    by_phase = Counter(phase for phase, _ in kills.elements())
    by_victim = Counter(victim for _, victim in kills.elements())
    kinds = sorted(kills.items())
    return {
        "kills": kills.total(),
        **by_phase,
        **by_victim,
        **{f"{victim}, {phase}": count for (phase, victim), count in kinds},
    }


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.soak
@pytest.mark.timeout(TEST_SECONDS_MAX + 2 * SOAK_SECONDS + KILL_SECONDS_MAX * KILLS_WANTED)
def test_a_query_that_is_killed_leaves_each_row_once(case):
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    deadline = time.monotonic() + SOAK_SECONDS
    kills = Counter()
    rounds = ROUNDS
    while not kills or of_the_query(kills) < KILLS_WANTED or time.monotonic() < deadline:
        for phase, victim in rounds:
            case.round(phase, victim, chance)
            kills[phase, victim] += 1
        case.judge()
        _log.info("%d rows judged, kills: %s", case.sent, split(kills))
        rounds = chance.sample(MORE_ROUNDS, len(MORE_ROUNDS))
    assert of_the_query(kills) >= KILLS_WANTED
    written = sum(count for (phase, _), count in kills.items() if phase == "written")
    assert 2 * written >= kills.total()
    # Nobody who is left of an earlier life may add anything any more.
    case.query.remove()
    assert len(case.seen()) == case.sent
    skipped = case.story().count("skipped")
    assert skipped
    _log.info(
        "seed %d, %d rows, %d tasks skipped, kills: %s", seed, case.sent, skipped, split(kills)
    )
