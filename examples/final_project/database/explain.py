"""What the indexes are worth: each query's plan without its index and with it, as Markdown.

    python -m examples.final_project.database.explain

A server of its own, the migrations, rows made by number, and EXPLAIN (ANALYZE, BUFFERS). Pages
read are the figure to compare; milliseconds are those of the machine.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import Connection

from examples.final_project.database.migrate import migrate
from examples.final_project.database.server import LocalServer

ROWS = 400_000

FILL = f"""
SELECT flights.ensure_telemetry_day(date '2030-01-01' + d) FROM generate_series(0, 4) AS d;
INSERT INTO flights.telemetry
SELECT 'F-' || n % 200, timestamptz '2030-01-01 00:00Z' + n * interval '1 second',
       n, n % 7700, 50, 2400
FROM generate_series(0, {ROWS - 1}) AS n;
INSERT INTO flights.anomaly
SELECT 'F-' || n, timestamptz '2030-01-01 00:00Z' + n * interval '1 second', 'hot', '', n % 200 > 0
FROM generate_series(0, 99999) AS n;
INSERT INTO flights.flight
SELECT 'F-' || n, 'Kondor', 'Kourou 1', 'Ada Brandt',
       timestamptz '2030-01-01 00:00Z' + n * interval '20 s',
       CASE WHEN n % 500 = 0 THEN 'ascent' ELSE 'landed' END, now()
FROM generate_series(0, 99999) AS n;
"""


@dataclass(frozen=True, slots=True)
class Case:
    """A query, and the index that is there for it."""

    what: str
    index: str
    query: str


CASES = (
    Case(
        "all flights in ten minutes",
        "telemetry_measured_at",
        "SELECT max(engine_celsius) FROM flights.telemetry WHERE measured_at >= "
        "'2030-01-02 12:00Z' AND measured_at < '2030-01-02 12:10Z'",
    ),
    Case(
        "the newest open anomalies",
        "anomaly_open",
        "SELECT * FROM flights.anomaly WHERE NOT resolved ORDER BY measured_at DESC LIMIT 20",
    ),
    Case(
        "the board of those in ascent",
        "flight_status",
        "SELECT flight, rocket, pad FROM flights.flight WHERE status = 'ascent' "
        "ORDER BY launch DESC LIMIT 50",
    ),
)


@dataclass(frozen=True, slots=True)
class Plan:
    """How a query was answered: by which scan, how many pages of memory it read, how long."""

    scan: str
    index: str
    pages: int
    ms: float

    def __str__(self) -> str:
        return f"{self.scan} {self.index} | {self.pages:,} | {self.ms:.2f}"


def fill(connection: Connection) -> None:
    """Make the rows, and statistics from all of them, so that the plans are the same each time."""
    connection.execute(FILL.encode())
    connection.execute("SET default_statistics_target = 400")
    connection.execute("VACUUM ANALYZE")


def plan(connection: Connection, query: str) -> Plan:
    """Return how a query is answered when all pages are in memory."""
    explained = b"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + query.encode()
    connection.execute(explained)
    answer = connection.execute(explained).fetchone()
    assert answer is not None
    root: dict[str, Any] = answer[0][0]
    top = root["Plan"]
    pages = top["Shared Hit Blocks"] + top["Shared Read Blocks"]
    scan = _scan(top)
    return Plan(scan["Node Type"], scan.get("Index Name", ""), pages, root["Execution Time"])


def _scan(node: dict[str, Any]) -> dict[str, Any]:
    below = node.get("Plans", [])
    return _scan(below[0]) if below else node


def compared(connection: Connection) -> Iterator[tuple[Case, Plan, Plan]]:
    """Yield each query's plan without its index and with it; the index stays."""
    for case in CASES:
        after = plan(connection, case.query)
        with connection.transaction(force_rollback=True):
            connection.execute(b"DROP INDEX flights." + case.index.encode())
            before = plan(connection, case.query)
        yield case, before, after


def main() -> None:
    """Print the comparison as a table."""
    lines = [
        "| query | without | pages | ms | with | pages | ms |",
        "|---|---|---|---|---|---|---|",
    ]
    with LocalServer() as server:
        migrate(server.url())
        with psycopg.connect(server.url(), autocommit=True) as connection:
            fill(connection)
            for case, before, after in compared(connection):
                lines.append(f"| {case.what} | {before} | {after} |")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
