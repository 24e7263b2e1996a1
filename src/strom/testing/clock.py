"""A clock that stands still until a test moves it.

    clock = FakeClock()
    with LocalBroker(host=Host(now_ms=clock)) as broker:
        ...
        clock.advance(days=8)      retention finds that a week is over

It is the time of day that the broker asks its host for: the age of records, segments, producers
and connections. How often the broker looks, and how long a client is made to wait, are timers of
its event loop and run as ever; set the check's interval low.
"""

from datetime import timedelta

from strom.broker.host import wall_clock_ms


class FakeClock:
    """The time of day for `Host(now_ms=...)`; it only goes forward, and only when told to."""

    def __init__(self, now_ms: int | None = None) -> None:
        #: From now on by default, because clients put the real time into their records.
        self.now_ms = wall_clock_ms() if now_ms is None else now_ms

    def __call__(self) -> int:
        """Return the time in milliseconds since 1970."""
        return self.now_ms

    def advance(self, milliseconds: int = 0, *, days: float = 0, hours: float = 0) -> None:
        """Let so much time pass."""
        passed_ms = milliseconds + timedelta(days=days, hours=hours) // timedelta(milliseconds=1)
        assert passed_ms >= 0, "time does not go back"
        self.now_ms += passed_ms
