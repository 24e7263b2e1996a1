"""Arrow's batches become the records that their rows say, in batches of the size that is asked."""

from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="PySpark is not installed")

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from strom.records.batch import MAGIC, Header, write_header
from strom.records.plain_packing import murmur2
from strom.records.record import read_records
from strom.spark.encoding import RowEncoder
from strom.spark.fitting import UnfitRowError, check_columns
from strom.spark.write_options import Delivery
from tests.effort import examples

PARTITIONS = 3
NOW_MS = 1_700_000_000_000
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("headers", HEADERS),
        ("offset", pa.int64()),
    ]
)
BYTES = st.none() | st.binary(max_size=60)
HEADER = st.fixed_dictionaries({"key": st.text(max_size=5), "value": BYTES})
ROW = st.fixed_dictionaries(
    {
        "key": BYTES,
        "value": BYTES,
        "topic": st.sampled_from(["rides", "stops"]),
        "partition": st.none() | st.integers(0, PARTITIONS - 1),
        "headers": st.none() | st.lists(HEADER, max_size=3),
        "offset": st.just(7),
    }
)
ROWS = st.lists(ROW, min_size=1, max_size=30)


class Sent:
    """Takes what is sent, and reads it."""

    def __init__(self):
        self.records = defaultdict(list)
        self.sizes = []
        self.expected = set()

    def count_partitions(self, topic):
        return PARTITIONS

    def expect(self, places):
        self.expected |= places

    def send(self, place, records, count, *, now_ms):
        assert place in self.expected
        assert now_ms == NOW_MS
        header = Header(0, len(records) - 12, -1, MAGIC, 0, 0, count - 1, 0, 0, -1, -1, -1, count)
        write_header(records, header)
        self.records[place] += [
            (each.key, each.value, each.headers) for each in read_records(records)
        ]
        self.sizes.append((count, len(records)))


def encoded(batches, topic=None, **delivery):
    sent = Sent()
    encoder = RowEncoder(topic, Delivery(**delivery), sent, 0, lambda: NOW_MS)
    for batch in batches:
        encoder.add(batch)
    encoder.flush()
    return sent


def as_record(row):
    headers = tuple((each["key"], each["value"]) for each in row["headers"] or ())
    return row["key"], row["value"], headers


def where(row):
    """The partition that the row must be in, None if any will do."""
    if row["partition"] is not None:
        return row["partition"]
    return None if row["key"] is None else (murmur2(row["key"]) & 0x7FFFFFFF) % PARTITIONS


@given(rows=ROWS, cut=st.integers(0, 30), limit=st.integers(61, 400))
@settings(max_examples=examples(100), deadline=None)
def test_rows_arrive_as_they_are_where_they_belong(rows, cut, limit):
    """PRO-05, PRO-08, PRO-22: by key, by number, into several topics."""
    whole = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
    sent = encoded([whole.slice(0, cut), whole.slice(cut)], batch_bytes=limit)
    for topic in ("rides", "stops"):
        mine = [row for row in rows if row["topic"] == topic]
        found = [
            repr(each)
            for (name, _), records in sent.records.items()
            for each in records
            if name == topic
        ]
        assert sorted(found) == sorted(repr(as_record(row)) for row in mine)
        for partition in range(PARTITIONS):
            records = sent.records[topic, partition]
            certain = [as_record(row) for row in mine if where(row) == partition]
            floating = [as_record(row) for row in mine if where(row) is None]
            assert [each for each in records if each not in floating] == [
                each for each in certain if each not in floating
            ]
    assert all(size <= limit or count == 1 for count, size in sent.sizes)


def test_the_option_goes_before_the_column_of_topics():
    rows = [{"value": b"x", "topic": "stops"}, {"value": b"y", "topic": None}]
    sent = encoded([pa.RecordBatch.from_pylist(rows, schema=SCHEMA)], topic="rides")
    assert {topic for topic, _ in sent.records} == {"rides"}
    assert sum(map(len, sent.records.values())) == 2


def test_columns_may_be_texts_of_either_width_in_any_case():
    batch = pa.RecordBatch.from_arrays(
        [pa.array(["schlüssel"], pa.large_string()), pa.array([b"v"], pa.large_binary())],
        names=["Key", "VALUE"],
    )
    (records,) = encoded([batch], topic="rides").records.values()
    assert records == [("schlüssel".encode(), b"v", ())]


def test_a_batch_is_filled_from_several_of_arrows():
    """PRO-09: a batch leaves when it is full, not when Arrow's is at its end."""
    batch = pa.RecordBatch.from_pylist([{"key": b"k", "value": b"x" * 100}] * 10)
    sent = encoded([batch] * 10, topic="rides", batch_bytes=5000)
    assert [count for count, _ in sent.sizes] == [44, 44, 12]


def test_what_is_buffered_has_a_limit():
    """PRO-10: memory is bounded, however many partitions there are."""
    rows = [{"value": b"x" * 100, "partition": at % PARTITIONS} for at in range(30)]
    batch = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
    sent = encoded([batch] * 2, topic="rides", buffer_bytes=1500)
    assert len(sent.sizes) > PARTITIONS
    assert sum(count for count, _ in sent.sizes) == 60


def test_rows_that_cannot_be_written_are_told():
    def refused(row):
        with pytest.raises(UnfitRowError) as error:
            encoded([pa.RecordBatch.from_pylist([row], schema=SCHEMA)])
        return str(error.value)

    assert "topic is null" in refused({"value": b"x"})
    beyond = {"value": b"x", "topic": "rides", "partition": 3}
    assert "partition 3 of topic 'rides', which has 3" in refused(beyond)
    nameless = [{"key": None, "value": b""}]
    assert "null" in refused({"value": b"x", "topic": "rides", "headers": nameless})


def fields(**columns):
    return StructType([StructField(name, kind) for name, kind in columns.items()])


def test_columns_that_are_not_those_of_records_are_refused():
    pair = fields(key=StringType(), value=BinaryType())
    check_columns(
        fields(
            key=StringType(),
            value=BinaryType(),
            topic=StringType(),
            partition=IntegerType(),
            headers=ArrayType(pair),
            offset=LongType(),
        ),
        None,
    )
    for schema, topic, said in (
        (fields(key=StringType()), "t", "no column 'value'"),
        (fields(value=StringType()), None, "Give the option 'topic'"),
        (fields(value=LongType()), "t", "'value' is binary or string, not bigint"),
        (fields(value=StringType(), partition=LongType()), "t", "'partition' is int, not bigint"),
        (fields(value=StringType(), headers=StringType()), "t", "'headers' is array<struct<"),
    ):
        with pytest.raises(UnfitRowError, match=said):
            check_columns(schema, topic)
