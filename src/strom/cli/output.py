"""Tables for people, JSON for programs; colour only on a terminal."""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

#: Wide enough that a table is never cut when it goes to a file or a pipe.
PIPE_WIDTH = 1000


def console(*, stderr: bool = False) -> "Console":
    """Return a console that draws for a terminal and writes plainly into a pipe."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, highlight=False, width=None if stream.isatty() else PIPE_WIDTH)


def print_json(value: object) -> None:
    """Print one JSON document."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None
) -> None:
    """Print a table; columns whose name ends in '#' hold numbers."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    on_terminal = sys.stdout.isatty()
    # A name is a text, not markup: a bracket in it must come out as a bracket.
    heading = None if title is None else Text(title)
    table = Table(title=heading, box=box.ROUNDED if on_terminal else None, pad_edge=on_terminal)
    for column in columns:
        justify = "right" if column.endswith("#") else "left"
        table.add_column(column.rstrip("#"), justify=justify, overflow="fold")  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))
    console().print(table)
