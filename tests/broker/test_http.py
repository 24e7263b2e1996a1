"""The HTTP port while a broker starts or stops (MON-01)."""

import asyncio

import pytest

from strom.broker.http import HttpServer, bind_http
from strom.broker.metrics import Metrics


@pytest.mark.parametrize(
    ("is_healthy", "status", "body"),
    [(True, "200 OK", "ok"), (False, "503 Service Unavailable", "starting or stopping")],
)
def test_health_tells_whether_the_broker_serves(is_healthy, status, body):
    async def get():
        server = HttpServer(Metrics(), lambda: is_healthy)
        port = await server.start(bind_http("127.0.0.1", 0))
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /healthz HTTP/1.1\r\n\r\n")
        answer = await reader.read()
        writer.close()
        server.close()
        return answer.decode()

    answer = asyncio.run(get())
    assert answer.startswith(f"HTTP/1.1 {status}\r\n")
    assert answer.endswith(f"\r\n\r\n{body}\n")
