import pytest

from strom.testing.clock import FakeClock


def test_time_passes_only_when_it_is_told_to():
    clock = FakeClock(1_000)
    assert clock() == clock() == 1_000
    clock.advance(5)
    clock.advance(days=1, hours=0.5)
    assert clock() == 1_005 + 86_400_000 + 1_800_000


def test_time_does_not_go_back():
    with pytest.raises(AssertionError):
        FakeClock().advance(-1)
