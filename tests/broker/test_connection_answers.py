"""Answers in the order of the requests, together where they are small, within bounds."""

import asyncio

import pytest

from strom.broker.connection import (
    ANSWER_JOINED_BYTES_MAX,
    REQUEST_AWAITED_BYTES_MAX,
    REQUESTS_AT_ONCE,
    REQUESTS_MAX,
    UNSENT_BYTES_MAX,
)
from strom.broker.link import PARTS_JOINED_MAX
from tests.broker.connecting import connected, framed, one_round


async def test_answers_go_out_in_the_order_of_the_requests():
    async with connected() as (server, client):
        await client.send(framed(b"a") + framed(b"b") + framed(b"c") + framed(b"d"))
        await server.frames_taken(4)
        first, second, third, fourth = server.slots
        fill = client.connection.fill
        fill(third, [b"3"])
        fill(second, [])
        fill(first, [b"1"])
        fill(fourth, [b"4"])
        assert await client.read(3) == b"134"


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


async def test_clients_that_ask_together_are_answered_together():
    """The first answer would wake a client that then finds the second one not there yet."""
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
        assert (before, answers) == ([[[], []]] * 2, [b"a", b"a"])


async def test_what_is_put_aside_is_unsent():
    async with connected(answer=lambda frame: [frame]) as (_, client):
        view = client.connection.receive_buffer()
        view[:5] = framed(b"a")
        client.connection.on_received(5)
        idle = client.connection.is_idle
        await client.read(1)
        assert (idle, client.connection.is_idle) == (False, True)


async def test_who_is_closed_has_the_answers_that_were_ready():
    async with connected() as (server, client):

        def answer(frame):
            if frame == b"b":
                client.connection.close(ValueError("no good"))
            return [frame]

        server.answer = answer
        await client.send(framed(b"a") + framed(b"b"))
        assert await client.read(1) == b"a"
        assert await asyncio.get_running_loop().sock_recv(client.socket, 1) == b""


async def test_a_client_that_pipelines_too_much_is_paused_until_it_is_answered():
    count = REQUESTS_MAX + 10
    async with connected() as (server, client):
        await client.send(framed(b"a") * count)
        await server.frames_taken(REQUESTS_MAX)
        await one_round()
        taken = len(server.frames)
        for number in range(count):
            await server.frames_taken(number + 1)
            client.connection.fill(server.slots[number], [b"."])
        assert (taken, await client.read(count)) == (REQUESTS_MAX, b"." * count)


async def test_a_client_that_does_not_read_is_paused_until_it_does():
    size, count = 1 << 19, 40
    async with connected(answer=lambda _: [bytes(size)]) as (server, client):
        await client.send(framed(b"a") * count)
        await one_round()
        taken, unsent = len(server.frames), client.connection.link.unsent_bytes
        await client.read(size * count)
        all_taken = len(server.frames)
    assert taken < count == all_taken
    assert unsent <= UNSENT_BYTES_MAX + size


async def test_answers_that_wait_for_an_earlier_one_count_as_unsent():
    """One long poll, and behind it as many large answers as there may be requests."""
    size, count = UNSENT_BYTES_MAX // 4, 50
    async with connected() as (server, client):
        await client.send(framed(b"a"))
        await server.frames_taken(1)
        server.answer = lambda _: [bytes(size)]
        await client.send(framed(b"b") * count)
        await one_round()
        taken = len(server.frames)
        client.connection.fill(server.slots[0], [b"."])
        await client.read(1 + size * count)
        assert (taken, len(server.frames), client.connection._held_bytes) == (6, 1 + count, 0)


async def test_nothing_overtakes_a_request_whose_append_phase_waits():
    async with connected() as (server, client):
        client.connection.block()
        await client.send(framed(b"a"))
        await one_round()
        held = list(server.frames)
        client.connection.unblock()
        assert (held, server.frames) == ([], [b"a"])


async def test_who_floods_does_not_keep_others_from_their_turn():
    count = 1000
    async with connected(2, answer=lambda _: []) as (server, flooding, other):
        await flooding.send(framed(b"a") * count)
        await other.send(framed(b"b"))
        await server.frames_taken(count + 1)
        frames = server.frames
    assert len(frames) == count + 1
    assert frames.index(b"b") <= 2 * REQUESTS_AT_ONCE


async def test_who_is_held_back_twice_goes_on_after_both():
    async with connected() as (server, client):
        connection = client.connection
        connection.block()
        connection.block()
        await client.send(framed(b"next"))
        connection.unblock()
        await one_round()
        held_back = not server.frames
        connection.unblock()
        await server.frames_taken(1)
        assert held_back
