# Compiled by mypyc.
"""lz4 in its frame format, as Java's reader takes it: blocks that do not lean on each other.

    magic 4 | flags 1 | largest block 1 | checksum of the header 1
    (size of a block 4, little-endian, its highest bit set if the block is stored as it is | block)*
    zero 4

What is written here begins with one header, which is also the one of librdkafka and of Java. Such
frames are read block by block, three times as fast as by the library's reader of frames, which
takes all others. Errors are ValueErrors with the reason.
"""

import struct
from typing import Final

import cramjam

from strom.records.batch import Buffer

try:
    from strom.records import _lz4
except ImportError:
    IS_COMPILED = False
else:
    IS_COMPILED = True

#: Magic, independent blocks without checksums, blocks of at most 64 KiB, header checksum.
HEADER: Final = bytes.fromhex("04224d18604082")
BLOCK_BYTES_MAX: Final = 64 * 1024
#: A frame of more is the library's to read: Python would step over tiny blocks for too long.
BLOCKS_MAX: Final = 32
#: No block holds more than this many times its own size.
RATIO_MAX: Final = 255

_MAGIC: Final = HEADER[:4]
_INDEPENDENT_FLAG: Final = 0x20
#: Set in a block's size when the block is stored as it is.
_STORED_FLAG: Final = 0x80000000
_END: Final = bytes(4)
_SIZE: Final = struct.Struct("<I")


#: Where a block begins and ends in its frame, and whether it is stored as it is.
Block = tuple[int, int, bool]


def compress(data: Buffer, level: int | None) -> bytes:
    """Return the data in a frame; the level is lz4's own, None its fast compressor."""
    view = memoryview(data)
    parts = [HEADER]
    for start in range(0, len(view), BLOCK_BYTES_MAX):
        block = view[start : start + BLOCK_BYTES_MAX]
        packed = _compress_block(block, level)
        if len(packed) < len(block):
            parts += (_SIZE.pack(len(packed)), packed)
        else:
            parts += (_SIZE.pack(len(block) | _STORED_FLAG), bytes(block))
    parts.append(_END)
    return b"".join(parts)


def _compress_block(block: memoryview, level: int | None) -> bytes:
    # Kafka's default level means the fast compressor, any other one the thorough.
    if level is None:
        return bytes(cramjam.lz4.compress_block(block, store_size=False))
    return bytes(
        cramjam.lz4.compress_block(
            block, mode="high_compression", compression=level, store_size=False
        )
    )


def check_header(data: Buffer) -> None:
    """Refuse what is no frame, or one whose blocks lean on each other: Java cannot read it."""
    if len(data) < len(HEADER) or bytes(data[:4]) != _MAGIC:
        raise ValueError("no frame")
    if not data[4] & _INDEPENDENT_FLAG:
        raise ValueError("the blocks of a frame depend on each other")


def read_blocks(data: Buffer) -> list[Block] | None:
    """Return the blocks of a frame as they are written here; None if it is another one."""
    if IS_COMPILED:
        return _lz4.read_blocks(data, HEADER, BLOCKS_MAX)
    return plain_read_blocks(data)


def plain_read_blocks(data: Buffer) -> list[Block] | None:
    """Do the same where nothing can be compiled."""
    view = memoryview(data)
    if view[: len(HEADER)] != HEADER:
        return None
    blocks: list[Block] = []
    position = len(HEADER)
    while len(view) - position >= _SIZE.size:
        (size,) = _SIZE.unpack_from(view, position)
        position += _SIZE.size
        if size == 0:
            return blocks if position == len(view) else None
        end = position + (size & ~_STORED_FLAG)
        if end > len(view) or len(blocks) == BLOCKS_MAX:
            return None
        blocks.append((position, end, size >= _STORED_FLAG))
        position = end
    return None


def bytes_max(data: Buffer) -> int:
    """Return how many bytes come out of the data at most."""
    blocks = read_blocks(data)
    if blocks is None:
        return RATIO_MAX * len(data)
    size = 0
    for start, end, is_stored in blocks:
        size += min(BLOCK_BYTES_MAX, end - start if is_stored else RATIO_MAX * (end - start))
    return size


def space_for(data: Buffer, blocks: list[Block]) -> int:
    """Return how much room is enough for what is in the blocks of a frame."""
    return min(len(blocks) * BLOCK_BYTES_MAX, RATIO_MAX * len(data))


def decompress_blocks(data: Buffer, blocks: list[Block], target: memoryview) -> memoryview:
    """Put what is in the blocks of a frame into the target; return the part that it fills.

    More than there is room for is an error.
    """
    view = memoryview(data)
    filled = 0
    for start, end, is_stored in blocks:
        room = target[filled : filled + BLOCK_BYTES_MAX]
        if not is_stored:
            filled += _decompress_block(view[start:end], room)
            continue
        if end - start > len(room):
            raise ValueError("a block is too large")
        room[: end - start] = view[start:end]
        filled += end - start
    return target[:filled]


def _decompress_block(block: memoryview, room: memoryview) -> int:
    try:
        filled: int = cramjam.lz4.decompress_block_into(block, room, output_len=len(room))
    except cramjam.DecompressionError:
        raise ValueError("a block is broken, or too large") from None
    return filled
