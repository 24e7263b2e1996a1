"""The share of the processors' time that the host took."""

import pytest

from bench.stolen import processor_times, share


def test_idle_time_is_not_wanted(tmp_path):
    lines = tmp_path / "stat"
    # user nice system idle waiting interrupts soft-interrupts stolen, and guests
    lines.write_text("cpu  10 1 5 800 60 1 3 20 7 7\ncpu0 1 2 3 4 5 6 7 8\n")
    assert processor_times(lines) == (20, 40)


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [((20, 40), (25, 90), 0.1), ((20, 40), (20, 40), 0.0), (None, (1, 2), None)],
)
def test_what_is_stolen_is_a_share_of_what_was_wanted(before, after, found):
    assert share(before, after) == found


def test_where_the_system_tells_no_times_there_are_none(tmp_path):
    assert processor_times(tmp_path / "missing") is None
