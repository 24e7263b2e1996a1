"""Runs that a virtual machine's host disturbed are made again."""

from bench.case import Case
from bench.contests import BROKERS
from bench.report import told_stolen
from bench.results import Results
from bench.stolen import ATTEMPTS_MAX, REST_SECONDS, least_stolen, processor_times, share


class Host:
    """Takes of the hundred ticks of each run what it is told to."""

    def __init__(self, *takes):
        self.takes, self.runs, self.rests = takes, 0, []

    def times(self):
        return sum(self.takes[: self.runs]), 100 * self.runs

    def run(self):
        self.runs += 1
        return {"MB/s": self.runs}

    def measure(self, *, repeats=True):
        return least_stolen(self.run, repeats, rest=self.rests.append, times=self.times)


def test_a_quiet_run_counts_at_once():
    host = Host(2, 50)
    assert host.measure() == {"MB/s": 1, "stolen": 0.02}
    assert host.rests == []


def test_a_run_is_made_again_until_it_is_quiet():
    host = Host(40, 1, 30)
    assert host.measure() == {"MB/s": 2, "stolen": 0.01}
    assert host.rests == [REST_SECONDS]


def test_of_disturbed_runs_the_quietest_counts():
    host = Host(*range(40, 40 - 10 * ATTEMPTS_MAX, -10))
    assert host.measure() == {"MB/s": ATTEMPTS_MAX, "stolen": (50 - 10 * ATTEMPTS_MAX) / 100}
    assert host.runs == ATTEMPTS_MAX


def test_what_cannot_be_run_again_counts_as_it_is():
    assert Host(40, 0).measure(repeats=False) == {"MB/s": 1, "stolen": 0.4}


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
        results.begin(case, BROKERS.names, {"Strom": "a", "machine": "one"})
    assert told_stolen(results, cases) == "not measured"
    strom, kafka = (type("Side", (), {"name": name}) for name in BROKERS.names)
    for lost in (0.01, 0.02, 0.06):
        results.add(cases[0], strom, {"stolen": lost})
    # As it stands on an older page.
    results.add(cases[1], kafka, {"ms": 1})
    assert told_stolen(results, cases) == "Strom 2.0% (up to 6%)"
