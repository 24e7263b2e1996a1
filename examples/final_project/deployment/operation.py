"""up, status, logs, down: a deployment as a whole.

`up` may be run at any time. What runs goes on; what does not is started; what a supervisor that was
killed has left behind is ended first, for nobody would start it again.
"""

import os
import secrets
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from examples.final_project.database.addresses import OWNER, of_place
from examples.final_project.database.migrate import migrate
from examples.final_project.deployment import health, release
from examples.final_project.deployment.parts import BROKER, PARTS, SITE, Part, parts_of
from examples.final_project.deployment.supervision import Supervisor, end_group
from examples.final_project.part import holder
from examples.final_project.place import Place
from examples.final_project.scraper import topics
from examples.final_project.settings import PREFIX, Settings, load, template

UP_SECONDS_MAX = 300
LOOK_SECONDS = 0.5
#: A part that was seen so often waiting for its next start will not start.
BACK_OFFS_MAX = 10
LAST_LINES = 40
PASSWORD_BYTES = 24


class OperationError(Exception):
    """What was asked cannot be done; the text is one line that says why."""


class Deployment(NamedTuple):
    """A place with its settings, and who supervises it."""

    place: Place
    settings: Settings
    supervisor: Supervisor


def deployment_at(place: Place, environment: Mapping[str, str]) -> Deployment:
    """Return the deployment of a place; while it runs, with the environment that it began with."""
    supervisor = Supervisor(place)
    begun = environment_of(place) if supervisor.runs() else {}
    return Deployment(place, load(place.settings, {**begun, **environment}), supervisor)


def say(text: str) -> None:
    """Tell the operator."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def up(at: Deployment, seconds_max: float = UP_SECONDS_MAX) -> dict[str, str]:
    """Have every part run; return what ails those that do not work in time."""
    until = time.perf_counter() + seconds_max
    if not at.supervisor.runs():
        _furnish(at.place)
        end_what_is_left(at.place)
        _require_ports(at.settings)
        at.supervisor.begin(at.settings)
    early = [each for each in parts_of(at.settings) if not each.after_preparation]
    if ailing := _started(at, early, until):
        return ailing
    prepare(at.place, at.settings)
    late = [each for each in parts_of(at.settings) if each.after_preparation]
    return _started(at, late, until)


def prepare(place: Place, settings: Settings) -> None:
    """Bring topics and database to what the code says; nothing if they are so."""
    topics.create(settings.broker.bootstrap)
    topics.settle(settings.broker.bootstrap)
    if done := migrate(of_place(place, settings)):
        say(f"migrations run: {', '.join(done)}")


def await_early(at: Deployment, seconds_max: float) -> None:
    """Return when the parts are well that the preparation needs, whoever starts them."""
    until = time.perf_counter() + seconds_max
    for each in parts_of(at.settings):
        while not each.after_preparation and (
            ailment := health.ailment(each.name, at.place, at.settings)
        ):
            if time.perf_counter() > until:
                raise OperationError(f"{each.name}: {ailment}")
            time.sleep(LOOK_SECONDS)


def status(at: Deployment) -> bool:
    """Show each part and the flow; return whether all is well."""
    if not at.supervisor.runs():
        say(f"nothing runs in {at.place.directory}: make project-up")
        return False
    states = at.supervisor.states()
    found = {
        each.name: health.ailment(each.name, at.place, at.settings)
        for each in parts_of(at.settings)
    }
    for name, ailment in found.items():
        say(f"{name:<11} {ailment or 'well':<40} {states.get(name, 'not supervised')}")
    flow = health.quiet(at.place, at.settings)
    say(f"{'flow':<11} {flow or 'well'}")
    say(f"{'disk':<11} {health.disk(at.place, at.settings) or 'well'}")
    # A disk that fills up is for the operator to look at: nothing has stopped.
    return not any(found.values()) and not flow


def logs(at: Deployment, names: Iterable[str]) -> None:
    """Show the last lines of the parts' logs, of all if none is named."""
    known = [each.name for each in PARTS] + ["supervisord"]
    for name in list(names) or known:
        if name not in known:
            raise OperationError(f"there is no part '{name}'; there are {', '.join(known)}")
        file = at.place.logs / f"{name}.log"
        if file.exists():
            say(f"==> {file} <==")
            say(last_lines(file, LAST_LINES))


def down(at: Deployment) -> None:
    """Stop all parts, those that work before those that they need, and the supervisor."""
    if at.supervisor.runs():
        for each in reversed(parts_of(at.settings)):
            at.supervisor.stop(each.name)
        at.supervisor.end()
    end_what_is_left(at.place)


def end_what_is_left(place: Place) -> None:
    """End parts that nobody supervises."""
    for part in reversed(PARTS):
        if (process := holder(place, part.name)) is not None:
            if process <= 1:
                # The first process of a container; to end its group here would be to end all.
                raise OperationError(f"{part.name} runs in a container: stop it there")
            say(f"{part.name} was left without a supervisor, as process {process}: it is ended")
            _end(place, part, process)


def last_lines(file: Path, count: int) -> str:
    """Return the end of a file."""
    with suppress(FileNotFoundError):
        return "\n".join(file.read_text(errors="replace").splitlines()[-count:])
    return ""


def _end(place: Place, part: Part, process: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, getattr(signal, f"SIG{part.stop_signal}"))
    until = time.perf_counter() + part.stop_seconds
    while holder(place, part.name) == process:
        if time.perf_counter() > until:
            with suppress(ProcessLookupError):
                os.killpg(process, signal.SIGKILL)
        time.sleep(0.1)
    end_group(process)


def _furnish(place: Place) -> None:
    """Make what a first start needs; nothing that is there is changed."""
    place.secrets.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not place.settings.exists():
        place.settings.write_text(template())
    if not place.password.exists() and not place.database.exists():
        place.password.touch(0o600)
        place.password.write_text(f"*:*:*:{OWNER}:{secrets.token_urlsafe(PASSWORD_BYTES)}\n")
    if release.current(place) is None:
        release.switch(place, release.install(place))
    given = [f"{name}={value}\n" for name, value in os.environ.items() if name.startswith(PREFIX)]
    file = place.secrets / "environment"
    file.touch(0o600)
    file.write_text("".join(sorted(given)))


def environment_of(place: Place) -> dict[str, str]:
    """Return the settings that the environment had when the deployment was started."""
    with suppress(FileNotFoundError):
        lines = (place.secrets / "environment").read_text().splitlines()
        return {name: value for name, _, value in (line.partition("=") for line in lines)}
    return {}


def _require_ports(settings: Settings) -> None:
    """See that nobody else has the ports, which a part would only say in its log."""
    own = {
        "[broker] port": (BROKER, settings.broker.listen, settings.broker.port),
        "[broker] http_port": (BROKER, settings.broker.listen, settings.broker.http_port),
        "[site] port": (SITE, settings.site.listen, settings.site.port),
    }
    for name, (part, listen, port) in own.items():
        if part not in parts_of(settings):
            continue
        try:
            socket.create_server((listen, port)).close()
        except OSError as error:
            why = os.strerror(error.errno or 0)
            raise OperationError(
                f"{name}: {listen}:{port}: {why}; name another in project.toml"
            ) from None


def _started(at: Deployment, parts: Iterable[Part], until: float) -> dict[str, str]:
    """Start the parts and wait until they are well; return what ails the others."""
    waited = [each.name for each in parts]
    for name in waited:
        at.supervisor.start(name)
    ailing: dict[str, str] = {}
    back_offs: Counter[str] = Counter()
    while waited:
        time.sleep(LOOK_SECONDS)
        states = at.supervisor.states()
        for name in list(waited):
            back_offs[name] += states[name].startswith("backoff")
            ailment = health.ailment(name, at.place, at.settings)
            if ailment is None and states[name].startswith("running"):
                say(f"{name} is well")
            elif time.perf_counter() > until or back_offs[name] > BACK_OFFS_MAX:
                said = last_lines(at.place.logs / f"{name}.log", 1)
                ailing[name] = f"{ailment or states[name]}; its log ends: {said}"
            else:
                continue
            waited.remove(name)
    return ailing
