"""A Spark session with the settings that suit a source and a sink in Python.

    spark = open_session("rides", "local[2]")

Each setting can be overridden, and nothing here needs them: any session reads and writes topics.
"""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

#: The same Python for workers as for the driver; else the first `python3` on the path is taken.
_PYTHON = "PYSPARK_PYTHON"
_WORKERS_PYTHON = "spark.pyspark.python"

#: What workers are forked from.
_DAEMON = "spark.python.daemon.module"
_OWN_DAEMON = "strom.spark.daemon"
_FIND = f"import importlib.util, sys; sys.exit(not importlib.util.find_spec({_OWN_DAEMON!r}))"

#: Where Spark is; without it PySpark takes the one that it came with.
_HOME = "SPARK_HOME"
#: What of a Spark's home its Python processes find their PySpark in.
_ZIPPED = "python"

#: About so much of a frame goes from the JVM to a worker at a time.
HANDED_OVER_BYTES = 2 * 1024 * 1024

RECOMMENDED = {
    # Records go between the JVM and its Python workers over sockets of the file system.
    "spark.python.unix.domain.socket.enabled": "true",
    # Else the sizes of what is shuffled decide which task gets a row, and a micro-batch that runs
    # again beside a table that has grown is cut into other tasks: what it had written would not
    # be recognised.
    "spark.sql.adaptive.streaming.stateless.enabled": "false",
    # By itself Spark hands over 10,000 rows at a time, or 64 MiB. Where rows are large the JVM then
    # takes half as long again to write them, most of that for memory that it grows each time.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(HANDED_OVER_BYTES),
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
    # Workers of another Python may have no PySpark but the zipped one, and no Strom.
    has_pyspark = os.environ[_PYTHON] == sys.executable and _WORKERS_PYTHON not in chosen
    is_local = master is not None and master.startswith("local")
    is_ours = is_local and has_pyspark
    is_found = is_ours and _is_found_by_others()
    if is_found:
        chosen.setdefault(_DAEMON, _OWN_DAEMON)
    builder = SparkSession.builder.appName(name)
    if master is not None:
        builder = builder.master(master)
    for key, value in chosen.items():
        builder = builder.config(key, value)
    with _home_without_zips() if is_ours else nullcontext():
        session = builder.getOrCreate()
    if is_found:
        threading.Thread(target=_introduce, args=(session,), daemon=True).start()
    return session


def _introduce(session: SparkSession) -> None:
    """Have Spark look for `format("strom")`, which takes two Python processes, and a while.

    Nothing is read: a frame that is not used asks only for its columns.
    """
    # The query that needs it says what is wrong; and the session may have been stopped by now.
    with suppress(Exception):
        session.read.format("strom").load()


def _is_found_by_others() -> bool:
    """Return whether another process finds Strom: without its daemon Spark has no workers at all.

    A path that only this process knows of is enough for who reads and writes no topics.
    """
    found = subprocess.run([sys.executable, "-c", _FIND], capture_output=True, check=False)
    return found.returncode == 0


@contextmanager
def _home_without_zips() -> Iterator[None]:
    """Have the workers of a Spark that PySpark brought along load the PySpark that is installed.

    By itself Spark has them load it from a zip, where nothing is kept compiled: each Python process
    then begins by compiling PySpark for a second, and a query starts several. So Spark is given a
    home with all that is in its own, but for the zips.
    """
    if _HOME in os.environ:
        yield
        return
    home = tempfile.mkdtemp(prefix="strom-spark-home-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    for entry in Path(pyspark.__file__).parent.iterdir():
        if entry.name != _ZIPPED:
            Path(home, entry.name).symlink_to(entry)
    os.environ[_HOME] = home
    try:
        yield
    finally:
        del os.environ[_HOME]
