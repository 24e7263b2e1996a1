"""The queries as a program.

    python -m examples.final_project.processing [--dir DIR]

The topics are there and the database is migrated before it starts. It says "ready" once the queries
run, then a line per micro-batch with what it took. Ended at any moment and started again with the
same directory, it goes on where it was. Spark's own settings are those of
`conf/spark-defaults.conf`, or of the directory that SPARK_CONF_DIR names.
"""

import os
import shutil
import tempfile
from collections import Counter
from pathlib import Path

import psycopg
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from examples.final_project.database.addresses import WRITER, NoSuchRoleError, acting_as, of_place
from examples.final_project.part import Part, asked_to_end, begin, fail, parser_of
from examples.final_project.processing.pipeline import Pipeline
from strom.spark.session import open_session

CONF = "SPARK_CONF_DIR"
OWN_CONF = Path(__file__).with_name("conf")
LOOK_SECONDS = 1


class Told(StreamingQueryListener):
    """Prints what the queries do; each micro-batch and each look for one is a beat of the pulse."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self._rows: Counter[str] = Counter()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Say nothing: the process says when it is ready."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """Say what a micro-batch read and how long it took."""
        done = event.progress
        if done.numInputRows:
            print(f"{done.name} {done.numInputRows} rows {done.batchDuration} ms", flush=True)
            self._rows[str(done.name)] += done.numInputRows
        self._part.pulse(self._rows)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        """Say nothing: there was nothing to do."""
        self._part.pulse(self._rows)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """Say that a query ended."""
        print(f"ended: {event.exception or 'as asked'}", flush=True)


def main() -> None:
    """Run until asked to end, or until one of the queries ends."""
    options = parser_of("processing", "Spark's queries, from topics to tables.").parse_args()
    part = begin("processing", options.dir)
    asked = asked_to_end()
    try:
        database = acting_as(of_place(part.place, part.settings), WRITER)
    except (psycopg.OperationalError, NoSuchRoleError) as error:
        fail(" ".join(str(error).split()))
    spark = session(part.place.run / "py")
    spark.streams.addListener(Told(part))
    Pipeline(
        spark,
        part.settings.broker.bootstrap,
        database,
        part.place.checkpoints,
        every=_interval(part.settings.processing.every_seconds),
        metrics_every=_interval(part.settings.processing.metrics_every_seconds),
    ).start()
    print("ready", flush=True)
    try:
        while not asked.is_set():
            if spark.streams.awaitAnyTermination(LOOK_SECONDS):
                fail("a query ended")
    except StreamingQueryException as error:
        fail(f"a query failed: {error}")
    end(spark)


def end(spark: SparkSession) -> None:
    """End all queries, each in whatever it does; it goes on there with the next start."""
    # What a query says that is cut off is of no use.
    spark.sparkContext.setLogLevel("OFF")
    for query in spark.streams.active:
        query.stop()
    spark.stop()


def session(directory: Path) -> SparkSession:
    """Return a session with the settings of the file, and with its own files in the directory."""
    # What one that was killed has left there is of no use to anybody.
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    tempfile.tempdir = str(directory)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    conf = Path(os.environ.setdefault(CONF, str(OWN_CONF)))
    own = {
        "spark.local.dir": str(directory / "local"),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
    }
    spark = open_session("final project", _master(conf / "spark-defaults.conf"), settings=own)
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _interval(seconds: float) -> str:
    return f"{round(1000 * seconds)} milliseconds"


def _master(file: Path) -> str | None:
    """Return where the file has Spark run; for a local one Strom adds what makes it fast."""
    if not file.exists():
        return None
    pairs = (line.split(maxsplit=1) for line in file.read_text().splitlines())
    return dict(pair for pair in pairs if len(pair) == 2).get("spark.master")


if __name__ == "__main__":
    main()
