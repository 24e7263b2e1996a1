"""How much a micro-batch takes."""

from hypothesis import given
from hypothesis import strategies as st

from strom.spark.pacing import Delay, limited

SIZES = st.lists(st.integers(0, 10**12), min_size=1, max_size=20)


def places(numbers, shift=0):
    return {("t", n): number + shift for n, number in enumerate(numbers)}


@given(SIZES, st.integers(1, 10**9))
def test_the_limit_is_kept_and_nobody_starves(sizes, limit):
    start = places([5] * len(sizes))
    end = places(sizes, 5)
    found = limited(start, end, limit)
    taken = {place: found[place] - start[place] for place in end}
    assert all(0 <= taken[place] <= end[place] - 5 for place in end)
    assert all(taken[place] > 0 for place in end if end[place] > 5)
    # One each for those whose share is less than one.
    assert sum(taken.values()) <= max(limit, 0) + len(sizes)


@given(SIZES)
def test_what_is_within_the_limit_is_taken_whole(sizes):
    end = places(sizes)
    assert limited(places([0] * len(sizes)), end, max(sum(sizes), 1)) == end


def test_shares_are_in_proportion():
    start, end = places([0, 0, 10]), places([300, 100, 10])
    assert limited(start, end, 40) == places([30, 10, 10])


def test_a_partition_that_went_back_keeps_its_end():
    assert limited(places([50, 0]), places([20, 100]), 10) == places([20, 10])


def test_a_partition_that_is_gone_before_its_beginning_is_known_ends_nothing():
    assert limited(places([0]), places([100, 7]), 10) == places([10, 7])


def test_a_micro_batch_waits_for_enough_but_not_for_ever():
    delay = Delay(min_offsets=10, max_delay_ms=1000)
    start = places([0])
    assert not delay.holds_back(start, places([1]), now_ms=5000)
    assert delay.holds_back(start, places([9]), now_ms=5999)
    assert not delay.holds_back(start, places([10]), now_ms=5999)
    assert delay.holds_back(start, places([9]), now_ms=6998)
    assert not delay.holds_back(start, places([9]), now_ms=6999)
