"""Spark in processes of its own that start in half the time: from an archive of loaded classes.

    python -m tests.spark.starting

makes the archive, for `tools/set-up spark`. Java takes it only for the same jars at the same paths,
so Spark gets a home that stays: all that is in PySpark's own, but for the zips, which would have
each Python process compile PySpark. Without an archive Spark starts as it always does.
"""

import os
import subprocess
import sys
from pathlib import Path

from tests import nodes

KEPT = Path(__file__).parents[2] / ".setup" / "spark"
HOME = KEPT / "home"
ARCHIVE = KEPT / "classes.jsa"
#: Caps the JIT: a test compiles little that is worth it.
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def java_options():
    """How a JVM of Spark is run that lives for one test."""
    return f"{QUICK} -XX:SharedArchiveFile={ARCHIVE}" if ARCHIVE.exists() else QUICK


def java_home():
    found = subprocess.run(
        [sys.executable, nodes.PEER, "java"], check=True, capture_output=True, text=True
    )
    return found.stdout.strip()


def environment(**more):
    """The environment of a process that starts a driver of Spark, or a part of its cluster."""
    home = {"SPARK_HOME": str(HOME)} if ARCHIVE.exists() else {}
    return {
        **os.environ,
        "JAVA_HOME": java_home(),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SUBMIT_OPTS": java_options(),
        "SPARK_DAEMON_JAVA_OPTS": java_options(),
        **home,
        **more,
    }


def environment_in(directory, **more):
    """The same for who may be killed: what it leaves behind is in the directory.

    Its path is short: sockets are there too.
    """
    options = f"{java_options()} -Djava.io.tmpdir={directory}"
    return environment(**places_in(directory), SPARK_SUBMIT_OPTS=options, **more)


def places_in(directory):
    """Where Spark keeps what it needs while it runs."""
    return dict.fromkeys(("TMPDIR", "SPARK_LOCAL_DIRS", "SPARK_WORKER_DIR"), str(directory))


def make_home():
    """A home of Spark, of links to the one that PySpark brought along."""
    import pyspark

    HOME.mkdir(parents=True, exist_ok=True)
    for entry in Path(pyspark.__file__).parent.iterdir():
        if entry.name != "python":
            (HOME / entry.name).symlink_to(entry)


def run_some():
    """What most tests do: a batch, and a stream with a checkpoint; and end when Java has ended."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = session.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    rows = spark.range(0, 100, 1, 2).selectExpr("id % 3 as key", "cast(id as string) as value")
    rows.groupBy("key").count().toArrow()
    stream = spark.readStream.format("rate").load().writeStream.format("noop")
    query = stream.option("checkpointLocation", str(KEPT / "checkpoint")).start()
    query.processAllAvailable()
    query.stop()
    java = SparkContext._gateway.proc
    spark.stop()
    java.stdin.close()
    java.wait()


def make():
    """Make the archive; a Java that cannot make one makes none."""
    make_home()
    part = KEPT / "part.jsa"
    leaving = f"{QUICK} -XX:ArchiveClassesAtExit={part} -Xlog:cds=off -Xlog:cds+dynamic=off"
    command = [sys.executable, "-c", "from tests.spark import starting; starting.run_some()"]
    env = environment(SPARK_HOME=str(HOME), SPARK_SUBMIT_OPTS=leaving)
    subprocess.run(command, env=env, check=True, stderr=subprocess.DEVNULL)
    if part.exists():
        part.rename(ARCHIVE)


if __name__ == "__main__":
    make()
