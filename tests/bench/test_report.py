"""What the bench tells of measured numbers, and how it loads."""

import subprocess
import sys

import pytest

from bench.case import ROOT, Bar, Case, Measure, in_turn
from bench.perf_tools import rate_read
from bench.report import Row
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
