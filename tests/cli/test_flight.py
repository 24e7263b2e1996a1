from hypothesis import given
from hypothesis import strategies as st

from strom.cli.demo.flight import (
    ABORTS,
    PHASES,
    ROCKETS,
    read_telemetry,
    telemetry,
)

ORDER = [name for _, name in PHASES]


@given(st.sampled_from(sorted(ROCKETS)), st.floats(0, 1))
def test_what_is_sent_can_be_read(rocket, progress):
    sent = telemetry(rocket, progress)
    assert read_telemetry(sent.to_json()) == sent


@given(st.floats(0, 1), st.floats(0, 1))
def test_phases_only_go_forward(one, other):
    before, after = sorted((one, other))
    phases = [telemetry("rakete1", each).phase for each in (before, after)]
    assert ORDER.index(phases[0]) <= ORDER.index(phases[1])


def test_every_rocket_lands_but_one():
    """USE-02."""
    last = {rocket: telemetry(rocket, 1.0).phase for rocket in ROCKETS}
    assert last.pop(ABORTS) == "Aborted"
    assert set(last.values()) == {"Landed"}


def test_a_rocket_goes_up_and_comes_down():
    heights = [telemetry("rakete1", tick / 100).altitude_km for tick in range(101)]
    assert heights[0] == heights[-1] == 0
    assert max(heights) == 408
