"""A streaming query whose exactly-once writes can be held at a point, to be killed just there.

    python -m tests.spark.crashing BOOTSTRAP FROM TO DIRECTORY

The test puts a file `hold-PHASE` into the directory; the first task that comes to that phase makes
`held-PHASE-PID` of it, and goes on when that is gone. What every task came to is in `story`.

    begun      the task is the producer, and its batch is not out yet
    written    rows and marker are written, the transaction is open
    committed  the transaction is committed, Spark does not know
    skipped    the batch was out already
"""

import importlib
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path

from strom.spark.exactly_once import TaskTransaction
from strom.spark.session import open_session
from strom.spark.source import StromSource
from strom.spark.write_options import WriteOptions
from strom.spark.writer import StreamWriter
from strom.spark.writing import task_of_batch
from tests.spark.killing import DIRECTORY

POLL_SECONDS = 0.02
PARTITIONS = 2
BATCH_ROWS = 400


def come_to(phase):
    """Note that this task has come so far; stay here if the test wants it to."""
    directory = Path(os.environ[DIRECTORY])
    with open(directory / "story", "a") as story:
        story.write(f"{phase}\n")
    held = directory / f"held-{phase}-{os.getpid()}"
    with suppress(FileNotFoundError):
        (directory / f"hold-{phase}").rename(held)
    while held.exists():
        threading.Event().wait(POLL_SECONDS)


class HeldTransaction(TaskTransaction):
    """A task's transaction that is held where the test says."""

    def is_written(self):
        found = super().is_written()
        come_to("skipped" if found else "begun")
        return found

    def _end(self, *, committed):
        if committed:
            come_to("written")
        super()._end(committed=committed)
        if committed:
            come_to("committed")


class HeldWriter(StreamWriter):
    def _begin(self):
        return HeldTransaction(self.options, task_of_batch())


class HeldSource(StromSource):
    """Topics, with writes that can be held."""

    @classmethod
    def name(cls):
        return "held"

    def streamWriter(self, schema, overwrite):  # noqa: N802 - Spark's name
        return HeldWriter(WriteOptions.parse(self.options, streaming=True), schema)


def run(bootstrap, source, target, directory):
    """Copy a topic until killed."""
    spark = open_session(
        "crashing",
        # A task may fail as often as it is killed.
        "local[2,1000]",
        quick_checkpoints=True,
        settings={"spark.ui.enabled": "false"},
    )
    spark.dataSource.register(HeldSource)
    rows = (
        spark.readStream.format("held")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", BATCH_ROWS)
        .load()
    )
    (
        rows.select("key", "value")
        .writeStream.format("held")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", target)
        .option("checkpointLocation", f"{directory}/checkpoint")
        .trigger(processingTime="0 seconds")
        .start()
        .awaitTermination()
    )


if __name__ == "__main__":
    # By its name, so that the workers find the classes there.
    importlib.import_module("tests.spark.crashing").run(*sys.argv[1:])
