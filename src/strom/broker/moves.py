"""The partitions that are on their way from one log directory to another.

One task moves one partition; what the task works towards is the wish, which a client may change
or take back while it works. A copy that is no longer wished for is removed. A broker that stops
leaves the copies where they are, and goes on with them when it starts again; see
`replication.mover` for what a crash at each step leaves behind.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine

from strom.broker.flushing import Flushing
from strom.broker.host import Host
from strom.broker.noted import clean_offset_of, start_offset_of
from strom.broker.replicas import Replicas
from strom.log.checkpoints import CLEANER, LOG_START
from strom.log.cold import warmed
from strom.log.directory import FoundPartition, LogDirectory, has_room_for_future
from strom.log.disk import is_short
from strom.log.log import Log
from strom.replication.mover import Move, MoveStoppedError, first_to_copy
from strom.replication.partition import Partition
from strom.wire.errors import ErrorCode, KafkaError

log = logging.getLogger("strom.moves")

TopicPartition = tuple[str, int]
#: What has to be noted elsewhere once a partition is in its new directory.
Moved = Callable[[Partition, LogDirectory], Awaitable[None]]


class Moves:
    """All moves of one broker."""

    def __init__(
        self,
        host: Host,
        replicas: Replicas,
        flushing: Flushing,
        start_task: Callable[[Coroutine[None, None, None]], asyncio.Task[None]],
        bytes_per_second: Callable[[], int],
        moved: Moved,
    ) -> None:
        self._host = host
        self._replicas = replicas
        self._flushing = flushing
        self._start_task = start_task
        self._bytes_per_second = bytes_per_second
        self._moved = moved
        #: Where each partition that is being moved should end up.
        self._wishes: dict[TopicPartition, LogDirectory] = {}
        #: Every partition with a task; its move once the copy is there.
        self._active: dict[TopicPartition, tuple[LogDirectory, Move] | None] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = asyncio.Event()

    async def stop(self) -> None:
        """Leave every move where it is; return when none of them touches a log any more."""
        self._stopping.set()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def is_moving(self, topic: str, index: int) -> bool:
        """Whether the partition is on its way, or about to be."""
        return (topic, index) in self._active

    def into(self, directory: LogDirectory) -> list[Move]:
        """Return the moves that end in the directory."""
        return [each[1] for each in self._active.values() if each and each[0] is directory]

    def begin(self, topic: str, index: int, path: str) -> None:
        """Begin to move the partition, or go elsewhere with it; raise a KafkaError if not."""
        if not has_room_for_future(topic, index):
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        target = self._directory(path)
        partition = self._replicas.find(topic, index)
        if partition is None:
            # Tells one that is offline from one that is not here.
            self._replicas.leader_of(topic, index)
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if partition.directory is target:
            self._wishes.pop((topic, index), None)
            return
        self._wish(partition, target, None)

    def resume(self, found: FoundPartition, directory: LogDirectory) -> None:
        """Go on with a copy that an earlier run of the broker has left."""
        partition = self._replicas.find(found.topic, found.index)
        if partition is not None:
            self._wish(partition, directory, found.directory)

    def _directory(self, path: str) -> LogDirectory:
        for directory in self._replicas.directories:
            if directory.path == path:
                if directory.failed is not None:
                    raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
                if directory.is_cordoned:
                    raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT)
                return directory
        raise KafkaError(ErrorCode.LOG_DIR_NOT_FOUND)

    def _wish(self, partition: Partition, target: LogDirectory, copy: str | None) -> None:
        name = partition.topic, partition.index
        self._wishes[name] = target
        if name not in self._active:
            self._active[name] = None
            task = self._start_task(self._work(partition, copy))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _work(self, partition: Partition, copy: str | None) -> None:
        """Move the partition to where it is wished, wherever that is by then."""
        name = partition.topic, partition.index
        try:
            while (target := self._wishes.get(name)) and not self._stopping.is_set():
                await self._move(partition, target, copy)
                copy = None
        finally:
            self._wishes.pop(name, None)
            del self._active[name]

    async def _move(self, partition: Partition, target: LogDirectory, copy: str | None) -> None:
        """Move the partition once; whatever comes of it, the wish is fulfilled or given up."""
        name = partition.topic, partition.index
        source = partition.directory
        future: Log | None = None
        try:
            future = await self._open(partition, target, copy)
            move = self._new_move(partition, target, future)
            self._active[name] = (target, move)
            left = await move.run(target.partition_path(*name))
            # The switch was just now, without an await: nobody has looked for the directory yet.
            self._replicas.relocate(partition, target)
            await self._finish(partition, source, target, left)
        except (MoveStoppedError, KafkaError, OSError) as error:
            self._give_up(partition, target, error)
            unused = future is not None and partition.log is not future
            if future is not None and unused and not self._stopping.is_set():
                await self._remove(name, target, future)
        else:
            log.info("Moved %s-%d from %s to %s", *name, source.path, target.path)
            self._forget_wish(name, target)
        finally:
            self._active[name] = None

    def _new_move(self, partition: Partition, target: LogDirectory, future: Log) -> Move:
        name = partition.topic, partition.index
        return Move(
            partition,
            future,
            offload=self._host.offload,
            now_ms=self._host.now_ms,
            is_wanted=lambda: (
                self._wishes.get(name) is target
                and self._replicas.find(*name) is partition
                and not self._stopping.is_set()
            ),
            pace=self._pace,
        )

    async def _open(self, partition: Partition, target: LogDirectory, copy: str | None) -> Log:
        """Create the copy, or open what there is of it."""
        name, disk, current = (partition.topic, partition.index), self._host.disk, partition.log
        path = copy or target.future_path(*name, self._host.new_id().hex)
        start_offset = await warmed(lambda: first_to_copy(current), self._host.offload)
        if copy is None:
            disk.make_directory(path)
            target.write_topic_id(path, partition.topic_id)
        # What is cleaned from here on may be copied as it was before.
        clean_offset = current.clean_offset if copy is None else 0
        future = await self._host.offload(
            lambda: Log.open(
                self._replicas.files,
                path,
                current.config,
                name=name,
                clean=copy is None,
                recovery_point=start_offset if copy is None else 0,
                start_offset=start_offset if copy is None else 0,
                now_ms=self._host.now_ms(),
            )
        )
        future.clean_offset = clean_offset
        return future

    async def _pace(self, size_bytes: int) -> None:
        """Wait as long as the limit says that so many bytes take, but not beyond a stop."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(size_bytes / max(self._bytes_per_second(), 1)):
                await self._stopping.wait()

    async def _finish(
        self, partition: Partition, source: LogDirectory, target: LogDirectory, left: Log
    ) -> None:
        """Make the copy durable, have the move noted, and only then take the old log away."""
        partition.log.take_snapshot()
        if not await self._flushing.flush(partition):
            return
        # Records that were deleted must not come back with the copy.
        await self._replicas.checkpoint(target, LOG_START, start_offset_of)
        # How far it is clean is noted where it is now, and no more where it was.
        for directory in (target, source):
            await self._replicas.checkpoint(directory, CLEANER, clean_offset_of)
        if target.failed is not None:
            return
        await self._moved(partition, target)
        await self._remove((partition.topic, partition.index), source, left)

    async def _remove(self, name: TopicPartition, directory: LogDirectory, unused: Log) -> None:
        """Put a log aside and remove it."""
        path = directory.deleted_path(*name, self._host.new_id().hex)
        try:
            unused.abandon(path)
            await self._host.offload(lambda: self._host.disk.remove_tree(path))
        except OSError as error:
            log.warning("Cannot remove %s: %s", unused.directory, error)

    def _give_up(self, partition: Partition, target: LogDirectory, error: Exception) -> None:
        """Take the wish back, and a directory out of use if it is what failed."""
        name = partition.topic, partition.index
        if isinstance(error, MoveStoppedError):
            if self._replicas.find(*name) is not partition:
                self._wishes.pop(name, None)
            return
        log.warning("Cannot move %s-%d to %s: %s", *name, target.path, error)
        self._forget_wish(name, target)
        if partition.log.failed is not None:
            self._replicas.check(partition)
        elif isinstance(error, OSError) and not is_short(error):
            self._replicas.fail(target, error)

    def _forget_wish(self, name: TopicPartition, target: LogDirectory) -> None:
        # There may be another one by now.
        if self._wishes.get(name) is target:
            del self._wishes[name]
