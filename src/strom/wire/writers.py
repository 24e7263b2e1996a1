"""What writes the values of a message, by their types: for messages of logs and for kio's alike.

A writer appends a value to a bytearray. The writer of a struct is put together once for each class
of messages, and used for all of them.
"""

import struct
from collections.abc import Callable
from typing import Any, Final, NamedTuple
from uuid import UUID

from strom.wire.primitives import INT16, count_of, varint

Write = Callable[[bytearray, Any], None]

#: What stands for the length of an array that is absent.
NO_ARRAY: Final = -1


class Tagged(NamedTuple):
    """A field with a tag; one that has its default is not written."""

    tag: int
    name: str
    default: Any
    write: Write


def struct_writer(plain: list[tuple[str, Write]], tagged: list[Tagged], *, flexible: bool) -> Write:
    """Return what writes these fields of a message, and those with a tag in their order."""
    in_order = sorted(tagged, key=lambda each: each.tag)

    def write(target: bytearray, entity: Any) -> None:  # noqa: ANN401 - any message
        for name, write_field in plain:
            write_field(target, getattr(entity, name))
        if in_order:
            _write_tagged(target, entity, in_order)
        elif flexible:
            target.append(0)

    return write


def _write_tagged(target: bytearray, entity: Any, tagged: list[Tagged]) -> None:  # noqa: ANN401
    written: list[bytes] = []
    for tag, name, default, write in tagged:
        value = getattr(entity, name)
        if value != default:
            body = bytearray()
            write(body, value)
            written += (varint(tag), varint(len(body)), bytes(body))
    target += varint(len(written) // 3)
    target += b"".join(written)


def array_writer(write_one: Write, *, flexible: bool) -> Write:
    """Return what writes the elements of an array, which may be absent."""
    absent = count_of(NO_ARRAY, flexible)

    def write(target: bytearray, values: Any) -> None:  # noqa: ANN401 - a tuple or None
        if values is None:
            target += absent
            return
        target += count_of(len(values), flexible)
        for value in values:
            write_one(target, value)

    return write


def numbers_writer(kind: str, *, flexible: bool) -> Write:
    """Return what writes an array of numbers in one go; it may be absent."""
    absent = count_of(NO_ARRAY, flexible)
    letter = LAYOUTS[kind][1:]

    def write(target: bytearray, values: Any) -> None:  # noqa: ANN401 - a tuple or None
        if values is None:
            target += absent
            return
        target += count_of(len(values), flexible)
        target += struct.pack(f">{len(values)}{letter}", *values)

    return write


def nullable_struct_writer(write_struct: Write) -> Write:
    """Return what writes a struct that may be absent (KIP-893): a byte in front tells."""

    def write(target: bytearray, value: Any) -> None:  # noqa: ANN401 - a message or None
        if value is None:
            target.append(0xFF)
            return
        target.append(1)
        write_struct(target, value)

    return write


def text_writer(*, flexible: bool, nullable: bool) -> Write:
    """Return what writes a string."""
    absent = b"\0" if flexible else b"\xff\xff"

    def write(target: bytearray, value: Any) -> None:  # noqa: ANN401 - str or None
        if value is None:
            _require(nullable=nullable)
            target += absent
            return
        data: bytes = value.encode()
        target += varint(len(data) + 1) if flexible else INT16.pack(len(data))
        target += data

    return write


def bytes_writer(*, flexible: bool, nullable: bool) -> Write:
    """Return what writes bytes."""
    absent = b"\0" if flexible else b"\xff\xff\xff\xff"

    def write(target: bytearray, value: Any) -> None:  # noqa: ANN401 - bytes or None
        if value is None:
            _require(nullable=nullable)
            target += absent
            return
        target += count_of(len(value), flexible)
        target += value

    return write


def _require(*, nullable: bool) -> None:
    if not nullable:
        raise TypeError("a field that must be there is None")


def _fixed_writer(layout: str) -> Write:
    pack = struct.Struct(layout).pack

    def write(target: bytearray, value: Any) -> None:  # noqa: ANN401 - a number
        target += pack(value)

    return write


def _write_uuid(target: bytearray, value: Any) -> None:  # noqa: ANN401 - UUID or None
    target += NO_ID if value is None else value.bytes


NO_ID: Final = UUID(int=0).bytes
LAYOUTS: Final = {
    "bool": ">?",
    "int8": ">b",
    "int16": ">h",
    "int32": ">i",
    "int64": ">q",
    "uint8": ">B",
    "uint16": ">H",
    "uint32": ">I",
    "uint64": ">Q",
    "float64": ">d",
}
FIXED_WRITERS: Final[dict[str, Write]] = {
    "uuid": _write_uuid,
    **{kind: _fixed_writer(layout) for kind, layout in LAYOUTS.items()},
}
