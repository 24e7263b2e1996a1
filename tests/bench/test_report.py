"""What the benchmark's page makes of measured numbers."""

import subprocess
import sys

import pytest

from bench import report
from bench.case import ROOT, Bar, Case, Measure, in_turn
from bench.cases import CASES
from bench.contests import BROKERS, CONNECTORS, contest_of
from bench.page import by_group, read_page
from bench.perf_tools import rate_read
from bench.report import Row
from bench.results import Results
from bench.stage import thirds
from tests import nodes


def row(bar, own, peer=None):
    measured = {"ours": [{bar.number: each} for each in own]}
    if peer is not None:
        measured["theirs"] = [{bar.number: each} for each in peer]
    return Row(Case("case", "group", None, (bar,)), bar, measured)


def test_a_ratio_is_of_medians():
    found = row(Bar("rows/s", at_least=1.5), [100, 300, 900], [100, 200, 300])
    assert found.met
    assert found.line() == (
        "| case | rows/s | 300 (100 to 900) | 200 (100 to 300) | 1.50 | ≥ 1.5 | met |"
    )
    missed = row(Bar("ms", at_most=0.5), [100], [100])
    assert not missed.met
    assert missed.verdict() == "**missed by 100%**"


def test_a_bar_may_be_on_the_difference():
    bar = Bar("s", at_most=2, of=Measure.DIFFERENCE)
    assert row(bar, [5.5], [4]).met
    assert row(bar, [5.5], [4]).compared() == "+1.50"
    assert not row(bar, [6.5], [4]).met
    assert not row(bar, [3], [4]).is_plotted


def test_a_number_may_have_no_peer_or_no_bar():
    alone = row(Bar("times", at_most=1.1, of=Measure.OWN), [1.05])
    assert alone.met
    assert alone.line() == "| case | times | 1.05 (1.05 to 1.05) |  | 1.05 | ≤ 1.1 | met |"
    told = row(Bar("MB"), [120])
    assert not told.counts
    assert told.line() == "| case | MB | 120 (120 to 120) |  |  |  |  |"


def test_a_case_that_is_alone_is_measured_on_one_side(tmp_path):
    case = Case("case", "spark", None, (), is_alone=True)
    results = Results(tmp_path / "bench.json")
    results.begin(case, CONNECTORS.names[:1], told("1a2b3c"))

    class Peer:
        name = CONNECTORS.names[1]

    assert not results.wants(case, Peer)
    assert results.of([case]) == []
    assert contest_of(case) is CONNECTORS
    assert contest_of(Case("case", "latency", None, ())) is BROKERS


def told(commit):
    return {"Strom": commit, "Python": "3.11", "machine": "a small one", "Java": "17"}


def sides_of(case):
    return contest_of(case).names[: 1 if case.is_alone else None]


def measured(case, results, rounds):
    """Rounds of a case whose numbers differ, and of which the host took something."""
    results.begin(case, sides_of(case), told("a" if case.group == "groups" else "b"))
    for place, side in enumerate(sides_of(case)):
        for number in range(rounds):
            numbers = {bar.number: 1500 * (number + place + 1) for bar in case.bars}
            results.add(case, Side(side), numbers | {"stolen": 0.01 * number})


class Side:
    def __init__(self, name):
        self.name = name


@pytest.fixture
def docs(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "DOCS", tmp_path)
    monkeypatch.setattr(report, "PAGE", tmp_path / "benchmarks.md")
    monkeypatch.setattr(report, "plot", lambda _: None)
    return tmp_path


def test_the_page_is_what_a_later_run_adds_to(docs):
    results = Results(docs / "bench.json")
    for case in CASES:
        measured(case, results, 1 if case.group == "many" else 3)
    report.write(results, told("b"))
    page = report.PAGE.read_text()
    assert "- Strom: b (" in page
    assert "; a (groups)" in page
    assert "; 1 (many)" in page

    later = Results(docs / "bench.json", *read_page(page, CASES, sides_of))
    report.write(later, told("b"))
    assert report.PAGE.read_text() == page


def test_what_is_measured_again_takes_the_place_of_what_was(docs):
    results = Results(docs / "bench.json")
    for case in CASES:
        measured(case, results, 3)
    report.write(results, told("b"))
    later = Results(docs / "bench.json", *read_page(report.PAGE.read_text(), CASES, sides_of))
    (again,) = (case for case in CASES if case.group == "offsets")
    measured(again, later, 5)
    report.write(later, told("b"))

    page = report.PAGE.read_text()
    assert f"({len(CASES)} of the bench's {len(CASES)} cases were run)" in page
    assert "; 5 (offsets)" in page
    assert f"| {again.name} | requests/s | 4,500 (1,500 to 7,500) |" in page


def test_a_fact_may_hold_for_all_groups_or_for_some():
    assert by_group("Xeon(R), 2 cores") == {None: "Xeon(R), 2 cores"}
    assert by_group("one (start, many); two (groups); three (groups)") == {
        "start": "one",
        "many": "one",
        "groups": "two, three",
    }


def test_memory_is_compared_by_thirds():
    assert thirds([1, 2, 3, 50, 60, 70, 7, 8, 9]) == (2, 8)
    assert thirds([5]) == (5, 5)


READ = """\
start.time, end.time, data.consumed.in.MB, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec
2026-11-17 13:27:17:500, 2026-11-17 13:27:18:250, 503.9234, 750, 671.8979, 701234.6667
"""


def test_the_rate_of_a_reader_is_its_own_without_the_time_to_join():
    assert rate_read(*READ.splitlines()) == 701234.6667


#: In a process of its own: what is left of a JVM that has ended disturbs other tests.
CALLS = """
from bench import perf_tools
nothing = "--bootstrap-server", "127.0.0.1:1", "--topic", "t", "--num-records", 0
process = perf_tools.jvm()[-1]
for _ in range(2):
    print(perf_tools.call(perf_tools.CONSUMER, *nothing))
assert perf_tools.jvm()[-1] is process
perf_tools.call(perf_tools.PRODUCER, "--topic", "t")
"""


def test_a_tool_is_called_again_in_the_same_jvm_and_says_what_is_wrong():
    if reason := nodes.java_missing():
        pytest.skip(reason)
    done = subprocess.run([sys.executable, "-c", CALLS], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.count("fetch.nMsg.sec") == 2
    assert done.returncode == 1
    assert "error: argument" in done.stderr


def test_short_cases_are_run_in_turn():
    assert list(in_turn(["ours", "theirs"], 2)) == ["ours", "theirs", "theirs", "ours"]
