"""A disk in memory that can lose what was not synced, tear writes, and fail.

    disk.crash(rng)                the power goes: of all that was not synced, the generator picks
                                   what has reached the disk; without one, nothing has
    disk.cut_power_after(n)        the n-th change from now on is under way when the power goes:
                                   it and all that is tried after it raise PowerCutError
    disk.fail_next("write_at")     the next such operation raises, having done a part of its work
    disk.is_full = True            nothing more can be written or created
    disk.shorten_next(n)           the next write takes n bytes only and says so
    disk.break_reads("/data/two")  what is not in memory under this path cannot be read or listed
    disk.cool()                    nothing is in memory any more: what is opened or read next has
                                   to be waited for, and `disk.waits` tells in which threads

What survives a crash, as on a journaling file system without barriers for data:

- of a file, what was there at its last sync, and of the changes since any subset, each write
  perhaps only to some byte; the length may have grown without its bytes (zeros then);
- of names, those at the last sync of their directory, and of the changes since a prefix.
"""

import errno
import io
import os
import threading
import time
from bisect import bisect_left
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from strom.log.cold import ColdError, Take, nothing_to_take
from strom.log.disk import Bytes

_DIRECTORY = None
PAGE_BYTES = 4096
_TAKES_ROOM = ("write_at", "create", "make_directory")


class Wait(NamedTuple):
    """Somebody had to wait for the disk."""

    #: `threading.get_ident()` of who waited.
    thread: int
    operation: str
    #: The name that the file was opened by.
    path: str


class PowerCutError(Exception):
    """The power is off; nothing works until `crash` turns it on again."""


class Inode:
    """A file's bytes: as they are, and as they would be after a power cut."""

    __slots__ = ("changes", "data", "durable", "is_known", "pages", "reserved_bytes")

    def __init__(self) -> None:
        self.data = bytearray()
        #: Which pages are in memory; None for all of them.
        self.pages: set[int] | None = None
        #: The system remembers the file itself: to open it is no matter of the disk.
        self.is_known = True
        self.durable = b""
        #: Up to where room was reserved since it was last cut, though it may be used by now.
        self.reserved_bytes = 0
        #: Since the last sync: (position, bytes) of a write, (length, None) of a truncation.
        self.changes: list[tuple[int, bytes | None]] = []

    def warm(self, position: int, size: int) -> None:
        """Have the range in memory from now on."""
        if self.pages is not None:
            self.pages.update(_pages(position, size))

    def is_warm(self, position: int, size: int) -> bool:
        """Whether the range, as far as the file has it, is in memory."""
        size = min(size, len(self.data) - position)
        return self.pages is None or self.pages.issuperset(_pages(position, size))

    def write(self, position: int, data: bytes) -> None:
        """Change the bytes."""
        self.warm(position, len(data))
        _write(self.data, position, data)
        self.changes.append((position, data))

    def truncate(self, size: int) -> None:
        """Change the length."""
        _truncate(self.data, size)
        self.reserved_bytes = 0
        self.changes.append((size, None))

    def sync(self) -> None:
        """Make the bytes durable."""
        if self.changes:
            self.durable = bytes(self.data)
            self.changes = []

    def crash(self, rng: Random | None) -> None:
        """Become what a power cut leaves."""
        survived = bytearray(self.durable)
        for position, data in self.changes if rng is not None else ():
            assert rng is not None
            fate = rng.randrange(4)
            if fate == 0:
                continue
            if data is None:
                _truncate(survived, position)
            elif fate == 1:
                # The length was journaled, the bytes were not written, or some of them.
                kept = rng.randrange(len(data) + 1)
                _write(survived, position, data[:kept].ljust(len(data), b"\0"))
            elif fate == 2:
                _write(survived, position, data[: rng.randrange(len(data) + 1)])
            else:
                _write(survived, position, data)
        self.data = survived
        self.durable = bytes(survived)
        self.changes = []


class FakeFile:
    """An open file of a fake disk."""

    __slots__ = ("_disk", "_inode", "_life", "_path")

    def __init__(self, disk: "FakeDisk", inode: Inode, path: str) -> None:
        self._disk = disk
        self._inode = inode
        self._path = path
        #: Descriptors do not outlive the machine.
        self._life = disk.crashes

    def fileno(self) -> int:
        """Refuse: there is no descriptor."""
        raise io.UnsupportedOperation("A file in memory has no descriptor")

    def read_at(self, position: int, size: int) -> bytes:
        """Return what is there, fewer bytes than asked only at the end of the file."""
        self._disk.begin("read_at")
        inode = self._alive()
        if not inode.is_warm(position, size):
            self._disk.wait("read_at", self._path)
            inode.warm(position, size)
        return bytes(inode.data[position : position + size])

    def read_now(self, position: int, size: int) -> bytes:
        """Do the same, but raise a ColdError if that would mean to wait for the disk."""
        if not self._alive().is_warm(position, size):
            raise ColdError(lambda: self._warm(position, size))
        return self.read_at(position, size)

    def _warm(self, position: int, size: int) -> Take:
        self.read_at(position, size)
        return nothing_to_take

    def write_parts_at(self, parts: Sequence[Bytes], position: int) -> int:
        """Write the parts one behind the other, and return how many bytes were taken."""
        return self.write_at(b"".join(parts), position)

    def write_at(self, data: Bytes, position: int) -> int:
        """Write, and return how many bytes were taken: possibly fewer than given."""
        content = bytes(data)
        inode = self._alive()
        try:
            taken = self._disk.begin("write_at", len(content))
        except (OSError, PowerCutError):
            # A write that fails may have been done in part.
            inode.write(position, content[: len(content) // 2])
            raise
        inode.write(position, content[:taken])
        return taken

    def size(self) -> int:
        """Return the length in bytes."""
        return len(self._alive().data)

    def truncate(self, size: int) -> None:
        """Cut the file, or extend it with zeros."""
        self._disk.begin("truncate", 1)
        self._alive().truncate(size)

    def sync(self) -> None:
        """Return once all that was written would outlive a power cut."""
        self._disk.begin("sync", 1)
        self._alive().sync()

    def start_write_back(self, position: int, size: int) -> None:
        """Let the disk begin with these bytes; a hint that promises nothing."""

    def reserve(self, position: int, size: int) -> None:
        """Have room for bytes that will come; a hint that changes nothing that can be read."""
        inode = self._alive()
        inode.reserved_bytes = max(inode.reserved_bytes, position + size)

    def close(self) -> None:
        """Give the descriptor back."""
        self._life = -1

    def _alive(self) -> Inode:
        if self._life != self._disk.crashes:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return self._inode


class FakeLock:
    """A lock file that was taken."""

    __slots__ = ("_held", "_path")

    def __init__(self, held: set[str], path: str) -> None:
        self._held = held
        self._path = path

    def release(self) -> None:
        """Let others have it."""
        self._held.discard(self._path)


class FakeDisk:
    """All files of one machine, in memory."""

    has_descriptors = False

    def __init__(self) -> None:
        self._names: dict[str, Inode | None] = {}
        self._durable_names: dict[str, Inode | None] = {}
        #: Changes of names since they were last synced: (source, target); a created file has no
        #: source, a removed one no target.
        self._renames: list[tuple[str | None, str | None, Inode | None]] = []
        self._held: set[str] = set()
        self._fail: dict[str, int] = {}
        self._short: int | None = None
        self._unreadable: str | None = None
        self._changes_left: int | None = None
        self._is_off = False
        #: There is no room left.
        self.is_full = False
        #: How often the power went.
        self.crashes = 0
        #: How many changes were made; `cut_power_after` counts the same.
        self.changes = 0
        #: Who had to wait for something that was not in memory, since the last `cool`.
        self.waits: list[Wait] = []

    # Trouble.

    def crash(self, rng: Random | None = None) -> None:
        """Let the power go and come back: what was not synced is lost, but for what rng picks."""
        kept = rng.randrange(len(self._renames) + 1) if rng is not None else 0
        self._make_durable(kept)
        self._renames = []
        self._names = dict(self._durable_names)
        for inode in {id(each): each for each in self._names.values() if each}.values():
            inode.crash(rng)
        self._held.clear()
        self._fail.clear()
        self._short = self._changes_left = None
        self._is_off = False
        self.crashes += 1

    def cut_power_after(self, changes: int) -> None:
        """Let so many changes pass; the one after them raises, and all that follow."""
        self._changes_left = changes

    def fail_next(self, operation: str, error: int = errno.EIO) -> None:
        """Let the next operation of this name raise an OSError; a write is then half done."""
        self._fail[operation] = error

    def break_reads(self, under: str) -> None:
        """Let nothing be read or listed under the path, but for what is in memory of files."""
        self._unreadable = f"{under}/"

    def shorten_next(self, taken: int) -> None:
        """Let the next write take only so many bytes."""
        self._short = taken

    def cool(self) -> None:
        """Let the system forget what it has in memory of the files."""
        for inode in self._names.values():
            if inode is not None:
                inode.pages, inode.is_known = set(), False
        self.waits = []

    def wait(self, operation: str, path: str) -> None:
        """Note that somebody waits for what is not in memory; in vain where reads are broken."""
        self.waits.append(Wait(threading.get_ident(), operation, path))
        self._require_readable(path)

    def _require_readable(self, path: str) -> None:
        if self._unreadable is not None and f"{path}/".startswith(self._unreadable):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    def begin(self, operation: str, size: int = 0) -> int:
        """Raise what is due for the operation; otherwise return how many bytes it may write."""
        if self._is_off:
            raise PowerCutError
        if operation in self._fail:
            number = self._fail.pop(operation)
            raise OSError(number, os.strerror(number))
        if self.is_full and operation in _TAKES_ROOM:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if size:
            if self._changes_left is not None:
                self._changes_left -= 1
                if self._changes_left < 0:
                    self._is_off = True
                    raise PowerCutError
            self.changes += 1
        if operation == "write_at" and self._short is not None:
            size, self._short = min(self._short, size), None
        return size

    # Files.

    def reserved_bytes(self, path: str) -> int:
        """Return up to where room was reserved for a file since it was last cut."""
        return self._inode(path).reserved_bytes

    def open(self, path: str, *, create: bool = False) -> FakeFile:
        """Open for reading and writing; `create` takes a file that is there as it is."""
        self.begin("open")
        if create and path not in self._names:
            self.begin("create", 1)
            self._change_name(None, path, Inode())
        inode = self._inode(path)
        if not inode.is_known:
            self.wait("open", path)
            inode.is_known = True
        return FakeFile(self, inode, path)

    def read(self, path: str) -> bytes:
        """Return the whole content of a small file."""
        self.begin("read")
        inode = self._inode(path)
        if not inode.is_warm(0, len(inode.data)):
            self.wait("read", path)
            inode.warm(0, len(inode.data))
        return bytes(inode.data)

    def write(self, path: str, data: bytes) -> None:
        """Replace the content of a file; after a crash it may be anything."""
        file = self.open(path, create=True)
        if file.size():
            file.truncate(0)
        written = 0
        while written < len(data):
            written += file.write_at(data[written:], written)

    def write_atomically(self, path: str, data: bytes, *, sync: bool = True) -> None:
        """Replace the content of a file; without `sync` a power cut may leave it empty."""
        self.write(path + ".tmp", data)
        if sync:
            self.open(path + ".tmp").sync()
        self.rename(path + ".tmp", path)
        if sync:
            self.sync_directory(os.path.dirname(path))

    def corrupt(self, path: str, position: int, mask: int = 0xFF) -> None:
        """Flip bits of a byte, durably, as an old disk does."""
        inode = self._inode(path)
        inode.data[position] ^= mask
        inode.durable = bytes(inode.data)

    # Names.

    def scan(self, path: str) -> list[tuple[str, int]]:
        """Return the names of the files in the directory with their sizes."""
        return [(name, len(each.data)) for name, each in self._children(path) if each is not None]

    def modified_ms(self, path: str) -> int:
        """Return the time of day: no file is old here, unless a test has it so."""
        self._inode(path)
        return time.time_ns() // 1_000_000

    def directories(self, path: str) -> list[str]:
        """Return the names of the directories in the directory."""
        return [name for name, inode in self._children(path) if inode is _DIRECTORY]

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory of this name."""
        self.begin("exists")
        return path in self._names

    def make_directory(self, path: str) -> None:
        """Create the directory and those above it; one that is there is fine."""
        parent = os.path.dirname(path)
        if parent and parent != path and parent not in self._names:
            self.make_directory(parent)
        if path not in self._names:
            self.begin("make_directory", 1)
            self._change_name(None, path, _DIRECTORY)

    def rename(self, source: str, target: str) -> None:
        """Give a file or directory another name, replacing a file that has it."""
        self.begin("rename", 1)
        if source not in self._names:
            raise _missing(source)
        self._change_name(source, target, self._names[source])

    def remove(self, path: str) -> None:
        """Remove a file; one that is not there is fine."""
        if path in self._names:
            self.begin("remove", 1)
            self._change_name(path, None, self._names[path])

    def remove_tree(self, path: str) -> None:
        """Remove a directory and all that is in it; one that is not there is fine."""
        inside = sorted((name for name in self._names if name.startswith(path + "/")), reverse=True)
        for name in (*inside, path):
            self.remove(name)

    def sync_directory(self, path: str) -> None:
        """Return once what was created, renamed and removed in it would outlive a power cut."""
        self.begin("sync_directory", 1)
        if path not in self._names:
            raise _missing(path)
        concerned = [
            number
            for number, (source, target, _) in enumerate(self._renames, 1)
            if path in (os.path.dirname(source or ""), os.path.dirname(target or ""))
        ]
        if concerned:
            # Names are journaled in order: what came before is durable as well.
            self._make_durable(concerned[-1])
            del self._renames[: concerned[-1]]

    def lock(self, path: str) -> FakeLock:
        """Take the lock file, or raise BlockingIOError if another holds it."""
        self.open(path, create=True)
        if path in self._held:
            raise BlockingIOError(errno.EAGAIN, f"{path} is held by another process")
        self._held.add(path)
        return FakeLock(self._held, path)

    def _inode(self, path: str) -> Inode:
        inode = self._names.get(path)
        if inode is None:
            raise _missing(path)
        return inode

    def _children(self, path: str) -> list[tuple[str, Inode | None]]:
        self.begin("scan")
        self._require_readable(path)
        if path not in self._names:
            raise _missing(path)
        prefix = path + "/"
        # A copy: threads of a broker go on renaming.
        inodes = dict(self._names)
        names = sorted(inodes)
        children = []
        for name in names[bisect_left(names, prefix) :]:
            if not name.startswith(prefix):
                break
            if "/" not in name[len(prefix) :]:
                children.append((name[len(prefix) :], inodes[name]))
        return children

    def _change_name(self, source: str | None, target: str | None, inode: Inode | None) -> None:
        parent = os.path.dirname(target or source or "")
        if parent and parent != "/" and parent not in self._names:
            raise _missing(parent)
        self._renames.append((source, target, inode))
        _move(self._names, source, target, inode)

    def _make_durable(self, count: int) -> None:
        for source, target, inode in self._renames[:count]:
            _move(self._durable_names, source, target, inode)


def _move(
    names: dict[str, Inode | None], source: str | None, target: str | None, inode: Inode | None
) -> None:
    if source is not None:
        names.pop(source, None)
        if inode is _DIRECTORY and target is not None:
            inside = [name for name in names if name.startswith(source + "/")]
            for name in inside:
                names[target + name[len(source) :]] = names.pop(name)
    if target is not None:
        names[target] = inode


def _pages(position: int, size: int) -> range:
    """Return the pages that the range touches."""
    return range(position // PAGE_BYTES, (position + max(size, 0) + PAGE_BYTES - 1) // PAGE_BYTES)


def _write(content: bytearray, position: int, data: bytes) -> None:
    if position > len(content):
        content.extend(bytes(position - len(content)))
    content[position : position + len(data)] = data


def _truncate(content: bytearray, size: int) -> None:
    del content[size:]
    content.extend(bytes(size - len(content)))


def _missing(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
