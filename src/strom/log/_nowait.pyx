# cython: language_level=3
"""What can be read of a file without waiting for the disk, asked of Linux itself.

It does what the plain functions of `nowait` do, which say what it means. Nobody waits here, so
the interpreter is not let go meanwhile.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.exc cimport PyErr_SetFromErrno
from libc.errno cimport EAGAIN, EOPNOTSUPP, errno
from libc.stdint cimport int64_t, uint64_t

cdef extern from "<sys/uio.h>" nogil:
    struct iovec:
        void* iov_base
        size_t iov_len
    int RWF_NOWAIT
    ssize_t preadv2(int fd, const iovec* parts, int count, int64_t position, int flags)

cdef extern from "<unistd.h>" nogil:
    long syscall(long number, ...)

cdef enum:
    CACHESTAT = 451

cdef struct Range:
    uint64_t position
    uint64_t size

cdef struct Counts:
    uint64_t cached
    uint64_t dirty
    uint64_t written_back
    uint64_t evicted
    uint64_t recently_evicted


cdef inline ssize_t try_read(int fd, void* target, size_t size, int64_t position) noexcept nogil:
    cdef iovec part
    part.iov_base = target
    part.iov_len = size
    return preadv2(fd, &part, 1, position, RWF_NOWAIT)


def read_now(int fd, int64_t position, Py_ssize_t size):
    """Return what is there, as far as it is in memory; None if nothing of it is."""
    cdef bytes data = PyBytes_FromStringAndSize(NULL, size)
    cdef ssize_t count = try_read(fd, PyBytes_AS_STRING(data), size, position)
    if count == size:
        return data
    if count >= 0:
        return data[:count]
    if errno == EAGAIN:
        return None
    PyErr_SetFromErrno(OSError)


def can_read(int fd, int64_t position):
    """Tell whether a byte is in memory; True where its file system does not tell."""
    cdef char byte
    if try_read(fd, &byte, 1, position) >= 0 or errno == EOPNOTSUPP:
        return True
    if errno == EAGAIN:
        return False
    PyErr_SetFromErrno(OSError)


def count_pages(int fd, int64_t position, int64_t size):
    """Return how many pages of the range are in memory; -1 if the system does not count them."""
    cdef Range asked
    cdef Counts told
    asked.position = position
    asked.size = size
    if syscall(CACHESTAT, <long> fd, &asked, &told, 0) != 0:
        return -1
    return told.cached
