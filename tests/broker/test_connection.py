"""A connection: bytes into frames, its end, and when it counts as idle."""

import asyncio

import pytest

from strom.broker.connection import RECEIVE_BYTES, RECEIVE_KEPT_BYTES_MAX, REQUESTS_MAX
from strom.wire.primitives import INT32
from tests.broker.connecting import REQUEST_BYTES_MAX, connected, framed, one_round

# Frames.


@pytest.mark.parametrize("piece_bytes", [1, 3, 1 << 20])
async def test_frames_are_cut_whatever_the_pieces_they_come_in(piece_bytes):
    wanted = [b"", b"a", b"bc" * 20, b"", b"def" * 7]
    async with connected() as (server, client):
        data = b"".join(map(framed, wanted))
        for start in range(0, len(data), piece_bytes):
            await client.send(data[start : start + piece_bytes])
            await one_round()
        await server.frames_taken(len(wanted))
        assert server.frames == wanted


@pytest.mark.parametrize("size", [10, 90_000])
async def test_it_is_told_that_no_more_frames_come_with_those_that_came_together(size):
    """Also large ones: once there was one, the next that wait are received with each other."""
    async with connected() as (server, client):
        await client.send(framed(b"x" * size))
        await server.frames_taken(1)
        server.finished.clear()
        client.connection.block()
        await client.send(framed(b"y" * size) * 2)
        await one_round()
        server.finished.clear()
        client.connection.unblock()
        await server.frames_taken(3)
        assert list(server.finished) == [3]


async def test_a_buffer_of_limited_memory_is_for_one_frame():
    async with connected(memory_bytes_max=10**6) as (server, client):
        await client.send(framed(b"x" * 90_000))
        await server.frames_taken(1)
        assert len(client.connection._buffer) <= RECEIVE_BYTES


async def test_who_had_to_wait_for_answers_that_came_all_at_once_is_served_on():
    """The requests that fill all slots may be answered when no more frames come."""
    async with connected() as (server, client):

        def finish():
            while server.slots:
                client.connection.fill(server.slots.pop(0), [b"."])

        server.finish_frames = finish
        await client.send(framed(b"") * (3 * REQUESTS_MAX))
        assert await client.read(3 * REQUESTS_MAX) == b"." * (3 * REQUESTS_MAX)
        assert len(server.frames) == 3 * REQUESTS_MAX


@pytest.mark.parametrize("size", [-1, -(2**31), REQUEST_BYTES_MAX + 1, 2**31 - 1])
async def test_a_length_that_cannot_be_closes_the_connection(size):
    async with connected() as (server, client):
        await client.send(INT32.pack(size))
        await server.wait_until(lambda: server.gone)
        error, frames = server.gone[0][1], server.frames
    assert "socket.request.max.bytes" in str(error)
    assert frames == []


async def test_frames_of_all_sizes_come_out_whole():
    """The buffer grows, moves and shrinks, and never gives one frame another's bytes."""
    sizes = [10, RECEIVE_BYTES - 4, RECEIVE_BYTES - 3, 7, 1 << 20, 3, RECEIVE_KEPT_BYTES_MAX * 2, 5]
    wanted = [bytes([number]) * size for number, size in enumerate(sizes * 2)]
    async with connected() as (server, client):
        await client.send(b"".join(map(framed, wanted)))
        await server.frames_taken(len(wanted))
        assert server.frames == wanted


@pytest.mark.parametrize(
    ("size", "kept"), [(1 << 20, (1 << 20) + 4), (RECEIVE_KEPT_BYTES_MAX, RECEIVE_BYTES)]
)
async def test_a_grown_buffer_is_kept_for_the_next_frame_up_to_a_size(size, kept):
    async with connected() as (server, client):
        await client.send(framed(bytes(size)))
        await server.frames_taken(1)
        await one_round()
        assert len(client.connection.receive_buffer()) == kept


async def test_who_only_connects_or_has_left_has_no_buffer():
    async with connected() as (server, client):
        before = len(client.connection._buffer)
        await client.send(framed(b"a"))
        await server.frames_taken(1)
        client.connection.close()
        assert (before, len(client.connection._buffer), client.connection.link) == (0, 0, None)


# The end.


async def test_who_leaves_takes_along_what_it_waited_for():
    async with connected() as (server, client):
        await client.send(framed(b"a"))
        await server.frames_taken(1)
        async with asyncio.TaskGroup() as tasks:
            server.slots[0].work = tasks.create_task(asyncio.Event().wait())
            client.socket.close()
        assert (server.slots[0].work.cancelled(), client.connection.is_idle) == (True, True)


async def test_a_wait_that_has_not_begun_when_its_client_leaves_still_cleans_up():
    cleaned = []

    async def wait():
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(True)

    async with connected() as (server, client):
        await client.send(framed(b"a"))
        await server.frames_taken(1)
        async with asyncio.TaskGroup() as tasks:
            server.slots[0].work = tasks.create_task(wait())
            client.connection.close()
    assert cleaned == [True]


async def test_who_finishes_answers_what_was_taken_and_takes_no_more():
    async with connected() as (server, client):
        await client.send(framed(b"a"))
        await server.frames_taken(1)
        client.connection.finish()
        await client.send(framed(b"b"))
        await one_round()
        busy = client.connection.is_idle
        client.connection.fill(server.slots[0], [b"1"])
        answer = await client.read(1)
        await one_round()
        assert not busy
        assert answer == b"1"
        assert client.connection.is_idle
        assert server.frames == [b"a"]


# Idle.


async def test_who_waits_or_moves_bytes_is_active_and_who_does_not_is_not():
    async with connected() as (server, client):
        connection = client.connection
        times = []

        def look(now_ms):
            connection.note_activity(now_ms)
            times.append(connection.active_ms)

        look(1)
        await client.send(b"\0\0\0")
        await one_round()
        look(2)
        look(3)
        await client.send(b"\x01a")
        await server.frames_taken(1)
        look(4)
        look(5)
        connection.fill(server.slots[0], [bytes(4 << 20)])
        look(6)
        look(7)
        await client.read(1 << 20)
        await one_round()
        look(8)
        assert times == [0, 2, 2, 4, 5, 6, 6, 8]
