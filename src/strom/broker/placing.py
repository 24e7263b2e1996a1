"""Where a partition's log is begun, and its beginning.

    assigned to a directory here          there; nowhere while that is out of use
    new                                   where the fewest are
    not new, and its log is not found     nowhere while it may only be out of reach, or while
                                          others count on what this broker had

A directory without room is passed over where there is a choice. A log that cannot be made leaves
nothing behind.
"""

import contextlib
from collections import Counter
from collections.abc import Container, Iterable
from dataclasses import dataclass
from uuid import UUID

from strom.broker.host import Host
from strom.log.config import LogConfig
from strom.log.directory import LogDirectory
from strom.log.files import OpenFiles
from strom.log.log import Log
from strom.metadata import image as cluster
from strom.metadata.records import DIRECTORY_UNASSIGNED
from strom.replication.partition import Partition


@dataclass(frozen=True, slots=True)
class Wanted:
    """A partition that this broker should have a log of."""

    topic: cluster.Topic
    index: int
    state: cluster.Partition

    @property
    def name(self) -> tuple[str, int]:
        """The topic's name and the number."""
        return self.topic.name, self.index


class Places:
    """The log directories of one broker, for those who look for a place."""

    def __init__(
        self, host: Host, files: OpenFiles, node_id: int, directories: list[LogDirectory]
    ) -> None:
        self._host = host
        self._files = files
        self._node_id = node_id
        self._directories = directories

    def usage(self, partitions: Iterable[Partition]) -> Counter[LogDirectory]:
        """Return how many partitions are in each directory; of one alone nobody asks that."""
        several = len(self._directories) > 1
        return Counter(each.directory for each in partitions) if several else Counter()

    def find(
        self,
        wanted: Wanted,
        withheld: UUID | None,
        used: Counter[LogDirectory],
        full: Container[LogDirectory],
    ) -> LogDirectory | None:
        """Return where a partition gets a log; None if it may have one that is out of reach.

        `withheld` is the id of the topic of this name of which that was said before. A new one
        goes where the fewest are, by the count of those that are used, and not where it is full.
        If all directories are cordoned it was placed here by hand, and goes into the first.
        """
        assigned = wanted.state.directory_of(self._node_id)
        for directory in self._directories:
            if assigned is not None and directory.id == assigned:
                return directory if directory.failed is None else None
        is_unassigned = assigned in (None, DIRECTORY_UNASSIGNED)
        is_new = is_unassigned and withheld != wanted.topic.id
        online = [each for each in self._directories if each.failed is None]
        is_complete = len(online) == len(self._directories)
        if not is_new and (not is_complete or is_counted_on(self._node_id, wanted.state)):
            return None
        if not online:
            return None
        open_ones = [each for each in online if not each.is_cordoned] or online[:1]
        return min(open_ones, key=lambda each: (each in full, used[each]))

    def create(self, directory: LogDirectory, wanted: Wanted, config: LogConfig) -> Log:
        """Begin an empty log in the directory; if that fails, it has not been begun."""
        path, disk = directory.partition_path(*wanted.name), self._host.disk
        was_there = disk.exists(path)
        try:
            disk.make_directory(path)
            directory.write_topic_id(path, wanted.topic.id)
            return Log.open(
                self._files,
                path,
                config,
                name=wanted.name,
                clean=True,
                recovery_point=0,
                start_offset=0,
                now_ms=self._host.now_ms(),
            )
        except OSError:
            if not was_there:
                with contextlib.suppress(OSError):
                    disk.remove_tree(path)
            raise


def is_counted_on(node_id: int, state: cluster.Partition) -> bool:
    """Whether the node is one of those who are taken to have all of the partition's records."""
    counted_on = state.isr, state.eligible_leaders, state.last_known_leaders
    return any(node_id in nodes for nodes in counted_on)
