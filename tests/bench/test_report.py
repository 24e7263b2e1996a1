"""What the benchmark's page makes of measured numbers."""

from bench.case import Bar, Case, Measure
from bench.cases import rate_when_warm, report_of
from bench.contests import BROKERS, CONNECTORS, contest_of
from bench.report import Row
from bench.results import Results
from bench.stage import thirds


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
    results.begin(case, CONNECTORS.names[:1], {"Strom": "1a2b3c", "machine": "a small one"})

    class Peer:
        name = CONNECTORS.names[1]

    assert not results.wants(case, Peer)
    assert results.of([case]) == []
    assert contest_of(case) is CONNECTORS
    assert contest_of(Case("case", "latency", None, ())) is BROKERS


def test_what_was_measured_elsewhere_or_before_says_so(tmp_path):
    cases = [Case(group, group, None, ()) for group in ("start", "latency", "many")]
    results = Results(tmp_path / "bench.json")
    for case, commit in zip(cases, "abb", strict=True):
        results.begin(case, BROKERS.names, {"Strom": commit, "machine": "one", "Java": "17"})
    results.write()
    later = Results(tmp_path / "bench.json")
    later.read()

    assert later.told("Strom", cases) == "a (start); b (latency, many)"
    assert later.told("machine", cases) == "one"


def test_memory_is_compared_by_thirds():
    assert thirds([1, 2, 3, 50, 60, 70, 7, 8, 9]) == (2, 8)
    assert thirds([5]) == (5, 5)


READ = """\
time, threadId, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec
2026-11-17 13:27:17:500, 0, 0.0010, 0.0003, 1, 0.2711
2026-11-17 13:27:18:000, 0, 80.9574, 161.9129, 600, 169778.0000
2026-11-17 13:27:18:100, 0, 257.8297, 351.6347, 800, 368715.7058
2026-11-17 13:27:18:250, 0, 503.9234, 487.3144, 1400, 510986.1386
"""


def test_a_rate_is_of_what_was_read_when_the_reader_was_warm():
    heads, *lines = READ.splitlines()
    told = report_of(heads, lines)
    assert rate_when_warm(told, 600) == (1400 - 600) / 0.25
    assert rate_when_warm(told, 700) == (1400 - 800) / 0.15
    # Faster than it reports: then of all.
    assert rate_when_warm(told, 1000) == (1400 - 1) / 0.75
