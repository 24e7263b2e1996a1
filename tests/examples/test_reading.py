"""From an answer to facts, dead letters or another attempt (PRJ-02)."""

import json
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.final_project.scraper import polite, reading
from examples.final_project.scraper.facts import Fact, Seen
from examples.final_project.scraper.reading import Again, Answer, Facts, Failure, GaveUp
from examples.final_project.scraper.sources import brokers as broker_source
from examples.final_project.scraper.sources import site as site_source
from examples.final_project.site import flights, pages

NOW_MS = 1_800_000_000_000
BOARD, TELEMETRY, ROCKETS, ASTRONAUTS = site_source.of("http://site")
METRICS = broker_source.of("broker-1", "http://broker/metrics")
PAGE = pages.board(7, NOW_MS).html


def outcome(job, answer, attempt=1):
    return reading.outcome(job, answer, attempt, NOW_MS, Random(7))


def facts(job, text, **more):
    body = text if isinstance(text, bytes) else text.encode()
    return outcome(job, Answer(200, {}, body, **more)).facts


def test_prj_02_a_page_becomes_facts_with_key_time_and_headers():
    shown = flights.measurements(7, NOW_MS - flights.MEASUREMENTS_SHOWN_MS, NOW_MS)
    found = facts(TELEMETRY, pages.telemetry(7, NOW_MS).html)
    assert [(fact.key, fact.at_ms) for fact in found] == [(m.flight, m.at_ms) for m in shown]
    first = json.loads(found[0].value)
    assert first["altitude_m"] == shown[0].altitude_m
    assert found[0].headers == {"source": "http://site/telemetry", "schema": "telemetry/1"}


def test_facts_keep_what_is_escaped_in_html():
    names = [json.loads(fact.value)["astronaut"] for fact in facts(ASTRONAUTS, astronauts())]
    assert "Sven O'Hara" in names
    assert "Lucía Paz" in names


def astronauts():
    return pages.astronauts(7, NOW_MS).html


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda html: html[:200], "truncated"),
        (lambda html: html.replace('id="astronauts"', 'id="crew"'), "layout: there is no table"),
        (lambda html: html.replace("<th>born", "<th>year"), "layout: table 'astronauts' has no"),
        (lambda html: html.encode("utf-16"), "encoding"),
        (lambda html: "", "truncated"),
        (lambda html: b"\x00\xff" * 100, "encoding"),
    ],
)
def test_a_page_that_cannot_be_read_is_one_dead_letter(spoil, reason):
    [letter] = facts(ASTRONAUTS, spoil(astronauts()))
    assert letter.topic == reading.DEAD_LETTERS
    assert letter.headers["reason"].startswith(reason)
    assert letter.headers["topic"] == "astronauts"


def test_a_row_that_cannot_be_read_does_not_take_the_others_with_it():
    found = facts(ASTRONAUTS, astronauts().replace("<td>1984", "<td>long ago"))
    letters = [fact for fact in found if fact.topic == reading.DEAD_LETTERS]
    assert len(found) == len(flights.ASTRONAUTS)
    assert [letter.headers["reason"] for letter in letters] == [
        "type: column 'born': invalid literal for int() with base 10: 'long ago'"
    ]
    assert json.loads(letters[0].value)["astronaut"] == "Ada Brandt"


@pytest.mark.parametrize("cell", ["nan", "inf", "", "12,5"])
def test_what_is_no_number_is_no_measurement(cell):
    html = pages.telemetry(7, NOW_MS).html
    lines = html.split("<tr>")
    cells = lines[2].split("<td>")
    cells[3] = f"{cell}</td>"
    lines[2] = "<td>".join(cells)
    first, *others = facts(TELEMETRY, "<tr>".join(lines))
    assert first.headers["reason"].startswith("type: column 'altitude m'")
    assert {fact.topic for fact in others} == {"telemetry"}


@pytest.mark.parametrize(
    "cell",
    [
        "2999-01-01T00:00:00+00:00",
        "1066-10-14T00:00:00+00:00",
        "0001-01-01T00:00:00+10:00",
        "9999-12-31T23:59:59-10:00",
    ],
)
def test_a_time_that_a_broker_would_refuse_is_a_dead_letter(cell):
    time = pages.telemetry(7, NOW_MS).html.split("<td>")[2].partition("<")[0]
    found = facts(TELEMETRY, pages.telemetry(7, NOW_MS).html.replace(time, cell, 1))
    assert [fact.topic for fact in found].count(reading.DEAD_LETTERS) == 1
    assert found[0].headers["reason"].startswith("type: a time")


def test_a_row_that_a_broker_would_refuse_is_a_dead_letter():
    found = facts(ASTRONAUTS, astronauts().replace("Ada Brandt", "Ada" * 50_000))
    assert found[0].headers["reason"].startswith("size: a row")
    assert len(found[0].value) == reading.LETTER_BYTES_MAX


def test_columns_may_move_and_be_added():
    page = (
        '<html><table id="astronauts"><thead><tr><th>born</th><th>new</th><th>nation</th>'
        "<th>astronaut</th></tr></thead><tbody><tr><td>1990</td><td>?</td><td>AR</td><td>Eva</td>"
        "</tr></tbody></table></html>"
    )
    [fact] = facts(ASTRONAUTS, page)
    assert json.loads(fact.value) == {"astronaut": "Eva", "born": 1990, "nation": "AR"}


def test_a_page_that_was_cut_is_a_dead_letter_of_bounded_size():
    [letter] = facts(ROCKETS, b"x" * 1_000_000, cut=True)
    assert letter.headers["reason"] == "size: more than 1000000 bytes"
    assert len(letter.value) == reading.LETTER_BYTES_MAX


def test_a_page_that_is_gone_is_a_dead_letter():
    [letter] = outcome(ROCKETS, Answer(404, {}, b"gone")).facts
    assert letter.headers["reason"] == "status: 404"


@pytest.mark.parametrize("body", [b"<html>", PAGE.encode()[:-20], b"\xff"])
def test_a_page_that_cannot_be_read_is_not_known_the_next_time(body):
    """Half a page may have the tag of the whole one, which would be answered "unchanged"."""
    found = outcome(BOARD, Answer(200, {"etag": '"a"'}, body))
    assert [letter.topic for letter in found.facts] == [reading.DEAD_LETTERS]
    assert found.validators == polite.Validators()
    whole = outcome(BOARD, Answer(200, {"etag": '"a"'}, PAGE.encode()))
    assert whole.validators.etag == '"a"'


def test_metrics_become_one_fact_per_series():
    text = (
        "# TYPE kafka_requests counter\n"
        'kafka_requests_total{request="Fetch"} 3.0\n'
        'kafka_requests_total{request="Produce"} 4.0\n'
        "python_info 1.0\n"
    )
    found = facts(METRICS, text)
    assert [json.loads(fact.value)["value"] for fact in found] == [3.0, 4.0]
    assert found[0].name == 'broker-1/kafka_requests_total{"request": "Fetch"}'


@pytest.mark.parametrize("text", ["<html></html>", "kafka_x{", "kafka_x many", "kafka_x NaN", ""])
def test_what_is_no_page_of_metrics_is_a_dead_letter(text):
    [letter] = facts(METRICS, text)
    assert letter.topic == reading.DEAD_LETTERS


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_nothing_in_a_body_ends_the_scraper(body):
    for job in (TELEMETRY, METRICS):
        assert isinstance(outcome(job, Answer(200, {}, body)), Facts)


@settings(deadline=None)
@given(st.integers(0, 2000), st.integers(0, 2000), st.text(max_size=4))
def test_nothing_done_to_a_page_ends_the_scraper(at, length, put):
    html = PAGE
    spoiled = html[:at] + put + html[at + length :]
    assert isinstance(outcome(BOARD, Answer(200, {}, spoiled.encode())), Facts)


def test_unchanged_is_nothing_to_do():
    assert outcome(BOARD, Answer(304, {}, b"")) == reading.Unchanged()


def test_a_server_that_says_when_is_asked_then_and_its_host_left_alone():
    again = outcome(BOARD, Answer(429, {"retry-after": "3"}, b""))
    assert again == Again(3000, "status 429", host_waits=True)


@pytest.mark.parametrize("answer", [Answer(503, {}, b""), Failure("ConnectError: refused")])
def test_failures_are_tried_again_until_it_is_enough(answer):
    assert isinstance(outcome(BOARD, answer), Again)
    assert isinstance(outcome(BOARD, answer, polite.ATTEMPTS_MAX), GaveUp)


def fact(name, value):
    return Fact("t", "k", name, NOW_MS, value)


def test_prj_02_a_fact_is_new_once_and_after_each_change():
    seen = Seen()
    one, other = fact("n", b"1"), fact("n", b"2")
    assert seen.new([one, one]) == [one]
    seen.learn(one.topic, one.name, one.content)
    assert seen.new([one]) == []
    assert seen.new([other]) == [other]
    assert seen.new([other, one]) == [other, one]


def test_facts_of_two_topics_do_not_hide_each_other():
    seen = Seen()
    one = fact("n", b"1")
    seen.learn("another", one.name, one.content)
    assert seen.new([one]) == [one]


def test_what_is_remembered_has_a_limit():
    seen = Seen(names_max=2)
    for name in "abc":
        seen.learn("t", name, "x")
    assert len(seen) == 2
