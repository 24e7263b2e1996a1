"""`/metrics` and `/healthz`, on one HTTP port.

Two fixed documents for machines, so a request line is all that is read of a request; anything else
(the console, the REST services) is a service of its own with a web framework under it.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import NamedTuple

from strom.broker.metrics import Metrics

HEAD_BYTES_MAX = 8192
READ_TIMEOUT_SECONDS = 10
TEXT = "text/plain; charset=utf-8"


class Response(NamedTuple):
    """What to answer."""

    status: str
    body: bytes
    content_type: str = TEXT


def bind_http(host: str, port: int) -> socket.socket:
    """Take the port; who comes waits until it is served."""
    return socket.create_server((host, port))


class HttpServer:
    """Answers the two documents."""

    def __init__(self, metrics: Metrics, is_healthy: Callable[[], bool]) -> None:
        self._metrics = metrics
        self._is_healthy = is_healthy
        self._server: asyncio.Server | None = None

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
        try:
            async with asyncio.timeout(READ_TIMEOUT_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            response = self._answer(head)
            wants_body = not head.startswith(b"HEAD ")
        except (asyncio.LimitOverrunError, ValueError):
            response = Response("431 Request Header Fields Too Large", b"")
            wants_body = False
        except (TimeoutError, asyncio.IncompleteReadError, ConnectionError):
            writer.close()
            return
        lines = (
            f"HTTP/1.1 {response.status}",
            f"Content-Type: {response.content_type}",
            f"Content-Length: {len(response.body)}",
            "Connection: close",
            "",
            "",
        )
        with contextlib.suppress(ConnectionError):
            writer.write("\r\n".join(lines).encode() + (response.body if wants_body else b""))
            await writer.drain()
        writer.close()

    def _answer(self, head: bytes) -> Response:
        method, _, rest = head.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if method not in (b"GET", b"HEAD"):
            return Response("405 Method Not Allowed", b"only GET is served\n")
        if path == b"/healthz":
            healthy = self._is_healthy()
            status = "200 OK" if healthy else "503 Service Unavailable"
            return Response(status, b"ok\n" if healthy else b"starting or stopping\n")
        if path == b"/metrics":
            return self._metrics_page()
        return Response("404 Not Found", b"try /metrics or /healthz\n")

    def _metrics_page(self) -> Response:
        from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

        registry = CollectorRegistry()
        registry.register(self._metrics)
        return Response("200 OK", generate_latest(registry), CONTENT_TYPE_LATEST)
