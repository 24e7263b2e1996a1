"""A connection with a server that keeps what it is given, and its client at the other end."""

import asyncio
import contextlib
import socket

from strom.broker.alertness import Alertness
from strom.broker.connection import RECEIVE_BYTES, RECEIVE_KEPT_BYTES_MAX, Connection
from strom.broker.host import Host
from strom.broker.link import Link
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
