# Compiled by mypyc.
"""One socket that takes bytes and file slices to send.

    owner.receive_buffer() ──recv_into──▶ owner.on_received(count) … owner.on_closed(error)
    link.send(parts) ──▶ socket, now as far as it goes, the rest when the socket takes more

A receive goes straight into the owner's buffer, and a slice of a log file goes from the page cache
to the socket by `sendfile`, without passing through Python. Where there is no `sendfile`, or no
real file or socket, the slice is read and sent in pieces instead. A small slice is read and sent
with what goes around it: one call costs less than the three that spare the copy.

A slice whose pages are not in memory is first read by a thread, so that the disk never stops
the loop. Nothing is sent after `close`.
"""

import errno
import os
import socket
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Final, Protocol, cast

from strom.broker.host import Host
from strom.broker.network import Socket
from strom.broker.page_cache import is_resident, read_through
from strom.log.cold import ColdError
from strom.wire.fetch import Part, Slice

#: How much of a slice is checked, warmed and sent at once.
SLICE_BYTES_MAX: Final = 1 << 20
#: Up to this size a slice is copied, if there are not many.
SMALL_BYTES_MAX: Final = 1 << 14
PARTS_JOINED_MAX: Final = 8
#: How much the portable path reads at once.
COPY_BYTES_MAX: Final = 1 << 18
#: How many parts are sent before others get their turn on the loop.
PARTS_AT_ONCE: Final = 256
MSG_MORE: Final = getattr(socket, "MSG_MORE", 0)


class SlicedFile(Protocol):
    """A file that slices are of; it stays open while anyone holds it."""

    def fileno(self) -> int:
        """Return its descriptor."""

    def read_now(self, position: int, size: int) -> bytes | bytearray | memoryview:
        """Return what is there, or raise a ColdError if that would mean to wait for the disk."""


class Owner(Protocol):
    """Whom a link serves."""

    def receive_buffer(self) -> memoryview:
        """Return where the next bytes go; never empty."""

    def on_received(self, count: int) -> None:
        """Take notice of so many new bytes in the buffer."""

    def on_unreadable(self, file: object, error: OSError) -> None:
        """Take notice that a slice's file cannot be read; then the link is closed."""

    def on_drained(self) -> None:
        """Take notice that everything sent so far is with the system."""

    def on_closed(self, error: Exception | None) -> None:
        """Take notice that the link is gone, once; None where the peer simply left."""


class Link:
    """A connected socket."""

    __slots__ = (
        "_closed",
        "_fd",
        "_host",
        "_hung_up",
        "_owner",
        "_queue",
        "_reading",
        "_resident_bytes",
        "_socket",
        "_start_task",
        "_warming",
        "_writing",
        "unsent_bytes",
        "zero_copy",
    )

    def __init__(
        self,
        connected: Socket,
        owner: Owner,
        host: Host,
        start_task: Callable[[Coroutine[None, None, None]], object],
    ) -> None:
        self._socket = connected
        self._fd = connected.fileno()
        self._owner = owner
        self._host = host
        self._start_task = start_task
        self._queue: deque[memoryview | Slice] = deque()
        self._reading = self._writing = self._warming = self._closed = self._hung_up = False
        #: How much of the first slice is known to be in memory.
        self._resident_bytes = 0
        self.zero_copy = host.zero_copy
        self.unsent_bytes = 0

    def resume_reading(self) -> None:
        """Take bytes from the peer from now on."""
        if not self._reading and not self._closed:
            self._reading = True
            self._host.network.when_readable(self._socket, self._on_readable)

    def pause_reading(self) -> None:
        """Take no bytes from the peer: the system's buffers fill and the peer must wait."""
        if self._reading:
            self._reading = False
            self._host.network.when_readable(self._socket, None)

    def send(self, parts: Sequence[Part]) -> None:
        """Send the parts in order, behind what is still to be sent."""
        if self._closed:
            return
        if not self._queue and (small := in_one(parts)) is not None:
            self._send_now(small)
            return
        for part in parts:
            if isinstance(part, bytes):
                self._queue.append(memoryview(part))
                self.unsent_bytes += len(part)
            else:
                self._queue.append(part)
                self.unsent_bytes += part.size
        if not self._writing and not self._warming:
            self._on_writable()

    def hang_up(self) -> None:
        """Say that nothing more is sent, and drop what comes until the peer closes as well.

        To close a socket with unread bytes in it resets the connection, and takes from the peer
        what it was sent and has not read yet.
        """
        if self._closed or self._hung_up:
            return
        self._hung_up = True
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError as error:
            self.close(error)
            return
        self.resume_reading()

    def close(self, error: Exception | None = None) -> None:
        """Close the socket and drop what is unsent."""
        if self._closed:
            return
        self._closed = True
        self.pause_reading()
        self._stop_writing()
        self._queue.clear()
        self.unsent_bytes = 0
        self._socket.close()
        self._owner.on_closed(error)

    def _on_readable(self) -> None:
        try:
            if self._hung_up:
                count = len(self._socket.recv(COPY_BYTES_MAX))
            else:
                count = self._socket.recv_into(self._owner.receive_buffer())
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self.close(error)
            return
        if not count:
            self.close()
        elif not self._hung_up:
            self._owner.on_received(count)

    def _send_now(self, data: bytes) -> None:
        """Send one piece, by far the most frequent answer, with one call and no queue."""
        try:
            sent = self._socket.send(data)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as error:
            self.close(error)
            return
        if sent < len(data):
            self._queue.append(memoryview(data)[sent:])
            self.unsent_bytes = len(data) - sent
            self._start_writing()

    def _on_writable(self) -> None:
        try:
            for _ in range(PARTS_AT_ONCE):
                if not self._queue or not self._send_first():
                    break
        except (BlockingIOError, InterruptedError):
            self._start_writing()
            return
        except OSError as error:
            self.close(error)
            return
        if self._queue and not self._warming:
            self._start_writing()
            return
        self._stop_writing()
        if not self._queue:
            self._owner.on_drained()

    def _send_first(self) -> bool:
        """Send of the first part what the socket takes; return whether to go on."""
        first = self._queue[0]
        if isinstance(first, Slice):
            return self._send_slice(first)
        more = MSG_MORE if len(self._queue) > 1 else 0
        sent = self._socket.send(first, more)
        self.unsent_bytes -= sent
        if sent == len(first):
            self._queue.popleft()
            return True
        self._queue[0] = first[sent:]
        return False

    def _send_slice(self, first: Slice) -> bool:
        wanted, sent = self._send_file(first) if self.zero_copy else self._send_copy(first)
        if not wanted:
            return False
        if sent == 0:
            raise OSError(errno.EIO, "a log file is shorter than what was to be sent of it")
        self.unsent_bytes -= sent
        if sent == first.size:
            self._queue.popleft()
            self._resident_bytes = 0
            return True
        self._queue[0] = Slice(first.file, first.position + sent, first.size - sent)
        # A socket that took less than it was given is full.
        return sent == wanted

    def _send_file(self, first: Slice) -> tuple[int, int]:
        """Return how much was given to the socket and how much it took; 0 if it must be read."""
        fd = cast(SlicedFile, first.file).fileno()
        if self._resident_bytes <= 0:
            wanted = min(first.size, SLICE_BYTES_MAX)
            if not is_resident(fd, first.position, wanted):
                self._warm(first, lambda: read_through(fd, first.position, wanted), wanted)
                return 0, 0
            self._resident_bytes = wanted
        wanted = min(first.size, self._resident_bytes)
        sent = os.sendfile(self._fd, fd, first.position, wanted)
        self._resident_bytes -= sent
        return wanted, sent

    def _send_copy(self, first: Slice) -> tuple[int, int]:
        """Do the same by reading the slice in pieces."""
        wanted = min(first.size, COPY_BYTES_MAX)
        try:
            data = cast(SlicedFile, first.file).read_now(first.position, wanted)
        except ColdError as cold:
            self._warm(first, cold.fetch, 0)
            return 0, 0
        except OSError as error:
            self._owner.on_unreadable(first.file, error)
            raise
        return wanted, self._socket.send(memoryview(data)) if data else 0

    def _warm(self, first: Slice, read: Callable[[], object], size: int) -> None:
        self._warming = True
        self._start_task(self._read_and_go_on(first, read, size))

    async def _read_and_go_on(self, first: Slice, read: Callable[[], object], size: int) -> None:
        """Have a thread read the slice, so that the loop finds it in memory."""
        try:
            await self._host.offload(read)
        except OSError as error:
            self._owner.on_unreadable(first.file, error)
            self.close(error)
            return
        finally:
            self._warming = False
        if not self._closed:
            # Nothing was sent meanwhile. Asked again, a system that is short of memory, or that
            # cannot tell, would have it read for ever.
            self._resident_bytes = size
            self._on_writable()

    def _start_writing(self) -> None:
        if not self._writing and not self._closed:
            self._writing = True
            self._host.network.when_writable(self._socket, self._on_writable)

    def _stop_writing(self) -> None:
        if self._writing:
            self._writing = False
            self._host.network.when_writable(self._socket, None)


def in_one(parts: Sequence[Part]) -> bytes | None:
    """Return the parts as one, if that is little and in memory; else None."""
    if len(parts) == 1 and isinstance(parts[0], bytes):
        return parts[0]
    if len(parts) > PARTS_JOINED_MAX:
        return None
    pieces: list[bytes | bytearray | memoryview] = []
    for part in parts:
        piece = part if isinstance(part, bytes) else read_small(part)
        if piece is None:
            return None
        pieces.append(piece)
    return b"".join(pieces)


def read_small(part: Slice) -> bytes | bytearray | memoryview | None:
    """Return the bytes of a small slice that is in memory; else None."""
    if part.size > SMALL_BYTES_MAX:
        return None
    try:
        data = cast(SlicedFile, part.file).read_now(part.position, part.size)
    except (ColdError, OSError):
        # The long way reads it in a thread, or ends the link.
        return None
    return data if len(data) == part.size else None
