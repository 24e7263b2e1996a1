# Compiled by mypyc.
"""Records: read out of a batch, and written into one.

    record = length varint | attributes int8 | timestamp delta varlong | offset delta varint
             | key length varint, key | value length varint, value
             | header count varint, (key length varint, key, value length varint, value) each

Varints are zigzag-encoded; a negative length is null. The deltas are from the batch's base
offset and base timestamp. Nothing on the way between socket and disk calls this: it is for what
looks inside (look-up by time, coordinators, the metadata log, tools). What needs no object per
record is in `walk`, which takes and refuses the same bytes.

Whatever bytes come in, reading ends with records or with a KafkaError.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from strom.records.batch import (
    CODEC_MASK,
    HEADER_SIZE,
    MAGIC,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    PREFIX_SIZE,
    Buffer,
    Header,
    read_header,
    write_header,
)
from strom.records.compression import DECOMPRESSED_BYTES_MAX, Codec, compress, decompress
from strom.records.plain_walk import add_int64
from strom.wire.errors import ErrorCode, KafkaError

Headers = tuple[tuple[str, bytes | None], ...]

_INT32_BITS: Final = 32
_INT64_BITS: Final = 64
_INT64_MAX: Final = 2**63 - 1


class Record(NamedTuple):
    """One key and value of a partition."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class Producer(NamedTuple):
    """Who wrote a batch, and which number its first record has among that producer's."""

    id: int = NO_PRODUCER_ID
    epoch: int = NO_PRODUCER_EPOCH
    base_sequence: int = NO_SEQUENCE


NO_PRODUCER: Final = Producer()


def read_batch(buffer: Buffer) -> Header:
    """Return the header of the batch at the start of the buffer, which must hold all of it."""
    if len(buffer) < HEADER_SIZE:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"A batch takes {HEADER_SIZE} bytes, here are {len(buffer)}"
        )
    header = read_header(buffer)
    if header.magic != MAGIC:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic {header.magic} in batch")
    if not HEADER_SIZE <= header.size_bytes <= len(buffer):
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"A batch claims {header.size_bytes} bytes, here are {len(buffer)}",
        )
    return header


def read_payload(
    batch: Buffer, header: Header, *, size_bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> bytes:
    """Return the batch's records as uncompressed bytes."""
    payload = memoryview(batch)[HEADER_SIZE : header.size_bytes]
    return decompress(header.attributes & CODEC_MASK, payload, size_bytes_max=size_bytes_max)


def read_records(
    batch: Buffer, *, size_bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> Iterator[Record]:
    """Yield the records of one batch, which the buffer must begin with."""
    header = read_batch(batch)
    if header.record_count < 0:
        raise _invalid(f"Found invalid record count {header.record_count} in magic v2 batch")
    payload = read_payload(batch, header, size_bytes_max=size_bytes_max)
    base_offset = header.base_offset
    base_timestamp = header.base_timestamp
    append_time = header.max_timestamp if header.has_append_time else None
    position = 0
    for _ in range(header.record_count):
        try:
            timestamp, offset, key, value, headers, position = _read_record(payload, position)
        except IndexError:
            raise _invalid("Incorrect declared batch size, premature EOF reached") from None
        timestamp = base_timestamp + timestamp if append_time is None else append_time
        if not -_INT64_MAX <= timestamp <= _INT64_MAX:
            timestamp = add_int64(timestamp, 0)
        yield Record(base_offset + offset, timestamp, key, value, headers)
    if position != len(payload):
        raise _invalid("Incorrect declared batch size, records still remaining in file")


def _read_record(
    payload: bytes, position: int
) -> tuple[int, int, bytes | None, bytes | None, Headers, int]:
    """Return timestamp and offset as deltas, key, value, headers, and where the record ends."""
    length, position = _read_varint(payload, position)
    end = position + length
    if length < 0 or end > len(payload):
        raise _invalid(f"Invalid record size {length}")
    # The attributes byte says nothing yet; it is stepped over.
    timestamp, position = _read_varint(payload, position + 1, _INT64_BITS)
    offset, position = _read_varint(payload, position)
    key, position = _read_bytes(payload, position, end)
    value, position = _read_bytes(payload, position, end)
    # Almost no record has headers, and then the byte that says so is the last one.
    if position + 1 == end and payload[position] == 0:
        return timestamp, offset, key, value, (), end
    headers, position = _read_headers(payload, position, end)
    if position != end:
        raise _invalid(f"Invalid record size: {length} bytes declared, {end - position} not read")
    return timestamp, offset, key, value, headers, end


def _read_headers(payload: bytes, position: int, end: int) -> tuple[Headers, int]:
    count, position = _read_varint(payload, position)
    # Each takes two bytes at least, so a count that lies costs nothing.
    if not 0 <= count <= (end - position) // 2:
        raise _invalid(f"Found invalid number of record headers {count}")
    headers = []
    for _ in range(count):
        key, position = _read_bytes(payload, position, end)
        if key is None:
            raise _invalid("Invalid negative header key size")
        value, position = _read_bytes(payload, position, end)
        # Java replaces what is not UTF-8 too; a strange header must not make a batch unreadable.
        headers.append((key.decode("utf-8", "replace"), value))
    return tuple(headers), position


def _read_bytes(payload: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    length = payload[position]
    if length == 1:
        return None, position + 1
    if length < 0x80 and not length & 1:
        # Shorter than 64 bytes, as most keys are.
        position += 1
        stop = position + (length >> 1)
    else:
        length, position = _read_varint(payload, position)
        if length < 0:
            # Null in more bytes than it needs, or as another number than usual.
            return None, position
        stop = position + length
    if stop > end:
        raise _invalid("A field does not fit into its record")
    return payload[position:stop], stop


def _read_varint(payload: bytes, position: int, bits: int = _INT32_BITS) -> tuple[int, int]:
    byte = payload[position]
    position += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position
    value = byte & 0x7F
    shift = 7
    while byte >= 0x80:
        if shift >= bits:
            raise _invalid("Varint is too long")
        byte = payload[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
    # Bits that are too many for the type are dropped, as in Kafka.
    value &= (1 << bits) - 1
    return (value >> 1) ^ -(value & 1), position


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, message)


def write_batch(
    records: Sequence[Record],
    *,
    codec: int = Codec.NONE,
    level: int | None = None,
    leader_epoch: int = -1,
    producer: Producer = NO_PRODUCER,
    flags: int = 0,
) -> bytearray:
    """Return the records as one batch that begins at the first one's offset.

    The flags are those of batch.py: TRANSACTIONAL_FLAG, CONTROL_FLAG, TIMESTAMP_TYPE_FLAG.
    """
    first, last = records[0], records[-1]
    payload = write_records(records, first.offset, first.timestamp_ms)
    header = Header(
        base_offset=first.offset,
        length=0,
        leader_epoch=leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=codec | flags,
        last_offset_delta=last.offset - first.offset,
        base_timestamp=first.timestamp_ms,
        max_timestamp=max(record.timestamp_ms for record in records),
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        base_sequence=producer.base_sequence,
        record_count=len(records),
    )
    return seal(header, compress(codec, payload, level) if codec else payload)


def seal(header: Header, payload: Buffer) -> bytearray:
    """Return header and payload (compressed as the header says) with length and checksum set."""
    batch = bytearray(HEADER_SIZE)
    batch += payload
    write_header(batch, header.changed(length=len(batch) - PREFIX_SIZE))
    return batch


def write_records(records: Iterable[Record], base_offset: int, base_timestamp: int) -> bytearray:
    """Return the records' bytes, uncompressed, with deltas from the two bases."""
    payload = bytearray()
    for record in records:
        body = bytearray(1)
        _write_varint(body, record.timestamp_ms - base_timestamp)
        _write_varint(body, record.offset - base_offset)
        _write_bytes(body, record.key)
        _write_bytes(body, record.value)
        _write_varint(body, len(record.headers))
        for key, value in record.headers:
            _write_bytes(body, key.encode())
            _write_bytes(body, value)
        _write_varint(payload, len(body))
        payload += body
    return payload


def _write_bytes(target: bytearray, data: bytes | None) -> None:
    if data is None:
        target.append(1)
    else:
        _write_varint(target, len(data))
        target += data


def _write_varint(target: bytearray, number: int) -> None:
    value = (number << 1) ^ (number >> 63)
    while value > 0x7F:
        target.append((value & 0x7F) | 0x80)
        value >>= 7
    target.append(value)
