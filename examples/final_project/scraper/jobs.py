"""What is fetched, when, and what is read from it: the scraper's settings, as code."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from math import isfinite

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
class Metrics:
    """Which families of a /metrics page become facts, by the beginning of their names."""

    prefixes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Job:
    """One page, to one topic."""

    name: str
    url: str
    topic: str
    reads: Table | Metrics
    when: Every | Cron


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


BOARD = Table(
    "flights",
    {
        "flight": ("flight", text),
        "rocket": ("rocket", text),
        "pad": ("pad", text),
        "commander": ("commander", text),
        "launch": ("launch", time),
        "status": ("status", text),
        "since": ("since", time),
    },
    key="flight",
    identity=("flight",),
    at="since",
)
TELEMETRY = Table(
    "telemetry",
    {
        "flight": ("flight", text),
        "time": ("time", time),
        "altitude m": ("altitude_m", number),
        "speed m/s": ("speed_ms", number),
        "fuel %": ("fuel_percent", number),
        "engine °C": ("engine_celsius", number),
    },
    key="flight",
    identity=("flight", "time"),
    at="time",
)
ROCKETS = Table(
    "rockets",
    {
        "rocket": ("rocket", text),
        "maker": ("maker", text),
        "stages": ("stages", int),
        "payload kg": ("payload_kg", int),
    },
    key="rocket",
    identity=("rocket",),
)
ASTRONAUTS = Table(
    "astronauts",
    {"astronaut": ("astronaut", text), "nation": ("nation", text), "born": ("born", int)},
    key="astronaut",
    identity=("astronaut",),
)


def of_site(address: str) -> list[Job]:
    """Return the jobs for the site at an address."""
    return [
        Job("flights", f"{address}/flights", "flights", BOARD, Every(5)),
        Job("telemetry", f"{address}/telemetry", "telemetry", TELEMETRY, Every(2)),
        Job("rockets", f"{address}/rockets", "rockets", ROCKETS, Cron("* * * * *")),
        Job("astronauts", f"{address}/astronauts", "astronauts", ASTRONAUTS, Cron("* * * * *")),
    ]


def of_broker(name: str, metrics_url: str) -> Job:
    """Return the job for a broker's own metrics."""
    return Job(name, metrics_url, "broker-metrics", Metrics(("strom_", "kafka_")), Every(5))
