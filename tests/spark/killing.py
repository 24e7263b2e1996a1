"""A query in processes of its own, to be held at a point, killed there, and started again."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tests.patience import until
from tests.spark import starting

ROOT = Path(__file__).parents[2]
#: Where the query's processes find the directory by which they are held.
DIRECTORY = "STROM_CRASHING_DIRECTORY"
PATIENCE_SECONDS = 120
POLL_SECONDS = 0.05


def status_of(pid):
    """State, parent, group, session and more, as the system tells them of a process."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()


def parent_of(pid):
    return int(status_of(pid)[1])


def is_forked_with_all_loaded(pid):
    """Whether a worker is a fork of Strom's daemon: a fork keeps the command line."""
    return b"strom.spark.daemon" in Path(f"/proc/{pid}/cmdline").read_bytes()


def forget_the_end(checkpoint):
    """Have Spark run the last batch again: it does when it does not know that it ended."""
    newest = max((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    newest.unlink()
    newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)


class Query:
    """The query's processes, which may be killed and started again."""

    def __init__(self, directory, module, *arguments):
        self.directory = directory
        self._command = [sys.executable, "-m", module, *map(str, arguments)]
        self._driver = None
        self._sessions = []

    def start(self):
        where = {
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
            DIRECTORY: str(self.directory),
        }
        with open(self.directory / "driver.log", "ab") as log:
            self._driver = subprocess.Popen(
                self._command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=starting.environment_in(self.directory, **where),
                cwd=ROOT,
                start_new_session=True,
            )
        self._sessions.append(self._driver.pid)

    def check_alive(self):
        assert self._driver.poll() is None, self.log()

    def log(self):
        return (self.directory / "driver.log").read_text()[-5000:]

    def kill_driver(self):
        """Kill Python's driver and Java's; the workers of Python live on."""
        os.killpg(self._driver.pid, signal.SIGKILL)
        self._driver.wait(PATIENCE_SECONDS)

    def remove(self):
        """Kill whatever is left of all lives."""
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if int(status_of(path.name)[3]) in self._sessions:
                    os.kill(int(path.name), signal.SIGKILL)
        if self._driver is not None:
            self._driver.wait(PATIENCE_SECONDS)

    def hold(self, phase):
        """Have a task held; return which process it is in."""
        self.ask_to_hold(phase)
        return self.await_held(phase)

    def ask_to_hold(self, phase):
        (self.directory / f"hold-{phase}").touch()

    def await_held(self, phase):
        def held():
            self.check_alive()
            return next(self.directory.glob(f"held-{phase}-*"), None)

        return until(held, told=self.log, seconds=PATIENCE_SECONDS)
