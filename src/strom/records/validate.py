# Compiled by mypyc.
"""What a broker refuses to append from a client, with Kafka's codes and words.

A batch is judged by its 61 bytes, its checksum, and one walk over its records (`walk`), which
tells what they have in common without an object for each. Objects are made only to say in a
refusal which records are meant. The newest time of the records becomes the header's.

`check_batch` does all of it. Records that take long to decompress are told by `is_heavy`: who
serves an event loop has a thread look at them first (`inspect_batch`) and hands over what it
found.

Where Apache Kafka stumbles over a batch (UNKNOWN_SERVER_ERROR), or takes one that its own consumers
cannot read, the answer here is INVALID_RECORD; no client tries either of them again.
"""

from typing import Final, NamedTuple, NoReturn

from strom.records.batch import (
    CODEC_AT,
    CODEC_MASK,
    CONTROL_FLAG,
    HEADER_SIZE,
    MAGIC,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    PREFIX_SIZE,
    TIMESTAMP_TYPE_FLAG,
    Buffer,
    Header,
    compute_crc,
    patch_append_time,
    patch_max_timestamp,
    read_header,
    read_prefix,
)
from strom.records.compression import CODEC_NAMES, DECOMPRESSED_BYTES_MAX, Codec, compress
from strom.records.expansion import bytes_max
from strom.records.record import (
    Record,
    read_batch,
    read_payload,
    read_records,
    seal,
    write_records,
)
from strom.records.walk import NO_RECORD, Facts, Fault, inspect_batch, walk
from strom.wire.errors import ErrorCode, KafkaError

#: `message.timestamp.before.max.ms` of a topic that takes records of any age.
UNLIMITED_MS: Final = 2**63 - 1
#: The first version of Produce whose clients may send zstd (KIP-110).
ZSTD_PRODUCE_VERSION: Final = 7
#: What a loop can decompress and walk over in about a millisecond.
LIGHT_BYTES_MAX: Final[dict[int, int]] = {
    Codec.GZIP: 256 * 1024,
    Codec.SNAPPY: 1024 * 1024,
    Codec.LZ4: 2 * 1024 * 1024,
    Codec.ZSTD: 1024 * 1024,
}
#: So many are named at most: each takes a hundred bytes of the answer.
RECORD_ERRORS_MAX: Final = 10_000
#: The record errors that the message of a refusal repeats.
_ERRORS_SHOWN_MAX: Final = 3
#: Where the magic stands in all three message formats, and what must be there to see it.
_MAGIC_AT: Final = 16
_PEEK_BYTES: Final = 17
#: The smallest message of the oldest format; a length below it is a lie in any format.
_LENGTH_MIN: Final = 14

_FAULT_WORDS: Final[dict[int, str]] = {
    Fault.ENDS_EARLY: "Incorrect declared batch size, premature EOF reached",
    Fault.LENGTH: "Invalid record size, beyond the end of the batch",
    Fault.NUMBER: "Found invalid record structure, a number is too long",
    Fault.FIELD: "Found invalid record structure, a field ends behind its record",
    Fault.HEADER_COUNT: "Found invalid number of record headers",
    Fault.HEADER_KEY: "Invalid negative header key size",
    Fault.RECORD_REST: "Invalid record size, beyond the end of the fields",
    Fault.REST: "Incorrect declared batch size, records still remaining in file",
    Fault.UNREADABLE: "Failed to decompress record stream",
}

#: Looked up once: of an enumeration that takes as long as all else about a header.
_ZSTD: Final = int(Codec.ZSTD)

RecordErrors = tuple[tuple[int, str | None], ...]
WritableBuffer = bytearray | memoryview


class InvalidRecords(KafkaError):  # noqa: N818 - a refusal, as KafkaError's others
    """A batch refused because of some of its records: (index in the batch, why) each.

    Also one that none can be found in: of these refusals alone Kafka tells the words.
    """

    def __init__(self, code: ErrorCode, message: str, record_errors: RecordErrors) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors


class Limits(NamedTuple):
    """What the topic's settings say about batches; made once per change of the settings."""

    #: As in messages: "<topic>-<index>".
    partition: str
    batch_bytes_max: int = 1024 * 1024 + PREFIX_SIZE
    is_compacted: bool = False
    has_append_time: bool = False
    timestamp_before_max_ms: int = UNLIMITED_MS
    timestamp_after_max_ms: int = 60 * 60 * 1000


def check_field(records: Buffer | None, produce_version: int = ZSTD_PRODUCE_VERSION) -> Header:
    """Return the header of the one batch that a partition's field in Produce must hold.

    The batch is the field's first `header.size_bytes`: behind it may stand bytes that make no
    whole batch, which Kafka cuts off too.
    """
    if records is None or len(records) < HEADER_SIZE:
        _refuse_short(b"" if records is None else records, produce_version)
    header = read_header(records)
    size = header.length + PREFIX_SIZE
    if header.magic != MAGIC or size != len(records):
        _check_shape(records, header, produce_version)
    if header.attributes & CODEC_MASK == _ZSTD and produce_version < ZSTD_PRODUCE_VERSION:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"Produce requests with version {produce_version} are not allowed to use "
            f"{CODEC_NAMES[Codec.ZSTD]} compression",
        )
    return header


def _refuse_short(records: Buffer, produce_version: int) -> NoReturn:
    if len(records) >= _PEEK_BYTES:
        _check_start(records, 0, produce_version)
    raise _no_batch(produce_version)


def _check_shape(records: Buffer, header: Header, produce_version: int) -> None:
    """Refuse a field that is not one batch of our format and at most a few bytes more."""
    _check_start(records, 0, produce_version)
    size = header.size_bytes
    if size > len(records):
        raise _no_batch(produce_version)
    if size < HEADER_SIZE:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record batch is corrupted (the size {size} is smaller than the minimum allowed "
            f"overhead {HEADER_SIZE})",
        )
    rest = len(records) - size
    if rest < _PEEK_BYTES:
        return
    _check_start(records, size, produce_version)
    if read_prefix(records, size)[1] <= rest:
        raise _invalid(
            f"Produce requests with version {produce_version} are only allowed to contain "
            "exactly one record batch per partition"
        )


def _check_start(records: Buffer, position: int, produce_version: int) -> None:
    """Refuse a length that no format has, and every format but ours."""
    length = read_prefix(records, position)[1] - PREFIX_SIZE
    if length < _LENGTH_MIN:
        raise InvalidRecords(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record size {length} is less than the minimum record overhead ({_LENGTH_MIN})",
            (),
        )
    magic = int.from_bytes(records[position + _MAGIC_AT : position + _PEEK_BYTES], signed=True)
    if magic == MAGIC:
        return
    if 0 <= magic < MAGIC:
        raise _invalid(
            f"Produce requests with version {produce_version} are only allowed to contain "
            f"record batches with magic version {MAGIC}"
        )
    raise InvalidRecords(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {magic}", ())


def _no_batch(produce_version: int) -> KafkaError:
    return _invalid(
        f"Produce requests with version {produce_version} must have exactly one record batch "
        "per partition"
    )


def is_heavy(batch: Buffer) -> bool:
    """Whether looking at the records could hold up an event loop: then `inspect_batch` first."""
    codec = batch[CODEC_AT] & CODEC_MASK
    limit = LIGHT_BYTES_MAX.get(codec)
    if limit is None:
        return False
    return bytes_max(codec, memoryview(batch)[HEADER_SIZE:]) > limit


def check_batch(
    header: Header,
    batch: WritableBuffer,
    limits: Limits,
    now_ms: int,
    facts: Facts | None = None,
) -> Header:
    """Refuse what Kafka refuses from a client; return the header of what may be appended.

    The buffer holds exactly the batch of the header. Where the topic wants the broker's time, or
    the header has a wrong one, it is set in place, and the header returned says so. The facts
    are what `inspect_batch` has found in this batch, for who had it look already.
    """
    # At once, not one by one: of a named tuple that is what is quick.
    _, batch_bytes_max, is_compacted, has_append_time, before_max_ms, after_max_ms = limits
    if header.length + PREFIX_SIZE > batch_bytes_max:
        check_size(header.size_bytes, limits)
    if header.crc != compute_crc(batch):
        raise _corrupt(header, batch, f"topic partition {limits.partition}")
    attributes = header.attributes
    count = header.record_count
    if (
        count <= 0
        or count != header.last_offset_delta + 1
        or header.base_offset != 0
        or attributes & CONTROL_FLAG
        or attributes & CODEC_MASK > _ZSTD
        or (header.base_sequence < 0 and header.producer_id > NO_PRODUCER_ID)
    ):
        _refuse(header, limits)
    if facts is None:
        facts = inspect_batch(header, batch)
    fault, _, _, oldest_ms, newest_ms, keyless, is_in_sequence = facts
    if fault or not is_in_sequence:
        _check_structure(header, facts, limits)
    if (
        newest_ms != header.max_timestamp
        or attributes & TIMESTAMP_TYPE_FLAG
        or has_append_time
        or (is_compacted and keyless != NO_RECORD)
        or newest_ms - now_ms > after_max_ms
        or now_ms - oldest_ms > before_max_ms
    ):
        return _check_values(header, batch, facts, limits, now_ms)
    return header


def _corrupt(header: Header, batch: Buffer, where: str) -> KafkaError:
    return KafkaError(
        ErrorCode.CORRUPT_MESSAGE,
        f"Record is corrupt (stored crc = {header.crc}, computed crc = {compute_crc(batch)}) "
        f"in {where}.",
    )


def check_size(size_bytes: int, limits: Limits) -> None:
    """Refuse a batch over the topic's limit; recompression may bring one there."""
    if size_bytes > limits.batch_bytes_max:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The record batch size in the append to {limits.partition} is {size_bytes} "
            f"bytes which exceeds the maximum configured value of {limits.batch_bytes_max}.",
        )


def _refuse(header: Header, limits: Limits) -> NoReturn:
    """Say which mark of the header is wrong, in Kafka's order."""
    where = f"in topic partition {limits.partition}."
    span = f"[{header.base_offset}, {header.last_offset}]"
    if header.base_offset != 0:
        raise _invalid(
            f"The baseOffset of the record batch in the append to {limits.partition} should "
            f"be 0, but it is {header.base_offset}"
        )
    if header.attributes & CODEC_MASK > Codec.ZSTD:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"Unknown compression type id: {header.codec}",
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
    raise _invalid(
        f"Invalid sequence number {header.base_sequence} in record batch with producerId "
        f"{header.producer_id} {where}"
    )


def _check_structure(header: Header, facts: Facts, limits: Limits) -> None:
    """Refuse records that cannot be read, or not by the offsets that they are given.

    Uncompressed records may count their offsets as they like: Kafka does not look at them.
    """
    if facts.fault == Fault.NONE:
        if header.codec:
            raise _invalid(
                f"The offsets of the records are not in sequence in topic partition "
                f"{limits.partition}."
            )
        return
    raise _invalid(
        f"{_FAULT_WORDS[facts.fault]}: record {facts.record_count}, at byte {facts.position} of "
        f"the records, in topic partition {limits.partition}."
    )


def _check_values(
    header: Header, batch: WritableBuffer, facts: Facts, limits: Limits, now_ms: int
) -> Header:
    """Refuse records whose keys or times the topic does not take; set the time of the batch."""
    has_late_or_early = (
        facts.newest_ms - now_ms > limits.timestamp_after_max_ms
        or now_ms - facts.oldest_ms > limits.timestamp_before_max_ms
    )
    if (
        header.has_append_time
        or (limits.is_compacted and facts.keyless != NO_RECORD)
        or (has_late_or_early and not limits.has_append_time)
    ):
        _check_records(header, batch, limits, now_ms)
    if limits.has_append_time:
        patch_append_time(batch, header.attributes, now_ms)
        return read_header(batch)
    newest_ms = header.max_timestamp if header.has_append_time else facts.newest_ms
    if newest_ms == header.max_timestamp and not header.has_append_time:
        return header
    patch_max_timestamp(batch, header.attributes & ~TIMESTAMP_TYPE_FLAG, newest_ms)
    return read_header(batch)


def _check_records(header: Header, batch: Buffer, limits: Limits, now_ms: int) -> None:
    """Name the records that the topic does not take."""
    errors: list[tuple[int, str | None]] = []
    code = ErrorCode.INVALID_RECORD
    for index, record in enumerate(read_records(batch, size_bytes_max=DECOMPRESSED_BYTES_MAX)):
        if limits.is_compacted and record.key is None:
            errors.append((index, _without_key(limits)))
            continue
        complaint = _complain_of_time(header, record, limits, now_ms)
        if complaint is not None:
            code = ErrorCode.INVALID_TIMESTAMP
            errors.append((index, complaint))
    if errors:
        raise _rejected(code, tuple(errors))


def _without_key(limits: Limits) -> str:
    return (
        f"Compacted topic cannot accept message without key in topic partition {limits.partition}"
    )


def _complain_of_time(header: Header, record: Record, limits: Limits, now_ms: int) -> str | None:
    timestamp = record.timestamp_ms
    if limits.has_append_time or timestamp == NO_TIMESTAMP:
        return _claimed_append_time(header, record) if header.has_append_time else None
    age_ms = now_ms - timestamp
    if age_ms <= limits.timestamp_before_max_ms and -age_ms <= limits.timestamp_after_max_ms:
        return None
    return (
        f"Timestamp {timestamp} of message with offset {record.offset} is out of range. "
        f"The timestamp should be within [{now_ms - limits.timestamp_before_max_ms}, "
        f"{now_ms + limits.timestamp_after_max_ms}]"
    )


def _claimed_append_time(header: Header, record: Record) -> str:
    # Kafka shows its class, of which there is another one for compressed batches.
    kind = "PartialDefaultRecord" if header.codec else "DefaultRecord"
    key_size = 0 if record.key is None else len(record.key)
    value_size = 0 if record.value is None else len(record.value)
    return (
        f"Invalid timestamp type in message {kind}(offset={record.offset}, "
        f"timestamp={record.timestamp_ms}, key={key_size} bytes, value={value_size} bytes). "
        "Producer should not set timestamp type to LogAppendTime."
    )


def _rejected(code: ErrorCode, errors: RecordErrors) -> InvalidRecords:
    if code == ErrorCode.INVALID_TIMESTAMP:
        message = "One or more records have been rejected due to invalid timestamp"
    else:
        shown = ", ".join(
            f"RecordError(batchIndex={index}, message='{why}')"
            for index, why in errors[:_ERRORS_SHOWN_MAX]
        )
        message = (
            f"One or more records have been rejected due to {len(errors)} record errors in "
            f"total, and only showing the first three errors at most: [{shown}]"
        )
    return InvalidRecords(code, message, errors[:RECORD_ERRORS_MAX])


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

    Its checksum is checked here, for the new one would fit whatever came in. The new size is to
    be checked against the topic's limit. Records that are not in sequence are put so: Kafka, too,
    takes the occasion.
    """
    header = read_batch(batch)
    whole = memoryview(batch)[: header.size_bytes]
    if header.crc != compute_crc(whole):
        raise _corrupt(header, whole, "a batch to be recompressed")
    try:
        payload: Buffer = read_payload(whole, header, size_bytes_max=size_bytes_max)
    except KafkaError as error:
        raise _invalid(error.message or "") from None
    facts = walk(payload, 0, len(payload), header.record_count, header.base_timestamp)
    if not facts.fault and not facts.is_in_sequence:
        payload = _in_sequence(whole, header)
    attributes = (header.attributes & ~CODEC_MASK) | codec
    return seal(header.changed(attributes=attributes), compress(codec, payload, level))


def _in_sequence(batch: Buffer, header: Header) -> Buffer:
    """Return the records, uncompressed, with the offsets that their order gives them."""
    base_offset = header.base_offset
    records = [
        record._replace(offset=base_offset + index)
        for index, record in enumerate(read_records(batch))
    ]
    return write_records(records, base_offset, header.base_timestamp)
