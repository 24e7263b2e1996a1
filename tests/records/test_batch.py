"""The header view: what is read, and what is patched in place."""

from strom.records.batch import (
    CONTROL_FLAG,
    HEADER_SIZE,
    TIMESTAMP_TYPE_FLAG,
    TRANSACTIONAL_FLAG,
    compute_crc,
    patch_append_time,
    patch_max_timestamp,
    patch_place,
    read_header,
    read_prefix,
)
from strom.records.record import Producer, Record, read_records, write_batch

RECORDS = (Record(0, 1000, b"k", b"v"), Record(1, 1005, b"k", b"w"))


def test_header_says_what_was_written():
    producer = Producer(7, 2, 40)
    flags = TRANSACTIONAL_FLAG | CONTROL_FLAG
    batch = write_batch(RECORDS, codec=1, leader_epoch=3, producer=producer, flags=flags)
    header = read_header(batch)
    assert header.size_bytes == len(batch)
    assert (header.base_offset, header.last_offset, header.record_count) == (0, 1, 2)
    assert (header.base_timestamp, header.max_timestamp) == (1000, 1005)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == producer
    assert header.last_sequence == 41
    assert header.leader_epoch == 3
    assert header.codec == 1
    assert header.is_transactional
    assert header.is_control
    assert not header.has_append_time
    assert header.crc == compute_crc(batch)
    assert read_prefix(batch) == (0, len(batch))


def test_sequences_wrap_round():
    producer = Producer(7, 0, 2**31 - 1)
    assert read_header(write_batch(RECORDS, producer=producer)).last_sequence == 0


def test_batch_without_a_producer_has_no_last_sequence():
    assert read_header(write_batch(RECORDS)).last_sequence == -1


def test_place_is_set_without_a_new_checksum():
    batch = write_batch(RECORDS)
    before = read_header(batch)
    patch_place(memoryview(batch), 12345678901, 9)
    after = read_header(batch)
    assert after == before.changed(base_offset=12345678901, leader_epoch=9)
    assert after.crc == compute_crc(batch)


def test_append_time_is_the_time_of_every_record():
    batch = write_batch(RECORDS)
    patch_append_time(batch, read_header(batch).attributes, 5000)
    header = read_header(batch)
    assert header.has_append_time
    assert header.crc == compute_crc(batch)
    assert [record.timestamp_ms for record in read_records(batch)] == [5000, 5000]


def test_create_time_comes_back():
    batch = write_batch(RECORDS, flags=TIMESTAMP_TYPE_FLAG)
    patch_max_timestamp(batch, 0, 1005)
    assert batch == write_batch(RECORDS)


def test_sizes_are_those_of_the_book():
    """MSG-14: a message of two bytes takes 70, two take 80, with a key of two bytes 72."""
    one = Record(0, 1600000000000, None, b"ab")
    # The second record came seconds later, so its time needs two bytes.
    two = Record(1, 1600000000000 + 5000, None, b"cd")
    assert len(write_batch([one])) == 70
    assert len(write_batch([one, two])) == 80
    assert len(write_batch([one._replace(key=b"ke")])) == 72
    assert HEADER_SIZE == 61
