"""Moves a partition's log to another directory while it is written to and read.

    copy     batches go from the current log to a copy in `<topic>-<n>.<id>-future`, chunk by chunk
    settle   once the copy is close behind, it is synced and gets its final name, `<topic>-<n>`
    switch   between two awaits the last batches are copied and the partition takes the copy
    leave    the copy is synced, then the log that was left is renamed to `-delete`

After a crash at each step: while copying there is a current log and a future one, which is resumed;
from `settle` to `leave` there are two logs under the partition's name. Up to the switch
the copy holds a beginning of the old log; from the switch on nothing is added to the old one, and
the copy holds all of it unless a power cut took the end of what was not yet synced. So
one of the two always is a beginning of the other, and the longer one is the partition: what was
durable in the old log is not given up before it is durable in the copy.

Reads that may wait for the disk, and all syncs, happen off the loop; appends to the copy are
appends like any producer's, of at most a chunk or one batch.
"""

from collections.abc import Callable, Coroutine

from strom.log.cold import ColdError, Offload, warmed
from strom.log.log import Log
from strom.records.batch import PREFIX_SIZE, read_prefix
from strom.replication.partition import Partition
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.fetch import Slice

#: As much as a producer's request usually brings: the loop is away no longer than for one.
CHUNK_BYTES = 256 * 1024
#: How many chunks the switch itself may copy; if more has come in since, it is tried again.
SWITCH_CHUNKS_MAX = 4
#: So much is copied before it is synced, so that no sync takes long.
UNSYNCED_BYTES_MAX = 64 * 1024 * 1024

#: Waits as long as so many bytes should have taken.
Pace = Callable[[int], Coroutine[None, None, None]]


class MoveStoppedError(Exception):
    """The partition is no longer here to be moved."""


class Move:
    """One partition on its way."""

    __slots__ = (
        "_is_wanted",
        "_now_ms",
        "_offload",
        "_pace",
        "_unsynced_bytes",
        "future",
        "partition",
    )

    def __init__(
        self,
        partition: Partition,
        future: Log,
        *,
        offload: Offload,
        now_ms: Callable[[], int],
        is_wanted: Callable[[], bool],
        pace: Pace,
    ) -> None:
        self.partition = partition
        #: The copy; nobody else appends to it until the switch.
        self.future = future
        self._offload = offload
        self._now_ms = now_ms
        self._is_wanted = is_wanted
        self._pace = pace
        self._unsynced_bytes = 0

    @property
    def is_level(self) -> bool:
        """Whether the copy has all that the current log has."""
        return self.future.end_offset == self.partition.log.end_offset

    async def run(self, final_path: str) -> Log:
        """Copy, settle and switch; return the log that the partition has left."""
        await self._copy()
        await self._offload(lambda: self.future.rename_to(final_path))
        while True:
            await self._copy()
            left = self._switch()
            if left is not None:
                return left

    async def sync(self) -> None:
        """Make durable what the copy has by now."""
        flush = self.future.begin_flush()
        await self._offload(flush.run)
        self.future.end_flush(flush, self._now_ms())
        self._unsynced_bytes = 0

    async def _copy(self) -> None:
        """Copy until little is left, and make it durable."""
        while (found := await warmed(self._next, self._offload)) is not None:
            data = await self._offload(found.read_bytes)
            self._append(data)
            await self._pace(len(data))
            if self._unsynced_bytes >= UNSYNCED_BYTES_MAX:
                await self.sync()
            in_last_segment = self.future.end_offset >= self.partition.log.active.base_offset
            if in_last_segment and len(data) < CHUNK_BYTES:
                break
        await self.sync()

    def _switch(self) -> Log | None:
        """Copy the rest and let the partition go on with the copy; None if the rest is too long."""
        for _ in range(SWITCH_CHUNKS_MAX):
            try:
                found = self._next()
            except ColdError:
                # Copying goes on, which waits for it.
                return None
            if found is None:
                break
            # Written a moment ago, so it is in memory.
            self._append(found.read_bytes())
        if not self.is_level:
            return None
        return self._take_over()

    def _take_over(self) -> Log:
        left, future = self.partition.log, self.future
        future.config = left.config
        future.raise_start_offset(left.start_offset)
        for epoch, start_offset in left.epochs.entries:
            future.epochs.assign(epoch, start_offset)
        # It also knows the producers whose batches have gone since.
        future.producers = left.producers
        self.partition.log = future
        return left

    def _next(self) -> Slice | None:
        """Return the next batches to copy, None if there are none."""
        if not self._is_wanted():
            raise MoveStoppedError
        log, future = self.partition.log, self.future
        for each in (log, future):
            if each.failed is not None:
                raise each.failed
        if future.end_offset < log.start_offset and future.end_offset < first_to_copy(log):
            # Retention was faster than we are: what has been copied is no longer wanted.
            future.truncate_fully_and_start_at(first_to_copy(log), self._now_ms())
        found = log.read(
            # The first batch is copied whole, though it may begin before the first offset.
            max(future.end_offset, log.start_offset),
            max_bytes=CHUNK_BYTES,
            end_offset=log.end_offset,
            whole_first=True,
        )
        if found is None and not self.is_level:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"Nothing can be read of {log.directory} from offset {future.end_offset} on",
            )
        return found

    def _append(self, data: bytes) -> None:
        self.future.append_as_follower(memoryview(data), now_ms=self._now_ms())
        self._unsynced_bytes += len(data)


def first_to_copy(log: Log) -> int:
    """Return where a copy of the log begins: with the whole batch that holds the first offset."""
    found = log.read(
        log.start_offset, max_bytes=PREFIX_SIZE, end_offset=log.end_offset, whole_first=True
    )
    if found is None:
        return log.start_offset
    base_offset, _ = read_prefix(found.file.read_now(found.position, PREFIX_SIZE))
    return min(log.start_offset, base_offset)


def longest(logs: list[Log]) -> Log:
    """Return the log to keep of those that a broken-off move left under one name."""
    kept = max(logs, key=lambda each: each.end_offset)
    # Records that a client has deleted stay deleted, whichever copy had been told.
    kept.raise_start_offset(min(kept.end_offset, max(each.start_offset for each in logs)))
    return kept
