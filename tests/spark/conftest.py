"""One Spark session and one broker for all tests of Spark's side."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests import nodes
from tests.spark import starting
from tests.spark.topics import Topics


@pytest.fixture(scope="session")
def spark():
    """A session in this process, with workers beside it."""
    if reason := nodes.java_missing():
        pytest.skip(reason)
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    from strom.spark.session import open_session

    os.environ["JAVA_HOME"] = starting.java_home()
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    directory = Path(tempfile.mkdtemp(prefix="strom-spark-"))
    jars = connector_jars()
    session = open_session(
        "tests",
        "local[2]",
        quick_checkpoints=True,
        settings={
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.driver.extraJavaOptions": starting.QUICK,
            "spark.sql.warehouse.dir": str(directory / "warehouse"),
            "spark.local.dir": str(directory / "local"),
            **({"spark.jars": ",".join(jars)} if jars else {}),
        },
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
    shutil.rmtree(directory, ignore_errors=True)


def connector_jars():
    """The jars of Spark's own connector, if they could be had."""
    found = subprocess.run(
        [sys.executable, nodes.PEER, "connector", "--cached"],
        capture_output=True,
        text=True,
        check=False,
    )
    return sorted(map(str, Path(found.stdout.strip()).glob("*.jar"))) if found.stdout else []


@pytest.fixture(scope="session")
def strom_topics():
    """Topics at a Strom process."""
    process = nodes.StromProcess(nodes.new_directory("spark"))
    try:
        yield Topics(process.start().bootstrap)
        assert process.process.poll() is None, process.log()
    finally:
        process.remove()


@pytest.fixture(scope="session")
def kafka_topics(kafka):
    """Topics at Apache Kafka."""
    return Topics(kafka.bootstrap)


@pytest.fixture
def topic(topics):
    """A topic of one partition."""
    return topics.make()
