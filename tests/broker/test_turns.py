"""Look-ups in turns: few at once, many with others in between, what is cold after a thread."""

import asyncio
import threading

import pytest

from strom.broker.context import Large
from strom.broker.host import in_thread
from strom.broker.turns import AT_ONCE, answer_each, in_turns
from strom.log.cold import ColdError, nothing_to_take


def double(number):
    return number * 2


async def count_turns(turns):
    """Count how often another task gets its turn."""
    while True:
        turns.append(None)
        await asyncio.sleep(0)


def test_few_are_done_at_once():
    assert answer_each([1, 2, 3], double, tuple, in_thread, pytest.fail) == (2, 4, 6)
    most = range(AT_ONCE)
    assert answer_each(most, double, len, in_thread, pytest.fail) == AT_ONCE


async def test_others_get_their_turn_between_portions_of_many():
    seen = []
    turns = []

    def work(number):
        seen.append(len(turns))
        return number

    counting = asyncio.create_task(count_turns(turns))
    reply = await answer_each(range(AT_ONCE * 5), work, list, in_thread, pytest.fail).work
    counting.cancel()
    reply = reply
    assert isinstance(reply, Large)
    assert reply.build() == list(range(AT_ONCE * 5))
    portions = [seen.count(turn) for turn in sorted(set(seen))]
    assert portions == [AT_ONCE] * 5


class Shelf:
    """Things of which some must be fetched first."""

    def __init__(self, missing):
        self.missing = set(missing)
        self.fetchers = []
        self.taken = []

    def look(self, number):
        if number in self.missing:
            raise ColdError(lambda: self.fetch(number))
        self.taken.append(number)
        return number

    def fetch(self, number):
        self.fetchers.append(threading.get_ident())
        self.missing.discard(number)
        return nothing_to_take


@pytest.mark.parametrize("count", [4, AT_ONCE + 1], ids=["few", "many"])
async def test_what_is_missing_is_fetched_by_a_thread_and_all_is_done_once(count):
    shelf = Shelf({1, 3})
    reply = await answer_each(range(count), shelf.look, list, in_thread, pytest.fail).work
    done = reply.build() if isinstance(reply, Large) else reply
    assert done == sorted(shelf.taken) == list(range(count))
    assert len(shelf.fetchers) == 2
    assert threading.get_ident() not in shelf.fetchers


def test_a_thread_fetches_at_once_what_a_portion_of_look_ups_lacks():
    count = AT_ONCE * 2 + 5
    shelf = Shelf(range(0, count, 2))
    hops = []

    async def offload(work):
        hops.append(None)
        return await in_thread(work)

    looking = in_turns(range(count), shelf.look, offload, pytest.fail)
    assert asyncio.run(looking) == list(range(count))
    assert sorted(shelf.taken) == list(range(count))
    assert len(hops) == 3
    assert threading.get_ident() not in shelf.fetchers


@pytest.mark.parametrize("failures", [1, 2, 3])
def test_a_look_up_that_cannot_be_read_is_tried_again(failures):
    cold = []

    def fail():
        raise OSError("broken")

    def look(number):
        if number == 1 and len(cold) < failures:
            cold.append(number)
            raise ColdError(fail)
        return number

    looking = in_turns(range(3), look, in_thread, lambda number, error: f"{number}: {error}")
    assert asyncio.run(looking) == [0, 1 if failures < 3 else "1: broken", 2]


@pytest.mark.parametrize("count", [3, AT_ONCE + 3])
@pytest.mark.parametrize("is_cold", [True, False])
async def test_a_partition_that_cannot_be_read_spoils_no_other(count, is_cold):
    def fail():
        raise OSError("broken")

    def look(number):
        if number != 1:
            return number
        if is_cold:
            raise ColdError(fail)
        return fail()

    def failed(number, error):
        return f"{number}: {error}"

    reply = await answer_each(range(count), look, list, in_thread, failed).work
    done = reply.build() if isinstance(reply, Large) else reply
    assert done == [0, "1: broken", *range(2, count)]
