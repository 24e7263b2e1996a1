"""Whether, when and how a site is asked (PRJ-02)."""

from email.utils import formatdate
from random import Random

import pytest

from examples.final_project.scraper import polite
from examples.final_project.scraper.polite import Pace, Validators

NOW_MS = 1_800_000_000_000


def test_prj_02_robots_are_heeded():
    robots = polite.robots(200, "User-agent: *\nDisallow: /private/\nRequest-rate: 5/1", NOW_MS)
    assert robots.allows("http://site/flights")
    assert not robots.allows("http://site/private/x")
    assert robots.pace_ms == 200


def test_the_slower_of_two_paces_counts():
    robots = polite.robots(200, "User-agent: *\nCrawl-delay: 3\nRequest-rate: 5/1", NOW_MS)
    assert robots.pace_ms == 3000


def test_a_pace_of_parts_of_a_second_is_heeded():
    robots = polite.robots(200, "User-agent: *\nCrawl-delay: 2.5\nDisallow: /1.5", NOW_MS)
    assert robots.pace_ms == 2500
    assert not robots.allows("http://site/1.5")


@pytest.mark.parametrize(
    ("line", "forbidden", "allowed"),
    [
        ("Disallow: /*.pdf$", "/a/b.pdf", "/a/b.pdf?c"),
        ("Disallow: /a*/z", "/abc/def/z", "/abc"),
        ("Disallow: /*?sort=", "/a?sort=up", "/a?page=2"),
        ("Disallow: /a\nAllow: /a/open", "/a/shut", "/a/open/b"),
        ("Disallow: /%7Ejoe", "/~joe/x", "/joe"),
    ],
)
def test_prj_02_wildcards_and_the_longest_rule_count(line, forbidden, allowed):
    robots = polite.robots(200, f"\ufeffUser-agent: *\n{line}", NOW_MS)
    assert not robots.allows("http://site" + forbidden)
    assert robots.allows("http://site" + allowed)


def test_a_pattern_that_is_made_to_take_for_ever_takes_no_time():
    robots = polite.robots(200, "User-agent: *\nDisallow: /" + 500 * "*a" + "$", NOW_MS)
    assert robots.allows("http://site/" + 20_000 * "a" + "b")


@pytest.mark.parametrize(
    ("status", "allowed"), [(404, True), (403, True), (500, False), (None, False)]
)
def test_robots_that_are_missing_allow_and_robots_that_fail_forbid(status, allowed):
    assert polite.robots(status, "", NOW_MS).allows("http://site/flights") is allowed


def test_robots_that_failed_are_asked_for_again_soon():
    kept_ms = polite.robots(200, "", NOW_MS).until_ms
    assert polite.robots(None, "", NOW_MS).until_ms < kept_ms


@pytest.mark.parametrize(
    "line",
    [
        "Crawl-delay: " + "9" * 5000,
        "Crawl-delay: " + "9" * 400 + ".5",
        "Crawl-delay: ²",
        "Request-rate: ²/1",
        "Disallow: //[x",
        "Disallow: http://[x/",
    ],
)
def test_a_line_of_robots_that_cannot_be_read_leaves_the_others_alone(line):
    text = f"User-agent: *\nDisallow: /private/\n{line}\nDisallow: /secret/"
    robots = polite.robots(200, text, NOW_MS)
    assert robots.allows("http://site/flights")
    assert not robots.allows("http://site/private/x")
    assert not robots.allows("http://site/secret/x")


def test_robots_of_nothing_but_empty_lines_are_read_in_one_go():
    assert polite.robots(200, "\n" * 2_000_000, NOW_MS).allows("http://site/flights")


def test_no_pace_is_slower_than_robots_are_asked_for_again():
    robots = polite.robots(200, "User-agent: *\nCrawl-delay: 99999999999999999", NOW_MS)
    assert robots.pace_ms == polite.ROBOTS_KEPT_MS


def test_an_address_that_is_none_is_not_allowed():
    robots = polite.robots(200, "User-agent: *\nDisallow: /private/", NOW_MS)
    assert not robots.allows("http://[::1/flights")


def test_each_host_has_its_own_pace():
    pace = Pace()
    pace.asked("a", NOW_MS, 200)
    assert pace.wait_ms("a", NOW_MS + 50) == 150
    assert pace.wait_ms("a", NOW_MS + 200) == 0
    assert pace.wait_ms("b", NOW_MS) == 0


def test_a_host_that_asked_to_be_left_alone_is():
    pace = Pace()
    pace.hold("a", NOW_MS + 5000)
    pace.asked("a", NOW_MS, 200)
    assert pace.wait_ms("a", NOW_MS) == 5000


def test_back_off_grows_and_is_bounded():
    chance = Random(7)
    for attempt in range(1, 40):
        longest_ms = min(polite.BACK_OFF_MAX_MS, polite.BACK_OFF_FIRST_MS * 2 ** (attempt - 1))
        waits = [polite.back_off_ms(attempt, chance) for _ in range(50)]
        assert min(waits) > 0
        assert max(waits) <= longest_ms
        assert len(set(waits)) > 1


@pytest.mark.parametrize(
    ("value", "waits_ms"),
    [
        ("2", 2000),
        (formatdate(NOW_MS / 1000 + 90, usegmt=True), 90_000),
        (formatdate(NOW_MS / 1000 - 90, usegmt=True), 0),
        ("999999999", polite.RETRY_AFTER_MAX_MS),
        ("soon", None),
        ("-1", None),
        ("9" * 5000, polite.RETRY_AFTER_MAX_MS),
        ("²", None),
        ("Mon, 01 Jan 99999999999999999999 00:00:00 GMT", None),
        ("Mon, 01 Jan 9999 00:00:00 GMT", polite.RETRY_AFTER_MAX_MS),
        (None, None),
    ],
)
def test_retry_after_is_a_number_or_a_date(value, waits_ms):
    assert polite.retry_after_ms(value, NOW_MS) == waits_ms


def test_validators_become_a_conditional_request():
    given = {"etag": '"a"', "last-modified": "Tue, 15 Jan 2030 08:00:00 GMT"}
    asked = Validators.of(given).headers()
    assert asked == {"If-None-Match": '"a"', "If-Modified-Since": given["last-modified"]}
    assert Validators.of({}).headers() == {}


def test_validators_that_no_request_can_carry_are_not_kept():
    given = {"etag": '"ü"', "last-modified": "Tue, 15 Jan 2030 08:00:00 GMT"}
    asked = Validators.of(given).headers()
    assert asked == {"If-Modified-Since": given["last-modified"]}
