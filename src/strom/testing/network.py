"""A network in memory, for a broker and its clients on one event loop.

    network = FakeNetwork(Random(seed))
    host = Host(disk=FakeDisk(), network=network)
    ...
    client = network.connect("127.0.0.1", 9092)

Nothing of it is the operating system's. With a `Random` it is as bad as a network may be: a socket
takes less than it is given, and bytes arrive in pieces, some turns of the loop later. Without, all
that is sent is there in the next turn. `cut` breaks connections; what was under way is lost.
"""

import asyncio
import errno
import itertools
import os
from collections import deque
from collections.abc import Callable
from random import Random
from typing import TypeVar

from strom.broker.network import Address, Newcomer, Pollable
from strom.metadata.settings.values import BrokerSettings

#: How much one side may have sent that the other has not received.
WINDOW_BYTES = 1 << 16
TURNS_MAX = 4
#: Ports and descriptors count from here.
FIRST_NUMBER = 32768
READ, WRITE = "read", "write"

Error = TypeVar("Error", bound=OSError)


class Watched:
    """Something that becomes ready, and whoever wants to know of it."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._calls: dict[str, Callable[[], None]] = {}
        self._due: set[str] = set()
        self.is_closed = False

    def fileno(self) -> int:
        """Return a number that no other one has."""
        return self._number

    def watch(self, what: str, call: Callable[[], None] | None) -> None:
        """Call whenever it is ready for that; None ends it."""
        if call is None:
            self._calls.pop(what, None)
        else:
            self._calls[what] = call
            self.look(what)

    def is_ready(self, what: str) -> bool:
        """Whether it need not wait."""
        raise NotImplementedError

    def look(self, what: str) -> None:
        """Have who is interested called in a later turn, if it is ready then."""
        if what in self._calls and what not in self._due and self.is_ready(what):
            self._due.add(what)
            asyncio.get_running_loop().call_soon(self._tell, what)

    def _tell(self, what: str) -> None:
        self._due.discard(what)
        call = self._calls.get(what)
        if call is not None and not self.is_closed and self.is_ready(what):
            call()
            self.look(what)


class FakeSocket(Watched):
    """One end of a connection."""

    def __init__(self, number: int, rng: Random | None) -> None:
        super().__init__(number)
        self._rng = rng
        self.peer: FakeSocket | None = None
        #: What is on its way, in order; None is the end of it.
        self._coming: deque[bytes | None] = deque()
        self._inbox = bytearray()
        self._is_over = False
        self._is_broken = False

    def is_ready(self, what: str) -> bool:
        """Whether it need not wait."""
        if self._is_broken:
            return True
        if what == READ:
            return bool(self._inbox) or self._is_over
        return self.peer is None or self.peer.room_bytes > 0

    @property
    def room_bytes(self) -> int:
        """How much may be sent to it now."""
        return WINDOW_BYTES - len(self._inbox) - sum(len(each or b"") for each in self._coming)

    def recv(self, size: int, /) -> bytes:
        """Return what has come, at most so much; nothing if the peer has ended it."""
        self._check()
        if not self._inbox and not self._is_over:
            raise failure(BlockingIOError, errno.EAGAIN)
        data = bytes(self._inbox[:size])
        del self._inbox[:size]
        if self.peer is not None:
            self.peer.look(WRITE)
        return data

    def recv_into(self, buffer: memoryview, /) -> int:
        """Put what has come into the buffer; return how much that is, 0 at the end."""
        data = self.recv(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def send(self, data: bytes | memoryview, _flags: int = 0, /) -> int:
        """Send; return how much was taken, which may be less than all."""
        self._check()
        peer = self.peer
        if peer is None or peer.is_closed:
            raise failure(BrokenPipeError, errno.EPIPE)
        room = min(peer.room_bytes, len(data))
        if room <= 0:
            raise failure(BlockingIOError, errno.EAGAIN)
        taken = room if self._rng is None else self._rng.randint(1, room)
        peer.expect(bytes(data[:taken]))
        return taken

    def shutdown(self, _how: int, /) -> None:
        """Say that nothing more is sent."""
        self._check()
        if self.peer is not None:
            self.peer.expect(None)

    def close(self) -> None:
        """End the connection; the peer receives what was sent, and then its end."""
        if not self.is_closed:
            self.is_closed = True
            if self.peer is not None and not self._is_broken:
                self.peer.expect(None)

    def cut(self) -> None:
        """Break the connection: what is under way is lost, and both ends find out."""
        for each in (self, self.peer):
            if each is not None and not each.is_closed:
                each._is_broken = True
                each.look(READ)
                each.look(WRITE)

    def expect(self, data: bytes | None) -> None:
        """Let this arrive after all that is on its way; None is the end."""
        self._coming.append(data)
        if len(self._coming) == 1:
            self._begin_to_arrive()

    def _begin_to_arrive(self) -> None:
        turns = 1 if self._rng is None else self._rng.randint(1, TURNS_MAX)
        asyncio.get_running_loop().call_soon(self._arrive, turns)

    def _arrive(self, turns: int) -> None:
        if turns > 1:
            asyncio.get_running_loop().call_soon(self._arrive, turns - 1)
            return
        data = self._coming.popleft()
        if data is None:
            self._is_over = True
        else:
            self._inbox += data
        if self._coming:
            self._begin_to_arrive()
        self.look(READ)

    def _check(self) -> None:
        if self.is_closed:
            raise failure(OSError, errno.EBADF)
        if self._is_broken:
            raise failure(ConnectionResetError, errno.ECONNRESET)


class FakeListening(Watched):
    """A place that others connect to."""

    def __init__(self, number: int, address: tuple[str, int]) -> None:
        super().__init__(number)
        self.address = address
        self.newcomers: deque[Newcomer] = deque()

    def is_ready(self, what: str) -> bool:
        """Whether somebody waits to be let in."""
        return what == READ and bool(self.newcomers)

    @property
    def port(self) -> int:
        """Return the port, also one that was picked."""
        return self.address[1]

    def accept(self) -> Newcomer:
        """Return who has come first."""
        if not self.newcomers:
            raise failure(BlockingIOError, errno.EAGAIN)
        return self.newcomers.popleft()

    def close(self) -> None:
        """Listen no longer."""
        self.is_closed = True


class FakeNetwork:
    """All places of one network, and the connections between them."""

    has_descriptors = False

    def __init__(self, rng: Random | None = None) -> None:
        self._rng = rng
        self._numbers = itertools.count(FIRST_NUMBER)
        self._places: dict[tuple[str, int], FakeListening] = {}
        self._sockets: list[FakeSocket] = []

    def resolve(self, host: str) -> list[str]:
        """Return the host: there are no names here."""
        return [host]

    def listen(self, address: Address, _settings: BrokerSettings) -> FakeListening:
        """Return a place at the address that others can connect to from now on."""
        number = next(self._numbers)
        where = (address.host, address.port or number)
        taken = self._places.get(where)
        if taken is not None and not taken.is_closed:
            raise failure(OSError, errno.EADDRINUSE)
        self._places[where] = FakeListening(number, where)
        return self._places[where]

    def connect(self, host: str, port: int) -> FakeSocket:
        """Return the client's end of a new connection."""
        place = self._places.get((host, port))
        if place is None or place.is_closed:
            raise failure(ConnectionRefusedError, errno.ECONNREFUSED)
        ours, theirs = (FakeSocket(next(self._numbers), self._rng) for _ in range(2))
        ours.peer, theirs.peer = theirs, ours
        self._sockets.append(ours)
        place.newcomers.append(Newcomer(theirs, host, ours.fileno(), host))
        place.look(READ)
        return ours

    def cut(self) -> None:
        """Break every connection."""
        for each in self._sockets:
            each.cut()
        self._sockets.clear()

    def when_readable(self, ready: Pollable, call: Callable[[], None] | None) -> None:
        """Call whenever something can be received or accepted; None ends that."""
        assert isinstance(ready, Watched)
        ready.watch(READ, call)

    def when_writable(self, ready: Pollable, call: Callable[[], None] | None) -> None:
        """Call whenever something can be sent; None ends that."""
        assert isinstance(ready, Watched)
        ready.watch(WRITE, call)


def failure(kind: type[Error], number: int) -> Error:
    """Return an error as the system raises it."""
    return kind(number, os.strerror(number))
