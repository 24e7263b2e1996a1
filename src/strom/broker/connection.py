# Compiled by mypyc.
"""One client's connection: frames in, answers out, in the order of the requests.

    bytes ──▶ frames ──▶ dispatch ──▶ a slot per request ──▶ answers, first slot first

A slot is filled when its handler is done, at once or after a wait; the connection sends the
filled slots at the head of its queue. A client that pipelines more than it reads is paused:
no more is taken from its socket while too many slots are open or too much is unsent (answers
that wait for an earlier one included), so one connection's memory is bounded by its receive
buffer, REQUESTS_MAX slots and UNSENT_BYTES_MAX with one answer above it.

Small answers are put aside until the turn of the loop is over (`outbox`), and go out together: to
send costs more than to make one. None of them waits for a large request of another client, or for
a large answer.

The receive buffer is reused for frame after frame. Views of it die when the frames that came
together are served (`finish_frames`).
A client that announces much and sends little gets addresses but no memory: the system backs
a large buffer as bytes arrive in it.
"""

import asyncio
from collections import deque
from collections.abc import Coroutine, Sequence
from mmap import mmap
from typing import Final, Protocol

from strom.broker.alertness import FOR_TRANSACTIONS, SMALL_BYTES_MAX, Alertness
from strom.broker.link import PARTS_JOINED_MAX, Link
from strom.broker.outbox import Outbox
from strom.wire.fetch import Part
from strom.wire.primitives import INT32

RECEIVE_BYTES: Final = 1 << 16
#: A buffer grown for a large frame is kept for the next one up to this size, unless the memory
#: for requests is limited: then others may need it.
RECEIVE_KEPT_BYTES_MAX: Final = 2 << 20
#: A buffer that is larger than that is for one frame.
RECEIVE_AHEAD_BYTES: Final = 1 << 19
#: As many requests as Java's producers have under way.
FRAMES_AHEAD: Final = 5
REQUESTS_MAX: Final = 256
#: How many requests of one client are served before others get their turn on the loop.
REQUESTS_AT_ONCE: Final = 64
UNSENT_BYTES_MAX: Final = 1 << 20
#: How large an answer can be for which sending is what costs most.
ANSWER_JOINED_BYTES_MAX: Final = 1024
#: No answer waits for a request that is larger.
REQUEST_AWAITED_BYTES_MAX: Final = 1 << 15
SIZE_BYTES: Final = 4
#: There are frames that were not taken yet.
MORE_FRAMES: Final = -1


class Work(Protocol):
    """What an answer waits for."""

    def cancel(self) -> object:
        """Give it up: nobody is left to hear the answer."""


class Slot:
    """The place of one answer in the order of answers."""

    __slots__ = ("parts", "work")

    def __init__(self) -> None:
        #: What to send; an empty list for a request that gets no answer.
        self.parts: list[Part] | None = None
        self.work: Work | None = None


class Server(Protocol):
    """What a connection needs of the server that accepted it."""

    def take_frame(self, frame: memoryview, connection: "Connection") -> None:
        """Begin to serve a request; the frame may be used until `finish_frames`."""

    def finish_frames(self) -> None:
        """Take notice that no more frames come with those that were taken."""

    def start_task(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Run the work beside everything else."""

    def forget(self, connection: "Connection", error: Exception | None) -> None:
        """Take notice that a connection is gone."""

    def on_unreadable(self, file: object, error: OSError) -> None:
        """Take notice that a file of a log cannot be read."""

    def now_ms(self) -> int:
        """Return the time."""

    @property
    def alertness(self) -> Alertness:
        """Return what keeps the loop awake."""

    @property
    def outbox(self) -> Outbox:
        """Return where small answers wait for each other."""

    @property
    def request_bytes_max(self) -> int:
        """Return how large a frame may be."""

    def reserve(self, size: int, connection: "Connection") -> bool:
        """Take so much of the memory for requests, or have the connection wait for it."""

    def release(self, size: int) -> None:
        """Give memory for requests back."""

    @property
    def kept_bytes_max(self) -> int:
        """Return how large a receive buffer may be that nothing is in."""


class Connection:
    """Cuts the bytes into frames, and keeps the answers in order."""

    __slots__ = (
        "_blocked",
        "_buffer",
        "_end",
        "_finishing",
        "_has_sent_much",
        "_held_bytes",
        "_joined",
        "_moved",
        "_reserved",
        "_server",
        "_serving",
        "_slots",
        "_start",
        "_view",
        "active_ms",
        "address",
        "came_to",
        "client_software",
        "closed",
        "link",
        "listener",
        "number",
        "sender",
    )

    def __init__(
        self, server: Server, listener: str, address: tuple[str, int], came_to: str
    ) -> None:
        self._server = server
        #: Empty until something arrives: who only connects costs little.
        self._buffer: bytearray | mmap = bytearray()
        self._view = memoryview(self._buffer)
        self._start = self._end = 0
        #: How much of the memory for requests this buffer counts for: all above the first size.
        self._reserved = 0
        self._slots: deque[Slot] = deque()
        #: The size of the answers that are ready and wait for an earlier one.
        self._held_bytes = 0
        #: Small answers that go out together when the turn of the loop is over.
        self._joined: list[Part] = []
        #: How many requests hold back the ones behind them: their append phase is not over, or
        #: their answer is large.
        self._blocked = 0
        self._serving = False
        self._finishing = False
        #: How much had come in and was still to go out when somebody last looked.
        self._moved = (0, 0)
        self.link: Link | None = None
        #: How many the server has let in until this one.
        self.number = 0
        self.listener = listener
        self.address = address
        #: The address of ours that the client connected to.
        self.came_to = came_to
        self.client_software = ("unknown", "unknown")
        #: Who sends by it: a transactional producer, which has two of them, or 0.
        self.sender = 0
        #: Whether there was an answer, since the last time that all were given, that its client
        #: is busy with for a while.
        self._has_sent_much = False
        self.active_ms = server.now_ms()
        self.closed = False

    # What the link calls.

    def receive_buffer(self) -> memoryview:
        """Return the free rest of the buffer."""
        if not self._buffer:
            self._use(bytearray(RECEIVE_BYTES))
        return self._view[self._end :]

    def on_received(self, count: int) -> None:
        """Serve the frames that are complete."""
        self._end += count
        self._serve()

    def on_unreadable(self, file: object, error: OSError) -> None:
        """Have the disk looked at: the client will come back and ask for the same."""
        self._server.on_unreadable(file, error)

    def on_drained(self) -> None:
        """Go on with a client that was paused because it did not read."""
        self._serve()

    def on_closed(self, error: Exception | None) -> None:
        """Drop what was under way: nobody is left to hear it."""
        self.closed = True
        loop = asyncio.get_running_loop()
        for slot in self._slots:
            if slot.work is not None:
                # Not at once: a task that has not begun would end without its clean-up.
                loop.call_soon(slot.work.cancel)
        self._slots.clear()
        self._held_bytes = 0
        # Link and connection refer to each other: their memory is not to wait for the collector.
        self.link = None
        self._use(bytearray())
        self._start = self._end = 0
        self._release()
        self._server.forget(self, error)

    # What dispatch calls.

    def open_slot(self) -> Slot:
        """Take the next place in the order of answers."""
        slot = Slot()
        self._slots.append(slot)
        return slot

    def fill(self, slot: Slot, parts: list[Part]) -> None:
        """Give a slot its answer, and send all that are due."""
        slot.parts = parts
        slot.work = None
        slots = self._slots
        if self.closed or not slots:
            return
        if slots[0] is not slot:
            self._held_bytes += bytes_in(parts)
            return
        slots.popleft()
        self._send(parts)
        while slots and (due := slots[0].parts) is not None:
            slots.popleft()
            self._held_bytes -= bytes_in(due)
            self._send(due)
        if self._end and not self.closed:
            self._serve()

    def _send(self, parts: list[Part]) -> None:
        """Send an answer, behind those that were put aside; or put it aside too."""
        if not parts:
            return
        joined = self._joined
        if is_small(parts):
            joined.append(parts[0])
            if len(joined) == 1:
                self._server.outbox.put(self)
            elif len(joined) == PARTS_JOINED_MAX:
                self.send_joined()
            return
        self._has_sent_much = True
        if joined:
            self._joined = []
            parts = joined + parts
        if self.link is not None:
            self.link.send(parts)

    def send_joined(self) -> None:
        """Send what was put aside, if anything is left of it."""
        joined = self._joined
        if joined:
            self._joined = []
            if self.link is not None:
                self.link.send(joined)

    def block(self) -> None:
        """Take no further request until `unblock`, as often as this was called."""
        self._blocked += 1

    def unblock(self) -> None:
        """Go on with the requests that were held back."""
        self._blocked -= 1
        if not self.closed:
            self._serve()

    def close(self, error: Exception | None = None) -> None:
        """End the connection; what came before is answered, as far as the socket takes it."""
        self._server.finish_frames()
        self.send_joined()
        if self.link is not None:
            self.link.close(error)

    # What the server calls.

    def finish(self) -> None:
        """Take no further request; those that were taken are answered."""
        self._finishing = True
        if self.link is not None:
            self.link.pause_reading()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being served or sent."""
        if self._slots or self._joined:
            return False
        return self.link is None or not self.link.unsent_bytes

    def note_activity(self, now_ms: int) -> None:
        """Count the client as active if it waits for an answer, or bytes moved since last time."""
        moved = (self._end, self.link.unsent_bytes if self.link is not None else 0)
        if self._slots or moved != self._moved:
            self._moved = moved
            self.active_ms = now_ms

    # Frames.

    def _must_wait(self) -> bool:
        assert self.link is not None
        return (
            self._blocked > 0
            or len(self._slots) >= REQUESTS_MAX
            or self.link.unsent_bytes + self._held_bytes > UNSENT_BYTES_MAX
        )

    def _serve(self) -> None:
        """Serve complete frames, unless that is what is being done.

        A handler that answers at once comes back here through `fill`. The loop further up the
        stack takes the next frame; a second one inside it would go deeper with every pipelined
        request, and could move the buffer away from under the first one's frame.
        """
        if self._serving or self._finishing:
            return
        self._serving = True
        try:
            self._serve_frames()
        finally:
            self._serving = False

    def _serve_frames(self) -> None:
        """Serve complete frames, and have room for the next."""
        link = self.link
        assert link is not None
        try:
            needed = self._take_frames()
        finally:
            self._server.finish_frames()
        if self.closed:
            return
        if needed == MORE_FRAMES:
            link.pause_reading()
            if not self._must_wait():
                asyncio.get_running_loop().call_soon(self.resume)
        elif self._make_room(needed):
            link.resume_reading()
        else:
            link.pause_reading()

    def _take_frames(self) -> int:
        """Take complete frames while the client keeps within its bounds.

        Return how large the one is that has begun, 0 if none has, or MORE_FRAMES.
        """
        taken = 0
        while self._end - self._start >= SIZE_BYTES and not self.closed:
            if taken == REQUESTS_AT_ONCE or self._must_wait():
                return MORE_FRAMES
            size: int = INT32.unpack_from(self._buffer, self._start)[0]
            if not 0 <= size <= self._server.request_bytes_max:
                self.close(ValueError(f"a request of {size} bytes (socket.request.max.bytes)"))
                break
            frame_end = self._start + SIZE_BYTES + size
            if frame_end > self._end:
                return SIZE_BYTES + size
            self._take_frame(frame_end)
            taken += 1
        return 0

    def _take_frame(self, frame_end: int) -> None:
        start, self._start = self._start + SIZE_BYTES, frame_end
        if frame_end - start > REQUEST_AWAITED_BYTES_MAX:
            self._server.outbox.send_all()
        self._server.take_frame(self._view[start:frame_end], self)

    def resume(self) -> None:
        """Go on after a wait for memory, or for others to have their turn."""
        if not self.closed:
            self._serve()

    def _make_room(self, needed: int) -> bool:
        """Have free space behind the unread bytes, enough for the frame that has begun.

        Return False if there is no memory for it now; the server calls `resume` when there is.
        """
        if self._end == self._start:
            if self._end and not self._slots:
                self._expect_next()
            self._start = self._end = 0
            if len(self._buffer) > self._server.kept_bytes_max:
                self._use(bytearray())
                self._release()
        elif self._start + max(needed, SIZE_BYTES) > len(self._buffer):
            return self._move_to_front(needed)
        return True

    def _expect_next(self) -> None:
        """Count on the next request, all that had come being answered."""
        if self.sender:
            self._server.alertness.expect(self.sender, FOR_TRANSACTIONS)
        elif self._end <= SMALL_BYTES_MAX and not self._has_sent_much:
            self._server.alertness.expect(id(self))
        self._has_sent_much = False

    def _move_to_front(self, needed: int) -> bool:
        """Move the unread bytes to where a frame of this size has room behind them."""
        unread = bytes(self._view[self._start : self._end])
        if needed > len(self._buffer) and not self._grow(needed):
            return False
        self._view[: len(unread)] = unread
        self._start, self._end = 0, len(unread)
        return True

    def _grow(self, size: int) -> bool:
        """Use a larger buffer; return False if there is no memory for it now.

        It has room for several such frames, as far as it is kept: a client that sends much often
        has sent the next ones, and what comes together is served together.
        """
        # Given back first: who held some and waited for more could wait for itself.
        self._release()
        ahead = min(RECEIVE_AHEAD_BYTES, self._server.kept_bytes_max)
        size *= max(1, min(FRAMES_AHEAD, ahead // size))
        if not self._server.reserve(size, self):
            return False
        self._reserved = size
        try:
            self._use(mmap(-1, size))
        except OSError as error:
            self.close(error)
            return False
        return True

    def _use(self, buffer: bytearray | mmap) -> None:
        self._buffer, self._view = buffer, memoryview(buffer)

    def _release(self) -> None:
        if self._reserved:
            size, self._reserved = self._reserved, 0
            self._server.release(size)


def is_small(parts: Sequence[Part]) -> bool:
    """Whether an answer is one that goes well with others."""
    first = parts[0]
    return len(parts) == 1 and isinstance(first, bytes) and len(first) <= ANSWER_JOINED_BYTES_MAX


def bytes_in(parts: Sequence[Part]) -> int:
    """Return how much memory an answer takes; what lies in a file takes none."""
    return sum(len(part) for part in parts if isinstance(part, bytes))
