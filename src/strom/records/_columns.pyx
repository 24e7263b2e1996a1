# cython: language_level=3
"""The records of batches as columns, compiled: no object for any record.

It does what `plain_columns` does, which is the place to look up what is handed out. The columns
are filled in memory that grows ahead of each batch, by what its bytes could hold at most; memory
that is reserved and not written to costs nothing.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport INT32_MAX, INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from strom.records._record cimport (
    NONE,
    REST,
    Bytes,
    Cursor,
    Fault,
    Record,
    read_bytes,
    read_record,
    read_varint,
)

from strom.records.plain_columns import RECORD_BYTES_MIN, HeaderColumns, Taken, Texts
from strom.records.plain_walk import BrokenRecordsError

cdef int64_t MICROS = 1000


cdef class Block:
    """Memory that grows while it is filled, and is then read as a buffer by who holds it."""

    cdef uint8_t* data
    cdef Py_ssize_t size
    cdef Py_ssize_t capacity

    def __dealloc__(self):
        free(self.data)

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self.data, self.size, 1, flags)

    cdef int reserve(self, Py_ssize_t size) except -1:
        """See that so many bytes can be written; what is there stays."""
        cdef Py_ssize_t capacity = max(size, 2 * self.capacity, 64)
        cdef uint8_t* data
        if size <= self.capacity:
            return 0
        data = <uint8_t*> realloc(self.data, capacity)
        if data == NULL:
            raise MemoryError
        self.data = data
        self.capacity = capacity
        return 0


# A column while it is filled: where each text ends, the texts, a bit for each that is no null.
cdef struct Writer:
    int32_t* ends
    uint8_t* data
    uint8_t* valid
    Py_ssize_t rows
    Py_ssize_t nulls
    bint is_wide


cdef class TextColumn:
    """A column of texts in the making."""

    cdef Block ends
    cdef Block data
    cdef Block valid
    cdef Writer writer

    def __cinit__(self):
        self.ends, self.data, self.valid = Block(), Block(), Block()
        self.writer = Writer(NULL, NULL, NULL, 0, 0, False)
        self.reserve(0, 0)
        self.writer.ends[0] = 0

    cdef int reserve(self, Py_ssize_t rows, Py_ssize_t size) except -1:
        """See that so many more texts of so many bytes together can be written."""
        cdef Writer* writer = &self.writer
        cdef Py_ssize_t bits = (writer.rows + 7) // 8
        cdef Py_ssize_t used = writer.ends[writer.rows] if writer.ends != NULL else 0
        if used + size > INT32_MAX:
            raise OverflowError("a column of texts is larger than 2 GiB")
        self.ends.reserve(4 * (writer.rows + rows + 1))
        self.data.reserve(used + size)
        self.valid.reserve((writer.rows + rows + 7) // 8)
        writer.ends = <int32_t*> self.ends.data
        writer.data = self.data.data
        writer.valid = self.valid.data
        memset(writer.valid + bits, 0, (writer.rows + rows + 7) // 8 - bits)
        return 0

    cdef object take(self):
        cdef Writer* writer = &self.writer
        self.ends.size = 4 * (writer.rows + 1)
        self.data.size = writer.ends[writer.rows]
        self.valid.size = (writer.rows + 7) // 8
        return Texts(
            self.ends, self.data, self.valid if writer.nulls else None, bool(writer.is_wide)
        )


cdef inline void put(Writer* writer, const uint8_t* data, Bytes text) noexcept nogil:
    """Write one text, or null, behind the others."""
    cdef Py_ssize_t row = writer.rows
    cdef int32_t end = writer.ends[row]
    if text.size > 0:
        memcpy(writer.data + end, data + text.start, text.size)
        end += text.size
    if text.size >= 0:
        writer.valid[row >> 3] |= <uint8_t> (1 << (row & 7))
    else:
        writer.nulls += 1
    writer.ends[row + 1] = end
    writer.rows = row + 1


cdef inline void put_name(Writer* writer, const uint8_t* data, Bytes text) noexcept nogil:
    """As `put`, noting whether there is more than ASCII in it."""
    cdef Py_ssize_t index
    put(writer, data, text)
    for index in range(text.start, text.start + text.size):
        if data[index] >= 0x80:
            writer.is_wide = True
            return


cdef struct Target:
    Writer* keys
    Writer* values
    Writer* names
    Writer* contents
    int32_t* header_ends
    int64_t* offsets
    int64_t* timestamps
    int32_t* kinds
    Py_ssize_t rows

cdef struct Source:
    Py_ssize_t count
    int64_t base_offset
    int64_t base_timestamp
    int64_t append_time
    int32_t kind
    int64_t first
    int64_t end


cdef class Columns:
    """The records of some batches of one partition, side by side."""

    cdef readonly bint with_headers
    cdef readonly Py_ssize_t count
    cdef TextColumn keys
    cdef TextColumn values
    cdef TextColumn names
    cdef TextColumn contents
    cdef Block header_ends
    cdef Block offsets
    cdef Block timestamps
    cdef Block kinds

    def __cinit__(self, bint with_headers):
        self.with_headers = with_headers
        self.clear()

    cdef clear(self):
        self.count = 0
        self.keys, self.values = TextColumn(), TextColumn()
        self.offsets, self.timestamps, self.kinds = Block(), Block(), Block()
        if self.with_headers:
            self.names, self.contents, self.header_ends = TextColumn(), TextColumn(), Block()
            self.header_ends.reserve(4)
            (<int32_t*> self.header_ends.data)[0] = 0

    @property
    def size_bytes(self):
        """About how much memory the records take here."""
        cdef Py_ssize_t size = 28 * self.count
        size += self.keys.writer.ends[self.keys.writer.rows]
        size += self.values.writer.ends[self.values.writer.rows]
        if self.with_headers:
            size += 10 * self.names.writer.rows
            size += self.names.writer.ends[self.names.writer.rows]
            size += self.contents.writer.ends[self.contents.writer.rows]
        return size

    def add(self, data, Py_ssize_t start, Py_ssize_t stop, header, int64_t first, int64_t end):
        """Add the records in data[start:stop] that are at `first` or behind, and before `end`."""
        cdef Py_buffer view
        cdef Source source
        cdef Py_ssize_t index = 0
        cdef Fault fault
        source.count = header.record_count
        source.base_offset = header.base_offset
        source.base_timestamp = header.base_timestamp
        source.append_time = header.max_timestamp
        source.kind = 1 if header.has_append_time else 0
        source.first, source.end = first, end
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            if not 0 <= start <= stop <= view.len:
                raise ValueError(f"no bytes {start} to {stop} among {view.len}")
            fault = self.fill(Cursor(<const uint8_t*> view.buf, start, stop), source, &index)
        finally:
            PyBuffer_Release(&view)
        if fault:
            raise BrokenRecordsError(fault, index)

    cdef Fault fill(self, Cursor cursor, Source source, Py_ssize_t* index) except *:
        cdef Py_ssize_t size = cursor.end - cursor.position
        # What the header claims beyond what its bytes could hold is found out on the way.
        cdef Py_ssize_t rows = min(max(source.count, 0), size // <Py_ssize_t> RECORD_BYTES_MIN)
        cdef Target target
        cdef Fault fault
        self.reserve(rows, size)
        target.keys, target.values = &self.keys.writer, &self.values.writer
        target.names = target.contents = NULL
        target.header_ends = NULL
        if self.with_headers:
            target.names, target.contents = &self.names.writer, &self.contents.writer
            target.header_ends = <int32_t*> self.header_ends.data
        target.offsets = <int64_t*> self.offsets.data
        target.timestamps = <int64_t*> self.timestamps.data
        target.kinds = <int32_t*> self.kinds.data
        target.rows = self.count
        with nogil:
            fault = copy_records(&cursor, &source, &target, index)
        self.count = target.rows
        return fault

    cdef int reserve(self, Py_ssize_t rows, Py_ssize_t size) except -1:
        self.keys.reserve(rows, size)
        self.values.reserve(rows, size)
        self.offsets.reserve(8 * (self.count + rows))
        self.timestamps.reserve(8 * (self.count + rows))
        self.kinds.reserve(4 * (self.count + rows))
        if self.with_headers:
            # A header takes two bytes at least.
            self.names.reserve(size // 2, size)
            self.contents.reserve(size // 2, size)
            self.header_ends.reserve(4 * (self.count + rows + 1))
        return 0

    def take(self):
        """Hand out what was added, and begin anew."""
        headers = None
        self.offsets.size = self.timestamps.size = 8 * self.count
        self.kinds.size = 4 * self.count
        if self.with_headers:
            self.header_ends.size = 4 * (self.count + 1)
            headers = HeaderColumns(self.header_ends, self.names.take(), self.contents.take())
        taken = Taken(
            self.count,
            self.keys.take(),
            self.values.take(),
            self.offsets,
            self.timestamps,
            self.kinds,
            headers,
        )
        self.clear()
        return taken


cdef Fault copy_records(
    Cursor* cursor, Source* source, Target* target, Py_ssize_t* index
) noexcept nogil:
    """Read all records and write those that are wanted."""
    cdef Record record
    cdef int64_t offset
    cdef int64_t timestamp
    cdef Fault fault
    while index[0] < source.count:
        fault = read_record(cursor, &record)
        if fault:
            return fault
        offset = source.base_offset + record.offset_delta
        if source.first <= offset < source.end:
            # Unsigned, because a sum that is too large is defined then.
            timestamp = <int64_t> (
                <uint64_t> source.base_timestamp + <uint64_t> record.timestamp_delta
            )
            target.offsets[target.rows] = offset
            target.timestamps[target.rows] = to_micros(
                source.append_time if source.kind else timestamp
            )
            target.kinds[target.rows] = source.kind
            put(target.keys, cursor.data, record.key)
            put(target.values, cursor.data, record.value)
            if target.header_ends != NULL:
                copy_headers(Cursor(cursor.data, record.headers, cursor.position), target)
            target.rows += 1
        index[0] += 1
    return NONE if cursor.position == cursor.end else REST


cdef inline void copy_headers(Cursor cursor, Target* target) noexcept nogil:
    """Write a record's headers, which `read_record` has found to be whole."""
    cdef int32_t count
    cdef Bytes name = Bytes(0, -1)
    cdef Bytes content = Bytes(0, -1)
    read_varint(&cursor, &count)
    while count > 0:
        read_bytes(&cursor, &name)
        read_bytes(&cursor, &content)
        put_name(target.names, cursor.data, name)
        put(target.contents, cursor.data, content)
        count -= 1
    target.header_ends[target.rows + 1] = <int32_t> target.names.rows


cdef inline int64_t to_micros(int64_t milliseconds) noexcept nogil:
    """A time beyond what 64 bits hold as microseconds becomes the last, or first, that they do."""
    if milliseconds > INT64_MAX // MICROS:
        return INT64_MAX
    if milliseconds < INT64_MIN // MICROS:
        return INT64_MIN
    return milliseconds * MICROS
