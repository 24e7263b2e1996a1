"""The indexes (DSK-13) find what a search through all entries finds, and read what they wrote."""

from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strom.log.index import DamagedIndexError, OffsetIndex, TimeIndex

STEPS = st.lists(st.tuples(st.integers(1, 50), st.integers(1, 9000)), max_size=60)


def filled(steps) -> OffsetIndex:
    index = OffsetIndex()
    offset = position = 0
    for offset_step, position_step in steps:
        offset += offset_step
        position += position_step
        index.append(offset, position)
    return index


@given(STEPS)
def test_an_offset_index_is_read_as_it_was_written(steps):
    index = filled(steps)
    data = index.pending()
    assert len(data) == 8 * len(steps)
    for zeros in (0, 1, 8, 800):
        again = OffsetIndex.read(data + bytes(zeros), 10**9)
        assert (again.offsets, again.positions) == (index.offsets, index.positions)
        assert again.pending() == b""


@given(STEPS, st.integers(0, 3000))
def test_the_floor_is_the_last_entry_not_above(steps, offset):
    index = filled(steps)
    below = [each for each in zip(index.offsets, index.positions, strict=True) if each[0] <= offset]
    assert index.floor(offset) == (below[-1] if below else (-1, 0))
    positions = [each for each in index.positions if each <= offset]
    assert index.boundary_before(offset)[1] == (positions[-1] if positions else 0)


@given(STEPS, st.integers(0, 3000))
def test_truncation_keeps_what_is_below(steps, offset):
    index = filled(steps)
    kept = index.truncated(offset)
    assert kept.offsets.tolist() == [each for each in index.offsets if each < offset]
    assert kept.positions == index.positions[: len(kept)]


@given(STEPS, st.integers(0, 3000), st.booleans())
def test_what_comes_after_a_truncation_is_written(steps, offset, is_written):
    """Also where the file had more entries than are kept."""
    data = filled(steps).pending()
    index = OffsetIndex.read(data, 10**9) if is_written else filled(steps)
    times = TimeIndex()
    for number in range(len(steps)):
        times.maybe_append(1000 + number, number)
    if is_written:
        times = TimeIndex.read(times.pending())
    kept, kept_times = index.truncated(offset), times.truncated(offset)
    entries, time_entries = len(kept), len(kept_times)
    kept.append(10**6, 10**6)
    kept_times.maybe_append(10**6, 10**6)
    assert len(kept.pending()) == 8 * (1 if is_written else entries + 1)
    assert len(kept_times.pending()) == 12 * (1 if is_written else time_entries + 1)


@given(st.lists(st.integers(-5, 2**42), max_size=40))
def test_a_time_index_holds_ascending_times_and_is_read_as_it_was_written(times):
    index = TimeIndex()
    for offset, time in enumerate(times):
        index.maybe_append(time, offset)
    again = TimeIndex.read(index.pending() + bytes(240))
    # One entry of nothing but zeros cannot be told from allocated space.
    if index.times.tolist() != [0] or index.offsets.tolist() != [0]:
        assert (again.times, again.offsets) == (index.times, index.offsets)
    for wanted in (*times, 0, 2**43):
        first = next((each for each in range(len(times)) if times[each] >= max(wanted, 0)), None)
        assert first is None or index.floor(wanted)[1] <= first


@given(st.binary(max_size=64), st.integers(1, 5000))
def test_no_bytes_whatever_break_the_reader(data, log_size):
    for read in (lambda: OffsetIndex.read(data, log_size), lambda: TimeIndex.read(data)):
        try:
            index = read()
        except DamagedIndexError:
            continue
        assert len(index) <= len(data) // 8


@pytest.mark.parametrize(
    "data",
    ["0000000500000064 0000000400000070", "0000000500000064 0000000600000064", "00000005000fffff"],
)
def test_what_does_not_ascend_or_points_outside_is_damaged(data):
    with pytest.raises(DamagedIndexError):
        OffsetIndex.read(bytes.fromhex(data), 200)


def test_looking_up_agrees_with_bisection():
    index = filled([(3, 100)] * 1000)
    for offset in range(3100):
        at = bisect_right(index.offsets, offset)
        assert index.floor(offset)[1] == at * 100
