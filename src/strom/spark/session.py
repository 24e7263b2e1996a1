"""A Spark session with the settings that suit a source and a sink in Python.

    spark = open_session("rides", "local[2]")

Each setting can be overridden, and nothing here needs them: any session reads and writes topics.
"""

import os
import sys
from collections.abc import Mapping

from pyspark.sql import SparkSession

#: The same Python for workers as for the driver; else the first `python3` on the path is taken.
_PYTHON = "PYSPARK_PYTHON"

RECOMMENDED = {
    # Records go between the JVM and its Python workers over sockets of the file system.
    "spark.python.unix.domain.socket.enabled": "true",
    # Else the sizes of what is shuffled decide which task gets a row, and a micro-batch that runs
    # again beside a table that has grown is cut into other tasks: what it had written would not
    # be recognised.
    "spark.sql.adaptive.streaming.stateless.enabled": "false",
}

#: Writes a checkpoint in a few milliseconds instead of fifty. It keeps its promise when processes
#: are killed, on a local disk; whether it does when the machine dies is for who sets it to judge.
QUICK_CHECKPOINTS = {
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming."
    "checkpointing.FileSystemBasedCheckpointFileManager"
}


def open_session(
    name: str,
    master: str | None = None,
    *,
    quick_checkpoints: bool = False,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return a session with the recommended settings, the given ones on top."""
    os.environ.setdefault(_PYTHON, sys.executable)
    chosen = {**RECOMMENDED, **(QUICK_CHECKPOINTS if quick_checkpoints else {}), **(settings or {})}
    builder = SparkSession.builder.appName(name)
    if master is not None:
        builder = builder.master(master)
    for key, value in chosen.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
