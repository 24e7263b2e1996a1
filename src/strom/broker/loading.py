"""The logs that a start finds on disk: opened, recovered where need be, put aside if not ours.

    <topic>-<n>            a partition of ours is opened; any other becomes <topic>-<n>.<id>-stray
    ...-future             is left for the moves to go on with, or is the partition itself if
                           every directory could be read and none of them has another log of it
    two of one name        a move was under way: the longest is kept
    one of ours that the metadata has in a directory out of use    is left alone: it is what a move
                           has left behind, and what came later is there

All of it runs in a thread, before anybody is served. A directory that cannot be read while that
goes on is out of use, with all of its logs and nobody else's.
"""

import contextlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

from strom.broker.host import Host
from strom.log.directory import FoundPartition, LogDirectory
from strom.log.files import OpenFiles
from strom.log.log import Log
from strom.log.recovery import NO_POINT
from strom.metadata.image import Image
from strom.metadata.records import DIRECTORY_UNASSIGNED, TOPIC_RESOURCE
from strom.metadata.settings.values import BrokerSettings
from strom.replication.mover import longest

log = logging.getLogger("strom.loading")

TopicPartition = tuple[str, int]


class Opened(NamedTuple):
    """A log that was found on disk, and the high watermark that was noted for it."""

    directory: LogDirectory
    log: Log
    topic_id: UUID
    high_watermark: int


class Noted(NamedTuple):
    """What the checkpoints of a directory say of its logs; read once, for thousands of them."""

    recovery_points: dict[TopicPartition, int]
    start_offsets: dict[TopicPartition, int]
    high_watermarks: dict[TopicPartition, int]
    clean_offsets: dict[TopicPartition, int]


class Loading:
    """One reading of a broker's directories, by what the metadata and the settings say."""

    def __init__(
        self,
        host: Host,
        files: OpenFiles,
        node_id: int,
        directories: Sequence[LogDirectory],
        image: Image,
        settings: BrokerSettings,
    ) -> None:
        self._host = host
        self._files = files
        self._node_id = node_id
        self._directories = directories
        self._image = image
        self._settings = settings
        #: Copies that an earlier run has left unfinished.
        self.futures: list[tuple[FoundPartition, LogDirectory]] = []
        #: Something is noted of logs that are not there.
        self.names_gone = False

    def open_all(self) -> list[Opened]:
        """Open every log of ours, one of each name."""
        held: list[tuple[LogDirectory, list[FoundPartition]]] = []
        for directory in self._directories:
            if directory.failed is None:
                with noting_failure(directory):
                    held.append((directory, self._find(directory)))
        current = {name_of(each) for _, found in held for each in found if not each.is_future}
        opened: dict[TopicPartition, list[Opened]] = {}
        for directory, found in held:
            with noting_failure(directory):
                for each in self._open_found(directory, found, current):
                    opened.setdefault(each.log.name, []).append(each)
        is_complete = self._is_complete()
        return [
            self._longest(each)
            for name, each in opened.items()
            if is_complete or not self._is_out_of_reach(name)
        ]

    def _is_complete(self) -> bool:
        return all(each.failed is None for each in self._directories)

    def _is_out_of_reach(self, name: TopicPartition) -> bool:
        """Whether the metadata has the partition in a directory that could not be read."""
        state = self._image.partition(*name)
        assigned = None if state is None else state.directory_of(self._node_id)
        if assigned in (None, DIRECTORY_UNASSIGNED):
            return False
        return all(each.failed is not None or each.id != assigned for each in self._directories)

    def _find(self, directory: LogDirectory) -> list[FoundPartition]:
        """Return the partitions in a directory that are ours; put the others aside."""
        ours = []
        for found in directory.list_partitions():
            if self._is_ours(found):
                ours.append(found)
            else:
                self._set_aside(directory, found)
        return ours

    def _is_ours(self, found: FoundPartition) -> bool:
        topic = self._image.topics_by_name.get(found.topic)
        if topic is None or found.topic_id not in (None, topic.id):
            return False
        state = topic.partitions.get(found.index)
        return state is not None and self._node_id in state.replicas

    def _set_aside(self, directory: LogDirectory, found: FoundPartition) -> None:
        """Rename what the cluster does not know. It stays: the error may be the metadata's."""
        path = directory.stray_path(found.topic, found.index, self._host.new_id().hex)
        log.warning("%s-%d is not in the metadata: put aside as %s", found.topic, found.index, path)
        self._host.disk.rename(found.directory, path)

    def _open_found(
        self, directory: LogDirectory, found: list[FoundPartition], current: set[TopicPartition]
    ) -> list[Opened]:
        """Open the logs of one directory, all or none; leave copies that are not finished."""
        noted = Noted(
            directory.recovery_points(),
            directory.start_offsets(),
            directory.high_watermarks(),
            directory.clean_offsets(),
        )
        opened = []
        for each in found:
            if each.is_future and (name_of(each) in current or not self._is_complete()):
                self.futures.append((each, directory))
            else:
                opened.append(self._open(directory, self._promoted(directory, each), noted))
        here = {each.log.name for each in opened}
        self.names_gone |= any(not names.keys() <= here for names in noted)
        return opened

    def _promoted(self, directory: LogDirectory, found: FoundPartition) -> FoundPartition:
        """Let a copy be the partition if there is nothing else left of it."""
        if not found.is_future:
            return found
        path = directory.partition_path(found.topic, found.index)
        self._host.disk.rename(found.directory, path)
        return replace(found, directory=path, is_future=False)

    def _open(self, directory: LogDirectory, found: FoundPartition, noted: Noted) -> Opened:
        name = name_of(found)
        opened = Log.open(
            self._files,
            found.directory,
            self._settings.log_config(self._image.config((TOPIC_RESOURCE, found.topic))),
            name=name,
            clean=directory.was_clean and name in noted.recovery_points,
            recovery_point=noted.recovery_points.get(
                name, NO_POINT if directory.points_lost else 0
            ),
            start_offset=noted.start_offsets.get(name, 0),
            now_ms=self._host.now_ms(),
        )
        clean_offset = noted.clean_offsets.get(name, 0)
        # What is beyond the log is another log's.
        if clean_offset <= opened.end_offset:
            opened.clean_offset = clean_offset
        if opened.cut_bytes:
            log.warning("Cut %d bytes off %s-%d", opened.cut_bytes, *name)
        topic_id = self._image.topics_by_name[found.topic].id
        return Opened(directory, opened, topic_id, noted.high_watermarks.get(name, 0))

    def _longest(self, opened: list[Opened]) -> Opened:
        """Keep one of the logs that a move left under one name when the broker went down."""
        if len(opened) == 1:
            return opened[0]
        kept = longest([each.log for each in opened])
        for each in opened:
            if each.log is not kept:
                path = each.directory.deleted_path(*each.log.name, self._host.new_id().hex)
                log.warning("%s was being moved: %s is kept", each.log.directory, kept.directory)
                each.log.abandon(path)
        return next(each for each in opened if each.log is kept)


@contextlib.contextmanager
def noting_failure(directory: LogDirectory) -> Iterator[None]:
    """Take a directory out of use that fails before there are any partitions of it."""
    try:
        yield
    except OSError as error:
        directory.failed = error
        _tell(directory, error)


def _tell(directory: LogDirectory, error: OSError) -> None:
    log.error("The log directory %s failed (%s): its partitions are offline", directory.path, error)


def name_of(found: FoundPartition) -> TopicPartition:
    """Return which partition a directory holds."""
    return found.topic, found.index
