"""Bodies from schemas as people give them: as text, as bytes, as a file, or as a class."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strom.spark.bodies.avro_body import AvroBody
from strom.spark.bodies.body import SchemaError
from strom.spark.bodies.json_body import JsonBody
from strom.spark.bodies.protobuf_body import ProtobufBody, descriptors_of

if TYPE_CHECKING:
    from google.protobuf.message import Message


def json_body(columns: str) -> JsonBody:
    """Return JSON with columns as in SQL."""
    if not columns.strip():
        raise SchemaError("which columns does the JSON have? 'rider STRING, km DOUBLE'")
    return JsonBody(columns)


def avro_body(schema: str | Path | Mapping[str, Any], schema_id: int | None = None) -> AvroBody:
    """Return Avro of a schema in JSON; a text that is none is the path of one."""
    if isinstance(schema, Mapping):
        text = json.dumps(schema)
    elif isinstance(schema, str) and schema.lstrip()[:1] in ("{", "[", '"'):
        text = schema
    else:
        try:
            text = _content(Path(schema)).decode()
        except UnicodeDecodeError as error:
            raise SchemaError(f"the schema {schema} is no UTF-8: {error.reason}") from None
    return AvroBody(text, schema_id)


def protobuf_body(
    descriptors: "str | Path | bytes | type[Message]", message: str | None = None
) -> ProtobufBody:
    """Return Protobuf of a message in a set of descriptors or its file, or of a class."""
    if isinstance(descriptors, type):
        return ProtobufBody(
            descriptors_of(descriptors), message or descriptors.DESCRIPTOR.full_name
        )
    if message is None:
        raise SchemaError("which message is it? Give its full name: 'rides.desc', 'shop.Ride'")
    found = descriptors if isinstance(descriptors, bytes) else _content(Path(descriptors))
    return ProtobufBody(found, message)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SchemaError(f"the schema {path} cannot be read: {error.strerror}") from None
