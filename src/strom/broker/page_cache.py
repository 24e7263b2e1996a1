# Compiled by mypyc.
"""What the system has in memory of a file, so that nobody waits for a disk on the loop.

    cachestat (Linux 6.5)    tells of every page
    RWF_NOWAIT (Linux 4.14)  tells of the pages that are tried: the ends, or one every STEP_BYTES
    neither (macOS)          nobody can tell; what has just been written is taken to be there

Both of Linux are asked (`log.nowait`): cachestat also counts pages that are still on their way
from the disk.
"""

import os
import time
from typing import Final

from strom.log.nowait import HAS_NOWAIT, UNCOUNTED, can_read, count_pages

#: Without cachestat: how far apart the pages are that are tried. Linux reads ahead so much.
STEP_BYTES = 1 << 17
#: Where nobody can tell: how much of a file's end is in memory, and for how long after a write.
FRESH_BYTES = 8 << 20
FRESH_SECONDS = 60
PAGE_BYTES: Final[int] = os.sysconf("SC_PAGESIZE")
#: How much is read at once to have it in memory.
READ_BYTES_MAX = 1 << 18


def is_resident(fd: int, position: int, size: int) -> bool:
    """Tell whether the range can be read without waiting for a disk, as far as can be told."""
    if not HAS_NOWAIT:
        return is_fresh(fd, position)
    last = position + size - 1
    count = count_pages(fd, position, size)
    if count == UNCOUNTED:
        return all(can_read(fd, each) for each in (*range(position, last, STEP_BYTES), last))
    pages = last // PAGE_BYTES - position // PAGE_BYTES + 1
    return count >= pages and can_read(fd, position) and can_read(fd, last)


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
