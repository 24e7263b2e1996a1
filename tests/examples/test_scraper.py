"""The scraper at work: a real site, a real broker, and what goes wrong between them (PRJ-02)."""

import dataclasses
import socket
from collections import Counter
from random import Random
from types import SimpleNamespace

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from starlette.applications import Starlette
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from examples.final_project.scraper import jobs, ledger, polite, reading, topics
from examples.final_project.scraper.fetching import BODY_BYTES_MAX, Fetcher
from examples.final_project.scraper.ledger import Ledger, ReplacedError
from examples.final_project.scraper.once import NotScrapedError, follow
from examples.final_project.scraper.scraper import HELD_BACK, Scraper
from examples.final_project.scraper.sources import brokers as broker_source
from examples.final_project.scraper.sources import site as site_source
from examples.final_project.site import flights
from examples.final_project.site.app import Fault, Site
from examples.final_project.site.serving import served
from strom.broker.host import Host
from strom.testing.clock import FakeClock

pytestmark = pytest.mark.slow

SEED = 7
BEGIN_MS = 1_800_000_000_000
PATIENCE_SECONDS = 30


class Stage:
    """A site, a broker with the topics, and a clock that all of them go by."""

    def __init__(self, bootstrap, site, address, fetcher, clock):
        self.bootstrap = bootstrap
        self.fetcher = fetcher
        self.site = site
        self.clock = clock
        self.jobs = {job.name: job for job in site_source.of(address)}
        self.address = address

    def scraper(self, name="scraper"):
        facts = Ledger(self.bootstrap, name, list(topics.SETTINGS))
        return Scraper(self.fetcher, facts, self.clock, Random(SEED))

    def attempt(self, scraper, job, number=1):
        """Make an attempt when the host's pace allows it."""
        again = scraper.attempt(self.jobs[job], number)
        if again is not None and again.reason == HELD_BACK:
            self.clock.advance(again.wait_ms)
            again = scraper.attempt(self.jobs[job], number)
        return again

    def records(self, topic):
        return committed(self.bootstrap, topic)


def committed(bootstrap, topic):
    """Return all committed records of a topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "test",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    try:
        left = set(range(topics.PARTITIONS))
        consumer.assign([TopicPartition(topic, number, 0) for number in left])
        found = []
        while left:
            message = consumer.poll(PATIENCE_SECONDS)
            assert message is not None, "the topic has no end"
            if message.error() is None:
                found.append(message)
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF
                left.discard(message.partition())
        return found
    finally:
        consumer.close()


@pytest.fixture
def faults():
    """What goes wrong, by the number of the request."""
    return {}


@pytest.fixture
def clock():
    return FakeClock(BEGIN_MS)


@pytest.fixture
def broker(strom_brokers, clock):
    """A broker by the same clock: it refuses records from the future, and drops old ones."""
    started = strom_brokers({"strom.http.port": "0"}, host=Host(now_ms=clock))
    topics.create(started.bootstrap)
    return started


@pytest.fixture
def fetcher(clock):
    made = Fetcher(clock)
    yield made
    made.close()


@pytest.fixture
def stage(broker, fetcher, clock, faults):
    site = Site(SEED, clock, faults.get)
    with served(site) as address:
        yield Stage(broker.bootstrap, site, address, fetcher, clock)


def names(records):
    return Counter(dict(record.headers())["fact"] for record in records)


def test_prj_02_what_the_site_told_is_in_the_topic_once(stage):
    scraper = stage.scraper()
    for _ in range(5):
        stage.attempt(scraper, "telemetry")
        stage.clock.advance(7_000)
    until_ms = stage.clock() - 7_000
    told = flights.measurements(SEED, BEGIN_MS - flights.MEASUREMENTS_SHOWN_MS, until_ms)
    records = stage.records("telemetry")
    assert len(records) == len(told)
    assert {(r.key().decode(), r.timestamp()[1]) for r in records} == {
        (each.flight, each.at_ms) for each in told
    }
    assert dict(records[0].headers())["source"].decode() == f"{stage.address}/telemetry"


def test_prj_02_after_a_restart_nothing_is_a_fact_again(stage):
    first = stage.scraper()
    stage.attempt(first, "flights")
    before = names(stage.records("flights"))
    second = stage.scraper()
    stage.attempt(second, "flights")
    assert second.counts["fetched"] == 1
    assert second.counts["written"] == 0
    assert names(stage.records("flights")) == before
    assert set(before.values()) == {1}


class DyingLedger(Ledger):
    """One that has sent all facts of a page when it dies."""

    def _transact(self, producer, facts, fetched_ms):
        super()._transact(Uncommitted(producer), facts, fetched_ms)


class Uncommitted:
    """A producer whose commits do not come to it any more."""

    def __init__(self, producer):
        self._producer = producer
        self.begin_transaction = producer.begin_transaction
        self.produce = producer.produce

    def commit_transaction(self, seconds):
        assert self._producer.flush(seconds) == 0
        raise KafkaException(KafkaError(KafkaError._FAIL))


def test_prj_02_what_was_sent_and_never_committed_is_no_fact(stage):
    dying = stage.scraper()
    dying._ledger = DyingLedger(stage.bootstrap, "scraper", list(topics.SETTINGS))
    stage.attempt(dying, "rockets")
    assert dying.counts["not written"] == 1
    assert stage.records("rockets") == []
    scraper = stage.scraper()
    stage.attempt(scraper, "rockets")
    assert scraper.counts["written"] == len(flights.ROCKETS)
    assert len(stage.records("rockets")) == len(flights.ROCKETS)


def test_a_page_that_is_the_same_is_not_sent_again(stage):
    scraper = stage.scraper()
    stage.attempt(scraper, "rockets")
    stage.attempt(scraper, "rockets")
    assert scraper.counts["unchanged"] == 1


def test_what_could_not_be_written_is_fetched_again(stage, broker):
    scraper = stage.scraper()
    scraper._ledger._bootstrap = "127.0.0.1:1"
    ledger_seconds, ledger.SECONDS_MAX = ledger.SECONDS_MAX, 0.2
    try:
        again = stage.attempt(scraper, "rockets")
    finally:
        ledger.SECONDS_MAX = ledger_seconds
    assert again is not None
    assert scraper.counts["not written"] == 1
    scraper._ledger._bootstrap = broker.bootstrap
    stage.attempt(scraper, "rockets")
    assert scraper.counts["unchanged"] == 0
    assert len(stage.records("rockets")) == len(flights.ROCKETS)


def test_a_scraper_that_was_replaced_ends(stage):
    first, second = stage.scraper(), stage.scraper()
    stage.attempt(first, "rockets")
    stage.attempt(second, "rockets")
    with pytest.raises(ReplacedError):
        stage.attempt(first, "flights")
    assert stage.records("flights") == []


def test_what_robots_forbid_is_not_fetched(stage):
    job = jobs.Job(
        "private", f"{stage.address}/private/x", "flights", site_source.BOARD, jobs.Every(1)
    )
    scraper = stage.scraper()
    assert scraper.attempt(job) is None
    assert scraper.counts == {"forbidden": 1}
    assert stage.site.requests == 0


@pytest.fixture
def mover(stage):
    """A site that has nothing but pages that are elsewhere now, by path."""
    places = {}

    async def _moved(request):
        return RedirectResponse(places[request.url.path], status_code=302)

    app = Starlette(routes=[Route("/robots.txt", _no_robots), Route("/{path:path}", _moved)])
    with served(SimpleNamespace(app=app)) as address:
        yield address, places


async def _no_robots(_request):
    return Response(status_code=404)


def test_a_page_that_has_moved_is_asked_for_where_it_is(stage, mover):
    address, places = mover
    places |= {"/a": "/b", "/b": f"{stage.address}/rockets"}
    stage.jobs["rockets"] = dataclasses.replace(stage.jobs["rockets"], url=f"{address}/a")
    scraper = stage.scraper()
    follow(scraper, stage.jobs["rockets"], stage.clock.advance)
    assert len(stage.records("rockets")) == len(flights.ROCKETS)
    stage.clock.advance(1_000)
    follow(scraper, stage.jobs["rockets"], stage.clock.advance)
    assert scraper.counts["unchanged"] == 1


def test_robots_are_asked_also_where_a_page_has_moved_to(stage, mover):
    address, places = mover
    places["/a"] = f"{stage.address}/private/x"
    job = dataclasses.replace(stage.jobs["rockets"], url=f"{address}/a")
    scraper = stage.scraper()
    with pytest.raises(NotScrapedError, match="forbidden"):
        follow(scraper, job, stage.clock.advance)


def test_a_page_that_moves_in_a_circle_is_given_up(stage, mover):
    address, places = mover
    places |= {"/a": "/b", "/b": "/a"}
    job = dataclasses.replace(stage.jobs["rockets"], url=f"{address}/a")
    scraper = stage.scraper()
    with pytest.raises(NotScrapedError, match="gave up"):
        follow(scraper, job, stage.clock.advance)


@pytest.mark.parametrize("location", ["http://[::1/", "http://xn--/"])
def test_a_page_that_has_moved_to_no_address_is_given_up(stage, mover, location):
    address, places = mover
    places["/a"] = location
    job = dataclasses.replace(stage.jobs["rockets"], url=f"{address}/a")
    with pytest.raises(NotScrapedError):
        follow(stage.scraper(), job, stage.clock.advance)


def test_a_host_is_not_asked_faster_than_it_likes(stage):
    scraper = stage.scraper()
    scraper.attempt(stage.jobs["rockets"])
    again = scraper.attempt(stage.jobs["astronauts"])
    assert again.reason == HELD_BACK
    assert stage.site.requests == 1


@pytest.mark.parametrize("fault", [Fault.TOO_MANY, Fault.UNAVAILABLE])
def test_a_site_that_is_busy_is_asked_later(stage, faults, fault):
    faults[1] = fault
    scraper = stage.scraper()
    again = stage.attempt(scraper, "rockets")
    assert again.host_waits is (fault is Fault.TOO_MANY)
    stage.clock.advance(again.wait_ms)
    assert stage.attempt(scraper, "rockets", 2) is None
    assert len(stage.records("rockets")) == len(flights.ROCKETS)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (Fault.TRUNCATED, "truncated"),
        (Fault.NEW_LAYOUT, "layout"),
        (Fault.WRONG_TYPE, "type"),
        (Fault.HUGE, f"size: more than {BODY_BYTES_MAX} bytes"),
    ],
)
def test_a_bad_page_is_a_dead_letter_and_the_scraper_goes_on(stage, faults, fault, reason):
    faults[1] = faults[2] = fault
    scraper = stage.scraper()
    stage.attempt(scraper, "telemetry")
    stage.attempt(scraper, "telemetry")
    stage.clock.advance(flights.MEASURE_EVERY_MS)
    stage.attempt(scraper, "telemetry")
    letters = stage.records(reading.DEAD_LETTERS)
    assert len(letters) == 1
    headers = {name: value.decode() for name, value in letters[0].headers()}
    assert headers["reason"].startswith(reason)
    assert headers["topic"] == "telemetry"
    assert stage.records("telemetry")


def test_a_site_that_is_not_there_forbids_everything_until_its_robots_are_asked_for_again(stage):
    scraper = stage.scraper()
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        host, port = silent.getsockname()
        job = dataclasses.replace(stage.jobs["rockets"], url=f"http://{host}:{port}/rockets")
        assert scraper.attempt(job) is None
    site = Site(SEED, stage.clock, {}.get)
    with served(site, port):
        stage.clock.advance(polite.ROBOTS_MISSED_MS - 1)
        assert scraper.attempt(job) is None
        assert (scraper.counts, site.requests) == ({"forbidden": 2}, 0)
        stage.clock.advance(1)
        assert scraper.attempt(job) is None
    assert scraper.counts["fetched"] == 1
    assert len(stage.records("rockets")) == len(flights.ROCKETS)


def test_use_01_a_brokers_own_metrics_are_a_source(broker, fetcher, clock):
    facts = Ledger(broker.bootstrap, "scraper", list(topics.SETTINGS))
    scraper = Scraper(fetcher, facts, clock, Random(SEED))
    assert scraper.attempt(broker_source.of("broker-1", broker.metrics_url)) is None
    records = committed(broker.bootstrap, "broker-metrics")
    assert {record.key() for record in records} == {b"broker-1"}
    assert any(b'"kafka_server_replicamanager_partitioncount"' in r.value() for r in records)
