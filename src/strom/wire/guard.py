"""What stands between bytes from outside and kio, which trusts them too much.

- kio reserves memory for as many elements as an array claims to have. A claim of four billion in
  a frame of twenty bytes is more than most machines can reserve, and then not an exception
  follows but the end of the process. So each count is held against the bytes that are left
  before kio sees it: an element takes one at least.
- kio reads an array that is null also where the protocol does not allow that. No handler expects
  it, so it is refused here, as Apache Kafka does.
- kio reads strings of any length where the encoding is flexible. None is longer than the older
  encoding can tell, here as in Apache Kafka: one that is could be written to no record that has
  the older one, and its clients refuse whole answers for it.
- kio raises KeyError for a tagged field that it does not know, which the protocol says to step
  over: that is how newer clients talk to older brokers. Such fields are cut out.

Most messages need no walk. In the flexible encoding a large count takes at least three bytes
with their high bit set, one after the other, and a message without three such bytes has none.
The length of a string that is too long takes two of them, in a message that is longer still.
"""

import re
import struct
from collections.abc import Callable
from dataclasses import Field, fields
from types import UnionType
from typing import Any, Final, NamedTuple, get_args, get_origin

from strom.wire.lazy import import_schema
from strom.wire.primitives import (
    INT16,
    INT32,
    TEXT_BYTES_MAX,
    MalformedFrame,
    read_varint,
    varint,
)


class Cut(NamedTuple):
    """A section of tagged fields, and what is left of it without the unknown ones."""

    start: int
    end: int
    known: bytes


#: Goes over one value: bytes, position and the cuts to make in; the position behind it out.
Step = Callable[[bytes, int, list[Cut]], int]

#: What is below, 2^21 elements, does no harm.
_LARGE_NUMBER: Final = re.compile(rb"[\x80-\xff]{3}")
_LONG_TEXT: Final = re.compile(rb"[\x80-\xff]{2}[\x02-\x7f]")
_FIXED_SIZES: Final = {
    **dict.fromkeys(("bool", "int8", "uint8"), 1),
    **dict.fromkeys(("int16", "uint16", "error_code"), 2),
    **dict.fromkeys(("int32", "uint32", "timedelta_i32"), 4),
    **dict.fromkeys(("int64", "uint64", "float64", "timedelta_i64", "datetime_i64"), 8),
    "uuid": 16,
}


class _Plan(NamedTuple):
    """How to go over an entity: its fields in order, and those that have a tag."""

    steps: tuple[Step, ...]
    tagged: dict[int, Step]
    flexible: bool


class Nested(NamedTuple):
    """A field that is an array that must be there, or that has one inside."""

    name: str
    nullable: bool
    is_array: bool
    inside: tuple["Nested", ...]


#: One for each class that was ever walked over, of which there is a fixed number.
_PLANS: Final[dict[type[Any], _Plan]] = {}


def guarded_reader(entity: type[Any]) -> Callable[[bytes], Any]:
    """Return a reader of the entity that raises nothing but MalformedFrame, whatever comes in."""
    read = import_schema("kio.serial").entity_reader(entity)
    refusals = (
        import_schema("kio.serial.errors").SerialError,
        *(ValueError, TypeError, OverflowError, LookupError),
    )
    nested = find_nested(entity)

    def read_guarded(data: bytes) -> Any:  # noqa: ANN401 - it is what the class is
        check_counts(entity, data)
        try:
            try:
                message = read(data, 0)[0]
            except KeyError:
                message = read(cut_unknown(entity, data), 0)[0]
        except refusals as error:
            raise MalformedFrame(f"{type(error).__name__}: {error}") from error
        check_nulls(message, nested)
        return message

    return read_guarded


def find_nested(entity: type[Any]) -> tuple[Nested, ...]:
    """Return where a message of the class has arrays that must be there."""
    found = []
    for each in fields(entity):
        type_, nullable = declared(each.type)
        is_array = get_origin(type_) is tuple
        is_entity = each.metadata.get("kafka_type") is None
        inside = find_nested(get_args(type_)[0] if is_array else type_) if is_entity else ()
        if inside or (is_array and not nullable):
            found.append(Nested(each.name, nullable, is_array, inside))
    return tuple(found)


def check_nulls(message: object, nested: tuple[Nested, ...]) -> None:
    """Raise MalformedFrame if an array of the message is null that must not be."""
    for name, nullable, is_array, inside in nested:
        value = getattr(message, name)
        if value is None:
            if not nullable:
                raise MalformedFrame(f"{name} must be there, and is null")
        elif inside:
            for each in value if is_array else (value,):
                check_nulls(each, inside)


def check_counts(entity: type[Any], data: bytes) -> None:
    """Raise MalformedFrame if an array cannot be as long as it claims, or a string must not be."""
    may_have_long_text = len(data) > TEXT_BYTES_MAX and _LONG_TEXT.search(data)
    if not entity.__flexible__ or _LARGE_NUMBER.search(data) or may_have_long_text:
        walk(entity, data, [])


def cut_unknown(entity: type[Any], data: bytes) -> bytes:
    """Return the message without the tagged fields that its class does not know."""
    cuts: list[Cut] = []
    walk(entity, data, cuts)
    parts: list[bytes] = []
    position = 0
    for cut in cuts:
        parts += (data[position : cut.start], cut.known)
        position = cut.end
    return b"".join((*parts, data[position:]))


def walk(entity: type[Any], data: bytes, cuts: list[Cut]) -> int:
    """Return where the message ends; every count in it is checked, every cut noted."""
    try:
        return _walk(entity, data, 0, cuts)
    except (IndexError, struct.error) as error:
        raise MalformedFrame(f"a message is cut off: {error}") from None


def _walk(entity: type[Any], data: bytes, position: int, cuts: list[Cut]) -> int:
    plan = _PLANS.get(entity)
    if plan is None:
        plan = _PLANS[entity] = _make_plan(entity)
    for step in plan.steps:
        position = step(data, position, cuts)
    return _walk_tags(plan, data, position, cuts) if plan.flexible else position


def _walk_tags(plan: _Plan, data: bytes, start: int, cuts: list[Cut]) -> int:
    count, position = read_varint(data, start)
    if count == 0:
        return position
    known = []
    for _ in range(count):
        begin = position
        tag, position = read_varint(data, position)
        size, position = read_varint(data, position)
        end = position + size
        if end > len(data):
            raise MalformedFrame("a tagged field is longer than its message")
        step = plan.tagged.get(tag)
        if step is not None:
            # What is unknown inside a tagged field stays there: its length covers it.
            step(data, position, [])
            known.append(data[begin:end])
        position = end
    if len(known) < count:
        cuts.append(Cut(start, position, varint(len(known)) + b"".join(known)))
    return position


def _make_plan(entity: type[Any]) -> _Plan:
    flexible = entity.__flexible__
    steps = []
    tagged = {}
    for each in fields(entity):
        tag = each.metadata.get("tag")
        if tag is None:
            steps.append(_step(each, flexible=flexible))
        else:
            tagged[tag] = _step(each, flexible=flexible)
    return _Plan(tuple(steps), tagged, flexible)


def _step(field: Field[Any], *, flexible: bool) -> Step:
    kind = field.metadata.get("kafka_type")
    type_, nullable = declared(field.type)
    if get_origin(type_) is not tuple:
        if kind is None:
            return _entity(type_, nullable=nullable and "tag" not in field.metadata)
        return _value(kind, flexible=flexible)
    element = get_args(type_)[0]
    if kind is None:
        return _array(_entity(element, nullable=False), 0, flexible=flexible)
    return _array(_value(kind, flexible=flexible), _FIXED_SIZES.get(kind, 0), flexible=flexible)


def declared(type_: Any) -> tuple[Any, bool]:  # noqa: ANN401 - types are values of any type
    """Return the type without None, and whether there was one."""
    if not isinstance(type_, UnionType):
        return type_, False
    others = [each for each in get_args(type_) if each is not type(None)]
    return others[0], len(others) < len(get_args(type_))


def _value(kind: str, *, flexible: bool) -> Step:
    size = _FIXED_SIZES.get(kind)
    if size is not None:
        return lambda data, position, cuts: position + size
    if flexible:
        return _skip_compact_text if kind == "string" else _skip_compact
    return _skip_text if kind == "string" else _skip_bytes


def _skip_compact(data: bytes, position: int, cuts: list[Cut]) -> int:
    size, position = read_varint(data, position)
    return position + max(size - 1, 0)


def _skip_compact_text(data: bytes, position: int, cuts: list[Cut]) -> int:
    size, position = read_varint(data, position)
    if size - 1 > TEXT_BYTES_MAX:
        raise MalformedFrame(f"a string of {size - 1} bytes")
    return position + max(size - 1, 0)


def _skip_text(data: bytes, position: int, cuts: list[Cut]) -> int:
    size: int = INT16.unpack_from(data, position)[0]
    return position + 2 + max(size, 0)


def _skip_bytes(data: bytes, position: int, cuts: list[Cut]) -> int:
    size: int = INT32.unpack_from(data, position)[0]
    return position + 4 + max(size, 0)


def _entity(entity: type[Any], *, nullable: bool) -> Step:
    def skip(data: bytes, position: int, cuts: list[Cut]) -> int:
        return _walk(entity, data, position, cuts)

    def skip_nullable(data: bytes, position: int, cuts: list[Cut]) -> int:
        # A byte in front tells whether there is one: -1 if not.
        if data[position] == 0xFF:
            return position + 1
        return _walk(entity, data, position + 1, cuts)

    return skip_nullable if nullable else skip


def _array(element: Step, fixed_size: int, *, flexible: bool) -> Step:
    def skip(data: bytes, position: int, cuts: list[Cut]) -> int:
        if flexible:
            count, position = read_varint(data, position)
            count -= 1
        else:
            (count,) = INT32.unpack_from(data, position)
            position += 4
        if count * max(fixed_size, 1) > len(data) - position:
            raise MalformedFrame(f"an array of {count} elements in {len(data)} bytes")
        if fixed_size:
            return position + max(count, 0) * fixed_size
        for _ in range(count):
            position = element(data, position, cuts)
        return position

    return skip
