"""A partition's directory with everything in it that a dump can show, built by hand."""

import struct

from crc32c import crc32c

from strom.records.batch import (
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    TIMESTAMP_TYPE_FLAG,
    TRANSACTIONAL_FLAG,
    read_header,
)
from strom.records.control import leader_change_batch, snapshot_footer_batch, snapshot_header_batch
from strom.records.control_key import ControlType
from strom.records.marker import write_marker
from strom.records.record import Producer, Record, seal, write_batch

SEGMENT = "00000000000000000000.log"
TORN_SEGMENT = "00000000000000000100.log"
FILES = (
    SEGMENT,
    "00000000000000000000.index",
    "00000000000000000000.timeindex",
    "00000000000000000000.txnindex",
    TORN_SEGMENT,
    "00000000000000000100.snapshot",
    "00000000000000000007-0000000002.checkpoint",
)


def batches():
    """One batch of each kind, with rising offsets."""
    headers = (("first", b"1"), ("second", None))
    dated = write_batch(
        [Record(0, 1000, b"k\tx", b"value", headers), Record(1, 2000, None, None)],
        flags=TIMESTAMP_TYPE_FLAG,
        leader_epoch=3,
    )
    pair = [Record(5, 1000, b"k", b"v"), Record(9, 2500, "ä€".encode(), "ö".encode())]
    packed = write_batch(pair, codec=3, producer=Producer(5, 0, 2**31 - 2), leader_epoch=3)
    header = read_header(packed)
    kept = header.changed(attributes=header.attributes | DELETE_HORIZON_FLAG, last_offset_delta=6)
    yield dated
    yield seal(kept, packed[61:])
    yield seal(header.changed(base_offset=20, attributes=0, record_count=0), b"")
    yield write_batch(
        [Record(29, 2600, b"in doubt", b"?")],
        producer=Producer(5, 1, 0),
        flags=TRANSACTIONAL_FLAG,
        leader_epoch=4,
    )
    yield write_marker(
        ControlType.ABORT,
        producer=Producer(5, 1),
        coordinator_epoch=7,
        now_ms=2700,
        offset=30,
        leader_epoch=4,
    )
    yield leader_change_batch(1, [1, 2], base_offset=31, leader_epoch=4, now_ms=2800)
    yield write_batch([Record(32, 2900, b"\0\0\0\x63", b"??")], flags=CONTROL_FLAG, leader_epoch=5)
    yield write_batch([Record(33, 3000, b"k", b"v")], codec=2, leader_epoch=5)


def write_partition(directory):
    """Write the files; only the last segment's end is torn."""
    stored = list(batches())
    places = []
    position = 0
    for batch in stored:
        header = read_header(batch)
        places.append((position, header.last_offset, header.max_timestamp))
        position += len(batch)
    (directory / SEGMENT).write_bytes(b"".join(stored))
    indexed = [places[1], places[4], places[7]]
    (directory / "00000000000000000000.index").write_bytes(
        b"".join(struct.pack(">ii", last, at) for at, last, _ in indexed) + bytes(80)
    )
    (directory / "00000000000000000000.timeindex").write_bytes(
        b"".join(struct.pack(">qi", time, last) for _, last, time in indexed) + bytes(120)
    )
    (directory / "00000000000000000000.txnindex").write_bytes(
        struct.pack(">hqqqq", 0, 5, 29, 30, 31)
    )
    whole = write_batch([Record(100, 4000, b"k", b"v")], leader_epoch=5)
    torn = write_batch([Record(101, 4001, b"k", b"v" * 100)], leader_epoch=5)[:-5]
    (directory / TORN_SEGMENT).write_bytes(whole + torn)
    (directory / "00000000000000000100.snapshot").write_bytes(snapshot())
    (directory / "00000000000000000007-0000000002.checkpoint").write_bytes(
        snapshot_header_batch(
            last_contained_log_timestamp=77, base_offset=0, leader_epoch=2, now_ms=6
        )
        + snapshot_footer_batch(base_offset=1, leader_epoch=2, now_ms=6)
    )
    (directory / "leader-epoch-checkpoint").write_text("0\n3\n3 0\n4 29\n5 32\n")
    (directory / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")


def snapshot():
    """Two producers, one with a transaction open."""
    entry = struct.Struct(">qhiqiqiq")
    body = struct.pack(">i", 2)
    body += entry.pack(5, 1, 4, 33, 3, 3000, 7, -1) + entry.pack(6, 0, 9, 32, 0, 2900, -1, 32)
    return struct.pack(">hI", 1, crc32c(body)) + body
