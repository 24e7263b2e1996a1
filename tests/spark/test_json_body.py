"""MSG-12: values that are JSON, and every way in which they may not be."""

import json
import math
from decimal import Decimal

import pytest

from strom.spark.bodies.body import SchemaError, UnreadableError, array, map_of, struct
from strom.spark.bodies.json_body import JsonBody

SECOND = 1_000_000


def read(kind, value, zone="UTC"):
    """Read the value of one field `a`."""
    text = value if isinstance(value, bytes) else b'{"a": %b}' % value.encode()
    return JsonBody("a …").resolve(struct([("a", kind)]), zone).reader()(text)


def refused(kind, value):
    with pytest.raises(UnreadableError) as caught:
        read(kind, value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("kind", "value", "wanted"),
    [
        ("string", '"é"', "é"),
        ("string", "12", "12"),
        ("string", '{"b": [1, null]}', '{"b":[1,null]}'),
        ("integer", "-2147483648", -(2**31)),
        ("long", str(2**63 - 1), 2**63 - 1),
        ("double", "1", 1.0),
        ("double", "-1.5e3", -1500.0),
        ("double", '"-Infinity"', -math.inf),
        ("double", "Infinity", math.inf),
        ("float", "0.5", 0.5),
        ("boolean", "false", False),
        ("binary", '"AAH/"', b"\x00\x01\xff"),
        ("decimal(6,2)", "1234.565", Decimal("1234.57")),
        ("decimal(20,0)", "12345678901234567890", Decimal(12345678901234567890)),
        ("decimal(6,2)", '"1.5"', Decimal("1.50")),
        ("timestamp", '"1970-01-01T00:00:01Z"', SECOND),
        ("timestamp", '"1970-01-01 01:00:01.5+01:00"', SECOND * 3 // 2),
        ("timestamp", "2", 2 * SECOND),
        ("timestamp_ntz", '"1970-01-01T00:00:01"', SECOND),
        ("date", '"1970-01-03"', 2),
        (array("integer"), "[1, null, 3]", [1, None, 3]),
        (map_of("string", "integer"), '{"x": 1, "y": null}', {"x": 1, "y": None}),
        (struct([("b", "string")]), '{"b": "c", "other": 1}', {"b": "c"}),
    ],
)
def test_values_become_what_the_columns_are(kind, value, wanted):
    assert read(kind, value) == {"a": wanted}


def test_not_a_number_is_a_double():
    assert math.isnan(read("double", "NaN")["a"])


def test_a_time_without_zone_is_in_the_sessions():
    noon = b'{"a": "1970-01-01T12:00:00"}'
    assert read("timestamp", noon, "Europe/Berlin") == {"a": 11 * 3600 * SECOND}
    assert read("timestamp", noon, "+02:00") == {"a": 10 * 3600 * SECOND}
    assert read("timestamp", noon, "-0230") == {"a": (14 * 3600 + 1800) * SECOND}
    # Of these forms Spark takes the first, and a JVM may have the second by itself.
    assert read("timestamp", noon, "+02") == {"a": 10 * 3600 * SECOND}
    assert read("timestamp", noon, "GMT+02:00") == {"a": 10 * 3600 * SECOND}
    with pytest.raises(SchemaError, match=r"time zone '\+25'"):
        read("timestamp", noon, "+25")
    with pytest.raises(SchemaError, match="time zone 'Nowhere'"):
        read("timestamp", noon, "Nowhere")


@pytest.mark.parametrize("value", [b"{}", b'{"a": null}', b'{"b": 1}'])
def test_what_is_missing_is_null_unless_the_column_forbids_it(value):
    assert read("integer", value).get("a") is None
    kind = struct([("a", "integer")])
    kind["fields"][0]["nullable"] = False
    with pytest.raises(UnreadableError, match="field a: it is missing, and the column is NOT NULL"):
        JsonBody("a INT NOT NULL").resolve(kind).reader()(value)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (b"", "Expecting value: line 1 column 1 (char 0): ''"),
        (b'{"a": 1', "Expecting ',' delimiter: line 1 column 8"),
        (b"{oops", "Expecting property name enclosed in double quotes"),
        (b'{"a": 1} {}', "Extra data: line 1 column 10"),
        (b'{"a": "\xff"}', "it is no UTF-8: byte 0xff at 7"),
        ('{"a": "x"}'.encode("utf-16"), "it is no UTF-8: byte 0xff at 0"),
        (b"[1]", "'[1]' is no object"),
        (b"null", "'null' is no object"),
        (b'{"a": ' + b"[" * 100_000, "it is nested too deeply"),
        (b'{"a": ' + b"1" * 5000 + b"}", "Exceeds the limit"),
    ],
)
def test_what_is_no_json_object_is_refused_with_the_reason(value, wanted):
    assert wanted in refused("string", value)


@pytest.mark.parametrize(
    ("kind", "value", "wanted"),
    [
        ("integer", "2147483648", "field a: '2147483648' is out of the range of integer"),
        ("byte", "-129", "field a: '-129' is out of the range of byte"),
        ("integer", "1.0", "field a: '1.0' is no whole number (integer)"),
        ("integer", '"1"', "field a: '1' is no whole number (integer)"),
        ("integer", "true", "field a: 'true' is no whole number (integer)"),
        ("double", '"1"', "field a: '1' is no number"),
        ("double", "1e400", "is out of the range of double"),
        ("double", "1" * 400, "is out of the range of double"),
        ("float", "1e39", "is out of the range of float"),
        ("boolean", "1", "field a: '1' is no boolean"),
        ("decimal(4,2)", "100", "field a: '100' is out of the range of decimal(4,2)"),
        ("decimal(4,2)", "1e999999", "is out of the range of decimal(4,2)"),
        ("decimal(4,2)", "1e9999999999999999999", "field a: 'Infinity' is no number"),
        ("decimal(4,2)", "NaN", "field a: 'NaN' is no number"),
        ("decimal(4,2)", "[]", "field a: '[]' is no number"),
        # Python would take these.
        ("decimal(4,2)", '"1_0"', "field a: '1_0' is no number"),
        ("decimal(4,2)", '" 1 "', "field a: ' 1 ' is no number"),
        ("decimal(4,2)", '"Infinity"', "field a: 'Infinity' is no number"),
        ("binary", '"???"', "field a: '???' is no base64"),
        ("timestamp", '"soon"', "field a: 'soon' is no time"),
        ("timestamp", str(2**62), "is out of the range of timestamp"),
        ("timestamp_ntz", '"1970-01-01T00:00:01Z"', "is no time without a zone"),
        ("date", '"1970-13-01"', "field a: '1970-13-01' is no date"),
        (array("integer"), "{}", "field a: '{}' is no array"),
        (array("integer"), '[1, "x"]', "field a[]: 'x' is no whole number"),
        (map_of("string", "integer"), '{"k": "x"}', "field a{}: 'x' is no whole number"),
        (
            struct([("b", array(struct([("c", "date")])))]),
            '{"b": [{"c": 1}]}',
            "field a.b[].c: '1'",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_the_field(kind, value, wanted):
    assert wanted in refused(kind, value)


def test_a_long_value_is_shown_by_its_beginning():
    assert len(refused("integer", json.dumps("x" * 1_000_000))) < 200


@pytest.mark.parametrize("kind", ["variant", map_of("integer", "string")])
def test_columns_that_json_does_not_have_are_refused(kind):
    with pytest.raises(SchemaError):
        read(kind, "1")
