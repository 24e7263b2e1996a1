"""Time, for what waits: the one place here that reads a clock or sleeps."""

import time

from strom.spark.failure import UnreachableError


def now_ms() -> int:
    """Return milliseconds that only go forward."""
    return time.monotonic_ns() // 1_000_000


def pause(milliseconds: int) -> None:
    """Do nothing for a while."""
    time.sleep(milliseconds / 1000)


class Patience:
    """How long something may be tried again and again."""

    def __init__(self, limit_ms: int, pause_ms: int) -> None:
        self._limit_ms = limit_ms
        self._pause_ms = max(pause_ms, 1)
        self._until_ms = now_ms() + limit_ms

    def renew(self) -> None:
        """Begin anew: there was progress."""
        self._until_ms = now_ms() + self._limit_ms

    def wait(self, reason: object) -> None:
        """Pause before the next attempt, or give up and say why it is needed."""
        if now_ms() + self._pause_ms > self._until_ms:
            raise UnreachableError(f"{reason} (tried for {self._limit_ms} ms)")
        pause(self._pause_ms)
