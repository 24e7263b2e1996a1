"""The examples, each on real topics, from bytes to bytes: what is sent, and what must come out."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from strom.pipelines.graph import Graph
from strom.pipelines.loading import load
from strom.pipelines.picture_svg import draw_svg
from strom.pipelines.status import DONE
from strom.spark.bodies.avro_body import AvroBody
from tests.spark.killing import forget_the_end

pytestmark = [pytest.mark.slow, pytest.mark.java]

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = ROOT / "examples" / "pipelines"
DOCS = ROOT / "docs"


def text(value):
    return json.dumps(value).encode()


class ExampleTopics:
    """Topics under the names of the examples."""

    def __init__(self, topics):
        self._topics = topics
        self._made = []

    def make(self, *names, partitions=1):
        for name in names:
            self._topics.make(partitions, name)
            self._made.append(name)

    def send(self, name, *values, **more):
        encoded = [each if isinstance(each, bytes | None) else text(each) for each in values]
        self._topics.fill(name, encoded, **more)

    def rows(self, name, count, partitions=1):
        return self._topics.read_once_there(name, count, partitions)

    def values(self, name, count):
        return [json.loads(row.value) for row in self.rows(name, count)]

    def remove(self):
        for name in self._made:
            self._topics.delete(name)


@pytest.fixture
def topics(strom_topics):
    named = ExampleTopics(strom_topics)
    yield named
    named.remove()


@pytest.fixture
def example(run):
    """Run an example once on what is there."""

    def run_example(name):
        status = run(load(EXAMPLES / f"{name}.py"))
        assert status.state == DONE
        return {sink.sink: sink for sink in status.sinks}

    return run_example


def by(field, values):
    return sorted(values, key=lambda value: value[field])


def test_str_03_filter_and_map(spark, topics, example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    topics.make("rides")
    at_the_limit = {"rider": "c", "km": 10}
    topics.send("rides", {"rider": "a", "km": 5}, {"rider": "b", "km": 20}, at_the_limit)
    example("filter_map")
    rows = spark.read.parquet(str(tmp_path / "long-rides")).collect()
    assert [tuple(row) for row in rows] == [("b", 12.4)]


def test_str_02_07_streams_are_merged_and_split(topics, example):
    topics.make("shop-orders", "web-orders", "orders")
    topics.make("orders-domestic", "orders-abroad")
    topics.send("shop-orders", {"id": "1", "country": "DE", "amount": 5})
    topics.send("web-orders", {"id": "2", "country": "FR", "amount": 6}, {"id": "3", "amount": 7})
    example("merge")
    assert [(each["id"], each["channel"]) for each in by("id", topics.values("orders", 3))] == [
        ("1", "shop"),
        ("2", "web"),
        ("3", "web"),
    ]
    example("split")
    assert topics.values("orders-domestic", 1) == [{"id": "1", "amount": 5}]
    assert by("id", topics.values("orders-abroad", 2)) == [
        {"id": "2", "country": "FR", "amount": 6},
        {"id": "3", "amount": 7},
    ]


def test_str_05_09_groups_have_count_sum_min_and_max_as_a_changelog(topics, example, tmp_path):
    topics.make("rides", "rider-totals")
    topics.send("rides", *({"rider": "a", "km": km} for km in (4, 2)), {"rider": "b", "km": 1})
    example("totals")
    topics.send("rides", {"rider": "a", "km": 9})
    example("totals")
    (commits,) = tmp_path.rglob("commits")
    forget_the_end(commits.parent)
    example("totals")

    rows = topics.rows("rider-totals", 3)
    newest = {row.key.decode(): json.loads(row.value) for row in rows}
    assert len(rows) == 3
    assert newest == {
        "a": {"rider": "a", "rides": 3, "km": 15, "shortest": 2, "longest": 9},
        "b": {"rider": "b", "rides": 1, "km": 1, "shortest": 1, "longest": 1},
    }


def reading(minute, celsius=200):
    at = f"2026-11-16T{10 + minute // 60}:{minute % 60:02d}:00Z"
    return {"oven": "o", "at": at, "celsius": celsius}


def windows(topics, name, count):
    found = topics.values(name, count)
    return sorted((each["start"][11:16], each["end"][11:16], each["readings"]) for each in found)


def test_str_06_windows_tumble_slide_and_follow_sessions_and_late_readings_are_told(
    topics, example
):
    sinks = ("oven-tumbling", "oven-sliding", "oven-sessions")
    topics.make("oven-readings", *sinks)
    # One comes out of order, but not too late; the last pushes the watermark over the others.
    topics.send("oven-readings", *map(reading, (1, 2, 9, 4, 30)))
    example("windows")
    topics.send("oven-readings", reading(3), reading(31), reading(60))
    status = example("windows")

    assert windows(topics, "oven-tumbling", 3) == [
        ("10:00", "10:05", 3),
        ("10:05", "10:10", 1),
        ("10:30", "10:35", 2),
    ]
    assert windows(topics, "oven-sliding", 5) == [
        ("09:55", "10:05", 3),
        ("10:00", "10:10", 4),
        ("10:05", "10:15", 1),
        ("10:25", "10:35", 2),
        ("10:30", "10:40", 2),
    ]
    assert windows(topics, "oven-sessions", 3) == [
        ("10:01", "10:07", 3),
        ("10:09", "10:12", 1),
        ("10:30", "10:34", 2),
    ]
    assert status["oven-tumbling"].late_rows == 1


def test_str_04_two_streams_are_joined(topics, example):
    topics.make("placed-orders", "payments", partitions=2)
    topics.make("paid-orders")
    at = "2026-11-16T10:00:00Z"
    topics.send("placed-orders", *({"id": n, "at": at, "amount": 5} for n in "123"))
    topics.send(
        "payments",
        {"order": "1", "at": "2026-11-16T10:20:00Z", "method": "card"},
        {"order": "2", "at": "2026-11-16T11:20:00Z", "method": "late"},
        {"order": "9", "at": at, "method": "nobody's"},
    )
    example("stream_stream")
    assert topics.values("paid-orders", 1) == [{"id": "1", "amount": 5, "method": "card"}]


def test_str_09_20_a_stream_is_joined_with_the_newest_of_a_table(topics, example):
    topics.make("rides", "riders", "named-rides")
    topics.send(
        "riders",
        {"name": "Old", "city": "X"},
        {"name": "Ada", "city": "Bonn"},
        {"name": "Bob", "city": "Ulm"},
        None,
        keys=[b"a", b"a", b"b", b"b"],
    )
    topics.send("rides", {"rider": "a", "km": 1}, {"rider": "b", "km": 2})
    example("stream_table")
    assert by("rider", topics.values("named-rides", 2)) == [
        {"rider": "a", "km": 1, "name": "Ada", "city": "Bonn"},
        {"rider": "b", "km": 2},
    ]


def test_str_09_two_tables_are_filtered_and_joined_and_either_may_change(topics, example):
    topics.make("crews", "positions", "in-space")

    def newest(count):
        return {
            row.key: row.value and json.loads(row.value) for row in topics.rows("in-space", count)
        }

    topics.send("crews", {"commander": "Ada"}, {"commander": "Bob"}, keys=[b"f1", b"f2"])
    topics.send("positions", {"altitude": 150}, {"altitude": 50}, keys=[b"f1", b"f2"])
    example("table_table")
    assert newest(4) == {b"f1": {"commander": "Ada", "altitude": 150}, b"f2": None}
    topics.send("positions", {"altitude": 200}, keys=[b"f2"])
    example("table_table")
    assert newest(5)[b"f2"] == {"commander": "Bob", "altitude": 200}
    topics.send("crews", None, {"commander": "Cleo"}, keys=[b"f1", b"f2"])
    example("table_table")
    assert newest(7) == {b"f1": None, b"f2": {"commander": "Cleo", "altitude": 200}}


def test_str_09_a_stream_becomes_a_table_and_a_changelog(topics, example):
    topics.make("flight-data", "rocket-positions")
    data = [{"altitude": n, "speed": 1} for n in (1, 2, 3)]
    topics.send("flight-data", *data, keys=[b"r1", b"r2", b"r1"])
    example("changelog")
    assert by("key", topics.values("rocket-positions", 2)) == [
        {"key": "r1", "altitude": 3, "speed": 1},
        {"key": "r2", "altitude": 2, "speed": 1},
    ]


def test_str_19_what_was_sent_twice_comes_once(topics, example):
    """As long as a repetition may be late, which is an hour; then its id is forgotten."""
    topics.make("events", "events-once")

    def event(name, at):
        return {"id": name, "at": f"2026-11-16T{at}:00Z", "text": name}

    for sent in (
        [event("1", "10:00"), event("2", "10:30"), event("1", "10:00")],
        # Sent again later, and one that comes half an hour late.
        [event("1", "10:40"), event("2", "10:30"), event("3", "10:00")],
        [event("4", "13:00")],
        [event("1", "13:01")],
    ):
        topics.send("events", *sent)
        example("deduplicate")
    found = [each["id"] for each in by("id", topics.values("events-once", 5))]
    assert found == ["1", "1", "2", "3", "4"]


def attempt(card, minute, second=0):
    return {"card": card, "at": f"2026-11-16T10:{minute:02d}:{second:02d}Z", "amount": 10}


def alerts(topics, count):
    """The cards with the number of attempts, and the minutes of the first and the last."""
    found = topics.values("card-alerts", count)
    return sorted(
        (each["card"], each["attempts"], each["first"][14:16], each["last"][14:16])
        for each in found
    )


def test_str_10_three_attempts_in_five_minutes_are_an_alert_with_the_holder(topics, example):
    """STR-10, USE-04: whichever five minutes, at once, and each once."""
    topics.make("authorisations", "card-holders", "card-alerts")
    topics.send("card-holders", {"name": "Eve", "phone": "110"}, keys=[b"c1"])
    topics.send(
        "authorisations",
        *(attempt("c1", minute) for minute in (4, 5, 6)),
        *(attempt("c2", minute) for minute in (0, 4)),
        attempt("c2", 5, 1),
    )
    example("credit_cards")
    (alert,) = topics.values("card-alerts", 1)
    assert alert.pop("first").startswith("2026-11-16T10:04:00")
    assert alert.pop("last").startswith("2026-11-16T10:06:00")
    assert alert == {"card": "c1", "name": "Eve", "phone": "110", "attempts": 3, "amount": 30}


def test_str_10_a_restart_remembers_attempts_and_one_may_come_out_of_order(topics, example):
    topics.make("authorisations", "card-holders", "card-alerts")
    sent = [attempt("c1", 4), attempt("c1", 5), attempt("c2", 2), attempt("c2", 6)]
    topics.send("authorisations", *sent)
    example("credit_cards")
    # The one of c2 is older than what is known, by less than the minute of the watermark.
    topics.send("authorisations", attempt("c1", 9), attempt("c2", 5, 30), attempt("c1", 10))
    example("credit_cards")
    # Ten minutes on nothing of that counts any more, and what is too late is left out.
    topics.send("authorisations", *(attempt("c1", minute) for minute in (20, 21)))
    example("credit_cards")
    topics.send("authorisations", attempt("c1", 8), attempt("c1", 22))
    status = example("credit_cards")

    assert alerts(topics, 4) == [
        ("c1", 3, "04", "09"),
        ("c1", 3, "05", "10"),
        ("c1", 3, "20", "22"),
        ("c2", 3, "02", "06"),
    ]
    assert status["card-alerts"].late_rows == 1


def test_str_16_top_10_a_topic_is_copied_into_more_partitions_in_order(topics, example):
    topics.make("orders-old", partitions=2)
    topics.make("orders-new", partitions=5)
    # As many that each is in one partition.
    keys = [b"k%d" % n for n in range(14)]
    values = [b"%d" % n for n in range(100)]
    topics.send("orders-old", *values, partitions=2, keys=keys, headers=[[("h", b"1")]])
    example("copy_topic")

    old, new = topics.rows("orders-old", 100, 2), topics.rows("orders-new", 100, 5)
    assert len({row.partition for row in new}) > 2
    assert {row.headers for row in new} == {(("h", b"1"),)}
    assert {key: [row.value for row in new if row.key == key] for key in keys} == {
        key: [row.value for row in old if row.key == key] for key in keys
    }


def test_msg_12_what_cannot_be_read_goes_to_a_topic_with_the_reason(topics, example):
    """MSG-11, MSG-12: Avro as columns; the good go on, the bad are dead letters."""
    pytest.importorskip("fastavro", reason="fastavro is not installed")
    topics.make("oven-avro", "oven-dead-letters", "oven-alarms")
    reading = AvroBody(load(EXAMPLES / "dead_letters.py").nodes[0].body.schema).writer()
    at = datetime(2026, 11, 16, 10, tzinfo=UTC)
    hot = reading({"oven": "o", "at": at, "celsius": 310.0})
    sent = [hot[:-1], hot, None, b"{}", hot + b"!", reading({"oven": "o", "at": at}), hot]
    topics.send("oven-avro", *sent, keys=[b"k"], headers=[[("trace", b"7")]])
    status = example("dead_letters")

    alarms = topics.values("oven-alarms", 2)
    assert [(each["oven"], each["at"][:19], each["celsius"]) for each in alarms] == [
        ("o", "2026-11-16T10:00:00", 310),
        ("o", "2026-11-16T10:00:00", 310),
    ]
    letters = topics.rows("oven-dead-letters", 3)
    assert [(each.key, each.value) for each in letters] == [
        (b"k", value) for value in (hot[:-1], b"{}", hot + b"!")
    ]
    told = [dict(each.headers) for each in letters]
    assert [each["trace"] for each in told] == [b"7"] * 3
    assert [each["__connect.errors.offset"] for each in told] == [b"0", b"3", b"4"]
    assert told[0]["__connect.errors.topic"] == b"oven-avro"
    reasons = [each["__connect.errors.exception.message"].decode() for each in told]
    assert reasons[0] == "it is no Avro of Reading: it ends within the record"
    assert reasons[2] == "it is no Avro of Reading: 1 bytes are left after the record"
    assert [each.bad_rows for each in status.values()] == [3, 3]


def test_the_picture_in_the_docs_is_the_examples():
    pipeline = load(EXAMPLES / "credit_cards.py")
    assert (DOCS / "credit-cards.svg").read_text() == draw_svg(Graph.of(pipeline), pipeline.name)


def test_every_example_is_named_in_the_docs():
    page = (DOCS / "pipelines.md").read_text()
    names = sorted(path.name for path in EXAMPLES.glob("*.py") if path.stem != "__init__")
    assert [name for name in names if name not in page] == []
