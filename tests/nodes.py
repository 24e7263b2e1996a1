"""Brokers that run beside the tests: Strom as a process of its own, and Apache Kafka."""

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

PEER = Path(__file__).parent / "peer" / "kafka"
STOP_SECONDS = 60
#: The peer's heap, and a JIT that is done sooner: no test asks how fast it is.
PEER_JAVA = "-Xmx1G -Xms256M -XX:TieredStopAtLevel=1"
#: A tool is there in a second, on a machine that has nothing else to do.
TOOL_SECONDS = 180
LOG_SHOWN = 3000
#: Below what the system gives to those who do not care: a port that is found free stays so, also
#: while its broker is down and clients try to reach it.
PORTS_FROM = int(os.environ.get("STROM_TEST_PORTS_FROM", "20000"))
PORTS = range(PORTS_FROM, PORTS_FROM + 6000)
PORTS_GIVEN = set()
#: The controller of the peer listens so far above its broker.
CONTROLLER_DISTANCE = 101


#: The tests' records are years old, so that answers can be compared; no chore may find them so.
NO_RETENTION = {"log.initial.task.delay.ms": 24 * 60 * 60 * 1000}
#: More replicas of the coordinators' topics than one node cannot have.
ONE_REPLICA = {
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
}


def as_shipped():
    """The environment of a broker's process: with the compiled copy, where `make test` made one.

    So the real processes show what is installed, and the brokers in the tests' own process show
    the same modules uncompiled.
    """
    compiled = os.environ.get("STROM_COMPILED")
    return {**os.environ, "PYTHONPATH": compiled} if compiled else None


class StromProcess:
    """`strom broker start` in a directory of its own; it may be killed and started again."""

    def __init__(self, directory, **settings):
        self.root = Path(directory)
        self.directory = self.root / "data"
        self.bootstrap = f"127.0.0.1:{free_port()}"
        self.process = None
        own = {
            "node.id": 1,
            "listeners": f"PLAINTEXT://{self.bootstrap}",
            "log.dirs": self.directory,
            **NO_RETENTION,
            **ONE_REPLICA,
        }
        self.config = self.root / "server.properties"
        self.root.mkdir(parents=True, exist_ok=True)
        self.config.write_text("".join(f"{k}={v}\n" for k, v in {**own, **settings}.items()))

    @property
    def pid(self):
        return self.process.pid

    def start(self):
        """Start it and wait until it says that it is ready."""
        command = [sys.executable, "-m", "strom", "broker", "start", "--config", str(self.config)]
        with open(self.root / "broker.log", "ab") as log:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, env=as_shipped()
            )
        for line in self.process.stdout:
            if line.startswith(b"ready"):
                return self
        self.end(signal.SIGKILL)
        raise AssertionError(f"no broker: {self.log()[-LOG_SHOWN:]}")

    def log(self):
        """What it wrote to its log."""
        return (self.root / "broker.log").read_text()

    def end(self, how=signal.SIGTERM):
        """Send it a signal and return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            return self.process.wait(STOP_SECONDS)
        finally:
            self.process.stdout.close()

    def kill(self):
        """End it as a power cut would, but for the page cache."""
        self.end(signal.SIGKILL)

    def stop(self):
        """Stop it cleanly."""
        assert self.end() == 0

    def remove(self):
        """End it if it runs, and take its files away."""
        if self.process is not None and self.process.poll() is None:
            self.end(signal.SIGKILL)
        elif self.process is not None:
            self.process.stdout.close()
        shutil.rmtree(self.root, ignore_errors=True)


class KafkaProcess:
    """Apache Kafka on a free port."""

    def __init__(self, directory, *properties):
        self.root = Path(directory)
        self.directory = self.root / "data-1"
        port = free_port(CONTROLLER_DISTANCE)
        self.bootstrap = f"127.0.0.1:{port}"
        kept = [f"{name}={value}" for name, value in NO_RETENTION.items()]
        arguments = [each for pair in (*kept, *properties) for each in ("--property", pair)]
        self.command = ["start", "--port", str(port), "--dir", str(directory), *arguments]

    def start(self):
        peer(*self.command, env={**os.environ, "KAFKA_HEAP_OPTS": PEER_JAVA})
        return self

    def stop(self):
        peer("stop", "--dir", str(self.root))

    def remove(self):
        self.stop()
        shutil.rmtree(self.root, ignore_errors=True)


class Outside:
    """A broker that somebody else runs; only its address is known."""

    directory = None

    def __init__(self, bootstrap):
        self.bootstrap = bootstrap


@contextmanager
def running_strom(name, **settings):
    """A Strom process with these settings, or the broker that STROM_TEST_BOOTSTRAP names."""
    if bootstrap := outside_bootstrap():
        yield Outside(bootstrap)
        return
    process = StromProcess(new_directory(name), **settings)
    try:
        yield process.start()
        ended = process.process.poll()
        assert ended is None, f"the broker ended by itself with {ended}:\n{process.log()}"
    finally:
        process.remove()


def peer(*arguments, env=None):
    """Run the peer's script; it says on stderr what went wrong, and has a limit of its own."""
    return subprocess.run([sys.executable, PEER, *arguments], check=True, env=env)


def kafka_tool(name, *arguments, text="", timeout=TOOL_SECONDS):
    """Run one of Apache Kafka's own tools; the completed process with its text."""
    command = [sys.executable, PEER, "tool", name, *map(str, arguments)]
    return subprocess.run(
        command, input=text, capture_output=True, text=True, timeout=timeout, check=False
    )


def java_missing():
    """Why Apache Kafka's tools cannot run here, or None."""
    found = subprocess.run(
        [sys.executable, PEER, "ready"], capture_output=True, text=True, check=False
    )
    return found.stderr.strip() or None


def kcat_missing():
    """Why kcat cannot run here, or None."""
    return None if shutil.which("kcat") else "kcat is not installed"


def free_port(*distances):
    """A port that is free, and so are those at the given distances from it."""
    while True:
        port = random.SystemRandom().choice(PORTS)
        wanted = {port + distance for distance in (0, *distances)}
        if wanted.isdisjoint(PORTS_GIVEN) and all(map(is_free, wanted)):
            PORTS_GIVEN.update(wanted)
            return port


def is_free(port):
    with socket.socket() as other:
        try:
            other.bind(("127.0.0.1", port))
        except (OSError, OverflowError):
            return False
    return True


def new_directory(name):
    return Path(tempfile.mkdtemp(prefix=f"strom-{name}-"))


def outside_bootstrap():
    """The address of a broker to test instead of Strom (to prove the tests, not Strom)."""
    return os.environ.get("STROM_TEST_BOOTSTRAP")
