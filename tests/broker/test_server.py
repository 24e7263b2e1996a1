"""The listeners: who is let in, who has to wait, and who has been idle for too long."""

import asyncio
import contextlib
import errno
import os
import resource
import socket
from types import SimpleNamespace

import pytest

from strom.broker.admission import address_limits
from strom.broker.dispatch import Api
from strom.broker.host import Host
from strom.broker.listening import bind
from strom.broker.metrics import Metrics
from strom.broker.network import Address, RealNetwork
from strom.broker.server import Server
from strom.metadata.settings.values import BrokerSettings
from strom.testing.network import FIRST_NUMBER, FakeNetwork
from strom.wire.primitives import INT16, INT32
from tests.patience import until_true

ANSWER_BYTES = 32 << 20
REAL = RealNetwork()
#: An address that no machine has (RFC 5737).
ELSEWHERE = "192.0.2.1"


class Codec:
    flexible = False

    def read(self, frame, position):
        return bytes(frame[position:])

    def write(self, response):
        return [response]


async def wait_for_ever():
    await asyncio.Event().wait()


def handle(request, context):
    """Answer: what was asked for, much more than that, or never."""
    return {b"echo": b"echo", b"much": bytes(ANSWER_BYTES)}.get(request) or wait_for_ever()


def request(body):
    header = INT16.pack(0) + INT16.pack(0) + INT32.pack(5) + INT16.pack(-1)
    return INT32.pack(len(header + body)) + header + body


class Place:
    """A server on a free port, with a clock that is set by hand."""

    def __init__(self, tasks, settings, host, network):
        self.now_ms = 0
        self.parts = SimpleNamespace(
            settings=BrokerSettings(settings),
            host=Host(now_ms=lambda: self.now_ms, network=network),
            metrics=Metrics(),
        )
        self.parts.address_limits = address_limits(self.parts.settings, self.parts.host.network)
        api = Api("echo", 0, range(1), handle, lambda version: Codec())
        names = ("PLAINTEXT", "OTHER")
        addresses = [Address(name, host, 0) for name in names]
        listening = bind(self.parts.host.network, addresses, self.parts.settings)
        self.server = Server(self.parts, {0: api, 18: api}, tasks.create_task, listening)
        self.port, self.other_port = (listening[name][0].port for name in names)
        self.server.accept()
        self.clients = []

    def change(self, **settings):
        self.parts.settings = BrokerSettings(
            {key.replace("_", "."): value for key, value in settings.items()}
        )

    async def connect(self, host="127.0.0.1", port=None):
        client = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        client.setblocking(False)
        self.clients.append(client)
        await asyncio.get_running_loop().sock_connect(client, (host, port or self.port))
        await rounds()
        return client

    @property
    def inside(self):
        return len(self.server.connections)

    async def until_inside(self, count):
        """Wait until so many are let in; the system takes its time to say who comes and goes."""
        await until_true(lambda: self.inside == count)


async def rounds():
    """Let everything that is ready happen, to see that nothing does."""
    for _ in range(20):
        await asyncio.sleep(0)


async def ask(client, body=b"echo"):
    await asyncio.get_running_loop().sock_sendall(client, request(body))
    await rounds()


async def answer(client):
    """What a client is told that has asked for an echo."""
    return await asyncio.get_running_loop().sock_recv(client, 100)


async def is_closed(client):
    try:
        return await asyncio.get_running_loop().sock_recv(client, 1) == b""
    except ConnectionResetError:
        return True


@contextlib.asynccontextmanager
async def serving(host="127.0.0.1", network=REAL, **settings):
    """A server with these settings."""
    named = {key.replace("_", "."): value for key, value in settings.items()}
    async with asyncio.TaskGroup() as tasks:
        place = Place(tasks, named, host, network)
        with contextlib.ExitStack() as stack:
            stack.callback(lambda: [each.close() for each in place.clients])
            stack.callback(place.server.close)
            yield place


# Who is let in.


async def test_who_is_over_max_connections_waits_until_somebody_leaves():
    async with serving(max_connections="2") as place:
        first, _, third = [await place.connect() for _ in range(3)]
        await place.until_inside(2)
        await ask(third)
        before = place.inside
        first.close()
        told = await answer(third)
        before, after, told = before, place.inside, told
    assert (before, after) == (2, 2)
    assert told.endswith(b"echo")


async def test_who_waits_is_let_in_when_the_limit_is_raised():
    async with serving(max_connections="1") as place:
        for _ in range(3):
            await place.connect()
        await place.until_inside(1)
        await rounds()
        before = place.inside
        place.change(max_connections="3")
        place.server.look_after()
        await place.until_inside(3)
        assert before == 1


async def test_a_listener_may_have_a_limit_of_its_own():
    async with serving(**{"listener.name.plaintext.max.connections": "1"}) as place:
        first, second = [await place.connect() for _ in range(2)]
        await place.until_inside(1)
        await ask(second)
        for _ in range(2):
            await place.connect(port=place.other_port)
        await place.until_inside(3)
        await rounds()
        before = place.inside
        first.close()
        before, told = before, await answer(second)
    assert before == 3
    assert told.endswith(b"echo")


async def test_who_comes_too_soon_waits_to_be_let_in():
    async with serving(max_connection_creation_rate="2") as place:
        clients = [await place.connect() for _ in range(3)]
        await place.until_inside(2)
        await ask(clients[2])
        before = place.inside
        place.now_ms += 500
        before, told = before, await answer(clients[2])
    assert before == 2
    assert told.endswith(b"echo")


async def test_who_comes_too_soon_to_a_listener_holds_up_no_other():
    rate = {"listener.name.plaintext.max.connection.creation.rate": "1"}
    async with serving(**rate) as place:
        for _ in range(2):
            await place.connect()
        for _ in range(2):
            await place.connect(port=place.other_port)
        await place.until_inside(3)
        await rounds()
        before = place.inside
        place.now_ms += 1000
        await place.until_inside(4)
        assert before == 3


async def test_who_finds_no_descriptor_left_is_let_in_when_there_is_one(caplog):
    async with serving() as place:
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        with socket.socket() as lowest:
            # Newcomers get the lowest number that is free, and with this limit none is.
            resource.setrlimit(resource.RLIMIT_NOFILE, (lowest.fileno() + 1, before[1]))
            try:
                lowest.setblocking(False)
                address = "127.0.0.1", place.port
                await asyncio.get_running_loop().sock_connect(lowest, address)
                await until_true(lambda: "Cannot accept a connection" in caplog.text)
                waiting = place.inside
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, before)
            await place.until_inside(1)
            assert waiting == 0


@pytest.mark.parametrize("overrides", ["", "10.1.2.3:5", "127.0.0.1:2,10.1.2.3:9", "localhost:2"])
async def test_the_surplus_of_one_address_is_closed_at_once(overrides, caplog):
    is_named = "127.0.0.1" in overrides or "localhost" in overrides
    limits = {"max.connections.per.ip": "7" if is_named else "2"}
    async with serving(**limits, max_connections_per_ip_overrides=overrides) as place:
        clients = [await place.connect() for _ in range(3)]
        refused = await is_closed(clients[2])
        clients[0].close()
        await place.until_inside(1)
        await place.connect()
        await place.until_inside(2)
        assert (refused, place.inside) == (True, 2)
    assert "max.connections.per.ip is reached" in caplog.text


async def test_all_that_was_counted_is_forgotten():
    async with serving() as place:
        clients = [await place.connect() for _ in range(3)]
        await place.until_inside(3)
        for client in clients:
            client.close()
        await place.until_inside(0)
        by_address, metrics = dict(place.server._by_address), place.parts.metrics
    assert by_address == {}
    assert metrics.accepted_connections == 3


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="there is no IPv6 here")
@pytest.mark.parametrize("host", ["", "::"])
async def test_every_address_means_both_families(host):
    async with serving(host) as place:
        await place.connect("127.0.0.1")
        await place.connect("::1")
        await place.until_inside(2)
        assert sorted((each.address[0], each.came_to) for each in place.server.connections) == [
            ("127.0.0.1", "127.0.0.1"),
            ("::1", "::1"),
        ]


class Named(RealNetwork):
    """The system's network, where every host is a name for these addresses."""

    __slots__ = ("addresses",)

    def __init__(self, *addresses):
        self.addresses = addresses

    def resolve(self, host):
        return list(self.addresses)


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="there is no IPv6 here")
async def test_a_name_is_listened_at_with_all_of_its_addresses_at_one_port():
    async with serving("pc", Named("::1", "127.0.0.1")) as place:
        await place.connect("127.0.0.1")
        await place.connect("::1")
        await place.until_inside(2)
        assert sorted(each.came_to for each in place.server.connections) == ["127.0.0.1", "::1"]


async def test_addresses_of_a_name_that_are_not_this_machines_are_left_out():
    async with serving("pc", Named(ELSEWHERE, "127.0.0.1")) as place:
        await place.connect("127.0.0.1")
        await place.until_inside(1)
    with pytest.raises(OSError, match=os.strerror(errno.EADDRNOTAVAIL)):
        bind(Named(ELSEWHERE), [Address("PLAINTEXT", "pc", 0)], BrokerSettings())


class Twins(FakeNetwork):
    """A network in memory where every host is a name for two addresses."""

    def resolve(self, host):
        return ["a", "b"]


def test_a_port_that_is_free_at_one_address_only_is_not_picked():
    network = Twins()
    network.listen(Address("OTHER", "b", FIRST_NUMBER + 1), BrokerSettings())
    (places,) = bind(network, [Address("PLAINTEXT", "pc", 0)], BrokerSettings()).values()
    assert [each.address for each in places] == [("a", places[0].port), ("b", places[0].port)]
    assert places[0].port > FIRST_NUMBER + 1
    assert network.listen(Address("OTHER", "a", FIRST_NUMBER + 1), BrokerSettings())


def test_all_listeners_are_bound_or_none():
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        ports = free.getsockname()[1], taken.getsockname()[1]
        free.close()
        addresses = [Address(str(port), "127.0.0.1", port) for port in ports]
        with pytest.raises(OSError, match="in use"):
            bind(RealNetwork(), addresses, BrokerSettings())
        (place,) = bind(RealNetwork(), addresses[:1], BrokerSettings())[str(ports[0])]
        place.close()


# The end.


async def test_once_it_is_over_nobody_is_let_in_whoever_leaves():
    async with serving() as place:
        first = await place.connect()
        await place.until_inside(1)
        await ask(first, b"wait")
        place.server.finish()
        await place.connect()
        first.close()
        place.server.look_after()
        for connection in place.server.connections.copy():
            connection.close()
        await place.connect()
        assert place.inside == 0


# Idle clients.


async def test_who_is_idle_for_too_long_is_closed_and_who_waits_is_not():
    async with serving(connections_max_idle_ms="100") as place:
        idle, waiting, busy = [await place.connect() for _ in range(3)]
        await ask(waiting, b"wait")
        await place.until_inside(3)
        await until_true(lambda: not all(each.is_idle for each in place.server.connections))
        for place.now_ms in (40, 80):
            await ask(busy)
            await answer(busy)
            place.server.look_after()
        before = place.inside
        place.now_ms = 101
        place.server.look_after()
        assert (before, place.inside, await is_closed(idle)) == (3, 2, True)


async def test_who_stops_reading_is_idle_and_who_reads_slowly_is_not():
    async with serving(connections_max_idle_ms="100") as place:
        stuck, slow = [await place.connect() for _ in range(2)]
        for client in (stuck, slow):
            await ask(client, b"much")
        port = slow.getsockname()[1]
        await until_true(lambda: [each.is_idle for each in place.server.connections] == [False] * 2)
        (theirs,) = (each for each in place.server.connections if each.address[1] == port)
        inside = []
        for place.now_ms in (0, 90, 180):
            before = theirs.link.unsent_bytes
            while theirs.link.unsent_bytes == before:
                await asyncio.get_running_loop().sock_recv(slow, 1 << 18)
            place.server.look_after()
            inside.append(place.inside)
        assert inside == [2, 2, 1]


async def test_an_idle_time_below_0_closes_nobody():
    async with serving(connections_max_idle_ms="-1") as place:
        await place.connect()
        await place.until_inside(1)
        place.now_ms = 10**12
        place.server.look_after()
        assert place.inside == 1
