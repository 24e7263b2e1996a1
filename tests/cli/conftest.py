"""The cluster that the command line is tried on, and the command line itself."""

import os
import subprocess
import sys
import uuid

import pytest
from typer.testing import CliRunner

from strom.cli.app import app


@pytest.fixture(scope="session")
def bootstrap():
    """Any Kafka: the one that STROM_TEST_BOOTSTRAP names, else a broker of our own."""
    if named := os.environ.get("STROM_TEST_BOOTSTRAP"):
        yield named
        return
    from strom.testing.broker import LocalBroker

    with LocalBroker() as broker:
        yield broker.bootstrap


@pytest.fixture
def strom(monkeypatch):
    """Run a command in this process."""
    monkeypatch.delenv("STROM_BOOTSTRAP", raising=False)
    # Help and errors are drawn as wide as the terminal; the tests read them.
    monkeypatch.setenv("COLUMNS", "200")
    runner = CliRunner()

    def run(*arguments, text=None):
        return runner.invoke(app, list(arguments), input=text, prog_name="strom")

    return run


@pytest.fixture
def on_cluster(strom, bootstrap, monkeypatch):
    """Run a command on the cluster; it must end well unless a test says otherwise."""
    monkeypatch.setenv("STROM_BOOTSTRAP", bootstrap)

    def run(*arguments, text=None, code=0):
        result = strom(*arguments, text=text)
        assert result.exit_code == code, (result.output, result.exception)
        return result

    return run


@pytest.fixture
def topic(on_cluster):
    """A topic of three partitions that is gone afterwards."""
    name = f"cli-{uuid.uuid4()}"
    on_cluster("topic", "create", name, "--partitions", "3")
    yield name
    on_cluster("topic", "delete", name, "--if-exists")


@pytest.fixture
def process():
    """Start a command as a process of its own; what is left of it is killed."""
    started = []

    def start(*arguments, **keywords):
        each = subprocess.Popen(
            [sys.executable, "-m", "strom", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **keywords,
        )
        started.append(each)
        return each

    yield start
    for each in started:
        each.kill()
        each.communicate()
