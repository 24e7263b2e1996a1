"""What a pipeline leaves on disk, so that it goes on where it was, and so that others can see it.

    <home>/<pipeline>/
        lock                 held while it runs; who holds it is alive
        status.json          the last that the run said of itself
        stop                 somebody wants it to stop
        shapes.json          what the checkpoints are of, by sink
        checkpoints/<sink>/  Spark's

States of a run, in status.json: starting, running, stopping, then one of done (all that was there
is read), stopped, failed. A crash leaves one of the first three and no holder of the lock: `died`.

Files are replaced as a whole, so a reader sees the old one or the new one, also after a crash. A
request to stop is removed when a run begins, under the lock: it was for the run before.
"""

import errno
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import sleep
from typing import Any, TypeVar

from strom.pipelines.explaining import ROOM
from strom.pipelines.failure import BusyError, PipelineError
from strom.pipelines.shape import Shape
from strom.pipelines.status import AT_WORK, DIED, Status

#: Who asks whether a pipeline runs holds its lock for a moment; a run that begins waits so long.
LOOKS_MAX = 20
LOOK_SECONDS = 0.05

Found = TypeVar("Found")


class Directory:
    """One pipeline's directory."""

    def __init__(self, home: Path, pipeline: str) -> None:
        self.pipeline = pipeline
        self.path = home / pipeline

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock: nobody else runs the pipeline meanwhile."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = (self.path / "lock").open("a")
        except OSError as error:
            raise PipelineError(f"{self.path} cannot be written: {error.strerror}") from None
        with lock:
            if not _take(lock.fileno()):
                raise BusyError(
                    f"pipeline '{self.pipeline}' runs already, in {self.path}; "
                    f"strom pipeline stop {self.pipeline} stops it"
                )
            (self.path / "stop").unlink(missing_ok=True)
            yield

    def is_held(self) -> bool:
        """Whether a run is alive."""
        try:
            lock = (self.path / "lock").open()
        except OSError:
            return False
        with lock:
            return not _lock(lock.fileno(), fcntl.LOCK_SH)

    def status(self) -> Status | None:
        """Return the last status, corrected where its run is no longer alive."""
        if not self.is_held():
            # Read after the look at the lock: a run writes its last status before it lets go.
            found = self._status()
            if found is not None and found.state in AT_WORK:
                return replace(found, state=DIED)
            return found
        return self._status()

    def _status(self) -> Status | None:
        return _read(self.path / "status.json", Status.read)

    def write_status(self, status: Status) -> None:
        """Say how the run is."""
        _write(self.path / "status.json", status.write())

    def ask_to_stop(self) -> None:
        """Leave the request to stop."""
        try:
            (self.path / "stop").touch()
        except OSError as error:
            raise PipelineError(f"{self.path} cannot be written: {error.strerror}") from None

    def is_asked_to_stop(self) -> bool:
        """Whether somebody left the request to stop."""
        return (self.path / "stop").exists()

    def checkpoint(self, sink: str) -> Path:
        """Return where Spark keeps what belongs to a sink."""
        return self.path / "checkpoints" / sink

    def unfinished(self, sink: str) -> int | None:
        """Return the number of a sink's last micro-batch, if Spark will run it again."""
        begun, done = (
            [
                int(each.name)
                for each in self.checkpoint(sink).glob(f"{log}/*")
                if each.name.isdigit()
            ]
            for log in ("offsets", "commits")
        )
        last = max(begun, default=-1)
        return last if last > max(done, default=-1) else None

    def shapes(self) -> dict[str, Shape]:
        """Return what the checkpoints are of."""
        return _read(self.path / "shapes.json", _read_shapes) or {}

    def write_shapes(self, shapes: Mapping[str, Shape]) -> None:
        """Keep what the checkpoints are of."""
        _write(self.path / "shapes.json", {sink: each.write() for sink, each in shapes.items()})

    def forget(self, sink: str) -> None:
        """Remove a sink's checkpoint, at once as far as a crash can tell."""
        checkpoint = self.checkpoint(sink)
        gone = checkpoint.with_name(f".{sink}.gone")
        try:
            if gone.exists():
                shutil.rmtree(gone)
            if checkpoint.exists():
                checkpoint.rename(gone)
                shutil.rmtree(gone)
        except OSError as error:
            raise PipelineError(f"{checkpoint} cannot be removed: {error.strerror}") from None


def directories(home: Path) -> list[Directory]:
    """Return the directories of all pipelines under a home."""
    found = sorted(path.parent.name for path in home.glob("*/status.json"))
    return [Directory(home, name) for name in found]


def _take(descriptor: int) -> bool:
    """Take the lock for good, past those who only look whether it is taken."""
    for _ in range(LOOKS_MAX):
        if _lock(descriptor, fcntl.LOCK_EX):
            return True
        sleep(LOOK_SECONDS)
    return False


def _lock(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _read(path: Path, read: Callable[[Any], Found]) -> Found | None:
    """Return what `read` makes of a file, which may be half there, or another version's."""
    try:
        return read(json.loads(path.read_text()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise PipelineError(f"{path} cannot be read: {error}; remove it to go on") from None


def _read_shapes(value: Mapping[str, Any]) -> dict[str, Shape]:
    return {sink: Shape.read(each) for sink, each in value.items()}


def _write(path: Path, value: object) -> None:
    """Replace a file as a whole."""
    beside = path.with_suffix(".new")
    try:
        with beside.open("w") as file:
            json.dump(value, file, indent=2)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        advice = f" ({ROOM})" if error.errno == errno.ENOSPC else ""
        raise PipelineError(f"{path} cannot be written: {error.strerror}{advice}") from None
