"""The site's pages as HTML, each with one table that has an id.

A page's text depends on the data only, so it is the same until the data changes, and so is the
ETag made from it.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape

from examples.final_project.site import flights

ROBOTS = """\
User-agent: *
Disallow: /private/
Request-rate: 10/1
"""


@dataclass(frozen=True, slots=True)
class Page:
    """A page's text, and when its data last changed."""

    html: str
    changed_ms: int

    @property
    def etag(self) -> str:
        """Return the tag that changes with the text."""
        return f'"{hashlib.blake2b(self.html.encode(), digest_size=12).hexdigest()}"'


def board(seed: int, now_ms: int) -> Page:
    """Return the page with where each flight stands."""
    rows, newest_ms = [], 0
    for each in flights.board(seed, now_ms):
        status, since_ms = flights.status(each, now_ms)
        newest_ms = max(newest_ms, since_ms)
        launch, since = _time(each.launch_ms), _time(since_ms)
        rows.append([each.name, each.rocket, each.pad, each.commander, launch, status, since])
    heads = ["flight", "rocket", "pad", "commander", "launch", "status", "since"]
    return Page(_document("Flights", _table("flights", heads, rows)), newest_ms)


def telemetry(seed: int, now_ms: int) -> Page:
    """Return the page with what the rockets in the air told lately."""
    shown = flights.measurements(seed, now_ms - flights.MEASUREMENTS_SHOWN_MS, now_ms)
    rows = [
        [
            each.flight,
            _time(each.at_ms),
            each.altitude_m,
            each.speed_ms,
            each.fuel_percent,
            each.engine_celsius,
        ]
        for each in shown
    ]
    heads = ["flight", "time", "altitude m", "speed m/s", "fuel %", "engine °C"]
    changed_ms = now_ms - now_ms % flights.MEASURE_EVERY_MS
    return Page(_document("Telemetry", _table("telemetry", heads, rows)), changed_ms)


def rockets(_seed: int, _now_ms: int) -> Page:
    """Return the page with the types of rockets."""
    rows = [[each.name, each.maker, each.stages, each.payload_kg] for each in flights.ROCKETS]
    heads = ["rocket", "maker", "stages", "payload kg"]
    return Page(_document("Rockets", _table("rockets", heads, rows)), 0)


def astronauts(_seed: int, _now_ms: int) -> Page:
    """Return the page with those who fly."""
    rows = [[each.name, each.nation, each.born] for each in flights.ASTRONAUTS]
    return Page(
        _document("Astronauts", _table("astronauts", ["astronaut", "nation", "born"], rows)), 0
    )


PAGES: dict[str, Callable[[int, int], Page]] = {
    "/flights": board,
    "/telemetry": telemetry,
    "/rockets": rockets,
    "/astronauts": astronauts,
}


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="seconds")


def _table(name: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    head = "".join(f"<th>{escape(each)}</th>" for each in heads)
    body = "\n".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f'<table id="{name}">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>'


def _document(title: str, content: str) -> str:
    links = " ".join(f'<a href="{path}">{path[1:]}</a>' for path in PAGES)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{title}</title></head>\n"
        f"<body><nav>{links}</nav>\n<h1>{title}</h1>\n{content}\n</body></html>\n"
    )
