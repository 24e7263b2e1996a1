# Compiled by mypyc.
"""The partitions that this broker holds: their logs opened, created, taken out of use.

    follow(image, delta)   creates, deletes and changes partitions as the metadata says
    leader_of(topic, n)    the partition for who wants to write or read, or the reason why not

A log directory that fails takes its own partitions offline and no others. They stay known, so
that clients hear KAFKA_STORAGE_ERROR instead of "unknown". And they stay offline: a partition
that may have a log which is only out of reach is never begun anew with an empty one. Which
directory it is in is known from the metadata (KIP-858), so `reports` is given every partition
that lies elsewhere than the metadata says.

A directory that is full is no broken one. A partition for which there is no room is begun later;
until then clients hear KAFKA_STORAGE_ERROR of it, and ask again.

What is on disk is opened by `loading`, in a thread. The maps below change on the loop only.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator
from typing import Final
from uuid import UUID

from strom.broker.host import Host
from strom.broker.loading import Loading, Opened, noting_failure
from strom.broker.noted import NOTED, gather
from strom.broker.placing import Places, Wanted
from strom.log.cold import DamagedSegmentError
from strom.log.config import LogConfig
from strom.log.directory import FoundPartition, LogDirectory
from strom.log.disk import is_short
from strom.log.files import OpenFiles
from strom.metadata import image as cluster
from strom.metadata.delta import Delta
from strom.metadata.image import Image, Resource
from strom.metadata.records import TOPIC_RESOURCE
from strom.metadata.settings.values import BrokerSettings
from strom.replication.partition import Partition
from strom.wire.errors import ErrorCode, KafkaError

log = logging.getLogger("strom.replicas")

#: How many logs are created or dropped before others get their turn on the loop. One is several
#: files: a millisecond, and more on a disk that is busy.
LOGS_AT_ONCE: Final = 4

#: How many partitions are looked at, or told what they are now, before others get their turn.
CHANGES_AT_ONCE: Final = 200

#: How many partitions a line of the log names.
NAMES_TOLD_MAX: Final = 10

TopicPartition = tuple[str, int]
#: A partition as the metadata names it.
Place = tuple[UUID, int]


class Replicas:
    """All partitions of one broker, by topic and number."""

    def __init__(
        self,
        host: Host,
        node_id: int,
        directories: list[LogDirectory],
        start_task: Callable[[Coroutine[None, None, None]], object],
    ) -> None:
        self._host = host
        self._node_id = node_id
        self.directories = directories
        self._start_task = start_task
        self.files = OpenFiles(host.disk, open_max=host.open_segments_max, rng=host.rng)
        self._places = Places(host, self.files, node_id, directories)
        self._partitions: dict[str, dict[int, Partition]] = {}
        #: Assigned to this broker, but in a directory that is out of use; with their topics' ids.
        self._offline: dict[TopicPartition, UUID] = {}
        #: Assigned to this broker, but there was no room for their logs; with their topics' ids.
        self._unmade: dict[TopicPartition, UUID] = {}
        #: Copies that an earlier run has left unfinished, to be gone on with after the start.
        self.futures: list[tuple[FoundPartition, LogDirectory]] = []
        #: What was told of damaged segments; once is enough.
        self._damaged: set[str] = set()
        #: The directories that were full when something was last to be written there.
        self._short: set[LogDirectory] = set()
        #: Directories of which a checkpoint is being written, by their path.
        self._writing: dict[str, asyncio.Future[None]] = {}
        #: A checkpoint may name a log that is gone, since it was dropped, or since a crash.
        self._names_gone = False
        #: The partitions that are not where the metadata says, each with where it is.
        self.unnoted: dict[Place, LogDirectory] = {}
        #: There are some of those, or directories have failed or were cordoned, since the
        #: controller was last told.
        self.news = asyncio.Event()

    # For handlers.

    def leader_of(self, topic: str, index: int) -> Partition:
        """Return the partition if this broker leads it; raise a KafkaError that says why not."""
        of_topic = self._partitions.get(topic)
        partition = None if of_topic is None else of_topic.get(index)
        if partition is None:
            if (topic, index) in self._offline or (topic, index) in self._unmade:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if partition.progress is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return partition

    def find(self, topic: str | None, index: int) -> Partition | None:
        """Return the partition, whatever this broker is to it."""
        of_topic = self._partitions.get(topic or "")
        return None if of_topic is None else of_topic.get(index)

    def holds(self, partition: Partition) -> bool:
        """Whether this very partition is here still, and not another one of its name."""
        return self.find(partition.topic, partition.index) is partition

    def partitions(self) -> Iterator[Partition]:
        """Yield every partition that is online."""
        for of_topic in self._partitions.values():
            yield from of_topic.values()

    def partitions_in(self, directory: LogDirectory) -> list[Partition]:
        """Return the partitions whose logs are in the directory."""
        return [each for each in self.partitions() if each.directory is directory]

    def relocate(self, partition: Partition, directory: LogDirectory) -> None:
        """Take notice that the partition's log is in another directory now."""
        partition.directory = directory
        # Who moves a partition tells of it; only what would be told later has to be put right.
        place = partition.topic_id, partition.index
        if place in self.unnoted:
            self.unnoted[place] = directory

    @property
    def online_directories(self) -> list[LogDirectory]:
        """The directories that can be used."""
        return [each for each in self.directories if each.failed is None]

    @property
    def is_complete(self) -> bool:
        """Whether no directory is out of use."""
        return all(each.failed is None for each in self.directories)

    def cordon(self, settings: BrokerSettings) -> None:
        """Take notice of which directories get no new partitions."""
        for directory in self.directories:
            is_cordoned = settings.is_cordoned(directory.path)
            if directory.is_cordoned != is_cordoned:
                directory.is_cordoned = is_cordoned
                self.news.set()

    # Start.

    async def load(self, image: Image, settings: BrokerSettings) -> None:
        """Open the logs on disk that the image knows; recover those that need it."""
        self.cordon(settings)
        # The broker may have been stopped before their time was up.
        for directory in self.online_directories:
            with noting_failure(directory):
                self._remove_directories_later(directory.list_deleted(), settings)
        found = Loading(self._host, self.files, self._node_id, self.directories, image, settings)
        opened = await self._host.offload(found.open_all)
        self.futures = found.futures
        self._names_gone = found.names_gone
        if not self.is_complete:
            self.news.set()
        for each in opened:
            self._take(each, image, settings)
        missing = [
            Wanted(topic, index, state)
            for topic in image.topics_by_name.values()
            for index, state in topic.partitions.items()
            if self._node_id in state.replicas and self.find(topic.name, index) is None
        ]
        if not self.is_complete:
            # One that was not yet assigned when the broker went down may have its log there.
            self._offline = {each.name: each.topic.id for each in missing}
        if missing:
            await self._create_all(missing, image, settings)

    def _take(self, opened: Opened, image: Image, settings: BrokerSettings) -> None:
        topic, index = opened.log.name
        partition = Partition(opened.topic_id, self._node_id, opened.log, opened.directory)
        self._partitions.setdefault(topic, {})[index] = partition
        self._offline.pop((topic, index), None)
        self._unmade.pop((topic, index), None)
        state = image.partition(topic, index)
        if state is not None:
            if state.directory_of(self._node_id) != opened.directory.id:
                self.unnoted[opened.topic_id, index] = opened.directory
                self.news.set()
            self._assume_role(partition, state, opened.high_watermark)
        self._configure(partition, image, settings)

    # Following the metadata.

    async def follow(self, image: Image, delta: Delta, settings: BrokerSettings) -> None:
        """Bring the partitions into the state that the image describes."""
        created: list[Wanted] = []
        dropped: list[TopicPartition] = []
        for number, change in enumerate(delta.changes(), 1):
            if number % CHANGES_AT_ONCE == 0:
                await asyncio.sleep(0)
            name, after = (change.topic.name, change.index), change.after
            partition = self.find(*name)
            if after is None or self._node_id not in after.replicas:
                self._forget(change.topic, change.index)
                # A topic of the same name may be there already, with another id.
                if partition is not None and partition.topic_id == change.topic.id:
                    dropped.append(name)
            elif partition is not None and partition.topic_id == change.topic.id:
                self._assume_role(partition, after, partition.high_watermark)
                self._configure(partition, image, settings)
            else:
                created.append(Wanted(change.topic, change.index, after))
        await self._drop_all(dropped, settings)
        if created:
            await self._create_all(created, image, settings)
        await self._configure_all(self._of_topics(delta.configs), image, settings)

    def _of_topics(self, resources: Iterable[Resource]) -> list[Partition]:
        return [
            partition
            for resource_type, topic in resources
            if resource_type == TOPIC_RESOURCE
            for partition in self._partitions.get(topic, {}).values()
        ]

    async def reconfigure(self, image: Image, settings: BrokerSettings) -> None:
        """Give every log its settings again after the broker's own have changed."""
        self.cordon(settings)
        await self._configure_all(list(self.partitions()), image, settings)

    async def _configure_all(
        self, partitions: list[Partition], image: Image, settings: BrokerSettings
    ) -> None:
        for number, partition in enumerate(partitions, 1):
            self._configure(partition, image, settings)
            if number % CHANGES_AT_ONCE == 0:
                await asyncio.sleep(0)

    def _configure(self, partition: Partition, image: Image, settings: BrokerSettings) -> None:
        overrides = image.config((TOPIC_RESOURCE, partition.topic))
        config = settings.log_config(overrides)
        if partition.log.config is not config:
            partition.log.config = config
        state = image.partition(partition.topic, partition.index)
        if state is not None:
            # Of more than there are nobody could ever write with acks=all.
            in_sync_min = settings.min_insync_replicas(overrides)
            partition.in_sync_min = min(in_sync_min, len(state.replicas))

    def _assume_role(
        self, partition: Partition, state: cluster.Partition, high_watermark: int
    ) -> None:
        partition.leader_id = state.leader
        if state.leader != self._node_id:
            partition.resign()
            return
        try:
            partition.lead(state.leader_epoch, state.isr, high_watermark)
        except OSError as error:
            # A leader writes down its epoch first.
            self.fail(partition.directory, error)

    async def _create_all(
        self,
        wanted: Iterable[Wanted],
        image: Image,
        settings: BrokerSettings,
    ) -> None:
        """Begin the logs of partitions, where nothing is noted of others of their names."""
        # What has no room to note that has none for them.
        full = await self._forget_gone()
        withheld = []
        used = self._places.usage(self.partitions())
        for number, each in enumerate(wanted, 1):
            config = settings.log_config(image.config((TOPIC_RESOURCE, each.topic.name)))
            made = self._create(each, config, used, full)
            if made is not None:
                self._take(made, image, settings)
                used[made.directory] += 1
            elif each.name not in self._unmade:
                self._offline[each.name] = each.topic.id
                withheld.append(f"{each.topic.name}-{each.index}")
            if number % LOGS_AT_ONCE == 0:
                await asyncio.sleep(0)
        if withheld:
            log.warning(
                "%d partitions are offline until their log directory is back: %s",
                len(withheld),
                ", ".join(withheld[:NAMES_TOLD_MAX]),
            )

    def _create(
        self,
        wanted: Wanted,
        config: LogConfig,
        used: Counter[LogDirectory],
        full: set[LogDirectory],
    ) -> Opened | None:
        """Begin a partition's log, in one of the directories that are not known to be full."""
        withheld = self._offline.get(wanted.name)
        while directory := self._places.find(wanted, withheld, used, full):
            if directory in full:
                self._unmade[wanted.name] = wanted.topic.id
                return None
            try:
                created = self._places.create(directory, wanted, config)
                return Opened(directory, created, wanted.topic.id, 0)
            except OSError as error:
                if not is_short(error):
                    self._unmade.pop(wanted.name, None)
                    self.fail(directory, error)
                    return None
                self._note_short(directory, error)
                full.add(directory)
        return None

    async def create_unmade(self, image: Image, settings: BrokerSettings) -> bool:
        """Try again to begin the logs for which there was no room; return whether one is there."""
        before = len(self._unmade)
        if not before:
            return False
        wanted = [
            Wanted(topic, index, topic.partitions[index])
            for (_, index), topic_id in self._unmade.items()
            if (topic := image.topics_by_id.get(topic_id)) is not None
        ]
        await self._create_all(wanted, image, settings)
        return len(self._unmade) < before

    def _forget(self, topic: cluster.Topic, index: int) -> None:
        """Take note that the partition is no longer ours; one of the same name may be."""
        self.unnoted.pop((topic.id, index), None)
        for waiting in (self._offline, self._unmade):
            if waiting.get((topic.name, index)) == topic.id:
                del waiting[topic.name, index]

    async def _drop_all(self, names: Iterable[TopicPartition], settings: BrokerSettings) -> None:
        removed: list[str] = []
        for number, (topic, index) in enumerate(names, 1):
            partition = self._partitions.get(topic, {}).pop(index, None)
            if partition is None:
                # Its directory has failed meanwhile, perhaps over one of the others.
                self._offline.pop((topic, index), None)
                continue
            if not self._partitions[topic]:
                del self._partitions[topic]
            partition.resign()
            self._names_gone = True
            path = partition.directory.deleted_path(topic, index, self._host.new_id().hex)
            try:
                partition.log.abandon(path)
                removed.append(path)
            except OSError as error:
                self.fail(partition.directory, error)
            if number % LOGS_AT_ONCE == 0:
                await asyncio.sleep(0)
        self._remove_directories_later(removed, settings)

    def _remove_directories_later(self, paths: list[str], settings: BrokerSettings) -> None:
        if paths:
            delay_ms = settings.number("log.segment.delete.delay.ms")
            self.remove_later(paths, delay_ms, self._host.disk.remove_tree)

    def remove_later(
        self, paths: Iterable[str], delay_ms: int, remove: Callable[[str], None]
    ) -> None:
        """Remove files or directories, off the loop, after the delay."""
        self._start_task(self._remove(list(paths), delay_ms, remove))

    async def _remove(self, paths: list[str], delay_ms: int, remove: Callable[[str], None]) -> None:
        await asyncio.sleep(delay_ms / 1000)
        for path in paths:
            try:
                await self._host.offload(lambda path=path: remove(path))  # type: ignore[misc]
            except OSError as error:
                log.warning("Cannot remove %s: %s", path, error)

    # Failures.

    def fail(self, directory: LogDirectory, error: OSError) -> None:
        """Take a directory out of use, and its partitions offline."""
        if directory.failed is not None:
            return
        directory.failed = error
        gone = self.partitions_in(directory)
        log.error(
            "The log directory %s failed (%s): %d partitions are offline",
            directory.path,
            error,
            len(gone),
        )
        for each in gone:
            del self._partitions[each.topic][each.index]
            self._offline[each.topic, each.index] = each.topic_id
            each.resign()
        self.news.set()

    def check(self, partition: Partition) -> None:
        """Look whether the partition's log has found its disk broken, or full."""
        error, refused = partition.log.failed, partition.log.refused
        partition.log.refused = None
        if refused is not None:
            self._note_short(partition.directory, refused)
        # A log that was deleted meanwhile proves nothing about its disk.
        if error is not None and self.holds(partition):
            self.fail(partition.directory, error)

    def note_unreadable(self, topic: str | None, index: int, error: OSError) -> ErrorCode:
        """Take notice that a partition could not be read; return what to tell who wanted to."""
        if isinstance(error, DamagedSegmentError):
            # Of one segment, and it stays so: every reader will come upon it.
            if (told := str(error)) not in self._damaged:
                self._damaged.add(told)
                log.error("%s-%d cannot be read: %s", topic, index, told)
            return ErrorCode.CORRUPT_MESSAGE
        if (partition := self.find(topic, index)) is not None:
            self.blame(partition, error)
        return ErrorCode.KAFKA_STORAGE_ERROR

    def note_unsent(self, file: object, error: OSError) -> None:
        """Take notice that a file of a log, while it was being sent, could not be read."""
        for partition in self.partitions():
            if any(each.is_in(file) for each in partition.log.segments):
                self.blame(partition, error)
                return

    def blame(self, partition: Partition, error: OSError) -> None:
        """Take the partition's directory out of use, unless it is no fault of the disk."""
        if is_short(error):
            self._note_short(partition.directory, error)
        else:
            partition.log.failed = error
            self.check(partition)

    def _note_short(self, directory: LogDirectory, error: OSError) -> None:
        """Say, once while it lasts, that a directory is full: it is no broken one."""
        if directory not in self._short:
            self._short.add(directory)
            log.warning("The log directory %s is tried again later: %s", directory.path, error)

    # Checkpoints.

    async def checkpoint(
        self,
        directory: LogDirectory,
        name: str,
        offset_of: Callable[[Partition], int | None],
        *,
        is_last: bool = False,
    ) -> bool:
        """Write one checkpoint of a directory; return whether it says what is so by then.

        An error of the disk takes the directory out of use. If it is only full, the one before is
        good enough until the next, but not after the last: what is marked as clean is not looked
        through for what came later. One is written at a time: two writers of one file would take
        its temporary name from each other. The offsets are gathered when it is our turn, so none
        overwrites newer ones.
        """
        while (writing := self._writing.get(directory.path)) is not None:
            await asyncio.shield(writing)
        writing = self._writing[directory.path] = asyncio.get_running_loop().create_future()
        try:
            if directory.failed is None:
                offsets = gather(self.partitions_in(directory), offset_of)
                if await self._host.offload(lambda: directory.write_checkpoint(name, offsets)):
                    self._short.discard(directory)
                return True
        except OSError as error:
            if is_short(error) and not is_last:
                self._note_short(directory, error)
            else:
                self.fail(directory, error)
        finally:
            del self._writing[directory.path]
            writing.set_result(None)
        return False

    async def _forget_gone(self) -> set[LogDirectory]:
        """Have no checkpoint say how to open a log that is gone; return where one still does.

        What is noted of a log would be taken for what another one of its name is: its start, and
        what is surely on disk of it. A directory out of use is read anew before it is used again.
        """
        unwritten: set[LogDirectory] = set()
        if self._names_gone:
            for directory in self.online_directories:
                for name, offset_of in NOTED.items():
                    if not await self.checkpoint(directory, name, offset_of):
                        unwritten.add(directory)
        unwritten = {each for each in unwritten if each.failed is None}
        self._names_gone = bool(unwritten)
        return unwritten
