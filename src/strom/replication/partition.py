# Compiled by mypyc.
"""A partition's replica on this broker, and its role: leader, or not.

The leader appends what producers send, knows how far its followers have come, and lets readers
see what is committed. All of it happens between awaits; who needs to wait registers a Waiter
and looks again when woken, so nothing here calls anybody back with data.
"""

import asyncio
from typing import Final
from uuid import UUID

from strom.log.appending import Appended
from strom.log.directory import LogDirectory
from strom.log.disk import suppress_short
from strom.log.log import Log
from strom.log.producers import Origin
from strom.records.batch import Header
from strom.records.walk import Facts
from strom.replication.progress import Progress
from strom.replication.waiting import Waiter
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.fetch import Slice

READ_COMMITTED: Final = 1
NO_EPOCH: Final = -1


class View:
    """What a reader gets to see of a partition."""

    __slots__ = ("aborted", "high_watermark", "last_stable_offset", "records", "start_offset")

    def __init__(
        self,
        high_watermark: int,
        last_stable_offset: int,
        start_offset: int,
        records: Slice | None,
        aborted: list[tuple[int, int]] | None,
    ) -> None:
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.start_offset = start_offset
        self.records = records
        self.aborted = aborted


class Partition:
    """One replica: its log, and what this broker is to it."""

    __slots__ = (
        "_watchers",
        "appended_bytes",
        "appended_records",
        "directory",
        "flushing",
        "in_sync_min",
        "index",
        "leader_epoch",
        "leader_id",
        "log",
        "node_id",
        "progress",
        "topic",
        "topic_id",
    )

    def __init__(self, topic_id: UUID, node_id: int, log: Log, directory: LogDirectory) -> None:
        self.topic, self.index = log.name
        self.topic_id = topic_id
        self.node_id = node_id
        self.log = log
        #: The one that holds the log.
        self.directory = directory
        self.leader_id = -1
        self.leader_epoch = NO_EPOCH
        self.in_sync_min = 1
        #: What producers have written since the partition is here; metrics sum it up by topic.
        self.appended_bytes = 0
        self.appended_records = 0
        #: There while this broker leads the partition.
        self.progress: Progress | None = None
        #: Who waits for the partition to grow; None while nobody does, for most have nobody.
        self._watchers: set[Waiter] | None = None
        #: There while the log is being synced.
        self.flushing: asyncio.Future[None] | None = None

    @property
    def is_leader(self) -> bool:
        """Whether this broker leads the partition."""
        return self.progress is not None

    @property
    def high_watermark(self) -> int:
        """Everything below is committed."""
        return self.progress.high_watermark if self.progress is not None else 0

    def lead(self, leader_epoch: int, in_sync: tuple[int, ...], high_watermark: int) -> None:
        """Become the leader, or go on as one with a new epoch or in-sync set."""
        if self.progress is None or leader_epoch != self.leader_epoch:
            # What was noted may have been cut off since: a power cut takes what was not synced.
            known = min(max(self.high_watermark, high_watermark), self.log.end_offset)
            self.progress = Progress(self.node_id, in_sync, known)
            # If there is no room, the first batch says it again before it is written.
            with suppress_short():
                self.log.epochs.assign(leader_epoch, self.log.end_offset)
        self.leader_epoch = leader_epoch
        self.leader_id = self.node_id
        self.progress.on_in_sync(in_sync)
        self.progress.on_append(self.log.end_offset)
        self.wake_all()

    def resign(self) -> None:
        """Stop being the leader: who waits for us must look elsewhere."""
        self.progress = None
        self.wake_all()

    def watch(self, waiter: Waiter) -> None:
        """Tell the waiter of what happens from now on."""
        if self._watchers is None:
            self._watchers = set()
        self._watchers.add(waiter)

    def unwatch(self, waiter: Waiter) -> None:
        """Tell the waiter nothing more."""
        if self._watchers is not None:
            self._watchers.discard(waiter)
            if not self._watchers:
                self._watchers = None

    def watchers(self) -> tuple[Waiter, ...]:
        """Return who waits now; they may go while one goes through them."""
        return () if self._watchers is None else tuple(self._watchers)

    def wake_all(self) -> None:
        """Have everybody who waits look again."""
        for waiter in self.watchers():
            waiter.wake()

    def check_epoch(self, leader_epoch: int) -> None:
        """Refuse a client whose idea of the leadership is older or newer than ours."""
        if leader_epoch in (NO_EPOCH, self.leader_epoch):
            return
        older = leader_epoch < self.leader_epoch
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH)

    def diverging(self, last_epoch: int, offset: int) -> tuple[int, int] | None:
        """Return where our log leaves that of a reader who is at the offset in this epoch.

        Of an epoch that our log does not know, or of a later one, there is no telling.
        """
        epoch, end_offset = self.log.end_offset_for_epoch(last_epoch)
        if epoch == NO_EPOCH:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if epoch < last_epoch or end_offset < offset:
            return epoch, end_offset
        return None

    def place(
        self,
        records: memoryview,
        header: Header,
        now_ms: int,
        *,
        all_in_sync: bool,
        facts: Facts | None = None,
    ) -> Appended:
        """Give a producer's batch its place as the leader; it is patched where it lies.

        `write_placed` is to follow before anything else is asked of the partition.
        """
        self._leading(all_in_sync=all_in_sync)
        return self.log.place_as_leader(records, header, self.leader_epoch, now_ms, facts)

    def write_placed(self, now_ms: int) -> None:
        """Append what was placed; what that came to stands in each one's `Appended`."""
        log, progress = self.log, self.progress
        if progress is None:
            # Its directory has failed meanwhile, on another partition's write.
            log.refuse_placed(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
            return
        written = log.write_placed(self.leader_epoch, now_ms)
        if written and progress.on_append(log.end_offset) and self._watchers is not None:
            self._tell_growth(written)

    def append_own(self, batch: memoryview, now_ms: int, transaction_version: int = 0) -> Appended:
        """Append what a coordinator wrote: records of its own log, or the end of a transaction."""
        progress = self._leading(all_in_sync=True)
        log = self.log
        appended = log.append_as_leader(
            batch,
            leader_epoch=self.leader_epoch,
            now_ms=now_ms,
            origin=Origin.COORDINATOR,
            transaction_version=transaction_version,
        )
        if progress.on_append(log.end_offset):
            # A marker is small, but lets careful readers see all that was written before it.
            self.wake_all()
        if log.producers is not None:
            log.producers.settle(progress.high_watermark)
        return appended

    def _leading(self, *, all_in_sync: bool) -> Progress:
        """Return how far the replicas are; refuse if it is not ours to append, or not now."""
        progress = self.progress
        if progress is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if all_in_sync and len(progress.in_sync) < self.in_sync_min:
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        return progress

    def _tell_growth(self, size_bytes: int) -> None:
        for waiter in self.watchers():
            waiter.on_growth(size_bytes)

    def is_committed(self, last_offset: int) -> bool:
        """Whether every in-sync replica has the record."""
        return self.high_watermark > last_offset

    async def wait_committed(self, last_offset: int, timeout_ms: float) -> bool:
        """Return True once the record is committed, False if we stopped leading or time is up."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        while self.is_leader and not self.is_committed(last_offset):
            if not await Waiter([self], 0, (deadline - loop.time()) * 1000).wait():
                break
        return self.is_leader and self.is_committed(last_offset)

    def outline(self) -> View:
        """Return how far the partition reaches, without records."""
        stable = self.log.last_stable_offset(self.high_watermark)
        return View(self.high_watermark, stable, self.log.start_offset, None, None)

    def read(self, offset: int, bytes_max: int, *, isolation_level: int, whole_first: bool) -> View:
        """Return what a consumer may see from the offset on, as a slice of its file."""
        if self.progress is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        log = self.log
        high_watermark = self.progress.high_watermark
        stable = log.last_stable_offset(high_watermark)
        committed_only = isolation_level == READ_COMMITTED
        end_offset = stable if committed_only else high_watermark
        found = log.read(
            offset, max_bytes=bytes_max, end_offset=end_offset, whole_first=whole_first
        )
        aborted: list[tuple[int, int]] | None = None
        if committed_only:
            within = [] if found is None else log.aborted_within(offset, found)
            aborted = [(each.producer_id, each.first_offset) for each in within]
        return View(high_watermark, stable, log.start_offset, found, aborted)
