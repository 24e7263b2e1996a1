"""Connections that are read until a deadline, however little a server sends at a time.

A time-out of a socket is one of silence: a server that sends a byte of a header every few seconds
keeps a client for days. Here every read and write ends at the deadline of the request.
"""

import ssl
from collections.abc import Callable, Iterable
from typing import Any

import httpcore
import httpx

TOO_LONG = "the answer took too long"


class Deadline:
    """Until when the request that is under way may take."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._until_ms = 0

    def begin(self, allowed_ms: int) -> None:
        """Let a request take so long from now on."""
        self._until_ms = self._now_ms() + allowed_ms

    def limit(self, seconds: float | None) -> float:
        """Return the shorter of a time-out and what is left."""
        left = (self._until_ms - self._now_ms()) / 1000
        if left <= 0:
            raise httpcore.ReadTimeout(TOO_LONG)
        return left if seconds is None else min(left, seconds)


class _Stream(httpcore.NetworkStream):
    """A connection that keeps to the deadline."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._deadline.limit(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._deadline.limit(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        limit = self._deadline.limit(timeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, limit), self._deadline)

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 - as in httpcore
        return self._stream.get_extra_info(info)


class _Backend(httpcore.SyncBackend):
    """Opens connections that keep to the deadline."""

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        limit = self._deadline.limit(timeout)
        stream = super().connect_tcp(host, port, limit, local_address, socket_options)
        return _Stream(stream, self._deadline)


class Transport(httpx.HTTPTransport):
    """httpx's way to servers, over connections that keep to the deadline."""

    def __init__(self, deadline: Deadline) -> None:
        super().__init__(trust_env=False)
        self._pool = httpcore.ConnectionPool(
            ssl_context=httpx.create_ssl_context(trust_env=False),
            network_backend=_Backend(deadline),
        )
