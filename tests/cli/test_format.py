import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strom.cli.format import Received, compile_columns, compile_format, write_json

RECORD = Received(
    "flugdaten", 2, 17, 1700000000000, b"rakete1", b"Liftoff", (("source", b"tower"), ("n", None))
)
EMPTY = RECORD._replace(key=None, value=None, headers=())


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("%s\\n", b"Liftoff\n"),
        ("%v", b"Liftoff"),
        ("%t[%p]@%o", b"flugdaten[2]@17"),
        ("%k\\t%s", b"rakete1\tLiftoff"),
        ("%K %S %T", b"7 7 1700000000000"),
        ("%h", b"source=tower,n="),
        ("%R", struct.pack(">i", 7)),
        ("100%%", b"100%"),
        ("\\x41\\\\\\r\\0", b"A\\\r\0"),
        ("ä", "ä".encode()),
        ("", b""),
    ],
)
def test_formats_are_kcats(text, written):
    assert compile_format(text)(RECORD) == written


def test_null_is_written_as_nothing_of_size_minus_one():
    assert compile_format("%k|%K|%s|%S|%h|%R")(EMPTY) == b"|-1||-1||" + struct.pack(">i", -1)


@pytest.mark.parametrize("text", ["%q", "%", "\\q", "\\"])
def test_what_is_not_understood_is_named(text):
    with pytest.raises(ValueError, match="is unknown"):
        compile_format(text)


def test_keys_are_hidden_unless_asked_for():
    """CON-06."""
    assert compile_columns(key=False, headers=False)(RECORD) == b"Liftoff\n"
    assert compile_columns(key=True, headers=False)(RECORD) == b"rakete1\tLiftoff\n"
    assert compile_columns(key=True, headers=True)(RECORD) == (
        b"source=tower,n=\trakete1\tLiftoff\n"
    )
    assert compile_columns(key=True, headers=True)(EMPTY) == b"NO_HEADERS\tnull\tnull\n"


def test_json_is_one_line_a_record():
    line = write_json(RECORD._replace(value=b"a\nb"))
    assert line.count(b"\n") == 1
    assert json.loads(line) == {
        "topic": "flugdaten",
        "partition": 2,
        "offset": 17,
        "timestamp": 1700000000000,
        "headers": [["source", "tower"], ["n", None]],
        "key": "rakete1",
        "value": "a\nb",
    }


def test_json_replaces_what_is_no_text_and_keeps_the_bytes_beside_it():
    line = json.loads(write_json(RECORD._replace(value=b"\xff")))
    assert line["value"] == "\N{REPLACEMENT CHARACTER}"
    assert line["value_base64"] == "/w=="


@given(st.binary() | st.none(), st.binary() | st.none())
def test_any_record_can_be_shown(key, value):
    record = RECORD._replace(key=key, value=value)
    assert json.loads(write_json(record))["offset"] == 17
    assert compile_columns(key=True, headers=True)(record).endswith(b"\n")
