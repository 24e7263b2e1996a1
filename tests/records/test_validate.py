"""What is refused from clients: a table of what Apache Kafka 4.3.1 answered.

Each row was sent to it in a Produce request (version 9 where none is told); where this broker
answers otherwise, the row says what Kafka does and why.
"""

import json
import random
import struct
import zlib
from pathlib import Path

import cramjam
import pytest
from hypothesis import given

from strom.records.batch import (
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    TIMESTAMP_TYPE_FLAG,
    TRANSACTIONAL_FLAG,
    compute_crc,
    read_header,
)
from strom.records.compression import Codec
from strom.records.record import Record, read_records, seal, write_batch
from strom.records.validate import (
    InvalidRecords,
    Limits,
    check_batch,
    check_field,
    check_size,
    is_heavy,
    recompress,
)
from strom.records.walk import UNREADABLE, Fault, inspect_batch
from strom.wire.errors import ErrorCode, KafkaError
from tests.records.faults import BATCHES, OVERLOOKED, POISON
from tests.records.strategies import record_lists

ANSWERS = Path(__file__).parents[1] / "conformance" / "answers" / "records.json"

NOW = 1_794_800_000_000
HOUR = 3_600_000
LIMITS = Limits("bad-0")
COMPACTED = Limits("bad-compact-0", is_compacted=True)
APPEND_TIME = Limits("bad-append-0", has_append_time=True)
NOT_OLD = Limits("bad-before-0", timestamp_before_max_ms=1000)
SMALL = Limits("bad-small-0", batch_bytes_max=100)

NONE = ErrorCode.NONE
CORRUPT = ErrorCode.CORRUPT_MESSAGE
INVALID = ErrorCode.INVALID_RECORD
TIMESTAMP = ErrorCode.INVALID_TIMESTAMP
TOO_LARGE = ErrorCode.MESSAGE_TOO_LARGE
UNSUPPORTED = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE

GOOD = bytes(write_batch([Record(index, NOW, b"k", b"vvvvv") for index in range(3)]))
PRODUCER = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0}


def changed(batch=GOOD, **fields):
    """The batch with header fields set and a checksum that fits."""
    header = read_header(batch).changed(**fields)
    return bytes(seal(header, batch[61:]))


def poked(at, form, value, batch=GOOD):
    """The batch with bytes overwritten and nothing put right."""
    poked_batch = bytearray(batch)
    struct.pack_into(form, poked_batch, at, value)
    return bytes(poked_batch)


def message_set(magic):
    """A message in one of the formats before record batches."""
    times = struct.pack(">q", NOW) if magic else b""
    body = struct.pack(">bb", magic, 0) + times + b"\0\0\0\1k\0\0\0\1v"
    message = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", 0, len(message)) + message


def validate(records, limits=LIMITS, version=9, now_ms=NOW):
    """Do to a Produce field what the broker does; return header and batch to append."""
    header = check_field(records, version)
    batch = bytearray(records[: header.size_bytes])
    return check_batch(header, batch, limits, now_ms), batch


def answer(records, limits=LIMITS, version=9):
    try:
        validate(records, limits, version)
    except KafkaError as error:
        return error.code
    return NONE


SHAPES = {
    "good": (GOOD, NONE),
    "empty": (b"", INVALID),
    "five bytes": (GOOD[:5], INVALID),
    "18 bytes": (GOOD[:18], INVALID),
    "60 bytes": (GOOD[:60], INVALID),
    "last byte missing": (GOOD[:-1], INVALID),
    "a byte more": (GOOD + b"\0", NONE),
    "16 bytes more": (GOOD + b"\1" * 16, NONE),
    "20 zeros more": (GOOD + bytes(20), CORRUPT),
    "most of a second batch": (GOOD + GOOD[:-1], NONE),
    "two batches": (GOOD + GOOD, INVALID),
    "three batches": (GOOD * 3, INVALID),
    "magic 0": (poked(16, ">b", 0), INVALID),
    "magic 1": (poked(16, ">b", 1), INVALID),
    "magic 3": (poked(16, ">b", 3), CORRUPT),
    "magic -1": (poked(16, ">b", -1), CORRUPT),
    "old message set 0": (message_set(0), INVALID),
    "old message set 1": (message_set(1), INVALID),
    "checksum": (poked(len(GOOD) - 1, ">b", 1), CORRUPT),
    "length 0": (poked(8, ">i", 0), CORRUPT),
    "length -1": (poked(8, ">i", -1), CORRUPT),
    "length 13": (poked(8, ">i", 13), CORRUPT),
    "length 14": (poked(8, ">i", 14), CORRUPT),
    "length 48": (poked(8, ">i", 48), CORRUPT),
    "length 49": (poked(8, ">i", 49), CORRUPT),
    "length one more": (poked(8, ">i", len(GOOD) - 11), INVALID),
    "length one less": (poked(8, ">i", len(GOOD) - 13), CORRUPT),
    # Kafka's sum overflows and it says UNKNOWN_SERVER_ERROR; to us it is a batch not whole.
    "length of 2 GiB": (poked(8, ">i", 2**31 - 1), INVALID),
}

HEADERS = {
    "count 2 of 3": ({"record_count": 2}, INVALID),
    "count 4 of 3": ({"record_count": 4}, INVALID),
    "count 0": ({"record_count": 0}, INVALID),
    "count -1": ({"record_count": -1}, INVALID),
    "last offset delta -1": ({"last_offset_delta": -1}, INVALID),
    "last offset delta 5": ({"last_offset_delta": 5}, INVALID),
    "nothing": ({"record_count": 0, "last_offset_delta": -1}, INVALID),
    "base offset 7": ({"base_offset": 7}, INVALID),
    "base offset -1": ({"base_offset": -1}, INVALID),
    "control": ({"attributes": CONTROL_FLAG}, INVALID),
    "delete horizon": ({"attributes": DELETE_HORIZON_FLAG}, NONE),
    "attribute of the future": ({"attributes": 0x80}, NONE),
    "producer without sequence": ({"producer_id": 5, "producer_epoch": 0}, INVALID),
    "producer without epoch": ({"producer_id": 5, "base_sequence": 0}, NONE),
    "sequence without producer": ({"base_sequence": 0}, NONE),
    "epoch without producer": ({"producer_epoch": 0}, NONE),
    "producer -2": ({"producer_id": -2, "producer_epoch": 0, "base_sequence": 0}, NONE),
    "producer": (PRODUCER, NONE),
    # Kafka takes it if the request names a transactional id, which the batch cannot tell.
    "transactional without producer": ({"attributes": TRANSACTIONAL_FLAG}, NONE),
    # Kafka fails with UNKNOWN_SERVER_ERROR; the protocol has a better word.
    "codec 5": ({"attributes": 5}, UNSUPPORTED),
    "codec 6": ({"attributes": 6}, UNSUPPORTED),
    "codec 7": ({"attributes": 7}, UNSUPPORTED),
    "count and delta of 2, records 3": ({"record_count": 2, "last_offset_delta": 1}, INVALID),
    "count and delta of 4, records 3": ({"record_count": 4, "last_offset_delta": 3}, INVALID),
    # Kafka fails with UNKNOWN_SERVER_ERROR; neither is tried again.
    "gzip that is none": ({"attributes": 1}, INVALID),
    # Kafka takes these and sets the time right, as we do.
    "max timestamp too high": ({"max_timestamp": NOW + 9 * HOUR}, NONE),
    "append time claimed": ({"attributes": TIMESTAMP_TYPE_FLAG}, NONE),
    "append time claimed, too new": (
        {"attributes": TIMESTAMP_TYPE_FLAG, "max_timestamp": NOW + 9 * HOUR},
        TIMESTAMP,
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shape_is_judged_as_kafka_does(name):
    records, expected = SHAPES[name]
    assert answer(records) == expected


@pytest.mark.parametrize("name", HEADERS)
def test_header_is_judged_as_kafka_does(name):
    fields, expected = HEADERS[name]
    assert answer(changed(**fields)) == expected


NOTED = json.loads(ANSWERS.read_text())


@pytest.mark.parametrize("name", BATCHES)
def test_records_are_judged_as_kafka_does(name):
    """What Apache Kafka answered, unless it stumbled, or took what nobody can read then."""
    first, *rest = [next(iter(line.values())) for line in NOTED[name]]
    expected = ErrorCode[first["error_code"].upper()]
    if expected is ErrorCode.UNKNOWN_SERVER_ERROR or name in POISON | OVERLOOKED:
        expected = INVALID
    assert answer(BATCHES[name]) == expected
    if expected is NONE:
        header, batch = validate(BATCHES[name])
        assert header == read_header(batch)
        assert header.crc == compute_crc(batch)
        (seen,) = rest[0]
        found = header.attributes, header.max_timestamp, header.record_count
        assert found == (seen["attributes"], seen["newest"], seen["count"])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("fewer than the count", "premature EOF reached: record 1, at byte 8 of the records"),
        ("more than the count", "records still remaining in file: record 1, at byte 8"),
        ("a header without key", "Invalid negative header key size: record 0"),
    ],
)
def test_refusal_says_where_the_fault_is(name, words):
    for how in ("uncompressed", "in lz4"):
        with pytest.raises(KafkaError) as caught:
            validate(BATCHES[f"{name}, {how}"])
        assert words in caught.value.message
        assert caught.value.message.endswith("in topic partition bad-0.")


def test_wrong_checksum_outweighs_wrong_records():
    for name in ("noise, uncompressed", "gzip, noise"):
        assert answer(poked(17, ">I", 7, BATCHES[name])) == CORRUPT


def test_field_that_is_null_holds_no_batch():
    """Kafka 4.3.1 never answers this one."""
    with pytest.raises(KafkaError) as caught:
        check_field(None, 9)
    assert caught.value.code == INVALID


@pytest.mark.parametrize(("version", "expected"), [(3, UNSUPPORTED), (6, UNSUPPORTED), (7, NONE)])
def test_zstd_needs_produce_7(version, expected):
    batch = write_batch([Record(0, NOW, b"k", b"v")], codec=Codec.ZSTD)
    assert answer(batch, version=version) == expected


@pytest.mark.parametrize("codec", Codec)
def test_every_codec_is_taken(codec):
    assert answer(write_batch([Record(0, NOW, b"k", b"v")], codec=codec)) == NONE


def test_raw_snappy_is_taken():
    payload = bytes(cramjam.snappy.compress_raw(GOOD[61:]))
    batch = seal(read_header(GOOD).changed(attributes=2), payload)
    assert answer(batch, COMPACTED) == NONE


@pytest.mark.parametrize("cut", [1, 16, 17, 40])
def test_bytes_behind_the_batch_are_cut_off(cut):
    header, batch = validate(GOOD + GOOD[:cut])
    assert batch == GOOD
    assert header.size_bytes == len(GOOD)


@pytest.mark.slow
@given(records=record_lists(contiguous=True))
def test_good_batch_is_left_as_it_is(records):
    shifted = [
        record._replace(offset=index, timestamp_ms=min(record.timestamp_ms, NOW))
        for index, record in enumerate(records)
    ]
    written = write_batch(shifted)
    header, batch = validate(written)
    assert header == read_header(written)
    assert batch == written


def test_any_single_flipped_byte_is_noticed():
    for at in range(8, len(GOOD)):
        # The leader epoch is the broker's to set, so nothing protects it.
        if not 12 <= at < 16:
            assert answer(poked(at, ">B", GOOD[at] ^ 0x55)) in (CORRUPT, INVALID)


def test_too_new_records_are_named():
    records = [Record(0, NOW, b"k", b"v")] + [
        Record(index, NOW + HOUR + index, b"k", b"v") for index in (1, 2)
    ]
    for codec in (Codec.NONE, Codec.GZIP):
        with pytest.raises(InvalidRecords) as caught:
            validate(write_batch(records, codec=codec))
        error = caught.value
        assert error.code == TIMESTAMP
        assert error.message == "One or more records have been rejected due to invalid timestamp"
        assert error.record_errors == tuple(
            (
                index,
                f"Timestamp {NOW + HOUR + index} of message with offset {index} is out of range. "
                f"The timestamp should be within [{NOW - 2**63 + 1}, {NOW + HOUR}]",
            )
            for index in (1, 2)
        )


@pytest.mark.parametrize("timestamp", [-5, -1, 0, NOW, NOW + HOUR])
def test_time_within_the_limits_is_taken(timestamp):
    assert answer(write_batch([Record(0, timestamp, b"k", b"v")])) == NONE


def test_too_old_record_is_found_behind_a_new_one():
    records = [Record(0, NOW, b"k", b"v"), Record(1, NOW - 1001, b"k", b"v")]
    with pytest.raises(InvalidRecords) as caught:
        validate(write_batch(records), NOT_OLD)
    assert caught.value.code == TIMESTAMP
    assert [index for index, _ in caught.value.record_errors] == [1]
    assert f"[{NOW - 1000}, {NOW + HOUR}]" in caught.value.record_errors[0][1]


def test_record_without_time_has_any_age():
    assert answer(write_batch([Record(0, -1, b"k", b"v")]), NOT_OLD) == NONE


def test_newest_time_that_is_wrong_is_put_right():
    header, batch = validate(changed(max_timestamp=NOW + 9 * HOUR))
    assert header.max_timestamp == NOW
    assert batch == GOOD


def test_claim_of_append_time_is_taken_back():
    header, batch = validate(changed(attributes=TIMESTAMP_TYPE_FLAG))
    assert not header.has_append_time
    assert header == read_header(batch)
    assert header.crc == compute_crc(batch)
    assert batch == GOOD


def test_append_time_is_set():
    header, batch = validate(GOOD, APPEND_TIME, now_ms=NOW + 77)
    assert header.has_append_time
    assert header == read_header(batch)
    assert header.crc == compute_crc(batch)
    assert {record.timestamp_ms for record in read_records(batch)} == {NOW + 77}


def test_append_time_makes_any_time_good():
    assert answer(write_batch([Record(0, NOW + 9 * HOUR, b"k", b"v")]), APPEND_TIME) == NONE


@pytest.mark.parametrize(("codec", "kind"), [(0, "DefaultRecord"), (1, "PartialDefaultRecord")])
def test_append_time_is_not_the_clients_to_set(codec, kind):
    record = Record(0, NOW, b"k", b"vvvvv")
    batch = write_batch([record], codec=codec, flags=TIMESTAMP_TYPE_FLAG)
    with pytest.raises(InvalidRecords) as caught:
        validate(batch, APPEND_TIME)
    assert caught.value.code == TIMESTAMP
    assert caught.value.record_errors == (
        (
            0,
            f"Invalid timestamp type in message {kind}(offset=0, timestamp={NOW}, key=1 bytes, "
            "value=5 bytes). Producer should not set timestamp type to LogAppendTime.",
        ),
    )


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_compacted_topic_wants_keys(codec):
    keys = [b"k", None, None, None, None]
    records = [Record(index, NOW, key, b"v") for index, key in enumerate(keys)]
    with pytest.raises(InvalidRecords) as caught:
        validate(write_batch(records, codec=codec), COMPACTED)
    why = "Compacted topic cannot accept message without key in topic partition bad-compact-0"
    assert caught.value.code == INVALID
    assert caught.value.record_errors == tuple((index, why) for index in (1, 2, 3, 4))
    assert caught.value.message == (
        "One or more records have been rejected due to 4 record errors in total, and only "
        "showing the first three errors at most: "
        f"[RecordError(batchIndex=1, message='{why}'), RecordError(batchIndex=2, message='{why}'),"
        f" RecordError(batchIndex=3, message='{why}')]"
    )


def test_wrong_time_outweighs_a_missing_key():
    records = [Record(0, NOW, None, b"v"), Record(1, NOW + 9 * HOUR, b"k", b"v")]
    with pytest.raises(InvalidRecords) as caught:
        validate(write_batch(records), COMPACTED)
    assert caught.value.code == TIMESTAMP
    assert [index for index, _ in caught.value.record_errors] == [0, 1]


def test_compacted_topic_with_append_time_wants_keys_too():
    both = APPEND_TIME._replace(is_compacted=True)
    assert answer(write_batch([Record(0, NOW, None, b"v")]), both) == INVALID
    assert validate(GOOD, both)[0].has_append_time


def test_records_that_cannot_be_read_outweigh_a_missing_key():
    record = write_batch([Record(0, NOW + 9 * HOUR, None, b"v")])
    broken = seal(read_header(record), record[61:] + b"rest")
    with pytest.raises(KafkaError) as caught:
        validate(bytes(broken), COMPACTED)
    assert caught.value.code == INVALID
    assert not isinstance(caught.value, InvalidRecords)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
@pytest.mark.parametrize("claimed", [NOW - 5, NOW + 5, -1])
def test_newest_time_comes_from_the_records(codec, claimed):
    records = [Record(0, NOW - 7, b"k", b"v"), Record(1, NOW, b"k", b"v")]
    good = write_batch(records, codec=codec)
    header, batch = validate(changed(good, max_timestamp=claimed))
    assert header.max_timestamp == NOW
    assert batch == good


def test_facts_that_were_found_before_are_believed():
    """Who had the records looked at in a thread does not have it done again."""
    for codec in (Codec.NONE, Codec.GZIP):
        batch = write_batch([Record(0, NOW, b"k", b"v")], codec=codec)
        header = read_header(batch)
        facts = inspect_batch(header, batch)
        assert check_batch(header, batch, LIMITS, NOW, facts) == header
        for wrong in (UNREADABLE, facts._replace(fault=Fault.REST)):
            with pytest.raises(KafkaError) as caught:
                check_batch(header, batch, LIMITS, NOW, wrong)
            assert caught.value.code == INVALID


def test_keys_are_looked_at_in_the_facts():
    batch = write_batch([Record(0, NOW, b"k", b"v")])
    header = read_header(batch)
    facts = inspect_batch(header, batch)._replace(keyless=0)
    # They lead to a closer look, which finds the key.
    assert check_batch(header, batch, COMPACTED, NOW, facts) == header


@pytest.mark.parametrize(
    ("codec", "light", "heavy"),
    [
        (Codec.NONE, 5_000_000, None),
        (Codec.GZIP, 100, 10_000),
        (Codec.SNAPPY, 16_000, 5_000_000),
        (Codec.LZ4, 1_000_000, 5_000_000),
        (Codec.ZSTD, 900_000, 5_000_000),
    ],
)
def test_what_takes_long_to_look_at_is_told(codec, light, heavy):
    """A batch of 16 KB, and of librdkafka's 1 MB, is light in the quick codecs."""
    values = random.Random(5).randbytes(5_000_000)
    for size, expected in ((light, False), (heavy, True)):
        if size is not None:
            batch = write_batch([Record(0, NOW, b"k", values[:size])], codec=codec)
            assert is_heavy(batch) is expected


def test_bomb_is_heavy_however_small_it_is():
    bomb = write_batch([Record(0, NOW, b"k", bytes(50_000_000))], codec=Codec.ZSTD)
    assert len(bomb) < 10_000
    assert is_heavy(bomb)


def test_codec_that_does_not_exist_is_not_heavy():
    assert not is_heavy(changed(GOOD, attributes=7))


def test_size_is_judged_before_all_else():
    large = bytes(write_batch([Record(0, NOW, b"k", b"v" * 100)]))
    for batch in (large, poked(len(large) - 1, ">b", 1, large), changed(large, attributes=32)):
        with pytest.raises(KafkaError) as caught:
            validate(batch, SMALL)
        assert caught.value.code == TOO_LARGE
        assert caught.value.message == (
            f"The record batch size in the append to bad-small-0 is {len(large)} bytes which "
            "exceeds the maximum configured value of 100."
        )


def test_size_up_to_the_limit_is_taken():
    assert answer(GOOD, LIMITS._replace(batch_bytes_max=len(GOOD))) == NONE
    assert answer(GOOD, LIMITS._replace(batch_bytes_max=len(GOOD) - 1)) == TOO_LARGE


def test_recompressed_batch_may_be_too_large():
    packed = write_batch([Record(0, NOW, b"k", b"v" * 1000)], codec=Codec.ZSTD)
    assert answer(packed, SMALL) == NONE
    check_size(len(recompress(packed, Codec.LZ4)), SMALL)
    with pytest.raises(KafkaError) as caught:
        check_size(len(recompress(packed, Codec.NONE)), SMALL)
    assert caught.value.code == TOO_LARGE


def test_recompression_does_not_make_a_broken_batch_good():
    for at in range(21, len(GOOD)):
        with pytest.raises(KafkaError) as caught:
            recompress(poked(at, ">B", GOOD[at] ^ 1), Codec.GZIP)
        assert caught.value.code == CORRUPT


def test_recompression_leaves_out_what_follows_the_batch():
    assert recompress(GOOD + b"more", Codec.NONE) == GOOD


def test_bomb_is_not_recompressed():
    bomb = write_batch([Record(0, NOW, b"k", bytes(3_000_000))], codec=Codec.ZSTD)
    with pytest.raises(KafkaError) as caught:
        recompress(bomb, Codec.GZIP, size_bytes_max=1_000_000)
    assert caught.value.code == INVALID


@pytest.mark.parametrize("name", ["an offset twice", "offsets backwards", "a gap in the offsets"])
def test_recompression_puts_offsets_in_sequence(name):
    """As Apache Kafka 4.3.1 did, which else leaves the one form alone and refuses the other."""
    for how in ("uncompressed", "in lz4"):
        batch = recompress(BATCHES[f"{name}, {how}"], Codec.ZSTD)
        assert answer(bytes(batch)) == NONE
        found = [(record.offset, record.value) for record in read_records(batch)]
        assert found == [(0, b"x"), (1, b"y")]


def test_recompression_leaves_broken_records_to_be_refused():
    for name in ("noise", "fewer than the count", "a length one too long"):
        assert answer(bytes(recompress(BATCHES[f"{name}, uncompressed"], Codec.LZ4))) == INVALID
