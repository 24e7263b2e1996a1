"""Values that are JSON: an object whose fields are columns.

What is taken for what is as in Spark's `from_json`; what that passes over or guesses at is refused,
with the field and the reason:

    string                 any value; what is no text becomes its JSON
    byte … long            a whole number that fits; not 1.0, not "1"
    float, double          a number that fits; "NaN", "Infinity" and "-Infinity", quoted or not
    boolean                true or false
    decimal(p, s)          a number, or one in quotes, rounded to s places
    timestamp              ISO 8601, without a zone in the session's; or seconds since 1970
    timestamp_ntz, date    ISO 8601
    binary                 base64
    array, map, struct     an array; an object

A field that is missing or null is null, or an error where the column is NOT NULL. Fields that are
no columns are left out. Of two fields of one name the last counts.
"""

import base64
import binascii
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from strom.spark.bodies.body import (
    LONG_MAX,
    Kind,
    Reader,
    SchemaError,
    UnreadableError,
    Value,
    Writer,
    excerpt,
)

Shape = Callable[[Value], Value]

_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
#: As numbers stand in quotes; Python would also take digits in groups.
_QUOTED = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
#: A zone as a distance from UTC, as Spark and Java write it: +01, +05:30, GMT-3.
_DISTANCE = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d\d)(?::?(\d\d))?)?", re.ASCII)
_NOT_FINITE = {
    "NaN": math.nan,
    "Infinity": math.inf,
    "+Infinity": math.inf,
    "-Infinity": -math.inf,
    "INF": math.inf,
    "+INF": math.inf,
    "-INF": -math.inf,
}
_FLOAT_MAX = 3.4028235677973366e38
_EPOCH, _NAIVE_EPOCH, _DAY_ONE = (
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(1970, 1, 1),
    date(1970, 1, 1),
)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class JsonBody:
    """JSON with columns as Spark's SQL has them: `id INT, name STRING`."""

    columns: str
    #: The columns as a type, in JSON; Spark reads it out of the SQL.
    resolved: str | None = None
    #: The time zone of times without one.
    zone: str = "UTC"

    @property
    def label(self) -> str:
        """Return what a value is, for people."""
        return f"JSON of ({self.columns})"

    def resolve(self, kind: Kind, zone: str = "UTC") -> "JsonBody":
        """Return the same with its columns known."""
        return replace(self, resolved=json.dumps(kind), zone=zone)

    def kind(self) -> Kind:
        """Return the columns, as a struct."""
        assert self.resolved is not None
        found: dict[str, Any] = json.loads(self.resolved)
        return found

    def reader(self) -> Reader:
        """Return what reads one value."""
        assert self.resolved is not None
        shape = shape_of(self.kind(), _zone(self.zone))
        # A decimal is to have the digits that were written.
        exact = _exact if '"decimal(' in self.resolved else None
        # A constant that is no JSON becomes a text, of which `double` knows the meaning.
        decoder = json.JSONDecoder(parse_float=exact, parse_constant=str)

        def read(value: bytes) -> dict[str, Any]:
            text = _utf8(value)
            try:
                shaped: dict[str, Any] = shape(_parsed(decoder, text))
            except RecursionError:
                raise UnreadableError("it is nested too deeply") from None
            return shaped

        return read

    def writer(self) -> Writer:
        """Spark writes JSON itself."""
        raise NotImplementedError


def _exact(text: str) -> Decimal | float:
    try:
        return Decimal(text)
    except InvalidOperation:
        # Of a number with such an exponent not even Decimal has the digits.
        return float(text)


def _utf8(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise UnreadableError(
            f"it is no UTF-8: byte 0x{value[error.start]:02x} at {error.start}"
        ) from None


def _parsed(decoder: json.JSONDecoder, text: str) -> Value:
    try:
        return decoder.decode(text)
    except ValueError as error:
        raise UnreadableError(f"{error}: {excerpt(text)}") from None


def shape_of(kind: Kind, zone: tzinfo) -> Shape:
    """Return what checks a value of JSON and makes it one of this type."""
    if isinstance(kind, str):
        return _shape_of_name(kind, zone)
    match kind["type"]:
        case "struct":
            return _struct(kind["fields"], zone)
        case "array":
            return _array(shape_of(kind["elementType"], zone))
        case "map" if kind["keyType"] == "string":
            return _map(shape_of(kind["valueType"], zone))
    raise SchemaError(f"JSON has no {kind}: a map's keys are strings")


def _shape_of_name(name: str, zone: tzinfo) -> Shape:
    if name in _BITS:
        return _whole(name, _BITS[name])
    if found := _DECIMAL.fullmatch(name):
        return _decimal(int(found[1]), int(found[2]))
    if name == "timestamp":
        return _timestamp(zone)
    if name in _SHAPES:
        return _SHAPES[name]
    raise SchemaError(f"a column of type {name} cannot be read from JSON; read it as string")


def _unfit(value: Value, wanted: str) -> UnreadableError:
    shown = value if isinstance(value, str) else _text(value)
    return UnreadableError(f"{excerpt(shown)} is no {wanted}")


def _struct(fields: list[dict[str, Any]], zone: tzinfo) -> Shape:
    shapes = [(each["name"], shape_of(each["type"], zone), each["nullable"]) for each in fields]

    def shape(value: Value) -> dict[str, Any]:
        if type(value) is not dict:
            raise _unfit(value, "object")
        shaped = {}
        for name, inner, may_be_null in shapes:
            found = value.get(name)
            if found is not None:
                try:
                    shaped[name] = inner(found)
                except UnreadableError as error:
                    raise error.inside(name) from None
            elif not may_be_null:
                raise UnreadableError("it is missing, and the column is NOT NULL", name)
        return shaped

    return shape


def _array(inner: Shape) -> Shape:
    def shape(value: Value) -> list[Any]:
        if type(value) is not list:
            raise _unfit(value, "array")
        try:
            return [None if each is None else inner(each) for each in value]
        except UnreadableError as error:
            raise error.inside("[]") from None

    return shape


def _map(inner: Shape) -> Shape:
    def shape(value: Value) -> dict[str, Any]:
        if type(value) is not dict:
            raise _unfit(value, "object")
        try:
            return {key: None if each is None else inner(each) for key, each in value.items()}
        except UnreadableError as error:
            raise error.inside("{}") from None

    return shape


def _whole(name: str, bits: int) -> Shape:
    limit = 1 << (bits - 1)

    def shape(value: Value) -> int:
        if type(value) is not int:
            raise _unfit(value, f"whole number ({name})")
        if not -limit <= value < limit:
            raise UnreadableError(f"{excerpt(str(value))} is out of the range of {name}")
        return value

    return shape


def _text(value: Value) -> str:
    if type(value) is str:
        return value
    if type(value) is Decimal:
        return str(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=float)


def _truth(value: Value) -> bool:
    if type(value) is not bool:
        raise _unfit(value, "boolean")
    return value


def _double(value: Value) -> float:
    if type(value) is str:
        if value in _NOT_FINITE:
            return _NOT_FINITE[value]
    elif type(value) in (float, int, Decimal):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isinf(number):
            raise UnreadableError(f"{excerpt(_text(value))} is out of the range of double")
        return number
    raise _unfit(value, "number")


def _float(value: Value) -> float:
    number = _double(value)
    if math.isfinite(number) and abs(number) >= _FLOAT_MAX:
        raise UnreadableError(f"{excerpt(_text(value))} is out of the range of float")
    return number


def _decimal(precision: int, scale: int) -> Shape:
    step = Decimal(1).scaleb(-scale)
    context = Context(prec=precision, rounding=ROUND_HALF_UP)

    def shape(value: Value) -> Decimal:
        if type(value) is str and not _QUOTED.fullmatch(value):
            raise _unfit(value, "number")
        if type(value) not in (int, Decimal, str):
            raise _unfit(value, "number")
        try:
            number = Decimal(value)
        except InvalidOperation:
            raise _unfit(value, "number") from None
        try:
            return number.quantize(step, context=context)
        except InvalidOperation:
            raise UnreadableError(
                f"{excerpt(str(value))} is out of the range of decimal({precision},{scale})"
            ) from None

    return shape


def _moment(value: Value) -> datetime:
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise _unfit(value, "time (ISO 8601: 2026-11-16T10:00:00Z)") from None


def _timestamp(zone: tzinfo) -> Shape:
    def shape(value: Value) -> int:
        if type(value) is int:
            if abs(value) > LONG_MAX // 1_000_000:
                raise UnreadableError(f"{excerpt(str(value))} is out of the range of timestamp")
            return value * 1_000_000
        moment = _moment(value)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=zone)
        return (moment - _EPOCH) // _MICROSECOND

    return shape


def _moment_without_zone(value: Value) -> int:
    moment = _moment(value)
    if moment.tzinfo is not None:
        raise _unfit(value, "time without a zone")
    return (moment - _NAIVE_EPOCH) // _MICROSECOND


def _date(value: Value) -> int:
    try:
        return (date.fromisoformat(value) - _DAY_ONE).days
    except (TypeError, ValueError):
        raise _unfit(value, "date (2026-11-16)") from None


def _bytes(value: Value) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (TypeError, binascii.Error, ValueError):
        raise _unfit(value, "base64") from None


_SHAPES: dict[str, Shape] = {
    "string": _text,
    "boolean": _truth,
    "float": _float,
    "double": _double,
    "binary": _bytes,
    "timestamp_ntz": _moment_without_zone,
    "date": _date,
}


def _zone(name: str) -> tzinfo:
    """Return a zone by the name that a session has for it."""
    if name in ("UTC", "Z", "Etc/UTC"):
        return UTC
    try:
        if found := _DISTANCE.fullmatch(name):
            sign, *parts = found.groups(default="0")
            hours, minutes, seconds = map(int, parts)
            away = timedelta(hours=hours, minutes=minutes, seconds=seconds)
            return timezone(-away if sign == "-" else away)
        return ZoneInfo(name)
    except (ValueError, ZoneInfoNotFoundError):
        raise SchemaError(f"the session's time zone '{name}' is none that Python knows") from None
