"""Memory for requests: what one client takes is not there for others."""

from strom.broker.connection import RECEIVE_BYTES
from strom.broker.server import RequestMemory
from strom.wire.primitives import INT32
from tests.broker.connecting import connected, framed, one_round


async def test_one_request_alone_is_let_through_however_large():
    async with connected(memory_bytes_max=RECEIVE_BYTES) as (server, client):
        for number in (1, 2):
            await client.send(framed(bytes(number << 20)))
        await server.frames_taken(2)
        assert [len(each) for each in server.frames] == [1 << 20, 2 << 20]


async def test_who_finds_no_memory_is_not_read_from_until_there_is_some():
    size = 1 << 20
    async with connected(3, memory_bytes_max=size * 3 // 2) as (server, first, second, third):
        await first.send(framed(bytes(size))[:-1])
        await one_round()
        for client, byte in ((second, b"2"), (third, b"3")):
            await client.send(INT32.pack(size) + byte)
            await one_round()
        assert not second.connection.link._reading
        await first.send(b"\0")
        for client, byte in ((second, b"2"), (third, b"3")):
            await client.send(byte * (size - 1))
        await server.frames_taken(3)
        assert [each[:1] for each in server.frames] == [b"\0", b"2", b"3"]


async def test_memory_is_free_again_when_its_request_is_served_or_its_client_gone():
    size = 1 << 20
    async with connected(3, memory_bytes_max=size + 4) as (server, first, second, third):
        await first.send(framed(bytes(size)))
        await server.frames_taken(1)
        await second.send(framed(bytes(size))[:-1])
        await one_round()
        second.close()
        await third.send(framed(bytes(size)))
        await server.frames_taken(2)
        assert len(server.frames) == 2


def test_a_large_request_is_not_overtaken_for_ever_by_small_ones():
    memory = RequestMemory(100)
    resumed = []

    class Waiting:
        def __init__(self, size):
            self.size = size

        def resume(self):
            if memory.reserve(self.size, self):
                resumed.append(self.size)

    large, small = Waiting(100), Waiting(10)
    assert memory.reserve(50, Waiting(50))
    assert not memory.reserve(100, large)
    assert not memory.reserve(10, small)
    memory.release(50)
    assert resumed == [100]
    memory.release(100)
    assert resumed == [100, 10]


def test_there_is_no_limit_unless_there_is_a_number_above_0():
    for bytes_max in (-1, 0):
        memory = RequestMemory(bytes_max)
        assert memory.reserve(1 << 40, None)
        assert memory.reserve(1 << 40, None)


def test_who_is_gone_does_not_wait_for_memory():
    memory = RequestMemory(100)
    assert memory.reserve(90, "slow")
    assert not memory.reserve(90, "gone")
    memory.forget("gone")
    memory.release(90)
    assert memory.reserve(90, "next")
