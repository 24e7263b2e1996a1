"""Streaming queries into a database that can be held around its commit, to be killed just there.

    python -m tests.spark.crashing_database BOOTSTRAP DATABASE DIRECTORY

Each topic is a query's; its rows go into the database in one of the two ways of the final project.
How it is held is in `tests.spark.crashing`; the phases are of each query:

    <topic>-written    rows (and offsets) are written, the transaction is open
    <topic>-committed  the transaction is committed, Spark does not know
"""

import sys
from pathlib import Path

from examples.final_project.database import sink
from examples.final_project.processing.pipeline import REJECTED
from examples.final_project.processing.writing import offsets, patiently
from strom.spark.session import open_session
from tests.spark.crashing import come_to

#: Offsets in the transaction of the rows; or rows by their keys alone.
WITH_OFFSETS = ("before", "after")
BY_KEY = "upserted"
TOPICS = (*WITH_OFFSETS, BY_KEY)
BATCH_ROWS = 100


class Writing:
    """What a query does with its micro-batches."""

    def __init__(self, database, directory, topic):
        self._database = database
        self._topic = topic
        self.checkpoint = Path(directory) / f"checkpoint-{topic}"

    def __call__(self, records, batch):
        columns = "topic", "partition", "offset", "cast(value as string) as text", "'' as reason"
        rows = {REJECTED: records.selectExpr(*columns).toArrow().to_pylist()}
        patiently(self._database, lambda connection: self._write(connection, batch, rows))

    def _write(self, connection, batch, rows):
        with connection.transaction():
            self._write_rows(connection, batch, rows)
            # A query that has a batch behind it.
            if batch:
                come_to(f"{self._topic}-written")
        if batch:
            come_to(f"{self._topic}-committed")

    def _write_rows(self, connection, batch, rows):
        if self._topic == BY_KEY:
            sink.upsert_all(connection, rows)
        elif not sink.write_once(connection, self._topic, offsets(self.checkpoint, batch), rows):
            come_to(f"{self._topic}-skipped")


def run(bootstrap, database, directory):
    """Write what comes until killed."""
    spark = open_session(
        "crashing",
        "local[2]",
        quick_checkpoints=True,
        settings={"spark.ui.enabled": "false"},
    )
    for topic in TOPICS:
        writing = Writing(database, directory, topic)
        records = (
            spark.readStream.format("strom")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", BATCH_ROWS)
            .load()
        )
        query = records.writeStream.queryName(topic).foreachBatch(writing)
        query = query.option("checkpointLocation", str(writing.checkpoint))
        query.trigger(processingTime="0 seconds").start()
    spark.streams.awaitAnyTermination()


if __name__ == "__main__":
    run(*sys.argv[1:])
