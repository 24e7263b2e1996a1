"""Whether each part works, asked from outside; and whether anything arrives.

A part that serves is asked for something small. One that only works has a pulse: it is well while
that is not old. The flow is what the whole is for: it stands still when nothing new has come to the
database for a while, though each part may be well.
"""

import shutil
import time
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from urllib.error import HTTPError

import psycopg
from confluent_kafka import KafkaException

from examples.final_project.database.addresses import of_place
from examples.final_project.part import lock_file, pulse_file
from examples.final_project.place import Place
from examples.final_project.processing.queries import GROUP
from examples.final_project.scraper import topics
from examples.final_project.settings import Settings

ANSWER_SECONDS_MAX = 5
#: Spark looks for something to read every second; a busy machine may take long for what it found.
PULSE_SECONDS_MAX = 60
#: Its progress is the flow: what is measured goes through the site, the topics and Spark.
FLOW_SINK = f"{GROUP}telemetry"
NEWEST = """
SELECT extract(epoch FROM now() - max(written_at))::float8
FROM flights.sink_progress WHERE sink = %s
"""


class IllError(Exception):
    """Why a part is not well."""


def ailment(name: str, place: Place, settings: Settings) -> str | None:
    """Return why a part is not well, in one line, or None."""
    try:
        CHECKS[name](place, settings)
    except (IllError, OSError, HTTPException, psycopg.Error, KafkaException) as error:
        return " ".join(str(error).split()) or type(error).__name__
    return None


def quiet(place: Place, settings: Settings) -> str | None:
    """Return for how long nothing has arrived, if that is too long, or None."""
    try:
        seconds = _quiet_seconds(place, settings)
    except (OSError, psycopg.Error):
        # The database's own ailment says why.
        return "how long nothing new has come to the database is not known"
    if seconds <= 60 * settings.flow.quiet_minutes:
        return None
    return f"nothing new has come to the database for {seconds / 60:.0f} minutes"


def disk(place: Place, settings: Settings) -> str | None:
    """Return how full the disk of the directory is, if that is too much, or None (MON-04)."""
    total, used, _free = shutil.disk_usage(place.directory)
    percent = 100 * used / total
    if percent <= settings.disk.percent:
        return None
    return f"{percent:.0f} % of the disk is used, more than {settings.disk.percent} %"


def _quiet_seconds(place: Place, settings: Settings) -> float:
    """Return the time since something arrived; while Spark has not run as long, since its start."""
    with psycopg.connect(of_place(place, settings), connect_timeout=ANSWER_SECONDS_MAX) as asked:
        row = asked.execute(NEWEST, [FLOW_SINK]).fetchone()
    running = time.time_ns() / 1e9 - lock_file(place, "processing").stat().st_mtime
    return running if row is None or row[0] is None else min(running, float(row[0]))


def _site(_place: Place, settings: Settings) -> None:
    _fetched(f"{settings.site.url}/robots.txt")


def _broker(_place: Place, settings: Settings) -> None:
    _fetched(f"{settings.broker.http}/healthz")
    topics.client(settings.broker.bootstrap).list_topics(timeout=ANSWER_SECONDS_MAX)


def _database(place: Place, settings: Settings) -> None:
    url = of_place(place, settings)
    with psycopg.connect(url, connect_timeout=ANSWER_SECONDS_MAX) as connection:
        connection.execute("SELECT 1")


def _working(name: str) -> Callable[[Place, Settings], None]:
    def check(place: Place, _settings: Settings) -> None:
        try:
            beat = pulse_file(place, name).stat().st_mtime
            started = lock_file(place, name).stat().st_mtime
        except FileNotFoundError:
            raise IllError("it has not begun to work") from None
        if beat < started:
            raise IllError("it has not begun to work")
        if (seconds := time.time_ns() / 1e9 - beat) > PULSE_SECONDS_MAX:
            raise IllError(f"it has done nothing for {seconds:.0f} s")

    return check


def _fetched(url: str) -> None:
    try:
        with urllib.request.urlopen(url, timeout=ANSWER_SECONDS_MAX) as answer:
            answer.read()
    except HTTPError as error:
        raise IllError(f"{url} says {error.code}") from None


CHECKS: dict[str, Callable[[Place, Settings], None]] = {
    "site": _site,
    "broker": _broker,
    "database": _database,
    "processing": _working("processing"),
    "scraper": _working("scraper"),
    "archive": _working("archive"),
    "watch": _working("watch"),
}
