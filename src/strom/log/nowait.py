# Compiled by mypyc.
"""What can be read of a file without waiting for the disk.

    RWF_NOWAIT (Linux 4.14)  reads what is in memory, and no more
    cachestat (Linux 6.5)    counts the pages of a range that are, for the price of one call
    neither (macOS)          nobody can tell: HAS_NOWAIT is False, and nothing here may be called

They are compiled (`_nowait.pyx`) where the install could build that, and by `os` and ctypes
otherwise: each MB that is sent asks four times.
"""

import errno
import os
from collections.abc import Callable
from functools import cache

__all__ = [
    "HAS_NOWAIT",
    "IS_COMPILED",
    "UNCOUNTED",
    "can_read",
    "count_pages",
    "plain_can_read",
    "plain_count_pages",
    "plain_read_now",
    "read_now",
    "tells_nothing",
]

HAS_NOWAIT = hasattr(os, "preadv") and hasattr(os, "RWF_NOWAIT")
#: The number of the system call.
CACHESTAT = 451
#: Where nobody counts pages.
UNCOUNTED = -1


def plain_read_now(fd: int, position: int, size: int) -> bytes | None:
    """Return what is there, as far as it is in memory; None if nothing of it is."""
    data = bytearray(size)
    try:
        count = os.preadv(fd, [data], position, os.RWF_NOWAIT)
    except BlockingIOError:
        return None
    return bytes(data[:count])


def plain_can_read(fd: int, position: int) -> bool:
    """Tell whether a byte is in memory; True where its file system does not tell."""
    try:
        return plain_read_now(fd, position, 1) is not None
    except OSError as error:
        if not tells_nothing(error):
            raise
    return True


def plain_count_pages(fd: int, position: int, size: int) -> int:
    """Return how many pages of the range are in memory; UNCOUNTED if the system does not say."""
    return _ask_cachestat()(fd, position, size)


@cache
def _ask_cachestat() -> Callable[[int, int, int], int]:
    import ctypes  # a broker that has sent nothing yet does without it

    call = ctypes.CDLL(None).syscall

    def count(fd: int, position: int, size: int) -> int:
        asked = (ctypes.c_uint64 * 2)(position, size)
        told = (ctypes.c_uint64 * 5)()
        return int(told[0]) if call(CACHESTAT, fd, asked, told, 0) == 0 else UNCOUNTED

    return count


def tells_nothing(error: OSError) -> bool:
    """Whether a file system (a memory one, for instance) does not know the flag, nor need it."""
    return error.errno in (errno.EOPNOTSUPP, errno.ENOTSUP)


try:
    from strom.log._nowait import can_read, count_pages, read_now
except ImportError:
    can_read, count_pages, read_now = plain_can_read, plain_count_pages, plain_read_now
    IS_COMPILED = False
else:
    IS_COMPILED = True
