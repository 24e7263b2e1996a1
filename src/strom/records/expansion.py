# Compiled by mypyc.
"""How much can come out of compressed records, told without decompressing them.

The bounds hold whatever the data claims, so they say what belongs into a thread: gzip, snappy and
lz4 cannot hold more than so many times their own size; lz4 and zstd consist of blocks that
cannot hold more than so much each.
"""

import struct
from collections.abc import Callable
from typing import Final

from strom.records import lz4_frame
from strom.records.batch import Buffer
from strom.records.compression import Codec

#: Deflate's best: 258 bytes from two bits.
_GZIP_RATIO_MAX: Final = 1032
#: Snappy's best: 64 bytes from three.
_SNAPPY_RATIO_MAX: Final = 22

_ZSTD_MAGIC: Final = 0xFD2FB528
_ZSTD_SKIPPABLE_MAGIC: Final = 0x184D2A5
_ZSTD_BLOCK_BYTES_MAX: Final = 128 * 1024
#: Counting ends there: it is as good as endless.
_ZSTD_BLOCKS_MAX: Final = 1024
_ZSTD_RLE: Final = 1
_DICTIONARY_ID_SIZES: Final = (0, 1, 2, 4)
_CONTENT_SIZE_SIZES: Final = (0, 2, 4, 8)
_UINT32: Final = struct.Struct("<I")


def bytes_max(codec: int, data: Buffer) -> int:
    """Return how many bytes come out of the data at most."""
    measure = _MEASURES.get(codec)
    return len(data) if measure is None else measure(data)


def _measure_gzip(data: Buffer) -> int:
    return _GZIP_RATIO_MAX * len(data)


def _measure_snappy(data: Buffer) -> int:
    return _SNAPPY_RATIO_MAX * len(data)


def _measure_zstd(data: Buffer) -> int:
    """Count the blocks of all frames; where the data is broken, nothing more comes out."""
    view = memoryview(data)
    position = blocks = 0
    while len(view) - position > _UINT32.size and blocks < _ZSTD_BLOCKS_MAX:
        (magic,) = _UINT32.unpack_from(view, position)
        if magic >> 4 == _ZSTD_SKIPPABLE_MAGIC:
            size = int.from_bytes(view[position + 4 : position + 8], "little")
            position += 2 * _UINT32.size + size
        elif magic == _ZSTD_MAGIC:
            count, position = _count_blocks(view, position + _UINT32.size)
            blocks += count
        else:
            break
    return blocks * _ZSTD_BLOCK_BYTES_MAX


def _count_blocks(view: memoryview, position: int) -> tuple[int, int]:
    """Return how many blocks the frame has whose descriptor is there, and where it ends."""
    descriptor = view[position]
    is_single_segment = descriptor & 0x20
    content_size_size = _CONTENT_SIZE_SIZES[descriptor >> 6] or (1 if is_single_segment else 0)
    window_size = 0 if is_single_segment else 1
    position += 1 + window_size + _DICTIONARY_ID_SIZES[descriptor & 3] + content_size_size
    blocks = 0
    is_last = 0
    while not is_last and len(view) - position >= 3 and blocks < _ZSTD_BLOCKS_MAX:
        head = int.from_bytes(view[position : position + 3], "little")
        is_last = head & 1
        position += 3 + (1 if head >> 1 & 3 == _ZSTD_RLE else head >> 3)
        blocks += 1
    return blocks, position + (4 if descriptor & 4 else 0)


_MEASURES: Final[dict[int, Callable[[Buffer], int]]] = {
    Codec.GZIP: _measure_gzip,
    Codec.SNAPPY: _measure_snappy,
    Codec.LZ4: lz4_frame.bytes_max,
    Codec.ZSTD: _measure_zstd,
}
