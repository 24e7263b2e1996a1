"""Record batches made by hand, right or wrong, apart from the code under test."""

import struct
from typing import NamedTuple

import cramjam
import crc32c


def compress_lz4(data):
    """Kafka reads only frames whose blocks do not lean on each other."""
    compressor = cramjam.lz4.Compressor(block_linked=False)
    compressor.compress(data)
    return bytes(compressor.finish())


NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
COMPRESS = {
    NONE: lambda data: data,
    GZIP: lambda data: bytes(cramjam.gzip.compress(data)),
    SNAPPY: lambda data: bytes(cramjam.snappy.compress_raw(data)),
    LZ4: compress_lz4,
    ZSTD: lambda data: bytes(cramjam.zstd.compress(data)),
}
NOW_MS = 1_700_000_000_000
LOG_APPEND_TIME, TRANSACTIONAL, CONTROL = 0x08, 0x10, 0x20


class Producer(NamedTuple):
    """Who wrote a batch, and which of theirs it is."""

    id: int = -1
    epoch: int = -1
    sequence: int = -1


def varint(value):
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value & ~0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def sized(data):
    return varint(-1) if data is None else varint(len(data)) + data


def record(delta, value, key=None, headers=(), time_delta=0):
    extra = b"".join(sized(name) + sized(content) for name, content in headers)
    body = b"\0" + varint(time_delta) + varint(delta) + sized(key) + sized(value)
    return sized(body + varint(len(headers)) + extra)


def batch(values, *, codec=NONE, producer=Producer(), time_ms=NOW_MS, **odd):  # noqa: B008
    """A batch of these values (or (key, value) pairs); `odd` replaces fields of its header."""
    pairs = [value if isinstance(value, tuple) else (None, value) for value in values]
    records = b"".join(record(n, value, key) for n, (key, value) in enumerate(pairs))
    payload = COMPRESS[codec](odd.get("records", records))
    checked = struct.pack(
        ">hiqqqhii",
        odd.get("attributes", codec),
        odd.get("last_offset_delta", len(pairs) - 1),
        odd.get("base_time", time_ms),
        odd.get("max_time", time_ms),
        *producer,
        odd.get("count", len(pairs)),
    )
    checked += payload
    crc = odd.get("crc", crc32c.crc32c(checked))
    length = odd.get("length", len(checked) + 9)
    head = struct.pack(">qiibI", 0, length, 0, odd.get("magic", 2), crc)
    return head + checked


class Header(NamedTuple):
    """What the tests look at in a batch that came back."""

    base_offset: int
    size: int
    leader_epoch: int
    attributes: int
    last_offset: int
    max_time: int
    producer_id: int
    sequence: int
    count: int


def headers(data):
    """The headers of the whole batches in some bytes; a torn last one is left out."""
    found, at = [], 0
    while at + 61 <= len(data):
        base, length, epoch, _, crc = struct.unpack_from(">qiibI", data, at)
        if at + 12 + length > len(data):
            break
        assert crc == crc32c.crc32c(data[at + 21 : at + 12 + length])
        attributes, last, _, most, pid, _, sequence, count = struct.unpack_from(
            ">hiqqqhii", data, at + 21
        )
        found.append(
            Header(base, length + 12, epoch, attributes, base + last, most, pid, sequence, count)
        )
        at += 12 + length
    return found
