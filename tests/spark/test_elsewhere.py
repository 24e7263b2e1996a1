"""STR-11: the same job on a standalone cluster of two workers, and on a server of Spark Connect."""

import os
import shutil
import socket
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests import nodes

pytest.importorskip("pyspark", reason="PySpark is not installed")

import pyspark

from tests.patience import until
from tests.spark import elsewhere, starting

pytestmark = [pytest.mark.slow, pytest.mark.java]

ROOT = Path(__file__).parents[2]
SPARK_HOME = Path(pyspark.__file__).parent
PARTITIONS = 4
PATIENCE_SECONDS = 120
JOB_SECONDS_MAX = 240
POLL_SECONDS = 0.1
LOG_SHOWN = 5000


class Processes:
    """Processes of Spark, with their logs; all of them end with the test."""

    def __init__(self, directory):
        self.directory = directory
        self._started = []
        self._environment = {
            "SPARK_HOME": str(SPARK_HOME),
            **starting.environment_in(
                directory,
                PYSPARK_PYTHON=sys.executable,
                PYTHONPATH=os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
            ),
        }

    def start(self, *command):
        with open(self.directory / "log", "ab") as log:
            started = subprocess.Popen(
                command,
                env=self._environment,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # With all that it starts in turn.
                start_new_session=True,
            )
        self._started.append(started)
        return started

    def start_class(self, name, *arguments):
        return self.start_script("spark-class", name, *arguments)

    def start_script(self, name, *arguments):
        return self.start(Path(self._environment["SPARK_HOME"], "bin", name), *arguments)

    def log(self):
        return (self.directory / "log").read_text()[-LOG_SHOWN:]

    def wait_for_port(self, port, process):
        def is_open():
            with suppress(OSError), closing(socket.create_connection(("127.0.0.1", port), 1)):
                return True
            assert process.poll() is None, self.log()
            return False

        until(is_open, told=self.log, seconds=PATIENCE_SECONDS)

    def remove(self):
        """Kill whatever is there still, in the sessions that were begun here."""
        sessions = {each.pid for each in self._started}
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if int((path / "stat").read_text().rpartition(") ")[2].split()[3]) in sessions:
                    os.kill(int(path.name), 9)
        for each in self._started:
            each.wait(PATIENCE_SECONDS)
        shutil.rmtree(self.directory, ignore_errors=True)


@pytest.fixture
def processes():
    if reason := nodes.java_missing():
        pytest.skip(reason)
    made = Processes(nodes.new_directory("elsewhere"))
    try:
        yield made
    finally:
        made.remove()


def run_job(url, topics, processes):
    """Run the job; judge it by what another client reads. Return on how many executors it ran."""
    source, target = topics.make(PARTITIONS), topics.make(PARTITIONS)
    arguments = [url, topics.bootstrap, source, target, str(processes.directory)]
    job = processes.start(sys.executable, "-m", "tests.spark.elsewhere", *arguments)
    assert job.wait(JOB_SECONDS_MAX) == 0, processes.log()
    for topic in (source, target):
        found = sorted(int(each.value) for each in topics.read(topic, PARTITIONS))
        assert found == list(range(elsewhere.ROWS))
    count, executors = map(int, (processes.directory / elsewhere.REPORT).read_text().split())
    assert count == elsewhere.ROWS
    return executors


@pytest.mark.timeout(2 * JOB_SECONDS_MAX + PATIENCE_SECONDS)
def test_a_cluster_of_two_workers_reads_and_writes(strom_topics, processes):
    """STR-11, STR-13: a batch each way, and a stream that is written exactly once."""
    port = nodes.free_port()
    at = ["--host", "127.0.0.1", "--webui-port", "0"]
    master = "org.apache.spark.deploy.master.Master"
    worker = "org.apache.spark.deploy.worker.Worker"
    started = processes.start_class(master, *at, "--port", str(port))
    processes.wait_for_port(port, started)
    url = f"spark://127.0.0.1:{port}"
    for _ in range(elsewhere.EXECUTORS):
        processes.start_class(worker, *at, "--cores", "1", "--memory", "512m", url)
    assert run_job(url, strom_topics, processes) == elsewhere.EXECUTORS


@pytest.mark.timeout(2 * JOB_SECONDS_MAX + PATIENCE_SECONDS)
def test_a_server_of_connect_reads_and_writes(strom_topics, processes):
    """STR-02: the client has no JVM, and finds the source where the server runs."""
    pytest.importorskip("grpc", reason="Spark Connect's client is not installed")
    port = nodes.free_port()
    settings = {
        "spark.connect.grpc.binding.port": port,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    server = processes.start_script(
        "spark-submit",
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
        *("--master", "local[2]"),
        *(part for name, value in settings.items() for part in ("--conf", f"{name}={value}")),
        "spark-internal",
    )
    processes.wait_for_port(port, server)
    run_job(f"sc://127.0.0.1:{port}", strom_topics, processes)
