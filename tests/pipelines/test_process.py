"""`strom pipeline run` as a process of its own: how it ends, and how the next one goes on."""

import json
import os
import signal
import subprocess
import sys

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from strom.pipelines.directory import Directory
from strom.pipelines.loading import load
from strom.pipelines.status import DIED, DONE, RUNNING, STOPPED
from tests import nodes
from tests.spark import starting

pytestmark = [pytest.mark.slow, pytest.mark.java]

in_soak = [
    pytest.mark.soak,
    pytest.mark.skipif(
        "STROM_SOAK_SECONDS" not in os.environ, reason="starts Spark twice more: make soak"
    ),
]

#: For a whole run, beside other tests.
PATIENCE_SECONDS = 120
COMMAND = [sys.executable, "-m", "strom", "pipeline"]
FILE = """
from strom.pipelines import Pipeline

pipeline = Pipeline("copies", every="0 seconds", master="local[1]")
pipeline.topic("records", "{source}", json="n int")
pipeline.to_topic("{target}", of="records", key="n")
"""


class Copying:
    """A pipeline that copies a topic, run by the command."""

    def __init__(self, topics, directory):
        self.topics = topics
        self.home = directory / "home"
        self.source, self.target = topics.make(), topics.make()
        self.file = directory / "copies.py"
        self.file.write_text(FILE.format(source=self.source, target=self.target))
        self.process = None

    def start(self, *options):
        """Start the command, in a group of processes of its own as a shell does."""
        where = {
            "STROM_BOOTSTRAP": self.topics.bootstrap,
            "STROM_PIPELINES": str(self.home),
        }
        self.process = subprocess.Popen(
            [*COMMAND, "run", str(self.file), "--json", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=starting.environment(**where),
            start_new_session=True,
        )

    def told_by(self, command):
        """What another command says of the run, in a process of its own."""
        asked = [*COMMAND, command, "copies", "--dir", str(self.home), "--json"]
        told = subprocess.run(asked, check=True, stdout=subprocess.PIPE, text=True).stdout
        return json.loads(told)

    def send(self, numbers):
        self.topics.fill(self.source, [b'{"n": %d}' % n for n in numbers])

    def wait_for_rows(self, rows):
        """Wait until all is read, so many rows."""
        for line in self.process.stdout:
            sinks = json.loads(line)["sinks"]
            if sinks and sinks[0]["rows"] == rows and sinks[0]["lag"] == 0:
                return
        raise AssertionError(self.process.stderr.read())

    def end(self):
        """Wait for the end of all its processes; return the exit code and the last status."""
        told, errors = self.process.communicate(timeout=PATIENCE_SECONDS)
        lines = told.splitlines()
        assert lines, errors
        return self.process.returncode, json.loads(lines[-1])

    def state(self):
        return Directory(self.home, "copies").status().state

    def copied(self, count):
        rows = self.topics.read_once_there(self.target, count)
        return sorted(json.loads(row.value)["n"] for row in rows)


@pytest.fixture
def copying(strom_topics, tmp_path):
    """The pipeline; what is left of it is killed."""
    if reason := nodes.java_missing():
        pytest.skip(reason)
    made = Copying(strom_topics, tmp_path)
    yield made
    if made.process is not None and made.process.poll() is None:
        os.killpg(made.process.pid, signal.SIGKILL)
        made.process.communicate()


def terminate(process):
    process.send_signal(signal.SIGTERM)


def press_ctrl_c(process):
    """A terminal sends it to every process of the group."""
    os.killpg(process.pid, signal.SIGINT)


@pytest.mark.parametrize("stop", [terminate, pytest.param(press_ctrl_c, marks=in_soak)])
def test_str_01_a_signal_ends_a_run_cleanly_and_the_next_goes_on_where_it_was(copying, stop, run):
    copying.send(range(10))
    copying.start()
    copying.wait_for_rows(10)
    stop(copying.process)
    code, last = copying.end()
    assert (code, last["state"], last["error"]) == (0, STOPPED, None)
    assert copying.state() == STOPPED

    copying.send(range(10, 15))
    # In the session that is there: another start of Spark shows nothing more.
    status = run(load(copying.file))
    assert (status.state, status.sinks[0].rows) == (DONE, 5)
    assert copying.copied(15) == list(range(15))


def test_a_run_is_seen_and_stopped_by_other_commands(copying):
    copying.send(range(10))
    copying.start()
    copying.wait_for_rows(10)
    seen = copying.told_by("status")
    assert (seen["state"], seen["pid"], seen["error"]) == (RUNNING, copying.process.pid, None)
    (sink,) = seen["sinks"]
    assert (sink["sink"], sink["rows"], sink["lag"]) == (copying.target, 10, 0)

    stopped = copying.told_by("stop")
    assert (stopped["state"], stopped["pid"], stopped["error"]) == (STOPPED, seen["pid"], None)
    code, last = copying.end()
    assert (code, last) == (0, stopped)
    assert copying.told_by("status") == stopped
    assert copying.copied(10) == list(range(10))


@pytest.mark.soak
@in_soak[1]
def test_a_killed_run_is_told_and_the_next_goes_on_where_it_was(copying):
    copying.send(range(10))
    copying.start()
    copying.wait_for_rows(10)
    copying.process.kill()
    # Spark's own process has the same pipes, and ends a little later.
    copying.process.communicate()
    assert copying.state() == DIED

    copying.send(range(10, 15))
    copying.start("--once")
    code, last = copying.end()
    assert (code, last["state"]) == (0, DONE)
    assert copying.copied(15) == list(range(15))
