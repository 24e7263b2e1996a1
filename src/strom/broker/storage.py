"""Formatting log directories: whose they are, and with what a new cluster begins.

    meta.properties                                            in every directory
    bootstrap.checkpoint                                       where the metadata log will be:
    __cluster_metadata-0/00000000000000000000-0000000000.checkpoint    its first voters

`meta.properties` is written last and synced. A power cut may leave the other two empty; then the
node begins with the same records, and with itself as the only voter.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from strom.broker.quorum import BOOTSTRAP, DIRECTORY
from strom.broker.snapshots import SnapshotId, write_snapshot
from strom.log.directory import META, LogDirectory, Meta, UnformattedDirectoryError, read_meta
from strom.log.disk import Disk
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


def format_storage(disk: Disk, plan: Plan, *, now_ms: int) -> None:
    """Format the directories that are not yet; a crash in between can be made good by a repeat."""
    path, directory_id = plan.directories[0]
    if not LogDirectory.is_formatted(disk, path):
        _begin_metadata(disk, path, ReplicaKey(plan.node_id, directory_id), plan, now_ms)
    for each, identifier in plan.directories:
        if not LogDirectory.is_formatted(disk, each):
            LogDirectory.format(disk, each, Meta(plan.node_id, plan.cluster_id, identifier))


def _begin_metadata(disk: Disk, path: str, key: ReplicaKey, plan: Plan, now_ms: int) -> None:
    log_path = f"{path}/{DIRECTORY}"
    disk.make_directory(log_path)
    voters = write_snapshot(
        (),
        epoch=0,
        voters=Voters.of(key, plan.listeners),
        last_timestamp_ms=now_ms,
        now_ms=now_ms,
    )
    disk.write_atomically(f"{log_path}/{SnapshotId(0, 0).file_name}", voters, sync=False)
    bootstrap = write_snapshot(
        bootstrap_records(), epoch=0, voters=None, last_timestamp_ms=0, now_ms=now_ms
    )
    disk.write_atomically(f"{path}/{BOOTSTRAP}", bootstrap, sync=False)


@dataclass(frozen=True, slots=True)
class Found:
    """What a log directory says about itself."""

    path: str
    #: None if the directory is not formatted, or does not exist.
    meta: Meta | None
    #: What is wrong with it, for its owner to read.
    problem: str | None = None


def inspect_storage(disk: Disk, paths: Sequence[str]) -> list[Found]:
    """Return what each directory says about itself, and what does not fit together."""
    found = [_inspect(disk, path) for path in paths]
    metas = [each.meta for each in found if each.meta is not None]
    return [_compare(each, metas) for each in found]


def _inspect(disk: Disk, path: str) -> Found:
    if not disk.exists(path):
        return Found(path, None, f"{path} does not exist.")
    try:
        return Found(path, read_meta(disk.read(f"{path}/{META}")))
    except FileNotFoundError:
        return Found(path, None, f"{path} is not formatted.")
    except UnformattedDirectoryError as error:
        return Found(path, None, f"{path} is not formatted: {error}.")


def _compare(found: Found, metas: Sequence[Meta]) -> Found:
    meta = found.meta
    if meta is None:
        return found
    first = metas[0]
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
    elif sum(meta.directory_id == each.directory_id for each in metas) > 1:
        problem = f"Duplicate directory ID {meta.directory_id} found."
    else:
        return found
    return Found(found.path, meta, problem)
