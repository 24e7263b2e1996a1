# Compiled by mypyc.
"""Walking from batch to batch through a segment's file.

`walk` reads every byte and waits for the disk; `peek` and `find` read a few headers for a
look-up, and raise a ColdError instead of waiting.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final

from strom.log.cold import DamagedSegmentError
from strom.log.disk import Bytes, File
from strom.records.batch import HEADER_SIZE, MAGIC, PREFIX_SIZE, Header, read_header

#: Large enough that a gigabyte is a thousand reads, small enough to throw away.
WALK_BYTES: Final = 1024 * 1024
#: Two index intervals: what a look-up reads to find its batch behind an index entry.
STEP_BYTES: Final = 8192
#: Base offset, length and, behind eleven bytes, the last offset's delta.
_STEP: Final = Struct(">qi11xi")


def walk(file: File, position: int, end: int) -> Iterator[tuple[int, Header, memoryview]]:
    """Yield position, header and bytes of each batch up to the end.

    Stops in front of the first that is not whole or cannot be a batch by its length and magic;
    whether its checksum is right is for the caller to say.
    """
    buffer = memoryview(b"")
    at = 0
    while position < end:
        size = _whole_batch_size(buffer, at)
        if size is None or size > len(buffer) - at:
            wanted = max(WALK_BYTES, size or 0)
            buffer = memoryview(file.read_at(position, min(wanted, end - position)))
            at = 0
            size = _whole_batch_size(buffer, 0)
            if size is None or size > len(buffer):
                if size is None or size > end - position or len(buffer) < HEADER_SIZE:
                    return
                continue
        header = read_header(buffer, at)
        if header.magic != MAGIC or size < HEADER_SIZE or header.last_offset_delta < 0:
            return
        yield position, header, buffer[at : at + size]
        at += size
        position += size


def is_whole(file: File, end: int, offsets: range) -> bool:
    """Whether there is batch behind batch up to the end, with ascending offsets of the range."""
    next_position, next_offset = 0, offsets.start
    for position, header, batch in walk(file, 0, end):
        if not next_offset <= header.base_offset <= header.last_offset < offsets.stop:
            return False
        next_position, next_offset = position + len(batch), header.last_offset + 1
    return next_position == end


def has_later(file: File, position: int, end: int, time_ms: int, last_offset: int) -> bool:
    """Whether a batch from the position on has a later time.

    The first must end with `last_offset`, if that is not -1; where it does not, the place is
    wrong, and later times may be anywhere.
    """
    for _, header, _ in walk(file, position, end):
        if header.max_timestamp > time_ms or last_offset not in (-1, header.last_offset):
            return True
        last_offset = -1
    return last_offset != -1


def _whole_batch_size(buffer: memoryview, at: int) -> int | None:
    """Return how many bytes the batch says it has, or None if its header is not whole."""
    if len(buffer) - at < HEADER_SIZE:
        return None
    return PREFIX_SIZE + int.from_bytes(buffer[at + 8 : at + 12], "big")


def peek(file: File, position: int) -> tuple[int, int]:
    """Return base offset and last offset of the batch at the position; (0, -1) at the end."""
    data = file.read_now(position, _STEP.size)
    if len(data) < _STEP.size:
        return 0, -1
    base_offset, _, last_delta = _STEP.unpack(data)
    return base_offset, base_offset + last_delta


def find(file: File, offset: int, position: int, end: int, last_offset: int = -1) -> int:
    """Return where the first batch begins that ends at the offset or later, or the end.

    The search begins at the batch at the position, which must end with `last_offset` if given;
    DamagedSegmentError if there is no batch where one must be.
    """
    buffer: Bytes = b""
    at = 0
    while position < end:
        if len(buffer) - at < HEADER_SIZE:
            buffer = file.read_now(position, min(STEP_BYTES, end - position))
            at = 0
        if len(buffer) < HEADER_SIZE:
            break
        base_offset, length, last_delta = _STEP.unpack_from(buffer, at)
        size = length + PREFIX_SIZE
        last = base_offset + last_delta
        if size < HEADER_SIZE or position + size > end or last_offset not in (-1, last):
            break
        if last >= offset:
            return position
        last_offset = -1
        at += size
        position += size
    if position < end:
        raise DamagedSegmentError(f"No batch at position {position}")
    return end
