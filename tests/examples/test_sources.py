"""A second source: a JSON API with pages, a token and a limit of requests (PRJ-02)."""

import json
from random import Random

import pytest

from examples.final_project.scraper import polite, reading, topics
from examples.final_project.scraper.fetching import Fetcher
from examples.final_project.scraper.ledger import Ledger
from examples.final_project.scraper.reading import Answer
from examples.final_project.scraper.scraper import HELD_BACK, Scraper, authorisation
from examples.final_project.scraper.sources import launches
from examples.final_project.site.calendar import AHEAD, HOUR_MS, Calendar
from examples.final_project.site.serving import served
from strom.broker.host import Host
from strom.testing.clock import FakeClock
from tests.examples.test_scraper import committed, names

SEED = 7
BEGIN_MS = 1_800_000_000_000
SECRET = "s3cret"
PAGES = 3


@pytest.fixture
def clock():
    return FakeClock(BEGIN_MS)


@pytest.fixture
def calendar(clock):
    return Calendar(SEED, clock, SECRET)


@pytest.fixture
def address(calendar):
    with served(calendar) as at:
        yield at


@pytest.fixture
def scraper(clock, strom_brokers):
    broker = strom_brokers({}, host=Host(now_ms=clock))
    topics.create(broker.bootstrap)
    fetcher = Fetcher(clock)
    made = Scraper(fetcher, Ledger(broker.bootstrap, "s", list(topics.SETTINGS)), clock, Random(7))
    made.bootstrap = broker.bootstrap
    yield made
    fetcher.close()


def job_at(address, token=None, pace_ms=300):
    job = launches.of(address, token, pace_ms)
    small = job.url.replace("limit=100", "limit=10")
    return type(job)(job.name, small, job.topic, job.reads, job.when, job.pace_ms, job.token)


def follow(scraper, job, clock):
    """Attempt the job until it is done; the waits that it asked for."""
    waits, number = [], 1
    while (again := scraper.attempt(job, number)) is not None:
        waits.append(again.wait_ms)
        clock.advance(again.wait_ms)
        number += again.reason != HELD_BACK
    return waits


@pytest.mark.slow
def test_prj_02_all_pages_are_read_and_each_launch_is_a_fact_once(
    scraper, address, calendar, clock
):
    job = job_at(address)
    told = calendar.launches()
    waits = follow(scraper, job, clock)
    assert waits == [job.pace_ms] * (PAGES - 1)
    follow(scraper, job, clock)
    found = committed(scraper.bootstrap, "launches")
    assert len(found) == AHEAD
    first = json.loads(next(m.value() for m in found if m.key().decode() == told[0]["id"]))
    assert first == {
        "launch": told[0]["id"],
        "name": told[0]["name"],
        "status": "Go",
        "launches_at": told[0]["net"],
        "provider": told[0]["launch_service_provider"]["name"],
        "rocket": told[0]["rocket"]["configuration"]["full_name"],
        "pad": told[0]["pad"]["name"],
        "updated": told[0]["last_updated"],
    }
    # One that comes nearer is told anew.
    clock.advance(60_000)
    follow(scraper, job, clock)
    assert max(names(committed(scraper.bootstrap, "launches")).values()) == 2


@pytest.mark.slow
def test_prj_02_a_limit_of_requests_is_kept_and_one_that_is_hit_is_waited_for(
    scraper, address, calendar, clock
):
    job = job_at(address)
    for _ in range(5):
        assert max(follow(scraper, job, clock)) == job.pace_ms
    waits = follow(scraper, job, clock)
    assert max(waits) > HOUR_MS - 60_000
    assert len(names(committed(scraper.bootstrap, "launches"))) >= AHEAD
    assert launches.PACE_MS * 15 == HOUR_MS


@pytest.mark.slow
def test_prj_02_a_token_is_sent_to_its_host_alone_and_said_nowhere(
    scraper, address, calendar, clock, tmp_path, caplog
):
    token = tmp_path / "token"
    token.write_text(f"{SECRET}\n")
    for _ in range(6):
        follow(scraper, job_at(address, token), clock)
    assert set(calendar.authorisations) == {f"Token {SECRET}"}
    letters = committed(scraper.bootstrap, "dead-letters")
    found = committed(scraper.bootstrap, "launches")
    assert not letters
    assert SECRET not in str([(m.value(), m.headers()) for m in found])
    token.write_text("another")
    follow(scraper, job_at(address, token), clock)
    [letter] = committed(scraper.bootstrap, "dead-letters")
    assert dict(letter.headers())["reason"] == b"status: 401"
    assert b"another" not in letter.value() + str(letter.headers()).encode()
    assert SECRET not in caplog.text


@pytest.mark.parametrize("text", ["", "a b", "a\nb", "ü", "x" * 1001])
def test_what_is_no_token_is_not_sent_and_not_said(text, tmp_path, caplog):
    file = tmp_path / "token"
    assert authorisation(file) == {}
    file.write_text(text)
    assert authorisation(file) == {}
    assert caplog.messages == [f"{file}: not a token, asked without"]


GOOD = {
    "id": "1",
    "name": "n",
    "status": {"abbrev": "Go"},
    "net": "2027-01-01T00:00:00Z",
    "last_updated": "2027-01-01T00:00:00Z",
    "launch_service_provider": {"name": "m"},
    "rocket": {"configuration": {"full_name": "r"}},
    "pad": {"name": "p"},
}
NOW_MS = 1_900_000_000_000


def outcome(body):
    answer = Answer(
        200, {"etag": "1"}, body if isinstance(body, bytes) else json.dumps(body).encode()
    )
    return reading.outcome(launches.of("http://x"), answer, 1, NOW_MS, Random(7))


def reasons(said):
    return [fact.headers["reason"] for fact in said.facts if fact.topic == reading.DEAD_LETTERS]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "layout: no JSON"),
        (b"<html>", "layout: no JSON"),
        (b"[" * 100_000, "layout: no JSON"),
        (b'{"results": [NaN]}', "layout: no JSON: NaN is no number"),
        (b"\xff", "encoding"),
        (b"[]", "layout: there is no list 'results'"),
        ({"results": {}}, "layout: there is no list 'results'"),
        ({"results": [], "next": 7}, "layout: 'next' is no address"),
        ({"results": [0] * 10_001}, "size: 'results' has more than 10000 objects"),
        ({"results": [7]}, "type: field 'id': neither a text nor a number"),
        ({"results": [{**GOOD, "pad": None}]}, "type: field 'pad.name': neither"),
        ({"results": [{**GOOD, "name": True}]}, "type: field 'name': neither"),
        ({"results": [{**GOOD, "net": "soon"}]}, "type: field 'net': "),
        (
            {"results": [{**GOOD, "net": "2027-01-01T00:00:00"}]},
            "type: field 'net': a time without",
        ),
        ({"results": [{**GOOD, "name": "\ud800"}]}, "'utf-8' codec can't encode"),
        ({"results": [{**GOOD, "last_updated": "9999-01-01T00:00:00Z"}]}, "type: a time that is"),
        ({"results": [{**GOOD, "name": "x" * 70_000}]}, "size: a row of"),
    ],
)
def test_what_is_wrong_with_an_answer_is_a_dead_letter_with_its_reason(body, reason):
    [found] = reasons(outcome(body))
    assert found.startswith(reason)


def test_one_object_that_is_wrong_leaves_the_others_and_the_next_page_alone():
    said = outcome({"results": [GOOD, {}, {**GOOD, "id": 2}], "next": "http://x/2"})
    assert [fact.key for fact in said.facts if fact.topic == "launches"] == ["1", "2"]
    assert len(reasons(said)) == 1
    assert said.following == "http://x/2"
    # The pages behind one that is the same may have changed.
    assert said.validators == polite.Validators()


class Answers:
    """A fetcher with the answers that it was made with, by address; robots.txt allows all."""

    def __init__(self, **answers):
        self.answers = answers
        self.asked = []

    def get(self, url, _headers=None, *, follow=False):
        if url.endswith("/robots.txt"):
            return Answer(404, {}, b"")
        self.asked.append(url)
        return Answer(200, {}, json.dumps(self.answers["any"](url)).encode())


class Elsewhere:
    """A fetcher for which every page has moved to another host."""

    def __init__(self):
        self.sent = {}

    def get(self, url, headers=None, *, follow=False):
        if url.endswith("/robots.txt"):
            return Answer(404, {}, b"")
        self.sent[url] = headers
        return Answer(302, {"location": "http://elsewhere/page"}, b"")


def test_a_token_is_not_sent_to_where_a_page_has_moved(clock, tmp_path):
    token = tmp_path / "token"
    token.write_text(SECRET)
    fetcher = Elsewhere()
    scraper = Scraper(fetcher, Kept(), clock, Random(7))
    job = launches.of("http://x", token)
    for _ in range(2):
        scraper.attempt(job)
        clock.advance(job.pace_ms)
    assert fetcher.sent == {
        job.url: {"Authorization": f"Token {SECRET}"},
        "http://elsewhere/page": {},
    }


class Kept:
    """A ledger that takes everything."""

    def write(self, facts, _fetched_ms):
        return len(facts)


@pytest.mark.parametrize(
    "following", ["http://elsewhere/2", "//elsewhere/2", "ftp://x/2", "http://[x"]
)
def test_a_page_that_goes_on_elsewhere_is_the_last_one(following, clock):
    fetcher = Answers(any=lambda _: {"results": [GOOD], "next": following})
    scraper = Scraper(fetcher, Kept(), clock, Random(7))
    assert follow(scraper, launches.of("http://x"), clock) == []
    assert scraper.counts["gave up"] == 1
    assert scraper.counts["written"] == 1


def test_pages_without_end_have_one(clock):
    fetcher = Answers(any=lambda url: {"results": [GOOD], "next": url + "x"})
    scraper = Scraper(fetcher, Kept(), clock, Random(7))
    job = launches.of("http://x")
    follow(scraper, job, clock)
    assert len(fetcher.asked) == job.reads.pages_max
    assert scraper.counts["gave up"] == 1
