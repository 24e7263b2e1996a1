"""The walk over the records of a batch, in Python, for where the compiled one could not be built.

It does what `_walk.pyx` does, step by step and slowly; whoever changes one changes the other.
What both find, and what they call it, is defined here.
"""

from collections.abc import Iterator
from enum import IntEnum
from hashlib import blake2b
from typing import NamedTuple

from strom.records.batch import NO_TIMESTAMP, Buffer

NO_RECORD = -1

#: What one key takes of the map's memory: 128 bits for the key, 64 for the offset, as in Kafka.
MAP_ENTRY_BYTES = 24

_INT32_BITS = 32
_INT64_BITS = 64
_INT64_MIN = -(2**63)
_INT64_MASK = 2**64 - 1


class Fault(IntEnum):
    """What is wrong with the first record that cannot be read; the numbers are those of `_walk`."""

    NONE = 0
    #: Fewer records than the header says: the bytes end where one should begin.
    ENDS_EARLY = 1
    #: A record's length is negative, or beyond the end.
    LENGTH = 2
    #: A number takes more bytes than its type may.
    NUMBER = 3
    #: A field ends behind its record.
    FIELD = 4
    #: The count of headers is negative, or of more than could be there.
    HEADER_COUNT = 5
    #: A header has no key.
    HEADER_KEY = 6
    #: A record's length goes beyond its last field.
    RECORD_REST = 7
    #: Bytes are left behind the last record.
    REST = 8
    #: The records cannot be decompressed. No walk finds this, but who prepares one.
    UNREADABLE = 9


class Facts(NamedTuple):
    """What a walk over the records of a batch found."""

    fault: int
    #: Whole records that were read; with a fault, the index of the record that has it.
    record_count: int
    #: Where among the records' bytes the last one read ends, and with it the fault begins.
    position: int
    #: Of all whole records; NO_TIMESTAMP if there is none.
    oldest_ms: int
    #: As Kafka counts it: NO_TIMESTAMP if there is none, or only older ones.
    newest_ms: int
    #: The first record without a key, or NO_RECORD.
    keyless: int
    #: Whether the offset deltas are 0, 1, 2 and so on.
    is_in_sequence: bool


class BrokenRecordsError(Exception):
    """A batch holds something else than its records where a record must be."""

    def __init__(self, fault: int, index: int) -> None:
        super().__init__(f"Record {index}: {Fault(fault).name.lower().replace('_', ' ')}")


class Sifted(NamedTuple):
    """What is left of a batch's records."""

    record_count: int
    #: Of those that are left; NO_TIMESTAMP if there is none.
    newest_ms: int
    #: Whether some of them have no value.
    has_tombstones: bool
    #: Their bytes; None if all of them are left.
    records: bytearray | None


class _Broken(Exception):  # noqa: N818 - not an error of ours; it never leaves this module
    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.fault = fault


def walk(data: Buffer, start: int, stop: int, count: int, base_timestamp: int) -> Facts:
    """Read `count` records in data[start:stop]; whatever the bytes are, facts are returned."""
    if not 0 <= start <= stop <= len(data):
        raise ValueError(f"no bytes {start} to {stop} among {len(data)}")
    payload = bytes(memoryview(data)[start:stop])
    fault = Fault.NONE
    index = position = 0
    oldest, newest = -_INT64_MIN, NO_TIMESTAMP
    keyless = NO_RECORD
    is_in_sequence = True
    while index < count:
        try:
            timestamp_delta, offset_delta, has_key, position = _read_record(payload, position)
        except _Broken as broken:
            fault = broken.fault
            break
        timestamp = add_int64(base_timestamp, timestamp_delta)
        oldest = min(oldest, timestamp)
        newest = max(newest, timestamp)
        if keyless == NO_RECORD and not has_key:
            keyless = index
        if offset_delta != index:
            is_in_sequence = False
        index += 1
    if not fault and position != len(payload):
        fault = Fault.REST
    if index == 0:
        oldest = NO_TIMESTAMP
    return Facts(fault, index, position, oldest, newest, keyless, is_in_sequence)


def add_int64(left: int, right: int) -> int:
    """Return the sum as 64 bits hold it: what is too large begins again below zero, as in Java."""
    return ((left + right - _INT64_MIN) & _INT64_MASK) + _INT64_MIN


def _read_record(payload: bytes, position: int) -> tuple[int, int, bool, int]:
    """Return timestamp and offset as deltas, whether there is a key, and where the record ends."""
    length, position = _read_length(payload, position)
    end = position + length
    if length == 0:
        raise _Broken(Fault.FIELD)
    # The attributes byte says nothing yet; it is stepped over.
    timestamp_delta, position = _read_varint(payload, position + 1, end, _INT64_BITS)
    offset_delta, position = _read_varint(payload, position, end, _INT32_BITS)
    has_key, position = _skip_bytes(payload, position, end)
    _, position = _skip_bytes(payload, position, end)
    position = _skip_headers(payload, position, end)
    if position != end:
        raise _Broken(Fault.RECORD_REST)
    return timestamp_delta, offset_delta, has_key, end


def _read_length(payload: bytes, position: int) -> tuple[int, int]:
    try:
        length, position = _read_varint(payload, position, len(payload), _INT32_BITS)
    except _Broken as broken:
        if broken.fault == Fault.FIELD:
            raise _Broken(Fault.ENDS_EARLY) from None
        raise
    if not 0 <= length <= len(payload) - position:
        raise _Broken(Fault.LENGTH)
    return length, position


def _skip_headers(payload: bytes, position: int, end: int) -> int:
    count, position = _read_varint(payload, position, end, _INT32_BITS)
    # Each takes two bytes at least.
    if not 0 <= count <= (end - position) // 2:
        raise _Broken(Fault.HEADER_COUNT)
    for _ in range(count):
        has_key, position = _skip_bytes(payload, position, end)
        if not has_key:
            raise _Broken(Fault.HEADER_KEY)
        _, position = _skip_bytes(payload, position, end)
    return position


def _skip_bytes(payload: bytes, position: int, end: int) -> tuple[bool, int]:
    """Step over a length and its bytes; return whether there are any, or null, and where it ends.

    Every negative length is null, as in Kafka.
    """
    length, position = _read_varint(payload, position, end, _INT32_BITS)
    if length < 0:
        return False, position
    if length > end - position:
        raise _Broken(Fault.FIELD)
    return True, position + length


def _read_varint(payload: bytes, position: int, end: int, bits: int) -> tuple[int, int]:
    """Read a zigzag number; bits that are too many for its type are dropped, as in Kafka."""
    if position < end and (byte := payload[position]) < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    value = shift = 0
    while True:
        if position >= end:
            raise _Broken(Fault.FIELD)
        byte = payload[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            value &= (1 << bits) - 1
            return (value >> 1) ^ -(value & 1), position
        if shift >= bits:
            raise _Broken(Fault.NUMBER)


class _Seen(NamedTuple):
    """A record as the cleaner looks at it."""

    start: int
    stop: int
    timestamp_delta: int
    offset_delta: int
    key: bytes | None
    has_value: bool


class OffsetMap:
    """The newest offset of each key, for as many keys as the memory would hold."""

    def __init__(self, memory_bytes: int, load_factor: float, seed: bytes) -> None:
        slots = max(memory_bytes // MAP_ENTRY_BYTES, 2)
        self.size_max = min(max(int(slots * load_factor), 1), slots - 1)
        self._seed = seed
        self._offsets: dict[bytes, int] = {}

    @property
    def size(self) -> int:
        """How many keys there are."""
        return len(self._offsets)

    def add(
        self,
        data: Buffer,
        start: int,
        stop: int,
        count: int,
        base_offset: int,
        first_offset: int,
    ) -> bool:
        """Note the keys of the records from the first offset on; False if they do not all fit."""
        for each in _each_record(_cut(data, start, stop), count):
            offset = base_offset + each.offset_delta
            if each.key is None or offset < first_offset:
                continue
            key = self._hash(each.key)
            if key not in self._offsets and self.size >= self.size_max:
                return False
            self._offsets[key] = offset
        return True

    def sift(  # noqa: PLR0913, PLR0917 - a range of bytes, and what its batch says of it
        self,
        data: Buffer,
        start: int,
        stop: int,
        count: int,
        base_offset: int,
        base_timestamp: int,
        latest_offset: int,
        keeps_tombstones: bool,
    ) -> Sifted:
        """Return the records that are still wanted.

        That is all behind the latest offset, up to which the map goes. Of the others, those that
        have a key of which nothing newer is known, and a value unless tombstones are kept.
        """
        payload = _cut(data, start, stop)
        records = bytearray()
        kept, newest, has_tombstones = 0, NO_TIMESTAMP, False
        for each in _each_record(payload, count):
            offset = base_offset + each.offset_delta
            if offset <= latest_offset and (
                each.key is None
                or not (each.has_value or keeps_tombstones)
                or offset < self._offsets.get(self._hash(each.key), -1)
            ):
                continue
            records += payload[each.start : each.stop]
            kept += 1
            newest = max(newest, add_int64(base_timestamp, each.timestamp_delta))
            has_tombstones = has_tombstones or not each.has_value
        return Sifted(kept, newest, has_tombstones, None if kept == count else records)

    def _hash(self, key: bytes) -> bytes:
        return blake2b(key, digest_size=16, key=self._seed).digest()


def rebase(data: Buffer, start: int, stop: int, count: int, shift: int) -> bytearray:
    """Return the records with their times counted from a base that is so much later."""
    payload = _cut(data, start, stop)
    records = bytearray()
    for each in _each_record(payload, count):
        _, position = _read_length(payload, each.start)
        _, position = _read_varint(payload, position + 1, each.stop, _INT64_BITS)
        body = bytearray(1)
        _write_varint(body, add_int64(each.timestamp_delta, -shift))
        body += payload[position : each.stop]
        _write_varint(records, len(body))
        records += body
    return records


def _cut(data: Buffer, start: int, stop: int) -> bytes:
    if not 0 <= start <= stop <= len(data):
        raise ValueError(f"no bytes {start} to {stop} among {len(data)}")
    return bytes(memoryview(data)[start:stop])


def _each_record(payload: bytes, count: int) -> Iterator[_Seen]:
    """Yield every record; raise a BrokenRecordsError where one is not whole."""
    position = 0
    for index in range(count):
        start = position
        try:
            timestamp_delta, offset_delta, _, position = _read_record(payload, start)
        except _Broken as broken:
            raise BrokenRecordsError(broken.fault, index) from None
        key_at = _skip_numbers(payload, start)
        has_key, value_at = _skip_bytes(payload, key_at, position)
        key = None
        if has_key:
            length, begin = _read_varint(payload, key_at, position, _INT32_BITS)
            key = payload[begin : begin + length]
        has_value = _skip_bytes(payload, value_at, position)[0]
        yield _Seen(start, position, timestamp_delta, offset_delta, key, has_value)
    if position != len(payload):
        raise BrokenRecordsError(Fault.REST, count)


def _skip_numbers(payload: bytes, position: int) -> int:
    """Step over the length, the attributes and the two deltas of a record that is whole."""
    _, position = _read_length(payload, position)
    _, position = _read_varint(payload, position + 1, len(payload), _INT64_BITS)
    return _read_varint(payload, position, len(payload), _INT32_BITS)[1]


def _write_varint(target: bytearray, number: int) -> None:
    value = (number << 1) ^ (number >> 63)
    while value > 0x7F:
        target.append((value & 0x7F) | 0x80)
        value >>= 7
    target.append(value)
