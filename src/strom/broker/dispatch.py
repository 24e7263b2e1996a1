# Compiled by mypyc.
"""From a frame to its handler, and from the handler's reply to the connection.

A handler is `handle(request, context)`. What it does before it returns is its append phase:
the connection takes its next request only then. It returns

- a response, which is sent when the earlier requests of the connection are answered;
- None, for a request that gets no answer (acks=0);
- `Together`: its append phase ends with those of the requests that came together with it;
- `Large(build)`: a response that is built, and written, in a thread; the next request waits,
  since many such answers that a client does not read would take much memory;
- `Waiting(waiter, look)`: `look` gives one of these when the waiter calls back;
- a coroutine, the reply phase: it runs as a task and gives the response (or None) later, while
  the connection's next requests are served (a Large one too); or
- `Ordered(coroutine)`: an append phase that must wait; the next request waits for it too.

A large request is read in a thread, and its answer written in one; the next request waits for it.
A request that is about too much, and one that cannot be read, ends its connection.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from time import perf_counter_ns
from types import ModuleType
from typing import Any, Final

from strom.broker.connection import Connection, Slot
from strom.broker.context import Context, Large, Ordered, Parts, Together, Waiting
from strom.wire.codec import (
    API_VERSIONS_KEY,
    BY_HAND,
    Codec,
    HandWrittenCodec,
    Hook,
    MadeCodec,
    RequestHeader,
    read_body,
    read_header,
    write_head,
)
from strom.wire.fetch import FetchResponse, Part
from strom.wire.messages import MessageForm, declared_message, kafka_message
from strom.wire.primitives import MalformedFrame
from strom.wire.produce import ProduceResponse

log = logging.getLogger("strom.broker")

#: So many bytes are thousands of partitions or the like: to read them takes milliseconds.
LARGE_REQUEST_BYTES: Final = 1 << 15
PRODUCE_KEY: Final = 0

Handler = Callable[[Any, Context], Any]
#: What to send, and how many bytes of it are the answer's body.
Written = tuple[list[Part], int]


class Api:
    """One API key: its module's handler, and a codec per version that was asked for so far."""

    __slots__ = ("codecs", "handle", "key", "make_codec", "name", "versions")

    def __init__(
        self,
        name: str,
        key: int,
        versions: range,
        handle: Handler,
        make_codec: Callable[[int], Codec],
    ) -> None:
        self.name = name
        self.key = key
        self.versions = versions
        self.handle = handle
        self.make_codec = make_codec
        self.codecs: dict[int, Codec] = {}

    def codec(self, version: int) -> Codec | None:
        """Return the codec of a version, or None if the version is not served."""
        codec = self.codecs.get(version)
        if codec is None and version in self.versions:
            codec = self.codecs[version] = self.make_codec(version)
        return codec


def api_of(module: ModuleType) -> Api:
    """Read an API module: its three names, and what it says of its messages.

    MESSAGES, if the module has it, are the declared classes of request and response; otherwise
    they are Kafka's, by the module's name. `upgrade` and `downgrade` change the messages of
    versions that say things differently.
    """
    name = module.__name__.rpartition(".")[2]
    upgrade: Hook | None = getattr(module, "upgrade", None)
    downgrade: Hook | None = getattr(module, "downgrade", None)
    classes: tuple[type, type] | None = getattr(module, "MESSAGES", None)

    def forms() -> tuple[MessageForm, MessageForm]:
        if classes is not None:
            return declared_message(classes[0]), declared_message(classes[1])
        return kafka_message(name, "request"), kafka_message(name, "response")

    def make_codec(version: int) -> Codec:
        by_hand = BY_HAND.get(name)
        if by_hand is not None:
            return HandWrittenCodec(by_hand, version)
        return MadeCodec(*forms(), version, upgrade, downgrade)

    return Api(name, module.KEY, module.VERSIONS, module.handle, make_codec)


class Call:
    """One request on its way through its handler."""

    __slots__ = ("api", "codec", "connection", "header", "slot", "started_ns")

    def __init__(
        self, api: Api, codec: Codec, header: RequestHeader, connection: Connection
    ) -> None:
        self.api = api
        self.codec = codec
        self.header = header
        self.connection = connection
        self.slot: Slot = connection.open_slot()
        self.started_ns = perf_counter_ns()


class Dispatch:
    """Serves requests with the handlers of the API modules."""

    def __init__(
        self,
        apis: dict[int, Api],
        parts: Parts,
        start_task: Callable[[Coroutine[None, None, None]], asyncio.Task[None]],
    ) -> None:
        self._apis = apis
        self._parts = parts
        self._start_task = start_task
        #: While the frames of one connection are taken: whose append phases end together.
        self._gathered: list[tuple[Call, Together]] = []

    def take(self, frame: memoryview, connection: Connection) -> None:
        """Begin to serve the request in the frame; it may be used until `finish_gathered`."""
        try:
            header = read_header(frame)
            api = self._apis.get(header.api_key)
            codec = api.codec(header.version) if api is not None else None
            if api is None or codec is None:
                self._refuse(header, connection)
                return
            # What is produced stays where it is, and is quickly read.
            is_large = len(frame) > LARGE_REQUEST_BYTES and header.api_key != PRODUCE_KEY
            request = None if is_large else read_body(frame, header, codec)
        except MalformedFrame as error:
            connection.close(error)
            return
        except Exception as error:  # noqa: BLE001 - a fault of ours must not leave it waiting
            self._note_fault("Reading a request", error)
            connection.close(error)
            return
        connection.active_ms = self._parts.host.now_ms()
        self._parts.metrics.received_bytes += len(frame)
        if self._gathered and header.api_key != PRODUCE_KEY:
            self.finish_gathered()
        call = Call(api, codec, header, connection)
        if is_large:
            self._serve_in_order(
                call, self._finish(call, self._read_and_handle(call, bytes(frame)))
            )
        else:
            self._serve(call, request)

    def finish_gathered(self) -> None:
        """End the append phases of the requests that came together: no more frames do."""
        gathered, self._gathered = self._gathered, []
        for call, phase in gathered:
            try:
                self._take_reply(call, phase.finish())
            except Exception as error:  # noqa: BLE001 - a fault in one must not end the others
                self._fail(call, error)

    def _refuse(self, header: RequestHeader, connection: Connection) -> None:
        """Close on a client that asks what we did not offer; but tell one that asks what we do."""
        api = self._apis[API_VERSIONS_KEY]
        codec = api.codec(0)
        if header.api_key != API_VERSIONS_KEY or codec is None:
            asked = f"API key {header.api_key} version {header.version} is not served"
            connection.close(MalformedFrame(asked))
            return
        self._serve(Call(api, codec, header, connection), None)

    def _serve(self, call: Call, request: object) -> None:
        context = Context(self._parts, call.connection, call.header)
        try:
            reply = call.api.handle(request, context)
        except Exception as error:  # noqa: BLE001 - a fault in one request must not end the others
            self._fail(call, error)
            return
        self._take_reply(call, reply)

    def _take_reply(self, call: Call, reply: object) -> None:
        """Answer, or do first what the answer waits for."""
        if type(reply) is Waiting:
            self._wait(call, reply)
        elif type(reply) is Ordered:
            self._serve_in_order(call, self._finish(call, reply.work))
        elif type(reply) is Large:
            self._serve_in_order(call, self._finish_large(call, reply))
        elif isinstance(reply, Together):
            self._gathered.append((call, reply))
        # Most answers are of these types; to ask an abstract class takes longer.
        elif isinstance(reply, (ProduceResponse, FetchResponse)) or not isinstance(
            reply, Coroutine
        ):
            self._answer(call, reply)
        else:
            call.slot.work = self._start_task(self._finish(call, reply))

    def _wait(self, call: Call, waiting: Waiting) -> None:
        def on_end(how: object) -> None:
            if call.connection.closed:
                return
            try:
                reply = waiting.look(how)
            except Exception as error:  # noqa: BLE001 - as above
                self._fail(call, error)
                return
            self._take_reply(call, reply)

        call.slot.work = waiting.waiter
        waiting.waiter.tell(on_end)

    def _serve_in_order(self, call: Call, serving: Coroutine[None, None, None]) -> None:
        call.connection.block()
        call.slot.work = self._start_task(self._finish_in_order(call, serving))

    async def _read_and_handle(self, call: Call, frame: bytes) -> object:
        """Have a thread read a large request; nothing overtakes it until it is answered."""
        view = memoryview(frame)
        request = await self._parts.host.offload(lambda: read_body(view, call.header, call.codec))
        reply = call.api.handle(request, Context(self._parts, call.connection, call.header))
        while type(reply) is Waiting:
            reply = reply.look(await reply.waiter.wait())
        if type(reply) is Ordered:
            reply = reply.work
        if isinstance(reply, Coroutine):
            reply = await reply
        # An answer about as many things takes as long to write.
        return reply if reply is None or type(reply) is Large else Large(lambda: reply)

    async def _finish(self, call: Call, work: Coroutine[None, None, object]) -> None:
        """Wait for a reply phase."""
        try:
            reply = await work
        except Exception as error:  # noqa: BLE001 - as above
            self._fail(call, error)
            return
        if type(reply) is Large:
            await self._finish_large(call, reply)
        else:
            self._answer(call, reply)

    async def _finish_large(self, call: Call, reply: Large) -> None:
        try:
            written = await self._parts.host.offload(lambda: write(call, reply.build()))
        except Exception as error:  # noqa: BLE001 - as above
            self._fail(call, error)
            return
        self._send(call, written)

    async def _finish_in_order(self, call: Call, serving: Coroutine[None, None, None]) -> None:
        try:
            await serving
        finally:
            call.connection.unblock()

    def _answer(self, call: Call, reply: object) -> None:
        try:
            written = ([], 0) if reply is None else write(call, reply)
        except Exception as error:  # noqa: BLE001 - as above
            self._fail(call, error)
            return
        self._send(call, written)

    def _send(self, call: Call, written: Written) -> None:
        parts, size_bytes = written
        metrics = self._parts.metrics
        metrics.sent_bytes += size_bytes
        metrics.note_request(call.api.name, perf_counter_ns() - call.started_ns)
        call.connection.fill(call.slot, parts)

    def _fail(self, call: Call, error: Exception) -> None:
        """End the connection, which has an answer that will never come; log a fault of ours."""
        if not isinstance(error, MalformedFrame):
            self._note_fault(f"{call.api.name} version {call.header.version}", error)
        call.connection.close(error)

    def _note_fault(self, what: str, error: Exception) -> None:
        log.error("%s failed: %r", what, error, exc_info=error)
        self._parts.metrics.failed_requests += 1


def write(call: Call, reply: object) -> Written:
    """Write the answer to a call; touches nothing else, so it may run in a thread."""
    parts = call.codec.write(reply)
    size = 0
    for part in parts:
        size += len(part) if type(part) is bytes else part.size  # type: ignore[union-attr]
    first = parts[0]
    assert isinstance(first, bytes)
    parts[0] = write_head(call.header, call.codec, size) + first
    return parts, size
