"""What a broker does by the clock: checkpoints, retention, cleaning, flushes, expiry, idle clients.

Each chore has its own interval, a setting of Kafka's; one that fails is tried again when its
time comes round. Nothing here waits for a disk on the loop.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from time import perf_counter

from strom.broker.cleaning import Cleaning
from strom.broker.context import Parts
from strom.broker.noted import NOTED
from strom.broker.server import Server
from strom.broker.turns import in_turns
from strom.log.checkpoints import HIGH_WATERMARK, LOG_START, RECOVERY_POINT
from strom.replication.partition import Partition

log = logging.getLogger("strom.housekeeping")

CLIENTS_CHECK_MS = 1_000
#: How often the loop is asked how late it is; what it cannot see is shorter than this.
STALL_CHECK_SECONDS = 0.05
#: A timer further away than this is no timer.
INTERVAL_MS_MAX = 30 * 24 * 60 * 60 * 1000

Chore = Callable[[], Coroutine[None, None, None]]


class Housekeeping:
    """The chores of one broker."""

    def __init__(self, parts: Parts, server: Server) -> None:
        self._parts = parts
        self._server = server
        self._cleaning = Cleaning(parts)
        #: One for each chore, taken while it is being done.
        self._turns: list[asyncio.Lock] = []

    def start(self, start_task: Callable[[Coroutine[None, None, None]], object]) -> None:
        """Begin all chores."""
        settings = self._parts.settings
        first_ms = settings.number("log.initial.task.delay.ms")
        chores: list[tuple[str, int, Chore]] = [
            ("log.retention.check.interval.ms", first_ms, self.retain),
            ("log.retention.check.interval.ms", first_ms, self._parts.quorum.drop_old),
            ("replica.high.watermark.checkpoint.interval.ms", 0, self.note_high_watermarks),
            ("replica.high.watermark.checkpoint.interval.ms", 0, self.begin_logs),
            ("log.flush.offset.checkpoint.interval.ms", first_ms, self.note_recovery_points),
            (
                "log.flush.start.offset.checkpoint.interval.ms",
                first_ms,
                self.note_start_offsets,
            ),
            ("log.flush.scheduler.interval.ms", first_ms, self.flush),
            ("producer.id.expiration.check.interval.ms", 0, self.expire_producers),
            ("log.cleaner.backoff.ms", 0, self._cleaning.clean),
            ("log.cleaner.backoff.ms", 0, self._cleaning.break_off),
        ]
        self._cleaning.start()
        for name, delay_ms, chore in chores:
            if settings.number(name) <= INTERVAL_MS_MAX:
                start_task(self._repeat(name, delay_ms, chore))
        start_task(self._look_after_clients())
        start_task(self._watch_loop())

    async def stop(self) -> None:
        """Let no chore begin any more; return when none is being done."""
        await self._cleaning.stop()
        for turn in self._turns:
            await turn.acquire()

    async def _repeat(self, name: str, delay_ms: int, chore: Chore) -> None:
        """Do a chore until `stop`, at the interval that the setting has by then."""
        turn = asyncio.Lock()
        self._turns.append(turn)
        wait_ms = delay_ms or self._interval_ms(name)
        while True:
            await asyncio.sleep(wait_ms / 1000)
            async with turn:
                await self._attempt(name, chore)
            wait_ms = self._interval_ms(name)

    async def _attempt(self, name: str, chore: Chore) -> None:
        try:
            await chore()
        except Exception:
            # The next time it may go well.
            log.exception("What is done every %s failed", name)

    def _interval_ms(self, name: str) -> int:
        return min(max(self._parts.settings.number(name), 1), INTERVAL_MS_MAX)

    async def _look_after_clients(self) -> None:
        while True:
            await asyncio.sleep(CLIENTS_CHECK_MS / 1000)
            self._server.look_after()

    async def _watch_loop(self) -> None:
        """Measure how long the loop was away at the longest."""
        metrics = self._parts.metrics
        while True:
            before = perf_counter()
            await asyncio.sleep(STALL_CHECK_SECONDS)
            late_ms = (perf_counter() - before - STALL_CHECK_SECONDS) * 1000
            metrics.longest_stall_ms = max(metrics.longest_stall_ms, late_ms)

    # Checkpoints.

    async def note_high_watermarks(self, *, is_last: bool = False) -> None:
        """Write what is committed."""
        await self._checkpoint(HIGH_WATERMARK, is_last)

    async def note_recovery_points(self, *, is_last: bool = False) -> None:
        """Write what is surely on disk."""
        await self._checkpoint(RECOVERY_POINT, is_last)

    async def note_start_offsets(self, *, is_last: bool = False) -> None:
        """Write where the logs begin, of those that do not begin with their first segment."""
        await self._checkpoint(LOG_START, is_last)

    async def _checkpoint(self, name: str, is_last: bool) -> None:
        replicas = self._parts.replicas
        for directory in replicas.online_directories:
            await replicas.checkpoint(directory, name, NOTED[name], is_last=is_last)

    async def checkpoint_all(self) -> None:
        """Write every checkpoint, at a clean stop."""
        await self.note_high_watermarks(is_last=True)
        await self.note_recovery_points(is_last=True)
        await self.note_start_offsets(is_last=True)

    # Logs.

    async def retain(self) -> None:
        """Take out segments that are too old or too much (RET-05)."""
        parts = self._parts
        partitions = list(parts.replicas.partitions())
        changed = await in_turns(partitions, self._retain, parts.host.offload, self._note_failure)
        if any(changed):
            # DSK-21: what was deleted is not to be looked for after a restart.
            await self.note_start_offsets()
            await self.note_recovery_points()

    def _retain(self, partition: Partition) -> bool:
        """Take segments out of one log; return whether it begins later now."""
        parts = self._parts
        if not parts.replicas.holds(partition):
            return False
        try:
            retained = partition.log.retain(parts.host.now_ms(), partition.high_watermark)
        except OSError as error:
            return self._note_failure(partition, error)
        for reason in retained.reasons:
            log.info("Deleting of %s-%d %s", partition.topic, partition.index, reason)
        if retained.files:
            delay_ms = partition.log.config.delete_delay_ms
            parts.replicas.remove_later(retained.files, delay_ms, parts.host.disk.remove)
        return retained.start_offset_changed

    def _note_failure(self, partition: Partition, error: OSError) -> bool:
        self._parts.replicas.note_unreadable(partition.topic, partition.index, error)
        return False

    async def begin_logs(self) -> None:
        """Try again to begin the logs for which there was no room."""
        await self._parts.publisher.make_up(self._parts)

    async def flush(self) -> None:
        """Sync the logs whose `flush.ms` is over."""
        parts = self._parts
        for partition in list(parts.replicas.partitions()):
            if parts.replicas.holds(partition) and partition.log.flush_due(parts.host.now_ms()):
                await parts.flushing.flush(partition)

    async def expire_producers(self) -> None:
        """Forget producers that have been silent for too long."""
        now_ms = self._parts.host.now_ms()
        for partition in self._parts.replicas.partitions():
            partition.log.expire_producers(now_ms)
