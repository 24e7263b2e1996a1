# cython: language_level=3
"""The walk over the records of a batch, compiled.

It does what `plain_walk` does, which is the place to look up what the facts and faults mean.
Each pass is a loop around `read_record` of `_record.pxd`, which reads no byte outside of the
range that it is given.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from strom.records._record cimport (
    NONE,
    REST,
    Cursor,
    Fault,
    Record,
    read_record,
    read_varint,
    read_varlong,
)

from strom.records.plain_walk import MAP_ENTRY_BYTES, BrokenRecordsError, Facts, Sifted

cdef object make_tuple = tuple.__new__

cdef int64_t NO_TIMESTAMP = -1

# Shorter ones are done sooner than another thread would get going.
cdef Py_ssize_t GIL_FREE_BYTES_MIN = 64 * 1024

cdef struct Tally:
    Fault fault
    Py_ssize_t count
    Py_ssize_t position
    int64_t oldest
    int64_t newest
    Py_ssize_t keyless
    bint is_in_sequence


# A key as 128 bits of SipHash, of which nobody outside can find two alike, and where it was last
# seen. What is free is all zeros, as the system gives it: memory that is not needed is not taken.
cdef struct Entry:
    uint64_t low
    uint64_t high
    # One more than the offset.
    int64_t seen

cdef struct Sieve:
    Fault fault
    Py_ssize_t index
    Py_ssize_t kept
    Py_ssize_t size
    int64_t newest
    bint has_tombstones


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


# The cleaner's passes. Whatever a record's bytes are, what they do is in `plain_walk`.


cdef class OffsetMap:
    """The newest offset of each key, in a table that never grows."""

    cdef Entry* entries
    cdef uint64_t slots
    cdef uint64_t first_seed
    cdef uint64_t second_seed
    cdef readonly Py_ssize_t size
    cdef readonly Py_ssize_t size_max

    def __cinit__(self, Py_ssize_t memory_bytes, double load_factor, bytes seed):
        # One is always free, so that every search ends.
        self.slots = max(memory_bytes // MAP_ENTRY_BYTES, 2)
        self.size_max = min(max(<Py_ssize_t> (self.slots * load_factor), 1), self.slots - 1)
        memcpy(&self.first_seed, <const char*> seed, 8)
        memcpy(&self.second_seed, <const char*> seed + 8, 8)
        self.entries = <Entry*> calloc(self.slots, sizeof(Entry))
        if self.entries == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.entries)

    def add(
        self,
        data,
        Py_ssize_t start,
        Py_ssize_t stop,
        Py_ssize_t count,
        int64_t base_offset,
        int64_t first_offset,
    ):
        """Note the keys of the records from the first offset on; False if they do not all fit."""
        cdef Py_buffer view
        cdef Sieve sieve
        cdef bint fits = True
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            check_range(start, stop, view.len)
            with nogil:
                sieve = self.take_keys(
                    Cursor(<const uint8_t*> view.buf, start, stop), count, base_offset,
                    first_offset, &fits,
                )
        finally:
            PyBuffer_Release(&view)
        if fits and sieve.fault:
            raise BrokenRecordsError(sieve.fault, sieve.index)
        return fits

    cdef Sieve take_keys(
        self,
        Cursor cursor,
        Py_ssize_t count,
        int64_t base_offset,
        int64_t first_offset,
        bint* fits,
    ) noexcept nogil:
        cdef Sieve sieve = Sieve(NONE, 0, 0, 0, NO_TIMESTAMP, False)
        cdef Record record
        cdef Entry* entry
        cdef int64_t offset
        while sieve.index < count:
            sieve.fault = read_record(&cursor, &record)
            if sieve.fault:
                return sieve
            offset = base_offset + record.offset_delta
            if record.key.size >= 0 and offset >= first_offset:
                entry = self.find(cursor.data + record.key.start, record.key.size)
                if entry.seen == 0:
                    if self.size >= self.size_max:
                        fits[0] = False
                        return sieve
                    self.size += 1
                entry.seen = offset + 1
            sieve.index += 1
        if cursor.position != cursor.end:
            sieve.fault = REST
        return sieve

    def sift(
        self,
        data,
        Py_ssize_t start,
        Py_ssize_t stop,
        Py_ssize_t count,
        int64_t base_offset,
        int64_t base_timestamp,
        int64_t latest_offset,
        bint keeps_tombstones,
    ):
        """Return the records that are still wanted."""
        cdef Py_buffer view
        cdef Sieve sieve
        records = bytearray(stop - start if stop > start else 0)
        cdef uint8_t* target = records
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            check_range(start, stop, view.len)
            with nogil:
                sieve = self.keep_wanted(
                    Cursor(<const uint8_t*> view.buf, start, stop), count, base_offset,
                    base_timestamp, latest_offset, keeps_tombstones, target,
                )
        finally:
            PyBuffer_Release(&view)
        if sieve.fault:
            raise BrokenRecordsError(sieve.fault, sieve.index)
        if sieve.kept == count:
            return Sifted(sieve.kept, sieve.newest, bool(sieve.has_tombstones), None)
        del records[sieve.size :]
        return Sifted(sieve.kept, sieve.newest, bool(sieve.has_tombstones), records)

    cdef Sieve keep_wanted(
        self,
        Cursor cursor,
        Py_ssize_t count,
        int64_t base_offset,
        int64_t base_timestamp,
        int64_t latest_offset,
        bint keeps_tombstones,
        uint8_t* target,
    ) noexcept nogil:
        cdef Sieve sieve = Sieve(NONE, 0, 0, 0, NO_TIMESTAMP, False)
        cdef Record record
        cdef Entry* entry
        cdef int64_t offset
        cdef int64_t timestamp
        cdef bint is_wanted
        cdef Py_ssize_t start
        # What is kept side by side is copied in one go, when the next one is dropped.
        cdef Py_ssize_t run = cursor.position
        while sieve.index < count:
            start = cursor.position
            sieve.fault = read_record(&cursor, &record)
            if sieve.fault:
                return sieve
            offset = base_offset + record.offset_delta
            if offset > latest_offset:
                is_wanted = True
            elif record.key.size < 0 or (record.value.size < 0 and not keeps_tombstones):
                is_wanted = False
            else:
                entry = self.find(cursor.data + record.key.start, record.key.size)
                is_wanted = offset >= entry.seen - 1
            if is_wanted:
                timestamp = <int64_t> (<uint64_t> base_timestamp + <uint64_t> record.timestamp_delta)
                if timestamp > sieve.newest:
                    sieve.newest = timestamp
                if record.value.size < 0:
                    sieve.has_tombstones = True
                sieve.kept += 1
            else:
                memcpy(target + sieve.size, cursor.data + run, start - run)
                sieve.size += start - run
                run = cursor.position
            sieve.index += 1
        if cursor.position != cursor.end:
            sieve.fault = REST
        elif sieve.kept < count:
            memcpy(target + sieve.size, cursor.data + run, cursor.position - run)
            sieve.size += cursor.position - run
        return sieve

    cdef inline Entry* find(self, const uint8_t* key, Py_ssize_t size) noexcept nogil:
        """Return the key's entry; a free one is given the key, and is free until it is seen."""
        cdef Entry wanted
        cdef Entry* entry
        cdef uint64_t slot
        hash_key(key, size, self.first_seed, self.second_seed, &wanted)
        slot = wanted.low % self.slots
        while True:
            entry = self.entries + slot
            if entry.seen == 0:
                entry.low = wanted.low
                entry.high = wanted.high
                return entry
            if entry.low == wanted.low and entry.high == wanted.high:
                return entry
            slot += 1
            if slot == self.slots:
                slot = 0


def rebase(data, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t count, int64_t shift):
    """Return the records with their times counted from a base that is so much later."""
    cdef Py_buffer view
    cdef Sieve sieve
    # A time and a length may each become as long as a number can.
    records = bytearray((stop - start if stop > start else 0) + 14 * max(count, 0))
    cdef uint8_t* target = records
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        check_range(start, stop, view.len)
        with nogil:
            sieve = shift_times(Cursor(<const uint8_t*> view.buf, start, stop), count, shift, target)
    finally:
        PyBuffer_Release(&view)
    if sieve.fault:
        raise BrokenRecordsError(sieve.fault, sieve.index)
    del records[sieve.size :]
    return records


cdef Sieve shift_times(
    Cursor cursor, Py_ssize_t count, int64_t shift, uint8_t* target
) noexcept nogil:
    cdef Sieve sieve = Sieve(NONE, 0, 0, 0, NO_TIMESTAMP, False)
    cdef Record record
    cdef Cursor within
    cdef int32_t length
    cdef int64_t timestamp_delta
    cdef uint8_t number[10]
    cdef Py_ssize_t number_size
    while sieve.index < count:
        within = cursor
        sieve.fault = read_record(&cursor, &record)
        if sieve.fault:
            return sieve
        read_varint(&within, &length)
        within.position += 1
        read_varlong(&within, &timestamp_delta)
        timestamp_delta = <int64_t> (<uint64_t> timestamp_delta - <uint64_t> shift)
        number_size = write_varlong(number, timestamp_delta)
        length = <int32_t> (1 + number_size + cursor.position - within.position)
        sieve.size += write_varlong(target + sieve.size, length)
        target[sieve.size] = 0
        memcpy(target + sieve.size + 1, number, number_size)
        sieve.size += 1 + number_size
        memcpy(
            target + sieve.size, cursor.data + within.position, cursor.position - within.position
        )
        sieve.size += cursor.position - within.position
        sieve.index += 1
    if cursor.position != cursor.end:
        sieve.fault = REST
    return sieve


cdef inline Py_ssize_t write_varlong(uint8_t* target, int64_t number) noexcept nogil:
    cdef uint64_t value = (<uint64_t> number << 1) ^ <uint64_t> (number >> 63)
    cdef Py_ssize_t size = 0
    while value > 0x7F:
        target[size] = <uint8_t> ((value & 0x7F) | 0x80)
        value >>= 7
        size += 1
    target[size] = <uint8_t> value
    return size + 1


cdef int check_range(Py_ssize_t start, Py_ssize_t stop, Py_ssize_t size) except -1:
    if not 0 <= start <= stop <= size:
        raise ValueError(f"no bytes {start} to {stop} among {size}")
    return 0


cdef inline uint64_t rotate(uint64_t value, int bits) noexcept nogil:
    return (value << bits) | (value >> (64 - bits))


cdef inline void stir(uint64_t* v, int rounds) noexcept nogil:
    while rounds > 0:
        v[0] += v[1]
        v[1] = rotate(v[1], 13) ^ v[0]
        v[0] = rotate(v[0], 32)
        v[2] += v[3]
        v[3] = rotate(v[3], 16) ^ v[2]
        v[0] += v[3]
        v[3] = rotate(v[3], 21) ^ v[0]
        v[2] += v[1]
        v[1] = rotate(v[1], 17) ^ v[2]
        v[2] = rotate(v[2], 32)
        rounds -= 1


cdef inline void hash_key(
    const uint8_t* key, Py_ssize_t size, uint64_t first_seed, uint64_t second_seed, Entry* found
) noexcept nogil:
    """Compute SipHash-2-4 with 128 bits."""
    cdef uint64_t v[4]
    cdef uint64_t word
    cdef Py_ssize_t position = 0
    v[0] = first_seed ^ <uint64_t> 0x736f6d6570736575
    v[1] = second_seed ^ <uint64_t> 0x646f72616e646f6d ^ 0xee
    v[2] = first_seed ^ <uint64_t> 0x6c7967656e657261
    v[3] = second_seed ^ <uint64_t> 0x7465646279746573
    while size - position >= 8:
        memcpy(&word, key + position, 8)
        v[3] ^= word
        stir(v, 2)
        v[0] ^= word
        position += 8
    word = 0
    memcpy(&word, key + position, size - position)
    word |= <uint64_t> (size & 0xff) << 56
    v[3] ^= word
    stir(v, 2)
    v[0] ^= word
    v[2] ^= 0xee
    stir(v, 4)
    found.low = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xdd
    stir(v, 4)
    found.high = v[0] ^ v[1] ^ v[2] ^ v[3]
