"""What is read without waiting (CON-12), compiled and plain: both find the same."""

import errno
import os

import pytest

from strom.log import nowait

pytestmark = pytest.mark.skipif(
    not nowait.HAS_NOWAIT, reason="nobody can tell what is in memory here"
)
SIZE = 1 << 20
DATA = os.urandom(SIZE)
#: What a system that is short of memory may drop at any time is read again.
LOOKS_MAX = 1000

WAYS = {
    "plain": (nowait.plain_read_now, nowait.plain_can_read, nowait.plain_count_pages),
    "chosen": (nowait.read_now, nowait.can_read, nowait.count_pages),
}


@pytest.fixture
def fd(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(DATA)
    fd = os.open(path, os.O_RDONLY)
    os.fdatasync(fd)
    yield fd
    os.close(fd)


@pytest.fixture(params=WAYS.values(), ids=WAYS)
def way(request):
    return request.param


def until_there(look):
    return next(found for _ in range(LOOKS_MAX) if (found := look()) is not None)


@pytest.mark.parametrize(
    ("position", "size"), [(0, 27), (4000, 8192), (SIZE - 5, 5), (SIZE - 5, 100), (SIZE, 1), (0, 0)]
)
def test_what_is_in_memory_is_read(fd, way, position, size):
    read_now = way[0]
    os.pread(fd, SIZE, 0)
    found = until_there(lambda: read_now(fd, position, size))
    assert bytes(found) == DATA[position : position + size]


def ever_when_gone(fd, look):
    """Whether a look ever finds what it should right behind an eviction.

    Each look has an eviction of its own, for one that finds nothing makes the system read ahead.
    """
    for _ in range(LOOKS_MAX):
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        if look():
            return True
    return False


def test_what_is_not_in_memory_is_told_and_not_waited_for(fd, way):
    read_now, can_read, count_pages = way
    if not ever_when_gone(fd, lambda: not nowait.plain_can_read(fd, SIZE // 2)):
        pytest.skip("this file system keeps what it has in memory")
    assert ever_when_gone(fd, lambda: not can_read(fd, SIZE // 2))
    assert ever_when_gone(fd, lambda: read_now(fd, SIZE // 2, 27) is None)
    page_count = SIZE // os.sysconf("SC_PAGESIZE")
    assert ever_when_gone(fd, lambda: count_pages(fd, 0, SIZE) < page_count)


def test_pages_in_memory_are_counted(fd, way):
    _, _, count_pages = way
    os.pread(fd, SIZE, 0)
    if count_pages(fd, 0, SIZE) == nowait.UNCOUNTED:
        pytest.skip("this system does not count pages")
    page_bytes = os.sysconf("SC_PAGESIZE")
    found = until_there(lambda: count_pages(fd, 1, 2 * page_bytes) or None)
    assert found == 3


def test_a_file_that_cannot_be_read_is_an_error(way):
    read_now, can_read, count_pages = way
    for ask in (lambda: read_now(-1, 0, 10), lambda: can_read(-1, 0)):
        with pytest.raises(OSError, match="Bad file descriptor") as caught:
            ask()
        assert caught.value.errno == errno.EBADF
    assert count_pages(-1, 0, 10) == nowait.UNCOUNTED
