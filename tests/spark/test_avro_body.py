"""MSG-12: values that are Avro, both ways, and bytes that are none."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO

import pytest

pytest.importorskip("fastavro", reason="fastavro is not installed")

import fastavro

from strom.spark.bodies.avro_body import AvroBody
from strom.spark.bodies.body import SchemaError, UnreadableError, UnwritableError, array, struct
from strom.spark.bodies.given import avro_body


def record(*fields, name="shop.Ride"):
    described = [{"name": name, "type": kind} for name, kind in fields]
    return {"type": "record", "name": name, "fields": described}


def body(*fields, **more):
    return AvroBody(json.dumps(record(*fields)), **more)


def encoded(value, *fields):
    """What fastavro itself makes of a value."""
    stream = BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(record(*fields)), value)
    return stream.getvalue()


def logical(kind, below="long", **more):
    return {"type": below, "logicalType": kind, **more}


SUIT = {"type": "enum", "name": "Suit", "symbols": ["HEARTS", "SPADES"]}
POINT = record(("x", "int"), ("at", logical("timestamp-millis")), name="Point")
NOON = datetime(2026, 11, 16, 12, 0, 0, 123456, tzinfo=UTC)
NOON_MICROS = 1794830400123456
NAIVE = NOON.replace(tzinfo=None)


@pytest.mark.parametrize(
    ("schema", "kind", "given", "read", "row"),
    [
        ("int", "integer", 5, 5, 5),
        (["null", "string"], "string", None, None, None),
        (["string", "null"], "string", "x", "x", "x"),
        (["null", "int", "long"], "long", 2**40, 2**40, 2**40),
        (SUIT, "string", "SPADES", "SPADES", "SPADES"),
        ({"type": "fixed", "name": "F", "size": 2}, "binary", b"ab", b"ab", b"ab"),
        (logical("date", "int"), "date", 3, 3, date(1970, 1, 4)),
        (logical("timestamp-millis"), "timestamp", NOON, NOON_MICROS // 1000 * 1000, NOON),
        (logical("timestamp-micros"), "timestamp", NOON, NOON_MICROS, NOON),
        (logical("local-timestamp-micros"), "timestamp_ntz", NAIVE, NOON_MICROS, NAIVE),
        (logical("time-millis", "int"), "integer", 7, 7, 7),
        (logical("uuid", "string"), "string", "0" * 32, "0" * 32, "0" * 32),
        (
            logical("decimal", "bytes", precision=5, scale=2),
            "decimal(5,2)",
            Decimal("-1.50"),
            Decimal("-1.50"),
            Decimal("-1.50"),
        ),
        (
            logical("decimal", "fixed", precision=5, scale=2, name="D", size=4),
            "decimal(5,2)",
            Decimal("1.50"),
            Decimal("1.50"),
            Decimal("1.50"),
        ),
        (
            {"type": "array", "items": ["null", POINT]},
            array(struct([("x", "integer"), ("at", "timestamp")])),
            [None, {"x": 1, "at": 5}],
            [None, {"x": 1, "at": 5000}],
            [None, {"x": 1, "at": datetime(1970, 1, 1, 0, 0, 0, 5000, tzinfo=UTC)}],
        ),
        (
            {"type": "map", "values": logical("date", "int")},
            {"type": "map", "keyType": "string", "valueType": "date", "valueContainsNull": True},
            {"k": 1},
            {"k": 1},
            [("k", date(1970, 1, 2))],
        ),
    ],
)
def test_a_field_is_read_as_a_column_and_written_back(schema, kind, given, read, row):
    made = body(("a", schema))
    value = encoded({"a": given}, ("a", schema))
    assert made.kind() == struct([("a", kind)])
    assert made.reader()(value) == {"a": read}
    assert made.writer()({"a": row}) == value


@pytest.mark.parametrize(
    ("given", "member"),
    [(None, None), ("x", {"member0": "x"}), (5, {"member1": 5}), ({"x": 1, "at": 2}, None)],
)
def test_a_union_of_several_is_a_struct_of_its_members(given, member):
    schema = ["null", "string", "int", POINT]
    made = body(("a", schema), ("b", ["null", "string", "boolean"]))
    value = encoded({"a": given, "b": True}, ("a", schema), ("b", ["null", "string", "boolean"]))
    found = made.reader()(value)
    if isinstance(given, dict):
        member = {"member2": {"x": 1, "at": 2000}}
        row = {"member2": {"x": 1, "at": datetime(1970, 1, 1, 0, 0, 0, 2000, tzinfo=UTC)}}
    else:
        row = member and {**dict.fromkeys(("member0", "member1", "member2")), **member}
    assert found == {"a": member, "b": {"member1": True}}
    assert made.writer()({"a": row, "b": {"member0": None, "member1": True}}) == value


def test_a_named_type_may_be_used_again():
    schema = record(("a", POINT), ("b", ["null", "Point"]), ("c", SUIT), ("d", "Suit"))
    made = AvroBody(json.dumps(schema))
    value = {"a": {"x": 1, "at": 2}, "b": {"x": 3, "at": 4}, "c": "HEARTS", "d": "SPADES"}
    stream = BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), value)
    found = made.reader()(stream.getvalue())
    assert found == {**value, "a": {"x": 1, "at": 2000}, "b": {"x": 3, "at": 4000}}


FIELDS = (("id", "int"), ("name", "string"), ("suit", SUIT))
GOOD = encoded({"id": 1, "name": "Ada", "suit": "SPADES"}, *FIELDS)


def test_a_value_is_read_to_its_last_byte_and_no_further():
    read = body(*FIELDS).reader()
    assert read(GOOD) == {"id": 1, "name": "Ada", "suit": "SPADES"}
    for end in range(len(GOOD)):
        with pytest.raises(UnreadableError, match="ends within"):
            read(GOOD[:end])
    with pytest.raises(UnreadableError, match="2 bytes are left after the record"):
        read(GOOD + b"\x00\x00")


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (b"\x02\x02\xff\x00", "can't decode byte 0xff"),
        (b"\x02\x02A\x08", "a branch or symbol that the schema does not have"),
        (b"\xff" * 12, "ends within"),
        (b'{"id": 1, "name": "Ada"}', ""),
        (b"\x00\x00\x00\x00\x07" + GOOD, "schema_id=7?"),
    ],
)
def test_what_is_no_such_record_is_refused_with_the_reason(value, wanted):
    with pytest.raises(UnreadableError) as caught:
        body(*FIELDS).reader()(value)
    assert wanted in str(caught.value)


def test_a_time_that_microseconds_cannot_hold_is_refused():
    value = encoded({"a": 2**62}, ("a", "long"))
    with pytest.raises(UnreadableError, match="out of range"):
        body(("a", logical("timestamp-millis"))).reader()(value)


def test_with_the_id_of_a_schema_values_have_a_registrys_header():
    made = body(*FIELDS, schema_id=7)
    framed = b"\x00\x00\x00\x00\x07" + GOOD
    row = {"id": 1, "name": "Ada", "suit": "SPADES"}
    assert made.reader()(framed) == row
    assert made.writer()(row) == framed
    for value, wanted in [
        (GOOD, "does not begin with 0x00 and the id of a schema, which is to be 7"),
        (b"\x00\x00\x00\x00\x08" + GOOD, "it is of schema 8, not 7"),
        (b"", "does not begin with"),
    ]:
        with pytest.raises(UnreadableError, match=wanted):
            made.reader()(value)


@pytest.mark.parametrize(
    "row",
    [
        {"id": None, "name": "Ada", "suit": "SPADES"},
        {"id": 1, "name": None, "suit": "SPADES"},
        {"id": 1, "name": "Ada", "suit": "STARS"},
    ],
)
def test_a_row_that_does_not_fit_is_not_written(row):
    with pytest.raises(UnwritableError):
        body(*FIELDS).writer()(row)


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        ("{oops", "an Avro schema is JSON"),
        ('"string"', "is a record"),
        ('{"type": "recrd", "name": "a"}', "no Avro schema"),
        (json.dumps(record(("a", "Nobody"))), "no Avro schema"),
        (json.dumps(record(("a", "null"))), "nothing to be a column of"),
        (json.dumps(record(("a", ["null", "shop.Ride"]))), "'shop.Ride' is inside itself"),
        (json.dumps(record(("a", logical("decimal", "bytes", precision=50)))), "38 digits at most"),
        (json.dumps(record(("a", logical("decimal", "bytes")))), "needs a precision"),
        (json.dumps(record(("a", logical("decimal", "bytes", precision=0)))), "needs a precision"),
        (json.dumps(record(("a", []))), "nothing to be a column of"),
        (json.dumps(record(("a", ["null"]))), "nothing to be a column of"),
        # One of them would be read as the other.
        (json.dumps(record(("a", "int"), ("a", "int"))), "two fields 'a'"),
        (json.dumps(record(("a", "int"), name=1)), "no Avro schema"),
        (json.dumps(record(("a", {"type": ["null", "int"]}))), "no Avro schema"),
    ],
)
def test_a_schema_that_cannot_be_columns_is_refused(schema, wanted):
    with pytest.raises(SchemaError, match=wanted):
        AvroBody(schema)


def test_a_file_that_is_no_text_is_no_schema(tmp_path):
    file = tmp_path / "ride.avsc"
    file.write_bytes(b"\x80\x00")
    with pytest.raises(SchemaError, match="is no UTF-8"):
        avro_body(file)
