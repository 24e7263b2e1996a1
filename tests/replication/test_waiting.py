"""A waiter hears of everything from the moment it is made, and leaves nothing behind."""

import asyncio

import pytest

from strom.replication.waiting import Waiter


class Place:
    def __init__(self):
        self.watchers = set()

    def watch(self, waiter):
        self.watchers.add(waiter)

    def unwatch(self, waiter):
        self.watchers.discard(waiter)


@pytest.fixture
def places():
    return [Place(), Place()]


async def test_growth_between_the_look_and_the_wait_is_not_missed(places):
    waiter = Waiter(places, 1, 60_000)
    for each in list(places[1].watchers):
        each.on_growth(10)
    assert await waiter.wait()
    assert not places[0].watchers
    assert not places[1].watchers


async def test_it_waits_for_as_many_bytes_as_are_missing(places):
    waiter = Waiter(places, 100, 60_000)
    waiter.on_growth(60)
    assert places[0].watchers
    waiter.on_growth(40)
    assert await waiter.wait()


async def test_it_ends_when_time_is_up(places):
    assert await Waiter(places, 1, 0).wait() is False
    assert not places[0].watchers


async def test_a_wait_that_is_cancelled_leaves_nothing_behind(places):
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(Waiter(places, 1, 60_000).wait())
        await asyncio.sleep(0)
        task.cancel()
    assert not places[0].watchers


async def test_a_wait_that_nobody_begins_ends_by_itself(places):
    Waiter(places, 1, 0)
    other = Waiter(places, 1, 1)
    await other.wait()
    assert not places[0].watchers


@pytest.mark.parametrize("woken", [True, False])
@pytest.mark.parametrize("early", [True, False], ids=["ended before", "ended after"])
async def test_whoever_is_to_be_told_is_told_once_and_later(places, woken, early):
    told = []
    waiter = Waiter(places, 1, 60_000)
    end = waiter.wake if woken else waiter.expire
    if early:
        end()
    waiter.tell(told.append)
    end()
    waiter.expire()
    assert not told
    await asyncio.sleep(0)
    assert told == [woken]
    assert not places[0].watchers


async def test_nobody_is_told_of_a_wait_that_was_given_up(places):
    told = []
    waiter = Waiter(places, 1, 60_000)
    waiter.tell(told.append)
    waiter.cancel()
    waiter.wake()
    await asyncio.sleep(0)
    assert told == []
    assert not places[0].watchers
