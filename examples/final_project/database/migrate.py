"""Brings a database to the state that the files in `migrations/` describe.

    python -m examples.final_project.database.migrate URL [--leave-settings]

They are run in the order of their names, each in a transaction together with the note that it
was, so a crash leaves a file done or not begun. Whoever comes second waits. A file that has been
run is never changed: its checksum is in the note, and another one is refused. As a program it sets
the server's settings too (`settings.py`), and says which of them wait for a restart.
"""

import argparse
import hashlib
import sys
from pathlib import Path

import psycopg
from psycopg import Connection

from examples.final_project.database.settings import settle

DIRECTORY = Path(__file__).with_name("migrations")
#: The advisory lock of those who migrate.
LOCK = 0x5354524F4D

NOTES = """
CREATE TABLE IF NOT EXISTS public.schema_migration (
    name text PRIMARY KEY,
    checksum text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)
"""


class ChangedError(Exception):
    """A migration is not the one that was run."""


def migrate(url: str, directory: Path = DIRECTORY) -> list[str]:
    """Run the migrations that are missing; return their names."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        connection.execute(NOTES)
        rows = connection.execute("SELECT name, checksum FROM schema_migration").fetchall()
        done: dict[str, str] = dict(rows)
        files = sorted(directory.glob("*.sql"))
        if missing := sorted(set(done) - {file.stem for file in files}):
            raise ChangedError(f"the database has migrations that are not here: {missing}")
        return [file.stem for file in files if _applied(connection, file, done.get(file.stem))]


def _applied(connection: Connection, file: Path, known: str | None) -> bool:
    text = file.read_bytes()
    checksum = hashlib.sha256(text).hexdigest()
    if known == checksum:
        return False
    if known is not None:
        raise ChangedError(f"{file.name} was changed after it was run; write a new one instead")
    with connection.transaction():
        connection.execute(text)
        connection.execute(
            "INSERT INTO schema_migration (name, checksum) VALUES (%s, %s)", [file.stem, checksum]
        )
    return True


def main() -> None:
    """Migrate the database of an address, set its server's settings, and tell what was done."""
    parser = argparse.ArgumentParser(description="Migrate a database, and set its server up.")
    parser.add_argument("url", help="postgresql://...")
    parser.add_argument(
        "--leave-settings", action="store_true", help="for a server that others use too"
    )
    options = parser.parse_args()
    lines = [f"migrations run: {_listed(migrate(options.url))}"]
    if not options.leave_settings:
        settled = settle(options.url)
        lines += [
            f"settings in force: {_listed(settled.in_force)}",
            f"settings in force after a restart of the server: {_listed(settled.after_restart)}",
            f"settings that this user may not set: {_listed(settled.refused)}",
        ]
    sys.stdout.write("\n".join(lines) + "\n")


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "none"


if __name__ == "__main__":
    main()
