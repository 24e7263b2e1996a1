"""An Avro schema as columns, and as the schema by which fastavro reads and writes them.

The columns are those of Spark's `from_avro`, as far as it has them:

    null with another           that one, which may be null
    several others              a struct of `member0`, `member1` …, all but one of them null
    int and long, float and double   long, double
    enum                        string
    fixed, bytes                binary
    array, map, record          array, map with keys of strings, struct
    date                        date
    timestamp-millis, -micros   timestamp; local-timestamp-… timestamp_ntz
    decimal                     decimal, of up to 38 digits
    uuid                        string
    others (time-…, …-nanos)    the int, long, bytes or fixed below them

fastavro gets the schema without what it would only make objects of, such as times. A branch of a
union is wrapped into a record of one field, which Avro writes as that field alone: what is read is
then a struct of the right member by itself.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

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

Shape = Callable[[Any], Any]

DECIMAL_DIGITS_MAX = 38
_EPOCH, _NAIVE_EPOCH = datetime(1970, 1, 1, tzinfo=UTC), datetime(1970, 1, 1)
_DAY_ONE = date(1970, 1, 1)
_PLAIN = {
    "boolean": "boolean",
    "int": "integer",
    "long": "long",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
}
_WIDER = {frozenset({"int", "long"}): "long", frozenset({"float", "double"}): "double"}


class Layout(NamedTuple):
    """A schema as a column, and how it is read and written."""

    kind: Kind
    #: The schema for fastavro.
    wire: Any
    #: What makes a column's value of what fastavro reads, and the other way round; None: nothing.
    shape: Shape | None = None
    unshape: Shape | None = None


def layout_of(schema: dict[str, Any]) -> Layout:
    """Return the layout of a record that fastavro has parsed."""
    return _Walk().layout(schema)


class _Walk:
    """A walk through a schema, with the named types met so far."""

    def __init__(self) -> None:
        self._named: dict[str, Layout] = {}
        self._open: list[str] = []

    def layout(self, schema: Value) -> Layout:
        """Return the layout of any schema."""
        if isinstance(schema, list):
            return self._union(schema)
        if isinstance(schema, str):
            return self._by_name(schema)
        if found := _logical(schema):
            self._named[schema.get("name", "")] = found
            return found
        return self._complex(schema)

    def _complex(self, schema: dict[str, Any]) -> Layout:
        match schema["type"]:
            case "record":
                return self._record(schema)
            case "array":
                return _array(self.layout(schema["items"]))
            case "map":
                return _map(self.layout(schema["values"]))
            case "enum" | "fixed" as kind:
                plain = _without_logical_type(schema)
                found = Layout("string" if kind == "enum" else "binary", plain)
                self._named[schema["name"]] = found
                return found
            case other:
                return self.layout(other)

    def _by_name(self, name: str) -> Layout:
        if name in _PLAIN:
            return Layout(_PLAIN[name], name)
        if name in self._open:
            raise SchemaError(f"'{name}' is inside itself: columns have an end")
        if name in self._named:
            return self._named[name]._replace(wire=name)
        raise SchemaError(f"a field of type {name} alone has nothing to be a column of")

    def _record(self, schema: dict[str, Any]) -> Layout:
        name = schema["name"]
        if twice := _twice(each["name"] for each in schema["fields"]):
            raise SchemaError(f"'{name}' has two fields '{twice}'")
        self._open.append(name)
        fields = {each["name"]: self.layout(each["type"]) for each in schema["fields"]}
        self._open.remove(name)
        wire = {
            "type": "record",
            "name": name,
            "fields": [{"name": each, "type": layout.wire} for each, layout in fields.items()],
        }
        kind = struct([(each, layout.kind) for each, layout in fields.items()])
        shape, unshape = _record_shapes(fields)
        self._named[name] = found = Layout(kind, wire, shape, unshape)
        return found

    def _union(self, branches: list[Any]) -> Layout:
        others = [each for each in branches if each != "null"]
        if not others:
            raise SchemaError("a union without a type but null has nothing to be a column of")
        if len(others) == 1:
            inner = self.layout(others[0])
            wire = ["null" if each == "null" else inner.wire for each in branches]
            return inner._replace(wire=wire)
        if all(isinstance(each, str) for each in others) and frozenset(others) in _WIDER:
            return Layout(_WIDER[frozenset(others)], branches)
        return self._members(branches)

    def _members(self, branches: list[Any]) -> Layout:
        wires: list[Any] = []
        members: dict[str, Layout] = {}
        for branch in branches:
            if branch == "null":
                wires.append("null")
                continue
            member = f"member{len(members)}"
            members[member] = inner = self.layout(branch)
            # No two unions may wrap under one name.
            name = f"strom.Union{len(self._named)}_{len(self._open)}_{member}"
            self._named[name] = inner
            fields = [{"name": member, "type": inner.wire}]
            wires.append({"type": "record", "name": name, "fields": fields})
        shape, unshape = _record_shapes(members)

        def choose(value: dict[str, Any]) -> Value:
            chosen = {name: each for name, each in value.items() if each is not None}
            if not chosen:
                return None
            return chosen if unshape is None else unshape(chosen)

        return Layout(
            struct([(each, of.kind) for each, of in members.items()]), wires, shape, choose
        )


def _twice(names: Iterable[str]) -> str | None:
    """Return a name that comes again, if one does."""
    counted = Counter(names)
    return next((name for name, count in counted.items() if count > 1), None)


def _without_logical_type(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key != "logicalType"}


def _logical(schema: dict[str, Any]) -> Layout | None:
    """Return the layout of a logical type that columns have; None: what is below it counts."""
    below = schema["type"]
    match schema.get("logicalType"), below:
        case "date", "int":
            return Layout("date", "int", None, _days)
        case ("timestamp-millis" | "local-timestamp-millis") as name, "long":
            return Layout(_time_kind(name), "long", _millis_read, _millis)
        case ("timestamp-micros" | "local-timestamp-micros") as name, "long":
            return Layout(_time_kind(name), "long", None, _micros)
        case "decimal", "bytes" | "fixed":
            return Layout(_decimal_kind(schema), schema)
        case _:
            return None


def _time_kind(name: str) -> str:
    return "timestamp_ntz" if name.startswith("local-") else "timestamp"


def _decimal_kind(schema: dict[str, Any]) -> str:
    precision, scale = schema.get("precision", 0), schema.get("scale", 0)
    if precision < 1:
        raise SchemaError("a decimal needs a precision, its number of digits")
    if precision > DECIMAL_DIGITS_MAX:
        raise SchemaError(f"a decimal has {DECIMAL_DIGITS_MAX} digits at most, not {precision}")
    return f"decimal({precision},{scale})"


def _record_shapes(fields: dict[str, Layout]) -> tuple[Shape | None, Shape | None]:
    shapes = [(name, of.shape) for name, of in fields.items() if of.shape]
    unshapes = [(name, of.unshape) for name, of in fields.items() if of.unshape]
    return _on_fields(shapes), _on_fields(unshapes)


def _on_fields(shapes: Iterable[tuple[str, Shape]]) -> Shape | None:
    chosen = tuple(shapes)
    if not chosen:
        return None

    def shape(value: dict[str, Any]) -> dict[str, Any]:
        shaped = dict(value)
        for name, inner in chosen:
            found = value.get(name)
            if found is not None:
                shaped[name] = inner(found)
        return shaped

    return shape


def _array(inner: Layout) -> Layout:
    def each(of: Shape | None) -> Shape | None:
        return of and (lambda value: [None if item is None else of(item) for item in value])

    wire = {"type": "array", "items": inner.wire}
    return Layout(array(inner.kind), wire, each(inner.shape), each(inner.unshape))


def _map(inner: Layout) -> Layout:
    shape, unshape = inner.shape, inner.unshape

    def read(value: dict[str, Any]) -> dict[str, Any]:
        assert shape is not None
        return {key: None if item is None else shape(item) for key, item in value.items()}

    def write(value: list[tuple[str, Any]]) -> dict[str, Any]:
        return {
            key: item if item is None or unshape is None else unshape(item) for key, item in value
        }

    wire = {"type": "map", "values": inner.wire}
    return Layout(map_of("string", inner.kind), wire, shape and read, write)


def _millis_read(value: int) -> int:
    if abs(value) > LONG_MAX // 1000:
        raise UnreadableError(f"the time {value} ms is out of range")
    return value * 1000


def _micros(value: datetime) -> int:
    return (value - (_EPOCH if value.tzinfo else _NAIVE_EPOCH)) // timedelta(microseconds=1)


def _millis(value: datetime) -> int:
    return _micros(value) // 1000


def _days(value: date) -> int:
    return (value - _DAY_ONE).days
