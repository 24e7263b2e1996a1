# Compiled by mypyc.
"""The encodings of Kafka's protocol, for made and for hand-written readers and writers.

A message is parsed in place, by position, from a buffer that holds the whole frame. A read past
the frame's end raises, whatever the length fields claim, and before memory is reserved for it.

Flexible versions (KIP-482) have varints for lengths, one more than the length, so that 0 is null;
the older ones have 16 bits for strings and 32 for everything else, and -1 is null.
"""

import struct
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

INT16: Final = struct.Struct(">h")
INT32: Final = struct.Struct(">i")
INT64: Final = struct.Struct(">q")

Buffer = bytes | bytearray | memoryview

#: An unsigned varint of 32 bits takes five bytes at most.
VARINT_BYTES_MAX: Final = 5
#: What a string may have in either encoding: the older one has 16 bits for it, and so have records
#: that names are written to.
TEXT_BYTES_MAX: Final = 32767
#: Those of one byte, as nearly all are.
_SHORT: Final = tuple(bytes((each,)) for each in range(0x80))
#: Topic ids by their bytes; both are values, so whoever asks may have them.
_ids: Final[dict[bytes, UUID]] = {}
IDS_KEPT_MAX: Final = 1024
NO_ID: Final = UUID(int=0)
NO_ID_BYTES: Final = bytes(16)
NO_TIME_MS: Final = -1
EPOCH: Final = datetime.fromtimestamp(0, UTC)
NULL: Final = "a field that must be there is null"
LONG_TAG: Final = "a tagged field is longer than its message"


class MalformedFrame(Exception):  # noqa: N818 - it names what came in, not what went wrong here
    """The bytes are not the message that their header says; the connection is closed."""


def read_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Read an unsigned varint; return it and the position behind it."""
    byte = buffer[position]
    if byte < 0x80:
        return byte, position + 1
    value = byte & 0x7F
    for shift in range(7, 7 * VARINT_BYTES_MAX, 7):
        position += 1
        byte = buffer[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position + 1
    raise MalformedFrame("a varint has more than five bytes")


def varint(value: int) -> bytes:
    """Write an unsigned varint."""
    if value < 0x80:
        return _SHORT[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def skip_tags(buffer: Buffer, position: int) -> int:
    """Return the position behind a section of tagged fields, none of which is known."""
    count, position = read_varint(buffer, position)
    for _ in range(count):
        _, position = read_varint(buffer, position)
        size, position = read_varint(buffer, position)
        position += size
        if position > len(buffer):
            raise MalformedFrame(LONG_TAG)
    return position


def read_tags(buffer: Buffer, position: int) -> tuple[dict[int, int], int]:
    """Return where the value of each tagged field begins, and the position behind them all."""
    count, position = read_varint(buffer, position)
    found: dict[int, int] = {}
    for _ in range(count):
        tag, position = read_varint(buffer, position)
        size, position = read_varint(buffer, position)
        found[tag] = position
        position += size
        if position > len(buffer):
            raise MalformedFrame(LONG_TAG)
    return found, position


def write_tags(out: bytearray, tags: list[tuple[int, bytearray]]) -> None:
    """Write a section of tagged fields, in the order given."""
    out += varint(len(tags))
    for tag, body in tags:
        out += varint(tag)
        out += varint(len(body))
        out += body


def read_nullable_text(buffer: Buffer, position: int, flexible: bool) -> tuple[str | None, int]:
    """Read a string of either encoding, which may be null."""
    if flexible:
        size, position = read_varint(buffer, position)
        size -= 1
        if size > TEXT_BYTES_MAX:
            raise MalformedFrame(f"a string of {size} bytes")
    else:
        (size,) = INT16.unpack_from(buffer, position)
        position += 2
    if size < 0:
        return None, position
    end = position + size
    if end > len(buffer):
        raise MalformedFrame("a string is longer than its frame")
    return str(buffer[position:end], "utf-8"), end


def read_text(buffer: Buffer, position: int, flexible: bool) -> tuple[str, int]:
    """Read a string of either encoding."""
    value, position = read_nullable_text(buffer, position, flexible)
    if value is None:
        raise MalformedFrame(NULL)
    return value, position


def id_of(data: bytes) -> UUID:
    """Return the id that the 16 bytes are.

    Clients name the same few topics in every request, and to make an id takes longer than all
    else that is read of a topic: those made last are kept.
    """
    found = _ids.get(data)
    if found is None:
        found = UUID(bytes=data)
        if len(_ids) >= IDS_KEPT_MAX:
            _ids.clear()
        _ids[data] = found
    return found


def nullable_id_of(data: bytes) -> UUID | None:
    """Return the id that the 16 bytes are; zeros are none."""
    return None if data == NO_ID_BYTES else id_of(data)


def id_bytes(value: UUID | None) -> bytes:
    """Return the 16 bytes of an id; none is zeros."""
    return NO_ID_BYTES if value is None else value.bytes


def read_uuid(buffer: Buffer, position: int) -> tuple[UUID, int]:
    """Read an id."""
    end = position + 16
    return id_of(bytes(buffer[position:end])), end


def read_length(buffer: Buffer, position: int, flexible: bool) -> tuple[int, int]:
    """Read how many elements or bytes there are, -1 for none at all."""
    if flexible:
        length, position = read_varint(buffer, position)
        return length - 1, position
    (length,) = INT32.unpack_from(buffer, position)
    return length, position + 4


def read_nullable_view(buffer: Buffer, position: int, flexible: bool) -> tuple[Buffer | None, int]:
    """Read bytes of either encoding, which may be null, as a part of the buffer."""
    size, position = read_length(buffer, position, flexible)
    if size < 0:
        return None, position
    end = position + size
    if end > len(buffer):
        raise MalformedFrame("a field is longer than its message")
    return buffer[position:end], end


def read_view(buffer: Buffer, position: int, flexible: bool) -> tuple[Buffer, int]:
    """Read bytes of either encoding as a part of the buffer."""
    value, position = read_nullable_view(buffer, position, flexible)
    if value is None:
        raise MalformedFrame(NULL)
    return value, position


def read_nullable_bytes(buffer: Buffer, position: int, flexible: bool) -> tuple[bytes | None, int]:
    """Read bytes of either encoding, which may be null."""
    view, position = read_nullable_view(buffer, position, flexible)
    return None if view is None else bytes(view), position


def read_bytes(buffer: Buffer, position: int, flexible: bool) -> tuple[bytes, int]:
    """Read bytes of either encoding."""
    view, position = read_view(buffer, position, flexible)
    return bytes(view), position


def read_nullable_count(
    buffer: Buffer, position: int, flexible: bool, element_bytes_min: int = 1
) -> tuple[int, int]:
    """Read how many elements an array has, -1 for null; no more than there are bytes for.

    An array that claims four billion elements in a frame of twenty bytes costs nothing here.
    """
    count, position = read_length(buffer, position, flexible)
    if count * element_bytes_min > len(buffer) - position:
        raise MalformedFrame(f"an array of {count} elements in {len(buffer)} bytes")
    return max(count, -1), position


def read_count(
    buffer: Buffer, position: int, flexible: bool, element_bytes_min: int = 1
) -> tuple[int, int]:
    """Read how many elements an array has that must be there."""
    count, position = read_nullable_count(buffer, position, flexible, element_bytes_min)
    if count < 0:
        raise MalformedFrame(NULL)
    return count, position


def read_numbers(
    buffer: Buffer, position: int, flexible: bool, letter: str, nullable: bool
) -> tuple[tuple[Any, ...] | None, int]:
    """Read an array of numbers in one go."""
    size = struct.calcsize(letter)
    count, position = read_nullable_count(buffer, position, flexible, size)
    if count < 0:
        if not nullable:
            raise MalformedFrame(NULL)
        return None, position
    return struct.unpack_from(f">{count}{letter}", buffer, position), position + count * size


def text(value: str, flexible: bool) -> bytes:
    """Write a string of either encoding."""
    data = value.encode()
    size = varint(len(data) + 1) if flexible else INT16.pack(len(data))
    return size + data


def nullable_text(value: str | None, flexible: bool) -> bytes:
    """Write a string that may be null."""
    if value is None:
        return b"\0" if flexible else b"\xff\xff"
    return text(value, flexible)


def bytes_of(data: Buffer, flexible: bool) -> bytes:
    """Write bytes of either encoding."""
    return count_of(len(data), flexible) + data


def nullable_bytes_of(data: Buffer | None, flexible: bool) -> bytes:
    """Write bytes that may be null."""
    return count_of(-1, flexible) if data is None else bytes_of(data, flexible)


def count_of(number: int, flexible: bool) -> bytes:
    """Write how many elements an array has, -1 for null."""
    return varint(number + 1) if flexible else INT32.pack(number)


def numbers_of(numbers: Sequence[Any], flexible: bool, letter: str) -> bytes:
    """Write an array of numbers in one go."""
    count = len(numbers)
    return count_of(count, flexible) + struct.pack(f">{count}{letter}", *numbers)


def ms_of(value: timedelta) -> int:
    """Return a duration in milliseconds."""
    return round(value.total_seconds() * 1000) if value else 0


def time_of(value_ms: int) -> datetime | None:
    """Return a time; -1 is none."""
    return None if value_ms == NO_TIME_MS else EPOCH + timedelta(milliseconds=value_ms)


def time_ms_of(value: datetime | None) -> int:
    """Return a time in milliseconds; none is -1."""
    return NO_TIME_MS if value is None else round(value.timestamp() * 1000)
