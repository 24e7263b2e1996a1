"""The cluster that the command line is tried on, and the command line itself."""

import os
import signal
import subprocess
import sys
import uuid
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, TopicPartition
from typer.testing import CliRunner

from strom.cli.app import app
from tests.patience import is_done, until, until_coordinated


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
def group(on_cluster, bootstrap, topic):
    """A group without members that has read two of ten records of partition 0."""
    name = f"group-{uuid.uuid4()}"
    text = "".join(f"{n}\n" for n in range(10))
    on_cluster("produce", topic, "--partition", "0", text=text)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": name})
    consumer.commit(offsets=[TopicPartition(topic, 0, 2)], asynchronous=False)
    consumer.close()
    return name


def commit(raw, group, topic, offset, *, partition=0, metadata=""):
    """Store any number and any words for a group, as somebody who is no member of it."""
    place = {"partition_index": partition, "committed_offset": offset}
    place |= {"committed_metadata": metadata}
    asked = {"group_id": group, "generation_id_or_member_epoch": -1, "member_id": ""}
    asked |= {"topics": [{"name": topic, "partitions": [place]}]}
    until_coordinated(raw, group)
    until(lambda: raw.ask("offset_commit", 8, asked)["topics"][0]["partitions"][0], is_done)


@pytest.fixture
def process():
    """Start a command as a process of its own; what is left of it is killed."""
    started = []

    def start(*arguments, **keywords):
        with hangups_heard():
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


@contextmanager
def hangups_heard():
    """Start processes that SIGHUP ends, although the tests run under `nohup`.

    A process inherits that a signal is ignored, and Strom then ignores it too.
    """
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)
