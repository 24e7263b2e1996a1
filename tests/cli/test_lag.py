"""How far behind a group is, in words."""

import pytest

from strom.cli.lag import Position, lag_of, lag_text


@pytest.mark.parametrize(
    ("lag_ms", "text"),
    [(None, "-"), (0, "0 ms"), (1999, "1999 ms"), (2000, "2 s"), (7_200_000, "2 h")],
)
def test_a_lag_in_time_is_told_in_one_unit(lag_ms, text):
    assert lag_text(lag_ms) == text


def position(partition, consumer_id, lag, lag_ms):
    return Position("t", partition, 0, lag, lag, lag_ms, consumer_id, "h", "c")


def test_a_members_lag_is_that_of_all_it_reads():
    found = [
        position(0, "a", 2, 70),
        position(1, "a", 3, 50),
        position(2, "a", None, None),
        position(3, "b", None, None),
        position(4, None, 9, 90),
    ]
    assert lag_of("a", found) == (5, 70)
    assert lag_of("b", found) == (None, None)
