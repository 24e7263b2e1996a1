"""A micro-batch into the database, once, whatever is killed in between.

Spark notes in its checkpoint up to which offsets a micro-batch reads before it runs it; a batch
that was killed is run again with the same ones. They are written in the transaction of the rows. So
a batch that had been written is recognised and left out, and one that had not is written whole.

A database that goes away is waited for, for a minute. Whether the last transaction before that was
committed nobody knows; writing it again finds out.
"""

import json
import logging
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
from psycopg import Connection

from examples.final_project.database.addresses import shown
from examples.final_project.database.sink import Offsets
from strom.spark.places import Progress

ATTEMPTS_MAX = 60
AGAIN_SECONDS = 1.0

log = logging.getLogger(__name__)


class AwayError(Exception):
    """The database was waited for in vain."""


def offsets(checkpoint: Path, batch: int) -> tuple[Offsets, Offsets]:
    """Return where a micro-batch of a query with one source begins and ends."""
    end = _end(checkpoint, batch)
    # The first one says itself where it begins: a checkpoint that is new begins anywhere.
    if end.began is not None:
        return end.began, end.offsets
    return _end(checkpoint, batch - 1).offsets if batch else {}, end.offsets


def _end(checkpoint: Path, batch: int) -> Progress:
    # A version, Spark's own notes, then a line per source.
    _version, _notes, source = (checkpoint / "offsets" / str(batch)).read_text().splitlines()
    return Progress.read(json.loads(source))


def patiently(url: str, write: Callable[[Connection], None]) -> None:
    """Connect and write; again while the database is not there."""
    for attempt in range(1, ATTEMPTS_MAX + 1):
        try:
            with psycopg.connect(url, autocommit=True) as connection:
                return write(connection)
        except psycopg.OperationalError as error:
            if attempt == ATTEMPTS_MAX:
                raise AwayError(
                    f"the database at '{shown(url)}' took nothing in {ATTEMPTS_MAX} attempts: "
                    f"{error}; bring the server back and start again: the micro-batch is repeated, "
                    "nothing is lost and nothing is doubled"
                ) from error
            log.warning("the database is away, once more in %.0f s: %s", AGAIN_SECONDS, error)
            time.sleep(AGAIN_SECONDS)
