"""Brings a database to the state that the files in `migrations/` describe.

They are run in the order of their names, each in a transaction together with the note that it
was, so a crash leaves a file done or not begun. Whoever comes second waits. A file that has been
run is never changed: its checksum is in the note, and another one is refused.
"""

import hashlib
from pathlib import Path

import psycopg
from psycopg import Connection

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
