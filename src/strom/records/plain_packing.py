"""Rows into records, in Python, for where the compiled form could not be built.

It does what `_packing.pyx` does, slowly; whoever changes one changes the other. What both take is
defined here: columns in Arrow's layout, as their owner holds them.

    texts     int32 ends, one more than there are; the bytes; a bit for each that is no null
    numbers   int32, one behind the other; a bit for each that is no null

Of a column that is a part of a larger one, `first` says where the part begins.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from strom.records.batch import HEADER_SIZE, Buffer
from strom.records.record import Headers, Record, write_records

#: What a record takes beside its key, value and headers, at most.
RECORD_BYTES_MAX = 5 + 1 + 1 + 5 + 5 + 5 + 5

_SEED = 0x9747B28C
_MIXER = 0x5BD1E995
_UINT32 = 0xFFFFFFFF
_INT31 = 0x7FFFFFFF


class Texts(NamedTuple):
    """A column of texts, each of which may be null."""

    ends: Buffer
    data: Buffer
    #: None: no text is null.
    valid: Buffer | None
    first: int


class Numbers(NamedTuple):
    """A column of numbers, each of which may be null."""

    values: Buffer
    valid: Buffer | None
    first: int


class HeaderLists(NamedTuple):
    """A column of headers: where each row's end among all, their names and their contents."""

    ends: Buffer
    valid: Buffer | None
    first: int
    names: Texts
    contents: Texts


class Rows(NamedTuple):
    """Rows to be written; without keys, every key is null."""

    row_count: int
    keys: Texts | None
    values: Texts
    headers: HeaderLists | None = None


class Spread(NamedTuple):
    """Rows by partition: those of partition p are rows[bounds[p]:bounds[p + 1]], in order."""

    rows: Buffer
    bounds: tuple[int, ...]


class NoSuchPartitionError(ValueError):
    """A row asks for a partition that the topic does not have."""

    def __init__(self, partition: int) -> None:
        super().__init__(partition)
        self.partition = partition


def murmur2(key: bytes) -> int:
    """Return the hash by which every Kafka client finds the partition of a key."""
    whole = len(key) // 4 * 4
    found = _SEED ^ len(key)
    for (part,) in struct.iter_unpack("<I", key[:whole]):
        mixed = part * _MIXER & _UINT32
        mixed ^= mixed >> 24
        found = (found * _MIXER & _UINT32) ^ (mixed * _MIXER & _UINT32)
    rest = key[whole:]
    if rest:
        found = (found ^ int.from_bytes(rest, "little")) * _MIXER & _UINT32
    found ^= found >> 13
    found = found * _MIXER & _UINT32
    return found ^ (found >> 15)


class Spreader:
    """Chooses each row's partition as Kafka's producers do.

    The row may name it; otherwise the key's hash says it. Rows without a key stay at one
    partition until so many bytes have gone there, and then take the next one.
    """

    def __init__(
        self, partition_count: int, turn: int, sticky_bytes: int, ignores_keys: bool
    ) -> None:
        self._count = partition_count
        self._turn = turn % partition_count
        self._sticky_bytes = sticky_bytes
        self._ignores_keys = ignores_keys
        self._stuck_bytes = 0

    def spread(self, rows: Rows, partitions: Numbers | None = None) -> Spread:
        """Return the rows by partition."""
        named = (
            [None] * rows.row_count if partitions is None else _numbers(partitions, rows.row_count)
        )
        keys = (
            [None] * rows.row_count
            if rows.keys is None
            else list(_texts(rows.keys, rows.row_count))
        )
        values = _texts(rows.values, rows.row_count)
        chosen: list[list[int]] = [[] for _ in range(self._count)]
        for index, (name, key, value) in enumerate(zip(named, keys, values, strict=True)):
            chosen[self._choose(name, key, len(value or b""))].append(index)
        bounds = [0]
        for each in chosen:
            bounds.append(bounds[-1] + len(each))
        order = [index for each in chosen for index in each]
        return Spread(struct.pack(f"={len(order)}i", *order), tuple(bounds))

    def _choose(self, named: int | None, key: bytes | None, size: int) -> int:
        if named is not None:
            if not 0 <= named < self._count:
                raise NoSuchPartitionError(named)
            return named
        if key is not None and not self._ignores_keys:
            return (murmur2(key) & _INT31) % self._count
        if self._stuck_bytes >= self._sticky_bytes:
            self._turn = (self._turn + 1) % self._count
            self._stuck_bytes = 0
        self._stuck_bytes += size + len(key or b"") + RECORD_BYTES_MAX
        return self._turn


class Packer:
    """The records of one batch in the making, with room for the batch's header in front."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self.count = 0
        self.size_bytes = HEADER_SIZE
        self._records = bytearray(HEADER_SIZE)

    def add(self, rows: Rows, spread: Spread, first: int, stop: int, size_bytes_max: int) -> int:
        """Add spread.rows[first:stop] until the batch has that size; return the first left out.

        A batch without any record takes one, however large it is.
        """
        chosen = memoryview(spread.rows).cast("B").cast("i")[first:stop]
        for position, row in enumerate(chosen, first):
            record = Record(self.count, 0, _key(rows, row), _text(rows.values, row), ())
            if rows.headers is not None:
                record = record._replace(headers=_headers(rows.headers, row))
            written = write_records([record], 0, 0)
            if self.count and self.size_bytes + len(written) > size_bytes_max:
                return position
            self._records += written
            self.count += 1
            self.size_bytes += len(written)
        return stop

    def take(self) -> memoryview:
        """Hand out the room for the header and the records behind it, and begin anew."""
        taken = memoryview(self._records)
        self._clear()
        return taken


def _key(rows: Rows, row: int) -> bytes | None:
    return None if rows.keys is None else _text(rows.keys, row)


def _texts(column: Texts, count: int) -> Iterator[bytes | None]:
    return (_text(column, row) for row in range(count))


def _text(column: Texts, row: int) -> bytes | None:
    at = column.first + row
    if not _is_valid(column.valid, at):
        return None
    start, end = struct.unpack_from("=ii", column.ends, 4 * at)
    return bytes(memoryview(column.data)[start:end])


def _numbers(column: Numbers, count: int) -> list[int | None]:
    values = memoryview(column.values).cast("B").cast("i")
    places = range(column.first, column.first + count)
    return [values[at] if _is_valid(column.valid, at) else None for at in places]


def _headers(column: HeaderLists, row: int) -> Headers:
    at = column.first + row
    if not _is_valid(column.valid, at):
        return ()
    start, end = struct.unpack_from("=ii", column.ends, 4 * at)
    return tuple(
        ((_text(column.names, each) or b"").decode(), _text(column.contents, each))
        for each in range(start, end)
    )


def _is_valid(valid: Buffer | None, at: int) -> bool:
    return valid is None or bool(memoryview(valid).cast("B")[at >> 3] >> (at & 7) & 1)
