"""What a broker refuses to append from a client, in Kafka's words.

A good batch is judged by its 61 bytes and its checksum. Records are looked at in three cases
only: the topic is compacted (each needs a key), the topic limits how old a record may be (the
header holds the newest time but not the oldest), or the header says that some record is too
new (then the answer names which).
"""

from typing import NamedTuple

from strom.records.batch import (
    CODEC_MASK,
    CONTROL_FLAG,
    HEADER_SIZE,
    MAGIC,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_FLAG,
    Buffer,
    Header,
    compute_crc,
    read_header,
)
from strom.records.compression import DECOMPRESSED_BYTES_MAX, Codec, compress
from strom.records.record import Record, read_payload, read_records, seal
from strom.wire.errors import ErrorCode, KafkaError

#: `message.timestamp.before.max.ms` of a topic that takes records of any age.
UNLIMITED_MS = 2**63 - 1
#: The first version of Produce whose clients may send zstd (KIP-110).
ZSTD_PRODUCE_VERSION = 7
#: The record errors that the message of a refusal repeats.
_ERRORS_SHOWN_MAX = 3


class InvalidRecords(KafkaError):  # noqa: N818 - a refusal, as KafkaError's others
    """A batch refused because of some of its records: (index in the batch, why) each."""

    def __init__(
        self, code: ErrorCode, message: str, record_errors: tuple[tuple[int, str | None], ...]
    ) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors


class Limits(NamedTuple):
    """What the topic's settings say about batches; made once per change of the settings."""

    #: As in messages: "<topic>-<index>".
    partition: str
    batch_bytes_max: int = 1024 * 1024 + 12
    is_compacted: bool = False
    has_append_time: bool = False
    timestamp_before_max_ms: int = UNLIMITED_MS
    timestamp_after_max_ms: int = 60 * 60 * 1000


def check_field(records: Buffer | None, produce_version: int, partition: str) -> Header:
    """Return the header of the one batch that a partition's field in Produce must hold."""
    if records is None or len(records) < HEADER_SIZE:
        return _refuse_short(records, produce_version)
    header = read_header(records)
    if header.magic != MAGIC:
        raise _wrong_magic(header.magic, produce_version)
    if header.length + 12 != len(records):
        return _refuse_length(header, records, produce_version)
    if header.attributes & CODEC_MASK == Codec.ZSTD and produce_version < ZSTD_PRODUCE_VERSION:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"Produce requests with version {produce_version} are not allowed to use "
            "ZStandard compression",
        )
    return header


def _refuse_short(records: Buffer | None, produce_version: int) -> Header:
    raise KafkaError(
        ErrorCode.INVALID_RECORD,
        f"Produce requests with version {produce_version} must have at least one record batch "
        "per partition",
    )


def _wrong_magic(magic: int, produce_version: int) -> KafkaError:
    if 0 <= magic < MAGIC:
        return KafkaError(
            ErrorCode.INVALID_RECORD,
            f"Produce requests with version {produce_version} are only allowed to contain "
            "record batches with magic version 2",
        )
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {magic}")


def _refuse_length(header: Header, records: Buffer, produce_version: int) -> Header:
    if header.size_bytes < len(records):
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"Produce requests with version {produce_version} are only allowed to contain "
            "exactly one record batch per partition",
        )
    return _refuse_short(records, produce_version)


def check_batch(header: Header, batch: Buffer, limits: Limits, now_ms: int) -> None:
    """Refuse what Kafka refuses from a client; the batch is exactly the one of the header."""
    if header.length + 12 > limits.batch_bytes_max:
        raise _too_large(header, limits)
    if header.crc != compute_crc(batch):
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record is corrupt (stored crc = {header.crc}) in topic partition {limits.partition}.",
        )
    count = header.record_count
    if (
        count <= 0
        or count != header.last_offset_delta + 1
        or header.base_offset != 0
        or header.attributes & (CONTROL_FLAG | TIMESTAMP_TYPE_FLAG)
        or header.producer_id != NO_PRODUCER_ID
        or header.attributes & CODEC_MASK > Codec.ZSTD
    ):
        _check_closely(header, limits)
    if not limits.has_append_time:
        if (
            limits.timestamp_before_max_ms != UNLIMITED_MS
            or header.max_timestamp - now_ms > limits.timestamp_after_max_ms
            or limits.is_compacted
        ):
            _check_records(batch, limits, now_ms)
    elif limits.is_compacted:
        _check_records(batch, limits, now_ms)


def _too_large(header: Header, limits: Limits) -> KafkaError:
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"The record batch size in the append to {limits.partition} is {header.size_bytes} "
        f"bytes which exceeds the maximum configured value of {limits.batch_bytes_max}.",
    )


def _check_closely(header: Header, limits: Limits) -> None:
    """Find which of the rare marks of a header is wrong, in Kafka's order; maybe none is."""
    where = f"in topic partition {limits.partition}"
    span = f"[{header.base_offset}, {header.last_offset}]"
    if header.base_offset != 0:
        raise _invalid(
            f"The baseOffset of the record batch in the append to {limits.partition} should "
            f"be 0, but it is {header.base_offset}"
        )
    if header.last_offset_delta < 0:
        raise _invalid(f"Batch has an invalid offset range: {span} {where}")
    if header.record_count <= 0:
        raise _invalid(f"Invalid reported count for record batch: {header.record_count} {where}")
    if header.record_count != header.last_offset_delta + 1:
        raise _invalid(
            f"Inconsistent batch offset range {span} and count of records "
            f"{header.record_count} {where}"
        )
    if header.is_control:
        raise _invalid(f"Clients are not allowed to write control records {where}")
    if header.producer_id != NO_PRODUCER_ID and header.base_sequence < 0:
        raise _invalid(
            f"Invalid sequence number {header.base_sequence} in record batch with producerId "
            f"{header.producer_id} {where}"
        )


def _check_records(batch: Buffer, limits: Limits, now_ms: int) -> None:
    errors: list[tuple[int, str | None]] = []
    code = ErrorCode.INVALID_RECORD
    for index, record in enumerate(read_records(batch, size_bytes_max=DECOMPRESSED_BYTES_MAX)):
        if limits.is_compacted and record.key is None:
            errors.append(
                (
                    index,
                    "Compacted topic cannot accept message without key in topic partition "
                    f"{limits.partition}.",
                )
            )
        elif not limits.has_append_time and _is_out_of_range(record, limits, now_ms):
            code = ErrorCode.INVALID_TIMESTAMP
            errors.append((index, _out_of_range(record, limits, now_ms)))
    if errors:
        raise _rejected(code, tuple(errors))


def _is_out_of_range(record: Record, limits: Limits, now_ms: int) -> bool:
    if record.timestamp_ms == NO_TIMESTAMP:
        return False
    age_ms = now_ms - record.timestamp_ms
    return age_ms > limits.timestamp_before_max_ms or -age_ms > limits.timestamp_after_max_ms


def _out_of_range(record: Record, limits: Limits, now_ms: int) -> str:
    return (
        f"Timestamp {record.timestamp_ms} of message with offset {record.offset} is out of range. "
        f"The timestamp should be within [{now_ms - limits.timestamp_before_max_ms}, "
        f"{now_ms + limits.timestamp_after_max_ms}]"
    )


def _rejected(code: ErrorCode, errors: tuple[tuple[int, str | None], ...]) -> InvalidRecords:
    if code == ErrorCode.INVALID_TIMESTAMP:
        message = "One or more records have been rejected due to invalid timestamp"
    else:
        shown = ", ".join(
            f"RecordError(batchIndex={index}, message={why})"
            for index, why in errors[:_ERRORS_SHOWN_MAX]
        )
        message = (
            f"One or more records have been rejected due to {len(errors)} record errors in "
            f"total, and only showing the first three errors at most: [{shown}]"
        )
    return InvalidRecords(code, message, errors)


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, message)


def recompress(
    batch: Buffer,
    codec: int,
    level: int | None = None,
    *,
    size_bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> bytearray:
    """Return the batch with its records compressed anew; all else stays as it is.

    The caller has checked the batch; it must check the new size against the topic's limit.
    """
    header = read_header(batch)
    payload = read_payload(batch, header, size_bytes_max=size_bytes_max)
    attributes = (header.attributes & ~CODEC_MASK) | codec
    return seal(header._replace(attributes=attributes), compress(codec, payload, level))
