"""Spark writes rows to topics, and every Kafka client reads them there."""

import pytest

from strom.records.plain_packing import murmur2

pytest.importorskip("pyspark", reason="PySpark is not installed")

import pyarrow as pa
from pyspark.errors import PySparkException

from strom.spark.session import HANDED_OVER_BYTES
from tests.spark.killing import forget_the_end
from tests.spark.topics import copy

pytestmark = [pytest.mark.slow, pytest.mark.java]

AWAIT_SECONDS = 120
PARTITIONS = 3


class Written:
    """Topics of a test, and what another client reads of them."""

    def __init__(self, topics):
        self._topics = topics
        self.bootstrap = topics.bootstrap

    def new(self):
        return self._topics.make(PARTITIONS)

    def records(self, topic):
        """What is committed, partition by partition."""
        return self._topics.read(topic, PARTITIONS)

    def values(self, topic):
        return sorted(each.value for each in self.records(topic))

    def values_once_there(self, topic, count):
        """As `values`, once there are so many: of a commit Kafka's partitions hear later."""
        found = self._topics.read_once_there(topic, count, PARTITIONS)
        return sorted(each.value for each in found)


@pytest.fixture
def topics(strom_topics):
    return Written(strom_topics)


def write(rows, topics, topic=None, /, **options):
    writing = rows.write.format("strom").mode("append").options(**options)
    if topic is not None:
        writing = writing.option("topic", topic)
    writing.option("kafka.bootstrap.servers", topics.bootstrap).save()


@pytest.mark.parametrize(
    ("at", "codec"), [("strom_topics", "none"), ("strom_topics", "lz4"), ("kafka_topics", "lz4")]
)
def test_rows_are_read_by_another_client_where_it_looks_for_them(spark, request, at, codec):
    """PRO-05, PRO-13, MSG-12: at Apache Kafka too."""
    topics = Written(request.getfixturevalue(at))
    topic = topics.new()
    rows = spark.range(5000).selectExpr(
        "cast(id % 50 as string) as key",
        "if(id % 7 = 0, null, cast(id as string)) as value",
        "array(named_struct('key', 'of', 'value', cast(cast(id as string) as binary))) as headers",
    )
    write(rows, topics, topic, **{"kafka.compression.type": codec})
    found = topics.records(topic)
    for each in found:
        assert each.partition == (murmur2(each.key) & 0x7FFFFFFF) % PARTITIONS
        ((name, number),) = each.headers
        assert name == "of"
        assert each.value == (None if int(number) % 7 == 0 else number)
        assert each.key == b"%d" % (int(number) % 50)
    numbers = [int(each.headers[0][1]) for each in found]
    assert sorted(numbers) == list(range(5000))


def test_rows_without_a_key_stay_together(spark, topics):
    """PRO-07."""
    topic = topics.new()
    write(spark.range(0, 200, 1, 1).selectExpr("cast(id as string) as value"), topics, topic)
    found = topics.records(topic)
    assert [each.value for each in found] == [b"%d" % at for at in range(200)]
    assert len({each.partition for each in found}) == 1


def test_rows_say_their_topic_and_partition(spark, topics):
    """PRO-08, PRO-22: one stream of rows into several topics."""
    first, second = topics.new(), topics.new()
    rows = spark.range(100).selectExpr(
        "cast(id as string) as value",
        f"if(id % 2 = 0, '{first}', '{second}') as topic",
        "cast(id % 3 as int) as partition",
    )
    write(rows, topics)
    for topic, odd in ((first, 0), (second, 1)):
        found = topics.records(topic)
        assert sorted(int(each.value) for each in found) == list(range(odd, 100, 2))
        assert all(int(each.value) % 3 == each.partition for each in found)


def test_what_was_read_is_inserted_as_it_is(spark, topics):
    """STR-16: copying a topic is one statement."""
    source, target = topics.new(), topics.new()
    write(spark.range(100).selectExpr("cast(id as string) as value"), topics, source)
    for name, topic in (("source", source), ("target", target)):
        spark.sql(
            f"CREATE OR REPLACE TEMPORARY VIEW {name} USING strom OPTIONS ("
            f"`kafka.bootstrap.servers` '{topics.bootstrap}', subscribe '{topic}', topic '{topic}')"
        )
    spark.sql("INSERT INTO target SELECT * FROM source")
    assert topics.values(target) == topics.values(source)
    assert spark.table("target").count() == 100


@pytest.mark.parametrize(
    ("at", "exactly_once"),
    [("strom_topics", "true"), ("strom_topics", "false"), ("kafka_topics", "true")],
)
def test_a_stream_goes_on_where_it_was(spark, request, tmp_path, at, exactly_once):
    """STR-02, STR-13, STR-20: at Apache Kafka too."""
    topics = Written(request.getfixturevalue(at))
    source, target = topics.new(), topics.new()
    for first in (0, 400):
        rows = spark.range(first, first + 400).selectExpr("cast(id as string) as value")
        write(rows, topics, source)
        copy(spark, topics, source, target, tmp_path, exactlyOnce=exactly_once)
        expected = topics.values(source)
        assert topics.values_once_there(target, len(expected)) == expected


def test_a_batch_whose_end_was_forgotten_is_not_written_again(spark, topics, tmp_path):
    """STR-13."""
    source, target = topics.new(), topics.new()
    write(spark.range(400).selectExpr("cast(id as string) as value"), topics, source)
    copy(spark, topics, source, target, tmp_path)
    forget_the_end(tmp_path)
    copy(spark, topics, source, target, tmp_path)
    assert topics.values(target) == topics.values(source)
    copy(spark, topics, source, target, tmp_path / "another")
    assert topics.values(target) == sorted(topics.values(source) * 2)


def count_keys(spark, topics, source, mode, checkpoint):
    """Begin to count the rows of each key."""
    rows = (
        spark.readStream.format("strom")
        .option("kafka.bootstrap.servers", topics.bootstrap)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .load()
    )
    counts = rows.groupBy("key").count().selectExpr("key", "cast(count as string) as value")
    writing = counts.writeStream.outputMode(mode).trigger(availableNow=True)
    return writing.option("checkpointLocation", str(checkpoint))


def counted(topics, topic):
    return sorted((each.key, each.value) for each in topics.records(topic))


@pytest.mark.parametrize("mode", ["update", "complete"])
def test_rows_that_change_are_written_once_by_foreach_batch(spark, topics, tmp_path, mode):
    """STR-13: also those of a batch that Spark runs again."""
    source, target, plain = topics.new(), topics.new(), topics.new()

    def put(rows, _number):
        write(rows, topics, target, exactlyOnce="true", transactionalIdPrefix="counts")
        write(rows, topics, plain)

    def run():
        query = count_keys(spark, topics, source, mode, tmp_path).foreachBatch(put).start()
        assert query.awaitTermination(AWAIT_SECONDS)

    keys = "cast(id % 2 as string) as key", "cast(id as string) as value"
    write(spark.range(6).selectExpr(*keys), topics, source)
    run()
    write(spark.range(0, 2, 2).selectExpr(*keys), topics, source)
    run()
    newest = [(b"0", b"4")] + ([(b"1", b"3")] if mode == "complete" else [])
    expected = sorted([(b"0", b"3"), (b"1", b"3"), *newest])
    assert counted(topics, target) == expected
    forget_the_end(tmp_path)
    run()
    assert counted(topics, target) == expected
    assert counted(topics, plain) == sorted([*expected, *newest])


def test_a_stream_that_is_complete_adds_all_its_rows_each_time(spark, topics, tmp_path):
    """Nothing is overwritten in a topic: the newest record of a key is its state."""
    source, target = topics.new(), topics.new()
    options = {"kafka.bootstrap.servers": topics.bootstrap, "topic": target}
    for first in (0, 6):
        keys = "cast(id % 2 as string) as key", "cast(id as string) as value"
        write(spark.range(first, first + 6).selectExpr(*keys), topics, source)
        writing = count_keys(spark, topics, source, "complete", tmp_path).format("strom")
        assert writing.options(**options).start().awaitTermination(AWAIT_SECONDS)
    assert counted(topics, target) == [(b"0", b"3"), (b"0", b"6"), (b"1", b"3"), (b"1", b"6")]
    with pytest.raises(PySparkException, match="does not support Update mode"):
        updating = count_keys(spark, topics, source, "update", tmp_path / "other").format("strom")
        updating.options(**options).start().awaitTermination(AWAIT_SECONDS)


def test_exactly_once_is_refused_where_there_is_no_batch_to_be_run_again(spark, topics):
    rows = spark.range(3).selectExpr("cast(id as string) as value")
    options = {"exactlyOnce": "true", "transactionalIdPrefix": "counts"}
    with pytest.raises(PySparkException, match="write in the function of foreachBatch"):
        write(rows, topics, topics.new(), **options)


def test_what_cannot_be_written_is_told(spark, topics):
    rows = spark.range(3).selectExpr("cast(id as string) as value")
    for option, said in (
        ({"topics": "x"}, "Did you mean 'topic'"),
        ({"topic": "nowhere"}, "There is no topic 'nowhere'"),
        ({}, "Give the option 'topic'"),
        ({"topic": "x", "kafka.compression.type": "rar"}, "one of none, gzip"),
    ):
        with pytest.raises(PySparkException, match=said):
            write(rows, topics, **option)


def test_large_rows_reach_a_worker_in_small_portions(spark):
    """Spark's own limit is a count of rows, and the memory for so many large ones is dear."""

    def sizes(batches):
        for each in batches:
            yield pa.RecordBatch.from_arrays([pa.array([each.nbytes])], names=["bytes"])

    rows = spark.range(8000, numPartitions=1).selectExpr("repeat('x', 1000) as value")
    found = [each.bytes for each in rows.mapInArrow(sizes, "bytes long").collect()]
    # It is looked at after a row, and a column has the end of its last row besides.
    assert max(found) < HANDED_OVER_BYTES + 8192
    assert len(found) > 1
