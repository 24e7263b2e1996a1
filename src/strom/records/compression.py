# Compiled by mypyc.
"""The five codecs of a record batch: none, gzip, snappy, lz4, zstd.

A batch's records are compressed as one piece. What is written can be read by every client:

- snappy goes into xerial's frame (a header, then blocks of at most 32 KiB, each with its
  length), which is what Java's library writes; raw snappy, which some clients send, is read too;
- lz4 goes into its frame format with independent blocks of 64 KiB and no checksum of the
  content (`lz4_frame`); a frame whose blocks depend on each other is refused, as Kafka does.

Decompression never yields more than the caller allows: a few bytes can claim gigabytes.

Who looks at records once and lets them go has them put into a `Room`, which is used again: fresh
memory costs as much as decompressing into it.
"""

import struct
from collections.abc import Callable
from enum import IntEnum
from typing import Final

import cramjam

from strom.records import lz4_frame
from strom.records.batch import Buffer
from strom.wire.errors import ErrorCode, KafkaError


class Codec(IntEnum):
    """How a batch's records are compressed; the values are those of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


#: Kafka's names, as in `compression.type`.
CODEC_NAMES: Final = {
    Codec.NONE: "none",
    Codec.GZIP: "gzip",
    Codec.SNAPPY: "snappy",
    Codec.LZ4: "lz4",
    Codec.ZSTD: "zstd",
}
CODECS_BY_NAME: Final = {name: codec for codec, name in CODEC_NAMES.items()} | {
    # `compression.type` calls it so; producers say "none".
    "uncompressed": Codec.NONE
}

_CODECS: Final = {int(codec): codec for codec in Codec}

#: As much as one request could carry uncompressed (`socket.request.max.bytes`).
DECOMPRESSED_BYTES_MAX: Final = 100 * 1024 * 1024

XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
#: Version 1, readable by version 1.
_XERIAL_HEADER: Final = XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES_MAX: Final = 32 * 1024

_INT32: Final = struct.Struct(">i")


class Room:
    """Memory for one decompression after another; each overwrites the one before."""

    #: What is larger gets memory of its own, and gives it back.
    KEPT_BYTES_MAX = 2 * 1024 * 1024

    def __init__(self) -> None:
        self._kept = bytearray()

    def take(self, size: int) -> memoryview:
        """Return so many bytes to write to, whatever they hold."""
        if size > self.KEPT_BYTES_MAX:
            return memoryview(bytearray(size))
        if size > len(self._kept):
            self._kept = bytearray(size)
        return memoryview(self._kept)[:size]


def codec_of(number: int) -> Codec:
    """Return the codec with this number; a number that Kafka does not know is refused."""
    try:
        # Ten times as fast as to call the class.
        return _CODECS[number]
    except KeyError:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"Unknown compression type id: {number}"
        ) from None


def codec_named(name: str) -> Codec:
    """Return the codec with Kafka's name for it."""
    try:
        return CODECS_BY_NAME[name]
    except KeyError:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown compression name: {name}") from None


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """Return the data compressed; the level is the codec's own, None its default."""
    return _COMPRESSORS[codec_of(codec)](data, level)


def decompress(codec: int, data: Buffer, *, size_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    """Return the data as it was; broken data, or more than the limit, is CORRUPT_MESSAGE."""
    return bytes(expand(codec, data, size_bytes_max=size_bytes_max))


def expand(
    codec: int,
    data: Buffer,
    *,
    size_bytes_max: int = DECOMPRESSED_BYTES_MAX,
    room: Room | None = None,
) -> Buffer:
    """As `decompress`, for who looks at the data once: it is not copied into bytes.

    It may lie in the room, until the room is used again.
    """
    decompressor = _DECOMPRESSORS.get(codec) or _DECOMPRESSORS[codec_of(codec)]
    return decompressor(data, size_bytes_max, room or Room())


def _keep(data: Buffer, level: int | None) -> bytes:
    return bytes(data)


def _compress_gzip(data: Buffer, level: int | None) -> bytes:
    # Kafka's default is -1, which is zlib's word for its own default.
    chosen = None if level is None or level < 0 else level
    return bytes(cramjam.gzip.compress(data, level=chosen))


def _compress_zstd(data: Buffer, level: int | None) -> bytes:
    return bytes(cramjam.zstd.compress(data, level=level))


def _compress_snappy(data: Buffer, level: int | None) -> bytes:
    view = memoryview(data)
    parts = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES_MAX):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES_MAX]))
        parts += (_INT32.pack(len(block)), block)
    return b"".join(parts)


def _corrupt(codec: Codec, reason: object) -> KafkaError:
    return KafkaError(
        ErrorCode.CORRUPT_MESSAGE, f"Failed to decompress {CODEC_NAMES[codec]}: {reason}"
    )


def _unkeep(data: Buffer, size_bytes_max: int, _: Room) -> Buffer:
    if len(data) > size_bytes_max:
        raise _corrupt(Codec.NONE, f"more than {size_bytes_max} bytes")
    return data


def _decompress_growing(
    codec: Codec,
    into: Callable[[Buffer, memoryview], int],
    data: Buffer,
    size_bytes_max: int,
    room: Room,
) -> memoryview:
    """Decompress into a buffer that grows up to the limit, since no header tells the size."""
    # Text comes down to a fifth or less; what was too small is done in vain.
    size = min(max(8 * len(data), 4096), size_bytes_max)
    while True:
        target = room.take(size)
        try:
            filled = into(data, target)
        except cramjam.DecompressionError as error:
            # Too small a buffer and broken data look alike, so only the limit ends the search.
            if size == size_bytes_max:
                raise _corrupt(codec, error) from None
            size = min(size * 8, size_bytes_max)
        else:
            return target[:filled]


def _decompress_gzip(data: Buffer, size_bytes_max: int, room: Room) -> Buffer:
    into = cramjam.gzip.decompress_into
    return _decompress_growing(Codec.GZIP, into, data, size_bytes_max, room)


def _decompress_lz4(data: Buffer, size_bytes_max: int, room: Room) -> Buffer:
    try:
        blocks = lz4_frame.read_blocks(data)
        if blocks is not None:
            space = lz4_frame.space_for(data, blocks)
            return lz4_frame.decompress_blocks(data, blocks, room.take(min(space, size_bytes_max)))
        lz4_frame.check_header(data)
    except ValueError as error:
        raise _corrupt(Codec.LZ4, error) from None
    into = cramjam.lz4.decompress_into
    return _decompress_growing(Codec.LZ4, into, data, size_bytes_max, room)


def _decompress_zstd(data: Buffer, size_bytes_max: int, room: Room) -> Buffer:
    into = cramjam.zstd.decompress_into
    return _decompress_growing(Codec.ZSTD, into, data, size_bytes_max, room)


def _decompress_snappy(data: Buffer, size_bytes_max: int, _: Room) -> bytes:
    if bytes(data[: len(XERIAL_MAGIC)]) != XERIAL_MAGIC:
        return _decompress_snappy_block(data, size_bytes_max)
    view = memoryview(data)
    parts = []
    position = len(_XERIAL_HEADER)
    size = 0
    while position < len(view):
        if len(view) - position < 4:
            raise _corrupt(Codec.SNAPPY, "the length of a block is cut off")
        (length,) = _INT32.unpack_from(view, position)
        position += 4
        if not 0 <= length <= len(view) - position:
            raise _corrupt(Codec.SNAPPY, f"a block claims {length} bytes")
        block = _decompress_snappy_block(view[position : position + length], size_bytes_max - size)
        parts.append(block)
        size += len(block)
        position += length
    return b"".join(parts)


def _decompress_snappy_block(data: Buffer, size_bytes_max: int) -> bytes:
    try:
        # The length is in front of the block; it is what the library would reserve.
        claimed = cramjam.snappy.decompress_raw_len(data)
        if claimed > size_bytes_max:
            raise _corrupt(Codec.SNAPPY, f"more than {size_bytes_max} bytes")
        return bytes(cramjam.snappy.decompress_raw(data))
    except cramjam.DecompressionError as error:
        raise _corrupt(Codec.SNAPPY, error) from None


_COMPRESSORS: Final[dict[Codec, Callable[[Buffer, int | None], bytes]]] = {
    Codec.NONE: _keep,
    Codec.GZIP: _compress_gzip,
    Codec.SNAPPY: _compress_snappy,
    Codec.LZ4: lz4_frame.compress,
    Codec.ZSTD: _compress_zstd,
}
_DECOMPRESSORS: Final[dict[int, Callable[[Buffer, int, Room], Buffer]]] = {
    Codec.NONE: _unkeep,
    Codec.GZIP: _decompress_gzip,
    Codec.SNAPPY: _decompress_snappy,
    Codec.LZ4: _decompress_lz4,
    Codec.ZSTD: _decompress_zstd,
}
