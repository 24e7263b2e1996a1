"""A whole broker on a disk and a network in memory, as a simulator will have it."""

import asyncio
import contextlib
import struct
from random import Random

import pytest

from strom.broker.broker import Broker
from strom.broker.host import Host
from strom.broker.startup import StartupError
from strom.metadata.settings.load import load
from strom.testing.clock import FakeClock
from strom.testing.disk import FakeDisk
from strom.testing.network import FakeNetwork
from tests.conformance import raw
from tests.conformance.batches import NOW_MS, batch
from tests.patience import PATIENCE_SECONDS

PORT = 9092
PRODUCE, FETCH, CREATE_TOPICS = ("produce", 9), ("fetch", 12), ("create_topics", 7)


async def inline(work):
    return work()


def simulated(disk, network):
    return Host(
        disk=disk,
        network=network,
        now_ms=FakeClock(NOW_MS),
        offload=inline,
        rng=Random(1),
        has_processes=False,
    )


@contextlib.asynccontextmanager
async def running(host):
    """A broker that serves on the host's network."""
    loaded = load({"log.dirs": "/data", "listeners": f"PLAINTEXT://127.0.0.1:{PORT}"})
    broker = Broker(loaded, host)
    ready = asyncio.Event()
    # What ends before it is ready has failed, and its result says how.
    serving = asyncio.create_task(broker.run(on_ready=ready.set))
    serving.add_done_callback(lambda _: ready.set())
    async with asyncio.timeout(PATIENCE_SECONDS):
        await ready.wait()
        if serving.done():
            serving.result()
        try:
            yield broker
        finally:
            broker.stop()
            await serving


class Client:
    """Asks one request after the other over a fake socket."""

    def __init__(self, network):
        self._network = network
        self._socket = network.connect("127.0.0.1", PORT)

    async def ask(self, api, **values):
        await self._send(raw.encode(*api, values))
        (size,) = struct.unpack(">i", await self._receive(4))
        _, answer = raw.decode(*api, await self._receive(size))
        return answer

    async def _send(self, data):
        while data:
            try:
                data = data[self._socket.send(data) :]
            except BlockingIOError:
                await self._until(self._network.when_writable)

    async def _receive(self, size):
        data = b""
        while len(data) < size:
            try:
                piece = self._socket.recv(size - len(data))
            except BlockingIOError:
                await self._until(self._network.when_readable)
                continue
            if not piece:
                raise ConnectionError("the broker has ended the connection")
            data += piece
        return data

    async def _until(self, ready):
        event = asyncio.Event()
        ready(self._socket, event.set)
        await event.wait()
        ready(self._socket, None)


async def create(client, **configs):
    named = [{"name": name.replace("_", "."), "value": value} for name, value in configs.items()]
    topic = {"name": "t", "num_partitions": 1, "replication_factor": 1, "configs": named}
    answer = await client.ask(CREATE_TOPICS, topics=[topic], timeout=30_000)
    assert answer["topics"][0]["error_code"] == "none"


async def produce(client, values):
    data = {"name": "t", "partition_data": [{"index": 0, "records": batch(values)}]}
    answer = await client.ask(PRODUCE, acks=-1, timeout=30_000, topic_data=[data])
    found = answer["responses"][0]["partition_responses"][0]
    assert found["error_code"] == "none"
    return found["base_offset"]


async def fetch(client, offset, wait_ms=0):
    place = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
    place |= {"current_leader_epoch": -1, "last_fetched_epoch": -1, "log_start_offset": -1}
    answer = await client.ask(
        FETCH,
        replica_id=-1,
        max_wait=wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[{"topic": "t", "partitions": [place]}],
    )
    found = answer["responses"][0]["partitions"][0]
    assert found["error_code"] == "none"
    return found["records"] or b""


LARGE = b"y" * 200_000


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
async def test_a_broker_serves_on_a_network_and_a_disk_in_memory(seed):
    """However the network cuts up and delays what is sent."""
    network = FakeNetwork(None if seed is None else Random(seed))
    async with running(simulated(FakeDisk(), network)):
        writer, reader = Client(network), Client(network)
        await create(writer)
        waiting = asyncio.create_task(fetch(reader, 0, wait_ms=30_000))
        assert await produce(writer, [b"one", b"two"]) == 0
        assert b"one" in await waiting
        assert await produce(writer, [LARGE]) == 2
        both, last = await fetch(reader, 0), await fetch(reader, 2)
    assert b"two" in both
    assert LARGE in both
    assert LARGE in last


async def test_what_was_flushed_outlives_the_power_and_the_connections():
    async def live_and_die(disk, network, host):
        async with running(host):
            client = Client(network)
            await create(client, flush_messages="1")
            await produce(client, [b"acknowledged"])
            network.cut()
            disk.crash(Random(5))
            await produce(client, [b"nobody hears this"])

    disk, network = FakeDisk(), FakeNetwork()
    host = simulated(disk, network)
    # Of a machine without power nothing else is to be expected than that it ends.
    with pytest.raises(Exception) as end:
        await live_and_die(disk, network, host)
    assert isinstance(end.value.__context__ or end.value, ConnectionResetError)
    async with running(host):
        assert b"acknowledged" in (await fetch(Client(network), 0))


async def test_who_is_cut_off_takes_nobody_along():
    network = FakeNetwork(Random(1))
    async with running(simulated(FakeDisk(), network)) as broker:
        client = Client(network)
        await create(client)
        waiting = asyncio.create_task(fetch(client, 0, wait_ms=600_000))
        await asyncio.sleep(0)
        network.cut()
        with pytest.raises(ConnectionError):
            await waiting
        assert await produce(Client(network), [b"still there"]) == 0
        assert broker.parts.metrics.failed_requests == 0


async def test_nobody_listens_twice_at_a_place_or_connects_where_nobody_does():
    network = FakeNetwork()
    host = simulated(FakeDisk(), network)
    async with running(host):
        with pytest.raises(StartupError, match="is another broker running there"):
            async with running(simulated(FakeDisk(), network)):
                pass
    with pytest.raises(ConnectionRefusedError):
        network.connect("127.0.0.1", PORT)
