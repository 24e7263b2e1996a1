"""A Protobuf message as columns: what reads each field of it, and what sets it.

    int32, sint32, sfixed32       int; of 64 bits long
    uint32, fixed32               long; of 64 bits decimal(20,0): none is out of range
    bool, float, double, string   the same
    bytes                         binary
    enum                          string; a number that has no name is its digits
    repeated, map, message        array, map, struct
    wrappers (Int32Value …)       the value, or null
    Timestamp, Duration           timestamp, interval day to second, in whole microseconds
    Struct, Value, ListValue      string, as JSON

A field that knows whether it was set (`optional`, of a `oneof`, a message) is null where it was
not; others have their default, as in every language. Unknown fields are passed over, as everywhere.
"""

import json
import operator
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from strom.spark.bodies.body import (
    LONG_MAX,
    Kind,
    SchemaError,
    UnreadableError,
    Value,
    array,
    map_of,
    struct,
)

Get = Callable[[Any], Any]
#: Sets a field of this name in a message to a value.
Put = Callable[[Message, str, Any], None]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_INTERVAL = "interval day to second"
_PLAIN = {
    FieldDescriptor.TYPE_INT32: "integer",
    FieldDescriptor.TYPE_SINT32: "integer",
    FieldDescriptor.TYPE_SFIXED32: "integer",
    FieldDescriptor.TYPE_UINT32: "long",
    FieldDescriptor.TYPE_FIXED32: "long",
    FieldDescriptor.TYPE_INT64: "long",
    FieldDescriptor.TYPE_SINT64: "long",
    FieldDescriptor.TYPE_SFIXED64: "long",
    FieldDescriptor.TYPE_UINT64: "decimal(20,0)",
    FieldDescriptor.TYPE_FIXED64: "decimal(20,0)",
    FieldDescriptor.TYPE_BOOL: "boolean",
    FieldDescriptor.TYPE_FLOAT: "float",
    FieldDescriptor.TYPE_DOUBLE: "double",
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_BYTES: "binary",
}
_WRAPPERS = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Bool", "Bytes", "Double", "Float", "Int32", "Int64", "String", "UInt32", "UInt64")
)
_ANY_JSON = frozenset(f"google.protobuf.{name}" for name in ("Struct", "Value", "ListValue"))


class Single(NamedTuple):
    """One value of a field's type: its column, how it is read, and what is set for it."""

    kind: Kind
    #: What makes a column's value of a field's; None: it is one.
    get: Get | None
    #: What makes a field's value of a column's; None: it is one.
    make: Get | None
    #: What fills a message with a column's value, for types that are messages.
    fill: Callable[[Message, Any], None] | None = None


class Field(NamedTuple):
    """A field of a message as a column."""

    name: str
    kind: Kind
    get: Get
    put: Put


class MessageLayout:
    """A message as a struct of columns."""

    def __init__(self, message: Descriptor, inside: tuple[str, ...] = ()) -> None:
        if message.full_name in inside:
            raise SchemaError(f"'{message.full_name}' is inside itself: columns have an end")
        around = (*inside, message.full_name)
        self._fields = [_field(each, around) for each in message.fields]
        self.kind = struct([(each.name, each.kind) for each in self._fields])
        self._getters = [(each.name, each.get) for each in self._fields]

    def read(self, message: Message) -> dict[str, Any]:
        """Return the columns of a message."""
        return {name: get(message) for name, get in self._getters}

    def fill(self, message: Message, row: dict[str, Any]) -> None:
        """Set the fields of a message; what is null stays unset."""
        for field in self._fields:
            value = row.get(field.name)
            if value is not None:
                field.put(message, field.name, value)


def _field(field: FieldDescriptor, inside: tuple[str, ...]) -> Field:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return _map(field, inside)
    single = _single(field, inside)
    if field.is_repeated:
        return _repeated(field, single)
    name = field.name
    put = partial(_put_message, single.fill) if single.fill else partial(_put, single.make)
    get = _optional(name, single.get) if field.has_presence else _plain(name, single.get)
    return Field(name, single.kind, get, put)


def _plain(name: str, convert: Get | None) -> Get:
    if convert is None:
        return operator.attrgetter(name)
    return lambda message: convert(getattr(message, name))


def _optional(name: str, convert: Get | None) -> Get:
    get = _plain(name, convert)
    return lambda message: get(message) if message.HasField(name) else None


def _put(make: Get | None, message: Message, name: str, value: Value) -> None:
    setattr(message, name, value if make is None else make(value))


def _put_message(
    fill: Callable[[Message, Any], None],
    message: Message,
    name: str,
    value: Value,
) -> None:
    inner = getattr(message, name)
    # An empty message is one that is there.
    inner.SetInParent()
    fill(inner, value)


def _repeated(field: FieldDescriptor, single: Single) -> Field:
    name, convert, make, fill = field.name, single.get, single.make, single.fill

    def get(message: Message) -> list[Any]:
        found = getattr(message, name)
        return list(found) if convert is None else [convert(each) for each in found]

    def put(message: Message, name: str, value: list[Any]) -> None:
        found = getattr(message, name)
        for each in value:
            if fill is not None:
                fill(found.add(), each)
            else:
                found.append(each if make is None else make(each))

    return Field(name, array(single.kind), get, put)


def _map(field: FieldDescriptor, inside: tuple[str, ...]) -> Field:
    entry = field.message_type
    key = _single(entry.fields_by_name["key"], inside)
    single = _single(entry.fields_by_name["value"], inside)
    name, convert, make, fill = field.name, single.get, single.make, single.fill
    # Numbers of 64 bits without a sign are decimals in columns.
    to_key = key.make or (lambda each: each)

    def get(message: Message) -> list[tuple[Any, Any]]:
        found = getattr(message, name).items()
        return [(each, value if convert is None else convert(value)) for each, value in found]

    def put(message: Message, name: str, value: list[tuple[Any, Any]]) -> None:
        found = getattr(message, name)
        for each, item in value:
            if fill is not None:
                fill(found[to_key(each)], item)
            else:
                found[to_key(each)] = item if make is None else make(item)

    return Field(name, map_of(key.kind, single.kind), get, put)


def _single(field: FieldDescriptor, inside: tuple[str, ...]) -> Single:
    if field.enum_type is not None:
        return _enum(field)
    if field.message_type is not None:
        return _message(field.message_type, inside)
    kind: str = _PLAIN[field.type]
    if kind == "string":
        return Single(kind, _text, None)
    return Single(kind, None, int if kind.startswith("decimal") else None)


def _text(value: str | bytes) -> str:
    # In the older syntax a text is not looked at while a message is read.
    if isinstance(value, bytes):
        raise UnreadableError(f"a string is no UTF-8: {value[:20]!r}")
    return value


def _enum(field: FieldDescriptor) -> Single:
    names = {each.number: each.name for each in field.enum_type.values}
    numbers: dict[str, int] = {each.name: each.number for each in field.enum_type.values}

    def number_of(name: str) -> int:
        if name in numbers:
            return numbers[name]
        if name.lstrip("-").isdecimal():
            return int(name)
        raise ValueError(f"'{name}' is no {field.enum_type.full_name}")

    return Single("string", lambda number: names.get(number, str(number)), number_of)


def _message(message: Descriptor, inside: tuple[str, ...]) -> Single:
    name = message.full_name
    if name in _WRAPPERS:
        inner = _single(message.fields_by_name["value"], inside)
        get = _plain("value", inner.get)
        return Single(inner.kind, get, None, partial(_fill_wrapper, inner.make))
    if name == "google.protobuf.Timestamp":
        return Single("timestamp", _micros, None, _fill_time)
    if name == "google.protobuf.Duration":
        return Single(_INTERVAL, _micros, None, _fill_duration)
    if name in _ANY_JSON:
        return Single("string", _as_json, None, lambda found, text: json_format.Parse(text, found))
    layout = MessageLayout(message, inside)
    return Single(layout.kind, layout.read, None, layout.fill)


def _fill_wrapper(make: Get | None, wrapper: Message, value: Value) -> None:
    _put(make, wrapper, "value", value)


def _micros(message: Value) -> int:
    found: int = message.seconds * 1_000_000 + message.nanos // 1000
    if abs(found) > LONG_MAX:
        raise UnreadableError(f"the time {message.seconds} s is out of range")
    return found


def _fill_time(message: Value, value: datetime) -> None:
    seconds, micros = divmod((value - _EPOCH) // _MICROSECOND, 1_000_000)
    message.seconds, message.nanos = seconds, micros * 1000


def _fill_duration(message: Value, value: timedelta) -> None:
    message.FromTimedelta(value)


def _as_json(message: Message) -> str:
    try:
        found = json_format.MessageToDict(message)
    except (json_format.Error, ValueError) as error:
        # A number that is none, or without end.
        raise UnreadableError(str(error)) from None
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))
