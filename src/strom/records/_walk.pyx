# cython: language_level=3
"""The walk over the records of a batch, compiled.

It does what `plain_walk` does, which is the place to look up what the facts and faults mean.
`read_record` is the one place that knows a record's form; it makes no object, so whatever wants
to look into many records (a check, a cleaner, a decoder of columns) is a loop around it here.

No byte outside of the given range is read, whatever the bytes are: `Cursor.position` never
passes `Cursor.end`, and a length is compared with what is left before it is added.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from strom.records.plain_walk import Facts

cdef object make_tuple = tuple.__new__

cdef int64_t NO_TIMESTAMP = -1

# Shorter ones are done sooner than another thread would get going.
cdef Py_ssize_t GIL_FREE_BYTES_MIN = 64 * 1024

cdef enum Fault:
    NONE = 0
    ENDS_EARLY = 1
    LENGTH = 2
    NUMBER = 3
    FIELD = 4
    HEADER_COUNT = 5
    HEADER_KEY = 6
    RECORD_REST = 7
    REST = 8

cdef struct Cursor:
    const uint8_t* data
    Py_ssize_t position
    Py_ssize_t end

cdef struct Bytes:
    Py_ssize_t start
    # Negative: null.
    int32_t size

cdef struct Record:
    int64_t timestamp_delta
    int32_t offset_delta
    Bytes key
    Bytes value

cdef struct Tally:
    Fault fault
    Py_ssize_t count
    Py_ssize_t position
    int64_t oldest
    int64_t newest
    Py_ssize_t keyless
    bint is_in_sequence


def walk(data, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t count, int64_t base_timestamp):
    """Read `count` records in data[start:stop]; whatever the bytes are, facts are returned."""
    cdef Py_buffer view
    cdef Tally tally
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        if not 0 <= start <= stop <= view.len:
            raise ValueError(f"no bytes {start} to {stop} among {view.len}")
        if stop - start < GIL_FREE_BYTES_MIN:
            tally = take(<const uint8_t*> view.buf + start, stop - start, count, base_timestamp)
        else:
            with nogil:
                tally = take(<const uint8_t*> view.buf + start, stop - start, count, base_timestamp)
    finally:
        PyBuffer_Release(&view)
    if tally.count == 0:
        tally.oldest = NO_TIMESTAMP
    return make_tuple(
        Facts,
        (
            <int> tally.fault,
            tally.count,
            tally.position,
            tally.oldest,
            tally.newest,
            tally.keyless,
            tally.is_in_sequence,
        ),
    )


cdef Tally take(
    const uint8_t* data, Py_ssize_t size, Py_ssize_t count, int64_t base_timestamp
) noexcept nogil:
    """Read the records and note what they have in common."""
    cdef Tally tally = Tally(NONE, 0, 0, INT64_MAX, NO_TIMESTAMP, -1, True)
    cdef Cursor cursor = Cursor(data, 0, size)
    cdef Record record
    cdef int64_t timestamp
    while tally.count < count:
        tally.fault = read_record(&cursor, &record)
        if tally.fault:
            return tally
        # Unsigned, because a sum that is too large is defined then: it begins again below zero.
        timestamp = <int64_t> (<uint64_t> base_timestamp + <uint64_t> record.timestamp_delta)
        if timestamp < tally.oldest:
            tally.oldest = timestamp
        if timestamp > tally.newest:
            tally.newest = timestamp
        if record.key.size < 0 and tally.keyless < 0:
            tally.keyless = tally.count
        if record.offset_delta != tally.count:
            tally.is_in_sequence = False
        tally.position = cursor.position
        tally.count += 1
    if cursor.position != size:
        tally.fault = REST
    return tally


cdef inline Fault read_record(Cursor* cursor, Record* record) noexcept nogil:
    """Read the record at the cursor, which is behind it afterwards."""
    cdef Cursor within
    cdef int32_t length
    cdef Fault fault = read_varint(cursor, &length)
    if fault:
        return ENDS_EARLY if fault == FIELD else fault
    if length < 0 or length > cursor.end - cursor.position:
        return LENGTH
    if length == 0:
        return FIELD
    # The attributes byte says nothing yet; it is stepped over.
    within = Cursor(cursor.data, cursor.position + 1, cursor.position + length)
    cursor.position = within.end
    fault = read_varlong(&within, &record.timestamp_delta)
    if fault:
        return fault
    fault = read_varint(&within, &record.offset_delta)
    if fault:
        return fault
    fault = read_bytes(&within, &record.key)
    if fault:
        return fault
    fault = read_bytes(&within, &record.value)
    if fault:
        return fault
    fault = skip_headers(&within)
    if fault:
        return fault
    return NONE if within.position == within.end else RECORD_REST


cdef inline Fault skip_headers(Cursor* cursor) noexcept nogil:
    cdef Bytes each
    cdef int32_t count
    cdef Fault fault = read_varint(cursor, &count)
    if fault:
        return fault
    # Each takes two bytes at least.
    if count < 0 or count > (cursor.end - cursor.position) // 2:
        return HEADER_COUNT
    while count > 0:
        fault = read_bytes(cursor, &each)
        if fault:
            return fault
        if each.size < 0:
            return HEADER_KEY
        fault = read_bytes(cursor, &each)
        if fault:
            return fault
        count -= 1
    return NONE


cdef inline Fault read_bytes(Cursor* cursor, Bytes* found) noexcept nogil:
    """Read a length and step over its bytes. Every negative length is null, as in Kafka."""
    cdef Fault fault = read_varint(cursor, &found.size)
    if fault:
        return fault
    found.start = cursor.position
    if found.size > 0:
        if found.size > cursor.end - cursor.position:
            return FIELD
        cursor.position += found.size
    return NONE


cdef inline Fault read_varint(Cursor* cursor, int32_t* number) noexcept nogil:
    """Read a zigzag number; bits that are too many for its type are dropped, as in Kafka."""
    cdef uint32_t value = 0
    cdef int shift = 0
    cdef uint8_t byte
    while cursor.position < cursor.end:
        byte = cursor.data[cursor.position]
        cursor.position += 1
        value |= <uint32_t> (byte & 0x7F) << shift
        if byte < 0x80:
            number[0] = <int32_t> ((value >> 1) ^ (0 - (value & 1)))
            return NONE
        shift += 7
        if shift >= 32:
            return NUMBER
    return FIELD


cdef inline Fault read_varlong(Cursor* cursor, int64_t* number) noexcept nogil:
    cdef uint64_t value = 0
    cdef int shift = 0
    cdef uint8_t byte
    while cursor.position < cursor.end:
        byte = cursor.data[cursor.position]
        cursor.position += 1
        value |= <uint64_t> (byte & 0x7F) << shift
        if byte < 0x80:
            number[0] = <int64_t> ((value >> 1) ^ (0 - (value & 1)))
            return NONE
        shift += 7
        if shift >= 64:
            return NUMBER
    return FIELD
