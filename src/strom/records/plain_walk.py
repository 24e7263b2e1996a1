"""The walk over the records of a batch, in Python, for where the compiled one could not be built.

It does what `_walk.pyx` does, step by step and slowly; whoever changes one changes the other.
What both find, and what they call it, is defined here.
"""

from enum import IntEnum
from typing import NamedTuple

from strom.records.batch import NO_TIMESTAMP, Buffer

NO_RECORD = -1

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
