import pytest
from hypothesis import given
from hypothesis import strategies as st

from strom.cli.latency import Latencies, percentile, summarise

HUNDRED = list(range(1, 101))


@pytest.mark.parametrize(
    ("share", "value"), [(50.0, 50), (95.0, 95), (99.0, 99), (99.9, 100), (100.0, 100), (0.0, 1)]
)
def test_a_percentile_is_a_value_that_was_measured(share, value):
    assert percentile(HUNDRED, share) == value


def test_a_thousandth_is_not_rounded_away():
    assert percentile(range(1, 1001), 99.9) == 999


@given(st.lists(st.floats(0, 1e6, width=32), min_size=1))
def test_a_summary_is_in_order(values):
    summary = summarise(values)
    assert summary.p50_ms <= summary.p95_ms <= summary.p99_ms <= summary.p999_ms <= summary.max_ms
    assert summary.max_ms == max(values)


def test_nothing_measured_is_all_zero():
    assert summarise([]).max_ms == 0


def test_a_stretch_begins_where_the_last_ended():
    latencies = Latencies()
    latencies.add(5)
    assert latencies.stretch().max_ms == 5
    latencies.add(3)
    assert latencies.stretch().max_ms == 3
    assert latencies.summary().max_ms == 5
    assert len(latencies) == 2


def test_the_words_are_those_of_kafkas_perf_tool():
    """MON-07."""
    assert summarise(HUNDRED).text() == (
        "50.50 ms avg latency, 100.00 ms max latency, "
        "50.00 ms 50th, 95.00 ms 95th, 99.00 ms 99th, 100.00 ms 99.9th"
    )
