"""Spark's own Kafka connector, in the JVM, with Strom as its cluster, and beside `format("strom")`.

The connector is of another version than Spark: the newest that is published everywhere.
"""

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from tests.spark.conftest import connector_jars
from tests.spark.topics import copy

pytestmark = [
    pytest.mark.slow,
    pytest.mark.java,
    pytest.mark.skipif(not connector_jars(), reason="Spark's own connector is not in the cache"),
]

JVM, STROM = "kafka", "strom"
PARTITIONS = 3
AWAIT_SECONDS = 120
COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")


@pytest.fixture
def topics(strom_topics):
    return strom_topics


def rows_of(spark, count):
    """Rows with keys, without keys, without a value, and with headers."""
    return spark.range(count).selectExpr(
        "if(id % 5 = 0, null, cast(id % 50 as string)) as key",
        "if(id % 7 = 0, null, cast(id as string)) as value",
        # Without a key the connectors may choose, so that it is said for those.
        f"if(id % 5 = 0, cast(id % {PARTITIONS} as int), null) as partition",
        "array(named_struct('key', 'of', 'value', cast(cast(id as string) as binary))) as headers",
    )


def write(rows, connector, topics, topic, **options):
    writing = rows.write.format(connector).mode("append").options(**options)
    writing.option("kafka.bootstrap.servers", topics.bootstrap).option("topic", topic).save()


def read(spark, connector, topics, topic):
    reading = spark.read.format(connector).option("kafka.bootstrap.servers", topics.bootstrap)
    rows = reading.option("subscribe", topic).option("includeHeaders", "true").load()
    return sorted(map(tuple, rows.select(*COLUMNS, "headers").collect()), key=repr)


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_both_write_the_same_rows_to_the_same_partitions(spark, topics, codec):
    """PRO-05: what the JVM's connector writes to Strom another client reads, as from ours."""
    written = {}
    for connector in (JVM, STROM):
        topic = topics.make(PARTITIONS)
        settings = {"kafka.compression.type": codec}
        write(rows_of(spark, 2000), connector, topics, topic, **settings)
        written[connector] = sorted(
            (
                (each.partition, each.key, each.value, each.headers)
                for each in topics.read(topic, 3)
            ),
            key=repr,
        )
    assert len(written[JVM]) == 2000
    assert written[JVM] == written[STROM]


def test_both_read_the_same_rows(spark, topics):
    """MSG-12: every column, of what either of them has written."""
    topic = topics.make(PARTITIONS)
    for connector in (JVM, STROM):
        write(rows_of(spark, 1000), connector, topics, topic)
    found = read(spark, JVM, topics, topic)
    assert len(found) == 2000
    assert found == read(spark, STROM, topics, topic)


def test_the_connector_reads_what_is_committed(spark, topics):
    """STR-13: aborted rows are left out where that is asked for."""
    topic = topics.make()
    topics.fill_transaction(topic, [b"no"] * 10, commits=False)
    topics.fill_transaction(topic, [b"yes"] * 10, commits=True)
    reading = spark.read.format(JVM).option("kafka.bootstrap.servers", topics.bootstrap)
    rows = reading.option("subscribe", topic).option("kafka.isolation.level", "read_committed")
    assert [bytes(each.value) for each in rows.load().collect()] == [b"yes"] * 10


def test_a_stream_of_the_connector_goes_on_where_it_was(spark, topics, tmp_path):
    """STR-02, STR-20: from Strom to Strom, and again from the checkpoint."""
    source, target = topics.make(PARTITIONS), topics.make(PARTITIONS)
    for _ in range(2):
        topics.fill(source, [b"%d" % at for at in range(300)], PARTITIONS)
        copy(spark, topics, source, target, tmp_path, connector=JVM)
        values = [
            sorted(each.value for each in topics.read(topic, PARTITIONS))
            for topic in (source, target)
        ]
        assert values[0] == values[1]


def test_a_job_changes_one_word(spark, topics, tmp_path):
    """A query of the connector is taken up from its checkpoint by ours."""
    source, target = topics.make(PARTITIONS), topics.make(PARTITIONS)
    for connector in (JVM, STROM):
        topics.fill(source, [b"%d" % at for at in range(300)], PARTITIONS)
        copy(spark, topics, source, target, tmp_path, connector=connector)
    assert len(topics.read(target, PARTITIONS)) == 600
