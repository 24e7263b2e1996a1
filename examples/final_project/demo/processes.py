"""The parts of the demo that are processes of their own: the broker, and Spark's queries."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

READY_SECONDS_MAX = 120
STOP_SECONDS_MAX = 15
#: In two minutes the JVM's second compiler costs more than it gains.
SHORT_LIVED = "-XX:TieredStopAtLevel=1"


class NotReadyError(Exception):
    """A process ended, or took too long, before it could serve."""


class Broker(NamedTuple):
    """A broker that serves."""

    bootstrap: str
    metrics_url: str


@contextmanager
def broker(directory: Path) -> Iterator[Broker]:
    """Run a broker while the block runs."""
    data = str(directory / "broker")
    command = [
        sys.executable,
        "-m",
        "strom",
        "up",
        "--port",
        "0",
        "--http-port",
        "0",
        "--dir",
        data,
    ]
    with _started(command, directory / "broker.log") as process:
        said = _said(process, ("ready", "metrics"), directory / "broker.log")
        yield Broker(said["ready"], said["metrics"])


def _said(process: subprocess.Popen[str], words: tuple[str, ...], log: Path) -> dict[str, str]:
    """Return what follows each word, when the process has said all of them."""
    said: dict[str, str] = {}
    assert process.stdout is not None
    for line in process.stdout:
        word, _, rest = line.strip().partition(" ")
        if word in words:
            said[word] = rest.split()[0]
        if len(said) == len(words):
            return said
    raise NotReadyError(f"the broker did not start:\n{_last(log)}")


@contextmanager
def _started(command: list[str], log: Path) -> Iterator[subprocess.Popen[str]]:
    with (
        log.open("a") as errors,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
        ) as process,
    ):
        try:
            yield process
        finally:
            _stop(process)


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        kill(process)


def kill(process: subprocess.Popen[str]) -> None:
    """End a process and those it started, at once, as a crash would."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(STOP_SECONDS_MAX)


class Processing:
    """Spark's queries as a process that can be killed and started again."""

    def __init__(self, bootstrap: str, database: str, directory: Path) -> None:
        module = "examples.final_project.processing"
        place = str(directory / "spark")
        self._command = [sys.executable, "-m", module, bootstrap, database, place]
        self._log = directory / "processing.log"
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it; return when the queries run."""
        ready = threading.Event()
        with self._log.open("a") as errors:
            process = subprocess.Popen(
                self._command,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
                env={**os.environ, "JDK_JAVA_OPTIONS": SHORT_LIVED},
            )
        self._process = process
        threading.Thread(target=self._listen, args=(process, ready), daemon=True).start()
        if not ready.wait(READY_SECONDS_MAX) or process.poll() is not None:
            raise NotReadyError(f"Spark did not start:\n{_last(self._log)}")

    def check(self) -> None:
        """Raise if it ended by itself."""
        if self._process is not None and self._process.poll() is not None:
            raise NotReadyError(f"Spark ended:\n{_last(self._log)}")

    def kill(self) -> None:
        """End it as a crash would; nothing if it does not run."""
        if self._process is not None:
            if self._process.poll() is None:
                kill(self._process)
            self._process = None

    def _listen(self, process: subprocess.Popen[str], ready: threading.Event) -> None:
        assert process.stdout is not None
        with process.stdout, self._log.open("a") as log:
            for line in process.stdout:
                log.write(line)
                log.flush()
                if line.strip() == "ready":
                    ready.set()
        # Ended before it was ready: whoever waits looks whether it runs.
        ready.set()


def _last(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-20:])
