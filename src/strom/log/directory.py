"""One entry of `log.dirs`: what lies beside the partitions, and which partitions are there.

    .lock                                 keeps a second process out
    meta.properties                       node id, cluster id, the directory's own id
    .kafka_cleanshutdown                  there only while no broker runs and the last one closed
                                          every log: then the checkpoints are exact
    *-checkpoint                          offsets of all partitions, see checkpoints.py
    <topic>-<n>/                          a partition
    <topic>-<n>.<id>-delete/              a deleted one, removed after a while
    <topic>-<n>.<id>-stray/               one that the cluster does not know; kept, not served
    <topic>-<n>.<id>-future/              a copy that will replace one in another directory

The marker of a clean stop is removed when the directory is taken into use, before any log is
opened; so a crash at any later time leaves none.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Self
from uuid import UUID

from strom.log.checkpoints import (
    CHECKPOINTS,
    CLEANER,
    HIGH_WATERMARK,
    LOG_START,
    RECOVERY_POINT,
    DamagedCheckpointError,
    TopicPartition,
    read_checkpoint,
    write_checkpoint,
)
from strom.log.disk import Disk, Lock

META = "meta.properties"
LOCK = ".lock"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
PARTITION_METADATA = "partition.metadata"
METADATA_TOPIC = "__cluster_metadata"
DELETE_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"
FUTURE_SUFFIX = "-future"
META_VERSION = "1"
#: Linux allows 255 bytes; Kafka leaves room in the same way.
NAME_LENGTH_MAX = 255
#: An id as it stands in the name of a directory.
UNIQUE_LENGTH = 32
#: The file is the same for all partitions of a topic; so many of them are not read again.
TOPICS_READ_MAX = 256


class UnformattedDirectoryError(Exception):
    """A directory without a readable meta.properties."""


class Meta(NamedTuple):
    """Whose directory it is."""

    node_id: int
    cluster_id: str
    directory_id: UUID


@dataclass(frozen=True, slots=True)
class FoundPartition:
    """A directory that holds a partition's log."""

    topic: str
    index: int
    directory: str
    #: From partition.metadata; None if that is missing or cannot be read.
    topic_id: UUID | None
    is_future: bool = False


class LogDirectory:
    """A directory of partitions that this process holds the lock of, or that has failed."""

    __slots__ = (
        "_lock",
        "_saved",
        "clean_epoch",
        "disk",
        "failed",
        "is_cordoned",
        "meta",
        "path",
        "points_lost",
        "was_clean",
    )

    def __init__(self, disk: Disk, path: str, meta: Meta | None, lock: Lock | None) -> None:
        self.disk = disk
        self.path = path
        #: None if it could not be read; then the directory has failed.
        self.meta = meta
        self._lock = lock
        #: What took it out of use.
        self.failed: Exception | None = None
        #: Whether it gets no new partitions.
        self.is_cordoned = False
        self.was_clean = False
        #: Whether the checkpoint of the recovery points was gone or damaged when it was read.
        self.points_lost = False
        #: The broker epoch that the last clean stop noted, or -1.
        self.clean_epoch = -1
        #: The hash of what each checkpoint file holds, so that an unchanged one is not written
        #: again; the offsets themselves would be 100 bytes a partition and file.
        self._saved: dict[str, int] = {}

    @property
    def id(self) -> UUID | None:
        """What the metadata calls the directory; None if that could not be read."""
        return None if self.meta is None else self.meta.directory_id

    @staticmethod
    def is_formatted(disk: Disk, path: str) -> bool:
        """Whether the directory has been given an owner."""
        return disk.exists(f"{path}/{META}")

    @staticmethod
    def format(disk: Disk, path: str, meta: Meta) -> None:
        """Give the directory its owner, and empty checkpoints."""
        disk.make_directory(path)
        for name in CHECKPOINTS:
            if not disk.exists(f"{path}/{name}"):
                write_checkpoint(disk, f"{path}/{name}", {}, sync=False)
        disk.write_atomically(f"{path}/{META}", write_meta(meta))

    @classmethod
    def open(cls, disk: Disk, path: str) -> Self:
        """Take the directory into use: lock it, read its owner, remove the mark of a clean stop.

        BlockingIOError if another process has it, UnformattedDirectoryError if nobody owns it.
        """
        if not cls.is_formatted(disk, path):
            raise UnformattedDirectoryError(f"No {META} in {path}")
        lock = disk.lock(f"{path}/{LOCK}")
        try:
            return cls.take(disk, path, lock)
        except (OSError, UnformattedDirectoryError):
            lock.release()
            raise

    @classmethod
    def take(cls, disk: Disk, path: str, lock: Lock) -> Self:
        """Take a directory into use whose lock is held already; `close` will give it back."""
        directory = cls(disk, path, read_meta(disk.read(f"{path}/{META}")), lock)
        directory._take_clean_mark()
        return directory

    @classmethod
    def lost(cls, disk: Disk, path: str, reason: Exception) -> Self:
        """Return a directory that could not be taken into use."""
        directory = cls(disk, path, None, None)
        directory.failed = reason
        return directory

    def _take_clean_mark(self) -> None:
        mark = f"{self.path}/{CLEAN_SHUTDOWN}"
        try:
            content = self.disk.read(mark)
        except FileNotFoundError:
            return
        self.was_clean = True
        try:
            self.clean_epoch = int(json.loads(content)["brokerEpoch"])
        except (ValueError, KeyError, TypeError):
            self.clean_epoch = -1
        self.disk.remove(mark)
        self.disk.sync_directory(self.path)

    def close(self, *, clean: bool, broker_epoch: int = -1) -> None:
        """Give the directory back; `clean` only if every log in it was closed and checkpointed."""
        try:
            if clean and self.failed is None:
                content = {"version": 0, "brokerEpoch": broker_epoch}
                data = json.dumps(content, separators=(",", ":")).encode()
                self.disk.write_atomically(f"{self.path}/{CLEAN_SHUTDOWN}", data)
        finally:
            if self._lock is not None:
                self._lock.release()

    # Checkpoints.

    def read_checkpoint(self, name: str) -> dict[TopicPartition, int]:
        """Return the offsets of a checkpoint file; none if it is missing or damaged."""
        try:
            return read_checkpoint(self.disk, f"{self.path}/{name}")
        except DamagedCheckpointError:
            # Without its offsets every log is read from its start, whatever the mark says.
            if name == RECOVERY_POINT:
                self.was_clean, self.points_lost = False, True
            return {}

    def write_checkpoint(self, name: str, offsets: Mapping[TopicPartition, int]) -> bool:
        """Replace a checkpoint file, if something has changed; tell whether it has."""
        content = hash(frozenset(offsets.items()))
        if self._saved.get(name) == content:
            return False
        write_checkpoint(self.disk, f"{self.path}/{name}", offsets)
        self._saved[name] = content
        return True

    def recovery_points(self) -> dict[TopicPartition, int]:
        """Return up to where each log is surely on disk."""
        if not self.disk.exists(f"{self.path}/{RECOVERY_POINT}"):
            self.points_lost = True
        return self.read_checkpoint(RECOVERY_POINT)

    def start_offsets(self) -> dict[TopicPartition, int]:
        """Return where each log begins."""
        return self.read_checkpoint(LOG_START)

    def high_watermarks(self) -> dict[TopicPartition, int]:
        """Return up to where each log was committed."""
        return self.read_checkpoint(HIGH_WATERMARK)

    def clean_offsets(self) -> dict[TopicPartition, int]:
        """Return up to where each log was compacted."""
        return self.read_checkpoint(CLEANER)

    # Partitions.

    def partition_path(self, topic: str, index: int) -> str:
        """Return where a partition's log is."""
        return f"{self.path}/{topic}-{index}"

    def deleted_path(self, topic: str, index: int, unique: str) -> str:
        """Return what a deleted partition's directory is called until it is removed."""
        return f"{self.path}/{_suffixed(topic, index, unique, DELETE_SUFFIX)}"

    def stray_path(self, topic: str, index: int, unique: str) -> str:
        """Return what the directory of a partition that nobody knows is called."""
        return f"{self.path}/{_suffixed(topic, index, unique, STRAY_SUFFIX)}"

    def future_path(self, topic: str, index: int, unique: str) -> str:
        """Return where a copy is built that will replace a partition's log."""
        return f"{self.path}/{_suffixed(topic, index, unique, FUTURE_SUFFIX)}"

    def list_partitions(self) -> list[FoundPartition]:
        """Return the partitions whose logs are here, but not the metadata log."""
        found = []
        for name in sorted(self.disk.directories(self.path)):
            parsed = parse_name(name)
            if parsed is not None and parsed[0] != METADATA_TOPIC:
                topic, index, is_future = parsed
                directory = f"{self.path}/{name}"
                topic_id = self.read_topic_id(directory)
                found.append(FoundPartition(topic, index, directory, topic_id, is_future))
        return found

    def list_deleted(self) -> list[str]:
        """Return the directories that only wait for their removal."""
        names = self.disk.directories(self.path)
        return [f"{self.path}/{name}" for name in sorted(names) if name.endswith(DELETE_SUFFIX)]

    def read_topic_id(self, directory: str) -> UUID | None:
        """Return the topic id that a partition's directory was made for."""
        try:
            return read_partition_metadata(self.disk.read(f"{directory}/{PARTITION_METADATA}"))
        except FileNotFoundError:
            return None

    def write_topic_id(self, directory: str, topic_id: UUID) -> None:
        """Note which topic a partition's directory is made for."""
        data = f"version: 0\ntopic_id: {write_id(topic_id)}".encode()
        # A half file is as good as none, which a crash may leave as well.
        self.disk.write(f"{directory}/{PARTITION_METADATA}", data)


def parse_name(name: str) -> tuple[str, int, bool] | None:
    """Return topic, partition and whether it is a future copy; None for other directories."""
    is_future = name.endswith(FUTURE_SUFFIX)
    if name.endswith((DELETE_SUFFIX, STRAY_SUFFIX)):
        return None
    if is_future:
        name = name.removesuffix(FUTURE_SUFFIX).rpartition(".")[0]
    topic, _, index = name.rpartition("-")
    if not topic or not index.isdecimal() or not index.isascii():
        return None
    return topic, int(index), is_future


def has_room_for_future(topic: str, index: int) -> bool:
    """Whether the name of a future copy has room for the topic's whole name.

    After a restart that name is all that tells whose copy it is.
    """
    tail = f"-{index}.{'0' * UNIQUE_LENGTH}{FUTURE_SUFFIX}"
    return len(topic) + len(tail) <= NAME_LENGTH_MAX


def _suffixed(topic: str, index: int, unique: str, suffix: str) -> str:
    tail = f"-{index}.{unique}{suffix}"
    # The id keeps the names apart where a long topic name has to be cut.
    return topic[: NAME_LENGTH_MAX - len(tail)] + tail


def write_id(identifier: UUID) -> str:
    """Return the id as Kafka prints it."""
    return urlsafe_b64encode(identifier.bytes).decode().rstrip("=")


def read_id(text: str) -> UUID:
    """Return the id that Kafka printed; ValueError if it is none."""
    return UUID(bytes=urlsafe_b64decode(text + "=="))


@lru_cache(TOPICS_READ_MAX)
def read_partition_metadata(data: bytes) -> UUID | None:
    """Return the topic id that the file names, or None if it is damaged."""
    fields = dict(line.partition(": ")[::2] for line in data.decode("ascii", "replace").split("\n"))
    try:
        return read_id(fields["topic_id"]) if fields["version"] == "0" else None
    except (KeyError, ValueError):
        return None


def write_meta(meta: Meta) -> bytes:
    """Return meta.properties."""
    return (
        "#\n"
        f"cluster.id={meta.cluster_id}\n"
        f"directory.id={write_id(meta.directory_id)}\n"
        f"node.id={meta.node_id}\n"
        f"version={META_VERSION}\n"
    ).encode()


def read_meta(data: bytes) -> Meta:
    """Return whose directory it is; UnformattedDirectoryError if the file does not say."""
    fields = {}
    for line in data.decode("utf-8", "replace").splitlines():
        if line.strip() and not line.startswith(("#", "!")):
            key, _, value = line.partition("=")
            fields[key.strip()] = value.strip()
    try:
        if fields["version"] != META_VERSION:
            raise UnformattedDirectoryError(f"{META} of version {fields['version']}")
        return Meta(int(fields["node.id"]), fields["cluster.id"], read_id(fields["directory.id"]))
    except (KeyError, ValueError) as error:
        raise UnformattedDirectoryError(f"{META} lacks or garbles {error}") from None
