"""The queries as a process that runs until it is told to end.

    python -m examples.final_project.processing BOOTSTRAP DATABASE-URL DIRECTORY

It says "ready" once they run, then a line per micro-batch with what it took. Ended at any moment
and started again with the same directory, it goes on where it was.
"""

import os
import sys
from pathlib import Path

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from examples.final_project.processing.pipeline import Pipeline
from strom.spark.session import open_session


class Told(StreamingQueryListener):
    """Prints what the queries do."""

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Say nothing: the process says when it is ready."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """Say what a micro-batch read and how long it took."""
        done = event.progress
        if done.numInputRows:
            print(f"{done.name} {done.numInputRows} rows {done.batchDuration} ms", flush=True)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        """Say nothing: there was nothing to do."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """Say that a query ended."""
        print(f"ended: {event.exception or 'as asked'}", flush=True)


def main() -> None:
    """Run until one of the queries ends."""
    bootstrap, database, directory = sys.argv[1:]
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.local.dir": str(Path(directory, "local")),
        "spark.sql.warehouse.dir": str(Path(directory, "warehouse")),
    }
    spark = open_session("final project", "local[2]", settings=settings)
    spark.sparkContext.setLogLevel("ERROR")
    spark.streams.addListener(Told())
    Pipeline(spark, bootstrap, database, Path(directory, "checkpoints")).start()
    print("ready", flush=True)
    spark.streams.awaitAnyTermination()


if __name__ == "__main__":
    main()
