"""What a job is: a page, when it is fetched, and how what it says becomes facts.

The jobs themselves are in `sources`, a module for each source.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import Any

from examples.final_project.scraper.facts import Value

Column = Callable[[str], str | int | float]


@dataclass(frozen=True, slots=True)
class Every:
    """Fetch again and again, that many seconds apart."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Cron:
    """Fetch at the times of a crontab line, in UTC."""

    line: str


@dataclass(frozen=True, slots=True)
class Table:
    """How the rows of a page's table become facts.

    `columns` are the site's names, each with our name and its type; `key` and `identity` are ours.
    """

    table: str
    columns: Mapping[str, tuple[str, Column]]
    key: str
    identity: tuple[str, ...]
    #: The column with the time of the event; without one it is the time of the fetch.
    at: str | None = None

    def value(self, row: Mapping[str, str]) -> Value:
        """Return a row in our names and types; ValueError says which cell is wrong."""
        value = {}
        for theirs, (ours, typed) in self.columns.items():
            try:
                value[ours] = typed(row[theirs])
            except ValueError as error:
                raise ValueError(f"type: column '{theirs}': {error}") from error
        return value


@dataclass(frozen=True, slots=True)
class Items:
    """How the objects in a JSON answer become facts, and where the next ones are.

    `columns` are our names, each with the way to it in an object, and its type.
    """

    items: str
    columns: Mapping[str, tuple[tuple[str, ...], Column]]
    key: str
    identity: tuple[str, ...]
    at: str | None = None
    #: What holds the address of the next page; null on the last one.
    following: str | None = None
    pages_max: int = 100

    def value(self, item: Any) -> Value:  # noqa: ANN401 - whatever is in an answer
        """Return an object in our names and types; ValueError says what of it is wrong."""
        value = {}
        for ours, (path, typed) in self.columns.items():
            try:
                value[ours] = typed(_at(item, path))
            except ValueError as error:
                raise ValueError(f"type: field '{'.'.join(path)}': {error}") from error
        return value


@dataclass(frozen=True, slots=True)
class Metrics:
    """Which families of a /metrics page become facts, by the beginning of their names."""

    prefixes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Job:
    """One page, to one topic."""

    name: str
    url: str
    topic: str
    reads: Table | Items | Metrics
    when: Every | Cron
    #: What the source asks for elsewhere than in robots.txt: at most a request in so long a time.
    pace_ms: int = 0
    #: The file with the token that the source gave us, if it wants one.
    token: Path | None = None


def _at(item: Any, path: tuple[str, ...]) -> str:  # noqa: ANN401 - whatever is in an answer
    """Return what is in an object at the end of a way, as text."""
    for name in path:
        item = item.get(name) if isinstance(item, dict) else None
    if isinstance(item, bool) or not isinstance(item, (str, int, float)):
        raise ValueError("neither a text nor a number")  # noqa: TRY004 - a wrong value, not a bug
    return str(item)


def text(cell: str) -> str:
    """Return a text that is not empty."""
    if not cell:
        raise ValueError("it is empty")
    return cell


def number(cell: str) -> float:
    """Return a number; what is none, or without end, is no measurement."""
    value = float(cell)
    if not isfinite(value):
        raise ValueError(f"no number: '{cell}'")
    return value


def time(cell: str) -> str:
    """Return a time with its zone, as it was written."""
    if datetime.fromisoformat(cell).tzinfo is None:
        raise ValueError(f"a time without a zone: '{cell}'")
    return cell
