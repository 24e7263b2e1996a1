"""Writes messages of kio's classes.

The bytes are those that kio's own writer makes. That one opens a buffer for every struct and checks
the range of every length by its type, and takes about twice as long.
"""

from collections.abc import Callable
from dataclasses import Field, fields
from functools import cache
from typing import Any, Final, get_args, get_origin

from strom.wire.guard import declared
from strom.wire.translate import default_of
from strom.wire.writers import (
    FIXED_WRITERS,
    LAYOUTS,
    Tagged,
    Write,
    array_writer,
    bytes_writer,
    nullable_struct_writer,
    numbers_writer,
    struct_writer,
    text_writer,
)

write_int16, write_int32, write_int64 = (FIXED_WRITERS[f"int{bits}"] for bits in (16, 32, 64))


def schema_writer(entity: Any) -> Callable[[Any], bytes]:  # noqa: ANN401 - a class of kio
    """Return what gives the bytes of a message of the class."""
    write_entity = _entity_writer(entity)

    def write(message: Any) -> bytes:  # noqa: ANN401 - of the class
        target = bytearray()
        write_entity(target, message)
        return bytes(target)

    return write


@cache
def _entity_writer(entity: Any) -> Write:  # noqa: ANN401 - a class of kio
    flexible = entity.__flexible__
    plain: list[tuple[str, Write]] = []
    tagged: list[Tagged] = []
    for each in fields(entity):
        write = _field_writer(each, flexible=flexible)
        tag = each.metadata.get("tag")
        if tag is None:
            plain.append((each.name, write))
        else:
            tagged.append(Tagged(tag, each.name, default_of(each, each.type), write))
    return struct_writer(plain, tagged, flexible=flexible)


def _field_writer(field: Field[Any], *, flexible: bool) -> Write:
    kind = field.metadata.get("kafka_type")
    inner, nullable = declared(field.type)
    # One with a tag that is None has its default, and is not written at all.
    nullable = nullable and "tag" not in field.metadata
    if get_origin(inner) is tuple:
        if kind in LAYOUTS:
            return numbers_writer(kind, flexible=flexible)
        return array_writer(
            _value_writer(kind, get_args(inner)[0], flexible=flexible, nullable=False),
            flexible=flexible,
        )
    return _value_writer(kind, inner, flexible=flexible, nullable=nullable)


def _value_writer(kind: str | None, type_: Any, *, flexible: bool, nullable: bool) -> Write:  # noqa: ANN401
    if kind is None:
        write_struct = _entity_writer(type_)
        return nullable_struct_writer(write_struct) if nullable else write_struct
    if kind == "string":
        return text_writer(flexible=flexible, nullable=nullable)
    if kind in ("bytes", "records"):
        return bytes_writer(flexible=flexible, nullable=nullable)
    return WRITERS[kind]


def _write_error_code(target: bytearray, value: Any) -> None:  # noqa: ANN401 - an ErrorCode
    write_int16(target, value.value)


def _write_timedelta_32(target: bytearray, value: Any) -> None:  # noqa: ANN401 - a timedelta
    write_int32(target, round(value.total_seconds() * 1000))


def _write_timedelta_64(target: bytearray, value: Any) -> None:  # noqa: ANN401 - a timedelta
    write_int64(target, round(value.total_seconds() * 1000))


def _write_datetime(target: bytearray, value: Any) -> None:  # noqa: ANN401 - a datetime or None
    write_int64(target, -1 if value is None else round(value.timestamp() * 1000))


WRITERS: Final[dict[str, Write]] = {
    **FIXED_WRITERS,
    "error_code": _write_error_code,
    "timedelta_i32": _write_timedelta_32,
    "timedelta_i64": _write_timedelta_64,
    "datetime_i64": _write_datetime,
}
