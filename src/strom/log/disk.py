# Compiled by mypyc.
"""The few things the log asks of a disk, and the disk of the operating system.

The log touches files through `Disk` and `File` alone, so that the simulator can put a disk there
that forgets, tears and fails (strom.testing.disk). Every error is an OSError, as the system
raises it. What a crash leaves behind:

    write_at, truncate              anything between nothing and all, until the file is synced
    reserve                         the file as it was; the room may stay taken until it is cut
    rename, remove, create, mkdir   done or not, until the directory is synced
    write_atomically                the old content or the new, never a mixture

A file that nobody refers to any more closes itself. So whoever still sends from a segment may
keep its `File` while the log renames, removes or forgets it.

`read_now` is for the loop: it never waits for the disk where the system can say what is in
memory, which Linux does (RWF_NOWAIT) and macOS does not. Where nobody can say, everything
counts as being in memory.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import shutil
from collections.abc import Iterator, Sequence
from typing import Protocol

from strom.log.cold import ColdError, Take, nothing_to_take
from strom.log.nowait import HAS_NOWAIT, read_now, tells_nothing

Bytes = bytes | bytearray | memoryview

WARM_ATTEMPTS = 4
#: Room is reserved while one part in so many is free.
PLENTY = 4
_HAS_PWRITEV = hasattr(os, "pwritev")

_SHORT = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM)

_libc = ctypes.CDLL(None, use_errno=True)

#: `sync_file_range(2)`: start to write the dirty pages of the range, wait for nothing.
_SYNC_FILE_RANGE_WRITE = 2
_sync_file_range = getattr(_libc, "sync_file_range", None)
if _sync_file_range is not None:
    _sync_file_range.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)

#: `fallocate(2)`: take the blocks, leave the length.
_FALLOC_FL_KEEP_SIZE = 1
_fallocate = getattr(_libc, "fallocate", None)
_fstatfs = getattr(_libc, "fstatfs", None)
if _fallocate is not None:
    _fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
#: How ext4 calls itself, in the first field of what `fstatfs(2)` tells; and how long that may be.
_EXT4 = 0xEF53
_FILE_SYSTEM_FIELDS = 32


class File(Protocol):
    """An open file, addressed by position; it has no cursor that two users could fight over."""

    def fileno(self) -> int:
        """Return the descriptor, for `sendfile`."""

    def read_at(self, position: int, size: int) -> bytes:
        """Return what is there, fewer bytes than asked only at the end of the file."""

    def read_now(self, position: int, size: int) -> Bytes:
        """Do the same, but raise a ColdError if that would mean to wait for the disk."""

    def write_at(self, data: Bytes, position: int) -> int:
        """Write, and return how many bytes were taken: possibly fewer than given."""

    def write_parts_at(self, parts: Sequence[Bytes], position: int) -> int:
        """Write the parts one behind the other, and return how many bytes were taken."""

    def size(self) -> int:
        """Return the length in bytes."""

    def truncate(self, size: int) -> None:
        """Cut the file, or extend it with zeros."""

    def sync(self) -> None:
        """Return once all that was written would outlive a power cut."""

    def start_write_back(self, position: int, size: int) -> None:
        """Let the disk begin with these bytes; a hint that promises nothing."""

    def reserve(self, position: int, size: int) -> None:
        """Have room for bytes that will come; a hint, which changes neither length nor content.

        What of it is not used is given back by `truncate`, be it to the length that there is.
        """

    def close(self) -> None:
        """Give the descriptor back."""


class Lock(Protocol):
    """A directory held against other processes."""

    def release(self) -> None:
        """Let others have it."""


class Disk(Protocol):
    """All file operations of the log. Paths are strings: they are joined on the hot path."""

    @property
    def has_descriptors(self) -> bool:
        """Whether its files are the system's, so that they can be sent with `sendfile`."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and writing; `create` takes a file that is there as it is."""

    def read(self, path: str) -> bytes:
        """Return the whole content of a small file."""

    def write(self, path: str, data: bytes) -> None:
        """Replace the content of a file; after a crash it may be anything."""

    def write_atomically(self, path: str, data: bytes, *, sync: bool = True) -> None:
        """Replace the content of a file; without `sync` a power cut may leave it empty."""

    def scan(self, path: str) -> list[tuple[str, int]]:
        """Return the names of the files in the directory with their sizes."""

    def modified_ms(self, path: str) -> int:
        """Return when the file was last written to."""

    def directories(self, path: str) -> list[str]:
        """Return the names of the directories in the directory."""

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory of this name."""

    def make_directory(self, path: str) -> None:
        """Create the directory and those above it; one that is there is fine."""

    def rename(self, source: str, target: str) -> None:
        """Give a file or directory another name, replacing a file that has it."""

    def remove(self, path: str) -> None:
        """Remove a file; one that is not there is fine."""

    def remove_tree(self, path: str) -> None:
        """Remove a directory and all that is in it; one that is not there is fine."""

    def sync_directory(self, path: str) -> None:
        """Return once what was created, renamed and removed in it would outlive a power cut."""

    def lock(self, path: str) -> Lock:
        """Take the lock file, or raise BlockingIOError if another holds it."""


class RealFile:
    """A file of the operating system."""

    __slots__ = ("_fd", "_tells")

    def __init__(self, fd: int) -> None:
        self._fd = fd
        #: The system says what is in memory and what is not.
        self._tells = HAS_NOWAIT

    def __del__(self) -> None:
        self.close()

    def fileno(self) -> int:
        """Return the descriptor, for `sendfile`."""
        return self._fd

    def read_at(self, position: int, size: int) -> bytes:
        """Return what is there, fewer bytes than asked only at the end of the file."""
        data = os.pread(self._fd, size, position)
        if len(data) == size or not data:
            return data
        # A read is cut at 2 GiB and by signals; only an empty one means the end.
        parts = [data]
        got = len(data)
        while got < size and (data := os.pread(self._fd, size - got, position + got)):
            parts.append(data)
            got += len(data)
        return b"".join(parts)

    def read_now(self, position: int, size: int) -> Bytes:
        """Do the same, but raise a ColdError if that would mean to wait for the disk."""
        if not self._tells:
            return self.read_at(position, size)
        try:
            data = read_now(self._fd, position, size)
        except OSError as error:
            if not tells_nothing(error):
                raise
            self._tells = False
            return self.read_at(position, size)
        if data is not None and (len(data) == size or position + len(data) >= self.size()):
            return data
        raise ColdError(lambda: self._warm(position, size))

    def _warm(self, position: int, size: int) -> Take:
        """Read, so that the system has it in memory."""
        for _ in range(WARM_ATTEMPTS):
            self.read_at(position, size)
            try:
                self.read_now(position, size)
            except ColdError:
                continue
            return nothing_to_take
        # A system that denies what it has just read, again and again, denies everything.
        self._tells = False
        return nothing_to_take

    def write_at(self, data: Bytes, position: int) -> int:
        """Write, and return how many bytes were taken: possibly fewer than given."""
        return os.pwrite(self._fd, data, position)

    def write_parts_at(self, parts: Sequence[Bytes], position: int) -> int:
        """Write the parts one behind the other, and return how many bytes were taken."""
        if not _HAS_PWRITEV:
            return os.pwrite(self._fd, b"".join(parts), position)
        return os.pwritev(self._fd, parts, position)

    def size(self) -> int:
        """Return the length in bytes."""
        return os.fstat(self._fd).st_size

    def truncate(self, size: int) -> None:
        """Cut the file, or extend it with zeros."""
        os.ftruncate(self._fd, size)

    def sync(self) -> None:
        """Return once all that was written would outlive a power cut."""
        _sync_data(self._fd)

    def start_write_back(self, position: int, size: int) -> None:
        """Let the disk begin with these bytes; a hint that promises nothing."""
        if _sync_file_range is not None:
            _sync_file_range(self._fd, position, size, _SYNC_FILE_RANGE_WRITE)

    def reserve(self, position: int, size: int) -> None:
        """Have room for bytes that will come, on ext4, while there is plenty.

        There a write into reserved room takes a sixth less of the system's time. Others gain
        nothing (XFS reserves by itself), or would lose: a file in memory would be made at once.
        """
        if _fallocate is not None and _may_reserve(self._fd):
            _fallocate(self._fd, _FALLOC_FL_KEEP_SIZE, position, size)

    def close(self) -> None:
        """Give the descriptor back."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def _may_reserve(fd: int) -> bool:
    """Whether the file's system is ext4, with a quarter of it free: many logs take their room."""
    told = (ctypes.c_long * _FILE_SYSTEM_FIELDS)()
    if _fstatfs is None or _fstatfs(fd, told) != 0:
        return False
    kind, _, blocks, _, free_blocks = told[:5]
    return kind == _EXT4 and free_blocks * PLENTY >= blocks


#: `fdatasync` is enough: it writes the length of the file too, but not its times.
_sync_data = getattr(os, "fdatasync", os.fsync)


class RealLock:
    """A locked `.lock` file."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def release(self) -> None:
        """Let others have it."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class RealDisk:
    """The operating system's files."""

    __slots__ = ()

    has_descriptors = True

    def open(self, path: str, *, create: bool = False) -> RealFile:
        """Open for reading and writing; `create` takes a file that is there as it is."""
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return RealFile(os.open(path, flags, 0o644))

    def read(self, path: str) -> bytes:
        """Return the whole content of a small file."""
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            size = os.fstat(fd).st_size
            return os.read(fd, size) if size else b""
        finally:
            os.close(fd)

    def write(self, path: str, data: bytes) -> None:
        """Replace the content of a file; after a crash it may be anything."""
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            _write_all(fd, data)
        finally:
            os.close(fd)

    def write_atomically(self, path: str, data: bytes, *, sync: bool = True) -> None:
        """Replace the content of a file; without `sync` a power cut may leave it empty."""
        temporary = path + ".tmp"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            _write_all(fd, data)
            if sync:
                os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(temporary, path)
        if sync:
            self.sync_directory(os.path.dirname(path))

    def scan(self, path: str) -> list[tuple[str, int]]:
        """Return the names of the files in the directory with their sizes."""
        with os.scandir(path) as entries:
            return [(each.name, each.stat().st_size) for each in entries if each.is_file()]

    def modified_ms(self, path: str) -> int:
        """Return when the file was last written to."""
        return os.stat(path).st_mtime_ns // 1_000_000

    def directories(self, path: str) -> list[str]:
        """Return the names of the directories in the directory."""
        with os.scandir(path) as entries:
            return [each.name for each in entries if each.is_dir()]

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory of this name."""
        return os.path.exists(path)

    def make_directory(self, path: str) -> None:
        """Create the directory and those above it; one that is there is fine."""
        os.makedirs(path, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        """Give a file or directory another name, replacing a file that has it."""
        os.replace(source, target)

    def remove(self, path: str) -> None:
        """Remove a file; one that is not there is fine."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def remove_tree(self, path: str) -> None:
        """Remove a directory and all that is in it; one that is not there is fine."""
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(path)

    def sync_directory(self, path: str) -> None:
        """Return once what was created, renamed and removed in it would outlive a power cut."""
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def lock(self, path: str) -> RealLock:
        """Take the lock file, or raise BlockingIOError if another holds it."""
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            # Java takes the second kind, which a process never refuses to itself; the first
            # one keeps two brokers of one process apart.
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            raise BlockingIOError(error.errno, f"{path} is held by another process") from error
        return RealLock(fd)


def is_short(error: OSError) -> bool:
    """Whether something is used up (room, descriptors, memory): no disk is broken by that."""
    return error.errno in _SHORT


@contextlib.contextmanager
def suppress_short() -> Iterator[None]:
    """Let pass what cannot be done because something is used up, and can as well be done later."""
    try:
        yield
    except OSError as error:
        if not is_short(error):
            raise


def write_all(file: File, data: bytes, position: int) -> None:
    """Write however often it takes."""
    written = 0
    while written < len(data):
        written += file.write_at(data[written:], position + written)


def _write_all(fd: int, data: bytes) -> None:
    written = os.write(fd, data)
    while written < len(data):
        written += os.write(fd, data[written:])
