"""What the system has in memory of a file, so that nobody waits for a disk on the loop.

    cachestat (Linux 6.5)    tells of every page, for the price of one call
    RWF_NOWAIT (Linux 4.14)  tells of the pages that are tried: the ends, or one every STEP_BYTES
    neither (macOS)          nobody can tell; what has just been written is taken to be there

Both of Linux are asked: cachestat also counts pages that are still on their way from the disk.
"""

import errno
import os
import sys
import time
from functools import cache
from typing import Protocol

HAS_NOWAIT = hasattr(os, "preadv") and hasattr(os, "RWF_NOWAIT")
#: Without cachestat: how far apart the pages are that are tried. Linux reads ahead so much.
STEP_BYTES = 1 << 17
#: Where nobody can tell: how much of a file's end is in memory, and for how long after a write.
FRESH_BYTES = 8 << 20
FRESH_SECONDS = 60
PAGE_BYTES = os.sysconf("SC_PAGESIZE")
CACHESTAT = 451
#: How much is read at once to have it in memory.
READ_BYTES_MAX = 1 << 18


class CountPages(Protocol):
    """Tells how many pages of a range of a file are in memory."""

    def __call__(self, fd: int, position: int, size: int) -> int:
        """Return their count."""


@cache
def page_counter() -> CountPages | None:
    """Return what counts pages in memory; None where the system does not."""
    if sys.platform != "linux":
        return None
    import ctypes  # a broker that has sent nothing yet does without it

    call = ctypes.CDLL(None, use_errno=True).syscall
    asked = (ctypes.c_uint64 * 2)()
    told = (ctypes.c_uint64 * 5)()
    if call(CACHESTAT, -1, asked, told, 0) == 0 or ctypes.get_errno() != errno.EBADF:
        # An older system, or one that does not let us ask.
        return None

    def count(fd: int, position: int, size: int) -> int:
        asked[0], asked[1] = position, size
        # A file that it knows nothing of is for the other question.
        return int(told[0]) if call(CACHESTAT, fd, asked, told, 0) == 0 else sys.maxsize

    return count


def is_resident(fd: int, position: int, size: int) -> bool:
    """Tell whether the range can be read without waiting for a disk, as far as can be told."""
    if not HAS_NOWAIT:
        return is_fresh(fd, position)
    last = position + size - 1
    count = page_counter()
    if count is None:
        return all(can_read(fd, each) for each in (*range(position, last, STEP_BYTES), last))
    pages = last // PAGE_BYTES - position // PAGE_BYTES + 1
    return count(fd, position, size) >= pages and can_read(fd, position) and can_read(fd, last)


def can_read(fd: int, position: int) -> bool:
    """Tell whether a byte is in memory; True where its file system does not tell."""
    try:
        os.preadv(fd, [bytearray(1)], position, os.RWF_NOWAIT)
    except BlockingIOError:
        return False
    except OSError as error:
        # Some file systems (a memory one, for instance) do not know the flag, nor need it.
        if error.errno not in (errno.EOPNOTSUPP, errno.ENOTSUP):
            raise
    return True


def is_fresh(fd: int, position: int) -> bool:
    """Tell whether the position is near the end of a file that has just been written to."""
    stat = os.fstat(fd)
    is_near = position >= stat.st_size - FRESH_BYTES
    # The file's time is the system's, so it is the system's clock that is asked.
    return is_near and time.time() - stat.st_mtime < FRESH_SECONDS  # noqa: TID251


def read_through(fd: int, position: int, size: int) -> None:
    """Read the range and forget it; the page cache does not."""
    end = position + size
    while position < end:
        count = len(os.pread(fd, min(end - position, READ_BYTES_MAX), position))
        if count == 0:
            return
        position += count
