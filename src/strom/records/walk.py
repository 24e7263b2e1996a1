# Compiled by mypyc.
"""The way to look into a batch's records without an object for each of them.

`walk` is compiled (`_walk.pyx`) where the install could build it, and in Python otherwise
(`plain_walk`), with the same findings at a hundredth of the speed. `inspect_batch` does it to a
batch, decompressed first where need be; it may be called in a thread.
"""

from typing import Final

from strom.records.batch import (
    CODEC_MASK,
    HEADER_SIZE,
    NO_TIMESTAMP,
    PREFIX_SIZE,
    Buffer,
    Header,
)
from strom.records.compression import DECOMPRESSED_BYTES_MAX, Room, expand
from strom.records.plain_walk import NO_RECORD, BrokenRecordsError, Facts, Fault, Sifted
from strom.wire.errors import KafkaError

try:
    from strom.records._walk import OffsetMap, rebase, walk
except ImportError:
    from strom.records.plain_walk import OffsetMap, rebase, walk

    IS_COMPILED = False
else:
    IS_COMPILED = True

__all__ = [
    "IS_COMPILED",
    "NO_RECORD",
    "UNREADABLE",
    "BrokenRecordsError",
    "Facts",
    "Fault",
    "OffsetMap",
    "Sifted",
    "inspect_batch",
    "rebase",
    "walk",
]

UNREADABLE: Final = Facts(Fault.UNREADABLE, 0, 0, NO_TIMESTAMP, NO_TIMESTAMP, NO_RECORD, True)

#: Rooms that nobody uses now: in the end one for each thread that looks into batches.
_rooms: list[Room] = []


def inspect_batch(
    header: Header, batch: Buffer, *, size_bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> Facts:
    """Return what is to be known of the records; the buffer begins with all of the batch.

    Nothing is refused here, for what is wrong with the header or the checksum goes first.
    """
    size = header.length + PREFIX_SIZE
    codec = header.attributes & CODEC_MASK
    if not codec:
        return walk(batch, HEADER_SIZE, size, header.record_count, header.base_timestamp)
    records = memoryview(batch)[HEADER_SIZE:size]
    room = _free_room()
    try:
        payload = expand(codec, records, size_bytes_max=size_bytes_max, room=room)
        return walk(payload, 0, len(payload), header.record_count, header.base_timestamp)
    except KafkaError:
        return UNREADABLE
    finally:
        _rooms.append(room)


def _free_room() -> Room:
    try:
        return _rooms.pop()
    except IndexError:
        return Room()
