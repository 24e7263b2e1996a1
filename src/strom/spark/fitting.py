"""Which rows can be written to a topic, by their columns.

    key        binary or string, may be null or missing
    value      binary or string, may be null
    topic      string, needed where the option `topic` is not given, which else goes before it
    partition  int; null or missing: the key's hash says it, or it is their turn
    headers    array<struct<key: string, value: binary>>

Other columns are left alone, so that what was read from a topic can be written to one. The same
columns have the same meaning in Spark's own connector.

It is looked at where a write is planned, which needs nothing of what writes.
"""

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructField,
    StructType,
)

_TEXT = (BinaryType, StringType)


class UnfitRowError(ValueError):
    """Rows cannot be written as they are: a column is missing, or has something that cannot be."""


def check_columns(schema: StructType, topic: str | None) -> None:
    """Refuse rows whose columns are not those of records."""
    columns = {field.name.lower(): field for field in schema.fields}
    if "value" not in columns:
        raise UnfitRowError("The rows have no column 'value', which a record must have.")
    if topic is None and "topic" not in columns:
        raise UnfitRowError(
            "Where do the rows go? Give the option 'topic', or a column of that name."
        )
    for name in ("key", "value"):
        _check_type(columns.get(name), _TEXT, "binary or string")
    _check_type(columns.get("topic"), (StringType,), "string")
    _check_type(columns.get("partition"), (IntegerType,), "int")
    headers = columns.get("headers")
    if headers is not None and not _is_headers(headers.dataType):
        raise UnfitRowError(
            "Column 'headers' is array<struct<key: string, value: binary>>, "
            f"not {headers.dataType.simpleString()}."
        )


def _check_type(field: StructField | None, kinds: tuple[type[DataType], ...], wanted: str) -> None:
    if field is not None and not isinstance(field.dataType, kinds):
        found = field.dataType.simpleString()
        raise UnfitRowError(f"Column '{field.name}' is {wanted}, not {found}; cast it.")


def _is_headers(kind: DataType) -> bool:
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    parts = [(field.name, type(field.dataType)) for field in kind.elementType.fields]
    return parts == [("key", StringType), ("value", BinaryType)]
