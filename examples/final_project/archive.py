"""Days that leave the database stay as Parquet, one directory per day, read by DuckDB.

A day is written beside its place and then renamed, and it is only there when its count is the
database's. So a crash leaves no half of a day, and a day can be archived again.
"""

import shutil
from datetime import date
from pathlib import Path

import duckdb
import psycopg

COLUMNS = {
    "flight": "VARCHAR",
    "measured_at": "TIMESTAMPTZ",
    "altitude_m": "DOUBLE",
    "speed_ms": "DOUBLE",
    "fuel_percent": "FLOAT",
    "engine_celsius": "FLOAT",
}
#: Ordered by flight, a reader of one flight skips most row groups by their statistics.
DAY = b"""
COPY (
    SELECT flight, measured_at, altitude_m, speed_ms, fuel_percent, engine_celsius
    FROM flights.telemetry
    WHERE measured_at >= %(day)s::timestamp AT TIME ZONE 'UTC'
      AND measured_at < (%(day)s + 1)::timestamp AT TIME ZONE 'UTC'
    ORDER BY flight, measured_at
) TO STDOUT (FORMAT csv)
"""


def archive_day(url: str, day: date, directory: Path) -> int:
    """Write a day's measurements to the archive; return how many."""
    place = directory / f"day={day.isoformat()}"
    made = directory / f".{place.name}"
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    rows = _export(url, day, made / "rows.csv")
    written = _as_parquet(made / "rows.csv", made / "telemetry.parquet")
    if written != rows:
        raise RuntimeError(f"{day}: {rows} rows in the database, {written} in the archive")
    (made / "rows.csv").unlink()
    shutil.rmtree(place, ignore_errors=True)
    made.rename(place)
    return rows


def hottest(directory: Path) -> list[tuple[str, float]]:
    """Return each archived flight's hottest engine, the hottest first."""
    query = (
        "SELECT flight, max(engine_celsius) FROM read_parquet(?, hive_partitioning = true) "
        "GROUP BY flight ORDER BY 2 DESC, 1"
    )
    with duckdb.connect() as connection:
        files = str(directory / "day=*" / "*.parquet")
        return connection.execute(query, [files]).fetchall()


def _export(url: str, day: date, file: Path) -> int:
    with (
        psycopg.connect(url) as connection,
        connection.cursor() as cursor,
        file.open("wb") as out,
    ):
        with cursor.copy(DAY, {"day": day}) as copy:
            for part in copy:
                out.write(part)
        return cursor.rowcount


def _as_parquet(rows: Path, file: Path) -> int:
    columns = ", ".join(f"'{name}': '{kind}'" for name, kind in COLUMNS.items())
    source = f"read_csv('{rows}', header = false, columns = {{{columns}}})"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (FROM {source}) TO '{file}' (FORMAT parquet, COMPRESSION zstd)")
        counted = connection.execute("SELECT count(*) FROM read_parquet(?)", [str(file)]).fetchone()
    assert counted is not None
    return int(counted[0])
