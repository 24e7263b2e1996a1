"""Values that are Avro: one record without a file around it, by a schema that is given.

A value must be read to its last byte. With `schema_id` values begin with the header of Confluent's
serialisers, 0x00 and the id of the schema in four bytes, and a value with another id is not read:
there is no registry to ask what it means.
"""

import json
import struct as binary
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from types import ModuleType
from typing import Any

from strom.spark.bodies.avro_schema import Layout, layout_of
from strom.spark.bodies.body import (
    Kind,
    Reader,
    SchemaError,
    UnreadableError,
    UnwritableError,
    Writer,
)

MAGIC = b"\x00"
HEADER_BYTES = 5


@dataclass(frozen=True, slots=True)
class AvroBody:
    """Avro by a schema in JSON."""

    schema: str
    #: The number that a schema registry has given to the schema; None: values have no header.
    schema_id: int | None = None

    def __post_init__(self) -> None:
        """Refuse a schema of which no columns can be made."""
        _layout(self.schema)

    @property
    def label(self) -> str:
        """Return what a value is, for people."""
        return f"Avro of {_layout(self.schema).wire['name']}"

    def kind(self) -> Kind:
        """Return the columns, as a struct."""
        return _layout(self.schema).kind

    def reader(self) -> Reader:
        """Return what reads one value."""
        fastavro = _fastavro()
        layout = _layout(self.schema)
        wire, shape = fastavro.parse_schema(layout.wire), layout.shape
        header = _header(self.schema_id)

        def read(value: bytes) -> dict[str, Any]:
            if not value.startswith(header):
                raise UnreadableError(_other_header(value, self.schema_id))
            stream = BytesIO(value)
            stream.seek(len(header))
            try:
                found: dict[str, Any] = fastavro.schemaless_reader(stream, wire, None)
            # fastavro lets through whatever the bytes led to.
            except (ArithmeticError, EOFError, LookupError, TypeError, ValueError) as error:
                raise UnreadableError(_reason(error) + self._hint(value)) from None
            rest = len(value) - stream.tell()
            if rest:
                raise UnreadableError(f"{rest} bytes are left after the record{self._hint(value)}")
            return found if shape is None else shape(found)

        return read

    def _hint(self, value: bytes) -> str:
        found = _id_of(value)
        if self.schema_id is not None or found is None:
            return ""
        return f" (it begins like one of a registry's schema {found}: schema_id={found}?)"

    def writer(self) -> Writer:
        """Return what writes one row."""
        fastavro = _fastavro()
        layout = _layout(self.schema)
        wire, unshape = fastavro.parse_schema(layout.wire), layout.unshape
        header = _header(self.schema_id)

        def write(row: dict[str, Any]) -> bytes:
            stream = BytesIO()
            stream.write(header)
            try:
                fastavro.schemaless_writer(stream, wire, row if unshape is None else unshape(row))
            except (ArithmeticError, LookupError, TypeError, ValueError) as error:
                raise UnwritableError(str(error)) from None
            return stream.getvalue()

        return write


def _fastavro() -> ModuleType:
    try:
        import fastavro
    except ImportError as error:
        raise SchemaError(f"Avro needs fastavro: pip install 'strom[formats]' ({error})") from None
    return fastavro


@lru_cache(maxsize=64)
def _layout(schema: str) -> Layout:
    fastavro = _fastavro()
    try:
        parsed = fastavro.parse_schema(json.loads(schema))
    except json.JSONDecodeError as error:
        raise SchemaError(f"an Avro schema is JSON, and this is none: {error}") from None
    except (
        fastavro.schema.SchemaParseException,
        fastavro.schema.UnknownType,
        # fastavro lets through what a schema of another shape leads to.
        LookupError,
        TypeError,
    ) as error:
        raise SchemaError(f"this is no Avro schema: {error}") from None
    if not isinstance(parsed, dict) or parsed["type"] != "record":
        raise SchemaError("an Avro schema of values is a record: its fields are the columns")
    return layout_of(parsed)


def _header(schema_id: int | None) -> bytes:
    return b"" if schema_id is None else MAGIC + binary.pack(">i", schema_id)


def _id_of(value: bytes) -> int | None:
    """Return the id in the header of a value; None: it has no such header."""
    if len(value) < HEADER_BYTES or not value.startswith(MAGIC):
        return None
    return int.from_bytes(value[1:HEADER_BYTES])


def _other_header(value: bytes, wanted: int | None) -> str:
    found = _id_of(value)
    if found is None:
        return f"it does not begin with 0x00 and the id of a schema, which is to be {wanted}"
    return f"it is of schema {found}, not {wanted}"


def _reason(error: Exception) -> str:
    if isinstance(error, EOFError):
        return "it ends within the record"
    if isinstance(error, LookupError):
        return "it chooses a branch or symbol that the schema does not have, or ends within one"
    return str(error)
