# Compiled by mypyc.
"""The few encodings that the hand-written codecs share.

Everything else is read and written by kio. These messages are hot: they are parsed in
place, by position, from a buffer that holds the whole frame, and they never copy the records.

A read past the frame's end is a MalformedFrame, whatever the length fields claim.
"""

import struct
from collections.abc import Sequence
from typing import Final, TypeVar
from uuid import UUID

INT16: Final = struct.Struct(">h")
INT32: Final = struct.Struct(">i")
_CODE: Final = struct.Struct(">ih")
_FLEXIBLE_CODE: Final = struct.Struct(">ihb")
INT64: Final = struct.Struct(">q")

Buffer = bytes | bytearray | memoryview
Value = TypeVar("Value")

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
    count = buffer[position]
    if count == 0:
        return position + 1
    count, position = read_varint(buffer, position)
    for _ in range(count):
        _, position = read_varint(buffer, position)
        size, position = read_varint(buffer, position)
        position += size
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
    return found, position


def read_text(buffer: Buffer, position: int, flexible: bool) -> tuple[str | None, int]:
    """Read a nullable string of either encoding."""
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


def required(found: tuple[Value | None, int]) -> tuple[Value, int]:
    """Return what was read, which must be there."""
    value, position = found
    if value is None:
        raise MalformedFrame("a field that must be there is null")
    return value, position


def read_uuid(buffer: Buffer, position: int) -> tuple[UUID, int]:
    """Read the 16 bytes of a topic id.

    Clients name the same few topics in every request, and to make an id takes longer than all
    else that is read of a topic: those made last are kept.
    """
    end = position + 16
    data = bytes(buffer[position:end])
    found = _ids.get(data)
    if found is None:
        found = UUID(bytes=data)
        if len(_ids) >= IDS_KEPT_MAX:
            _ids.clear()
        _ids[data] = found
    return found, end


def read_length(buffer: Buffer, position: int, flexible: bool) -> tuple[int, int]:
    """Read how many elements or bytes there are, -1 for none at all."""
    if flexible:
        length, position = read_varint(buffer, position)
        length -= 1
    else:
        (length,) = INT32.unpack_from(buffer, position)
        position += 4
    if length > len(buffer):
        raise MalformedFrame("a field is longer than its message")
    return length, position


def read_bytes(buffer: Buffer, position: int, flexible: bool) -> tuple[bytes | None, int]:
    """Read nullable bytes of either encoding."""
    size, position = read_length(buffer, position, flexible)
    if size < 0:
        return None, position
    end = position + size
    if end > len(buffer):
        raise MalformedFrame("a field is longer than its message")
    return bytes(buffer[position:end]), end


def read_count(buffer: Buffer, position: int, flexible: bool) -> tuple[int, int]:
    """Read how many elements an array has; an absent one has none."""
    count, position = read_length(buffer, position, flexible)
    return max(count, 0), position


def text(value: str, flexible: bool) -> bytes:
    """Write a string of either encoding."""
    data = value.encode()
    size = varint(len(data) + 1) if flexible else INT16.pack(len(data))
    return size + data


def bytes_of(data: bytes, flexible: bool) -> bytes:
    """Write bytes of either encoding."""
    return count_of(len(data), flexible) + data


def count_of(number: int, flexible: bool) -> bytes:
    """Write how many elements an array has."""
    return varint(number + 1) if flexible else INT32.pack(number)


def write_codes(parts: list[bytes], partitions: Sequence[tuple[int, int]], flexible: bool) -> None:
    """Write what became of a topic: number and error code of each partition."""
    parts.append(count_of(len(partitions), flexible))
    if flexible:
        parts += [_FLEXIBLE_CODE.pack(index, code, 0) for index, code in partitions]
        parts.append(b"\0")
    else:
        parts += [_CODE.pack(index, code) for index, code in partitions]


def nullable_text(value: str | None, flexible: bool) -> bytes:
    """Write a string that may be absent."""
    if value is None:
        return b"\0" if flexible else b"\xff\xff"
    return text(value, flexible)
