"""Timers by key: each comes once, when it is due and not before, and others get their turn."""

import asyncio
import contextlib

from strom.broker.timers import AT_ONCE, Timers
from tests.patience import PATIENCE_SECONDS


class Fired(list):
    """The timers that came."""

    def __init__(self):
        super().__init__()
        self.came = asyncio.Event()

    def note(self, key):
        self.append(key)
        self.came.set()

    async def until(self, count):
        """Wait for so many timers to have come."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(self) < count:
                self.came.clear()
                await self.came.wait()


class Clock:
    def __init__(self):
        self.now_ms = 1000

    def __call__(self):
        return self.now_ms


@contextlib.asynccontextmanager
async def timing():
    clock, fired = Clock(), Fired()
    timers = Timers(clock, clock, fired.note)
    yield clock, timers, fired
    timers.close()


async def turns(count=3):
    """Let the loop come round; what is due by the clock has no delay."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_timers_come_in_the_order_of_their_times_and_once():
    async with timing() as (clock, timers, fired):
        for key, due_ms in (("c", 1030), ("a", 1010), ("b", 1020)):
            timers.set((key,), due_ms)
        clock.now_ms = 1020
        timers.set(("now",), 1020)
        await fired.until(3)
        await turns()
        assert fired == [("a",), ("b",), ("now",)]
        clock.now_ms = 1030
        await fired.until(4)
    assert fired == [("a",), ("b",), ("now",), ("c",)]


async def test_a_timer_that_was_moved_to_later_comes_later_and_does_not_pile_up():
    async with timing() as (clock, timers, fired):
        for due_ms in range(1001, 2001):
            timers.set(("session", "m"), due_ms)
        assert len(timers._queue) == 1
        clock.now_ms = 1999
        timers.set(("other",), 1999)
        await fired.until(1)
        await turns()
        assert fired == [("other",)]
        clock.now_ms = 2000
        await fired.until(2)
    assert fired == [("other",), ("session", "m")]


async def test_a_timer_that_was_moved_to_earlier_comes_earlier_and_once():
    async with timing() as (clock, timers, fired):
        timers.set(("a",), 900_000)
        timers.set(("a",), 1001)
        clock.now_ms = 1001
        await fired.until(1)
        clock.now_ms = 900_000
        timers.set(("b",), 899_999)
        await fired.until(2)
        await turns()
    assert fired == [("a",), ("b",)]


async def test_a_forgotten_timer_does_not_come():
    async with timing() as (_, timers, fired):
        timers.set(("a",), 1000)
        timers.set(("b",), 1000)
        timers.set(("a",), None)
        timers.set(("never set",), None)
        await fired.until(1)
        await turns()
    assert fired == [("b",)]


async def test_one_that_is_forgotten_by_another_of_the_same_moment_does_not_come():
    fired = Fired()

    def fire(key):
        fired.note(key)
        timers.set(("b",), None)

    clock = Clock()
    timers = Timers(clock, clock, fire)
    timers.set(("a",), 1000)
    timers.set(("b",), 1000)
    await fired.until(1)
    await turns()
    assert fired == [("a",)]


async def test_what_is_set_for_now_meanwhile_waits_for_the_next_turn():
    """A clean-up that goes on in portions must not keep the loop."""
    fired = []

    def fire(key):
        fired.append(key)
        if len(fired) < 5:
            timers.set(key, 1000)

    clock = Clock()
    timers = Timers(clock, clock, fire)
    timers.set(("a",), 1000)
    seen = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(fired) < 5:
            await asyncio.sleep(0)
            seen.append(len(fired))
    assert set(range(1, 6)) <= set(seen)


async def test_many_that_are_due_at_once_come_in_portions():
    async with timing() as (_, timers, fired):
        for number in range(3 * AT_ONCE):
            timers.set((str(number),), 1000)
        portions = set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(fired) < 3 * AT_ONCE:
                await asyncio.sleep(0)
                portions.add(len(fired))
        assert {AT_ONCE, 2 * AT_ONCE} <= portions
    assert len(fired) == 3 * AT_ONCE


async def test_nothing_comes_after_the_end():
    async with timing() as (_, timers, fired):
        timers.set(("a",), 1000)
        timers.close()
        await turns(5)
    assert fired == []


def test_a_clock_that_is_set_moves_no_timer():
    async def run(set_to_ms):
        """Set the time of day while a timer waits for another 10 ms."""
        fired, day, steady = Fired(), Clock(), Clock()
        timers = Timers(day, steady, fired.note)
        timers.set(("a",), 1010)
        timers.set(("late",), 1_000_000)
        day.now_ms = set_to_ms
        await turns()
        assert fired == []
        steady.now_ms += 10
        await fired.until(1)
        return fired

    hour_ms = 60 * 60 * 1000
    assert asyncio.run(run(1000 + hour_ms)) == [("a",)]
    assert asyncio.run(run(1000 - hour_ms)) == [("a",)]
