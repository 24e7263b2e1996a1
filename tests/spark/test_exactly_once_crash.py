"""STR-13: a streaming write is killed, again and again, and every row is there once.

Drivers, workers and the broker are killed while a task is held at a known point: before it writes,
between its write and its commit, and between its commit and Spark's knowing of it. An orphan is a
worker whose driver was killed and which is let go then: it was given up, and tries to commit all
the same.

`make soak` goes on for as long as it is given.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests import nodes

pytest.importorskip("pyspark", reason="PySpark is not installed")

from tests.spark import crashing

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 120
POLL_SECONDS = 0.05
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
#: For those who have the time.
MORE_ROUNDS = [
    *ROUNDS,
    ("written", "worker"),
    ("committed", "driver"),
    ("written", "driver"),
    ("begun", "orphan"),
    ("written", "broker"),
]
TEST_SECONDS_MAX = 1200
SOAK_SECONDS = float(os.environ.get("STROM_SOAK_SECONDS", "0"))


def wait_until(condition, what):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := condition()):
        assert time.monotonic() < deadline, what()
        threading.Event().wait(POLL_SECONDS)
    return found


def status_of(pid):
    """State, parent, group, session and more, as the system tells them of a process."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()


def parent_of(pid):
    return int(status_of(pid)[1])


class Query:
    """The query's processes, which may be killed and started again."""

    def __init__(self, directory, bootstrap):
        self.directory = directory
        self._bootstrap = bootstrap
        self._driver = None
        self._sessions = []

    def start(self):
        java = subprocess.run(
            [sys.executable, nodes.PEER, "java"], check=True, capture_output=True, text=True
        )
        environment = os.environ | {
            "JAVA_HOME": java.stdout.strip(),
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
            crashing.DIRECTORY: str(self.directory),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(self.directory),
        }
        command = [sys.executable, "-m", "tests.spark.crashing"]
        with open(self.directory / "driver.log", "ab") as log:
            self._driver = subprocess.Popen(
                [*command, self._bootstrap, FROM, TO, str(self.directory)],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=environment,
                cwd=ROOT,
                start_new_session=True,
            )
        self._sessions.append(self._driver.pid)

    def check_alive(self):
        assert self._driver.poll() is None, self.log()

    def log(self):
        return (self.directory / "driver.log").read_text()[-5000:]

    def kill_driver(self):
        """Kill Python's driver and Java's; the workers of Python live on."""
        os.killpg(self._driver.pid, signal.SIGKILL)
        self._driver.wait(PATIENCE_SECONDS)

    def remove(self):
        """Kill whatever is left of all lives."""
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if int(status_of(path.name)[3]) in self._sessions:
                    os.kill(int(path.name), signal.SIGKILL)
        if self._driver is not None:
            self._driver.wait(PATIENCE_SECONDS)

    def hold(self, phase):
        """Have a task held; return which process it is in."""
        (self.directory / f"hold-{phase}").touch()

        def held():
            self.check_alive()
            return next(self.directory.glob(f"held-{phase}-*"), None)

        return wait_until(held, lambda: f"no task came to be {phase}:\n{self.log()}")


class Case:
    """Broker, query and the rows between them."""

    def __init__(self):
        self._directory = nodes.new_directory("exactly-once-crash")
        self.broker = nodes.StromProcess(self._directory / "broker")
        self.query = Query(self._directory, self.broker.bootstrap)
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

        found = wait_until(all_there, lambda: f"rows are missing:\n{self.query.log()}")
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


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.soak
@pytest.mark.timeout(TEST_SECONDS_MAX + 2 * SOAK_SECONDS)
def test_a_query_that_is_killed_leaves_each_row_once(case, record_property):
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    deadline = time.monotonic() + SOAK_SECONDS
    for phase, victim in ROUNDS:
        case.round(phase, victim, chance)
    case.judge()
    kills = len(ROUNDS)
    while time.monotonic() < deadline:
        case.round(*chance.choice(MORE_ROUNDS), chance)
        kills += 1
        if kills % 10 == 0:
            case.judge()
    case.judge()
    # Nobody who is left of an earlier life may add anything any more.
    case.query.remove()
    assert len(case.seen()) == case.sent
    skipped = case.story().count("skipped")
    assert skipped
    record_property("seed, kills, rows, skipped", (seed, kills, case.sent, skipped))
