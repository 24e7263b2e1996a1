# cython: language_level=3
"""The form of a record, for compiled code: the one place that knows it.

`read_record` makes no object, so whatever wants to look into many records (a check, a cleaner,
a decoder of columns) is a loop around it.

No byte outside of the given range is read, whatever the bytes are: `Cursor.position` never
passes `Cursor.end`, and a length is compared with what is left before it is added.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

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
    # Where the count of the headers stands.
    Py_ssize_t headers


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
    record.headers = within.position
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
