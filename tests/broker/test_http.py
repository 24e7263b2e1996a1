"""The HTTP port: what is served when, and where; and clients that are slow, or many (MON-01)."""

import asyncio
import socket
import threading
from contextlib import asynccontextmanager

import pytest
from prometheus_client.core import GaugeMetricFamily

from strom.broker.host import in_thread
from strom.broker.http import CONNECTIONS_MAX, HttpServer, bind_http
from strom.broker.metrics import Metrics
from tests.patience import PATIENCE_SECONDS, until_true

SERVED = "kafka_server_brokertopicmetrics_messagesin_total"
#: More than the buffers of a connection take.
MUCH_BYTES = 32 << 20
LITTLE_TIME_SECONDS = 0.3


@asynccontextmanager
async def serving(metrics=None, *, is_healthy=True, offload=in_thread, **limits):
    """A server, and its port."""
    server = HttpServer(metrics or Metrics(), lambda: is_healthy, offload, **limits)
    port = await server.start(bind_http("127.0.0.1", 0))
    try:
        yield server, port
    finally:
        server.close()


async def ask(port, path, host="127.0.0.1"):
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(f"GET {path} HTTP/1.1\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    return answer.decode()


@pytest.mark.parametrize(
    ("is_healthy", "status", "body"),
    [(True, "200 OK", "ok"), (False, "503 Service Unavailable", "starting or stopping")],
)
async def test_health_tells_whether_the_broker_serves(is_healthy, status, body):
    async with serving(is_healthy=is_healthy) as (_, port):
        answer = await ask(port, "/healthz")
    assert answer.startswith(f"HTTP/1.1 {status}\r\n")
    assert answer.endswith(f"\r\n\r\n{body}\n")


async def test_a_page_is_written_beside_the_loop_and_shows_what_was_when_it_was_asked_for():
    metrics = Metrics()
    metrics.produced_records = 5
    threads = []

    async def offload(work):
        metrics.produced_records = 6
        return await in_thread(work)

    def pushed():
        threads.append(threading.get_ident())
        return shown()

    def shown():
        threads.append(threading.get_ident())
        yield GaugeMetricFamily("pushed", "By a client.", value=7)

    metrics.add_source(pushed)
    async with serving(metrics, offload=offload) as (_, port):
        page = await ask(port, "/metrics")
    assert f"{SERVED} 5.0\n" in page
    assert "pushed 7.0\n" in page
    gathered, written = threads
    assert gathered == threading.get_ident() != written


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\n"])
async def test_who_does_not_come_to_the_end_of_a_request_is_left(sent):
    async with serving(answer_seconds_max=LITTLE_TIME_SECONDS) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        async with asyncio.timeout(PATIENCE_SECONDS):
            answer = await reader.read()
        writer.close()
        assert answer == b""


async def test_who_does_not_read_the_answer_is_left():
    metrics = Metrics()
    metrics.add_source(lambda: iter([GaugeMetricFamily("m", "x" * MUCH_BYTES, value=1)]))
    async with serving(metrics, answer_seconds_max=LITTLE_TIME_SECONDS) as (server, port):
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
        writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
        await until_true(lambda: server.connections == 1)
        await until_true(lambda: server.connections == 0)
        writer.close()


async def test_more_than_a_few_at_once_are_turned_away():
    async with serving() as (server, port):
        many = range(CONNECTIONS_MAX)
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in many]
        await until_true(lambda: server.connections == CONNECTIONS_MAX)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        refused = await is_closed(reader)
        for each in (writer, *(theirs for _, theirs in idle)):
            each.close()
        await until_true(lambda: server.connections == 0)
        answer = await ask(port, "/healthz")
    assert refused
    assert answer.endswith("ok\n")


async def is_closed(reader):
    try:
        return await reader.read() == b""
    except ConnectionResetError:
        return True


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="there is no IPv6 here")
@pytest.mark.parametrize(
    ("host", "found"),
    [
        ("", ["127.0.0.1", "::1"]),
        ("::", ["127.0.0.1", "::1"]),
        ("0.0.0.0", ["127.0.0.1"]),
        ("127.0.0.1", ["127.0.0.1"]),
        ("::1", ["::1"]),
        ("localhost", ["127.0.0.1"]),
    ],
)
def test_the_port_is_at_the_address_that_is_asked_for(host, found):
    with bind_http(host, 0) as bound:
        port = bound.getsockname()[1]
        assert [each for each in ("127.0.0.1", "::1") if is_reached(each, port)] == found


def is_reached(host, port):
    try:
        socket.create_connection((host, port)).close()
    except ConnectionRefusedError:
        return False
    return True


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="there is no IPv6 here")
def test_a_broker_serves_its_metrics_where_it_is_told_to(strom_brokers):
    broker = strom_brokers({"strom.http.port": "0", "strom.http.host": "::1"})
    assert broker.metrics_url == f"http://[::1]:{broker.broker.http_port}/metrics"
    assert SERVED in asyncio.run(ask(broker.broker.http_port, "/metrics", "::1"))
