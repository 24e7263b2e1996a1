"""Waiting for partitions to grow: one waiter, many partitions, one deadline.

A waiter is told of every rise of a partition's high watermark and of every change that its
owner must hear of (leadership lost, partition deleted). It listens from the moment it is made,
so what comes between the look that found too little and the wait is not missed. It does nothing
until it is told something: a thousand long polls cost a thousand objects and no time.
"""

import asyncio
from collections.abc import Iterable
from typing import Protocol


class Watched(Protocol):
    """What a waiter can be told by."""

    def watch(self, waiter: "Waiter") -> None:
        """Tell the waiter of what happens from now on."""

    def unwatch(self, waiter: "Waiter") -> None:
        """Tell the waiter nothing more."""


class Waiter:
    """Waits until so many bytes have come, until something else happened, or until time is up."""

    __slots__ = ("_future", "_missing_bytes", "_timer", "_watched")

    def __init__(self, watched: Iterable[Watched], missing_bytes: int, timeout_ms: float) -> None:
        loop = asyncio.get_running_loop()
        self._missing_bytes = missing_bytes
        self._future: asyncio.Future[bool] = loop.create_future()
        self._watched = list(watched)
        for each in self._watched:
            each.watch(self)
        # Ends also a wait that nobody has begun, or that nobody is interested in any more.
        self._timer = loop.call_later(max(timeout_ms, 0) / 1000, self.expire)

    def add(self, watched: Watched, size_bytes: int) -> None:
        """Listen to one more, of which so many bytes could be read a moment ago."""
        if not self._future.done():
            watched.watch(self)
            self._watched.append(watched)
            self.on_growth(size_bytes)

    def on_growth(self, size_bytes: int) -> None:
        """Take it that so many more bytes can be read."""
        self._missing_bytes -= size_bytes
        if self._missing_bytes <= 0:
            self.wake()

    def wake(self) -> None:
        """End the wait: there is something to look at."""
        self._end(woken=True)

    def expire(self) -> None:
        """End the wait: time is up."""
        self._end(woken=False)

    async def wait(self) -> bool:
        """Return True when woken, False when time is up."""
        try:
            return await self._future
        finally:
            self.expire()

    def _end(self, *, woken: bool) -> None:
        if not self._future.done():
            self._future.set_result(woken)
        self._timer.cancel()
        for each in self._watched:
            each.unwatch(self)
        self._watched.clear()
