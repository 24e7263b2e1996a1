"""ACK-08, ACK-09, CNT-13: a query into a database is killed around the commit, and goes on.

The database is a real PostgreSQL, the driver a process that gets SIGKILL while one query's
transaction is open and others' are committed without Spark's knowing; then the server is killed
likewise. `make soak` goes on for as long as it is given, `STROM_KILLS=100` until there were so many
kills, of which `--log-cli-level=INFO` tells.
"""

import logging
import os
import random
import shutil
import time
from collections import Counter

import psycopg
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from examples.final_project.database.addresses import WRITER, acting_as
from examples.final_project.database.migrate import migrate
from examples.final_project.database.server import LocalServer
from tests import nodes

pytest.importorskip("pyspark", reason="PySpark is not installed")

from tests.patience import until
from tests.spark.crashing_database import BATCH_ROWS, BY_KEY, TOPICS, WITH_OFFSETS
from tests.spark.killing import PATIENCE_SECONDS, Query

#: The first may be held and killed at the second batch, and there is more to do afterwards.
ROWS_PER_ROUND = 3 * BATCH_ROWS
PHASES = ("written", "committed")
FIRST_ROUND = {"before": "written", "after": "committed", BY_KEY: "committed"}
TEST_SECONDS_MAX = 600
KILL_SECONDS_MAX = 120
SOAK_SECONDS = float(os.environ.get("STROM_SOAK_SECONDS", "0"))
KILLS_WANTED = int(os.environ.get("STROM_KILLS", "0"))

_log = logging.getLogger(__name__)

#: Every write of a row, so that one that is written again is seen.
COUNTED = """
CREATE TABLE public.written (topic text);
GRANT INSERT ON public.written TO flights_writer;
GRANT USAGE ON SCHEMA public TO flights_writer;
CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN INSERT INTO public.written VALUES (NEW.topic); RETURN NULL; END';
CREATE TRIGGER note AFTER INSERT OR UPDATE ON flights.rejected
    FOR EACH ROW EXECUTE FUNCTION public.note();
"""


class Case:
    """Broker, database, queries and the rows between them."""

    def __init__(self, server):
        self._directory = nodes.new_directory("database-crash")
        self._server = server
        self.broker = nodes.StromProcess(self._directory / "broker")
        migrate(server.url())
        where = self.broker.bootstrap, acting_as(server.url(), WRITER), self._directory
        self.query = Query(self._directory, "tests.spark.crashing_database", *where)
        self.sent = 0

    def start(self):
        with psycopg.connect(self._server.url(), autocommit=True) as connection:
            connection.execute(COUNTED)
        self.broker.start()
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        for created in admin.create_topics([NewTopic(each, 1, 1) for each in TOPICS]).values():
            created.result(PATIENCE_SECONDS)
        self.query.start()
        return self

    def remove(self):
        self.query.remove()
        self.broker.remove()
        shutil.rmtree(self._directory, ignore_errors=True)

    def round(self, phases, victim):
        """Kill the driver, or the database, while every query is held at its phase."""
        for topic, phase in phases.items():
            self.query.ask_to_hold(f"{topic}-{phase}")
        self._send()
        held = [self.query.await_held(f"{topic}-{phase}") for topic, phase in phases.items()]
        if victim == "driver":
            self.query.kill_driver()
        else:
            self._server.stop("immediate")
        for each in held:
            each.unlink()
        if victim == "driver":
            self.query.start()
        else:
            self._server.start()

    def _send(self):
        producer = Producer({"bootstrap.servers": self.broker.bootstrap})
        for number in range(self.sent, self.sent + ROWS_PER_ROUND):
            for topic in TOPICS:
                producer.produce(topic, b"%d" % number)
        assert producer.flush(PATIENCE_SECONDS) == 0
        self.sent += ROWS_PER_ROUND

    def ask(self, query, *values):
        with psycopg.connect(self._server.url()) as connection:
            return connection.execute(query, values).fetchall()

    def judge(self):
        """See that every record is in the database, with its value, and was written once."""

        def all_there():
            self.query.check_alive()
            return self.ask("SELECT count(*) FROM flights.rejected") >= [(len(TOPICS) * self.sent,)]

        until(all_there, told=self.query.log, seconds=PATIENCE_SECONDS)
        expected = [(number, str(number)) for number in range(self.sent)]
        query = 'SELECT "offset", text FROM flights.rejected WHERE topic = %s ORDER BY "offset"'
        for topic in TOPICS:
            assert self.ask(query, topic) == expected
        for topic in WITH_OFFSETS:
            assert self.written(topic) == self.sent
        progress = self.ask("SELECT sink, end_offset FROM flights.sink_progress ORDER BY sink")
        assert progress == [(topic, self.sent) for topic in sorted(WITH_OFFSETS)]

    def written(self, topic):
        """How often a row was written, not how many there are."""
        return self.ask("SELECT count(*) FROM public.written WHERE topic = %s", topic)[0][0]

    def story(self):
        return (self.query.directory / "story").read_text().split()


@pytest.fixture
def case():
    if reason := nodes.java_missing():
        pytest.skip(reason)
    with LocalServer() as server:
        made = Case(server)
        try:
            yield made.start()
        finally:
            made.remove()


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.soak
@pytest.mark.timeout(TEST_SECONDS_MAX + 2 * SOAK_SECONDS + KILL_SECONDS_MAX * KILLS_WANTED)
def test_ack_08_09_a_driver_that_is_killed_around_the_commit_leaves_each_row_once(case):
    deadline = time.monotonic() + SOAK_SECONDS
    case.round(FIRST_ROUND, "driver")
    case.judge()
    # What was committed came again: it was left out by its offsets, and written over by its keys.
    assert "after-skipped" in case.story()
    assert "before-skipped" not in case.story()
    assert case.written(BY_KEY) == case.sent + BATCH_ROWS
    # Without the database the same batch is tried again until it is back.
    case.round(dict.fromkeys(TOPICS, "written"), "database")
    case.judge()
    kills = Counter(driver=1, database=1)
    chance = random.Random(random.randrange(2**32))
    while kills.total() < KILLS_WANTED or time.monotonic() < deadline:
        victim = chance.choice(("driver", "driver", "database"))
        case.round({topic: chance.choice(PHASES) for topic in TOPICS}, victim)
        case.judge()
        kills[victim] += 1
        _log.info("%d rows of each query, kills: %s", case.sent, dict(kills))
