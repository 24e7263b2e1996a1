"""Subscriptions by regular expression, in RE2's syntax."""

import pytest

from strom.groups.consumer.patterns import check_pattern, resolve
from strom.groups.records import ConsumerGroupRegularExpressionKey
from strom.wire.errors import ErrorCode, KafkaError
from tests.groups.consumer_table import INTERVAL_MS, Table, plain

REFRESH_MS = 10_001


def matched(pattern, *names):
    table = Table(dict.fromkeys(names, 1))
    return sorted(resolve(pattern, table.image, 0).topics)


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("orders", ["orders"]),
        ("orders.*", ["orders", "orders-eu", "orders.us"]),
        ("ord", []),
        ("^orders$", ["orders"]),
        (r"orders\.us", ["orders.us"]),
        ("(?i)ORDERS", ["orders"]),
        ("orders-(eu|us)", ["orders-eu"]),
        (r"[^o].*", ["bills"]),
        (r"\pL+", ["bills", "orders"]),
        ("", []),
    ],
)
def test_a_name_must_match_as_a_whole(pattern, names):
    assert matched(pattern, "orders", "orders-eu", "orders.us", "bills") == names


#: What Apache Kafka 4.3.1 answers.
REFUSED = {
    "[": "missing closing ]",
    "(": "missing closing )",
    ")": "regexp/syntax: internal error",
    "*": "missing argument to repetition operator",
    "a**": "invalid nested repetition operator",
    "a{2,1}": "invalid repeat count",
    "\\": "trailing backslash at end of expression",
    r"\8": "invalid escape sequence",
    "[b-a]": "invalid character class range",
    "(?=a)": "invalid or unsupported Perl syntax",
    r"\p{Foo}": "invalid character class range",
    "(?P<n": "invalid named capture",
    "(a": "missing closing )",
}


@pytest.mark.parametrize("pattern", REFUSED)
def test_an_expression_that_cannot_be_read_is_refused_in_kafkas_words(pattern):
    with pytest.raises(KafkaError) as refused:
        check_pattern(pattern)
    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert refused.value.message == (
        f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {REFUSED[pattern]}."
    )


def test_an_expression_of_the_log_that_cannot_be_read_stands_for_nothing():
    assert matched("[", "t") == []


@pytest.fixture
def table():
    return Table({"ta": 1, "tb": 1, "u": 1})


def test_a_member_gets_what_its_expression_stands_for_at_once(table):
    reply = table.join("a", pattern="t.*")
    assert plain(reply.assignment) == {"ta": [0], "tb": [0]}


def test_names_and_an_expression_together(table):
    reply = table.join("a", "u", pattern="ta")
    assert plain(reply.assignment) == {"ta": [0], "u": [0]}


def test_an_expression_that_cannot_be_read_leaves_no_trace(table):
    assert table.refused(lambda: table.join("a", pattern="[")) is (
        ErrorCode.INVALID_REGULAR_EXPRESSION
    )
    assert not table.log


def test_a_topic_that_comes_later_is_taken_in(table):
    a = table.client("a", pattern="t.*")
    table.set_topic("tc", 1)
    a.beat()
    looked_up = table.group.patterns["t.*"].topics
    assert looked_up == {"ta", "tb"}, "not more often than every ten seconds"
    table.advance(REFRESH_MS)
    table.settle(a)
    assert a.holds == {"ta": [0], "tb": [0], "tc": [0]}


def test_topics_that_do_not_match_change_nothing(table):
    a = table.client("a", pattern="t.*")
    table.settle(a)
    table.set_topic("v", 1)
    table.advance(REFRESH_MS)
    before = len(table.log)
    table.settle(a)
    assert len(table.log) == before


def test_a_deleted_topic_is_taken_from_the_group_at_the_next_heartbeat(table):
    a = table.client("a", pattern="t.*")
    table.delete_topic("ta")
    table.settle(a)
    assert a.holds == {"tb": [0]}
    table.advance(REFRESH_MS)
    table.settle(a)
    assert table.group.patterns["t.*"].topics == {"tb"}


def test_what_all_expressions_stand_for_is_looked_at_again_from_time_to_time():
    table = Table({"ta": 1}, group_consumer_regex_refresh_interval_ms=20_000)
    a = table.client("a", pattern="t.*")
    table.settle(a)
    looked_at = table.watch.matched_at_ms
    for _ in range(5):
        table.advance(5000)
        a.beat()
    assert table.watch.matched_at_ms > looked_at


def test_an_expression_of_another_member_is_not_looked_up_again(table):
    table.join("a", pattern="t.*")
    before = len(table.log)
    table.advance(INTERVAL_MS)
    table.join("b", pattern="t.*")
    keys = [key for key, _ in table.written(before)]
    assert not any(isinstance(key, ConsumerGroupRegularExpressionKey) for key in keys)
    assert plain(table.group.targets["b"]) == {"tb": [0]}


def test_an_expression_goes_with_the_last_who_wants_it(table):
    table.join("a", pattern="t.*")
    table.join("b", pattern="t.*")
    table.beat("a", -1)
    assert set(table.group.patterns) == {"t.*"}
    table.beat("b", 2, pattern="u")
    assert set(table.group.patterns) == {"u"}
    table.beat("b", 2, pattern="", topics=["ta"], owned={})
    assert not table.group.patterns
    table.beat("b", 2, pattern="u", owned={})
    table.beat("b", -1)
    assert not table.group.patterns


def test_a_member_can_change_its_expression(table):
    a = table.client("a", pattern="ta")
    a.said["pattern"] = "u"
    a.beat(pattern="u")
    assert a.holds == {}
    table.settle(a)
    assert a.holds == {"u": [0]}
