"""The records of batches as columns, in Python, for where the compiled form could not be built.

It does what `_columns.pyx` does, slowly; whoever changes one changes the other. What both hand
out is defined here: buffers in Arrow's layout, so that who has Arrow need only name them.

    texts     int32 ends (the first is 0), bytes one behind the other, a bit for each no-null
    numbers   int64 or int32, one behind the other

All of it is in the byte order of the machine.
"""

from array import array
from typing import NamedTuple

from strom.records.batch import CODEC_MASK, Buffer, Header
from strom.records.plain_walk import BrokenRecordsError, walk
from strom.records.record import Record, read_records, seal

#: Length, attributes, time, offset, key, value and headers: a byte each.
RECORD_BYTES_MIN = 7

_MICROS = 1000
_INT64_MAX = 2**63 - 1
_INT64_MIN = -(2**63)


class Texts(NamedTuple):
    """A column of texts."""

    ends: Buffer
    data: Buffer
    #: None: no text is null.
    valid: Buffer | None
    #: Of headers' names, whether one may not be UTF-8; who makes text of them must look then.
    is_wide: bool


class HeaderColumns(NamedTuple):
    """The headers of all records, and where each record's headers end among them."""

    ends: Buffer
    names: Texts
    contents: Texts


class Taken(NamedTuple):
    """Records as columns."""

    rows: int
    keys: Texts
    values: Texts
    offsets: Buffer
    #: In microseconds.
    timestamps: Buffer
    #: 0: the producer's time; 1: that of the append.
    kinds: Buffer
    headers: HeaderColumns | None


class Columns:
    """The records of some batches of one partition, side by side."""

    def __init__(self, with_headers: bool) -> None:
        self.with_headers = with_headers
        self._clear()

    def _clear(self) -> None:
        self.count = 0
        self.size_bytes = 0
        self._keys: list[bytes | None] = []
        self._values: list[bytes | None] = []
        self._names: list[bytes | None] = []
        self._contents: list[bytes | None] = []
        self._header_ends = array("i", [0])
        self._offsets = array("q")
        self._timestamps = array("q")
        self._kinds = array("i")

    def add(
        self, data: Buffer, start: int, stop: int, header: Header, first: int, end: int
    ) -> None:
        """Add the records in data[start:stop] that are at `first` or behind, and before `end`."""
        payload = bytes(memoryview(data)[start:stop])
        facts = walk(data, start, stop, header.record_count, header.base_timestamp)
        if facts.fault:
            raise BrokenRecordsError(facts.fault, facts.record_count)
        if not facts.record_count:
            return
        plain = header.changed(attributes=header.attributes & ~CODEC_MASK)
        for record in read_records(seal(plain, payload)):
            if first <= record.offset < end:
                self._append(record, int(header.has_append_time))

    def _append(self, record: Record, kind: int) -> None:
        self._keys.append(record.key)
        self._values.append(record.value)
        self._offsets.append(record.offset)
        self._timestamps.append(max(_INT64_MIN, min(record.timestamp_ms * _MICROS, _INT64_MAX)))
        self._kinds.append(kind)
        self.count += 1
        self.size_bytes += 28 + len(record.key or b"") + len(record.value or b"")
        if self.with_headers:
            for name, content in record.headers:
                self._names.append(name.encode())
                self._contents.append(content)
                self.size_bytes += 10 + len(name) + len(content or b"")
            self._header_ends.append(len(self._names))

    def take(self) -> Taken:
        """Hand out what was added, and begin anew."""
        headers = None
        if self.with_headers:
            names, contents = _texts(self._names), _texts(self._contents)
            headers = HeaderColumns(_bytes(self._header_ends), names, contents)
        taken = Taken(
            self.count,
            _texts(self._keys),
            _texts(self._values),
            _bytes(self._offsets),
            _bytes(self._timestamps),
            _bytes(self._kinds),
            headers,
        )
        self._clear()
        return taken


def _texts(column: list[bytes | None]) -> Texts:
    ends = array("i", [0])
    valid = bytearray((len(column) + 7) // 8)
    for row, text in enumerate(column):
        ends.append(ends[-1] + len(text or b""))
        if text is not None:
            valid[row >> 3] |= 1 << (row & 7)
    data = b"".join(text for text in column if text)
    return Texts(_bytes(ends), data, valid if None in column else None, False)


def _bytes(numbers: "array[int]") -> bytes:
    return numbers.tobytes()
