"""MSG-11, MSG-12: values as columns in Spark, from real topics and back, with bad records among."""

import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")
pytest.importorskip("fastavro", reason="fastavro is not installed")
pytest.importorskip("google.protobuf", reason="protobuf is not installed")

from google.protobuf.descriptor import FieldDescriptor as Of
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from strom.spark import values
from strom.spark.bodies.body import SchemaError
from tests.spark.descriptors import REPEATED, file_of, message, set_of

pytestmark = [pytest.mark.slow, pytest.mark.java]

COLUMNS = (
    "id INT NOT NULL, name STRING, at TIMESTAMP, tags ARRAY<STRING>, place STRUCT<x: DOUBLE>, "
    "price DECIMAL(6,2), counts MAP<STRING, INT>"
)
PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}
AVRO = {
    "type": "record",
    "name": "Thing",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "name", "type": ["null", "string"]},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
        {"name": "tags", "type": ["null", {"type": "array", "items": "string"}]},
        {
            "name": "place",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "Place",
                    "fields": [{"name": "x", "type": ["null", "double"]}],
                },
            ],
        },
        {"name": "price", "type": ["null", PRICE]},
        {"name": "counts", "type": ["null", {"type": "map", "values": "int"}]},
    ],
}
PROTOBUF = message(
    "Thing",
    ("id", Of.TYPE_INT32),
    ("name", ".google.protobuf.StringValue"),
    ("at", ".google.protobuf.Timestamp"),
    ("tags", Of.TYPE_STRING, {"label": REPEATED}),
)
AT = datetime(2026, 11, 16, 10, 0, 0, 5, tzinfo=UTC)
ROWS = [
    (1, "Ada", AT, ["a", "b"], (0.5,), Decimal("12.30"), {"k": 1}),
    (2, None, None, [], None, None, None),
]
FORMATS = {
    "json": lambda: values.json(COLUMNS),
    "avro": lambda: values.avro(AVRO),
    "protobuf": lambda: values.protobuf(set_of(file_of(PROTOBUF)), "shop.Thing"),
}
FIELDS = ("id", "name", "at", "tags", "place", "price", "counts")
SERVERS = "kafka.bootstrap.servers"


def reading(frames, topics, topic, **options):
    return (
        frames.format("strom")
        .options(**{SERVERS: topics.bootstrap, "subscribe": topic}, **options)
        .option("startingOffsets", "earliest")
        .load()
    )


def comparable(value):
    """A row's value as it is compared: times as moments, structs as tuples."""
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    return tuple(value) if hasattr(value, "asDict") else value


@pytest.mark.parametrize("name", FORMATS)
def test_columns_are_written_and_read_again_and_what_cannot_be_is_named(spark, strom_topics, name):
    topic = strom_topics.make()
    things = FORMATS[name]()
    rows = spark.createDataFrame(ROWS, COLUMNS.replace(" NOT NULL", ""))
    written = rows.coalesce(1).select(F.lit("k").alias("key"), things.bytes().alias("value"))
    written.write.format("strom").mode("append").options(
        **{SERVERS: strom_topics.bootstrap, "topic": topic}
    ).save()
    strom_topics.fill(topic, [b"\xff!", None])
    records = reading(spark.read, strom_topics, topic)

    read = things.columns(records, bad="skip").orderBy("offset").collect()
    known = [each for each in FIELDS if each in read[0]]
    found = [tuple(comparable(row[each]) for each in known) for row in read]
    assert found == [*(row[: len(known)] for row in ROWS), (None,) * len(known)]
    assert [row.offset for row in read] == [0, 1, 3]

    with pytest.raises(PySparkException) as caught:
        things.columns(records).collect()
    assert f"the record at offset 2 of {topic}-0 is no " in str(caught.value)


def test_a_time_without_a_zone_is_written_with_all_its_digits(spark):
    things = values.json("at TIMESTAMP_NTZ")
    rows = spark.sql("SELECT TIMESTAMP_NTZ'2026-11-16 10:00:00.000005' AS at")
    read = things.columns(rows.select(things.bytes().alias("value")))
    assert read.first().at == AT.replace(tzinfo=None)


def test_columns_that_a_value_cannot_have_are_refused_before_anything_runs(spark):
    """They ended the query in a worker, when the first record came."""
    records = spark.createDataFrame([(b"{}",)], "value BINARY")
    with pytest.raises(SchemaError, match="a column of type interval"):
        values.json("a INTERVAL DAY TO SECOND").columns(records)
    with pytest.raises(SchemaError, match="a map's keys are strings"):
        values.json("a MAP<INT, STRING>").dead_letters(records)


def test_a_field_may_be_called_like_the_column_of_bad_records(spark):
    things = values.json("bad INT")
    records = spark.createDataFrame([(b'{"bad": 1}',), (b"oops",)], "value BINARY")
    assert [row.bad for row in things.columns(records, bad="skip").collect()] == [1]
    assert [row.value for row in things.dead_letters(records).collect()] == [b"oops"]
    with pytest.raises(SchemaError, match="have a field 'bad'"):
        things.columns(records, bad="keep")


def ride(km):
    return b'{"rider": "r", "km": %d}' % km


def run_query(spark, topics, names, checkpoint):
    """Run the query of the test below on what is there."""
    source, clean, dead = names
    records = reading(spark.readStream, topics, source, includeHeaders="true")
    rides = values.json(StructType.fromDDL("rider STRING, km DOUBLE"))
    good = rides.columns(records, bad="keep").where("bad IS NOT NULL OR km > 10")
    rows = good.withColumn("value", F.to_json(F.struct("rider", "km")))
    query = (
        values.route(rows, clean, dead)
        .writeStream.format("strom")
        .options(**{SERVERS: topics.bootstrap}, checkpointLocation=str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def test_one_query_writes_the_good_once_and_the_bad_with_their_reason(
    spark, strom_topics, tmp_path
):
    """MSG-12, STR-13: exactly once into both topics, from one read; the query goes on."""
    names = source, clean, dead = strom_topics.make(2), strom_topics.make(), strom_topics.make()
    bad = [b"{oops", b'{"km": "far"}', b"\xff"]
    more = {"keys": [b"k"], "headers": [[("trace", b"7")]]}
    strom_topics.fill(source, [ride(5), ride(20), *bad], 2, **more)
    run_query(spark, strom_topics, names, tmp_path)
    strom_topics.fill(source, [ride(30), b"[]"], 2)
    run_query(spark, strom_topics, names, tmp_path)

    letters = strom_topics.read_once_there(dead, 4)
    good = strom_topics.read_once_there(clean, 2)
    assert sorted(json.loads(row.value)["km"] for row in good) == [20, 30]
    assert sorted(row.value for row in letters) == sorted([*bad, b"[]"])
    (oops,) = [row for row in letters if row.value == b"{oops"]
    headers = dict(oops.headers)
    assert (oops.key, oops.headers[0]) == (b"k", ("trace", b"7"))
    assert b"Expecting property name" in headers["__connect.errors.exception.message"]
    assert int(headers["strom.errors.timestamp"]) > 0
    wanted = {"topic": source.encode(), "partition": b"0", "offset": b"1"}
    wanted["stage"] = b"VALUE_CONVERTER"
    assert {each: headers[f"__connect.errors.{each}"] for each in wanted} == wanted
    assert [row.key for row in letters if row.value == b"[]"] == [None]
