"""What the parts have in common when they run: arguments, a lock, a pulse, and a way to end.

Each part is a program that runs until SIGTERM or SIGINT. While it runs it holds the lock
`run/NAME.lock`, which has its process id in it. The lock goes with the process, however that ends,
and with those that it has become by exec. So two of one part never run in one directory, and what
is left of a supervisor that was killed can be found, and ended.

A part that works says so by its pulse, `run/NAME.pulse`: the time of the file is the time of the
last work, its text what was done so far.
"""

import argparse
import fcntl
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from examples.final_project.place import DEFAULT, DIRECTORY, Place, PlaceError, place_at
from examples.final_project.settings import PREFIX, Settings, SettingsError, load

USED_WRONGLY = 2
FAILED = 1

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Part:
    """A part that runs in this process."""

    name: str
    place: Place
    settings: Settings
    #: The open lock.
    lock: int

    def pulse(self, counts: Mapping[str, int] | None = None) -> None:
        """Note that work was done just now, and what came of all so far."""
        file = pulse_file(self.place, self.name)
        new = file.with_suffix(".new")
        new.write_text(json.dumps(dict(counts or {})))
        new.replace(file)

    def become(self, command: list[str], environment: Mapping[str, str]) -> NoReturn:
        """Go on as another program, which keeps the lock."""
        os.set_inheritable(self.lock, True)
        sys.stderr.flush()
        os.execve(command[0], command, dict(environment))


def parser_of(name: str, what: str) -> argparse.ArgumentParser:
    """Return a parser with what every part takes."""
    parser = argparse.ArgumentParser(
        prog=f"python -m examples.final_project.{name}",
        description=what,
        epilog=f"Settings: DIR/project.toml, and {PREFIX}<SECTION>_<NAME> in the environment, "
        "which goes first. Without a file there are defaults. SIGTERM or Ctrl+C ends it.",
    )
    parser.add_argument(
        "--dir", metavar="DIR", help=f"the project's directory; else ${DIRECTORY}, else {DEFAULT}"
    )
    return parser


def begin(name: str, directory: str | None) -> Part:
    """Return the part of this process, with its lock; a wrong setting ends the process."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", force=True
    )
    for noisy in ("apscheduler", "httpx", "py4j"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
    try:
        place = place_at(directory)
        settings = load(place.settings, os.environ)
        place.run.mkdir(parents=True, exist_ok=True)
    except (SettingsError, PlaceError, OSError) as error:
        fail(str(error), USED_WRONGLY)
    return Part(name, place, settings, held(place, name))


def fail(why: str, code: int = FAILED) -> NoReturn:
    """End the process with one line that says why."""
    sys.stderr.write(f"{why}\n")
    sys.exit(code)


def asked_to_end() -> threading.Event:
    """Return what is set once somebody asks the process to end."""
    asked = threading.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda _number, _frame: asked.set())
    return asked


def lock_file(place: Place, name: str) -> Path:
    """Return the lock of a part."""
    return place.run / f"{name}.lock"


def pulse_file(place: Place, name: str) -> Path:
    """Return where a part says that it works."""
    return place.run / f"{name}.pulse"


def holder(place: Place, name: str) -> int | None:
    """Return the process that runs a part, or None."""
    try:
        opened = os.open(lock_file(place, name), os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        text = os.read(opened, 20)
        return int(text) if text.isdigit() else None
    finally:
        os.close(opened)
    return None


def held(place: Place, name: str) -> int:
    """Take a lock for as long as this process lives, or fail; return it."""
    opened = os.open(lock_file(place, name), os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        fail(f"{name} runs already in {place.directory}, as process {holder(place, name)}")
    os.ftruncate(opened, 0)
    os.write(opened, str(os.getpid()).encode())
    return opened
