"""A link: bytes in, bytes and file slices out, in order, however slowly the peer reads."""

import asyncio
import contextlib
import errno
import os
import socket
import tempfile
import threading

import pytest

from strom.broker import link as linking
from strom.broker.host import Host
from strom.broker.link import Link
from strom.broker.page_cache import read_through
from strom.log import disk as disks
from strom.log.disk import RealDisk, RealFile
from strom.wire.fetch import Slice

MEBIBYTE = 1 << 20


class Owner:
    def __init__(self):
        self.buffer = bytearray(1 << 16)
        self.received = bytearray()
        self.unreadable = []
        self.drained = asyncio.Event()
        self.closed = asyncio.get_running_loop().create_future()

    def receive_buffer(self):
        return memoryview(self.buffer)

    def on_received(self, count):
        self.received += self.buffer[:count]

    def on_unreadable(self, file, error):
        self.unreadable.append((file, error))

    def on_drained(self):
        self.drained.set()

    def on_closed(self, error):
        self.closed.set_result(error)


@contextlib.asynccontextmanager
async def linked(*, zero_copy=True):
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    owner = Owner()
    async with asyncio.TaskGroup() as tasks:
        link = Link(ours, owner, Host(), tasks.create_task)
        link.zero_copy = zero_copy
        link.resume_reading()
        yield link, owner, theirs
        link.close()
        theirs.close()


async def read_all(sock, size):
    loop = asyncio.get_running_loop()
    data = bytearray()
    while len(data) < size:
        data += await loop.sock_recv(sock, 1 << 16)
    return bytes(data)


@pytest.fixture
def file():
    with tempfile.NamedTemporaryFile() as made:
        made.write(os.urandom(1 << 20) * 5)
        made.flush()
        yield RealDisk().open(made.name)


def content(file, position, size):
    return os.pread(file.fileno(), size, position)


async def exchange(file, **options):
    async with linked(**options) as (link, owner, theirs):
        parts = [b"head", Slice(file, 17, 3_000_000), b"middle", Slice(file, 0, 9), b"tail"]
        expected = b"".join(
            each if isinstance(each, bytes) else content(file, each.position, each.size)
            for each in parts
        )
        link.send(parts)
        link.send([b"again"])
        assert link.unsent_bytes > 0
        assert await read_all(theirs, len(expected) + 5) == expected + b"again"
        await owner.drained.wait()
        assert link.unsent_bytes == 0


@pytest.mark.parametrize("zero_copy", [True, False], ids=["sendfile", "portable"])
def test_parts_arrive_in_order_though_the_reader_is_slow(file, zero_copy):
    """BRK-13: by sendfile; and by the path of systems that have none."""
    asyncio.run(exchange(file, zero_copy=zero_copy))


def test_a_slice_that_is_not_in_memory_is_read_by_a_thread_first(file, monkeypatch):
    """CON-12."""
    asked = []

    def not_resident(fd, position, size):
        asked.append(position)
        return len(asked) > 1

    monkeypatch.setattr(linking, "is_resident", not_resident)
    asyncio.run(exchange(file))
    assert asked[0] == 17


def test_what_is_small_is_sent_with_one_call(file, monkeypatch):
    """Whether it is in memory is found out by reading it; what is not goes the long way."""
    parts = [b"head", Slice(file, 5, 900), b"tail"]
    expected = b"head" + content(file, 5, 900) + b"tail"

    async def run():
        async with linked() as (link, _, theirs):
            link.send(parts)
            return theirs.recv(1 << 16)

    monkeypatch.setattr(linking, "is_resident", lambda *_: pytest.fail("it has been read"))
    assert asyncio.run(run()) == expected
    monkeypatch.setattr(linking, "read_small", lambda _: None)
    asked = []
    monkeypatch.setattr(linking, "is_resident", lambda *_: asked.append(1) or True)
    assert asyncio.run(run()) == expected
    assert asked


async def test_a_small_slice_behind_the_end_of_its_file_ends_the_link(file):
    async with linked() as (link, owner, _):
        link.send([b"head", Slice(file, 6 << 20, 900)])
        assert isinstance((await owner.closed), OSError)


def test_the_portable_path_needs_no_hint_about_the_page_cache(monkeypatch, request):
    monkeypatch.setattr(disks, "HAS_NOWAIT", False)
    asyncio.run(exchange(request.getfixturevalue("file"), zero_copy=False))


def test_what_nobody_can_tell_of_is_read_by_a_thread_once(file, monkeypatch):
    read = []

    def note(fd, position, size):
        read.append((threading.get_ident(), position, size))
        read_through(fd, position, size)

    monkeypatch.setattr(linking, "read_through", note)
    monkeypatch.setattr(linking, "is_resident", lambda *_: False)
    asyncio.run(exchange(file))
    pieces = [
        (17, MEBIBYTE),
        (17 + MEBIBYTE, MEBIBYTE),
        (17 + 2 * MEBIBYTE, 3_000_000 - 2 * MEBIBYTE),
    ]
    assert [each[1:] for each in read] == [*pieces, (0, 9)]
    assert threading.get_ident() not in {each[0] for each in read}


async def test_others_get_their_turn_while_an_answer_of_many_parts_is_sent(monkeypatch):
    monkeypatch.setattr(linking, "PARTS_AT_ONCE", 4)
    async with linked() as (link, owner, theirs):
        turns = []

        def take_turn():
            turns.append(link.unsent_bytes)
            if link.unsent_bytes:
                asyncio.get_running_loop().call_soon(take_turn)

        link.send([b"x"] * 20)
        take_turn()
        await owner.drained.wait()
        assert await read_all(theirs, 20) == b"x" * 20
        assert set(turns) >= {16, 12, 8, 4}


async def test_what_the_peer_sends_reaches_the_owner():
    async with linked() as (_, owner, theirs):
        await asyncio.get_running_loop().sock_sendall(theirs, b"x" * 100_000)
        theirs.close()
        assert await owner.closed is None
        assert owner.received == b"x" * 100_000


async def test_a_paused_link_takes_nothing_until_it_is_resumed():
    async with linked() as (link, owner, theirs):
        link.pause_reading()
        theirs.send(b"wait")
        for _ in range(3):
            await asyncio.sleep(0)
        assert not owner.received
        link.resume_reading()
        theirs.close()
        await owner.closed
        assert owner.received == b"wait"


async def test_a_file_that_is_cut_while_it_is_sent_ends_the_link_not_the_loop(file):
    async with linked() as (link, owner, _theirs):
        link.send([b"head", Slice(file, 6 << 20, 100)])
        assert isinstance(await owner.closed, OSError)


@pytest.mark.parametrize("zero_copy", [True, False], ids=["sendfile", "portable"])
async def test_a_file_that_cannot_be_read_is_told_of_and_ends_the_link(
    file, monkeypatch, zero_copy
):
    broken = OSError(errno.EIO, "Input/output error")

    def fail(*_):
        raise broken

    monkeypatch.setattr(linking, "read_through", fail)
    monkeypatch.setattr(linking, "is_resident", lambda *_: False)
    monkeypatch.setattr(RealFile, "read_now", fail)
    async with linked(zero_copy=zero_copy) as (link, owner, _):
        link.send([b"head", Slice(file, 0, 900)])
        assert await owner.closed is broken
        assert owner.unreadable == [(file, broken)]


async def test_a_vanished_peer_closes_the_link_once():
    async with linked() as (link, owner, theirs):
        theirs.close()
        link.send([b"x" * 1000])
        link.send([b"x" * 1000])
        error = await owner.closed
        assert error is None or isinstance(error, ConnectionError)
        link.close()


async def test_a_link_that_hangs_up_is_read_to_its_end_and_closed_with_the_peer():
    """What the peer has not read yet would be lost if bytes of its own were left unread."""
    async with linked() as (link, owner, theirs):
        link.pause_reading()
        theirs.send(b"never read")
        link.send([b"answer"])
        link.hang_up()
        assert await read_all(theirs, 6) == b"answer"
        assert await asyncio.get_running_loop().sock_recv(theirs, 1) == b""
        theirs.send(b"nor this")
        assert not owner.closed.done()
        theirs.close()
        assert await owner.closed is None
        assert owner.received == b""
