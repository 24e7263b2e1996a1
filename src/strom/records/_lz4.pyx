# cython: language_level=3
"""Where the blocks of an lz4 frame are, compiled.

It does what `lz4_frame.plain_read_blocks` does, which says what a frame is. No byte outside of the
data is read, whatever the sizes claim.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memcmp

cdef enum:
    HEADER_BYTES = 7
    SIZE_BYTES = 4
    STORED_FLAG = 0x80000000


cdef inline uint32_t read_size(const uint8_t* at) noexcept nogil:
    return at[0] | <uint32_t> at[1] << 8 | <uint32_t> at[2] << 16 | <uint32_t> at[3] << 24


def read_blocks(data, bytes header not None, Py_ssize_t blocks_max):
    """Return the blocks of a frame that begins with this header; None if it is another one."""
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        if len(header) != HEADER_BYTES or view.len < HEADER_BYTES:
            return None
        if memcmp(view.buf, <const char*> header, HEADER_BYTES):
            return None
        return list_blocks(<const uint8_t*> view.buf, view.len, blocks_max)
    finally:
        PyBuffer_Release(&view)


cdef list list_blocks(const uint8_t* data, Py_ssize_t end, Py_ssize_t blocks_max):
    cdef list blocks = []
    cdef Py_ssize_t position = HEADER_BYTES
    cdef Py_ssize_t size
    cdef uint32_t told
    while end - position >= SIZE_BYTES:
        told = read_size(data + position)
        position += SIZE_BYTES
        if told == 0:
            return blocks if position == end else None
        size = told & ~<uint32_t> STORED_FLAG
        if size > end - position or len(blocks) == blocks_max:
            return None
        blocks.append((position, position + size, told >= STORED_FLAG))
        position += size
    return None
