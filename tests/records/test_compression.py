"""The five codecs: round trips, forms of other libraries, bombs and broken data."""

import random
import struct

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strom.records.compression import (
    CODEC_NAMES,
    CODECS_BY_NAME,
    XERIAL_MAGIC,
    Codec,
    Room,
    codec_named,
    codec_of,
    compress,
    decompress,
    expand,
)
from strom.wire.errors import ErrorCode, KafkaError

COMPRESSING = [codec for codec in Codec if codec is not Codec.NONE]
TEXT = b"altitude=12000 speed=7800 " * 40


@pytest.mark.parametrize("codec", Codec)
@given(data=st.binary(max_size=2000), repeat=st.integers(1, 50))
def test_what_was_compressed_comes_back(codec, data, repeat):
    assert decompress(codec, compress(codec, data * repeat)) == data * repeat


@pytest.mark.parametrize("codec", Codec)
def test_several_blocks_come_back(codec):
    data = bytes(range(256)) * 1000
    assert decompress(codec, compress(codec, data)) == data


@pytest.mark.parametrize("codec", Codec)
def test_any_buffer_will_do(codec):
    packed = compress(codec, memoryview(bytearray(TEXT)))
    assert decompress(codec, memoryview(bytearray(packed))) == TEXT
    assert expand(codec, memoryview(bytearray(packed))) == TEXT


@pytest.mark.parametrize("codec", COMPRESSING)
def test_room_is_used_again(codec):
    """Whatever stood there, and however large what comes next is, even larger than is kept."""
    room = Room()
    for data in (TEXT, b"", TEXT[:7], 4000 * TEXT, TEXT):
        packed = compress(codec, data)
        assert bytes(expand(codec, packed, room=room)) == data


def test_room_keeps_no_more_than_it_may():
    room = Room()
    assert len(room.take(Room.KEPT_BYTES_MAX + 1)) == Room.KEPT_BYTES_MAX + 1
    assert room.take(10).nbytes == 10
    assert room.take(20).obj is room.take(10).obj


@pytest.mark.parametrize(
    ("codec", "levels"), [(Codec.GZIP, (-1, 1, 9)), (Codec.LZ4, (1, 9, 12)), (Codec.ZSTD, (1, 22))]
)
def test_every_level_can_be_read(codec, levels):
    for level in levels:
        assert decompress(codec, compress(codec, TEXT, level)) == TEXT


def test_higher_level_packs_tighter():
    data = bytes((i * i) % 251 for i in range(50_000))
    assert len(compress(Codec.GZIP, data, 9)) <= len(compress(Codec.GZIP, data, 1))


def test_snappy_is_written_in_the_frame_that_java_writes():
    packed = compress(Codec.SNAPPY, TEXT)
    assert packed.startswith(XERIAL_MAGIC + bytes.fromhex("0000000100000001"))


def test_raw_snappy_is_read():
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT))) == TEXT


def lz4_frame_of(data, **form):
    compressor = cramjam.lz4.Compressor(**form)
    compressor.compress(data)
    return bytes(compressor.finish())


@pytest.mark.parametrize("form", [{}, {"content_checksum": True}, {"level": 9}])
def test_lz4_of_other_writers_is_read(form):
    frame = lz4_frame_of(TEXT * 9999, block_linked=False, **form)
    assert decompress(Codec.LZ4, frame) == TEXT * 9999


def test_lz4_that_java_cannot_read_is_corrupt():
    """Apache Kafka 4.3.1 refuses both."""
    linked = lz4_frame_of(TEXT, block_linked=True)
    skippable = bytes.fromhex("502a4d1804000000") + b"what"
    for frame in (linked, skippable + compress(Codec.LZ4, TEXT)):
        with pytest.raises(KafkaError) as caught:
            decompress(Codec.LZ4, frame)
        assert caught.value.code == ErrorCode.CORRUPT_MESSAGE


def read_by_the_library(frame, size_bytes_max):
    """An lz4 frame as the library's own reader takes it, or None."""
    target = bytearray(size_bytes_max)
    try:
        return bytes(target[: cramjam.lz4.decompress_into(frame, target)])
    except cramjam.DecompressionError:
        return None


@pytest.mark.parametrize("size", [0, 1, 100, 65535, 65536, 65537, 200_000])
def test_lz4_is_read_block_by_block_as_by_the_library(size):
    for data in (TEXT * 200, random.Random(7).randbytes(200_000)):
        frame = compress(Codec.LZ4, data[:size])
        assert decompress(Codec.LZ4, frame) == read_by_the_library(frame, size + 1) == data[:size]


@given(changes=st.lists(st.tuples(st.integers(7, 10**6), st.integers(0, 255)), max_size=4))
def test_broken_lz4_is_read_block_by_block_as_by_the_library(changes):
    frame = bytearray(compress(Codec.LZ4, TEXT + random.Random(7).randbytes(70_000)))
    for at, byte in changes:
        frame[7 + at % (len(frame) - 7)] = byte
    try:
        found = decompress(Codec.LZ4, frame, size_bytes_max=1_000_000)
    except KafkaError:
        found = None
    assert found == read_by_the_library(bytes(frame), 1_000_000)


def test_lz4_block_larger_than_a_block_may_be_is_corrupt():
    head = compress(Codec.LZ4, b"")[:7]
    stored = struct.pack("<I", 70_000 | 0x80000000) + bytes(70_000)
    packed = bytes(cramjam.lz4.compress_block(bytes(70_000), store_size=False))
    for block in (stored, struct.pack("<I", len(packed)) + packed):
        with pytest.raises(KafkaError) as caught:
            decompress(Codec.LZ4, head + block + bytes(4))
        assert caught.value.code == ErrorCode.CORRUPT_MESSAGE


def test_lz4_is_written_with_independent_blocks():
    # Bit 5 of the flags; Java's reader refuses a frame without it.
    assert compress(Codec.LZ4, TEXT)[4] & 0x20


def test_names_are_kafkas():
    assert [CODEC_NAMES[codec] for codec in Codec] == ["none", "gzip", "snappy", "lz4", "zstd"]
    assert codec_named("uncompressed") is Codec.NONE
    assert all(CODECS_BY_NAME[name] is codec for codec, name in CODEC_NAMES.items())


@pytest.mark.parametrize("number", [-1, 5, 6, 7])
def test_unknown_codec_is_refused(number):
    for attempt in (codec_of, lambda n: compress(n, b""), lambda n: decompress(n, b"")):
        with pytest.raises(KafkaError) as caught:
            attempt(number)
        assert caught.value.code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_unknown_name_is_refused():
    with pytest.raises(KafkaError) as caught:
        codec_named("brotli")
    assert caught.value.code == ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize("codec", Codec)
def test_limit_is_exact(codec):
    packed = compress(codec, TEXT)
    assert decompress(codec, packed, size_bytes_max=len(TEXT)) == TEXT
    with pytest.raises(KafkaError) as caught:
        decompress(codec, packed, size_bytes_max=len(TEXT) - 1)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("codec", COMPRESSING)
def test_bomb_does_not_go_off(codec):
    bomb = compress(codec, bytes(20_000_000))
    with pytest.raises(KafkaError) as caught:
        decompress(codec, bomb, size_bytes_max=1_000_000)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE


def test_snappy_length_that_lies_reserves_nothing():
    with pytest.raises(KafkaError):
        decompress(Codec.SNAPPY, b"\xff\xff\xff\xff\x0f" + bytes(10))


@pytest.mark.parametrize("codec", COMPRESSING)
def test_cut_data_is_corrupt_at_every_byte(codec):
    packed = compress(codec, TEXT)
    # A cut between two parts of a frame may leave a whole, shorter one; never other bytes.
    for size in range(len(packed)):
        try:
            assert TEXT.startswith(decompress(codec, packed[:size], size_bytes_max=5000))
        except KafkaError as error:
            assert error.code == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("codec", COMPRESSING)
@given(data=st.binary(max_size=200))
def test_noise_is_refused_or_read(codec, data):
    head = {Codec.SNAPPY: XERIAL_MAGIC}.get(codec, compress(codec, b"")[:6])
    for noise in (data, head + data):
        try:
            assert len(decompress(codec, noise, size_bytes_max=10_000)) <= 10_000
        except KafkaError as error:
            assert error.code == ErrorCode.CORRUPT_MESSAGE
