"""Records in and out of batches: round trips, and bytes that lie."""

import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strom.records.batch import (
    CONTROL_FLAG,
    TIMESTAMP_TYPE_FLAG,
    TRANSACTIONAL_FLAG,
    compute_crc,
    read_header,
)
from strom.records.compression import Codec, compress
from strom.records.record import Record, read_batch, read_payload, read_records, seal, write_batch
from strom.wire.errors import ErrorCode, KafkaError
from tests.records.strategies import PRODUCERS, record_lists

REFUSALS = {ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD}
FLAGS = st.sampled_from([0, TRANSACTIONAL_FLAG, CONTROL_FLAG, TRANSACTIONAL_FLAG | CONTROL_FLAG])
SAMPLE = [
    Record(0, 1000, b"rocket", b"altitude", (("unit", b"m"), ("none", None))),
    Record(1, 990, None, b"x" * 200),
    Record(2, 1010, b"gone", None),
]


@pytest.mark.slow
@given(
    records=record_lists(),
    codec=st.sampled_from(Codec),
    flags=FLAGS,
    producer=PRODUCERS,
    leader_epoch=st.integers(-1, 2**31 - 1),
)
def test_what_was_written_is_read(records, codec, flags, producer, leader_epoch):
    batch = write_batch(
        records, codec=codec, flags=flags, producer=producer, leader_epoch=leader_epoch
    )
    assert list(read_records(batch)) == records
    header = read_batch(batch)
    assert header.crc == compute_crc(batch)
    assert header.attributes == codec | flags
    assert header.max_timestamp == max(record.timestamp_ms for record in records)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == producer


@pytest.mark.slow
@given(records=record_lists())
def test_append_time_hides_the_records_own(records):
    batch = write_batch(records, flags=TIMESTAMP_TYPE_FLAG)
    newest = max(record.timestamp_ms for record in records)
    assert {record.timestamp_ms for record in read_records(batch)} == {newest}


@pytest.mark.slow
@given(records=record_lists())
def test_bytes_behind_the_batch_are_not_its_own(records):
    batch = write_batch(records)
    assert list(read_records(bytes(batch) + b"more")) == records


def refusal(batch):
    """The error that reading the batch gives, or None."""
    try:
        list(read_records(batch, size_bytes_max=100_000))
    except KafkaError as error:
        assert error.code in REFUSALS | {ErrorCode.UNSUPPORTED_COMPRESSION_TYPE}
        return error
    return None


@pytest.mark.parametrize("codec", Codec)
def test_batch_cut_at_any_byte_is_refused(codec):
    batch = bytes(write_batch(SAMPLE, codec=codec))
    for size in range(len(batch)):
        assert refusal(batch[:size]) is not None


@pytest.mark.parametrize("codec", Codec)
def test_records_cut_at_any_byte_are_refused(codec):
    """As above, but the header agrees with what is left."""
    header = read_header(write_batch(SAMPLE, codec=codec))
    payload = read_payload(write_batch(SAMPLE), read_header(write_batch(SAMPLE)))
    for size in range(len(payload)):
        assert refusal(seal(header, compress(codec, payload[:size]))) is not None


def test_flipped_bytes_give_records_or_a_refusal():
    rng = random.Random(3)
    for codec in Codec:
        batch = write_batch(SAMPLE, codec=codec)
        for _ in range(600):
            broken = bytearray(batch)
            for _ in range(rng.randint(1, 4)):
                broken[rng.randrange(len(broken))] = rng.randrange(256)
            refusal(broken)


@given(payload=st.binary(max_size=120), count=st.integers(-(2**31), 2**31 - 1))
def test_noise_as_records_is_read_or_refused(payload, count):
    header = read_header(write_batch(SAMPLE)).changed(record_count=count)
    refusal(seal(header, payload))


@pytest.mark.parametrize(
    ("at", "byte"),
    [
        (0, 0),  # record length 0
        (0, 1),  # record length -1
        (0, 3),  # record length -2
        (0, 100),  # longer than the batch
        (0, 255),  # a varint that goes on
        (4, 3),  # key length -2
        (4, 100),  # key longer than its record
        (6, 5),  # value length -3
        (12, 1),  # header count -1
        (12, 18),  # nine headers in no bytes
    ],
)
def test_length_that_lies_is_an_invalid_record(at, byte):
    """Apache Kafka 4.3.1 answered INVALID_RECORD for each of these."""
    batch = write_batch([Record(index, 1000, b"k", b"vvvvv") for index in range(3)])
    batch[61 + at] = byte
    error = refusal(seal(read_header(batch), batch[61:]))
    assert error.code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"record_count": 2}, "records still remaining"),
        ({"record_count": 4}, "premature EOF"),
        ({"record_count": -1}, "invalid record count -1"),
    ],
)
def test_count_that_lies_is_an_invalid_record(change, message):
    batch = write_batch(SAMPLE)
    error = refusal(seal(read_header(batch).changed(**change), batch[61:]))
    assert error.code == ErrorCode.INVALID_RECORD
    assert message in error.message


def test_count_that_lies_reserves_no_memory():
    batch = write_batch(SAMPLE)
    assert refusal(seal(read_header(batch).changed(record_count=2**31 - 1), batch[61:]))


def test_other_formats_are_not_read():
    for magic in (0, 1, 3, 255):
        batch = write_batch(SAMPLE)
        batch[16] = magic
        assert refusal(batch).code == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 48, 2**31 - 1])
def test_batch_length_that_lies_is_corrupt(length):
    batch = write_batch(SAMPLE)
    struct.pack_into(">i", batch, 8, length)
    assert refusal(batch).code == ErrorCode.CORRUPT_MESSAGE


def test_header_without_a_key_is_invalid():
    batch = write_batch([Record(0, 0, b"k", b"v", (("h", b"x"),))])
    batch[batch.index(b"h") - 1] = 1
    assert refusal(seal(read_header(batch), batch[61:])).code == ErrorCode.INVALID_RECORD


def test_header_key_that_is_no_text_is_read_all_the_same():
    batch = write_batch([Record(0, 0, b"k", b"v", (("h", b"x"),))])
    batch[batch.index(b"h")] = 0xFF
    (record,) = read_records(seal(read_header(batch), batch[61:]))
    assert record.headers == (("\N{REPLACEMENT CHARACTER}", b"x"),)


def test_offset_delta_beyond_its_type_is_invalid():
    batch = write_batch(SAMPLE[:1])
    record = bytes([0, 0]) + b"\xfe\xff\xff\xff\xff\x7f" + bytes([1, 1, 0])
    payload = bytes([2 * len(record)]) + record
    error = refusal(seal(read_header(batch), payload))
    assert "too long" in error.message


def test_time_beyond_its_type_begins_again_below_zero():
    """As in Java, and as Apache Kafka 4.3.1 took and gave it."""
    batch = write_batch([Record(0, 0, None, None), Record(1, 2**62, None, None)])
    header = read_header(batch).changed(base_timestamp=2**63 - 1)
    first, second = read_records(seal(header, batch[61:]))
    assert (first.timestamp_ms, second.timestamp_ms) == (2**63 - 1, 2**62 - 1 - 2**63)


def test_every_negative_length_is_null():
    """Apache Kafka 4.3.1 took it."""
    header = read_header(write_batch(SAMPLE[:1]))
    record = bytes([0, 0, 0, 3, 5, 0])
    (read,) = read_records(seal(header, bytes([2 * len(record)]) + record))
    assert (read.key, read.value) == (None, None)


def test_endless_varint_is_invalid():
    header = read_header(write_batch(SAMPLE))
    assert "too long" in refusal(seal(header, b"\xff" * 40)).message


def test_null_may_be_written_in_more_bytes_than_it_needs():
    header = read_header(write_batch(SAMPLE[:1]))
    record = bytes([0, 0, 0, 0x81, 0x00, 1, 0])
    (read,) = read_records(seal(header, bytes([2 * len(record)]) + record))
    assert (read.key, read.value) == (None, None)
