"""The server: sockets that accept, the limits on who is let in, and who has been idle.

- `max.connections` stops accepting until somebody leaves, and so does that of one listener, for
  who comes to it; `max.connections.per.ip` (and its overrides) closes the surplus connection at
  once, as Kafka does.
- Where the system allows fewer open files, connections leave some to serve those who have one.
- `max.connection.creation.rate`, of the broker and of a listener, has newcomers wait (`admission`).
- `connections.max.idle.ms` closes who neither waits for an answer nor has sent or taken any
  bytes; less than 0 closes nobody.
- `queued.max.request.bytes` bounds the memory of requests that are being received; those who
  find none are not read from until some is free, and get it in the order in which they came.
  What fits into a connection's first buffer is not counted; 0 or less sets no limit.
"""

import asyncio
import contextlib
import errno
import logging
from collections import Counter
from collections.abc import Callable, Coroutine
from functools import partial
from itertools import chain

from strom.broker.admission import Pace
from strom.broker.alertness import Alertness
from strom.broker.connection import RECEIVE_BYTES, RECEIVE_KEPT_BYTES_MAX, Connection
from strom.broker.context import Parts
from strom.broker.dispatch import Api, Dispatch
from strom.broker.link import Link
from strom.broker.network import Listening, Newcomer
from strom.broker.outbox import Outbox

log = logging.getLogger("strom.network")

#: How many connections are accepted before other work gets its turn.
ACCEPTS_AT_ONCE = 64
#: Out of file descriptors: how long to leave the queue of newcomers alone.
ACCEPT_PAUSE_MS = 100
#: How long a stop waits for clients to read their answers and to close.
HANG_UP_SECONDS_MAX = 0.5
OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class RequestMemory:
    """The bytes that requests being received may take together."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._used_bytes = 0
        #: Connections without a buffer for their frame, in the order in which they came.
        self._waiting: dict[Connection, None] = {}

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit."""
        return self._bytes_max > 0

    def reserve(self, size: int, connection: Connection) -> bool:
        """Take so much, or queue the connection; one request alone is always let through."""
        if (
            self.is_limited
            and self._used_bytes
            and (self._waiting or self._used_bytes + size > self._bytes_max)
        ):
            self._waiting[connection] = None
            return False
        self._used_bytes += size
        return True

    def forget(self, connection: Connection) -> None:
        """Let a connection that is gone wait no more."""
        self._waiting.pop(connection, None)

    def release(self, size: int) -> None:
        """Give so much back, and let the waiting try again."""
        self._used_bytes -= size
        waiting, self._waiting = self._waiting, {}
        for connection in waiting:
            connection.resume()


class Server:
    """Accepts connections on every listener and knows all that are open."""

    def __init__(
        self,
        parts: Parts,
        apis: dict[int, Api],
        start_task: Callable[[Coroutine[None, None, None]], asyncio.Task[None]],
        listening: dict[str, list[Listening]],
    ) -> None:
        self._parts = parts
        self.start_task = start_task
        self._dispatch = Dispatch(apis, parts, start_task)
        self.take_frame = self._dispatch.take
        self.finish_frames = self._dispatch.finish_gathered
        self._network = parts.host.network
        self._loop = asyncio.get_running_loop()
        self.alertness = Alertness(self._loop)
        self.outbox = Outbox(self._loop)
        self._listening = listening
        #: The listeners that newcomers are taken from.
        self._accepting: set[str] = set()
        #: The listeners whose newcomers have to wait for a while.
        self._delayed: set[str] = set()
        self._pace = Pace()
        self._stopped = False
        #: How large a frame may be.
        self.request_bytes_max = parts.settings.number("socket.request.max.bytes")
        memory = RequestMemory(parts.settings.number("queued.max.request.bytes"))
        self.reserve = memory.reserve
        self.release = memory.release
        self._wait_no_more = memory.forget
        #: How large a receive buffer may be that nothing is in.
        self.kept_bytes_max = RECEIVE_BYTES if memory.is_limited else RECEIVE_KEPT_BYTES_MAX
        self.connections: set[Connection] = set()
        #: Whether it was said that the system keeps newcomers waiting.
        self._is_limit_told = False
        self._by_address: Counter[str] = Counter()
        self._by_listener: Counter[str] = Counter()
        #: Set when a connection is gone.
        self._has_left = asyncio.Event()
        self.now_ms = parts.host.now_ms

    def accept(self) -> None:
        """Let clients in where there are not too many, unless it is over."""
        if self._stopped or len(self._accepting) == len(self._listening):
            return
        for listener, places in self._listening.items():
            is_closed = listener not in self._accepting and listener not in self._delayed
            if is_closed and self._has_room(listener):
                self._accepting.add(listener)
                for each in places:
                    take = partial(self._on_newcomers, listener, each)
                    self._network.when_readable(each, take)

    def _pause_accepting(self, listener: str) -> None:
        if listener in self._accepting:
            self._accepting.remove(listener)
            for each in self._listening[listener]:
                self._network.when_readable(each, None)

    def _delay(self, listener: str, wait_ms: float) -> None:
        """Leave the queue of newcomers alone for a while."""
        self._pause_accepting(listener)
        self._delayed.add(listener)
        self._loop.call_later(wait_ms / 1000, self._end_delay, listener)

    def _end_delay(self, listener: str) -> None:
        self._delayed.discard(listener)
        self.accept()

    @property
    def listeners(self) -> tuple[str, ...]:
        """The names of those that are open."""
        return tuple(self._listening)

    def open(self, listener: str, places: list[Listening]) -> bool:
        """Let clients in by one more listener; return whether that is possible still."""
        if not self._stopped:
            self._listening[listener] = places
            self.accept()
        return not self._stopped

    def shut(self, listener: str) -> None:
        """Close a listener, and the connections of those who came by it."""
        self._pause_accepting(listener)
        for each in self._listening.pop(listener):
            each.close()
        for connection in list(self.connections):
            if connection.listener == listener:
                connection.close()

    def finish(self) -> None:
        """Let nobody in any more, and take no further request of those who are."""
        self._stopped = True
        for listener in self._listening:
            self._pause_accepting(listener)
        for connection in self.connections:
            connection.finish()

    async def hang_up(self) -> None:
        """Tell every client that no more answers come, and give it time to read those it got."""
        for connection in list(self.connections):
            if connection.link is not None:
                connection.link.hang_up()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HANG_UP_SECONDS_MAX):
                while self.connections:
                    self._has_left.clear()
                    await self._has_left.wait()

    def close(self) -> None:
        """Close the listeners and every connection."""
        self.finish()
        for each in chain.from_iterable(self._listening.values()):
            each.close()
        self._listening = {}
        for connection in list(self.connections):
            connection.close()

    def forget(self, connection: Connection, error: Exception | None) -> None:
        """Take notice that a connection is gone."""
        self.connections.discard(connection)
        self._wait_no_more(connection)
        self._by_listener[connection.listener] -= 1
        self._has_left.set()
        host = connection.address[0]
        self._by_address[host] -= 1
        if not self._by_address[host]:
            del self._by_address[host]
        if error is not None and not isinstance(error, ConnectionError):
            log.warning("Closed the connection from %s:%d: %s", *connection.address[:2], error)
        self.accept()

    def on_unreadable(self, file: object, error: OSError) -> None:
        """Have the disk looked at that a log's file cannot be read from."""
        self._parts.replicas.note_unsent(file, error)

    def look_after(self) -> None:
        """Close the connections that have been idle for too long; let in whom there is room for."""
        now_ms = self.now_ms()
        idle_max_ms = self._parts.settings.number("connections.max.idle.ms")
        for connection in list(self.connections):
            connection.note_activity(now_ms)
            if 0 <= idle_max_ms < now_ms - connection.active_ms:
                connection.close()
        # The limit may have been raised, with nobody leaving.
        self.accept()

    def _has_room(self, listener: str) -> bool:
        """Whether the broker and the listener may have another connection."""
        settings, host = self._parts.settings, self._parts.host
        connections_max = min(settings.number("max.connections"), host.connections_max)
        is_full = len(self.connections) >= connections_max
        limit = settings.number_for(listener, "max.connections")
        return not is_full and self._by_listener[listener] < limit

    def _on_newcomers(self, listener: str, listening: Listening) -> None:
        for _ in range(ACCEPTS_AT_ONCE):
            if not self._has_room(listener):
                self._tell_of_limit()
                self._pause_accepting(listener)
                return
            wait_ms = self._pace.wait_ms(listener, self._parts.settings, self.now_ms())
            if wait_ms:
                self._delay(listener, wait_ms)
                return
            try:
                newcomer = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in OUT_OF_DESCRIPTORS:
                    raise
                log.warning("Cannot accept a connection: %s", error)
                self._delay(listener, ACCEPT_PAUSE_MS)
                return
            self._pace.take(listener)
            self._welcome(newcomer, listener)

    def _tell_of_limit(self) -> None:
        """Say, once, if it is the system that keeps newcomers waiting: nobody has set that."""
        host = self._parts.host
        if len(self.connections) >= host.connections_max and not self._is_limit_told:
            self._is_limit_told = True
            log.warning(
                "%d connections at most: the system allows %d open files",
                host.connections_max,
                host.open_files_max,
            )

    def _welcome(self, newcomer: Newcomer, listener: str) -> None:
        host = newcomer.host
        if self._by_address[host] >= self._per_address_max(host):
            log.warning("Refused a connection from %s: max.connections.per.ip is reached", host)
            newcomer.socket.close()
            return
        connection = Connection(self, listener, (host, newcomer.port), newcomer.came_to)
        connection.link = Link(newcomer.socket, connection, self._parts.host, self.start_task)
        self.connections.add(connection)
        self._by_address[host] += 1
        self._by_listener[listener] += 1
        self._parts.metrics.accepted_connections += 1
        connection.number = self._parts.metrics.accepted_connections
        connection.link.resume_reading()

    def _per_address_max(self, host: str) -> int:
        parts = self._parts
        return parts.address_limits.get(host, parts.settings.number("max.connections.per.ip"))
