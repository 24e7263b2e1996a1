"""What the audience sees: two panes on a terminal, plain lines anywhere else.

┌ producer ───────────────┐ ┌ consumer ───────────────────────┐
│ rocket, phase, sensors  │ │ partition 0, 1, 2: latest records│
└─────────────────────────┘ └──────────────────────────────────┘
"""

import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

from strom.cli.demo.flight import ORBIT_KM, Telemetry
from strom.cli.output import console

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

PHASE_STYLES = {
    "Countdown": "yellow",
    "Liftoff": "bold red",
    "Ascent": "magenta",
    "Orbit": "bold cyan",
    "Re-entry": "red",
    "Landed": "bold green",
    "Aborted": "dim",
}
#: Titles of the left pane.
PRODUCER = "producer"
REPLAY = "replay"
LINES_PER_PARTITION = 5
BAR_WIDTH = 14
REFRESHES_PER_SECOND = 12


class Seen(NamedTuple):
    """A record as a reader got it."""

    partition: int
    offset: int
    rocket: str
    telemetry: Telemetry


class Screen(Protocol):
    """Shows a producer and a consumer at work."""

    def sent(self, rocket: str, telemetry: Telemetry) -> None:
        """A rocket sent something."""

    def seen(self, record: Seen) -> None:
        """A reader got something."""

    def refresh(self, footer: str) -> None:
        """Show what is new."""


@contextmanager
def screen(title: str, partitions: int) -> Iterator[Screen]:
    """Open the screen that suits where the output goes; its last picture stays."""
    if not sys.stdout.isatty():
        yield Lines()
        return
    from rich.live import Live

    with Live(console=console(), refresh_per_second=REFRESHES_PER_SECOND) as live:
        panes = Panes(live, title, partitions)
        panes.refresh("")
        yield panes


class Lines:
    """One line for each change of a phase, as it is sent and as it arrives."""

    def __init__(self) -> None:
        self._sent: dict[str, str] = {}
        self._seen: dict[str, str] = {}

    def sent(self, rocket: str, telemetry: Telemetry) -> None:
        """A rocket sent something."""
        if self._sent.get(rocket) != telemetry.phase:
            self._sent[rocket] = telemetry.phase
            print(f"sent      {rocket}  {telemetry.phase}")

    def seen(self, record: Seen) -> None:
        """A reader got something."""
        if self._seen.get(record.rocket) != record.telemetry.phase:
            self._seen[record.rocket] = record.telemetry.phase
            place = f"partition {record.partition} offset {record.offset}"
            print(f"received  {record.rocket}  {record.telemetry.phase:<9}  {place}")

    def refresh(self, footer: str) -> None:
        """Lines are shown at once."""
        sys.stdout.flush()


class Panes:
    """A producer on the left, a consumer with its partitions on the right."""

    def __init__(self, live: "Live", title: str, partitions: int) -> None:
        self._live = live
        self._title = title
        self._rockets: dict[str, Telemetry] = {}
        self._counts: dict[str, int] = {}
        self._partitions: list[deque[Seen]] = [
            deque(maxlen=LINES_PER_PARTITION) for _ in range(partitions)
        ]

    def sent(self, rocket: str, telemetry: Telemetry) -> None:
        """A rocket sent something."""
        self._rockets[rocket] = telemetry
        self._counts[rocket] = self._counts.get(rocket, 0) + 1

    def seen(self, record: Seen) -> None:
        """A reader got something."""
        self._partitions[record.partition].append(record)
        if self._title == REPLAY:
            # Nobody sends: the left side shows what the reader learns about each rocket.
            self.sent(record.rocket, record.telemetry)

    def refresh(self, footer: str) -> None:
        """Draw both panes."""
        self._live.update(self._drawn(footer))

    def _drawn(self, footer: str) -> "RenderableType":
        from rich.console import Group
        from rich.panel import Panel
        from rich.table import Table
        from rich.text import Text

        height = len(self._partitions) * (LINES_PER_PARTITION + 1) + 2
        panes = Table.grid(expand=True)
        panes.add_column(ratio=4)
        panes.add_column(ratio=5)
        panes.add_row(
            Panel(self._producer(), title=self._title, border_style="yellow", height=height),
            Panel(self._consumer(), title="consumer", border_style="cyan", height=height),
        )
        return Group(panes, Text(footer, style="dim"))

    def _producer(self) -> "RenderableType":
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 1), expand=True)
        table.add_column()
        table.add_column(ratio=1)
        for rocket, telemetry in sorted(self._rockets.items()):
            filled = round(BAR_WIDTH * telemetry.altitude_km / ORBIT_KM)
            bar = "█" * filled + "░" * (BAR_WIDTH - filled)
            style = PHASE_STYLES[telemetry.phase]
            table.add_row(Text(rocket, style="bold"), Text(telemetry.phase, style=style))
            numbers = f"{telemetry.altitude_km:6.1f} km {telemetry.speed_kmh:6} km/h"
            table.add_row(Text(f"{self._counts[rocket]:5}"), Text(f"{bar} {numbers}", style=style))
        return table

    def _consumer(self) -> "RenderableType":
        from rich.text import Text

        text = Text(no_wrap=True, overflow="ellipsis")
        for number, records in enumerate(self._partitions):
            text.append(f"partition {number}\n", style="bold")
            for record in records:
                text.append(f"{record.offset:6} ", style="dim")
                text.append(f"{record.rocket} ")
                style = PHASE_STYLES[record.telemetry.phase]
                text.append(f"{record.telemetry.phase:<9}", style=style)
                text.append(f" {record.telemetry.altitude_km:6.1f} km\n")
            text.append("\n" * (LINES_PER_PARTITION - len(records)))
        return text
