"""The broker for tests: quick, alone, and gone without a trace."""

import asyncio
import gc
import logging
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from urllib.request import urlopen

import pytest

from strom.broker.host import Host
from strom.broker.startup import StartupError
from strom.testing.broker import LocalBroker
from strom.testing.clock import FakeClock

#: ApiVersions version 0, correlation id 1, without a client id.
API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)
CLOSED_SECONDS_MAX = 60


def connect(broker):
    """Return a connection that the broker has answered on."""
    host, port = broker.bootstrap.split(":")
    client = socket.create_connection((host, int(port)), timeout=CLOSED_SECONDS_MAX)
    client.sendall(API_VERSIONS)
    assert client.recv(1 << 16)
    return client


def left_behind():
    """Return what a broker could leave in its process."""
    descriptors = {}
    for number in os.listdir("/proc/self/fd"):
        try:
            descriptors[number] = os.readlink(f"/proc/self/fd/{number}")
        except FileNotFoundError:
            # The one that the listing itself needed.
            continue
    return descriptors, {thread.name for thread in threading.enumerate()}


def process_state():
    """Return what belongs to the process and not to a library in it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        policy = asyncio.get_event_loop_policy()
    return {
        "signals": {each: signal.getsignal(each) for each in signal.Signals},
        "root logger": (logging.root.level, list(logging.root.handlers)),
        "garbage": (gc.isenabled(), gc.get_threshold()),
        "loop policy": policy,
        "directory": Path.cwd(),
        "environment": dict(os.environ),
    }


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Where temporary directories are made during the test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def alone(check, directory):
    """Make the check in a process of its own: here the clients of other tests come and go."""
    code = f"from tests.testing import test_broker; test_broker.{check.__name__}()"
    environment = {**os.environ, "TMPDIR": str(directory)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert list(directory.iterdir()) == []


def check_one_that_serves():
    with LocalBroker() as broker, connect(broker):
        pass
    before = left_behind()
    with LocalBroker({"strom.http.port": "0"}) as broker, connect(broker):
        urlopen(broker.metrics_url).close()
    assert left_behind() == before, (left_behind(), before)


def check_one_that_does_not_start():
    before = threading.active_count()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = {"listeners": f"PLAINTEXT://127.0.0.1:{taken.getsockname()[1]}"}
        with pytest.raises(StartupError, match="cannot listen"), LocalBroker(settings):
            pass
    assert threading.active_count() == before


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc here")
def test_nothing_is_left_behind(tmp_path):
    alone(check_one_that_serves, tmp_path)


def test_nothing_is_left_behind_by_one_that_does_not_start(tmp_path):
    alone(check_one_that_does_not_start, tmp_path)


def test_stopping_one_that_did_not_start_is_no_second_error(temporary):
    broker = LocalBroker({"listeners": "PLAINTEXT://192.0.2.1:0"})
    with pytest.raises(StartupError):
        broker.start()
    broker.stop()
    broker.remove()
    assert list(temporary.iterdir()) == []


def test_what_belongs_to_the_process_stays_as_it_is():
    before, frozen = process_state(), gc.get_freeze_count()
    with LocalBroker() as broker, connect(broker):
        assert process_state() == before
        # What others have frozen may go meanwhile.
        assert gc.get_freeze_count() <= frozen
    assert process_state() == before


def test_several_live_side_by_side(strom_brokers):
    one, other = (strom_brokers({"strom.http.port": "0"}) for _ in range(2))
    assert one.bootstrap != other.bootstrap
    assert one.directory != other.directory

    def connections(broker):
        with urlopen(broker.metrics_url) as page:
            lines = page.read().decode().splitlines()
        (line,) = [each for each in lines if each.startswith("kafka_server_socketserver")]
        return float(line.split()[1])

    with connect(one):
        assert (connections(one), connections(other)) == (1.0, 0.0)


def test_one_broker_goes_on_while_another_stops(strom_brokers):
    one, other = strom_brokers(), strom_brokers()
    one.stop()
    connect(other).close()


@pytest.mark.slow
def test_a_client_that_is_idle_too_long_is_sent_away():
    """The clock is moved by hand: ten minutes pass at once."""
    clock = FakeClock()
    with LocalBroker(host=Host(now_ms=clock)) as broker, connect(broker) as client:
        clock.advance(600_001)
        assert client.recv(1) == b""


@pytest.mark.slow
def test_records_go_when_their_week_is_over(on_broker):
    """RET-05, RET-06."""
    clock = FakeClock()
    settings = {"log.retention.check.interval.ms": "20"}
    with LocalBroker(settings, host=Host(now_ms=clock)) as broker:
        producer, consumer, partition = on_broker(broker)
        producer.produce("flugdaten", b"Liftoff")
        assert producer.flush(30) == 0
        clock.advance(days=6)
        assert consumer.get_watermark_offsets(partition) == (0, 1)
        clock.advance(days=2)
        deadline = time.perf_counter() + CLOSED_SECONDS_MAX
        while consumer.get_watermark_offsets(partition) != (1, 1):
            assert time.perf_counter() < deadline


@pytest.fixture
def on_broker():
    """Give clients of a broker, and the partition they use."""
    from confluent_kafka import Consumer, Producer, TopicPartition

    consumers = []

    def make(broker):
        at = {"bootstrap.servers": broker.bootstrap}
        consumers.append(Consumer(at | {"group.id": "none"}))
        return Producer(at), consumers[-1], TopicPartition("flugdaten", 0)

    yield make
    for each in consumers:
        each.close()


def test_a_directory_with_a_comma_is_refused_at_once(tmp_path):
    """`log.dirs` would take it for two, and data would be left in both."""
    with pytest.raises(ValueError, match="no comma in its name"):
        LocalBroker(directory=tmp_path / "a,b")
    assert list(tmp_path.iterdir()) == []
