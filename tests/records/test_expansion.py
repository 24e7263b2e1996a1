"""How much can come out of compressed data: never less than does."""

import struct

import cramjam
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from strom.records.compression import Codec, compress, decompress
from strom.records.expansion import bytes_max
from strom.wire.errors import KafkaError

COMPRESSING = [codec for codec in Codec if codec is not Codec.NONE]
KB = 1024
TEXT = b"altitude=12000 speed=7800 " * 600


def lz4_of_others(data, **form):
    compressor = cramjam.lz4.Compressor(block_linked=False, **form)
    compressor.compress(data)
    return bytes(compressor.finish())


@pytest.mark.parametrize("codec", Codec)
@given(data=st.binary(max_size=300), repeat=st.integers(1, 2000))
@example(data=b"\0", repeat=1_000_000)
def test_bound_holds_for_what_is_written_here(codec, data, repeat):
    assert bytes_max(codec, compress(codec, data * repeat)) >= len(data * repeat)


@pytest.mark.parametrize("codec", COMPRESSING)
@given(changes=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=5))
def test_bound_holds_for_whatever_can_still_be_read(codec, changes):
    broken = bytearray(compress(codec, TEXT))
    for at, byte in changes:
        broken[at % len(broken)] = byte
    bound = bytes_max(codec, broken)
    try:
        assert len(decompress(codec, broken, size_bytes_max=1_000_000)) <= bound
    except KafkaError:
        assert bound >= 0


@pytest.mark.parametrize("codec", COMPRESSING)
@given(noise=st.binary(max_size=100))
def test_noise_has_a_bound(codec, noise):
    start = compress(codec, b"")[:6]
    for data in (noise, start + noise):
        assert 0 <= bytes_max(codec, data) <= 128 * KB * 110


def test_bound_of_small_batches_is_small():
    """A usual batch of 16 KB must not look as if it could be a bomb."""
    data = TEXT[: 15 * KB]
    assert bytes_max(Codec.NONE, data) == len(data)
    assert bytes_max(Codec.LZ4, compress(Codec.LZ4, data)) <= 64 * KB
    assert bytes_max(Codec.ZSTD, compress(Codec.ZSTD, data)) <= 128 * KB


def test_bound_of_large_batches_is_near():
    data = (TEXT * 70)[: 1000 * KB]
    assert bytes_max(Codec.LZ4, compress(Codec.LZ4, data)) <= 1024 * KB
    assert bytes_max(Codec.ZSTD, compress(Codec.ZSTD, data)) <= 1024 * KB


def test_lz4_of_other_writers_has_a_bound():
    for form in ({"content_checksum": True}, {"level": 9}):
        assert bytes_max(Codec.LZ4, lz4_of_others(TEXT * 20, **form)) >= len(TEXT * 20)


def test_lz4_of_many_tiny_blocks_is_counted_no_further_than_need_be():
    blocks = struct.pack("<IB", 1 | 0x80000000, 7) * 100_000
    frame = compress(Codec.LZ4, b"")[:7] + blocks + bytes(4)
    assert bytes_max(Codec.LZ4, frame) == 255 * len(frame)
    assert decompress(Codec.LZ4, frame) == bytes([7]) * 100_000


def test_zstd_bomb_is_seen():
    bomb = compress(Codec.ZSTD, bytes(50_000_000))
    assert len(bomb) < 10_000
    assert bytes_max(Codec.ZSTD, bomb) >= 50_000_000


def test_zstd_frames_are_added_up():
    frame = compress(Codec.ZSTD, TEXT)
    skipped = struct.pack("<II", 0x184D2A50, 4) + b"what"
    joined = skipped + frame + frame
    assert decompress(Codec.ZSTD, joined) == TEXT * 2
    assert bytes_max(Codec.ZSTD, joined) == 2 * bytes_max(Codec.ZSTD, frame)


def test_zstd_with_every_kind_of_header_has_a_bound():
    for level in (1, 3, 19):
        streamed = cramjam.zstd.Compressor(level=level)
        streamed.compress(TEXT)
        assert bytes_max(Codec.ZSTD, bytes(streamed.finish())) >= len(TEXT)
