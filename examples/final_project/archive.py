"""Days that leave the database stay as Parquet, one directory per day, read by DuckDB.

    python -m examples.final_project.archive URL DIRECTORY DAY [--drop]     one day
    python -m examples.final_project.archive [--dir DIR]    the days that may leave, again and again

What the database has of a day is added to what the archive has of it; of the same measurement the
database's is the newer. So a day can be archived again, also when it has left and something late
came after it. The file is complete, on disk, and has each row that was read before it takes the
place of the one before, and only then does the day leave the database. A crash leaves the old file
or the new one, and the day in one of the two places at least.
"""

import logging
import os
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import duckdb
import psycopg
from psycopg import Connection

from examples.final_project.database.addresses import of_place
from examples.final_project.part import Part, asked_to_end, begin, parser_of

LOOK_SECONDS = 5.0
AGAIN_SECONDS = 60.0

log = logging.getLogger(__name__)

COLUMNS = {
    "flight": "VARCHAR",
    "measured_at": "TIMESTAMPTZ",
    "altitude_m": "DOUBLE",
    "speed_ms": "DOUBLE",
    "fuel_percent": "FLOAT",
    "engine_celsius": "FLOAT",
}
DAY = b"""
COPY (
    SELECT flight, measured_at, altitude_m, speed_ms, fuel_percent, engine_celsius
    FROM flights.telemetry
    WHERE measured_at >= %(day)s::timestamp AT TIME ZONE 'UTC'
      AND measured_at < (%(day)s + 1)::timestamp AT TIME ZONE 'UTC'
) TO STDOUT (FORMAT csv)
"""
#: Who writes waits for the day to leave, who reads does not. By the whole table: a lock on the
#: day's partition alone and one on the table after it would be one half of a deadlock.
HOLD = "LOCK TABLE flights.telemetry IN SHARE ROW EXCLUSIVE MODE"
#: Ordered by flight, a reader of one flight skips most row groups by their statistics.
MERGED = """
COPY (
    FROM fresh UNION ALL (FROM kept ANTI JOIN fresh USING (flight, measured_at))
    ORDER BY flight, measured_at
) TO {file} (FORMAT parquet, COMPRESSION zstd)
"""
#: As PostgreSQL writes rows. DuckDB would guess it from the first of them, and the names of flights
#: further down, with quotes or commas in them, would be others.
CSV = (
    "header = false, auto_detect = false, delim = ',', quote = '\"', escape = '\"', "
    "allow_quoted_nulls = false"
)
ARRIVED = "SELECT count(*) FROM read_parquet(?) SEMI JOIN fresh USING (flight, measured_at)"
FIGURES = (
    "SELECT count(*), count(DISTINCT flight), coalesce(max(engine_celsius), 0)::double precision "
)


class Figures(NamedTuple):
    """What can be compared of measurements, wherever they are."""

    measurements: int
    flights: int
    hottest_celsius: float


def archive_day(url: str, day: date, directory: Path, *, drop: bool = False) -> int:
    """Add a day's measurements to the archive, and let them leave if told; return how many.

    Only the owner of the database can let them leave.
    """
    place = directory / f"day={day.isoformat()}"
    with psycopg.connect(url) as connection:
        if drop:
            connection.execute(HOLD)
        with tempfile.TemporaryDirectory(prefix="strom-archive-") as made:
            rows = _export(connection, day, Path(made, "rows.csv"))
            if rows:
                _merge(Path(made, "rows.csv"), rows, place)
        if drop:
            gone = connection.execute("SELECT flights.drop_telemetry_day(%s)", [day]).fetchone()
            # Unequal, nothing is committed.
            _agree(day, rows, gone)
    return rows


def days(url: str) -> list[date]:
    """Return the days that the database has measurements of."""
    query = "SELECT DISTINCT (measured_at AT TIME ZONE 'UTC')::date FROM flights.telemetry"
    with psycopg.connect(url) as connection:
        return sorted(day for (day,) in connection.execute(query).fetchall())


def hottest(directory: Path) -> list[tuple[str, float]]:
    """Return each archived flight's hottest engine, the hottest first."""
    query = (
        "SELECT flight, max(engine_celsius) FROM read_parquet(?, hive_partitioning = true) "
        "GROUP BY flight ORDER BY 2 DESC, 1"
    )
    with duckdb.connect() as connection:
        return connection.execute(query, [_files(directory)]).fetchall()


def archived(directory: Path) -> Figures:
    """Return the figures of all days in the archive."""
    with duckdb.connect() as connection:
        query = FIGURES + "FROM read_parquet(?)"
        return Figures(*connection.execute(query, [_files(directory)]).fetchall()[0])


def stored(url: str) -> Figures:
    """Return the figures of all days in the database."""
    with psycopg.connect(url) as connection:
        query = FIGURES + "FROM flights.telemetry"
        return Figures(*connection.execute(query.encode()).fetchall()[0])


def _files(directory: Path) -> str:
    return str(directory / "day=*" / "*.parquet")


def _export(connection: Connection, day: date, file: Path) -> int:
    with connection.cursor() as cursor, file.open("wb") as out:
        with cursor.copy(DAY, {"day": day}) as copy:
            for part in copy:
                out.write(part)
        return cursor.rowcount


def _merge(rows: Path, count: int, place: Path) -> None:
    """Put the rows, and those that are in the archive already, in the place of the latter."""
    file, new = place / "telemetry.parquet", place / "telemetry.parquet.new"
    place.mkdir(parents=True, exist_ok=True)
    columns = ", ".join(f"'{name}': '{kind}'" for name, kind in COLUMNS.items())
    fresh = f"read_csv({_quoted(rows)}, {CSV}, columns = {{{columns}}})"
    kept = f"read_parquet({_quoted(file)}, hive_partitioning = false)"
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW fresh AS FROM {fresh}")
        connection.execute(f"CREATE VIEW kept AS FROM {kept if file.exists() else 'fresh LIMIT 0'}")
        connection.execute(MERGED.format(file=_quoted(new)))
        arrived = connection.execute(ARRIVED, [str(new)]).fetchone()
    _agree(place.name, count, arrived)
    _sync(new)
    new.replace(file)
    _sync(place)
    _sync(place.parent)


def _agree(what: object, rows: int, found: tuple[int] | None) -> None:
    if found is None or found[0] != rows:
        raise RuntimeError(f"{what}: {rows} rows were read from the database, now it is {found}")


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def _sync(path: Path) -> None:
    """Return when the file, or the directory's list of files, is on disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def may_leave(url: str, today: date, keep_days: int) -> list[date]:
    """Return the days that are older than those that stay."""
    return [day for day in days(url) if day < today - timedelta(days=keep_days)]


def main() -> None:
    """Archive a day and say how much it was; or each day once it may leave, until asked to end."""
    parser = parser_of("archive", "Days of measurements to the archive, and out of the database.")
    parser.add_argument("url", nargs="?", help="postgresql://..., for one day")
    parser.add_argument("directory", nargs="?", type=Path, help="where the archive is")
    parser.add_argument("day", nargs="?", type=date.fromisoformat, help="in UTC, as 2030-01-31")
    parser.add_argument("--drop", action="store_true", help="let the day leave the database")
    options = parser.parse_args()
    if options.url is None:
        run(begin("archive", options.dir))
    elif options.day is None:
        parser.error("one day needs URL, DIRECTORY and DAY")
    else:
        rows = archive_day(options.url, options.day, options.directory, drop=options.drop)
        left = " and out of the database" if options.drop else ""
        sys.stdout.write(f"{options.day}: {rows:,} measurements in the archive{left}\n")


def run(part: Part) -> None:
    """Let each day leave when it may, until asked to end; a failure is tried again."""
    asked, due, left = asked_to_end(), 0.0, Counter[str]()
    while not asked.is_set():
        if time.perf_counter() >= due:
            due = time.perf_counter() + 60 * part.settings.archive.every_minutes
            try:
                _leave(part, left)
            except (psycopg.Error, duckdb.Error, OSError, RuntimeError) as error:
                left["failures"] += 1
                log.warning("nothing left the database: %s", " ".join(str(error).split()))
                due = time.perf_counter() + AGAIN_SECONDS
        part.pulse(left)
        asked.wait(LOOK_SECONDS)


def _leave(part: Part, left: Counter[str]) -> None:
    url = of_place(part.place, part.settings)
    for day in may_leave(url, datetime.now(UTC).date(), part.settings.archive.keep_days):
        rows = archive_day(url, day, part.place.archive, drop=True)
        left.update(days=1, measurements=rows)
        log.info("%s: %d measurements in the archive and out of the database", day, rows)


if __name__ == "__main__":
    main()
