"""From the release that runs to the repository's code, and back if that does not work.

The old release stops and writes a backup, the new one migrates and starts. If a part is not well in
time, or something is gone, the new one stops, the backup is restored, and the old one starts again.
Each release is operated by its own code.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import psycopg

from examples.final_project import archive
from examples.final_project.database.addresses import of_place
from examples.final_project.deployment import operation, release
from examples.final_project.deployment.operation import Deployment, OperationError, say
from examples.final_project.place import DIRECTORY, Place
from examples.final_project.settings import PREFIX

SECONDS_MAX = 60
TABLES = ("telemetry", "flight", "rocket", "astronaut", "anomaly", "rejected", "telemetry_window")
PROGRESS = "SELECT coalesce(sum(end_offset), 0) FROM flights.sink_progress"


def upgrade(at: Deployment, seconds_max: float, environment: Mapping[str, str]) -> bool:
    """Upgrade what runs; return whether the new release runs, with all that was there."""
    old = release.current(at.place)
    if old is None or not at.supervisor.runs():
        raise OperationError(f"nothing runs in {at.place.directory}: make project-up")
    new = release.install(at.place)
    if new == old:
        say(f"the repository is what runs: release {old}")
        return True
    before = counts(at)
    _require(at.place, old, environment, "down")
    backup = _backed_up(at.place, old, environment)
    say(f"backup: {backup}")
    release.switch(at.place, new)
    reason = _brought_up(at, new, environment, before, seconds_max)
    if reason is None:
        say(f"release {new} runs instead of {old}")
        return True
    say(f"release {new} does not work: {reason}")
    # By this code, which works so far: the new release may not.
    operation.down(at)
    release.switch(at.place, old)
    _require(at.place, old, environment, "restore", backup)
    _require(at.place, old, environment, "up")
    say(f"release {old} runs again, with what was there before")
    return False


def counts(at: Deployment) -> dict[str, int]:
    """Return how much there is: of each table, and how far the topics were read."""
    with psycopg.connect(of_place(at.place, at.settings)) as connection:

        def number(query: str) -> int:
            row = connection.execute(query.encode()).fetchone()
            return 0 if row is None else int(row[0])

        found = {name: number(f"SELECT count(*) FROM flights.{name}") for name in TABLES}
        found["offsets read"] = number(PROGRESS)
    if any(at.place.archive.glob("*/*.parquet")):
        # A day may leave for the archive at any time.
        found["telemetry"] += archive.archived(at.place.archive).measurements
    return found


def _backed_up(place: Place, old: str, environment: Mapping[str, str]) -> str:
    """Have the old release write a backup; without one it runs on."""
    try:
        return _require(place, old, environment, "backup").splitlines()[-1]
    except OperationError:
        _require(place, old, environment, "up")
        raise


def _brought_up(
    at: Deployment,
    new: str,
    environment: Mapping[str, str],
    before: Mapping[str, int],
    seconds_max: float,
) -> str | None:
    """Start the new release; return why it does not do."""
    done = _told(at.place, new, environment, "up", "--within", str(seconds_max))
    if done.returncode:
        said = done.stdout.strip().splitlines() or [f"exit code {done.returncode}"]
        return " ".join(said[-2:])
    after = counts(at)
    gone = [
        f"{name}: {after[name]} of {count}" for name, count in before.items() if after[name] < count
    ]
    return f"gone: {', '.join(gone)}" if gone else None


def _require(place: Place, name: str, environment: Mapping[str, str], *words: str) -> str:
    """Have a release do something that must work; return what it said."""
    done = _told(place, name, environment, *words)
    if done.returncode:
        raise OperationError(f"release {name} could not do {words[0]}: {done.stdout.strip()}")
    return done.stdout.strip()


def _told(
    place: Place, name: str, environment: Mapping[str, str], *words: str
) -> subprocess.CompletedProcess[str]:
    code = place.releases / name
    given = {key: value for key, value in environment.items() if key.startswith(PREFIX)}
    return subprocess.run(
        [sys.executable, "-m", "examples.final_project.deployment", *words],
        cwd=code,
        env={
            **os.environ,
            **given,
            DIRECTORY: str(place.directory),
            "PYTHONPATH": os.pathsep.join((str(code), str(Path(code, "src")))),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
