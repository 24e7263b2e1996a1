"""The broker of the demo: a `strom up` of its own, in a directory that is gone afterwards."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from strom.cli.failure import Failure

STOP_SECONDS_MAX = 15.0


class Stage(NamedTuple):
    """A broker that runs, where its files are, and how long it took to start."""

    bootstrap: str
    directory: Path
    start_ms: float


@contextmanager
def stage() -> Iterator[Stage]:
    """Run a broker while the block runs."""
    with tempfile.TemporaryDirectory(prefix="strom-demo-") as root:
        data, log = Path(root, "data"), Path(root, "broker.log")
        command = [sys.executable, "-m", "strom", "up", "--port", "0", "--dir", str(data)]
        began = time.perf_counter()
        with (
            log.open("w") as errors,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
        ):
            try:
                bootstrap = wait_ready(process, log)
                start_ms = (time.perf_counter() - began) * 1000
                yield Stage(bootstrap, data, start_ms)
            finally:
                stop(process)


def wait_ready(process: subprocess.Popen[str], log: Path) -> str:
    """Return the address, once the broker says that it serves."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("ready "):
            return line.split()[1]
    last = log.read_text().splitlines()[-1:] or [f"exit code {process.wait()}"]
    raise Failure(f"the broker did not start: {last[0]}")


def stop(process: subprocess.Popen[str]) -> None:
    """Stop the broker as Ctrl+C would."""
    process.terminate()
    try:
        process.wait(STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
