"""The log directories at start: whose they are, locked, formatted if they are new.

    look ──▶ lock ──▶ look again ──▶ format what is new ──▶ take into use

What is wrong for all to see is told before anything is touched: data of another node or cluster,
the metadata log in another place than the settings say. Nobody formats what is not locked.

A directory that cannot be used is lost: the node starts with the others, and its partitions are
offline. But no node starts without its metadata log, or without any directory for partitions.
"""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from strom.broker.host import Host
from strom.broker.quorum import (
    DIRECTORY,
    QUORUM_STATE,
    MetadataLostError,
    Quorum,
    QuorumConfig,
    Surroundings,
)
from strom.broker.storage import (
    Found,
    begin_metadata,
    inspect_storage,
    lock_directory,
    lock_order,
)
from strom.log.directory import META, LogDirectory, Meta, UnformattedDirectoryError, write_id
from strom.log.disk import Lock
from strom.metadata.settings.values import BrokerSettings
from strom.raft.voters import ReplicaKey, Voters

log = logging.getLogger("strom.startup")


class StartupError(Exception):
    """Why the broker cannot start; one line that says what to do."""


class Storage(NamedTuple):
    """The directories of a node that has started."""

    cluster_id: str
    #: Where the metadata log is.
    metadata: LogDirectory
    #: Those that hold partitions, in the order of `log.dirs`, also the lost ones.
    logs: list[LogDirectory]

    def close(self, *, clean: bool, broker_epoch: int = -1) -> None:
        """Give every directory back; `clean` only if all that is in them was closed."""
        others = (each for each in self.logs if each is not self.metadata)
        for directory in (self.metadata, *others):
            try:
                directory.close(clean=clean, broker_epoch=broker_epoch)
            except OSError as error:
                log.warning("%s has no mark of a clean stop: %s", directory.path, told(error))


def open_quorum(storage: Storage, node_id: int, config: QuorumConfig, at: Surroundings) -> Quorum:
    """Load the metadata log, without which there is no node."""
    path, directory_id = storage.metadata.path, storage.metadata.id
    assert directory_id is not None
    try:
        return Quorum.open(path, ReplicaKey(node_id, directory_id), config, at)
    except (OSError, MetadataLostError) as error:
        raise StartupError(f"cannot use {path}/{DIRECTORY}: {told(error)}") from None


def open_directories(host: Host, settings: BrokerSettings) -> Storage:
    """Take the directories of the settings into use."""
    return _Opening(host, settings).run()


class _Opening:
    """One attempt to take the directories into use."""

    def __init__(self, host: Host, settings: BrokerSettings) -> None:
        self._host = host
        self._disk = host.disk
        self._node_id = settings.node_id
        self._metadata = settings.metadata_log_dir
        self._logs = list(dict.fromkeys(settings.log_dirs))
        self._paths = list(dict.fromkeys((self._metadata, *self._logs)))
        self._locks: dict[str, Lock] = {}
        #: The directories that cannot be used, and why.
        self._lost: dict[str, Exception] = {}

    def run(self) -> Storage:
        with ExitStack() as on_failure:
            self._look()
            on_failure.callback(self._unlock)
            for path in lock_order(self._disk, self._usable()):
                with self._losing(path):
                    self._locks[path] = lock_directory(self._disk, path)
            # Until they were locked, others may have formatted them.
            cluster_id = self._format(self._look())
            opened = self._take()
            on_failure.pop_all()
        for path, reason in self._lost.items():
            opened[path] = LogDirectory.lost(self._disk, path, reason)
            log.error(
                "The log directory %s cannot be used (%s): its partitions are offline",
                path,
                told(reason),
            )
        return Storage(cluster_id, opened[self._metadata], [opened[path] for path in self._logs])

    def _usable(self) -> list[str]:
        """Return the directories that are not lost, the one of the metadata log first."""
        return [path for path in self._paths if path not in self._lost]

    # What may be lost, and what may not.

    @contextmanager
    def _losing(self, path: str) -> Iterator[None]:
        """Go on without the directory if its disk fails."""
        try:
            yield
        except BlockingIOError:
            raise StartupError(
                f"another process uses {path}: stop it, or choose other log.dirs"
            ) from None
        except (OSError, UnformattedDirectoryError) as error:
            self._lose(path, error)

    def _lose(self, path: str, reason: Exception) -> None:
        if path == self._metadata:
            raise StartupError(f"cannot use {path}: {told(reason)}") from reason
        self._lost[path] = reason
        if path in self._locks:
            self._locks.pop(path).release()
        if all(each in self._lost for each in self._logs):
            reasons = "; ".join(f"{each}: {told(why)}" for each, why in self._lost.items())
            raise StartupError(f"cannot use any of log.dirs: {reasons}") from reason

    # Looking.

    def _look(self) -> list[Found]:
        """Return what the usable directories say; raise if they are not this node's to use."""
        usable = []
        for each in inspect_storage(self._disk, self._usable()):
            if each.error is not None:
                self._lose(each.path, each.error)
            else:
                self._check(each)
                usable.append(each)
        self._check_metadata(usable)
        return usable

    def _check(self, found: Found) -> None:
        if found.meta is None:
            return
        if found.problem is not None:
            raise StartupError(found.problem)
        if found.meta.node_id != self._node_id:
            raise StartupError(
                f"the data in {found.path} belongs to node {found.meta.node_id}, and node.id is "
                f"{self._node_id}: set node.id={found.meta.node_id}, or other log.dirs"
            )

    def _check_metadata(self, found: list[Found]) -> None:
        """Refuse to begin anew with metadata where there is some already."""
        for each in found:
            if each.path != self._metadata and self._disk.exists(f"{each.path}/{DIRECTORY}"):
                raise StartupError(
                    f"the metadata log is in {each.path}: set metadata.log.dir={each.path}, "
                    f"which is {self._metadata} now"
                )
        first, *others = found
        if first.meta is not None:
            return
        owned = next((each.path for each in others if each.meta is not None), None)
        if owned is not None:
            raise StartupError(
                f"the metadata log should be in {first.path}, which is not formatted, but {owned} "
                "is in use already: bring the directory back, or choose other log.dirs"
            )
        if self._disk.exists(f"{first.path}/{DIRECTORY}/{QUORUM_STATE}"):
            raise StartupError(
                f"there is a metadata log in {first.path}, but no {META} that says whose: "
                "bring the file back, or choose other log.dirs"
            )

    # Taking.

    def _unlock(self) -> None:
        for lock in self._locks.values():
            lock.release()

    def _format(self, found: list[Found]) -> str:
        """Give the new directories their owner, the metadata log's first; return the cluster."""
        owner = found[0].meta
        cluster_id = write_id(self._host.new_id()) if owner is None else owner.cluster_id
        for each in found:
            if each.meta is None:
                with self._losing(each.path):
                    self._format_one(each.path, cluster_id)
        return cluster_id

    def _format_one(self, path: str, cluster_id: str) -> None:
        directory_id = self._host.new_id()
        if path == self._metadata:
            voters = Voters.of(ReplicaKey(self._node_id, directory_id), ())
            begin_metadata(self._disk, path, voters, now_ms=self._host.now_ms())
        LogDirectory.format(self._disk, path, Meta(self._node_id, cluster_id, directory_id))

    def _take(self) -> dict[str, LogDirectory]:
        opened = {}
        for path in self._usable():
            with self._losing(path):
                opened[path] = LogDirectory.take(self._disk, path, self._locks[path])
        return opened


def told(reason: Exception) -> str:
    """Say what went wrong, without its number and without repeating where."""
    return (isinstance(reason, OSError) and reason.strerror) or str(reason)
