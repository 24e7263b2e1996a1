"""How far a pipeline is, while it runs: a table that is redrawn on a terminal, lines elsewhere."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

from strom.cli.output import console
from strom.pipelines.progress import SinkProgress
from strom.pipelines.status import AT_WORK, Status

if TYPE_CHECKING:
    from rich.table import Table

STATUS_COLUMNS = (
    "Sink",
    "Rows#",
    "Rows/s#",
    "Lag#",
    "State rows#",
    "State#",
    "Batch#",
    "Late#",
    "Bad#",
    "Group",
)
BAR_WIDTH = 24
#: How often a pipe gets a line while there is progress.
LINE_SECONDS = 5.0
KILOBYTE = 1024

Show = Callable[[Status], None]


def screen_for(*, json: bool) -> AbstractContextManager[Show]:
    """Return what shows a run: JSON lines, a live table, or plain lines."""
    if json:
        return json_lines()
    return live_table() if sys.stdout.isatty() else plain_lines()


@contextmanager
def json_lines() -> Iterator[Show]:
    """Print a line of JSON whenever something has changed."""
    last: list[Status] = []

    def show(status: Status) -> None:
        if last != [status]:
            last[:] = [status]
            print(json.dumps(asdict(status), ensure_ascii=False), flush=True)

    yield show


@contextmanager
def plain_lines() -> Iterator[Show]:
    """Print a line for each sink now and then, and at every change of the state."""
    state, due = "", 0.0

    def show(status: Status) -> None:
        nonlocal state, due
        now = time.perf_counter()
        if status.state != state:
            print(f"{status.pipeline}  {status.state}", flush=True)
        elif now < due:
            return
        if status.state != state or now >= due:
            for sink in status.sinks:
                if sink.batch >= 0:
                    print(line(sink), flush=True)
        state, due = status.state, now + LINE_SECONDS

    yield show


@contextmanager
def live_table() -> Iterator[Show]:
    """Draw a table with a bar for each sink that is catching up."""
    from rich.live import Live

    with Live(console=console(), refresh_per_second=5) as live:
        yield lambda status: live.update(table(status))


def line(sink: SinkProgress) -> str:
    """Return the progress of a sink as a line."""
    lag = "?" if sink.lag is None else f"{sink.lag:,}"
    bad = f"{sink.bad_rows:,} bad, " if sink.bad_rows else ""
    return (
        f"  {sink.sink}: {sink.rows:,} rows, {bad}{sink.rows_per_second:,.0f} rows/s, lag {lag}, "
        f"state {sink.state_rows:,} rows ({size(sink.state_bytes)}), "
        f"batch {sink.batch} in {sink.latency_ms} ms"
    )


def status_rows(status: Status) -> list[Sequence[object]]:
    """Return a row for each sink, under STATUS_COLUMNS."""
    return [
        (
            sink.sink,
            f"{sink.rows:,}",
            f"{sink.rows_per_second:,.0f}",
            "-" if sink.lag is None else f"{sink.lag:,}",
            f"{sink.state_rows:,}",
            size(sink.state_bytes),
            "-" if sink.latency_ms is None else f"{sink.latency_ms} ms",
            f"{sink.late_rows:,}",
            f"{sink.bad_rows:,}",
            sink.group,
        )
        for sink in status.sinks
    ]


def table(status: Status) -> "Table":
    """Return the live table."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    shown = Table(title=f"{status.pipeline}  {status.state}", box=box.ROUNDED)
    for column in (*STATUS_COLUMNS[:-1], "Caught up"):
        justify = "right" if column.endswith("#") else "left"
        shown.add_column(column.rstrip("#"), justify=justify)  # type: ignore[arg-type]
    for sink, row in zip(status.sinks, status_rows(status), strict=True):
        shown.add_row(*(Text(str(cell)) for cell in row[:-1]), Text(bar(sink.done)))
    if status.error and status.state not in AT_WORK:
        shown.caption = Text(status.error)
    return shown


def bar(done: float | None) -> str:
    """Return a bar for a part of the whole."""
    if done is None:
        return ""
    full = int(done * BAR_WIDTH)
    return "█" * full + "░" * (BAR_WIDTH - full) + f" {done:4.0%}"


def size(count: int) -> str:
    """Return a number of bytes for people."""
    value = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if value < KILOBYTE:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= KILOBYTE
    return f"{value:.1f} TB"
