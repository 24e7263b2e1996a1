"""Requests and their bytes, and a connection with one of them under way."""

import asyncio
import struct

from strom.wire.messages import Call

VERSIONS = {
    "join_group": 9,
    "sync_group": 5,
    "heartbeat": 4,
    "leave_group": 5,
    "consumer_group_heartbeat": 1,
    "offset_fetch": 7,
    "list_offsets": 7,
    "fetch": 12,
}
SIZE_BYTES = 4
HEAD = struct.Struct(">ihhih")


class Api:
    """One API at the version that is used: its classes, and how they become bytes and back."""

    def __init__(self, name):
        self._call = Call(name, VERSIONS[name])
        self.module = self._call.request
        camel = "".join(word.capitalize() for word in name.split("_"))
        self._request = getattr(self.module, f"{camel}Request")

    def frame(self, **fields):
        """The request with its header, which has no client id; all versions here are flexible."""
        body = self._call.write(self._request(**fields))
        key, version = self._call.key, self._call.version
        return HEAD.pack(len(body) + 11, key, version, 0, -1) + b"\0" + body

    def read(self, answer):
        """The response, behind correlation id and tagged fields."""
        return self._call.read(answer, 5)


class Wire(asyncio.Protocol):
    """A connection with one request under way."""

    def __init__(self):
        self._transport = None
        self._received = bytearray()
        #: Where the next answer goes, if somebody still wants it.
        self._answered = None
        #: Set when nothing is under way any more, while somebody waits for that.
        self._idle = None
        self._is_asking = False

    def connection_made(self, transport):
        self._transport = transport

    def connection_lost(self, _error):
        for waiting in (self._answered, self._idle):
            if waiting is not None and not waiting.done():
                waiting.set_exception(ConnectionError("the broker has hung up"))

    def data_received(self, data):
        self._received += data
        if len(self._received) >= SIZE_BYTES:
            end = SIZE_BYTES + int.from_bytes(self._received[:SIZE_BYTES])
            if len(self._received) >= end:
                answer = bytes(self._received[SIZE_BYTES:end])
                del self._received[:end]
                self._is_asking = False
                # Whoever was stopped meanwhile wants no answer.
                for waiting, found in ((self._answered, answer), (self._idle, None)):
                    if waiting is not None and not waiting.done():
                        waiting.set_result(found)

    def send(self, frame):
        """Send a request; what will have its answer."""
        self._answered = asyncio.get_running_loop().create_future()
        self._is_asking = True
        self._transport.write(frame)
        return self._answered

    async def idle(self):
        """Wait until nothing is under way."""
        if self._is_asking:
            self._idle = asyncio.get_running_loop().create_future()
            await self._idle

    def close(self):
        self._transport.close()


def apis():
    return {name: Api(name) for name in VERSIONS}
