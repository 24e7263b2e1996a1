"""How far a pipeline is, as its run shows it: lines, JSON, a table with a bar."""

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from strom.cli import pipeline_screen
from strom.cli.pipeline_screen import BAR_WIDTH, bar, json_lines, line, plain_lines, size, table
from strom.pipelines.progress import SinkProgress
from strom.pipelines.status import FAILED, RUNNING, STARTING, STOPPED, Status

SINK = SinkProgress(
    "archive",
    "rides.archive",
    rows=3000,
    rows_per_second=1234.5,
    lag=1000,
    latency_ms=250,
    state_rows=12,
    state_bytes=2048,
    late_rows=3,
    batch=4,
)
STATUS = Status("rides", "/rides.py", RUNNING, False, 1, 1, 2, None, (SINK,))


def drawn(status):
    """The table as it is on a terminal of some width."""
    console = Console(file=io.StringIO(), record=True, width=160)
    console.print(table(status))
    return console.export_text()


@pytest.mark.parametrize(("done", "full"), [(0.0, 0), (0.5, 12), (1.0, BAR_WIDTH)])
def test_a_bar_is_filled_as_far_as_all_is_read(done, full):
    shown = bar(done)
    assert shown == "█" * full + "░" * (BAR_WIDTH - full) + f" {done:4.0%}"


def test_there_is_no_bar_while_nobody_knows_how_far_it_is():
    assert bar(None) == ""


def test_a_line_has_rows_rate_lag_state_and_latency():
    assert line(SINK) == (
        "  archive: 3,000 rows, 1,234 rows/s, lag 1,000, state 12 rows (2.0 KB), batch 4 in 250 ms"
    )


def test_a_line_tells_of_bad_records_and_of_a_lag_that_is_not_known():
    told = line(replace(SINK, bad_rows=2, lag=None))
    assert "3,000 rows, 2 bad, " in told
    assert "lag ?, " in told


def test_a_change_of_state_is_a_line_at_once_and_progress_is_one_now_and_then(capsys):
    with plain_lines() as show:
        show(replace(STATUS, state=STARTING, sinks=()))
        show(STATUS)
        show(replace(STATUS, sinks=(replace(SINK, rows=4000),)))
        show(replace(STATUS, state=STOPPED))
    assert capsys.readouterr().out.splitlines() == [
        "rides  starting",
        "rides  running",
        line(SINK),
        "rides  stopped",
        line(SINK),
    ]


def test_progress_is_told_again_when_it_is_time(capsys, monkeypatch):
    monkeypatch.setattr(pipeline_screen, "LINE_SECONDS", 0.0)
    later = replace(SINK, rows=4000)
    with plain_lines() as show:
        show(STATUS)
        show(replace(STATUS, sinks=(later,)))
    assert capsys.readouterr().out.splitlines() == ["rides  running", line(SINK), line(later)]


def test_a_sink_without_a_micro_batch_has_no_line_yet(capsys):
    with plain_lines() as show:
        show(replace(STATUS, sinks=(SinkProgress("archive", "rides.archive"),)))
    assert capsys.readouterr().out == "rides  running\n"


def test_json_is_a_line_for_each_change(capsys):
    with json_lines() as show:
        show(STATUS)
        show(STATUS)
        show(replace(STATUS, state=STOPPED))
    first, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["state"], last["state"]) == (RUNNING, STOPPED)
    assert Status.read(first) == STATUS


def test_the_table_has_each_number_and_a_bar_for_a_sink_that_catches_up():
    new = SinkProgress("copies", "rides.copies")
    shown = drawn(replace(STATUS, sinks=(SINK, new))).splitlines()
    rows = [row.strip("│").split("│") for row in shown if "│" in row]
    head, archive, copies = ([cell.strip() for cell in row] for row in rows)
    assert shown[0].strip() == "rides  running"
    assert dict(zip(head, archive, strict=True)) == {
        "Sink": "archive",
        "Rows": "3,000",
        "Rows/s": "1,234",
        "Lag": "1,000",
        "State rows": "12",
        "State": "2.0 KB",
        "Batch": "250 ms",
        "Late": "3",
        "Bad": "0",
        "Caught up": bar(0.75),
    }
    assert copies == ["copies", "0", "0", "-", "0", "0 B", "-", "0", "0", ""]


def test_the_table_ends_with_what_went_wrong():
    failed = drawn(replace(STATUS, state=FAILED, error="long_rides: [DIVIDE_BY_ZERO]"))
    assert "long_rides: [DIVIDE_BY_ZERO]" in failed
    assert "DIVIDE_BY_ZERO" not in drawn(replace(STATUS, error="long_rides: [DIVIDE_BY_ZERO]"))


@pytest.mark.parametrize(
    ("count", "told"), [(1023, "1023 B"), (1024, "1.0 KB"), (3 << 40, "3.0 TB")]
)
def test_a_size_has_the_unit_that_fits(count, told):
    assert size(count) == told
