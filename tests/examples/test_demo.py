"""The demo from start to end, as `make demo` runs it: its parts, its crash, its own judgement."""

import re
import shutil
import socket
import subprocess
import sys

import psycopg
import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from examples.final_project.database.server import LocalServer
from tests import nodes
from tests.spark import starting

pytestmark = [pytest.mark.slow, pytest.mark.java, pytest.mark.timeout(600)]

QUERIES = ["flights", "telemetry", "windows", "metrics"]
KEPT = "It goes on"
PNG = b"\x89PNG\r\n\x1a\n"
APPENDED = re.compile(r"records appended *│ *([\d,]+)")
LAG = re.compile(r"final-project-(\w+) *│ *[\w-]+ *│ *(\S+)")
METRICS = re.compile(r"series of the brokers' metrics[^│]*│ *([\d,]+) │ *([\d,]+) │ the same")
FLIGHTS = re.compile(r"Flights, from the database *\n *Flight +Rocket .*\n(?: *F-\d+ .*\n)+")
PLOT = re.compile(r"The hottest engine in each 10 s, °C\n(?: *[\d,]* *▏[ ▁▂▃▄▅▆▇█]*\n){8}")
#: The time to tell that it goes on; what it waits for has limits of its own.
SECONDS = "1"


@pytest.fixture
def url():
    """A database that is known by its address only, as --database takes it."""
    with LocalServer(settings=None) as server:
        yield server.url()


@pytest.fixture
def demo(url, tmp_path):
    """The demo as a process that stays when it is through, and is asked to end in any case."""
    if reason := nodes.java_missing():
        pytest.skip(reason)
    directory = nodes.new_directory("demo")
    options = ["--seconds", SECONDS, "--plot", tmp_path / "plot.png", "--database", url, "--keep"]
    process = subprocess.Popen(
        [sys.executable, "-m", "examples.final_project.demo", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=starting.environment_in(directory, COLUMNS="160"),
    )
    with process:
        try:
            yield process
        finally:
            process.terminate()
    shutil.rmtree(directory, ignore_errors=True)


def told(demo):
    """What the demo says until it is through, whether it stays or has failed."""
    lines = []
    for line in demo.stdout:
        lines.append(line)
        if KEPT in line:
            break
    return "".join(lines)


def test_prj_01_the_demo_loses_nothing_and_doubles_nothing(demo, url, tmp_path):
    text = told(demo)
    assert "Spark was killed" in text, text
    assert "Nothing was lost and nothing doubled" in text, text
    assert dict(LAG.findall(text)) == dict.fromkeys(QUERIES, "0"), text
    assert all(each.search(text) for each in (APPENDED, METRICS, FLIGHTS, PLOT)), text
    assert (tmp_path / "plot.png").read_bytes().startswith(PNG)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM flights.telemetry").fetchone()[0] > 0
    host, port = re.search(r"A broker serves at (\S+):(\d+)", text).groups()
    socket.create_connection((host, int(port))).close()
    demo.terminate()
    assert demo.wait() == 0, demo.stdout.read()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)))
