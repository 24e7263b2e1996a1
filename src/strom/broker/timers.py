"""Timers by key, with one timer of the loop for all of them.

They are set by the time of day, as decisions know no other, and go by a steady clock: when the
time of day is set, or a machine wakes up, nobody's session is over, and none lasts for hours.
"""

import asyncio
import heapq
from collections.abc import Callable

from strom.replicated.machine import TimerKey

#: How many timers are served before others get their turn on the loop.
AT_ONCE = 100
NEVER = 2**63


class Timers:
    """Any number of timers.

    A timer that is moved to later stays where it is in the queue, and is put at its new place
    when it comes up: sessions are renewed all the time, and hardly ever end.
    """

    def __init__(
        self,
        now_ms: Callable[[], int],
        steady_ms: Callable[[], int],
        fire: Callable[[TimerKey], None],
    ) -> None:
        self._now_ms = now_ms
        self._steady_ms = steady_ms
        self._fire = fire
        self._due: dict[TimerKey, int] = {}
        #: The time under which a key stands in the queue; other entries of it are passed over.
        self._queued: dict[TimerKey, int] = {}
        self._queue: list[tuple[int, TimerKey]] = []
        self._handle: asyncio.TimerHandle | None = None

    def set(self, key: TimerKey, due_ms: int | None) -> None:
        """Set the timer of a key to a time of day, or forget it."""
        if due_ms is None:
            self._due.pop(key, None)
            return
        due_ms += self._steady_ms() - self._now_ms()
        self._due[key] = due_ms
        queued_ms = self._queued.get(key)
        if queued_ms is None or due_ms < queued_ms:
            self._enqueue(key, due_ms)
            if self._queue[0] == (due_ms, key):
                self._wind()

    def close(self) -> None:
        """Let no timer come any more."""
        self._due.clear()
        self._queued.clear()
        self._queue.clear()
        self._wind()

    def _enqueue(self, key: TimerKey, due_ms: int) -> None:
        self._queued[key] = due_ms
        heapq.heappush(self._queue, (due_ms, key))

    def _wind(self) -> None:
        """Be called when the first of the queue is due."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if self._queue:
            delay_ms = max(self._queue[0][0] - self._steady_ms(), 0)
            self._handle = asyncio.get_running_loop().call_later(delay_ms / 1000, self._ring)

    def _ring(self) -> None:
        # What is set meanwhile, even for now, waits for the next turn: others want theirs.
        for key in self._take_due(self._steady_ms()):
            if self._due.get(key, NEVER) <= self._steady_ms():
                del self._due[key]
                self._fire(key)
        self._wind()

    def _take_due(self, now_ms: int) -> list[TimerKey]:
        taken: list[TimerKey] = []
        while self._queue and self._queue[0][0] <= now_ms and len(taken) < AT_ONCE:
            queued_ms, key = heapq.heappop(self._queue)
            if self._queued.get(key) != queued_ms:
                continue
            del self._queued[key]
            due_ms = self._due.get(key)
            if due_ms is not None and due_ms > now_ms:
                self._enqueue(key, due_ms)
            elif due_ms is not None:
                taken.append(key)
        return taken
