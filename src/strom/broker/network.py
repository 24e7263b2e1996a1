"""The few things the broker asks of a network, and the network of the operating system.

    Network.resolve(host) ──▶ addresses
    Network.listen(address) ──▶ Listening ──accept()──▶ Newcomer, with a Socket

No socket ever waits: what cannot be done now raises BlockingIOError, and who wants to know when it
can be done asks `when_readable` or `when_writable`. So a simulator can put a network there that is
slow, hands over bytes piece by piece, and breaks (strom.testing.network). Every error is an
OSError, as the system raises it.
"""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, Protocol

from strom.metadata.settings.values import BrokerSettings

#: Hosts that mean every address of both families, as they do for Java.
EVERY_ADDRESS = ("", "::")
#: How an IPv4 address looks on a socket that takes both families.
IPV4_MAPPED = "::ffff:"
#: What the system holds for each connection. Set where nobody asked for it, the window that the
#: peer is told of could not grow any more: requests of 100 KB would come in pieces.
BUFFERS = (
    (socket.SO_RCVBUF, "socket.receive.buffer.bytes"),
    (socket.SO_SNDBUF, "socket.send.buffer.bytes"),
)
#: The control of congestion that does not pace, and that any process may choose.
NOT_PACED = b"reno"


class Address(NamedTuple):
    """Where a listener binds; an empty host is every address, port 0 any free one."""

    listener: str
    host: str
    port: int


class Pollable(Protocol):
    """What can become ready."""

    def fileno(self) -> int:
        """Return a number that no other open one has."""

    def close(self) -> None:
        """Give it back."""


class Socket(Pollable, Protocol):
    """A connection."""

    def recv(self, size: int, /) -> bytes:
        """Return what has come, at most so much; nothing if the peer has ended it."""

    def recv_into(self, buffer: memoryview, /) -> int:
        """Put what has come into the buffer; return how much that is, 0 at the end."""

    def send(self, data: bytes | memoryview, flags: int = 0, /) -> int:
        """Send; return how much was taken, which may be less than all."""

    def shutdown(self, how: int, /) -> None:
        """Say that nothing more is sent."""


class Newcomer(NamedTuple):
    """Who has connected."""

    socket: Socket
    host: str
    port: int
    #: The address of ours that it came to.
    came_to: str


class Listening(Pollable, Protocol):
    """A place that others connect to."""

    @property
    def port(self) -> int:
        """Return the port, also one that was picked."""

    def accept(self) -> Newcomer:
        """Return who has come first."""


class Network(Protocol):
    """All that the broker asks of a network."""

    @property
    def has_descriptors(self) -> bool:
        """Whether its sockets are the system's, so that files can be sent to them."""

    def resolve(self, host: str) -> list[str]:
        """Return a host's addresses, as newcomers have them; may take as long as a name server."""

    def listen(self, address: Address, settings: BrokerSettings) -> Listening:
        """Return a place at the address, no name, that others can connect to from now on."""

    def when_readable(self, ready: Pollable, call: Callable[[], None] | None) -> None:
        """Call whenever something can be received or accepted; None ends that."""

    def when_writable(self, ready: Pollable, call: Callable[[], None] | None) -> None:
        """Call whenever something can be sent; None ends that."""


class RealListening:
    """A socket of the operating system that listens."""

    __slots__ = ("_socket",)

    def __init__(self, listening: socket.socket) -> None:
        self._socket = listening

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._socket.fileno()

    @property
    def port(self) -> int:
        """Return the port, also one that was picked."""
        port: int = self._socket.getsockname()[1]
        return port

    def accept(self) -> Newcomer:
        """Return who has come first."""
        accepted, address = self._socket.accept()
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        came_to = accepted.getsockname()[0]
        if came_to == address[0]:
            send_without_pacing(accepted)
        return Newcomer(accepted, unmapped(address[0]), address[1], unmapped(came_to))

    def close(self) -> None:
        """Listen no longer."""
        self._socket.close()


def send_without_pacing(connected: socket.socket) -> None:
    """Have nothing sent later than it could be: nobody shares the way to a peer on this machine.

    BBR, the default of some systems, spreads out what is sent by a timer for every packet.
    That is meant for routers on the way; here it takes as much time as the sending itself.
    """
    if hasattr(socket, "TCP_CONGESTION"):
        with suppress(OSError):
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, NOT_PACED)


class RealNetwork:
    """The operating system's sockets, behind the running loop's `add_reader` and `add_writer`."""

    __slots__ = ()

    has_descriptors = True

    def resolve(self, host: str) -> list[str]:
        """Return a host's addresses, as newcomers have them; may take as long as a name server."""
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except UnicodeError:
            # A name that no host can have, with an empty part or one that is too long.
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known") from None
        return list(dict.fromkeys(unmapped(str(address[0])) for *_, address in found))

    def listen(self, address: Address, settings: BrokerSettings) -> RealListening:
        """Return a place at the address, on both families if no host is given."""
        host, port = address.host, address.port
        dual = host in EVERY_ADDRESS and socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if dual or ":" in host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if dual else 1)
            for option, name in BUFFERS:
                if settings.is_given(name) and settings.number(name) > 0:
                    listening.setsockopt(socket.SOL_SOCKET, option, settings.number(name))
            listening.setblocking(False)
            listening.bind((host, port))
            listening.listen(settings.number("socket.listen.backlog.size"))
        except OSError:
            listening.close()
            raise
        return RealListening(listening)

    def when_readable(self, ready: Pollable, call: Callable[[], None] | None) -> None:
        """Call whenever something can be received or accepted; None ends that."""
        loop = asyncio.get_running_loop()
        if call is None:
            loop.remove_reader(ready.fileno())
        else:
            loop.add_reader(ready.fileno(), call)

    def when_writable(self, ready: Pollable, call: Callable[[], None] | None) -> None:
        """Call whenever something can be sent; None ends that."""
        loop = asyncio.get_running_loop()
        if call is None:
            loop.remove_writer(ready.fileno())
        else:
            loop.add_writer(ready.fileno(), call)


def unmapped(host: str) -> str:
    """Return an address as IPv4 has it, if it is one."""
    return host.removeprefix(IPV4_MAPPED)
