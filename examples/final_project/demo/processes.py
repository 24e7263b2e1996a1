"""The parts of the project as processes of the demo, in a directory that goes with it."""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from examples.final_project.deployment import health
from examples.final_project.deployment.parts import Part
from examples.final_project.part import pulse_file
from examples.final_project.place import Place
from examples.final_project.settings import PREFIX, Settings, load

READY_SECONDS_MAX = 120
LOOK_SECONDS = 0.2
LAST_LINES = 20
#: In two minutes the JVM's second compiler costs more than it gains.
SHORT_LIVED = "-XX:TieredStopAtLevel=1"


class NotReadyError(Exception):
    """A process ended, or took too long, before it could serve."""


class Stage:
    """A directory, ports that were free, and the settings that follow from both."""

    def __init__(self, place: Place, database: str | None) -> None:
        self.place = place
        broker, http, site = _free_ports(3)
        given = {
            "BROKER_PORT": broker,
            "BROKER_HTTP_PORT": http,
            "SITE_PORT": site,
            **({"DATABASE_URL": database} if database else {}),
        }
        self._given = {PREFIX + name: str(value) for name, value in given.items()}
        self.settings: Settings = load(place.settings, self._given)
        place.logs.mkdir(parents=True)

    def environment(self) -> Mapping[str, str]:
        """Return the environment of the parts: the settings are here, and nowhere else."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
        return {**kept, **self._given, "JDK_JAVA_OPTIONS": SHORT_LIVED}


class Running:
    """A part as a process of its own, that can be killed and started again."""

    def __init__(self, part: Part, stage: Stage) -> None:
        self._part = part
        self._stage = stage
        self._log = stage.place.logs / f"{part.name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; return when it is well."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._part.command(self._stage.place),
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=self._stage.environment(),
            )
        until = time.perf_counter() + READY_SECONDS_MAX
        while ailment := self._ailment():
            self.check()
            if time.perf_counter() > until:
                raise NotReadyError(f"{self._part.name}: {ailment}\n{self._last()}")
            time.sleep(LOOK_SECONDS)

    def check(self) -> None:
        """Raise if it ended by itself."""
        if self._process is not None and self._process.poll() is not None:
            raise NotReadyError(f"{self._part.name} ended:\n{self._last()}")

    def counts(self) -> dict[str, int]:
        """Return what the part says that it has done."""
        counts: dict[str, int] = json.loads(
            pulse_file(self._stage.place, self._part.name).read_text()
        )
        return counts

    def stop(self) -> None:
        """End it in order; nothing if it does not run."""
        if self._process is not None:
            self._process.send_signal(getattr(signal, f"SIG{self._part.stop_signal}"))
            try:
                self._process.wait(self._part.stop_seconds)
            except subprocess.TimeoutExpired:
                self.kill()
            self._process = None

    def kill(self) -> None:
        """End it and what it has started, at once, as a crash would; nothing if it does not run."""
        if self._process is not None:
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
            self._process = None

    def _ailment(self) -> str | None:
        return health.ailment(self._part.name, self._stage.place, self._stage.settings)

    def _last(self) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-LAST_LINES:])


@contextmanager
def running(part: Part, stage: Stage) -> Iterator[Running]:
    """Run a part while the block runs."""
    made = Running(part, stage)
    try:
        made.start()
        yield made
    finally:
        made.stop()


def _free_ports(count: int) -> list[int]:
    with ExitStack() as opened:
        sockets = [
            opened.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)
        ]
        return [each.getsockname()[1] for each in sockets]
