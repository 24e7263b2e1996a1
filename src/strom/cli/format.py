r"""How a record is written out: kcat's format strings, JSON lines, key and value.

    %t topic       %k key      %K its size in bytes      %T time in ms    \n \r \t \\ \0
    %p partition   %s %v value %S its size in bytes      %h headers       \xHH a byte
    %o offset      %R size of the value as four bytes, big-endian         %% a percent sign

A size is -1 where there is nothing (null); the thing itself is then written as nothing.
"""

import base64
import json
import re
import struct
from collections.abc import Callable
from typing import NamedTuple

Write = Callable[["Received"], bytes]
Headers = tuple[tuple[str, bytes | None], ...]


class Received(NamedTuple):
    """A record as a consumer got it."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers


def size_of(data: bytes | None) -> int:
    """Return the size in bytes; -1 for null."""
    return -1 if data is None else len(data)


def headers_text(headers: Headers) -> bytes:
    """Return headers as `name=value,name=value`."""
    return b",".join(name.encode() + b"=" + (value or b"") for name, value in headers)


FIELDS: dict[str, Write] = {
    "t": lambda record: record.topic.encode(),
    "p": lambda record: b"%d" % record.partition,
    "o": lambda record: b"%d" % record.offset,
    "T": lambda record: b"%d" % record.timestamp_ms,
    "k": lambda record: record.key or b"",
    "K": lambda record: b"%d" % size_of(record.key),
    "s": lambda record: record.value or b"",
    "v": lambda record: record.value or b"",
    "S": lambda record: b"%d" % size_of(record.value),
    "R": lambda record: struct.pack(">i", size_of(record.value)),
    "h": lambda record: headers_text(record.headers),
}
ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\"}

_PIECE = re.compile(
    r"%(?P<field>.?)|\\x(?P<byte>[0-9a-fA-F]{2})|\\(?P<escape>.?)|(?P<text>[^%\\]+)"
)


def compile_format(text: str) -> Write:
    """Return what writes a record in the format; ValueError names what is not understood."""
    pieces = [compile_piece(match) for match in _PIECE.finditer(text)]
    return lambda record: b"".join([piece(record) for piece in pieces])


def compile_piece(match: re.Match[str]) -> Write:
    """Return what writes one piece of a format."""
    if match["field"] is not None and match["field"] != "%":
        if match["field"] not in FIELDS:
            raise ValueError(
                f"%{match['field']} is unknown: there are {' '.join(map('%'.__add__, FIELDS))}"
            )
        return FIELDS[match["field"]]
    fixed = fixed_piece(match)
    return lambda _: fixed


def fixed_piece(match: re.Match[str]) -> bytes:
    """Return the bytes of a piece that is the same for every record."""
    if match["field"] == "%":
        return b"%"
    if match["byte"] is not None:
        return bytes.fromhex(match["byte"])
    if match["escape"] is None:
        return match["text"].encode()
    if match["escape"] not in ESCAPES:
        raise ValueError(f"\\{match['escape']} is unknown: there are \\n \\r \\t \\0 \\\\ \\xHH")
    return ESCAPES[match["escape"]]


def compile_columns(*, key: bool, headers: bool) -> Write:
    """Return what writes a line of value, or headers, key and value; null as Kafka's tool does."""

    def write(record: Received) -> bytes:
        columns = [b"null" if record.value is None else record.value]
        if key:
            columns.insert(0, b"null" if record.key is None else record.key)
        if headers:
            columns.insert(0, headers_text(record.headers) or b"NO_HEADERS")
        return b"\t".join(columns) + b"\n"

    return write


def write_json(record: Received) -> bytes:
    """Return a line of JSON; `strom produce --from-json` reads it back to the same record.

    What is no text is there a second time, as base64.
    """
    line = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        "headers": [[name, as_text(value)] for name, value in record.headers],
        "key": as_text(record.key),
        "value": as_text(record.value),
    }
    for name, data in (("key", record.key), ("value", record.value)):
        if not is_text(data):
            line[f"{name}_base64"] = as_base64(data)
    if not all(is_text(value) for _, value in record.headers):
        line["headers_base64"] = [[name, as_base64(value)] for name, value in record.headers]
    return json.dumps(line, ensure_ascii=False).encode() + b"\n"


def as_text(data: bytes | None) -> str | None:
    """Return bytes as text, with what is no UTF-8 replaced."""
    return None if data is None else data.decode(errors="replace")


def as_base64(data: bytes | None) -> str | None:
    """Return bytes as base64."""
    return None if data is None else base64.b64encode(data).decode()


def is_text(data: bytes | None) -> bool:
    """Whether the bytes are UTF-8, or there are none."""
    try:
        (data or b"").decode()
    except UnicodeDecodeError:
        return False
    return True
