"""The final project's processing: real Spark, a real broker, a real PostgreSQL (PRJ-01, PRJ-03)."""

import base64
import itertools
import json
import logging
import os
import threading
import time
from datetime import UTC, datetime
from random import Random

import psycopg
import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import OffsetSpec
from pyspark.errors import StreamingQueryException

from examples.final_project.database.addresses import READER, WRITER, acting_as
from examples.final_project.database.migrate import migrate
from examples.final_project.database.server import LocalServer
from examples.final_project.processing import columns, writing
from examples.final_project.processing.pipeline import Pipeline
from examples.final_project.processing.queries import GROUP
from examples.final_project.scraper import reading, topics
from examples.final_project.scraper.ledger import Ledger
from examples.final_project.scraper.sources import brokers as broker_source
from examples.final_project.scraper.sources import site as site_source
from examples.final_project.site import flights, pages
from tests.patience import PATIENCE_SECONDS, until

pytestmark = [pytest.mark.slow, pytest.mark.java]

SEED = 7
STEP_MS = 10_000
DATABASES = itertools.count()
GOOD = {
    "flight": "F-1",
    "time": "2030-01-01T12:00:00+00:00",
    "altitude_m": 1.0,
    "speed_ms": 2.0,
    "fuel_percent": 3.0,
    "engine_celsius": 2_400.0,
}
STANDING = {
    "flight": "F-1",
    "rocket": "R",
    "pad": "P",
    "commander": "C",
    "launch": "2030-01-01T12:00:00+00:00",
    "status": "planned",
    "since": "2030-01-01T12:00:00+00:00",
}
METRIC = {"broker": "b", "metric": "m", "labels": "{}", "value": 1.0}
ROCKET = {"rocket": "Flop", "maker": "M", "stages": 2, "payload_kg": 1}


def said(value, **changed):
    return json.dumps({**value, **changed}).encode()


#: What anybody may write to the topics, and why it is rejected: much of it no database would take.
BAD = [
    ("telemetry", b"no json", "no flight"),
    ("telemetry", b'{"flight":"F-1"}', "no measured_at"),
    ("telemetry", b"no utf-8 \xff\xfe", "no flight"),
    ("telemetry", b"no text \0", "no flight"),
    ("telemetry", said(GOOD, flight="F-" + "1" * 9_000), "flight cannot be"),
    ("telemetry", said(GOOD, time="+12345-01-01T12:00:00Z"), "measured_at cannot be"),
    ("telemetry", said(GOOD, time="-0044-03-15T12:00:00Z"), "measured_at cannot be"),
    ("telemetry", said(GOOD, engine_celsius=1e300), "engine_celsius cannot be"),
    ("flights", said(STANDING, pad="\0"), "pad cannot be"),
    ("flights", said(STANDING, status="".join(map(chr, range(100, 9_000)))), "status cannot be"),
    ("flights", said(STANDING, launch="+12345-01-01T12:00:00Z"), "launch cannot be"),
    ("broker-metrics", said(METRIC, labels="\0"), "labels cannot be"),
]
#: Master data that no database would take is left out.
BAD_ROCKETS = [said(ROCKET, stages=0), said(ROCKET, payload_kg=-1), said(ROCKET, maker="\0")]
#: What each query reads.
TOPICS = {
    "flights": "flights",
    "telemetry": "telemetry",
    "windows": "telemetry",
    "metrics": "broker-metrics",
}
#: A page of a broker's: what grows, by topic, and what stays.
METRICS = """
kafka_messagesin_total {0}
kafka_messagesin_total{{topic="flights"}} {0}
kafka_partitioncount 24
"""
AT = datetime(2030, 1, 1, 12, tzinfo=UTC)

#: How often a row of telemetry was written; an upsert alone would not show a second time.
COUNTED = """
CREATE TABLE public.written (n bigint);
GRANT INSERT, SELECT ON public.written TO flights_writer, flights_reader;
GRANT USAGE ON SCHEMA public TO flights_writer, flights_reader;
CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN INSERT INTO public.written VALUES (1); RETURN NULL; END';
CREATE TRIGGER note AFTER INSERT OR UPDATE ON flights.telemetry
    FOR EACH ROW EXECUTE FUNCTION public.note();
"""


class Told:
    """What a scraper has written to the topics so far, page by page."""

    def __init__(self, bootstrap):
        self.bootstrap = bootstrap
        topics.create(bootstrap)
        self._ledger = Ledger(bootstrap, "scraper", list(topics.SETTINGS))
        self._jobs = {job.name: job for job in site_source.of("http://site")}
        self._broker = broker_source.of("broker-1", "http://broker/metrics")
        self._began_ms = self.now_ms = int(time.time() * 1000) - 600_000
        producer = Producer({"bootstrap.servers": bootstrap})
        for topic, value, _ in BAD:
            producer.produce(topic, value)
        for number, value in enumerate(BAD_ROCKETS):
            producer.produce("rockets", value, b"%d" % number)
        assert producer.flush(PATIENCE_SECONDS) == 0
        self.more()

    def more(self, steps=2):
        """Let time pass, and scrape."""
        for _ in range(steps):
            self.now_ms += STEP_MS
            for job in self._jobs.values():
                self._scrape(job, pages.PAGES[f"/{job.name}"](SEED, self.now_ms).html)
            self._scrape(self._broker, METRICS.format(self.now_ms))

    def _scrape(self, job, page):
        answer = reading.Answer(200, {}, page.encode())
        read = reading.outcome(job, answer, 1, self.now_ms, Random(SEED))
        self._ledger.write(read.facts, self.now_ms)

    def measurements(self):
        since_ms = self._began_ms + STEP_MS - flights.MEASUREMENTS_SHOWN_MS
        return flights.measurements(SEED, since_ms, self.now_ms)


@pytest.fixture(scope="module")
def told(strom_topics):
    return Told(strom_topics.bootstrap)


@pytest.fixture(scope="module")
def server():
    with LocalServer() as started:
        yield started


@pytest.fixture
def database(server):
    """The name of a database of the test's own."""
    name = f"project{next(DATABASES)}"
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    migrate(server.url(name))
    with psycopg.connect(server.url(name), autocommit=True) as connection:
        connection.execute(COUNTED)
    return name


def stop_between_batches(query):
    """Stop the query where nothing is under way, if it comes to that.

    A job that is cancelled while a batch's function waits for its rows can leave that waiting.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while query.isActive and query.status["isTriggerActive"]:
        if time.monotonic() > deadline:
            break
    query.stop()


@pytest.fixture
def run(spark, server, database, told, tmp_path):
    """A function that starts the queries; they are stopped at the end."""
    started = []

    def start(kind=Pipeline):
        url = acting_as(server.url(database), WRITER)
        queries = kind(spark, told.bootstrap, url, tmp_path, "0 seconds", "0 seconds").start()
        started.extend(queries)
        return {query.name: query for query in queries}

    yield start
    for query in started:
        stop_between_batches(query)


@pytest.fixture
def ask(server, database):
    """A function that asks the database as one who may only read."""
    url = acting_as(server.url(database), READER)

    def answers(query):
        with psycopg.connect(url) as connection:
            return connection.execute(query).fetchall()

    return answers


def all_there(queries):
    for query in queries.values():
        query.processAllAvailable()


def assert_agrees(ask, told):
    """Assert that all tables are what was told, each thing once."""
    measured = told.measurements()
    found = ask("SELECT flight, measured_at, engine_celsius FROM flights.telemetry")
    assert {(flight, ms(at)) for flight, at, _ in found} == {(m.flight, m.at_ms) for m in measured}
    assert len(found) == len(measured)
    assert ask("SELECT sum(measurements) FROM flights.telemetry_window") == [(len(measured),)]
    hot = [m for m in measured if m.engine_celsius > columns.HOT_CELSIUS]
    assert ask("SELECT count(*) FROM flights.anomaly") == [(len(hot),)]
    stands = {f.name: flights.status(f, told.now_ms)[0] for f in flights.board(SEED, told.now_ms)}
    assert stands.items() <= dict(ask("SELECT flight, status FROM flights.flight")).items()
    assert_told_by_the_broker(ask, told)


def assert_told_by_the_broker(ask, told):
    """Assert that each series of the broker's metrics has its newest value, and its time."""
    found = ask("SELECT broker, metric, labels, value, told_at FROM flights.broker_metric")
    assert {(metric, labels): value for _, metric, labels, value, _ in found} == {
        ("kafka_messagesin_total", "{}"): told.now_ms,
        ("kafka_messagesin_total", '{"topic": "flights"}'): told.now_ms,
        ("kafka_partitioncount", "{}"): 24,
    }
    assert {broker for broker, *_ in found} == {"broker-1"}
    assert {ms(at) for *_, value, at in found if value != 24} == {told.now_ms}


def ms(at):
    return round(at.timestamp() * 1000)


def lag(strom_topics, query, topic):
    """Return how many records a group has before it."""
    group = GROUP + query
    asked = ConsumerGroupTopicPartitions(group)
    answer = strom_topics.admin.list_consumer_group_offsets([asked])[group].result()
    places = [each for each in answer.topic_partitions if each.topic == topic]
    ends = strom_topics.admin.list_offsets(dict.fromkeys(places, OffsetSpec.latest()))
    assert len(places) == topics.PARTITIONS
    return sum(ends[place].result().offset - place.offset for place in places)


def assert_caught_up(strom_topics):
    """Wait until each query's group says that it has read everything."""

    def lags():
        return {name for name, topic in TOPICS.items() if lag(strom_topics, name, topic)}

    until(lags, lambda found: not found)


class Noticed(logging.Handler):
    """Tells when something was logged."""

    def __init__(self):
        super().__init__()
        self.event = threading.Event()

    def emit(self, _record):
        self.event.set()


@pytest.fixture
def noticed():
    """That somebody has noticed that the database is away."""
    handler = Noticed()
    writing.log.addHandler(handler)
    yield handler.event
    writing.log.removeHandler(handler)


def test_prj_01_what_was_scraped_is_in_the_database(run, ask, told, server, strom_topics, noticed):
    """STR-17: the database is a view of the log."""
    queries = run()
    all_there(queries)
    assert_agrees(ask, told)
    assert_enriched(ask)
    assert_rejected(ask)
    server.stop()
    told.more()
    assert noticed.wait(PATIENCE_SECONDS)
    server.start()
    all_there(queries)
    assert_agrees(ask, told)
    assert_caught_up(strom_topics)


def assert_enriched(ask):
    """Assert that flights have what the master data says."""
    makers = {rocket.name: (rocket.maker, rocket.payload_kg) for rocket in flights.ROCKETS}
    nations = {astronaut.name: astronaut.nation for astronaut in flights.ASTRONAUTS}
    found = ask("SELECT rocket, maker, payload_kg, commander, nation FROM flights.flight")
    assert found
    for rocket, maker, payload_kg, commander, nation in found:
        assert (maker, payload_kg) == makers[rocket]
        assert nation == nations[commander]
    assert len(ask("SELECT * FROM flights.rocket")) == len(flights.ROCKETS)


def assert_rejected(ask):
    """Assert that what could not be used is kept with its reason."""
    rejected = ask("SELECT topic, text, reason FROM flights.rejected")
    expected = {
        (topic, value.decode(errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")): reason
        for topic, value, reason in BAD
    }
    assert {(topic, text) for topic, text, _ in rejected} == expected.keys()
    assert len(rejected) == len(BAD)
    for topic, text, reason in rejected:
        assert reason.startswith(expected[topic, text])


class Dies(Pipeline):
    """Ends each query after its rows are in the database, before Spark knows."""

    def _write_once(self, query, batch, rows):
        super()._write_once(query, batch, rows)
        raise RuntimeError("killed")

    def _write_windows(self, changed, batch):
        super()._write_windows(changed, batch)
        raise RuntimeError("killed")


def test_prj_03_what_is_killed_after_it_wrote_writes_nothing_twice(run, ask, told):
    for query in run(Dies).values():
        with pytest.raises(StreamingQueryException):
            query.awaitTermination(PATIENCE_SECONDS)
    assert ask("SELECT count(*) FROM flights.telemetry")[0][0] > 0
    told.more()
    all_there(run())
    assert_agrees(ask, told)
    assert ask("SELECT count(*) FROM public.written") == ask(
        "SELECT count(*) FROM flights.telemetry"
    )


def record(offset, value, key="k"):
    text = value if isinstance(value, str) else json.dumps(value)
    return {"topic": "t", "partition": 0, "offset": offset, "key": key, "value": text.encode()}


SCHEMA = "topic string, partition int, offset long, key string, value binary"


def test_prj_03_what_cannot_be_used_gets_its_reason(spark):
    values = [
        GOOD,
        {**GOOD, "time": "soon"},
        {**GOOD, "altitude_m": "high"},
        {**GOOD, "fuel_percent": 101},
        {**GOOD, "flight": "~F-1"},
        "[",
    ]
    records = spark.createDataFrame([record(n, value) for n, value in enumerate(values)], SCHEMA)
    judged = columns.measurements(records).orderBy("offset").collect()
    assert [row.reason for row in judged] == [
        None,
        "no measured_at, or not of its type",
        "no altitude_m, or not of its type",
        "fuel_percent cannot be",
        "flight cannot be",
        "no flight, or not of its type",
    ]


def test_str_09_a_changelog_is_a_table_of_the_newest(spark):
    def rocket(maker):
        return {"rocket": "R", "maker": maker, "stages": 2, "payload_kg": 1}

    records = [
        record(1, rocket("new"), "R"),
        record(0, rocket("old"), "R"),
        record(2, {**rocket("gone"), "rocket": "G"}, "G"),
        {**record(3, ""), "key": "G", "value": None},
    ]
    table = columns.master_data(spark.createDataFrame(records, SCHEMA), columns.ROCKET)
    assert [tuple(row) for row in table.collect()] == [("R", "new", 2, 1)]


def test_prj_03_what_is_measured_late_is_in_its_window_and_later_it_is_not(spark, tmp_path):
    """A page that fails is read again: two minutes are waited for what it told."""
    # Spark goes by what it knew two micro-batches before.
    times = ["12:00:00", *["12:01:30"] * 2, "12:00:05", *["12:10:00"] * 2, "12:00:06"]
    for number, at in enumerate(times):
        value = json.dumps({**GOOD, "time": f"2030-01-01T{at}Z"})
        file = tmp_path / f"{number}.json"
        text = base64.b64encode(value.encode()).decode()
        place = {"topic": "t", "partition": 0, "offset": number, "key": "k"}
        file.write_text(json.dumps({**place, "value": text}))
        os.utime(file, (number, number))
    one_by_one = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    records = one_by_one.json(str(tmp_path))
    measured = columns.usable(columns.measurements(records), columns.MEASUREMENT_COLUMNS)
    seen = []

    def note(rows, _batch):
        found = rows.toArrow().to_pylist()
        seen.extend(row["measurements"] for row in found if row["window_start"] == AT)

    writer = columns.windows(measured).writeStream.outputMode("update").foreachBatch(note)
    writer = writer.option("checkpointLocation", f"{tmp_path}-checkpoint")
    writer.trigger(availableNow=True).start().awaitTermination()
    assert seen == [1, 2]


def test_prj_03_windows_and_anomalies(spark):
    """ARC-11: of all that was measured, figures per ten seconds and what is odd."""
    times = ["2030-01-01T12:00:00Z", "2030-01-01T12:00:09Z", "2030-01-01T12:00:10Z"]
    values = [
        {**GOOD, "time": at, "engine_celsius": 2_400.0 + 300 * n} for n, at in enumerate(times)
    ]
    records = spark.createDataFrame([record(n, value) for n, value in enumerate(values)], SCHEMA)
    measured = columns.usable(columns.measurements(records), columns.MEASUREMENT_COLUMNS)
    summed = columns.windows(measured).orderBy("window_start").toArrow().to_pylist()
    assert [(row["window_start"], row["measurements"]) for row in summed] == [
        (AT, 2),
        (AT.replace(second=10), 1),
    ]
    assert [row["engine_celsius_max"] for row in summed] == [2_700.0, 3_000.0]
    [odd] = columns.anomalies(measured).toArrow().to_pylist()
    assert (odd["measured_at"], odd["kind"]) == (AT.replace(second=10), "hot engine")
