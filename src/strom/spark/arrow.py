"""Columns as Arrow's record batches, without a copy, in the shape that Spark wants to the letter.

key binary, value binary, topic string, partition int, offset bigint,
timestamp timestamp, timestampType int [, headers array<struct<key string, value binary>>]
"""

import struct

import pyarrow as pa

from strom.records.columns import HeaderColumns, Taken, Texts
from strom.spark.places import Place

_TIME = pa.timestamp("us", tz="UTC")
_HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
_HEADERS = pa.list_(pa.field("element", _HEADER))
_FIELDS = [
    pa.field("key", pa.binary()),
    pa.field("value", pa.binary()),
    pa.field("topic", pa.string()),
    pa.field("partition", pa.int32()),
    pa.field("offset", pa.int64()),
    pa.field("timestamp", _TIME),
    pa.field("timestampType", pa.int32()),
]
SCHEMA = pa.schema(_FIELDS)
SCHEMA_WITH_HEADERS = pa.schema([*_FIELDS, pa.field("headers", _HEADERS)])


def to_arrow(taken: Taken, place: Place) -> pa.RecordBatch:
    """Return the records of a partition as Arrow has them."""
    topic, number = place
    count = taken.rows
    schema = SCHEMA if taken.headers is None else SCHEMA_WITH_HEADERS
    if not count:
        # Columns of nothing may be nowhere in memory, at which Arrow would end the process.
        return pa.RecordBatch.from_arrays(
            [pa.nulls(0, each.type) for each in schema], schema=schema
        )
    columns = [
        _texts(taken.keys, count, pa.binary()),
        _texts(taken.values, count, pa.binary()),
        pa.repeat(_text(topic), count),
        pa.repeat(_number(number), count),
        _numbers(taken.offsets, count, pa.int64()),
        _numbers(taken.timestamps, count, _TIME),
        _numbers(taken.kinds, count, pa.int32()),
    ]
    if taken.headers is not None:
        columns.append(_headers(taken.headers, count))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _texts(texts: Texts, count: int, kind: pa.DataType) -> pa.Array:
    valid = None if texts.valid is None else pa.py_buffer(texts.valid)
    buffers = [valid, pa.py_buffer(texts.ends), pa.py_buffer(texts.data)]
    return pa.Array.from_buffers(kind, count, buffers)


def _numbers(data: object, count: int, kind: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(data)])


# Arrow makes a scalar, or an array, from a value of Python only after it has loaded pandas, to see
# whether the value is one of its own: half a second in each worker, before its first record.
def _text(value: str) -> pa.Scalar:
    data = value.encode()
    buffers = [None, pa.py_buffer(struct.pack("<ii", 0, len(data))), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), 1, buffers)[0]


def _number(value: int) -> pa.Scalar:
    return _numbers(struct.pack("<i", value), 1, pa.int32())[0]


def _headers(headers: HeaderColumns, count: int) -> pa.Array:
    """Return the headers as lists; a record that has none has no list, as in Spark's connector."""
    # Loaded here: few read headers, and every worker would wait for it.
    import pyarrow.compute as pc

    ends = pa.Array.from_buffers(pa.int32(), count + 1, [None, pa.py_buffer(headers.ends)])
    total = ends[count].as_py()
    pairs = pa.StructArray.from_arrays(
        [_names(headers.names, total), _texts(headers.contents, total, pa.binary())],
        fields=list(_HEADER),
    )
    lists = pa.ListArray.from_arrays(ends, pairs, type=_HEADERS)
    empty = pc.equal(pc.list_value_length(lists), 0)
    return pc.if_else(empty, pa.scalar(None, _HEADERS), lists)


def _names(names: Texts, count: int) -> pa.Array:
    if not names.is_wide:
        return _texts(names, count, pa.string())
    # Java replaces what is not UTF-8 too; a strange header must not make a topic unreadable.
    raw = _texts(names, count, pa.binary()).to_pylist()
    return pa.array([name.decode("utf-8", "replace") for name in raw], pa.string())
