# Compiled by mypyc.
"""Batches of keys and values that are all of one time, without headers: what coordinators write.

Such a batch is what `write_batch` makes of the same records, byte for byte. It is put together here
in one go, because a commit of offsets is little else than a batch.
"""

import struct
from collections.abc import Sequence
from typing import Final

from crc32c import crc32c

from strom.records.batch import HEADER_SIZE, MAGIC, PREFIX_SIZE
from strom.records.compression import compress
from strom.records.record import Producer

#: From the attributes on: what the checksum covers of the header.
_COVERED: Final = struct.Struct(">hiqqqhii")
_START: Final = struct.Struct(">qiibI")
#: The offset and the leader's epoch are for the log to set.
_NOWHERE: Final = 0
_NO_EPOCH: Final = -1


def _zigzag(number: int) -> bytes:
    value = number << 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


#: Lengths and offsets as records have them; nearly all that occur.
_VARINTS: Final = tuple(_zigzag(each) for each in range(1024))


def _varint(number: int) -> bytes:
    return _VARINTS[number] if number < len(_VARINTS) else _zigzag(number)


def write_keyed(
    pairs: Sequence[tuple[bytes, bytes | None]],
    now_ms: int,
    *,
    producer: Producer,
    flags: int = 0,
    codec: int = 0,
) -> bytearray:
    """Return a batch of the keys and values, all of this time."""
    parts: list[bytes] = []
    for index, (key, value) in enumerate(pairs):
        # Attributes and the distance to the first time are 0, and so is the count of headers.
        place, key_size = _varint(index), _varint(len(key))
        size = len(place) + len(key_size) + len(key) + 3
        if value is None:
            parts += (_varint(size + 1), b"\0\0", place, key_size, key, b"\x01\0")
        else:
            value_size = _varint(len(value))
            size += len(value_size) + len(value)
            parts += (_varint(size), b"\0\0", place, key_size, key, value_size, value, b"\0")
    payload = b"".join(parts)
    if codec:
        payload = bytes(compress(codec, payload))
    count = len(pairs)
    covered = (
        _COVERED.pack(
            codec | flags,
            count - 1,
            now_ms,
            now_ms,
            producer.id,
            producer.epoch,
            producer.base_sequence,
            count,
        )
        + payload
    )
    length = HEADER_SIZE - PREFIX_SIZE + len(payload)
    return bytearray(_START.pack(_NOWHERE, length, _NO_EPOCH, MAGIC, crc32c(covered)) + covered)
