# Compiled by mypyc.
"""Markers, the ends of transactions: one control record, alone in its batch.

    key   = version int16 | type int16
    value = version int16 | coordinator's epoch int32

A marker is always of the same size, and every transaction writes one into each of its partitions:
it is packed in one go, and what was packed like that is read the same way. The bytes are those that
`write_batch` makes of the record.
"""

from struct import Struct
from typing import Final

from crc32c import crc32c

from strom.records.batch import (
    CONTROL_FLAG,
    HEADER_SIZE,
    MAGIC,
    NO_SEQUENCE,
    PREFIX_SIZE,
    TRANSACTIONAL_FLAG,
    Buffer,
    Header,
)
from strom.records.control_key import KEY_VERSION, ControlType
from strom.records.record import Producer

_VALUE_VERSION: Final = 0

_START: Final = Struct(">qiibI")
#: What the checksum covers: the header from the attributes on, and the record.
_COVERED: Final = Struct(">hiqqqhiibbbbbhhbhib")
_RECORD: Final = Struct(">bbbbbhhbhib")
MARKER_BYTES: Final = HEADER_SIZE + _RECORD.size
_FLAGS: Final = CONTROL_FLAG | TRANSACTIONAL_FLAG
#: Lengths as records have them, zigzag-encoded: of the record, of its key and of its value.
_RECORD_LENGTH: Final = 32
_KEY_LENGTH: Final = 8
_VALUE_LENGTH: Final = 12

_OUTCOMES: Final = {int(each): each for each in (ControlType.ABORT, ControlType.COMMIT)}


def write_marker(
    outcome: ControlType,
    *,
    producer: Producer,
    coordinator_epoch: int,
    now_ms: int,
    offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    """Return the batch that ends a producer's transaction: outcome is COMMIT or ABORT."""
    covered = _COVERED.pack(
        _FLAGS,
        0,
        now_ms,
        now_ms,
        producer.id,
        producer.epoch,
        # A marker has no sequence number: it is not the producer who writes it.
        NO_SEQUENCE,
        1,
        _RECORD_LENGTH,
        0,
        0,
        0,
        _KEY_LENGTH,
        KEY_VERSION,
        outcome,
        _VALUE_LENGTH,
        _VALUE_VERSION,
        coordinator_epoch,
        0,
    )
    length = MARKER_BYTES - PREFIX_SIZE
    return bytearray(_START.pack(offset, length, leader_epoch, MAGIC, crc32c(covered)) + covered)


def read_packed(header: Header, batch: Buffer) -> tuple[ControlType, int] | None:
    """Return outcome and coordinator's epoch of a marker that was packed as here, or else None."""
    if len(batch) != MARKER_BYTES or header.attributes != _FLAGS or header.record_count != 1:
        return None
    found = _RECORD.unpack_from(batch, HEADER_SIZE)
    if found[:6] != (_RECORD_LENGTH, 0, 0, 0, _KEY_LENGTH, KEY_VERSION):
        return None
    outcome = _OUTCOMES.get(found[6])
    if outcome is None or found[7] != _VALUE_LENGTH or found[10] != 0:
        return None
    return outcome, found[9]
