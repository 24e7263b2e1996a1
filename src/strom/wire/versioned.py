"""Messages that live in logs: declared once, read in every version, written in one.

    @message(api_key=2, written=3, newest=4, flexible_since=4)
    class GroupMetadataValue:
        protocol_type: str = of("string")
        state_timestamp_ms: int = of("int64", since=2, default=-1)
        members: tuple[Member, ...] = of("struct")

A class has the fields of all versions; what a version lacks has its default. The type says
whether there can be None and whether there are many. A tagged field that is not known is
stepped over (KIP-482), so what a newer Kafka adds does not stop an older reader. The bytes may be
anything: they are read, or a MalformedFrame says that they are not the message.

Requests and responses are kio's; this is for the coordinators' logs, whose records kio does not
know and of which one coordinator reads many versions, and for what a response of kio cannot hold.
"""

import struct
import types
from collections.abc import Callable, Hashable
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache
from typing import Any, TypeVar, Union, dataclass_transform, get_args, get_origin, get_type_hints
from uuid import UUID

from strom.wire.primitives import (
    Buffer,
    MalformedFrame,
    read_bytes,
    read_length,
    read_text,
    read_varint,
)
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

#: The api key of what only occurs inside a message.
NESTED = -1
ANY_LATER = 2**15
#: In front of a struct that might be absent, and is not.
PRESENT = 1

Class = TypeVar("Class", bound=type)
Read = Callable[[Buffer, int], tuple[Any, int]]


def of(
    kind: str,
    *,
    since: int = 0,
    until: int = ANY_LATER,
    tag: int | None = None,
    default: Any = MISSING,  # noqa: ANN401 - of the field's own type
) -> Any:  # noqa: ANN401 - as dataclasses.field
    """Declare a field by Kafka's type, the versions that have it, and its tag."""
    metadata = {"kind": kind, "since": since, "until": until, "tag": tag}
    return field(default=default, metadata=metadata)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(of,))
def message(
    *, api_key: int = NESTED, written: int = 0, newest: int | None = None, flexible_since: int = 0
) -> Callable[[Class], Class]:
    """Declare a class as a message: the version it is written in, the newest that is read."""

    def declare(cls: Class) -> Class:
        # Frozen to who checks types; that Python watches over it too would make one in five times
        # the time, and coordinators make three for every step of every member.
        made: Any = dataclass(slots=True, kw_only=True, unsafe_hash=True)(cls)
        made.__api_key__ = api_key
        made.__version__ = written
        made.__newest__ = written if newest is None else newest
        made.__flexible_since__ = flexible_since
        declared: Class = made
        return declared

    return declare


def read_message(cls: type[Any], version: int, buffer: Buffer, position: int = 0) -> Any:  # noqa: ANN401
    """Read the message in that version; what follows it is left alone."""
    marks: Any = cls
    try:
        read = _reader(marks, version, version >= marks.__flexible_since__)
        return read(buffer, position)[0]
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise MalformedFrame(f"no {cls.__name__} of version {version}: {error}") from error


def write_message(entity: object, version: int | None = None) -> bytes:
    """Return the message's bytes, in the version that its class is written in."""
    marks: Any = type(entity)
    written = marks.__version__ if version is None else version
    target = bytearray()
    _writer(marks, written, written >= marks.__flexible_since__)(target, entity)
    return bytes(target)


# What a class's fields are in a version.


def _in_version(cls: type[Any], version: int) -> list[tuple[Field[Any], Any]]:
    """Return the fields of the version, each with its type."""
    hints = get_type_hints(cls)
    return [
        (each, hints[each.name])
        for each in fields(cls)
        if each.metadata["since"] <= version <= each.metadata["until"]
    ]


def _without_none(hint: Any) -> tuple[Any, bool]:  # noqa: ANN401
    """Return the type without None, and whether it had it."""
    if get_origin(hint) in (Union, types.UnionType):
        kinds = [each for each in get_args(hint) if each is not types.NoneType]
        return kinds[0], True
    return hint, False


# Reading.


@cache
def _reader(cls: Hashable, version: int, flexible: bool) -> Read:
    made: Any = cls
    known = [
        (each, _field_reader(each.metadata["kind"], hint, version, flexible))
        for each, hint in _in_version(made, version)
    ]
    plain = [(each.name, read) for each, read in known if each.metadata["tag"] is None]
    tagged = {each.metadata["tag"]: (each.name, read) for each, read in known}

    def read_all(buffer: Buffer, position: int) -> tuple[Any, int]:
        values = {}
        for name, read in plain:
            values[name], position = read(buffer, position)
        if flexible:
            position = _read_tagged(buffer, position, tagged, values)
        return made(**values), position

    return read_all


def _read_tagged(
    buffer: Buffer, position: int, tagged: dict[int, tuple[str, Read]], values: dict[str, Any]
) -> int:
    count, position = read_varint(buffer, position)
    for _ in range(count):
        tag, position = read_varint(buffer, position)
        size, position = read_varint(buffer, position)
        if tag in tagged:
            name, read = tagged[tag]
            values[name] = read(buffer, position)[0]
        position += size
    return position


def _field_reader(kind: str, hint: Any, version: int, flexible: bool) -> Read:  # noqa: ANN401
    inner, nullable = _without_none(hint)
    if get_origin(inner) is tuple:
        return _array_reader(kind, get_args(inner)[0], version, flexible)
    if kind == "struct":
        read_struct = _reader(inner, version, flexible)
        return _nullable_struct_reader(read_struct) if nullable else read_struct
    if kind == "string":
        return lambda buffer, position: _present(read_text(buffer, position, flexible), nullable)
    if kind == "bytes":
        return lambda buffer, position: _present(read_bytes(buffer, position, flexible), nullable)
    return _FIXED_READERS[kind]


def _array_reader(kind: str, hint: Any, version: int, flexible: bool) -> Read:  # noqa: ANN401
    read_one = _field_reader(kind, hint, version, flexible)

    def read(buffer: Buffer, position: int) -> tuple[Any, int]:
        count, position, values = *read_length(buffer, position, flexible), []
        if count < 0:
            return None, position
        for _ in range(count):
            value, position = read_one(buffer, position)
            values.append(value)
        return tuple(values), position

    return read


def _nullable_struct_reader(read_struct: Read) -> Read:
    def read(buffer: Buffer, position: int) -> tuple[Any, int]:
        # KIP-893: a byte in front says whether there is one; -1 if not, 0 in a field with a tag.
        if buffer[position] != PRESENT:
            return None, position + 1
        return read_struct(buffer, position + 1)

    return read


def _present(found: tuple[Any, int], nullable: bool) -> tuple[Any, int]:
    if found[0] is None and not nullable:
        raise MalformedFrame("a field that must be there is null")
    return found


def _fixed_reader(layout: str) -> Read:
    packed = struct.Struct(layout)
    unpack_from, size = packed.unpack_from, packed.size

    def read(buffer: Buffer, position: int) -> tuple[Any, int]:
        return unpack_from(buffer, position)[0], position + size

    return read


def _read_uuid(buffer: Buffer, position: int) -> tuple[UUID, int]:
    end = position + 16
    if end > len(buffer):
        raise MalformedFrame("an id is longer than its message")
    return UUID(bytes=bytes(buffer[position:end])), end


_FIXED_READERS: dict[str, Read] = {
    "uuid": _read_uuid,
    **{kind: _fixed_reader(layout) for kind, layout in LAYOUTS.items()},
}


# Writing.


@cache
def _writer(cls: Hashable, version: int, flexible: bool) -> Write:
    made: Any = cls
    known = [
        (each, _field_writer(each.metadata["kind"], hint, version, flexible))
        for each, hint in _in_version(made, version)
    ]
    plain = [(each.name, write) for each, write in known if each.metadata["tag"] is None]
    tagged = [_tagged(each, write) for each, write in known if each.metadata["tag"] is not None]
    return struct_writer(plain, tagged if flexible else [], flexible=flexible)


def _tagged(field_: Field[Any], write: Write) -> Tagged:
    """Return how a field with a tag is written.

    A struct that may be absent is always written: for Kafka one that is left out has all its
    defaults, which is not the same.
    """
    tag, name = field_.metadata["tag"], field_.name
    if field_.metadata["kind"] != "struct" or field_.default is not None:
        return Tagged(tag, name, field_.default, write)

    def write_or_zero(target: bytearray, value: Any) -> None:  # noqa: ANN401 - a message or None
        if value is None:
            target.append(0)
        else:
            write(target, value)

    return Tagged(tag, name, MISSING, write_or_zero)


def _field_writer(kind: str, hint: Any, version: int, flexible: bool) -> Write:  # noqa: ANN401
    inner, nullable = _without_none(hint)
    if get_origin(inner) is tuple:
        if kind in LAYOUTS:
            return numbers_writer(kind, flexible=flexible)
        write_one = _field_writer(kind, get_args(inner)[0], version, flexible)
        return array_writer(write_one, flexible=flexible)
    if kind == "struct":
        write_struct = _writer(inner, version, flexible)
        return nullable_struct_writer(write_struct) if nullable else write_struct
    if kind == "string":
        return text_writer(flexible=flexible, nullable=nullable)
    if kind == "bytes":
        return bytes_writer(flexible=flexible, nullable=nullable)
    return FIXED_WRITERS[kind]
