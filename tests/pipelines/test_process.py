"""`strom pipeline run` as a process of its own: what a crash leaves."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from strom.pipelines.directory import Directory
from strom.pipelines.loading import load
from strom.pipelines.status import DIED, DONE
from tests import nodes

pytestmark = [
    pytest.mark.slow,
    pytest.mark.java,
    pytest.mark.soak,
    pytest.mark.skipif(
        "STROM_SOAK_SECONDS" not in os.environ, reason="starts Spark a second time: make soak"
    ),
]

FILE = """
from strom.pipelines import Pipeline

pipeline = Pipeline("copies", every="0 seconds", master="local[1]",
                    spark={{"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}})
pipeline.topic("records", "{topic}", json="n int")
pipeline.to_files("archive", of="records", path="{path}")
"""


@pytest.fixture
def process(strom_topics, tmp_path):
    """Start a pipeline as a process; what is left of it is killed."""
    if reason := nodes.java_missing():
        pytest.skip(reason)
    java = subprocess.run([sys.executable, nodes.PEER, "java"], check=True, capture_output=True)
    environment = {
        **os.environ,
        "JAVA_HOME": java.stdout.decode().strip(),
        "STROM_BOOTSTRAP": strom_topics.bootstrap,
        "STROM_PIPELINES": str(tmp_path / "home"),
    }
    file = tmp_path / "copies.py"
    process = None

    def start(text):
        nonlocal process
        file.write_text(text)
        process = subprocess.Popen(
            [sys.executable, "-m", "strom", "pipeline", "run", str(file), "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        return file, process

    yield start
    if process is not None:
        process.kill()
        process.communicate()


def wait_for_rows(process, rows):
    """Wait until all is read, so many rows."""
    for line in process.stdout:
        sinks = json.loads(line)["sinks"]
        if sinks and sinks[0]["rows"] == rows and sinks[0]["lag"] == 0:
            return
    raise AssertionError(process.stderr.read())


def test_a_killed_run_is_told_and_the_next_goes_on_where_it_was(
    spark, strom_topics, process, run, tmp_path
):
    topic = strom_topics.make()
    strom_topics.fill(topic, [b'{"n": %d}' % n for n in range(10)])
    file, killed = process(FILE.format(topic=topic, path=tmp_path / "out"))
    wait_for_rows(killed, 10)
    killed.kill()
    # Spark's own process has the same pipes, and ends a little later.
    killed.communicate()
    assert Directory(tmp_path / "home", "copies").status().state == DIED

    strom_topics.fill(topic, [b'{"n": %d}' % n for n in range(10, 15)])
    assert run(load(file)).state == DONE
    rows = spark.read.parquet(str(tmp_path / "out")).select("n").collect()
    assert sorted(row.n for row in rows) == list(range(15))
