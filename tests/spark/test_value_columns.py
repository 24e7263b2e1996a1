"""Batches of values as Arrow's columns: each has its columns or a reason, whatever the bytes."""

import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="PySpark is not installed")
pytest.importorskip("fastavro", reason="fastavro is not installed")
pytest.importorskip("google.protobuf", reason="protobuf is not installed")

import pyarrow as pa

from strom.spark.bodies.avro_body import AvroBody
from strom.spark.bodies.body import UnwritableError, array, struct
from strom.spark.bodies.json_body import JsonBody
from strom.spark.bodies.protobuf_body import ProtobufBody
from strom.spark.value_columns import REASON_LENGTH_MAX, read_column, struct_type, write_column
from tests.spark.descriptors import RIDES

RIDE = struct([("rider", "string"), ("km", "double")])
JSON = JsonBody("rider string, km double").resolve(RIDE)
MANY = {
    "type": "record",
    "name": "Many",
    "fields": [
        {"name": "n", "type": "int"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "sum", "type": {"type": "bytes", "logicalType": "decimal", "precision": 4}},
        {"name": "either", "type": ["null", "string", "int"]},
        {"name": "all", "type": {"type": "array", "items": {"type": "map", "values": "string"}}},
    ],
}
AVRO = AvroBody(json.dumps(MANY))
PROTOBUF = ProtobufBody(RIDES, "shop.Ride")
AT = datetime(2026, 11, 16, tzinfo=UTC)
ROW = {"n": 1, "at": AT, "sum": Decimal(5), "either": {"member1": 7}, "all": [[("k", "v")]]}
AVRO_VALUE = AVRO.writer()(ROW)


def read(body, *values):
    found = read_column(body, pa.array(values, pa.binary())).to_pylist()
    return [(each["columns"], each["reason"]) for each in found]


def have_columns_or_a_reason(body, *values):
    """Whether each has the one or the other; a time may be none that Python has."""
    found = read_column(body, pa.array(values, pa.binary()))
    columns, reasons = found.field("columns").is_valid(), found.field("reason").is_valid()
    return [one != other for one, other in zip(columns, reasons, strict=True)]


def test_a_bad_value_has_a_reason_and_a_null_one_neither():
    good, bad, null = read(JSON, b'{"rider": "a", "km": 1}', b'{"km": "x"}', None)
    assert good == ({"rider": "a", "km": 1.0}, None)
    assert bad == (None, "field km: 'x' is no number")
    assert null == (None, None)
    assert read(JSON) == []


def test_what_no_column_can_hold_is_bad_and_its_neighbours_are_not():
    half = b'{"rider": "\\ud800"}'
    first, second, third = read(JSON, b"{}", half, b'{"km": 2}')
    assert (first[0], third[0]) == ({"rider": None, "km": None}, {"rider": None, "km": 2.0})
    assert second[0] is None
    assert "surrogates not allowed" in second[1]


@pytest.mark.parametrize(
    "value",
    [
        b"\xfe\xff\xff\xff\xff\x7f" + AVRO_VALUE[1:],
        AVRO_VALUE.replace(b"\x02\x05", b"\x06\x7f\xff\xff"),
    ],
    ids=["an int of more than 32 bits", "a decimal of more digits than it says"],
)
def test_avro_beyond_its_own_schema_is_bad(value):
    bad, good = read(AVRO, value, AVRO_VALUE)
    assert bad[0] is None
    assert bad[1]
    assert good[0]["n"] == 1


def test_ten_megabytes_are_a_value_like_any_other_and_a_reason_stays_short():
    text = "x" * 10_000_000
    good, bad = read(JSON, json.dumps({"rider": text}).encode(), json.dumps(text).encode())
    assert good[0]["rider"] == text
    assert len(bad[1]) <= REASON_LENGTH_MAX


def test_columns_that_must_be_there_may_be_null_in_spark():
    kind = struct([("a", array(struct([("b", "string")])))])
    kind["fields"][0]["nullable"] = False
    assert struct_type(kind).fields[0].nullable


def test_rows_are_written_and_read_again():
    kind = read_column(AVRO, pa.array([AVRO_VALUE])).field("columns")
    assert write_column(AVRO, kind).to_pylist() == [AVRO_VALUE]
    rows = pa.array([{"rider": "a", "km": 1.5}, None])
    assert read(PROTOBUF, *write_column(PROTOBUF, rows).to_pylist()) == [
        ({"rider": "a", "km": 1.5}, None),
        (None, None),
    ]


def test_a_row_that_cannot_be_written_says_as_what():
    with pytest.raises(UnwritableError, match="a row cannot be Avro of Many: "):
        write_column(AVRO, pa.array([{**ROW, "n": None}]))


def test_a_time_that_python_does_not_have_is_read_and_not_written():
    far = pa.array([{**ROW, "at": 2**60}], read_column(AVRO, pa.array([AVRO_VALUE])).type[0].type)
    value = AvroBody(json.dumps(MANY).replace("timestamp-micros", "none")).writer()(
        {**ROW, "at": 2**60}
    )
    assert all(have_columns_or_a_reason(AVRO, value))
    with pytest.raises(UnwritableError, match="a row cannot be Avro of Many: date value out of"):
        write_column(AVRO, far)


@pytest.mark.parametrize("body", [JSON, AVRO, PROTOBUF], ids=["json", "avro", "protobuf"])
@settings(deadline=None)
@given(values=st.lists(st.binary(max_size=60), max_size=3))
def test_any_bytes_have_columns_or_a_reason(body, values):
    assert all(have_columns_or_a_reason(body, *values))


@settings(deadline=None)
@given(at=st.integers(0, len(AVRO_VALUE) - 1), byte=st.integers(0, 255))
def test_a_record_with_one_wrong_byte_has_columns_or_a_reason(at, byte):
    wrong = AVRO_VALUE[:at] + bytes([byte]) + AVRO_VALUE[at + 1 :]
    assert all(have_columns_or_a_reason(AVRO, wrong, AVRO_VALUE))
