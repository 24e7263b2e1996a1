"""Backup and restore of what belongs together: topics, offsets, database, checkpoints, archive.

They are copied while all parts stand still, so they are of one moment: the database holds what the
checkpoints say, and both are of what the topics hold. A backup is one file, `backups/TIME.tar.gz`,
that is there whole or not at all. It holds the database's password too, so nobody else may read
it.

A restore puts the files in the place of those that are there, which are kept in `data.before` until
the next restore. It runs nothing.
"""

import gzip
import io
import json
import os
import pwd
import shutil
import tarfile
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from examples.final_project.database.server import UNPRIVILEGED
from examples.final_project.deployment import operation, release
from examples.final_project.deployment.operation import Deployment, OperationError
from examples.final_project.deployment.parts import parts_of
from examples.final_project.part import holder
from examples.final_project.place import Place

FORMAT = 1
MANIFEST = "manifest.json"
PIECE_BYTES = 1 << 20
#: What a start makes anew.
LEFT_OUT = ("data/database/wheel", "data/database/data.new", "data/database/secret")


def back_up(at: Deployment) -> Path:
    """Write a backup and return its file; what runs is stopped meanwhile, and started again."""
    if at.settings.database.url:
        raise OperationError(
            "[database] url names a server that is not this project's: while the project is down, "
            "back that up by its own means, and copy data/"
        )
    if not at.place.database.exists():
        raise OperationError(f"there is nothing in {at.place.directory} yet: make project-up")
    ran = at.supervisor.runs()
    if ran:
        for each in reversed(parts_of(at.settings)):
            at.supervisor.stop(each.name)
    operation.end_what_is_left(at.place)
    try:
        return _written(at.place)
    finally:
        if ran and (ailing := operation.up(at)):
            operation.say(f"after the backup not all is well: {', '.join(sorted(ailing))}")


def restore(at: Deployment, file: Path) -> None:
    """Put what a backup holds in the place of what is there."""
    if at.supervisor.runs() or any(holder(at.place, each.name) for each in parts_of(at.settings)):
        raise OperationError(f"{at.place.directory} is running: make project-down")
    if not file.is_file():
        raise OperationError(f"{file}: there is no such backup")
    new = at.place.directory / "restored.new"
    shutil.rmtree(new, ignore_errors=True)
    try:
        _extract(file, new)
    except OperationError:
        shutil.rmtree(new, ignore_errors=True)
        raise
    _give_to_server(new / "data" / "database")
    _put(new, at.place)


def _extract(file: Path, new: Path) -> None:
    try:
        with gzip.open(file) as raw:
            with tarfile.open(fileobj=raw) as tar:
                _require_ours(tar, file)
                tar.extractall(new, filter="data")
            # The checksum is behind the end that tarfile sees.
            while raw.read(PIECE_BYTES):
                pass
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile):
        raise OperationError(f"{file} is not a whole backup") from None
    if not (new / "data" / "database" / "data").is_dir():
        raise OperationError(f"{file} is not a whole backup: there is no database in it")


def _written(place: Place) -> Path:
    place.backups.mkdir(mode=0o700, exist_ok=True)
    now = datetime.now(UTC)
    file = place.backups / f"{now:%Y%m%dT%H%M%S%fZ}.tar.gz"
    new = file.with_suffix(".new")
    manifest = {"format": FORMAT, "at": now.isoformat(), "release": release.current(place)}
    new.touch(0o600)
    try:
        _write(new, place, manifest)
    except BaseException:
        new.unlink()
        raise
    new.rename(file)
    return file


def _write(new: Path, place: Place, manifest: dict[str, Any]) -> None:
    with new.open("wb") as raw:
        # Records are compressed by their producers: more effort gains little.
        with tarfile.open(fileobj=raw, mode="w:gz", compresslevel=1) as tar:
            _add_text(tar, MANIFEST, json.dumps(manifest))
            tar.add(place.data, "data", filter=_kept)
            if place.password.exists():
                tar.add(place.password, "secrets/pgpass")
        raw.flush()
        os.fsync(raw.fileno())


def _add_text(tar: tarfile.TarFile, name: str, text: str) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(text.encode())
    tar.addfile(member, io.BytesIO(text.encode()))


def _kept(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if member.name.startswith(LEFT_OUT) else member


def _require_ours(tar: tarfile.TarFile, file: Path) -> None:
    first = tar.next()
    opened = tar.extractfile(first) if first is not None and first.name == MANIFEST else None
    try:
        manifest: dict[str, Any] = json.load(opened) if opened else {}
    except ValueError:
        manifest = {}
    if manifest.get("format") != FORMAT:
        raise OperationError(f"{file} is not a backup of this project, or of a later form of it")


def _give_to_server(directory: Path) -> None:
    """Let the server's user have its files, whoever had them where the backup was made."""
    for each in (directory, directory / "data"):
        each.chmod(0o700)
    if os.geteuid() == 0:
        owner = pwd.getpwnam(UNPRIVILEGED)
        for each in (directory, *directory.rglob("*")):
            os.chown(each, owner.pw_uid, owner.pw_gid, follow_symlinks=False)


def _put(new: Path, place: Place) -> None:
    """Put the restored files where they belong; a restore that is cut off here is run again."""
    before = place.directory / "data.before"
    if place.data.exists():
        shutil.rmtree(before, ignore_errors=True)
        place.data.rename(before)
    place.secrets.mkdir(mode=0o700, exist_ok=True)
    if (new / "secrets" / "pgpass").exists():
        (new / "secrets" / "pgpass").replace(place.password)
    (new / "data").rename(place.data)
    shutil.rmtree(new)
