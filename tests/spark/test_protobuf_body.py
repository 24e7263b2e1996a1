"""MSG-12: values that are Protobuf, both ways, and bytes that are none."""

import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

pytest.importorskip("google.protobuf", reason="protobuf is not installed")

from google.protobuf import descriptor_pb2, struct_pb2, timestamp_pb2
from google.protobuf.descriptor import FieldDescriptor as Of

from strom.spark.bodies.body import (
    SchemaError,
    UnreadableError,
    UnwritableError,
    array,
    map_of,
    struct,
)
from strom.spark.bodies.given import protobuf_body
from strom.spark.bodies.protobuf_body import ProtobufBody
from tests.spark.descriptors import (
    REPEATED,
    REQUIRED,
    RIDES,
    file_of,
    map_entry,
    message,
    set_of,
)

SUIT = descriptor_pb2.EnumDescriptorProto(name="Suit")
SUIT.value.add(name="HEARTS", number=0)
SUIT.value.add(name="SPADES", number=1)
POINT = message("Point", ("x", Of.TYPE_SINT32))


def body(*fields, nested=(), **more):
    made = message("Thing", *fields, nested=nested)
    return ProtobufBody(set_of(file_of(made, POINT, enums=[SUIT], **more)), "shop.Thing")


def known(name):
    return f".google.protobuf.{name}"


REPEATING = {"label": REPEATED}
AN_ENUM = {"type_name": ".shop.Suit"}
NOON = datetime(2026, 11, 16, 12, 0, 0, 123456, tzinfo=UTC)
NOON_MICROS = 1794830400123456


@pytest.mark.parametrize(
    ("field", "kind", "read", "row"),
    [
        ((Of.TYPE_INT32,), "integer", -5, -5),
        ((Of.TYPE_FIXED32,), "long", 2**32 - 1, 2**32 - 1),
        ((Of.TYPE_UINT64,), "decimal(20,0)", 2**64 - 1, Decimal(2**64 - 1)),
        ((Of.TYPE_SINT64,), "long", -(2**63), -(2**63)),
        ((Of.TYPE_BOOL,), "boolean", True, True),
        ((Of.TYPE_FLOAT,), "float", 0.5, 0.5),
        ((Of.TYPE_STRING,), "string", "é", "é"),
        ((Of.TYPE_BYTES,), "binary", b"\xff", b"\xff"),
        ((Of.TYPE_ENUM, AN_ENUM), "string", "SPADES", "SPADES"),
        ((Of.TYPE_ENUM, AN_ENUM), "string", "7", "7"),
        ((Of.TYPE_INT32, REPEATING), array("integer"), [1, 2], [1, 2]),
        ((Of.TYPE_ENUM, {**AN_ENUM, **REPEATING}), array("string"), ["SPADES"], ["SPADES"]),
        ((".shop.Point",), struct([("x", "integer")]), {"x": 0}, {"x": None}),
        ((".shop.Point", REPEATING), array(struct([("x", "integer")])), [{"x": 3}], [{"x": 3}]),
        ((known("Timestamp"),), "timestamp", NOON_MICROS, NOON),
        ((known("Duration"),), "interval day to second", -1500000, timedelta(seconds=-1.5)),
        ((known("StringValue"),), "string", "", ""),
        ((known("UInt64Value"),), "decimal(20,0)", 5, Decimal(5)),
        ((known("Struct"),), "string", '{"a":[1.0,null]}', '{"a": [1, null]}'),
    ],
)
def test_a_field_is_read_as_a_column_and_written_back(field, kind, read, row):
    made = body(("a", *field))
    value = made.writer()({"a": row})
    assert made.kind() == struct([("a", kind)])
    assert made.reader()(value) == {"a": read}


def test_maps_have_keys_of_any_kind():
    entries = [map_entry("AEntry", Of.TYPE_UINT64, ".shop.Point")]
    entries.append(map_entry("BEntry", Of.TYPE_STRING, Of.TYPE_INT32))
    made = body(
        ("a", ".shop.Thing.AEntry", REPEATING),
        ("b", ".shop.Thing.BEntry", REPEATING),
        nested=entries,
    )
    value = made.writer()({"a": [(Decimal(2**64 - 1), {"x": 1})], "b": [("k", 2)]})
    assert made.kind() == struct(
        [
            ("a", map_of("decimal(20,0)", struct([("x", "integer")]))),
            ("b", map_of("string", "integer")),
        ]
    )
    assert made.reader()(value) == {"a": [(2**64 - 1, {"x": 1})], "b": [("k", 2)]}


def test_what_was_not_set_is_null_where_that_is_known_and_else_the_default():
    made = body(
        ("plain", Of.TYPE_INT32),
        ("text", Of.TYPE_STRING),
        ("list", Of.TYPE_INT32, REPEATING),
        ("point", ".shop.Point"),
        ("either", Of.TYPE_INT32, {"oneof": "choice"}),
        ("other", Of.TYPE_STRING, {"oneof": "choice"}),
        ("maybe", Of.TYPE_INT32, {"oneof": "_maybe", "proto3_optional": True}),
        ("wrapped", known("Int32Value")),
    )
    unset = dict.fromkeys(("point", "either", "other", "maybe", "wrapped"))
    assert made.reader()(b"") == {"plain": 0, "text": "", "list": [], **unset}
    value = made.writer()({"other": "", "maybe": 0, "wrapped": 0})
    assert made.reader()(value) == {
        "plain": 0,
        "text": "",
        "list": [],
        **unset,
        "other": "",
        "maybe": 0,
        "wrapped": 0,
    }


def test_of_one_message_the_fields_that_it_does_not_know_are_passed_over():
    wide = body(("a", Of.TYPE_INT32), ("b", Of.TYPE_INT32))
    assert body(("a", Of.TYPE_INT32)).reader()(wide.writer()({"a": 1, "b": 2})) == {"a": 1}


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (b"\x0a\x05ab", "Wire format was corrupt"),
        (b"\x0a\x01\xff", "UTF-8"),
        (b"\x07", "Wire format was corrupt"),
        (b"\xff" * 20, "Wire format was corrupt"),
    ],
)
def test_what_is_no_such_message_is_refused_with_the_reason(value, wanted):
    with pytest.raises(UnreadableError, match=wanted):
        body(("a", Of.TYPE_STRING)).reader()(value)


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_value_that_is_no_json_is_refused_with_the_reason(number):
    value = struct_pb2.Value(number_value=number).SerializeToString()
    with pytest.raises(UnreadableError, match="number_value"):
        body(("a", known("Value"))).reader()(b"\x0a%c%b" % (len(value), value))


def test_in_the_older_syntax_fields_may_be_required_and_texts_are_looked_at_here():
    made = body(("a", Of.TYPE_STRING, {"label": REQUIRED}), syntax="proto2")
    assert made.reader()(b"\x0a\x01x") == {"a": "x"}
    with pytest.raises(UnreadableError, match="required fields are missing: a"):
        made.reader()(b"")
    with pytest.raises(UnreadableError, match="no UTF-8"):
        made.reader()(b"\x0a\x01\xff")
    with pytest.raises(UnwritableError):
        made.writer()({"a": None})


def test_a_time_that_microseconds_cannot_hold_is_refused():
    value = timestamp_pb2.Timestamp(seconds=2**60).SerializeToString()
    with pytest.raises(UnreadableError, match="out of range"):
        body(("a", known("Timestamp"))).reader()(b"\x0a%c%b" % (len(value), value))


@pytest.mark.parametrize(
    ("field", "row"),
    [
        ((Of.TYPE_ENUM, AN_ENUM), "STARS"),
        ((known("Struct"),), "{oops"),
        ((Of.TYPE_FIXED32,), -1),
        ((Of.TYPE_INT32, REPEATING), [None]),
    ],
)
def test_a_row_that_does_not_fit_is_not_written(field, row):
    with pytest.raises(UnwritableError):
        body(("a", *field)).writer()({"a": row})


def test_a_class_that_was_generated_says_it_all():
    made = protobuf_body(timestamp_pb2.Timestamp)
    assert made.label == "Protobuf of google.protobuf.Timestamp"
    assert made.reader()(b"\x08\x05") == {"seconds": 5, "nanos": 0}


@pytest.mark.parametrize(
    ("descriptors", "name", "wanted"),
    [
        (b"\xff\xff", "shop.Ride", "no set of descriptors"),
        (RIDES, "shop.Rid", "no message 'shop.Rid': did you mean 'shop.Ride'"),
        (b"", "shop.Ride", "there is none"),
        (set_of(file_of(POINT, imports=["other.proto"])), "shop.Point", "protoc --include_imports"),
        (set_of(file_of(message("A", ("a", ".shop.B")), imports=())), "shop.A", "shop.proto"),
        (
            set_of(file_of(message("A", ("a", ".shop.A", REPEATING)), imports=())),
            "shop.A",
            "'shop.A' is inside itself",
        ),
    ],
)
def test_descriptors_that_cannot_be_columns_are_refused(descriptors, name, wanted):
    with pytest.raises(SchemaError, match=wanted):
        ProtobufBody(descriptors, name)
