"""Where the blocks of an lz4 frame are: found by compiled code and by Python in the same way."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strom.records import lz4_frame
from strom.records.lz4_frame import BLOCK_BYTES_MAX, BLOCKS_MAX, HEADER, compress

READERS = {"compiled": lz4_frame.read_blocks, "plain": lz4_frame.plain_read_blocks}


@pytest.fixture(params=READERS)
def read_blocks(request):
    return READERS[request.param]


def block(content: bytes, *, claimed: int | None = None, stored: bool = False) -> bytes:
    size = len(content) if claimed is None else claimed
    return struct.pack("<I", size | (0x80000000 if stored else 0)) + content


END = bytes(4)


def test_the_compiled_reader_is_there():
    assert lz4_frame.IS_COMPILED


def test_blocks_are_told_with_their_places_and_kinds(read_blocks):
    frame = HEADER + block(b"abc") + block(b"defgh", stored=True) + END
    assert read_blocks(frame) == [(11, 14, False), (18, 23, True)]
    assert read_blocks(memoryview(bytearray(frame))) == [(11, 14, False), (18, 23, True)]


def test_what_is_written_here_is_read_here(read_blocks):
    frame = compress(b"rocket " * BLOCK_BYTES_MAX, None)
    assert len(read_blocks(frame)) == 7


OTHERS = {
    "nothing": b"",
    "a header that is cut off": HEADER[:6],
    "another header": b"\x04\x22\x4d\x18\x64\x40\xa7" + block(b"abc") + END,
    "no end": HEADER + block(b"abc"),
    "an end that is cut off": HEADER + block(b"abc") + END[:3],
    "bytes behind the end": HEADER + block(b"abc") + END + b"x",
    "a block that is cut off": HEADER + block(b"abc", claimed=4),
    "a block of two gigabytes": HEADER + block(b"abc", claimed=0x7FFFFFFF) + END,
    "a stored block of two gigabytes": HEADER + block(b"", claimed=0x7FFFFFFF, stored=True),
    "too many blocks": HEADER + block(b"a") * (BLOCKS_MAX + 1) + END,
}


@pytest.mark.parametrize("frame", OTHERS.values(), ids=OTHERS)
def test_another_frame_is_the_librarys_to_read(read_blocks, frame):
    assert read_blocks(frame) is None


def test_as_many_blocks_as_may_be(read_blocks):
    assert len(read_blocks(HEADER + block(b"a") * BLOCKS_MAX + END)) == BLOCKS_MAX


@given(
    st.lists(
        st.one_of(
            st.builds(block, st.binary(max_size=8), stored=st.booleans()), st.binary(max_size=6)
        ),
        max_size=6,
    )
)
def test_both_readers_find_the_same(parts):
    frame = HEADER + b"".join(parts)
    for end in (b"", END):
        data = frame + end
        assert lz4_frame.read_blocks(data) == lz4_frame.plain_read_blocks(data)
