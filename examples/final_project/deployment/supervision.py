"""supervisord: its settings, made from the parts, and how it is told what to do.

It starts no part by itself: `up` does, in order. A part that ends is started again at once. One
that ends while it starts is started a second later, then after two seconds, three, and so on. Each
part is in a group of processes of its own, and is ended with it.
"""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from http.client import HTTPException
from typing import Any
from xmlrpc.client import Fault, ServerProxy

from supervisor.xmlrpc import Faults, SupervisorTransport

from examples.final_project.deployment.parts import Part, parts_of
from examples.final_project.place import Place
from examples.final_project.settings import Settings

ANSWER_SECONDS_MAX = 20
#: The n-th start waits n seconds: a part that never starts is tried for a day, ever less often.
STARTS_MAX = 400
#: A part that has run so long has started.
STARTED_SECONDS = 3
#: What a part has started gets so long to end after it.
GROUP_SECONDS_MAX = 15
OWN_LOG_BYTES_MAX = 1_000_000

HEAD = """\
[unix_http_server]
file = {run}/supervisor.sock
chmod = 0700

[supervisord]
logfile = {logs}/supervisord.log
logfile_maxbytes = {own_bytes}
logfile_backups = {files}
pidfile = {run}/supervisord.pid
childlogdir = {logs}
directory = {directory}

[supervisorctl]
serverurl = unix://{run}/supervisor.sock

[rpcinterface:supervisor]
supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface
"""
PROGRAM = """
[program:{name}]
command = {command}
directory = {code}
environment = PYTHONPATH="{code}:{code}/src",PYTHONSAFEPATH="1"
autostart = false
autorestart = true
startsecs = {started}
startretries = {starts}
stopsignal = {signal}
stopwaitsecs = {seconds}
killasgroup = true
redirect_stderr = true
stdout_logfile = {logs}/{name}.log
stdout_logfile_maxbytes = {bytes}
stdout_logfile_backups = {files}
"""


class NotSupervisedError(Exception):
    """supervisord does not answer, or not as it should."""


def configuration(place: Place, settings: Settings) -> str:
    """Return supervisord's settings."""
    common = {
        "run": place.run,
        "logs": place.logs,
        "directory": place.directory,
        "code": place.current,
        "bytes": settings.logs.bytes_max,
        "own_bytes": OWN_LOG_BYTES_MAX,
        "files": settings.logs.files_kept,
        "started": STARTED_SECONDS,
        "starts": STARTS_MAX,
    }
    escaped = {name: _escaped(str(value)) for name, value in common.items()}
    programs = (_program(each, place, escaped) for each in parts_of(settings))
    return HEAD.format(**escaped) + "".join(programs)


def _program(part: Part, place: Place, common: dict[str, str]) -> str:
    command = " ".join(f"'{_escaped(word)}'" for word in part.command(place))
    return PROGRAM.format(
        name=part.name,
        command=command,
        signal=part.stop_signal,
        seconds=part.stop_seconds,
        **common,
    )


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


def end_group(process: int) -> None:
    """Return when all of a part's processes have ended; a JVM ends after who started it."""
    until = time.perf_counter() + GROUP_SECONDS_MAX
    with suppress(ProcessLookupError):
        while True:
            os.killpg(process, 0 if time.perf_counter() < until else signal.SIGKILL)
            time.sleep(0.1)


class Supervisor:
    """supervisord of a place, over its socket."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._socket = place.run / "supervisor.sock"

    def runs(self) -> bool:
        """Return whether there is one that answers."""
        try:
            self._ask("getState")
        except (OSError, HTTPException):
            return False
        return True

    def begin(self, settings: Settings) -> None:
        """Start supervisord, with no part running."""
        for each in (self._place.etc, self._place.logs, self._place.run):
            each.mkdir(parents=True, exist_ok=True)
        file = self._place.etc / "supervisord.conf"
        file.write_text(configuration(self._place, settings))
        command = [sys.executable, "-m", "supervisor.supervisord", "-c", str(file)]
        done = subprocess.run(
            command, cwd=self._place.directory, capture_output=True, text=True, check=False
        )
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines()
            raise NotSupervisedError(f"supervisord did not start: {said[-1] if said else ''}")
        self._wait(self.runs, "supervisord does not answer")

    def states(self) -> dict[str, str]:
        """Return the state of each part in supervisord's words, and since when or why."""
        return {
            str(each["name"]): f"{each['statename'].lower()}, {each['description']}"
            for each in self._ask("getAllProcessInfo")
        }

    def start(self, name: str) -> None:
        """Start a part; nothing if it runs."""
        try:
            self._ask("startProcess", name, False)
        except Fault as fault:
            if fault.faultCode != Faults.ALREADY_STARTED:
                raise NotSupervisedError(f"{name}: {fault.faultString}") from None

    def stop(self, name: str) -> None:
        """Stop a part and return when it and all it has started have ended."""
        process = self._ask("getProcessInfo", name)["pid"]
        try:
            self._ask("stopProcess", name, True)
        except Fault as fault:
            if fault.faultCode != Faults.NOT_RUNNING:
                raise NotSupervisedError(f"{name}: {fault.faultString}") from None
        if process:
            end_group(process)

    def end(self) -> None:
        """Stop what runs, and supervisord itself."""
        self._ask("shutdown")
        self._wait(lambda: not self.runs(), "supervisord does not end")

    def _ask(self, method: str, *arguments: Any) -> Any:  # noqa: ANN401 - as supervisord has them
        # Anew for each call: a connection that has failed once stays so.
        transport = SupervisorTransport("", "", f"unix://{self._socket}")
        try:
            server = ServerProxy("http://127.0.0.1", transport=transport)
            return getattr(server.supervisor, method)(*arguments)
        finally:
            transport.close()

    def _wait(self, is_so: Any, otherwise: str) -> None:  # noqa: ANN401 - a function
        until = time.perf_counter() + ANSWER_SECONDS_MAX
        while not is_so():
            if time.perf_counter() > until:
                raise NotSupervisedError(otherwise)
            time.sleep(0.1)
