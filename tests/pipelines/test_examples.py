"""The examples, each on real topics, from bytes to bytes: what is sent, and what must come out."""

import json
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from strom.pipelines.loading import load
from strom.pipelines.status import DONE

pytestmark = [pytest.mark.slow, pytest.mark.java]

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "pipelines"


def text(value):
    return json.dumps(value).encode()


@pytest.fixture
def topics(strom_topics):
    """Topics under the names of the examples, which are gone afterwards."""
    made = []

    class Named:
        def make(self, *names, partitions=1):
            for name in names:
                strom_topics.make(partitions, name)
                made.append(name)

        def send(self, name, *values, keys=None, **more):
            encoded = [each if isinstance(each, bytes | None) else text(each) for each in values]
            keyed = [each.encode() for each in keys] if keys else None
            strom_topics.fill(name, encoded, keys=keyed, **more)

        def values(self, name, partitions=1):
            rows = strom_topics.read(name, partitions)
            return [json.loads(row.value) for row in rows]

        rows = staticmethod(strom_topics.read)

    yield Named()
    for name in made:
        strom_topics.delete(name)


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
    topics.send("rides", {"rider": "a", "km": 5}, {"rider": "b", "km": 20})
    example("filter_map")
    rows = spark.read.parquet(str(tmp_path / "long-rides")).collect()
    assert [tuple(row) for row in rows] == [("b", 12.4)]


def test_str_02_07_streams_are_merged_and_split(topics, example):
    topics.make("shop-orders", "web-orders", "orders")
    topics.make("orders-domestic", "orders-abroad", "orders-unknown")
    topics.send("shop-orders", {"id": "1", "country": "DE", "amount": 5})
    topics.send("web-orders", {"id": "2", "country": "FR", "amount": 6}, {"id": "3", "amount": 7})
    example("merge")
    assert [(each["id"], each["channel"]) for each in by("id", topics.values("orders"))] == [
        ("1", "shop"),
        ("2", "web"),
        ("3", "web"),
    ]
    example("split")
    assert topics.values("orders-domestic") == [{"id": "1", "amount": 5}]
    assert topics.values("orders-abroad") == [{"id": "2", "country": "FR", "amount": 6}]
    assert topics.values("orders-unknown") == [{"id": "3", "amount": 7}]


def test_str_05_09_groups_have_count_sum_min_and_max_as_a_changelog(topics, example):
    topics.make("rides", "rider-totals")
    topics.send("rides", *({"rider": "a", "km": km} for km in (4, 2)), {"rider": "b", "km": 1})
    example("totals")
    topics.send("rides", {"rider": "a", "km": 9})
    example("totals")

    rows = topics.rows("rider-totals")
    newest = {row.key.decode(): json.loads(row.value) for row in rows}
    assert len(rows) == 3
    assert newest == {
        "a": {"rider": "a", "rides": 3, "km": 15, "shortest": 2, "longest": 9},
        "b": {"rider": "b", "rides": 1, "km": 1, "shortest": 1, "longest": 1},
    }


def reading(minute, celsius=200):
    at = f"2026-11-16T{10 + minute // 60}:{minute % 60:02d}:00Z"
    return {"oven": "o", "at": at, "celsius": celsius}


def windows(topics, name):
    found = [
        (each["start"][11:16], each["end"][11:16], each["readings"]) for each in topics.values(name)
    ]
    return sorted(found)


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

    assert windows(topics, "oven-tumbling") == [
        ("10:00", "10:05", 3),
        ("10:05", "10:10", 1),
        ("10:30", "10:35", 2),
    ]
    assert windows(topics, "oven-sliding") == [
        ("09:55", "10:05", 3),
        ("10:00", "10:10", 4),
        ("10:05", "10:15", 1),
        ("10:25", "10:35", 2),
        ("10:30", "10:40", 2),
    ]
    assert windows(topics, "oven-sessions") == [
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
    assert topics.values("paid-orders") == [{"id": "1", "amount": 5, "method": "card"}]


def test_str_09_20_a_stream_is_joined_with_the_newest_of_a_table(topics, example):
    topics.make("rides", "riders", "named-rides")
    topics.send(
        "riders",
        {"name": "Old", "city": "X"},
        {"name": "Ada", "city": "Bonn"},
        {"name": "Bob", "city": "Ulm"},
        None,
        keys=["a", "a", "b", "b"],
    )
    topics.send("rides", {"rider": "a", "km": 1}, {"rider": "b", "km": 2})
    example("stream_table")
    assert by("rider", topics.values("named-rides")) == [
        {"rider": "a", "km": 1, "name": "Ada", "city": "Bonn"},
        {"rider": "b", "km": 2},
    ]


def test_str_09_a_stream_becomes_a_table_and_a_changelog(topics, example):
    topics.make("flight-data", "rocket-positions")
    data = [{"altitude": n, "speed": 1} for n in (1, 2, 3)]
    topics.send("flight-data", *data, keys=["r1", "r2", "r1"])
    example("changelog")
    assert by("key", topics.values("rocket-positions")) == [
        {"key": "r1", "altitude": 3, "speed": 1},
        {"key": "r2", "altitude": 2, "speed": 1},
    ]


def test_str_19_what_was_sent_twice_comes_once(topics, example):
    topics.make("events", "events-once")
    at = "2026-11-16T10:00:00.000Z"
    sent = [{"id": n, "at": at, "text": n} for n in ("1", "2", "1")]
    topics.send("events", *sent)
    example("deduplicate")
    topics.send("events", sent[1], {"id": "3", "at": at, "text": "3"})
    example("deduplicate")
    assert [each["id"] for each in by("id", topics.values("events-once"))] == ["1", "2", "3"]


def test_str_10_three_attempts_in_five_minutes_are_an_alert_with_the_holder(topics, example):
    """STR-10, USE-04."""
    topics.make("authorisations", "card-holders", "card-alerts")
    topics.send("card-holders", {"name": "Eve", "phone": "110"}, keys=["c1"])

    def attempt(card, minute):
        return {"card": card, "at": f"2026-11-16T10:{minute:02d}:00Z", "amount": 10}

    topics.send(
        "authorisations",
        *(attempt("c1", minute) for minute in (0, 1, 4)),
        *(attempt("c2", minute) for minute in (0, 4, 5)),
        attempt("c3", 20),
    )
    example("credit_cards")
    (alert,) = topics.values("card-alerts")
    assert alert.pop("start").startswith("2026-11-16T10:00:00")
    assert alert == {"card": "c1", "name": "Eve", "phone": "110", "attempts": 3, "amount": 30}


def test_str_16_top_10_a_topic_is_copied_into_more_partitions_in_order(topics, example):
    topics.make("orders-old", partitions=2)
    topics.make("orders-new", partitions=5)
    keys = [b"k%d" % (n % 7) for n in range(100)]
    topics.send(
        "orders-old",
        *(b"%d" % n for n in range(100)),
        keys=[key.decode() for key in keys],
        headers=[[("h", b"1")]],
    )
    example("copy_topic")

    old, new = topics.rows("orders-old", 2), topics.rows("orders-new", 5)
    assert len({row.partition for row in new}) > 2
    assert {row.headers for row in new} == {(("h", b"1"),)}
    assert {key: [row.value for row in new if row.key == key] for key in keys} == {
        key: [row.value for row in old if row.key == key] for key in keys
    }


def test_every_example_is_named_in_the_docs():
    page = (EXAMPLES.parent.parent / "docs" / "pipelines.md").read_text()
    names = sorted(path.name for path in EXAMPLES.glob("*.py") if path.stem != "__init__")
    assert [name for name in names if name not in page] == []
