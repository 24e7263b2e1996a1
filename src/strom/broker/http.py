"""`/metrics` and `/healthz`, on one HTTP port.

Two fixed documents for machines, so a request line is all that is read of a request; anything else
(the console, the REST services) is a service of its own with a web framework under it.

A page of metrics can be long: what there is to show is gathered on the loop, and written in a
thread. Who comes while many are being answered is turned away, and who is slow is left.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from strom.broker.metrics import Metrics
from strom.broker.network import EVERY_ADDRESS
from strom.log.cold import Offload

if TYPE_CHECKING:
    from prometheus_client import Metric

HEAD_BYTES_MAX = 8192
#: From the first byte of a request to the last of its answer.
ANSWER_SECONDS_MAX = 10
#: More than the servers and probes that ask one broker at the same time.
CONNECTIONS_MAX = 64
TEXT = "text/plain; charset=utf-8"


class Response(NamedTuple):
    """What to answer."""

    status: str
    body: bytes
    content_type: str = TEXT


def bind_http(host: str, port: int) -> socket.socket:
    """Take the port; who comes waits until it is served. An empty host is every address."""
    if host in EVERY_ADDRESS and socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    # One address is enough here: of a name's, that of the family that everybody has.
    family, _, _, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    return socket.create_server((str(address[0]), port), family=family)


class HttpServer:
    """Answers the two documents."""

    def __init__(
        self,
        metrics: Metrics,
        is_healthy: Callable[[], bool],
        offload: Offload,
        *,
        answer_seconds_max: float = ANSWER_SECONDS_MAX,
    ) -> None:
        self._metrics = metrics
        self._is_healthy = is_healthy
        self._offload = offload
        self._answer_seconds_max = answer_seconds_max
        self._server: asyncio.Server | None = None
        #: How many are being answered.
        self.connections = 0

    async def start(self, bound: socket.socket) -> int:
        """Answer who comes to the socket; return its port."""
        self._server = await asyncio.start_server(
            self._serve, sock=bound, limit=HEAD_BYTES_MAX, start_serving=True
        )
        chosen: int = bound.getsockname()[1]
        return chosen

    def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.connections >= CONNECTIONS_MAX:
            writer.transport.abort()
            return
        self.connections += 1
        gone = (TimeoutError, asyncio.IncompleteReadError, ConnectionError)
        try:
            with contextlib.suppress(*gone):
                async with asyncio.timeout(self._answer_seconds_max):
                    writer.write(await self._answer(reader))
                    writer.close()
                    await writer.wait_closed()
        finally:
            # Whoever does not take what is left of the answer does not keep it, either.
            writer.transport.abort()
            self.connections -= 1

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        """Read a request, and return all that is to be sent."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.LimitOverrunError, ValueError):
            return written(Response("431 Request Header Fields Too Large", b""))
        return written(await self._document(head), wants_body=not head.startswith(b"HEAD "))

    async def _document(self, head: bytes) -> Response:
        method, _, rest = head.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if method not in (b"GET", b"HEAD"):
            return Response("405 Method Not Allowed", b"only GET is served\n")
        if path == b"/healthz":
            healthy = self._is_healthy()
            status = "200 OK" if healthy else "503 Service Unavailable"
            return Response(status, b"ok\n" if healthy else b"starting or stopping\n")
        if path == b"/metrics":
            shown = self._metrics.collect()
            return await self._offload(lambda: page_of(shown))
        return Response("404 Not Found", b"try /metrics or /healthz\n")


class Gathered:
    """What is to be shown, as the Prometheus library asks for it."""

    def __init__(self, metrics: "Iterable[Metric]") -> None:
        self._metrics = metrics

    def collect(self) -> "Iterable[Metric]":
        """Return it."""
        return self._metrics


def page_of(shown: "Iterable[Metric]") -> Response:
    """Write what was gathered; may take long."""
    from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

    registry = CollectorRegistry()
    registry.register(Gathered(shown))
    return Response("200 OK", generate_latest(registry), CONTENT_TYPE_LATEST)


def written(response: Response, *, wants_body: bool = True) -> bytes:
    """Write an answer as it is sent."""
    lines = (
        f"HTTP/1.1 {response.status}",
        f"Content-Type: {response.content_type}",
        f"Content-Length: {len(response.body)}",
        "Connection: close",
        "",
        "",
    )
    return "\r\n".join(lines).encode() + (response.body if wants_body else b"")
