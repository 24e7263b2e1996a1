"""The directory of a deployment: what is where in it.

project.toml   the operator's settings
secrets/       what nobody else may read
etc/           what the programs are told, made from the settings and the files beside the code
current        the release that runs, in releases/
data/          topics, database, checkpoints, archive
logs/ run/     logs; sockets, locks, and what each part says of itself
backups/
"""

import os
from pathlib import Path
from typing import NamedTuple

DIRECTORY = "PROJECT_DIR"
DEFAULT = ".project"
#: The path of a socket has 107 bytes at most, and the longest of ours has 43 behind the directory.
PATH_BYTES_MAX = 64


class PlaceError(Exception):
    """The directory cannot be used; the text is one line that says why."""


class Place(NamedTuple):
    """A directory, and what is in it."""

    directory: Path

    @property
    def settings(self) -> Path:
        """The operator's settings."""
        return self.directory / "project.toml"

    @property
    def secrets(self) -> Path:
        """What nobody else may read."""
        return self.directory / "secrets"

    @property
    def etc(self) -> Path:
        """What the programs are told."""
        return self.directory / "etc"

    @property
    def data(self) -> Path:
        """All that must not be lost."""
        return self.directory / "data"

    @property
    def broker(self) -> Path:
        """The broker's log directory."""
        return self.data / "broker"

    @property
    def database(self) -> Path:
        """PostgreSQL's files; its socket is there too."""
        return self.data / "database"

    @property
    def checkpoints(self) -> Path:
        """How far Spark's queries are."""
        return self.data / "checkpoints"

    @property
    def archive(self) -> Path:
        """Days that have left the database."""
        return self.data / "archive"

    @property
    def logs(self) -> Path:
        """What the parts say."""
        return self.directory / "logs"

    @property
    def run(self) -> Path:
        """What is there while something runs."""
        return self.directory / "run"

    @property
    def password(self) -> Path:
        """The password of the database's owner, as libpq reads it from a file."""
        return self.secrets / "pgpass"

    @property
    def launches_token(self) -> Path:
        """The token for the launch calendar; it works without, at a slower pace."""
        return self.secrets / "launches-token"

    @property
    def backups(self) -> Path:
        """Backups, one directory each."""
        return self.directory / "backups"

    @property
    def releases(self) -> Path:
        """The code that runs, and that ran before."""
        return self.directory / "releases"

    @property
    def current(self) -> Path:
        """The release that runs."""
        return self.directory / "current"


def place_at(given: str | None) -> Place:
    """Return the place of a directory: the given one, or that of the environment."""
    directory = Path(given or os.environ.get(DIRECTORY) or DEFAULT).absolute()
    if len(os.fsencode(directory)) > PATH_BYTES_MAX:
        raise PlaceError(
            f"{directory}: longer than {PATH_BYTES_MAX} bytes, and sockets are in it; "
            f"name a shorter one by {DIRECTORY}"
        )
    if "'" in str(directory) or not str(directory).isprintable():
        raise PlaceError(f"{str(directory)!r}: such names cannot be told to all programs")
    if directory.exists() and not directory.is_dir():
        raise PlaceError(f"{directory}: not a directory")
    return Place(directory)
