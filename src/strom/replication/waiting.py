# Compiled by mypyc.
"""Waiting for partitions to grow: one waiter, many partitions, one deadline.

A waiter is told of every rise of a partition's high watermark and of every change that its
owner must hear of (leadership lost, partition deleted). It listens from the moment it is made,
so what comes between the look that found too little and the wait is not missed. It does nothing
until it is told something: a thousand long polls cost a thousand objects and no time.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol


class Watched(Protocol):
    """What a waiter can be told by."""

    def watch(self, waiter: "Waiter") -> None:
        """Tell the waiter of what happens from now on."""

    def unwatch(self, waiter: "Waiter") -> None:
        """Tell the waiter nothing more."""


class Waiter:
    """Waits until so many bytes have come, until something else happened, or until time is up."""

    __slots__ = ("_future", "_missing_bytes", "_timer", "_watched", "_whom", "_woken")

    def __init__(self, watched: Iterable[Watched], missing_bytes: int, timeout_ms: float) -> None:
        self._missing_bytes = missing_bytes
        #: How the wait ended; None until then.
        self._woken: bool | None = None
        self._future: asyncio.Future[None] | None = None
        self._whom: Callable[[bool], None] | None = None
        self._watched = list(watched)
        for each in self._watched:
            each.watch(self)
        # Ends also a wait that nobody has begun, or that nobody is interested in any more.
        self._timer = asyncio.get_running_loop().call_later(max(timeout_ms, 0) / 1000, self.expire)

    def add(self, watched: Watched, size_bytes: int) -> None:
        """Listen to one more, of which so many bytes could be read a moment ago."""
        if self._woken is None:
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

    def cancel(self) -> None:
        """End the wait, and tell nobody."""
        self._whom = None
        self.expire()

    def tell(self, whom: Callable[[bool], None]) -> None:
        """Call back in a turn of its own: with True when woken, with False when time is up.

        That is `wait` for who has nothing else to do: it takes no task.
        """
        self._whom = whom
        if self._woken is not None:
            self._call_back()

    async def wait(self) -> bool:
        """Return True when woken, False when time is up."""
        if self._woken is None:
            self._future = asyncio.get_running_loop().create_future()
            try:
                await self._future
            finally:
                self.expire()
        return bool(self._woken)

    def _end(self, *, woken: bool) -> None:
        if self._woken is not None:
            return
        self._woken = woken
        self._timer.cancel()
        for each in self._watched:
            each.unwatch(self)
        self._watched.clear()
        if self._future is not None and not self._future.done():
            self._future.set_result(None)
        self._call_back()

    def _call_back(self) -> None:
        if self._whom is not None:
            asyncio.get_running_loop().call_soon(self._whom, bool(self._woken))
