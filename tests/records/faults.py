"""Records with something odd inside, in batches whose header and checksum are right.

Each was sent to Apache Kafka 4.3.1; its answers are in `tests/conformance/answers/records.json`,
noted by `tests/conformance/test_records.py`.
"""

import struct

import cramjam

from tests.conformance.batches import (
    COMPRESS,
    GZIP,
    LZ4,
    NOW_MS,
    SNAPPY,
    ZSTD,
    batch,
    record,
    sized,
    varint,
)

BODY_BYTES = 7


def framed(body):
    return varint(len(body)) + body


def body(*, attributes=b"\0", time=b"\0", offset=b"\0", key=b"\1", value=b"\2x", headers=b"\0"):
    return attributes + time + offset + key + value + headers


def long(first, size, last=0):
    """A number in more bytes than it needs."""
    return bytes([0x80 | first]) + b"\x80" * (size - 2) + bytes([last])


def one_header(key, value):
    return framed(body(headers=varint(1) + key + value))


assert len(body()) == BODY_BYTES
GOOD = record(0, b"x")
#: How many records the header tells, and their bytes.
RECORDS = {
    "good": (1, GOOD),
    "fewer than the count": (9, GOOD),
    "more than the count": (1, GOOD + record(1, b"y")),
    "none": (1, b""),
    "a byte behind the last": (1, GOOD + b"\0"),
    "noise behind the last": (1, GOOD + b"\xff" * 7),
    "noise": (1, b"\xff" * 9),
    "zeros": (1, bytes(9)),
    "a length one too long": (1, varint(BODY_BYTES + 1) + body()),
    "a length one too short": (1, varint(BODY_BYTES - 1) + body()),
    "a length of 0": (1, varint(0) + body()),
    "a length of -1": (1, varint(-1) + body()),
    "a length of 2 GB": (1, varint(2**31 - 1) + body()),
    "a length that takes from the next": (2, varint(BODY_BYTES + 1) + body() + record(1, b"y")),
    "a length of five bytes": (1, long(2 * BODY_BYTES, 5) + body()),
    "a length of five bytes, bits too many": (1, long(2 * BODY_BYTES, 5, 0x70) + body()),
    "a length of six bytes": (1, long(2 * BODY_BYTES, 6) + body()),
    "a time of ten bytes": (1, framed(body(time=long(0, 10)))),
    "a time of ten bytes, bits too many": (1, framed(body(time=long(0, 10, 2)))),
    "a time of eleven bytes": (1, framed(body(time=long(0, 11)))),
    "an offset of six bytes": (1, framed(body(offset=long(0, 6)))),
    "a key length of six bytes": (1, framed(body(key=long(1, 6)))),
    "a key of -2": (1, framed(body(key=varint(-2)))),
    "a value of -2": (1, framed(body(value=varint(-2)))),
    "no value": (1, framed(body(value=varint(-1)))),
    "a key beyond the record": (1, framed(body(key=varint(5), headers=b""))),
    "a key beyond the batch": (1, framed(body(key=varint(500)))),
    "a value into the next": (2, framed(body(value=b"\x0cxxx", headers=b"")) + record(1, b"y" * 7)),
    "headers of -1": (1, framed(body(headers=varint(-1)))),
    "headers that are not there": (1, framed(body(headers=varint(5)))),
    "headers of 2 billion": (1, framed(body(headers=varint(2**31 - 1)))),
    "a header without key": (1, one_header(varint(-1), sized(b"v"))),
    "a header without value": (1, one_header(sized(b"k"), varint(-1))),
    "a header with a value of -2": (1, one_header(sized(b"k"), varint(-2))),
    "a header whose key is no text": (1, one_header(sized(b"\xff\xfe"), sized(b"v"))),
    "a byte behind the headers": (1, framed(body(headers=b"\0\0"))),
    "attributes": (1, framed(body(attributes=b"\xff"))),
    "an offset of 5": (1, record(5, b"x")),
    "an offset of -1": (1, record(-1, b"x")),
    "an offset twice": (2, record(0, b"x") + record(0, b"y")),
    "offsets backwards": (2, record(1, b"x") + record(0, b"y")),
    "a gap in the offsets": (2, record(0, b"x") + record(2, b"y")),
}

TWO = record(0, b"x" * 50) + record(1, b"y" * 50)
SNAPPED = bytes(cramjam.snappy.compress_raw(TWO))
XERIAL = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)


def lz4_frame(**form):
    compressor = cramjam.lz4.Compressor(**form)
    compressor.compress(TWO)
    return bytes(compressor.finish())


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at:][1:]


#: Two records as the codec's data, which is odd.
COMPRESSED = {
    f"{name}, {what}": (codec, change(COMPRESS[codec](TWO)))
    for name, codec in (("gzip", GZIP), ("snappy", SNAPPY), ("lz4", LZ4), ("zstd", ZSTD))
    for what, change in (
        ("nothing", lambda data: b""),
        ("noise", lambda data: b"\x17" * 40),
        ("the last byte missing", lambda data: data[:-1]),
        ("half of it", lambda data: data[: len(data) // 2]),
        ("a byte more", lambda data: data + b"\0"),
        ("twice", lambda data: data + data),
    )
} | {
    "gzip, a wrong size": (GZIP, flipped(COMPRESS[GZIP](TWO), -1)),
    "gzip, a wrong checksum": (GZIP, flipped(COMPRESS[GZIP](TWO), -6)),
    "gzip, two members": (GZIP, COMPRESS[GZIP](TWO[:30]) + COMPRESS[GZIP](TWO[30:])),
    "snappy, Java's frame": (SNAPPY, XERIAL + struct.pack(">i", len(SNAPPED)) + SNAPPED),
    "snappy, a frame of nothing": (SNAPPY, XERIAL),
    "snappy, Google's frame": (SNAPPY, bytes(cramjam.snappy.compress(TWO))),
    "lz4, blocks that lean on each other": (LZ4, lz4_frame(block_linked=True)),
    "lz4, a checksum of the content": (LZ4, lz4_frame(block_linked=False, content_checksum=True)),
    "lz4, a wrong checksum of the content": (
        LZ4,
        flipped(lz4_frame(block_linked=False, content_checksum=True), -1),
    ),
    "lz4, a wrong checksum of the header": (LZ4, flipped(lz4_frame(block_linked=False), 6)),
    "lz4, another frame first": (LZ4, bytes.fromhex("502a4d180100000000") + COMPRESS[LZ4](TWO)),
    "zstd, two frames": (ZSTD, COMPRESS[ZSTD](TWO[:30]) + COMPRESS[ZSTD](TWO[30:])),
}

#: One record, 500 ms after the batch's base, in headers that tell something else.
TIMES = {
    "a newest time too early": {"max_time": NOW_MS},
    "a newest time too late": {"max_time": NOW_MS + 10**7},
    "no newest time": {"max_time": -1},
    "a newest time in the far future": {"max_time": NOW_MS + 10**13},
    "times that are too large": {"base_time": 2**63 - 100},
    "times before 1970": {"base_time": -600, "max_time": -100},
    "no time but a claim": {"base_time": -501, "max_time": -1},
    "unknown attributes, a newest time too early": {"attributes": 0x1C0, "max_time": NOW_MS},
    "unknown attributes": {"attributes": 0x1C0, "max_time": NOW_MS + 500},
    "a claim of append time": {"attributes": 0x08, "max_time": NOW_MS + 300},
}

BATCHES = (
    {
        f"{name}, {how}": batch([b"x"] * count, records=records, codec=codec)
        for name, (count, records) in RECORDS.items()
        for how, codec in (("uncompressed", 0), ("in lz4", LZ4))
    }
    | {name: batch([b"x"] * 2, records=c, attributes=n) for name, (n, c) in COMPRESSED.items()}
    | {
        name: batch([b"x"], records=record(0, b"x", time_delta=500), **odd)
        for name, odd in TIMES.items()
    }
)

#: Apache Kafka takes these, and its consumers cannot read what it took.
POISON = {
    f"{name}, in lz4"
    for name in RECORDS
    if name.startswith("a length") and "five" not in name and "six" not in name
}
#: Apache Kafka does not look at this; other readers do.
OVERLOOKED = {
    "gzip, a byte more",
    "lz4, a byte more",
    "lz4, twice",
    "lz4, a wrong checksum of the content",
}
