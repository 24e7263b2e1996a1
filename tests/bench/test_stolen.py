"""Runs wait for a quiet host, and those that it disturbed are made again."""

import pytest

from bench.case import Case
from bench.contests import BROKERS
from bench.results import TAKEN, Results
from bench.stolen import (
    LOOK_SECONDS,
    PATIENCE_SECONDS,
    REST_SECONDS,
    Quiet,
    keep_busy,
    processor_times,
    share,
)


class Host:
    """Takes of the hundred ticks of each look and each run what it is told to."""

    def __init__(self, looks=(), runs=()):
        self.looks, self.runs = list(looks), list(runs)
        self.stolen = self.wanted = self.made = 0
        self.rests = []
        self.quiet = Quiet(look=self.look, rest=self.rests.append, times=self.times)

    def times(self):
        return self.stolen, self.wanted

    def take(self, ticks):
        self.stolen, self.wanted = self.stolen + ticks, self.wanted + 100

    def look(self):
        self.take(self.looks.pop(0) if self.looks else 0)

    def work(self):
        self.made += 1
        self.take(self.runs.pop(0))
        return {"MB/s": self.made}

    def measure(self, *, repeats=True):
        return self.quiet.run(self.work, repeats)


def test_a_quiet_run_counts_at_once():
    host = Host(runs=(2,))
    assert host.measure() == {"MB/s": 1, "stolen": 0.02}
    assert host.rests == []


def test_a_run_waits_for_quiet():
    host = Host(looks=(40, 10, 5), runs=(0,))
    assert host.measure() == {"MB/s": 1, "stolen": 0.0}
    assert host.rests == [REST_SECONDS] * 2


def test_patience_ends():
    host = Host(looks=[40] * 100_000, runs=(3, 3))
    host.measure()
    assert len(host.rests) == pytest.approx(PATIENCE_SECONDS / (REST_SECONDS + LOOK_SECONDS), abs=1)
    host.rests.clear()
    assert host.measure() == {"MB/s": 2, "stolen": 0.03}
    assert host.rests == []


def test_a_disturbed_run_is_made_again_and_the_better_one_counts():
    assert Host(runs=(40, 1)).measure() == {"MB/s": 2, "stolen": 0.01}
    assert Host(runs=(20, 40)).measure() == {"MB/s": 1, "stolen": 0.2}


def test_what_cannot_be_run_again_counts_as_it_is():
    assert Host(runs=(40, 0)).measure(repeats=False) == {"MB/s": 1, "stolen": 0.4}


def test_a_look_wants_the_processors():
    before = processor_times()
    keep_busy(0.1)
    if before is not None:
        assert processor_times()[1] > before[1]


def test_idle_time_is_not_wanted(tmp_path):
    lines = tmp_path / "stat"
    # user nice system idle waiting interrupts soft-interrupts stolen, and guests
    lines.write_text("cpu  10 1 5 800 60 1 3 20 7 7\ncpu0 1 2 3 4 5 6 7 8\n")
    assert processor_times(lines) == (20, 40)
    assert share((20, 40), (25, 90)) == 0.1
    assert share((20, 40), (20, 40)) == 0.0


def test_where_nobody_can_tell_nothing_was_stolen(tmp_path):
    assert processor_times(tmp_path / "missing") is None
    assert share(None, (1, 2)) == share((1, 2), None) == 0.0


def test_the_page_tells_what_was_lost(tmp_path):
    cases = [Case(name, "latency", None, ()) for name in ("one", "two")]
    results = Results(tmp_path / "bench.json")
    for case in cases:
        results.begin(case, BROKERS.names, {"Strom": "a", "Python": "3.11", "machine": "one"})
    results.sum_up(cases)
    assert results.told(TAKEN, cases) == "not told"
    strom, kafka = (type("Side", (), {"name": name}) for name in BROKERS.names)
    for lost in (0.01, 0.02, 0.06):
        results.add(cases[0], strom, {"stolen": lost})
    results.add(cases[1], kafka, {"ms": 1})
    results.sum_up(cases)
    assert results.told(TAKEN, cases) == "Strom 2.0% (up to 6%)"
