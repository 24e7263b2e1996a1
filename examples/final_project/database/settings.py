"""The server's settings, from `settings.conf`, at a server that is given by its address.

PostgreSQL takes them by ALTER SYSTEM, which no transaction can hold, so they are no migration: they
are set each time, to the same. They are the whole server's, for a server that is the project's own.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psycopg
from psycopg.sql import SQL, Identifier, Literal

FILE = Path(__file__).with_name("settings.conf")

#: What the files say is read anew for this, so it does not matter whether the server has done so.
WAITING = "SELECT name FROM pg_file_settings WHERE error IS NOT NULL AND name = ANY(%s) ORDER BY 1"


class Settled(NamedTuple):
    """What became of the settings, by their names."""

    in_force: list[str]
    #: Set, and in force once the server was started again.
    after_restart: list[str]
    #: The server's operator keeps them to himself, as with most that are rented.
    refused: list[str]


def settings(file: Path = FILE) -> Iterator[tuple[str, str]]:
    """Yield the names and values of a file."""
    for line in file.read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, value = line.partition("=")
            yield name.strip(), value.strip().strip("'")


def settle(url: str, file: Path = FILE) -> Settled:
    """Set what the file says; tell what is in force, what waits for a restart, what was refused."""
    done, refused = [], []
    with psycopg.connect(url, autocommit=True) as connection:
        for name, value in settings(file):
            statement = SQL("ALTER SYSTEM SET {} = {}").format(Identifier(name), Literal(value))
            try:
                connection.execute(statement)
                done.append(name)
            except psycopg.errors.InsufficientPrivilege:
                refused.append(name)
        if not done:
            return Settled([], [], refused)
        waiting = [name for (name,) in connection.execute(WAITING, [done]).fetchall()]
        connection.execute("SELECT pg_reload_conf()")
    return Settled([name for name in done if name not in waiting], waiting, refused)
