"""`format("strom")` in a real Spark: batches and streams, against what librdkafka reads."""

import itertools
import json

import pytest
from typer.testing import CliRunner

from strom.cli import lag
from strom.cli.app import app
from tests.spark.topics import Row

pytest.importorskip("pyspark", reason="PySpark is not installed")

from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import to_arrow_schema

from strom.spark.arrow import SCHEMA, SCHEMA_WITH_HEADERS

pytestmark = [pytest.mark.slow, pytest.mark.java]

NAMES = itertools.count()
AWAIT_SECONDS = 120


@pytest.fixture
def topics(strom_topics):
    return strom_topics


def batch(spark, topics, **options):
    return spark.read.format("strom").options(**named(topics, options)).load()


def stream(spark, topics, **options):
    return spark.readStream.format("strom").options(**named(topics, options)).load()


def named(topics, options):
    given = {name.replace("__", "."): str(value) for name, value in options.items()}
    return {"kafka.bootstrap.servers": topics.bootstrap, **given}


def rows(frame):
    return sorted(
        Row(
            each.topic,
            each.partition,
            each.offset,
            None if each.key is None else bytes(each.key),
            None if each.value is None else bytes(each.value),
            each.ms,
            tuple((header.key, header.value) for header in each.headers or ())
            if "headers" in each
            else (),
        )
        for each in frame.selectExpr("*", "unix_millis(timestamp) as ms").collect()
    )


def fill(topics, partitions=3, count=300):
    topic = topics.make(partitions)
    values = [None if n % 5 == 0 else b"%d" % n for n in range(count)]
    topics.fill(topic, values, partitions, [b"k", None], [None, [("h", b"1")]])
    return topic


class Query:
    """A stream into a list, which may be started again from its checkpoint."""

    def __init__(self, frame, checkpoint):
        self.found = []
        self.writer = frame.writeStream.foreachBatch(self._take).option(
            "checkpointLocation", str(checkpoint)
        )

    def _take(self, frame, _number):
        self.found += map(tuple, frame.select("topic", "partition", "offset").collect())

    def run_to_the_end(self):
        """Read what there is, and end; return the offsets that came."""
        query = self.writer.trigger(availableNow=True).start()
        assert query.awaitTermination(AWAIT_SECONDS)
        self.progress = query.recentProgress
        return self.offsets()

    def offsets(self):
        return sorted(self.found)


@pytest.mark.parametrize("at", ["strom_topics", "kafka_topics"])
def test_str_02_a_batch_is_what_every_client_reads(spark, request, at):
    """ARC-02."""
    topics = request.getfixturevalue(at)
    topic = fill(topics)
    expected = topics.read(topic, 3)
    frame = batch(spark, topics, subscribe=topic, includeHeaders="true")
    assert to_arrow_schema(frame.schema, timezone="UTC") == SCHEMA_WITH_HEADERS
    assert rows(frame) == expected
    plain = batch(spark, topics, subscribe=topic, minPartitions=6)
    assert to_arrow_schema(plain.schema, timezone="UTC") == SCHEMA
    assert plain.rdd.getNumPartitions() == 6
    assert rows(plain) == [row._replace(headers=()) for row in expected]


def test_str_15_a_topic_in_sql(spark, topics):
    topic = fill(topics)
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW rides USING strom OPTIONS "
        f"(`kafka.bootstrap.servers` '{topics.bootstrap}', subscribe '{topic}')"
    )
    found = spark.sql("SELECT count(*), count(value), max(offset) FROM rides").first()
    assert tuple(found) == (300, 240, 99)
    # A LIMIT leaves a read early; the worker's next task is none the worse.
    assert spark.sql("SELECT * FROM rides LIMIT 3").count() == 3
    assert spark.table("rides").count() == 300


def test_an_empty_topic_has_no_rows(spark, topics):
    topic = topics.make(2)
    assert batch(spark, topics, subscribe=topic).count() == 0


def test_a_frame_shows_later_records_and_partitions_where_it_is_to_be_read_anew(spark, topics):
    from confluent_kafka.admin import NewPartitions

    topic = topics.make()
    once = batch(spark, topics, subscribe=topic)
    anew = batch(spark, topics, subscribe=topic, readAnew="true")
    assert (once.count(), anew.count()) == (0, 0)
    topics.admin.create_partitions([NewPartitions(topic, 3)])[topic].result()
    topics.fill(topic, [b"v"] * 6, 3)
    assert (once.count(), anew.count()) == (0, 6)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"subscribe": "t", "startingOffset": "earliest"}, "Did you mean 'startingOffsets'"),
        ({"subscribe": "t", "kafka__sasl__mechanism": "PLAIN"}, "kafka.sasl.mechanism"),
        ({"subscribe": "nowhere"}, "Topic nowhere does not exist"),
        ({}, "what is to be read"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_read(spark, topics, options, words):
    with pytest.raises(PySparkException) as caught:
        batch(spark, topics, **options).count()
    assert words in str(caught.value)


@pytest.mark.parametrize("kind", ["read", "readStream"])
def test_the_columns_of_a_topic_are_not_chosen(spark, topics, tmp_path, kind):
    reading = getattr(spark, kind).format("strom").schema("key binary, value binary")
    frame = reading.options(**named(topics, {"subscribe": topics.make()})).load()
    with pytest.raises(PySparkException, match="columns of a topic are fixed"):
        frame.count() if kind == "read" else Query(frame, tmp_path).run_to_the_end()


@pytest.mark.parametrize("at", ["strom_topics", "kafka_topics"])
def test_str_01_a_stream_goes_on_where_it_was(spark, request, at, tmp_path, monkeypatch):
    """ARC-03, ARC-05: in micro-batches, beside a batch of the same topic.

    MON-05: meanwhile every lag view shows the query like any consumer, also in time.
    """
    topics = request.getfixturevalue(at)
    topic = fill(topics)
    options = {"subscribe": topic, "startingOffsets": "earliest", "groupIdPrefix": "spark-tests"}
    first = Query(stream(spark, topics, **options, maxOffsetsPerTrigger=120), tmp_path)
    every = [(topic, row.partition, row.offset) for row in topics.read(topic, 3)]
    assert first.run_to_the_end() == every
    assert [each["numInputRows"] for each in first.progress if each["numInputRows"]] == [
        120,
        120,
        60,
    ]
    topics.fill(topic, [b"new"] * 30, 3)
    monkeypatch.setattr(lag, "AGE_SECONDS_MAX", AWAIT_SECONDS)
    (group,) = _groups(topics, "spark-tests-")
    shown = {each["partition"]: each for each in _positions(topics, group)}
    assert [shown[number]["lag"] for number in range(3)] == [10, 10, 10]
    assert all(0 <= each["lag_ms"] < AWAIT_SECONDS * 1000 for each in shown.values())
    second = Query(stream(spark, topics, **options), tmp_path)
    assert second.run_to_the_end() == [(topic, p, n) for p in range(3) for n in range(100, 110)]
    at_the_end = {each["partition"]: each for each in _positions(topics, group)}
    assert {n: each["current_offset"] for n, each in at_the_end.items()} == dict.fromkeys(
        range(3), 110
    )
    assert [each["lag"] for each in at_the_end.values()] == [0, 0, 0]
    assert batch(spark, topics, subscribe=topic).count() == len(every) + 30


def _groups(topics, prefix):
    listed = topics.admin.list_consumer_groups().result().valid
    return [each.group_id for each in listed if each.group_id.startswith(prefix)]


def _positions(topics, group):
    """What `strom group describe` tells of the group."""
    arguments = ["group", "describe", group, "--json", "-b", topics.bootstrap]
    told = CliRunner().invoke(app, arguments, prog_name="strom")
    assert told.exit_code == 0, told.output
    (found,) = json.loads(told.stdout)
    return found["offsets"]


def test_new_partitions_and_topics_are_found_while_a_query_runs(spark, topics, tmp_path):
    from confluent_kafka.admin import NewPartitions

    first = topics.make(1, f"grow-{next(NAMES)}-{tmp_path.name}")
    topics.fill(first, [b"a"] * 5)
    frame = stream(spark, topics, subscribePattern=f"{first}.*", startingOffsets="earliest")
    reading = Query(frame, tmp_path)
    query = reading.writer.start()
    try:
        query.processAllAvailable()
        assert len(reading.offsets()) == 5
        topics.admin.create_partitions([NewPartitions(first, 2)])[first].result()
        topics.fill(first, [b"b"] * 4, 2)
        second = topics.make(1, f"{first}-more")
        topics.fill(second, [b"c"] * 3)
        query.processAllAvailable()
        places = {(topic, number) for topic, number, _ in reading.offsets()}
        assert places == {(first, 0), (first, 1), (second, 0)}
        assert len(reading.offsets()) == 12
    finally:
        query.stop()


def test_a_first_micro_batch_that_failed_begins_where_it_did(spark, topics, tmp_path):
    """By default a query begins at the end of its topics, which moves on while it is down."""
    topic = fill(topics, 1, 20)
    failing = stream(spark, topics, subscribe=topic).writeStream.foreachBatch(_fail)
    query = failing.option("checkpointLocation", str(tmp_path)).start()
    with pytest.raises(PySparkException):
        query.awaitTermination(AWAIT_SECONDS)
    topics.fill(topic, [b"new"] * 7)
    again = Query(stream(spark, topics, subscribe=topic), tmp_path)
    assert again.run_to_the_end() == [(topic, 0, n) for n in range(20, 27)]


def _fail(_frame, _number):
    raise RuntimeError("killed")


@pytest.mark.parametrize("fails", [True, False])
def test_a_topic_made_anew_is_never_passed_over_in_silence(spark, topics, tmp_path, fails):
    topic = fill(topics, 1, 20)
    options = {"subscribe": topic, "startingOffsets": "earliest", "failOnDataLoss": fails}
    assert len(Query(stream(spark, topics, **options), tmp_path).run_to_the_end()) == 20
    topics.delete(topic)
    topics.make(1, topic)
    topics.fill(topic, [b"other"] * 30)
    again = Query(stream(spark, topics, **options), tmp_path)
    if fails:
        with pytest.raises(PySparkException) as caught:
            again.run_to_the_end()
        assert "deleted and made anew" in str(caught.value)
    else:
        assert len(again.run_to_the_end()) == 30


def test_workers_load_what_is_compiled(spark):
    """Every Python process of a query would compile PySpark anew if it came from its zip."""

    def where(_):
        import pyspark

        return pyspark.__file__

    (found,) = spark.sparkContext.parallelize([0], 1).map(where).collect()
    assert ".zip" not in found
