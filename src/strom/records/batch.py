# Compiled by mypyc.
"""The header of a record batch (magic 2), read and patched in place.

    offset  size  field                      offset  size  field
         0     8  base offset                     27     8  base timestamp
         8     4  length of all that follows      35     8  max timestamp
        12     4  partition leader epoch          43     8  producer id
        16     1  magic                           51     2  producer epoch
        17     4  CRC-32C of all from 21 on       53     4  base sequence
        21     2  attributes                      57     4  count of records
        23     4  last offset delta               61        records, compressed as one piece

The checksum begins behind the base offset and the leader epoch, so a broker may set both
without computing it anew. Everything between socket and disk needs these 61 bytes only.
"""

import struct
from typing import Final

from crc32c import crc32c

HEADER_SIZE: Final = 61
#: Base offset and length: what is needed to step from one batch to the next.
PREFIX_SIZE: Final = 12
MAGIC: Final = 2
CRC_FROM: Final = 21

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_TIMESTAMP: Final = -1

#: The byte of the attributes that says how the records are compressed.
CODEC_AT: Final = 22
CODEC_MASK: Final = 0x07
TIMESTAMP_TYPE_FLAG: Final = 0x08
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20
DELETE_HORIZON_FLAG: Final = 0x40
#: All that means something; Kafka drops the rest where it sets them anew.
ATTRIBUTES_MASK: Final = 0x7F

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_PREFIX: Final = struct.Struct(">qi")
_PLACE: Final = struct.Struct(">qii")
_CRC: Final = struct.Struct(">I")
_ATTRIBUTES: Final = struct.Struct(">h")
_TIMESTAMP: Final = struct.Struct(">q")

Buffer = bytes | bytearray | memoryview


class Header:
    """The 61 bytes in front of a batch's records. A value: a change makes another one.

    A plain class, no named tuple: compiled code makes and reads it in a tenth of the time.
    """

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "crc",
        "last_offset_delta",
        "leader_epoch",
        "length",
        "magic",
        "max_timestamp",
        "producer_epoch",
        "producer_id",
        "record_count",
    )

    def __init__(  # noqa: PLR0913, PLR0917 - the fields of the format, in its order
        self,
        base_offset: int,
        length: int,
        leader_epoch: int,
        magic: int,
        crc: int,
        attributes: int,
        last_offset_delta: int,
        base_timestamp: int,
        max_timestamp: int,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        record_count: int,
    ) -> None:
        self.base_offset = base_offset
        self.length = length
        self.leader_epoch = leader_epoch
        self.magic = magic
        self.crc = crc
        self.attributes = attributes
        self.last_offset_delta = last_offset_delta
        self.base_timestamp = base_timestamp
        self.max_timestamp = max_timestamp
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.record_count = record_count

    def fields(self) -> dict[str, int]:
        """Return all fields by name, in the order of the format."""
        return {
            "base_offset": self.base_offset,
            "length": self.length,
            "leader_epoch": self.leader_epoch,
            "magic": self.magic,
            "crc": self.crc,
            "attributes": self.attributes,
            "last_offset_delta": self.last_offset_delta,
            "base_timestamp": self.base_timestamp,
            "max_timestamp": self.max_timestamp,
            "producer_id": self.producer_id,
            "producer_epoch": self.producer_epoch,
            "base_sequence": self.base_sequence,
            "record_count": self.record_count,
        }

    def changed(self, **fields: int) -> "Header":
        """Return the header with other values in some fields."""
        return Header(**{**self.fields(), **fields})

    def __eq__(self, other: object) -> bool:
        """Compare all fields."""
        return isinstance(other, Header) and self.fields() == other.fields()

    def __repr__(self) -> str:
        """Show all fields."""
        return f"Header({', '.join(f'{name}={value}' for name, value in self.fields().items())})"

    @property
    def size_bytes(self) -> int:
        """The whole batch, header included."""
        return self.length + PREFIX_SIZE

    @property
    def last_offset(self) -> int:
        """The offset of the last record (also when compaction removed it)."""
        return self.base_offset + self.last_offset_delta

    @property
    def codec(self) -> int:
        """How the records are compressed: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
        return self.attributes & CODEC_MASK

    @property
    def is_transactional(self) -> bool:
        """Whether the batch is part of a transaction."""
        return bool(self.attributes & TRANSACTIONAL_FLAG)

    @property
    def is_control(self) -> bool:
        """Whether the batch holds a marker instead of data."""
        return bool(self.attributes & CONTROL_FLAG)

    @property
    def has_append_time(self) -> bool:
        """Whether every record's time is the broker's (max_timestamp) instead of its own."""
        return bool(self.attributes & TIMESTAMP_TYPE_FLAG)

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record; sequences wrap round at 2^31 - 1."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF


def read_header(buffer: Buffer, position: int = 0) -> Header:
    """Read the header at the position; the buffer must hold all 61 bytes."""
    # One by one: so compiled code calls the class without going through Python.
    found = _HEADER.unpack_from(buffer, position)
    return Header(
        found[0],
        found[1],
        found[2],
        found[3],
        found[4],
        found[5],
        found[6],
        found[7],
        found[8],
        found[9],
        found[10],
        found[11],
        found[12],
    )


def read_prefix(buffer: Buffer, position: int = 0) -> tuple[int, int]:
    """Return the base offset and the size in bytes of the batch at the position."""
    base_offset, length = _PREFIX.unpack_from(buffer, position)
    return base_offset, length + PREFIX_SIZE


def compute_crc(batch: Buffer) -> int:
    """Return the checksum of the batch, which the buffer must hold exactly."""
    # A view of a view takes as long to make as the checksum of a kilobyte.
    view = batch if isinstance(batch, memoryview) else memoryview(batch)
    return crc32c(view[CRC_FROM:])


def patch_place(batch: bytearray | memoryview, base_offset: int, leader_epoch: int) -> None:
    """Set where the batch, which the buffer holds exactly, stands in the log.

    The checksum does not cover these fields. The length between them is written again, as it is.
    """
    _PLACE.pack_into(batch, 0, base_offset, len(batch) - PREFIX_SIZE, leader_epoch)


def patch_max_timestamp(batch: bytearray | memoryview, attributes: int, max_timestamp: int) -> None:
    """Set whose time the records have and the newest of them, and make the checksum right."""
    _ATTRIBUTES.pack_into(batch, 21, attributes & ATTRIBUTES_MASK)
    _TIMESTAMP.pack_into(batch, 35, max_timestamp)
    _CRC.pack_into(batch, 17, compute_crc(batch))


def patch_append_time(batch: bytearray | memoryview, attributes: int, now_ms: int) -> None:
    """Make the broker's time the time of every record, and the checksum right again."""
    patch_max_timestamp(batch, attributes | TIMESTAMP_TYPE_FLAG, now_ms)


def write_header(batch: bytearray | memoryview, header: Header) -> None:
    """Write the header over the first 61 bytes, with the checksum of what follows."""
    _HEADER.pack_into(batch, 0, *header.fields().values())
    _CRC.pack_into(batch, 17, compute_crc(batch))
