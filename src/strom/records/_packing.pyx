# cython: language_level=3
"""Rows into records, compiled: no object for any row.

It does what `plain_packing` does, which is the place to look up what is taken and handed out.
The columns are trusted to be what Arrow makes of them: nobody sends them over a network.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from strom.records.batch import HEADER_SIZE
from strom.records.plain_packing import RECORD_BYTES_MAX, NoSuchPartitionError, Spread

cdef Py_ssize_t HEADER_ROOM = HEADER_SIZE
cdef Py_ssize_t FIXED_BYTES_MAX = RECORD_BYTES_MAX
cdef uint32_t SEED = 0x9747B28C
cdef uint32_t MIXER = 0x5BD1E995
cdef int32_t NO_ROW = -1


cdef class Block:
    """Memory that who holds it reads and writes as a buffer."""

    cdef uint8_t* data
    cdef Py_ssize_t size
    cdef Py_ssize_t capacity

    def __dealloc__(self):
        free(self.data)

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self.data, self.size, 0, flags)

    cdef int reserve(self, Py_ssize_t size) except -1:
        """See that so many bytes can be written; what is there stays."""
        cdef Py_ssize_t capacity
        cdef uint8_t* data
        if size <= self.capacity:
            return 0
        capacity = max(size, self.capacity + self.capacity // 2, 4096)
        data = <uint8_t*> realloc(self.data, capacity)
        if data == NULL:
            raise MemoryError
        self.data = data
        self.capacity = capacity
        return 0


cdef struct Column:
    # Ends of texts or lists, or the numbers themselves, from the first row on.
    const int32_t* numbers
    const uint8_t* data
    # NULL: no row is null. Bits count from the beginning of the larger column.
    const uint8_t* valid
    Py_ssize_t first


cdef class Held:
    """A buffer that stays where it is while this lives."""

    cdef Py_buffer view
    cdef bint is_held

    def __cinit__(self, owner):
        self.is_held = False
        if owner is not None:
            PyObject_GetBuffer(owner, &self.view, PyBUF_SIMPLE)
            self.is_held = True

    def __dealloc__(self):
        if self.is_held:
            PyBuffer_Release(&self.view)

    cdef const uint8_t* start(self) noexcept:
        return <const uint8_t*> self.view.buf if self.is_held else NULL


cdef Column column_of(numbers, data, valid, Py_ssize_t first, list held):
    """Return where the column's parts are; `held` keeps them there."""
    cdef Held kept_numbers = Held(numbers)
    cdef Held kept_data = Held(data)
    cdef Held kept_valid = Held(valid)
    held += (kept_numbers, kept_data, kept_valid)
    return Column(
        <const int32_t*> kept_numbers.start() + first,
        kept_data.start(),
        kept_valid.start(),
        first,
    )


cdef Column texts_of(texts, list held):
    return column_of(texts.ends, texts.data, texts.valid, texts.first, held)


cdef inline bint is_valid(const Column* column, Py_ssize_t row) noexcept nogil:
    cdef Py_ssize_t at
    if column.valid == NULL:
        return True
    at = column.first + row
    return (column.valid[at >> 3] >> (at & 7)) & 1


cdef inline int32_t size_of(const Column* column, Py_ssize_t row) noexcept nogil:
    """How long the row's text is, -1 if it is null."""
    if column.numbers == NULL or not is_valid(column, row):
        return -1
    return column.numbers[row + 1] - column.numbers[row]


cdef Column NO_COLUMN
NO_COLUMN.numbers = NULL
NO_COLUMN.data = NULL
NO_COLUMN.valid = NULL
NO_COLUMN.first = 0


# Which partition.


cdef uint32_t murmur2(const uint8_t* key, int32_t size) noexcept nogil:
    cdef uint32_t found = SEED ^ <uint32_t> size
    cdef uint32_t part
    cdef int32_t at = 0
    cdef int32_t whole = size - size % 4
    while at < whole:
        part = (
            <uint32_t> key[at]
            | <uint32_t> key[at + 1] << 8
            | <uint32_t> key[at + 2] << 16
            | <uint32_t> key[at + 3] << 24
        )
        part *= MIXER
        part ^= part >> 24
        found = (found * MIXER) ^ (part * MIXER)
        at += 4
    if size > whole:
        if size > whole + 2:
            found ^= <uint32_t> key[whole + 2] << 16
        if size > whole + 1:
            found ^= <uint32_t> key[whole + 1] << 8
        found = (found ^ <uint32_t> key[whole]) * MIXER
    found ^= found >> 13
    found *= MIXER
    return found ^ (found >> 15)


cdef class Spreader:
    """Chooses each row's partition as Kafka's producers do."""

    cdef int32_t count
    cdef int32_t turn
    cdef int64_t sticky_bytes
    cdef int64_t stuck_bytes
    cdef bint ignores_keys

    def __cinit__(self, partition_count, turn, sticky_bytes, ignores_keys):
        self.count = partition_count
        self.turn = turn % partition_count
        self.sticky_bytes = sticky_bytes
        self.ignores_keys = ignores_keys
        self.stuck_bytes = 0

    def spread(self, rows, partitions=None):
        """Return the rows by partition."""
        cdef list held = []
        cdef Py_ssize_t count = rows.row_count
        cdef Column keys = NO_COLUMN
        cdef Column values = texts_of(rows.values, held)
        cdef Column named = NO_COLUMN
        cdef Block chosen = Block()
        cdef Block order = Block()
        cdef Block starts = Block()
        cdef int32_t refused
        if rows.keys is not None:
            keys = texts_of(rows.keys, held)
        if partitions is not None:
            named = column_of(partitions.values, None, partitions.valid, partitions.first, held)
        chosen.reserve(4 * count)
        order.reserve(4 * count)
        starts.reserve(4 * (self.count + 1))
        with nogil:
            refused = self.choose(&named, &keys, &values, <int32_t*> chosen.data, count)
        if refused >= 0:
            raise NoSuchPartitionError(named.numbers[refused])
        with nogil:
            arrange(
                <int32_t*> chosen.data, count,
                <int32_t*> starts.data, self.count, <int32_t*> order.data,
            )
        order.size = 4 * count
        bounds = tuple([(<int32_t*> starts.data)[each] for each in range(self.count + 1)])
        return Spread(order, bounds)

    cdef int32_t choose(
        self, Column* named, Column* keys, Column* values, int32_t* chosen, Py_ssize_t count
    ) noexcept nogil:
        """Choose for every row; return the first that names what there is not, -1 if none."""
        cdef Py_ssize_t row
        cdef int32_t size
        for row in range(count):
            if named.numbers != NULL and is_valid(named, row):
                if named.numbers[row] < 0 or named.numbers[row] >= self.count:
                    return <int32_t> row
                chosen[row] = named.numbers[row]
                continue
            size = size_of(keys, row)
            if size >= 0 and not self.ignores_keys:
                chosen[row] = <int32_t> (
                    (murmur2(keys.data + keys.numbers[row], size) & 0x7FFFFFFF)
                    % <uint32_t> self.count
                )
                continue
            if self.stuck_bytes >= self.sticky_bytes:
                self.turn = (self.turn + 1) % self.count
                self.stuck_bytes = 0
            self.stuck_bytes += max(size, 0) + max(size_of(values, row), 0) + FIXED_BYTES_MAX
            chosen[row] = self.turn
        return NO_ROW


cdef void arrange(
    const int32_t* chosen, Py_ssize_t count,
    int32_t* starts, int32_t partition_count, int32_t* order,
) noexcept nogil:
    """Sort the rows by partition, keeping their order; starts gets where each partition's begin."""
    cdef Py_ssize_t row
    cdef int32_t partition
    memset(starts, 0, 4 * (partition_count + 1))
    for row in range(count):
        starts[chosen[row] + 1] += 1
    for partition in range(partition_count):
        starts[partition + 1] += starts[partition]
    for row in range(count):
        order[starts[chosen[row]]] = <int32_t> row
        starts[chosen[row]] += 1
    # Each start has become its end, which is the start of the next one.
    for partition in range(partition_count, 0, -1):
        starts[partition] = starts[partition - 1]
    starts[0] = 0


# The records.


cdef struct Source:
    Column keys
    Column values
    # Without headers its numbers are NULL.
    Column headers
    Column names
    Column contents


cdef class Packer:
    """The records of one batch in the making, with room for the batch's header in front."""

    cdef readonly Py_ssize_t count
    cdef readonly Py_ssize_t size_bytes
    cdef Block block

    def __cinit__(self):
        self.clear()

    cdef clear(self):
        self.count = 0
        self.size_bytes = HEADER_ROOM
        self.block = Block()

    def add(self, rows, spread, Py_ssize_t first, Py_ssize_t stop, Py_ssize_t size_bytes_max):
        """Add spread.rows[first:stop] until the batch has that size; return the first left out."""
        cdef list held = []
        cdef Source source
        cdef Held order = Held(spread.rows)
        cdef const int32_t* chosen = <const int32_t*> order.start()
        source.keys = source.headers = source.names = source.contents = NO_COLUMN
        source.values = texts_of(rows.values, held)
        if rows.keys is not None:
            source.keys = texts_of(rows.keys, held)
        if rows.headers is not None:
            source.headers = column_of(
                rows.headers.ends, None, rows.headers.valid, rows.headers.first, held
            )
            source.names = texts_of(rows.headers.names, held)
            source.contents = texts_of(rows.headers.contents, held)
        while first < stop and self.add_one(&source, chosen[first], size_bytes_max):
            first += 1
        return first

    cdef bint add_one(
        self, const Source* source, Py_ssize_t row, Py_ssize_t size_bytes_max
    ) except -1:
        """Add a row if it fits, or if it is the first; return whether it was added."""
        cdef int64_t size = body_size(source, row, self.count)
        cdef Py_ssize_t end = self.size_bytes + width(size) + size
        if end > size_bytes_max and self.count > 0:
            return False
        if end > self.block.capacity:
            # Nearly all batches get full, and the memory of one that does not costs nothing.
            self.block.reserve(max(end, size_bytes_max))
        write_record(self.block.data + self.size_bytes, source, row, self.count, size)
        self.size_bytes = end
        self.count += 1
        return True

    def take(self):
        """Hand out the room for the header and the records behind it, and begin anew."""
        cdef Block block = self.block
        # Without any record nothing has been reserved.
        block.reserve(self.size_bytes)
        memset(block.data, 0, HEADER_ROOM)
        block.size = self.size_bytes
        self.clear()
        return memoryview(block)


cdef inline int width(int64_t number) noexcept nogil:
    """How many bytes the number takes."""
    cdef uint64_t value = <uint64_t> number << 1 ^ <uint64_t> (number >> 63)
    cdef int size = 1
    while value > 0x7F:
        value >>= 7
        size += 1
    return size


cdef inline uint8_t* put(uint8_t* at, int64_t number) noexcept nogil:
    """Write the number zigzag; return where it ends."""
    cdef uint64_t value = <uint64_t> number << 1 ^ <uint64_t> (number >> 63)
    while value > 0x7F:
        at[0] = <uint8_t> (value & 0x7F) | 0x80
        at += 1
        value >>= 7
    at[0] = <uint8_t> value
    return at + 1


cdef inline uint8_t* put_text(uint8_t* at, const Column* column, Py_ssize_t row) noexcept nogil:
    cdef int32_t size = size_of(column, row)
    at = put(at, size)
    if size > 0:
        memcpy(at, column.data + column.numbers[row], size)
        at += size
    return at


cdef inline int64_t text_size(const Column* column, Py_ssize_t row) noexcept nogil:
    cdef int32_t size = size_of(column, row)
    return width(size) + max(size, 0)


cdef inline int64_t body_size(const Source* source, Py_ssize_t row, int64_t index) noexcept nogil:
    """How long the record is behind its length: attributes and time take a byte each."""
    cdef int64_t size = 2 + width(index)
    cdef int32_t count
    cdef int32_t each
    size += text_size(&source.keys, row) + text_size(&source.values, row)
    count = max(size_of(&source.headers, row), 0)
    size += width(count)
    if count > 0:
        for each in range(source.headers.numbers[row], source.headers.numbers[row + 1]):
            size += text_size(&source.names, each) + text_size(&source.contents, each)
    return size


cdef inline void write_record(
    uint8_t* at, const Source* source, Py_ssize_t row, int64_t index, int64_t size
) noexcept nogil:
    cdef int32_t count = max(size_of(&source.headers, row), 0)
    cdef int32_t each
    at = put(at, size)
    at[0] = at[1] = 0
    at = put(at + 2, index)
    at = put_text(at, &source.keys, row)
    at = put_text(at, &source.values, row)
    at = put(at, count)
    if count > 0:
        for each in range(source.headers.numbers[row], source.headers.numbers[row + 1]):
            at = put_text(at, &source.names, each)
            at = put_text(at, &source.contents, each)
