"""How far behind a group is, in words."""

import pytest

from strom.cli.lag import lag_text


@pytest.mark.parametrize(
    ("lag_ms", "text"),
    [(None, "-"), (0, "0 ms"), (1999, "1999 ms"), (2000, "2 s"), (7_200_000, "2 h")],
)
def test_a_lag_in_time_is_told_in_one_unit(lag_ms, text):
    assert lag_text(lag_ms) == text
