"""Batches that real clients wrote: read, and written again to the same bytes (MSG-13, MSG-16)."""

from pathlib import Path

import pytest

from strom.records.batch import CODEC_MASK, compute_crc, read_header
from strom.records.compression import CODECS_BY_NAME, compress
from strom.records.record import (
    Producer,
    read_batch,
    read_payload,
    read_records,
    seal,
    write_batch,
)
from strom.records.validate import Limits, check_batch, check_field, recompress

LINES = (Path(__file__).parent / "golden.txt").read_text().splitlines()[1:]
GOLDEN = {
    f"{client}-{codec}": (client, codec, bytes.fromhex(data))
    for client, codec, data in (line.split() for line in LINES)
}
#: The Java client's lz4 and snappy come from simple enough libraries to be met byte for byte.
SAME_LIBRARY = ["java-lz4", "java-snappy", "librdkafka-lz4"]


@pytest.fixture(params=GOLDEN)
def golden(request):
    return GOLDEN[request.param]


def test_every_client_and_codec_is_here():
    for client in ("librdkafka", "aiokafka", "java", "kcat"):
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            assert f"{client}-{codec}" in GOLDEN
    assert {"kafka-python-none", "kafka-python-gzip"} <= set(GOLDEN)


def test_header_is_read(golden):
    _, codec, batch = golden
    header = read_batch(batch)
    assert header.size_bytes == len(batch)
    assert header.crc == compute_crc(batch)
    assert header.codec == CODECS_BY_NAME[codec]
    assert header.record_count == header.last_offset_delta + 1


def test_records_are_those_of_the_uncompressed_batch(golden):
    client, _, batch = golden
    plain = GOLDEN[f"{client}-none"][2]
    contents = [record[2:] for record in read_records(batch)]
    assert contents == [record[2:] for record in read_records(plain)]


def test_writing_again_gives_the_same_bytes(golden):
    _, _, batch = golden
    header = read_header(batch)
    again = write_batch(
        list(read_records(batch)),
        leader_epoch=header.leader_epoch,
        producer=Producer(header.producer_id, header.producer_epoch, header.base_sequence),
    )
    plain = header.changed(attributes=header.attributes & ~CODEC_MASK)
    assert again == seal(plain, read_payload(batch, header))


@pytest.mark.parametrize("name", [name for name in GOLDEN if name.endswith("-none")])
def test_uncompressed_batch_is_built_byte_for_byte(name):
    batch = GOLDEN[name][2]
    header = read_header(batch)
    producer = Producer(header.producer_id, header.producer_epoch, header.base_sequence)
    records = list(read_records(batch))
    assert write_batch(records, leader_epoch=header.leader_epoch, producer=producer) == batch


@pytest.mark.parametrize("name", SAME_LIBRARY)
def test_frames_are_built_byte_for_byte(name):
    batch = GOLDEN[name][2]
    header = read_header(batch)
    assert compress(header.codec, read_payload(batch, header)) == batch[61:]


def test_batch_is_accepted(golden):
    _, _, batch = golden
    header = check_field(batch)
    buffer = bytearray(batch)
    assert check_batch(header, buffer, Limits("t-0"), header.max_timestamp) == header
    assert buffer == batch


def test_recompressed_batch_holds_the_same(golden):
    _, _, batch = golden
    for codec in range(5):
        again = recompress(batch, codec)
        header = read_batch(again)
        assert header.codec == codec
        assert header.crc == compute_crc(again)
        assert list(read_records(again)) == list(read_records(batch))
        kept = read_header(batch).changed(
            length=header.length, crc=header.crc, attributes=header.attributes
        )
        assert header == kept
