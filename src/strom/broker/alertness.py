# Compiled by mypyc.
"""Keeps the loop awake between the requests of a client that waits for each of its answers.

Such a client sends its next request as soon as it has the answer to the last one. If the loop goes
to sleep meanwhile, so does the processor, and to wake both up takes longer than to serve the
request. So after a small request that was answered at once, and in few bytes, the loop asks the
system for events a number of times before it waits for them; a client that was sent much has
enough to do. So it does after any request of a transactional producer, for longer: the end of a
transaction waits for its last batch to be told to the application, and the next transaction for
that end.

    asleep ──a client's second request in a row──▶ awake ──nothing came──▶ asleep,
    and some of its requests pass before it is tried again: the fewer, the more had come before

- A client that mostly sends at once may rest now and then, and is waited for again soon. One that
  mostly does not costs little: it is tried rarely.
- Many clients keep the loop awake themselves: only one that is alone with it is waited for.
- Whoever else wants the processor gets it meanwhile, the client first of all.
- It takes no clock: what is counted is how often the loop went round, so it ends by itself.
"""

import asyncio
import os
from typing import Final, NamedTuple

#: How large a request can be for which waking up is what costs most, but for transactions.
SMALL_BYTES_MAX: Final = 2048


class Patience(NamedTuple):
    """How long somebody is waited for."""

    #: How often the loop goes round before it sleeps; a round takes two or three microseconds.
    rounds_max: int
    #: How many requests pass after a first wait in vain, or when another client came in between.
    passed_after_miss: int


#: With a client that sends one small request after the other.
FOR_ANSWERED: Final = Patience(300, 200)
#: With a producer of transactions. It takes longer to send the next request, and what it sends is
#: far more work than a small request: one wait in vain of ten costs little beside that.
FOR_TRANSACTIONS: Final = Patience(800, 10)

_give_way = getattr(os, "sched_yield", lambda: None)


class Alertness:
    """Whether the loop waits for the next request awake."""

    __slots__ = ("_come", "_last", "_loop", "_passed", "_patience", "_rounds")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        #: Who sent the last request of those that count.
        self._last = 0
        #: How many requests are to pass before the loop stays awake for one.
        self._passed = 0
        #: How often the loop will go round yet; 0 if it sleeps.
        self._rounds = 0
        #: How many requests have come since it is awake.
        self._come = 0
        self._patience = FOR_ANSWERED

    @property
    def is_awake(self) -> bool:
        """Whether the loop goes round without waiting."""
        return self._rounds > 0

    def expect(self, who: int, patience: Patience = FOR_ANSWERED) -> None:
        """Count on the next request of a client that was answered."""
        if who != self._last:
            self._last = who
            self._passed = patience.passed_after_miss
        elif self._rounds:
            self._rounds = patience.rounds_max
            self._come += 1
        elif self._passed:
            self._passed -= 1
        else:
            self._patience = patience
            self._rounds = patience.rounds_max
            self._come = 0
            self._loop.call_soon(self._go_round)

    def _go_round(self) -> None:
        self._rounds -= 1
        if self._rounds:
            _give_way()
            self._loop.call_soon(self._go_round)
        else:
            self._passed = self._patience.passed_after_miss // (1 + self._come)
