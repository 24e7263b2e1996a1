"""Waiting for partitions to grow: one waiter, many partitions, one deadline.

A waiter is told of every rise of a partition's high watermark and of every change that its
owner must hear of (leadership lost, partition deleted). It does nothing until then: a thousand
long polls cost a thousand objects and no time.
"""

import asyncio
from collections.abc import Iterable
from typing import Protocol


class Watched(Protocol):
    """What a waiter can be told by."""

    watchers: "set[Waiter]"


class Waiter:
    """Waits until so many bytes have come, until something else happened, or until time is up."""

    __slots__ = ("_future", "_missing_bytes")

    def __init__(self, missing_bytes: int) -> None:
        self._missing_bytes = missing_bytes
        self._future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def on_growth(self, size_bytes: int) -> None:
        """Take it that so many more bytes can be read."""
        self._missing_bytes -= size_bytes
        if self._missing_bytes <= 0:
            self.wake()

    def wake(self) -> None:
        """End the wait: there is something to look at."""
        if not self._future.done():
            self._future.set_result(True)

    def expire(self) -> None:
        """End the wait: time is up."""
        if not self._future.done():
            self._future.set_result(False)

    async def wait(self, watched: Iterable[Watched], timeout_ms: float) -> bool:
        """Return True when woken, False when time is up."""
        loop = asyncio.get_running_loop()
        places = list(watched)
        for place in places:
            place.watchers.add(self)
        timer = loop.call_later(timeout_ms / 1000, self.expire)
        try:
            return await self._future
        finally:
            timer.cancel()
            for place in places:
                place.watchers.discard(self)
