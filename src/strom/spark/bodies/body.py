"""What every layout of a value can say: its columns, and how to read and to write one value.

Columns are told in Spark's own JSON form of a type, which needs no Spark:
{"type": "struct", "fields": [{"name": "km", "type": "double", "nullable": true, "metadata": {}}]}.
What a reader returns fits Arrow's array of that type: dicts for structs, lists for arrays, dicts
for maps, whole numbers for times (microseconds since 1970) and dates (days since then).

Bodies are values: two with the same schema are equal, and each can be sent to a worker.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

#: A type in Spark's JSON form: a name, or a struct, array or map.
Kind = str | dict[str, Any]
#: Whatever a column has, or a field.
Value = Any
Reader = Callable[[bytes], dict[str, Any]]
Writer = Callable[[dict[str, Any]], bytes]

INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1
#: Of a value that cannot be read, so much is shown.
EXCERPT_LENGTH_MAX = 100


class SchemaError(ValueError):
    """A schema is none, or has something that cannot be columns."""


class UnreadableError(ValueError):
    """A value is not what its schema says; the text says why, and of which field it speaks."""

    def __init__(self, reason: str, place: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.place = place

    def __str__(self) -> str:
        return f"field {self.place}: {self.reason}" if self.place else self.reason

    def inside(self, step: str) -> "UnreadableError":
        """Return the same as it is seen from around the field."""
        between = "." if self.place and self.place[0] not in "[{" else ""
        return UnreadableError(self.reason, f"{step}{between}{self.place}")


class UnwritableError(ValueError):
    """A row does not fit the schema; the text says why."""


class Body(Protocol):
    """A layout with its schema."""

    def __hash__(self) -> int:
        """Bodies are remembered by what they are."""

    @property
    def label(self) -> str:
        """Return what a value is, for people: "Avro of shop.Ride"."""

    def kind(self) -> Kind:
        """Return the columns, as a struct."""

    def reader(self) -> Reader:
        """Return what reads one value, or raises UnreadableError."""

    def writer(self) -> Writer:
        """Return what writes one row, or raises UnwritableError."""


def struct(fields: Sequence[tuple[str, Kind]]) -> dict[str, Any]:
    """Return the type of named fields, each of which may be null."""
    return {
        "type": "struct",
        "fields": [
            {"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in fields
        ],
    }


def array(element: Kind) -> dict[str, Any]:
    """Return the type of a list."""
    return {"type": "array", "elementType": element, "containsNull": True}


def map_of(key: Kind, value: Kind) -> dict[str, Any]:
    """Return the type of a map."""
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


def excerpt(text: str) -> str:
    """Return the beginning of a text, in quotes."""
    cut = text if len(text) <= EXCERPT_LENGTH_MAX else text[: EXCERPT_LENGTH_MAX - 1] + "…"
    return repr(cut)
