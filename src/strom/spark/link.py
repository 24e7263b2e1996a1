"""One connection to one broker, with blocking calls: a request out, its answer in.

A Python worker of Spark keeps its connections for the tasks to come (`link_to`). A connection on
which an answer is still under way is of no use to the next task: who leaves early drops it.
"""

import itertools
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from strom.spark.failure import UnreachableError
from strom.spark.options import Connection
from strom.wire.messages import Call
from strom.wire.primitives import Buffer, MalformedFrame, skip_tags

Address = tuple[str, int]

API_VERSIONS_KEY = 18
#: As many connections as a worker keeps; a cluster may have more brokers.
LINKS_MAX = 64
#: What a broker may answer at the most: no request asks for more.
ANSWER_BYTES_MAX = 2**31 - 1
#: The buffer of a connection grows by so much, for answers are of about the same size.
BUFFER_STEP_BYTES = 1024 * 1024

_SIZE = struct.Struct(">i")
_HEADER = struct.Struct(">hhih")
_RANGE = struct.Struct(">hhh")


class Link:
    """A connection that was made, and what its broker understands."""

    def __init__(self, address: Address, connection: Connection) -> None:
        self.address = address
        self._client_id = connection.client_id.encode()
        self._numbers = itertools.count(1)
        self._awaited: list[int] = []
        self._buffer = bytearray()
        with self._told():
            self._socket = socket.create_connection(
                address, timeout=connection.request_timeout_ms / 1000
            )
            self._set_up(connection)
            self._versions = self._ask_versions()

    def _set_up(self, connection: Connection) -> None:
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for option, size in (
            (socket.SO_RCVBUF, connection.receive_buffer_bytes),
            (socket.SO_SNDBUF, connection.send_buffer_bytes),
        ):
            if size > 0:
                self._socket.setsockopt(socket.SOL_SOCKET, option, size)

    def send(self, key: int, version: int, *body: Buffer, flexible: bool = True) -> None:
        """Send a request, which may be in parts; `receive` has its answer when it is its turn."""
        self._check_version(key, version)
        number = next(self._numbers)
        head = _HEADER.pack(key, version, number, len(self._client_id)) + self._client_id
        if flexible:
            head += b"\0"
        size = len(head) + sum(map(len, body))
        with self._told():
            parts = [memoryview(_SIZE.pack(size) + head), *(memoryview(part) for part in body)]
            self._send_all(parts)
        self._awaited.append(number)

    def receive(self, *, flexible: bool = True) -> memoryview:
        """Return the next answer behind its header, in memory that the one after it will use."""
        with self._told():
            (size,) = _SIZE.unpack(self._read(_SIZE.size))
            if not _SIZE.size <= size <= ANSWER_BYTES_MAX:
                raise MalformedFrame(f"an answer of {size} bytes")
            frame = self._read(size)
            (number,) = _SIZE.unpack_from(frame)
            if number != self._awaited.pop(0):
                raise MalformedFrame(f"an answer to request {number}, which is not the next")
            position = skip_tags(frame, _SIZE.size) if flexible else _SIZE.size
        return frame[position:]

    def ask(self, call: Call, request: object) -> Any:  # noqa: ANN401 - any response
        """Send a request; return its response."""
        flexible = call.version >= call.request.flexible_since
        self.send(call.key, call.version, call.write(request), flexible=flexible)
        body = self.receive(flexible=flexible)
        with self._told():
            return call.read(body)

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Say of every failure of the connection which broker it was."""
        host, port = self.address
        try:
            yield
        except (OSError, MalformedFrame, struct.error, IndexError) as error:
            if isinstance(error, UnreachableError):
                raise
            reason = "no answer in time" if isinstance(error, TimeoutError) else error
            raise UnreachableError(f"broker {host}:{port}: {reason}") from None

    def _send_all(self, parts: list[memoryview]) -> None:
        """Send the parts as they are: to join them would copy a batch."""
        while parts:
            sent = self._socket.sendmsg(parts)
            while parts and sent >= len(parts[0]):
                sent -= len(parts.pop(0))
            if parts:
                parts[0] = parts[0][sent:]

    def _read(self, size: int) -> memoryview:
        if len(self._buffer) < size:
            self._buffer = bytearray(-(-size // BUFFER_STEP_BYTES) * BUFFER_STEP_BYTES)
        view = memoryview(self._buffer)[:size]
        filled = 0
        while filled < size:
            received = self._socket.recv_into(view[filled:])
            if not received:
                raise ConnectionResetError("it closed the connection")
            filled += received
        return view

    def _ask_versions(self) -> dict[int, tuple[int, int]]:
        """Ask in the oldest version, which every broker has to answer."""
        self._versions = {API_VERSIONS_KEY: (0, 0)}
        self.send(API_VERSIONS_KEY, 0, b"", flexible=False)
        answer = self.receive(flexible=False)
        return {key: (low, high) for key, low, high in _RANGE.iter_unpack(answer[6:])}

    def _check_version(self, key: int, version: int) -> None:
        low, high = self._versions.get(key, (0, -1))
        if not low <= version <= high:
            host, port = self.address
            raise UnreachableError(
                f"broker {host}:{port} does not know version {version} of request {key}: "
                "Kafka 3.1 or newer is needed"
            )


_links: dict[tuple[Address, Connection], Link] = {}


def link_to(address: Address, connection: Connection) -> Link:
    """Return this process's connection to the broker, made now if there is none."""
    link = _links.get((address, connection))
    if link is None:
        while len(_links) >= LINKS_MAX:
            _links.pop(next(iter(_links))).close()
        link = _links[address, connection] = Link(address, connection)
    return link


def drop_link(address: Address, connection: Connection) -> None:
    """End the connection to the broker, if there is one; the next is a new one."""
    link = _links.pop((address, connection), None)
    if link is not None:
        link.close()
