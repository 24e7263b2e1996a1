"""Values as Arrow's columns: what a worker does with a batch of them, in both directions.

Spark hands over an Arrow array and gets one back. Every value has columns, or a reason why it has
none; one that is null has neither. A value whose content no column can hold (a time beyond
microseconds, half of a surrogate pair) is found when Arrow refuses the whole batch: then each is
tried by itself.
"""

from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StructType

from strom.spark.bodies.body import Body, Reader, UnreadableError, UnwritableError, Writer
from strom.spark.housekeeping import end_task

#: The fields of what is read: the columns, and the reason why there are none.
COLUMNS, REASON = "columns", "reason"
REASON_LENGTH_MAX = 500
#: What Arrow raises for what a column cannot hold.
_UNFIT = (pa.ArrowException, ArithmeticError, TypeError, ValueError)


def struct_type(kind: Any) -> StructType:  # noqa: ANN401 - a type in Spark's JSON
    """Return the columns as Spark's type, each of which may be null: an unread value has none."""
    return StructType.fromJson(_nullable(kind))


def read_column(body: Body, values: pa.Array) -> pa.Array:
    """Return for each value its columns or the reason."""
    read, kind = _reading(body)
    rows, reasons = [], []
    for value in values.to_pylist():
        row = reason = None
        if value is not None:
            try:
                row = read(value)
            except UnreadableError as error:
                reason = _cut(error)
        rows.append(row)
        reasons.append(reason)
    columns = _columns(rows, reasons, kind)
    del rows
    # A small task is one batch.
    end_task("values")
    return pa.StructArray.from_arrays(
        [columns, pa.array(reasons, pa.string())], names=[COLUMNS, REASON]
    )


def write_column(body: Body, rows: pa.Array) -> pa.Array:
    """Return for each row the bytes of its value."""
    write = _writing(body)
    try:
        values = [None if row is None else write(row) for row in rows.to_pylist()]
    except (UnwritableError, OverflowError) as error:
        raise UnwritableError(f"a row cannot be {body.label}: {error}") from None
    return pa.array(values, pa.binary())


@lru_cache(maxsize=64)
def _reading(body: Body) -> tuple[Reader, pa.DataType]:
    return body.reader(), to_arrow_type(struct_type(body.kind()), timezone="UTC")


@lru_cache(maxsize=64)
def _writing(body: Body) -> Writer:
    return body.writer()


def _columns(rows: list[Any], reasons: list[str | None], kind: pa.DataType) -> pa.Array:
    """Return the rows as an array; those that do not fit are taken out, with a reason."""
    try:
        return pa.array(rows, kind)
    except _UNFIT:
        for at, row in enumerate(rows):
            try:
                pa.array([row], kind)
            except _UNFIT as error:
                rows[at], reasons[at] = None, _cut(error)
        return pa.array(rows, kind)


def _cut(error: Exception) -> str:
    text = str(error) or type(error).__name__
    shown = text if len(text) <= REASON_LENGTH_MAX else text[: REASON_LENGTH_MAX - 1] + "…"
    return shown.encode("utf-8", "backslashreplace").decode()


def _nullable(kind: Any) -> Any:  # noqa: ANN401 - a type in Spark's JSON
    if isinstance(kind, list):
        return [_nullable(each) for each in kind]
    if not isinstance(kind, dict):
        return kind
    changed = {key: _nullable(value) for key, value in kind.items()}
    may_be_null = ("nullable", "containsNull", "valueContainsNull")
    return {key: True if key in may_be_null else value for key, value in changed.items()}
