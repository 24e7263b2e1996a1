"""The code that a deployment runs: a copy of its own, so that nothing changes under it.

A release is named by what is in it. `current` is a link to the one that runs. It is put there by a
rename, so it is the old one or the new one. Python and its packages are the repository's: they are
not copied, and an upgrade does not take them back.
"""

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from examples.final_project.place import Place

REPOSITORY = Path(__file__).parents[3]
PARTS = ("examples/__init__.py", "examples/final_project", "src/strom")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyx", "*.pxd", "*.c")
KEPT = 3
NAME_CHARACTERS = 12


def name_of(code: Path = REPOSITORY) -> str:
    """Return the name of the release that the code would be."""
    digest = hashlib.sha256()
    for file in sorted(_files(code)):
        digest.update(f"{file.relative_to(code)}\0{file.stat().st_size}\0".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:NAME_CHARACTERS]


def install(place: Place, code: Path = REPOSITORY) -> str:
    """Copy the code if it is not there yet; return its name. It does not run by that."""
    name = name_of(code)
    made, new = place.releases / name, place.releases / f"{name}.new"
    if not made.exists():
        shutil.rmtree(new, ignore_errors=True)
        for part in PARTS:
            _copy(code / part, new / part)
        new.rename(made)
    return name


def current(place: Place) -> str | None:
    """Return the release that runs."""
    return place.current.readlink().name if place.current.is_symlink() else None


def switch(place: Place, name: str) -> None:
    """Have the next start run that release; those that are older than the last few go."""
    new = place.directory / "current.new"
    new.unlink(missing_ok=True)
    new.symlink_to(Path(place.releases.name, name))
    new.replace(place.current)
    os.utime(place.releases / name)
    by_use = sorted(place.releases.iterdir(), key=lambda each: each.stat().st_mtime)
    for old in by_use[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)


def _files(code: Path) -> Iterator[Path]:
    for part in PARTS:
        found = [code / part] if (code / part).is_file() else (code / part).rglob("*")
        for each in found:
            if each.is_file() and not LEFT_OUT(str(each.parent), [each.name, each.parent.name]):
                yield each


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=LEFT_OUT)
    else:
        shutil.copyfile(source, target)
