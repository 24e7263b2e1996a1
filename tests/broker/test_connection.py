"""A connection: bytes into frames, answers in order, and bounds on what one client may take."""

import asyncio
import contextlib
import socket

import pytest

from strom.broker.alertness import Alertness
from strom.broker.connection import (
    ANSWER_JOINED_BYTES_MAX,
    RECEIVE_BYTES,
    RECEIVE_KEPT_BYTES_MAX,
    REQUEST_AWAITED_BYTES_MAX,
    REQUESTS_AT_ONCE,
    REQUESTS_MAX,
    UNSENT_BYTES_MAX,
    Connection,
)
from strom.broker.host import Host
from strom.broker.link import PARTS_JOINED_MAX, Link
from strom.broker.outbox import Outbox
from strom.broker.server import RequestMemory
from strom.wire.primitives import INT32

REQUEST_BYTES_MAX = 16 << 20


class Server:
    """Keeps the frames that it is given, and a slot for each."""

    def __init__(self, memory_bytes_max=-1, answer=None):
        self.request_bytes_max = REQUEST_BYTES_MAX
        self.alertness = Alertness(asyncio.get_running_loop())
        self.outbox = Outbox(asyncio.get_running_loop())
        memory = RequestMemory(memory_bytes_max)
        self.reserve, self.release = memory.reserve, memory.release
        self.kept_bytes_max = RECEIVE_BYTES if memory.is_limited else RECEIVE_KEPT_BYTES_MAX
        self.answer = answer
        self.frames = []
        #: How many frames there were each time that no more came with them.
        self.finished = []
        self.slots = []
        self.gone = []
        self.changed = asyncio.Event()

    def now_ms(self):
        return 0

    def take_frame(self, frame, connection):
        self.frames.append(bytes(frame))
        slot = connection.open_slot()
        self.slots.append(slot)
        if self.answer is not None:
            connection.fill(slot, self.answer(bytes(frame)))
        self.changed.set()

    def finish_frames(self):
        self.finished.append(len(self.frames))

    def forget(self, connection, error):
        self.gone.append((connection, error))
        self.changed.set()

    async def wait_until(self, is_so):
        while not is_so():
            self.changed.clear()
            await self.changed.wait()

    async def frames_taken(self, count):
        await self.wait_until(lambda: len(self.frames) >= count)


class Client:
    """The other end of a connection."""

    def __init__(self, server, tasks):
        ours, self.socket = socket.socketpair()
        ours.setblocking(False)
        self.socket.setblocking(False)
        self.connection = Connection(server, "PLAINTEXT", ("127.0.0.1", 1), "127.0.0.1")
        self.connection.link = Link(ours, self.connection, Host(), tasks.create_task)
        self.connection.link.resume_reading()

    async def send(self, data):
        await asyncio.get_running_loop().sock_sendall(self.socket, data)

    async def read(self, size):
        data = b""
        while len(data) < size:
            got = await asyncio.get_running_loop().sock_recv(self.socket, size - len(data))
            assert got
            data += got
        return data

    def close(self):
        self.connection.close()
        self.socket.close()


@contextlib.asynccontextmanager
async def connected(count=1, **options):
    server = Server(**options)
    async with asyncio.TaskGroup() as tasks:
        clients = [Client(server, tasks) for _ in range(count)]
        try:
            yield server, *clients
        finally:
            for client in clients:
                client.close()


def framed(payload):
    return INT32.pack(len(payload)) + payload


async def one_round():
    """Let everything that is ready happen: what was sent has been read then, or is not going to."""
    for _ in range(20):
        await asyncio.sleep(0)


# Frames.


@pytest.mark.parametrize("piece_bytes", [1, 3, 1 << 20])
def test_frames_are_cut_whatever_the_pieces_they_come_in(piece_bytes):
    wanted = [b"", b"a", b"bc" * 20, b"", b"def" * 7]

    async def run():
        async with connected() as (server, client):
            data = b"".join(map(framed, wanted))
            for start in range(0, len(data), piece_bytes):
                await client.send(data[start : start + piece_bytes])
                await one_round()
            await server.frames_taken(len(wanted))
            return server.frames

    assert asyncio.run(run()) == wanted


@pytest.mark.parametrize("size", [10, 90_000])
def test_it_is_told_that_no_more_frames_come_with_those_that_came_together(size):
    """Also large ones: once there was one, the next that wait are received with each other."""

    async def run():
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
            return list(server.finished)

    assert asyncio.run(run()) == [3]


def test_a_buffer_of_limited_memory_is_for_one_frame():
    async def run():
        async with connected(memory_bytes_max=10**6) as (server, client):
            await client.send(framed(b"x" * 90_000))
            await server.frames_taken(1)
            return len(client.connection._buffer)

    assert asyncio.run(run()) <= RECEIVE_BYTES


def test_who_had_to_wait_for_answers_that_came_all_at_once_is_served_on():
    """The requests that fill all slots may be answered when no more frames come."""

    async def run():
        async with connected() as (server, client):

            def finish():
                while server.slots:
                    client.connection.fill(server.slots.pop(0), [b"."])

            server.finish_frames = finish
            await client.send(framed(b"") * (3 * REQUESTS_MAX))
            assert await client.read(3 * REQUESTS_MAX) == b"." * (3 * REQUESTS_MAX)
            return len(server.frames)

    assert asyncio.run(run()) == 3 * REQUESTS_MAX


@pytest.mark.parametrize("size", [-1, -(2**31), REQUEST_BYTES_MAX + 1, 2**31 - 1])
def test_a_length_that_cannot_be_closes_the_connection(size):
    async def run():
        async with connected() as (server, client):
            await client.send(INT32.pack(size))
            await server.wait_until(lambda: server.gone)
            return server.gone[0][1], server.frames

    error, frames = asyncio.run(run())
    assert "socket.request.max.bytes" in str(error)
    assert frames == []


def test_frames_of_all_sizes_come_out_whole():
    """The buffer grows, moves and shrinks, and never gives one frame another's bytes."""
    sizes = [10, RECEIVE_BYTES - 4, RECEIVE_BYTES - 3, 7, 1 << 20, 3, RECEIVE_KEPT_BYTES_MAX * 2, 5]
    wanted = [bytes([number]) * size for number, size in enumerate(sizes * 2)]

    async def run():
        async with connected() as (server, client):
            await client.send(b"".join(map(framed, wanted)))
            await server.frames_taken(len(wanted))
            return server.frames

    assert asyncio.run(run()) == wanted


@pytest.mark.parametrize(
    ("size", "kept"), [(1 << 20, (1 << 20) + 4), (RECEIVE_KEPT_BYTES_MAX, RECEIVE_BYTES)]
)
def test_a_grown_buffer_is_kept_for_the_next_frame_up_to_a_size(size, kept):
    async def run():
        async with connected() as (server, client):
            await client.send(framed(bytes(size)))
            await server.frames_taken(1)
            await one_round()
            return len(client.connection.receive_buffer())

    assert asyncio.run(run()) == kept


def test_who_only_connects_or_has_left_has_no_buffer():
    async def run():
        async with connected() as (server, client):
            before = len(client.connection._buffer)
            await client.send(framed(b"a"))
            await server.frames_taken(1)
            client.connection.close()
            return before, len(client.connection._buffer), client.connection.link

    assert asyncio.run(run()) == (0, 0, None)


# Answers.


def test_answers_go_out_in_the_order_of_the_requests():
    async def run():
        async with connected() as (server, client):
            await client.send(framed(b"a") + framed(b"b") + framed(b"c") + framed(b"d"))
            await server.frames_taken(4)
            first, second, third, fourth = server.slots
            fill = client.connection.fill
            fill(third, [b"3"])
            fill(second, [])
            fill(first, [b"1"])
            fill(fourth, [b"4"])
            return await client.read(3)

    assert asyncio.run(run()) == b"134"


class Counted:
    """A link's socket that counts what is sent."""

    def __init__(self, real):
        self._real = real
        self.sent = []

    def __getattr__(self, name):
        return getattr(self._real, name)

    def send(self, data, *flags):
        self.sent.append(bytes(data))
        return self._real.send(data, *flags)


async def sent_for(requests, answer):
    """What is sent in answer to requests that come together, call by call."""
    async with connected(answer=answer) as (_, client):
        link = client.connection.link
        link._socket = counted = Counted(link._socket)
        await client.send(b"".join(map(framed, requests)))
        await client.read(sum(len(part) for each in requests for part in answer(each)))
        return counted.sent


def test_requests_that_come_together_are_answered_together():
    requests = [b"%d" % number for number in range(2 * PARTS_JOINED_MAX + 1)]
    sent = asyncio.run(sent_for(requests, lambda frame: [frame] if frame != b"1" else []))
    assert b"".join(sent) == b"0" + b"".join(requests[2:])
    assert len(sent) == 2


@pytest.mark.parametrize(
    ("requests", "answer_bytes", "calls"),
    [
        ([b"a"], 1, 1),
        ([b"a", b"b" * (REQUEST_AWAITED_BYTES_MAX + 1)], 1, 2),
        ([b"a", b"b"], ANSWER_JOINED_BYTES_MAX + 1, 2),
        ([b"a", b"b"], ANSWER_JOINED_BYTES_MAX, 1),
    ],
    ids=["alone", "a large request is next", "large answers", "two small ones"],
)
def test_no_answer_waits_for_what_takes_long(requests, answer_bytes, calls):
    sent = asyncio.run(sent_for(requests, lambda frame: [frame[:1] * answer_bytes]))
    assert b"".join(sent) == b"".join(each[:1] * answer_bytes for each in requests)
    assert len(sent) == calls


def test_clients_that_ask_together_are_answered_together():
    """The first answer would wake a client that then finds the second one not there yet."""

    async def run():
        async with connected(2, answer=lambda frame: [frame]) as (server, *clients):
            for client in clients:
                client.connection.link._socket = Counted(client.connection.link._socket)
            sent = [client.connection.link._socket.sent for client in clients]
            taken = server.take_frame
            before = []

            def take_frame(frame, connection):
                before.append([list(each) for each in sent])
                taken(frame, connection)

            server.take_frame = take_frame
            for client in clients:
                client.socket.send(framed(b"a"))
            answers = [await client.read(1) for client in clients]
            return before, answers

    assert asyncio.run(run()) == ([[[], []]] * 2, [b"a", b"a"])


def test_what_is_put_aside_is_unsent():
    async def run():
        async with connected(answer=lambda frame: [frame]) as (_, client):
            view = client.connection.receive_buffer()
            view[:5] = framed(b"a")
            client.connection.on_received(5)
            idle = client.connection.is_idle
            await client.read(1)
            return idle, client.connection.is_idle

    assert asyncio.run(run()) == (False, True)


def test_who_is_closed_has_the_answers_that_were_ready():
    async def run():
        async with connected() as (server, client):

            def answer(frame):
                if frame == b"b":
                    client.connection.close(ValueError("no good"))
                return [frame]

            server.answer = answer
            await client.send(framed(b"a") + framed(b"b"))
            return await client.read(1), await asyncio.get_running_loop().sock_recv(
                client.socket, 1
            )

    assert asyncio.run(run()) == (b"a", b"")


def test_a_client_that_pipelines_too_much_is_paused_until_it_is_answered():
    count = REQUESTS_MAX + 10

    async def run():
        async with connected() as (server, client):
            await client.send(framed(b"a") * count)
            await server.frames_taken(REQUESTS_MAX)
            await one_round()
            taken = len(server.frames)
            for number in range(count):
                await server.frames_taken(number + 1)
                client.connection.fill(server.slots[number], [b"."])
            return taken, await client.read(count)

    assert asyncio.run(run()) == (REQUESTS_MAX, b"." * count)


def test_a_client_that_does_not_read_is_paused_until_it_does():
    size, count = 1 << 19, 40

    async def run():
        async with connected(answer=lambda _: [bytes(size)]) as (server, client):
            await client.send(framed(b"a") * count)
            await one_round()
            taken, unsent = len(server.frames), client.connection.link.unsent_bytes
            await client.read(size * count)
            return taken, unsent, len(server.frames)

    taken, unsent, all_taken = asyncio.run(run())
    assert taken < count == all_taken
    assert unsent <= UNSENT_BYTES_MAX + size


def test_answers_that_wait_for_an_earlier_one_count_as_unsent():
    """One long poll, and behind it as many large answers as there may be requests."""
    size, count = UNSENT_BYTES_MAX // 4, 50

    async def run():
        async with connected() as (server, client):
            await client.send(framed(b"a"))
            await server.frames_taken(1)
            server.answer = lambda _: [bytes(size)]
            await client.send(framed(b"b") * count)
            await one_round()
            taken = len(server.frames)
            client.connection.fill(server.slots[0], [b"."])
            await client.read(1 + size * count)
            return taken, len(server.frames), client.connection._held_bytes

    assert asyncio.run(run()) == (6, 1 + count, 0)


def test_nothing_overtakes_a_request_whose_append_phase_waits():
    async def run():
        async with connected() as (server, client):
            client.connection.block()
            await client.send(framed(b"a"))
            await one_round()
            held = list(server.frames)
            client.connection.unblock()
            return held, server.frames

    assert asyncio.run(run()) == ([], [b"a"])


def test_who_floods_does_not_keep_others_from_their_turn():
    count = 1000

    async def run():
        async with connected(2, answer=lambda _: []) as (server, flooding, other):
            await flooding.send(framed(b"a") * count)
            await other.send(framed(b"b"))
            await server.frames_taken(count + 1)
            return server.frames

    frames = asyncio.run(run())
    assert len(frames) == count + 1
    assert frames.index(b"b") <= 2 * REQUESTS_AT_ONCE


# The end.


def test_who_leaves_takes_along_what_it_waited_for():
    async def run():
        async with connected() as (server, client):
            await client.send(framed(b"a"))
            await server.frames_taken(1)
            async with asyncio.TaskGroup() as tasks:
                server.slots[0].work = tasks.create_task(asyncio.Event().wait())
                client.socket.close()
            return server.slots[0].work.cancelled(), client.connection.is_idle

    assert asyncio.run(run()) == (True, True)


def test_a_wait_that_has_not_begun_when_its_client_leaves_still_cleans_up():
    async def run():
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
        return cleaned

    assert asyncio.run(run()) == [True]


def test_who_finishes_answers_what_was_taken_and_takes_no_more():
    async def run():
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
            return busy, answer, client.connection.is_idle, server.frames

    assert asyncio.run(run()) == (False, b"1", True, [b"a"])


# Memory for requests.


def test_one_request_alone_is_let_through_however_large():
    async def run():
        async with connected(memory_bytes_max=RECEIVE_BYTES) as (server, client):
            for number in (1, 2):
                await client.send(framed(bytes(number << 20)))
            await server.frames_taken(2)
            return [len(each) for each in server.frames]

    assert asyncio.run(run()) == [1 << 20, 2 << 20]


def test_who_finds_no_memory_is_not_read_from_until_there_is_some():
    size = 1 << 20

    async def run():
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
            return [each[:1] for each in server.frames]

    assert asyncio.run(run()) == [b"\0", b"2", b"3"]


def test_memory_is_free_again_when_its_request_is_served_or_its_client_gone():
    size = 1 << 20

    async def run():
        async with connected(3, memory_bytes_max=size + 4) as (server, first, second, third):
            await first.send(framed(bytes(size)))
            await server.frames_taken(1)
            await second.send(framed(bytes(size))[:-1])
            await one_round()
            second.close()
            await third.send(framed(bytes(size)))
            await server.frames_taken(2)
            return len(server.frames)

    assert asyncio.run(run()) == 2


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


# Idle.


def test_who_waits_or_moves_bytes_is_active_and_who_does_not_is_not():
    async def run():
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
            return times

    assert asyncio.run(run()) == [0, 2, 2, 4, 5, 6, 6, 8]
