"""Keeps the loop awake between the requests of a client that waits for each of its answers.

Such a client sends its next request as soon as it has the answer to the last one. If the loop goes
to sleep meanwhile, so does the processor, and to wake both up takes longer than to serve the
request. So after a small request that was answered at once the loop asks the system for events a
number of times before it waits for them.

    asleep ──a small request, the connection's second in a row──▶ awake ──nothing came──▶ asleep,
    and such requests pass before it is tried again: the fewer, the more had come before

- A client that mostly sends at once may rest now and then, and is waited for again soon. One that
  mostly does not costs little: it is tried rarely.
- Many clients keep the loop awake themselves: only one that is alone with it is waited for.
- It takes no clock: what is counted is how often the loop went round, so it ends by itself.
"""

import asyncio
from typing import Final

#: How large a request can be for which waking up is what costs most.
SMALL_BYTES_MAX: Final = 2048
#: How often the loop goes round before it sleeps; a round takes two or three microseconds.
ROUNDS_MAX: Final = 300
#: How many requests pass after a first wait in vain, or when another client came in between.
PASSED_AFTER_MISS: Final = 200


class Alertness:
    """Whether the loop waits for the next request awake."""

    __slots__ = ("_come", "_last", "_loop", "_passed", "_rounds")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        #: Who sent the last small request.
        self._last = 0
        #: How many requests are to pass before the loop stays awake for one.
        self._passed = 0
        #: How often the loop will go round yet; 0 if it sleeps.
        self._rounds = 0
        #: How many requests have come since it is awake.
        self._come = 0

    @property
    def is_awake(self) -> bool:
        """Whether the loop goes round without waiting."""
        return self._rounds > 0

    def expect(self, who: int) -> None:
        """Count on the next request of a client whose small request was answered."""
        if who != self._last:
            self._last = who
            self._passed = PASSED_AFTER_MISS
        elif self._rounds:
            self._rounds = ROUNDS_MAX
            self._come += 1
        elif self._passed:
            self._passed -= 1
        else:
            self._rounds = ROUNDS_MAX
            self._come = 0
            self._loop.call_soon(self._go_round)

    def _go_round(self) -> None:
        self._rounds -= 1
        if self._rounds:
            self._loop.call_soon(self._go_round)
        else:
            self._passed = PASSED_AFTER_MISS // (1 + self._come)
