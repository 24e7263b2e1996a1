"""Formatting log directories: whose they are, and with what a new cluster begins.

    meta.properties                                            in every directory
    bootstrap.checkpoint                                       where the metadata log will be:
    __cluster_metadata-0/00000000000000000000-0000000000.checkpoint    its first voters

Whoever formats a directory holds its lock, so nobody else has it or is formatting it.

`meta.properties` is written last and synced. A power cut may leave the other two empty; then the
node begins with the same records, and with itself as the only voter.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from uuid import UUID

from strom.broker.quorum import BOOTSTRAP, DIRECTORY
from strom.broker.snapshots import SnapshotId, write_snapshot
from strom.log.directory import (
    LOCK,
    META,
    LogDirectory,
    Meta,
    UnformattedDirectoryError,
    read_meta,
    write_id,
)
from strom.log.disk import Disk, Lock
from strom.metadata.feature_decisions import bootstrap_records
from strom.raft.voters import Listener, ReplicaKey, Voters


@dataclass(frozen=True, slots=True)
class Plan:
    """How to format a node's directories."""

    node_id: int
    cluster_id: str
    #: Each directory with the id it gets; the metadata log goes into the first.
    directories: Sequence[tuple[str, UUID]]
    #: Where the other voters will reach this one.
    listeners: tuple[Listener, ...] = ()


def lock_directory(disk: Disk, path: str) -> Lock:
    """Take the lock of a directory, which is made if need be; BlockingIOError if it is in use."""
    disk.make_directory(path)
    return disk.lock(f"{path}/{LOCK}")


@contextmanager
def locked(disk: Disk, paths: Sequence[str]) -> Iterator[None]:
    """Keep others out of the directories for a while."""
    with ExitStack() as held:
        for path in lock_order(disk, paths):
            held.callback(lock_directory(disk, path).release)
        yield


def lock_order(disk: Disk, paths: Sequence[str]) -> list[str]:
    """Return the paths with those first that somebody may be using.

    So whoever finds one of them in use has not yet made any of the others.
    """
    return sorted(paths, key=lambda path: not disk.exists(f"{path}/{LOCK}"))


def format_storage(disk: Disk, plan: Plan, *, now_ms: int) -> None:
    """Format the directories that are not yet; a crash in between can be made good by a repeat."""
    for number, (path, identifier) in enumerate(plan.directories):
        if not LogDirectory.is_formatted(disk, path):
            if number == 0:
                key = ReplicaKey(plan.node_id, identifier)
                begin_metadata(disk, path, Voters.of(key, plan.listeners), now_ms=now_ms)
            LogDirectory.format(disk, path, Meta(plan.node_id, plan.cluster_id, identifier))


def begin_metadata(disk: Disk, path: str, voters: Voters, *, now_ms: int) -> None:
    """Lay down what the metadata log of a new cluster begins with."""
    log_path = f"{path}/{DIRECTORY}"
    disk.make_directory(log_path)
    first = write_snapshot((), epoch=0, voters=voters, last_timestamp_ms=now_ms, now_ms=now_ms)
    disk.write_atomically(f"{log_path}/{SnapshotId(0, 0).file_name}", first, sync=False)
    bootstrap = write_snapshot(
        bootstrap_records(), epoch=0, voters=None, last_timestamp_ms=0, now_ms=now_ms
    )
    disk.write_atomically(f"{path}/{BOOTSTRAP}", bootstrap, sync=False)


@dataclass(frozen=True, slots=True)
class Found:
    """What a log directory says about itself."""

    path: str
    #: None if the directory is not formatted, does not exist, or cannot be read.
    meta: Meta | None
    #: What is wrong with it, for its owner to read.
    problem: str | None = None
    #: Why it cannot be used. A directory that is only new has none.
    error: Exception | None = None


def inspect_storage(disk: Disk, paths: Sequence[str]) -> list[Found]:
    """Return what each directory says about itself, and what does not fit together."""
    found = [_inspect(disk, path) for path in paths]
    return [_compared(each, found) for each in found]


def _inspect(disk: Disk, path: str) -> Found:
    try:
        return Found(path, read_meta(disk.read(f"{path}/{META}")))
    except FileNotFoundError:
        is_there = disk.exists(path)
        return Found(path, None, f"{path} {'is not formatted' if is_there else 'does not exist'}.")
    except UnformattedDirectoryError as error:
        return Found(path, None, f"{path} is not formatted: {error}.", error)
    except OSError as error:
        return Found(path, None, f"{path} cannot be read: {error.strerror}.", error)


def _compared(found: Found, all_found: Sequence[Found]) -> Found:
    """Add what does not fit to the others, in Kafka's words."""
    meta = found.meta
    owned = [(each.path, each.meta) for each in all_found if each.meta is not None]
    if meta is None:
        return found
    first = owned[0][1]
    twins = [path for path, each in owned if each.directory_id == meta.directory_id]
    if meta.cluster_id != first.cluster_id:
        problem = (
            f"Invalid cluster.id in: {found.path}/{META}. "
            f"Expected {first.cluster_id}, but read {meta.cluster_id}"
        )
    elif meta.node_id != first.node_id:
        problem = (
            f"Stored node id {meta.node_id} doesn't match previous node id {first.node_id} "
            f"in {found.path}/{META}."
        )
    elif len(twins) > 1:
        problem = (
            f"Duplicate directory ID {write_id(meta.directory_id)} found. "
            f"It was the ID of {twins[0]}, but also of {twins[1]}"
        )
    else:
        return found
    return replace(found, problem=problem)
