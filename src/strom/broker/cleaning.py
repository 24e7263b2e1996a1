"""When logs are cleaned, and which: the dirtiest first, as long as one is due (CMP-03, CMP-05).

Every `log.cleaner.backoff.ms` the compacted logs are looked at. Each of `log.cleaner.threads`
cleaners takes the dirtiest that is due, has it cleaned elsewhere (`cleaner_process`), and swaps the
segments on the loop, which is a row of renames; old files go after `file.delete.delay.ms`, and who
reads from them reads on. How far each log is clean is noted in `cleaner-offset-checkpoint`. They
share `log.cleaner.dedupe.buffer.size` and `log.cleaner.io.max.bytes.per.second`. Who finds nothing
that is due while others clean looks again later: a large log does not keep the others waiting.

A log that was deleted, moved or cut meanwhile takes nothing of it; a cleaning whose log is gone, or
on its way to another directory, is broken off. One for which the disk has no room is given up, and
tried again in the next round; but if that is found when the new segment counts already, the
directory fails, and a start puts it right. A log that cannot be cleaned, as it is damaged, is left
alone until the broker starts again, and counted.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from strom.broker.cleaner_process import Cleaner, CleaningFailedError
from strom.broker.context import Parts
from strom.broker.host import Host
from strom.broker.noted import clean_offset_of, recovery_point_of
from strom.broker.turns import in_turns
from strom.log.checkpoints import CLEANER, RECOVERY_POINT
from strom.log.cleaning import Cleaned, Job, Source
from strom.log.cleaning_batches import LastWritten
from strom.log.cleaning_choice import Cleanable, find_cleanable
from strom.log.cleaning_swap import SwapGivenUpError
from strom.log.cold import warmed
from strom.log.log import Log
from strom.replication.partition import Partition

log = logging.getLogger("strom.cleaning")

SEED_BYTES = 16
METRIC = "kafka_log_logcleanermanager_"


class Candidate(NamedTuple):
    """A log that could be cleaned."""

    partition: Partition
    cleanable: Cleanable


class Cleaning:
    """The cleaners of one broker."""

    def __init__(self, parts: Parts, new_cleaner: Callable[[Host], Cleaner] = Cleaner) -> None:
        self._parts = parts
        self._new_cleaner = new_cleaner
        self._stopping = False
        #: Being cleaned: which log of it, and by whom.
        self._busy: dict[Partition, tuple[Log, Cleaner]] = {}
        #: Found in this round not to be cleanable now.
        self._passed: set[Partition] = set()
        #: What cannot be cleaned, with the log that this was found of.
        self._uncleanable: dict[Partition, Log] = {}
        self._cleaners: set[Cleaner] = set()
        #: Set when the last of them is done, or shall be: nobody waits for more to do then.
        self._at_rest = asyncio.Event()
        self._last_run_ms = 0
        self._max_dirty = 0.0

    def start(self) -> None:
        """Show how it goes."""
        parts, metrics = self._parts, self._parts.metrics
        self._last_run_ms = parts.host.now_ms()
        metrics.add_gauge(
            METRIC + "time_since_last_run_ms",
            "Since the cleaner last looked for something to clean.",
            lambda: parts.host.now_ms() - self._last_run_ms,
        )
        metrics.add_gauge(
            METRIC + "max_dirty_percent",
            "Of the dirtiest log, when the cleaner last looked.",
            lambda: int(100 * self._max_dirty),
        )
        metrics.add_gauge(
            METRIC + "uncleanable_partitions_count",
            "Partitions whose logs cannot be cleaned.",
            lambda: len(self._still_uncleanable()),
        )

    async def stop(self) -> None:
        """Break off what is being cleaned: the old segments are all there."""
        self._stopping = True
        self._at_rest.set()
        for cleaner in list(self._cleaners):
            await cleaner.close()

    async def break_off(self) -> None:
        """End the cleaning of what is not to be cleaned: at a slow pace it could take hours."""
        for partition, (its, cleaner) in list(self._busy.items()):
            if not self._is_here(partition, its):
                await cleaner.close()

    async def clean(self) -> None:
        """Clean what is due, and return when nothing is."""
        settings = self._parts.settings
        threads = settings.number("log.cleaner.threads")
        if not settings.flag("log.cleaner.enable") or self._stopping:
            return
        self._begin_round()
        await asyncio.gather(*(self._work(threads) for _ in range(threads)))

    def _begin_round(self) -> None:
        """Look at everything anew, also at what could not be cleaned before."""
        self._passed = set()
        self._uncleanable = {each: each.log for each in self._still_uncleanable()}
        self._last_run_ms = self._parts.host.now_ms()

    async def _work(self, threads: int) -> None:
        cleaner = self._new_cleaner(self._parts.host)
        self._cleaners.add(cleaner)
        try:
            while (chosen := await self._next(cleaner)) is not None:
                self._busy[chosen] = chosen.log, cleaner
                self._at_rest.clear()
                try:
                    await self._clean(chosen, cleaner, threads)
                finally:
                    del self._busy[chosen]
                    if not self._busy:
                        self._at_rest.set()
        finally:
            self._cleaners.discard(cleaner)
            await cleaner.close()

    async def _next(self, cleaner: Cleaner) -> Partition | None:
        """Return what to clean; while others clean, look again after `log.cleaner.backoff.ms`."""
        while (chosen := await self._choose()) is None and self._busy and not self._stopping:
            # Nobody needs its process meanwhile.
            await cleaner.close()
            backoff_ms = max(self._parts.settings.number("log.cleaner.backoff.ms"), 1)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(backoff_ms / 1000):
                    await self._at_rest.wait()
            self._begin_round()
        return chosen

    # The choice.

    async def _choose(self) -> Partition | None:
        """Return the dirtiest log that is due and that nobody has."""
        parts = self._parts
        compacted = [
            each for each in parts.replicas.partitions() if each.log.config.cleanup_compact
        ]
        looked = await in_turns(compacted, self._look, parts.host.offload, lambda *_: None)
        found = [each for each in looked if each is not None and self._is_free(each.partition)]
        self._max_dirty = max((each.cleanable.ratio for each in found), default=0.0)
        due = [
            each
            for each in found
            if each.cleanable.is_due(each.partition.log.config.cleanable_dirty_ratio_min)
        ]
        if not due or self._stopping:
            return None
        return max(due, key=lambda each: each.cleanable.ratio).partition

    def _look(self, partition: Partition) -> Candidate | None:
        if not self._is_free(partition) or len(partition.log.segments) < 2:
            return None
        now_ms = self._parts.host.now_ms()
        return Candidate(partition, find_cleanable(partition.log, partition.high_watermark, now_ms))

    def _is_free(self, partition: Partition) -> bool:
        return (
            partition not in self._busy
            and partition not in self._passed
            and self._uncleanable.get(partition) is not partition.log
            and self._is_here(partition, partition.log)
        )

    def _still_uncleanable(self) -> list[Partition]:
        holds = self._parts.replicas.holds
        return [each for each, its in self._uncleanable.items() if holds(each) and each.log is its]

    # The work.

    async def _clean(self, partition: Partition, cleaner: Cleaner, threads: int) -> None:
        """Clean one log; whatever comes of it, it is clean, passed over or uncleanable."""
        its = partition.log
        try:
            if not await self._clean_log(partition, cleaner, threads):
                self._passed.add(partition)
        except CleaningFailedError as error:
            self._passed.add(partition)
            if self._stopping or not self._is_here(partition, its):
                return
            log.warning("Cannot clean %s-%d: %s", partition.topic, partition.index, error)
            if error.is_permanent:
                self._uncleanable[partition] = its
        except OSError as error:
            # Nothing has changed: a full disk, or too many open files, is no fault of it.
            self._passed.add(partition)
            self._parts.replicas.blame(partition, error)

    async def _clean_log(self, partition: Partition, cleaner: Cleaner, threads: int) -> bool:
        parts, its = self._parts, partition.log
        durable = await self._note_durable(partition)
        candidate = await warmed(partial(self._look_again, partition), parts.host.offload)
        # Much may have happened meanwhile; nobody could break off what had not begun.
        if self._stopping or not self._is_here(partition, its):
            return False
        if not (candidate.first_dirty_offset < candidate.end_offset <= durable):
            return False
        job = self._job(its, candidate, threads)
        rate = parts.settings.ratio("log.cleaner.io.max.bytes.per.second") / max(threads, 1)
        before = sum(each.size_bytes for each in job.sources)
        async with contextlib.aclosing(cleaner.work(job, rate)) as groups:
            async for cleaned in groups:
                if self._stopping or not self._is_here(partition, its):
                    return False
                if not cleaned.sources:
                    return await self._note_clean(partition, cleaned, before)
                if not await self._swap(partition, its, cleaned):
                    return False
        return False

    async def _note_durable(self, partition: Partition) -> int:
        """Return up to where the log is surely on disk, and noted to be; 0 if it cannot be.

        A cleaned segment is on disk at once. Without all that is in front of it a crash would
        leave a gap there, at which a log ends that is not compacted any more by then.
        """
        parts = self._parts
        if not await parts.flushing.flush(partition):
            return 0
        durable, directory = partition.log.recovery_point, partition.directory
        noted = await parts.replicas.checkpoint(directory, RECOVERY_POINT, recovery_point_of)
        return durable if noted else 0

    def _is_here(self, partition: Partition, its: Log) -> bool:
        """Whether the log is to be cleaned still.

        Not while it moves to another directory: a copy that has a value from before a cleaning and
        what follows from after it would lack what took the value back.
        """
        parts = self._parts
        return (
            partition.log is its
            and its.config.cleanup_compact
            and parts.replicas.holds(partition)
            and not parts.moves.is_moving(partition.topic, partition.index)
        )

    def _look_again(self, partition: Partition) -> Cleanable:
        now_ms = self._parts.host.now_ms()
        return find_cleanable(partition.log, partition.high_watermark, now_ms)

    def _job(self, its: Log, cleanable: Cleanable, threads: int) -> Job:
        parts, config = self._parts, its.config
        sources = [each for each in its.segments if each.base_offset < cleanable.end_offset]
        known = () if its.producers is None else its.producers.items()
        memory = parts.settings.number("log.cleaner.dedupe.buffer.size") // max(threads, 1)
        return Job(
            directory=its.directory,
            sources=tuple(Source(each.base_offset, each.size_bytes) for each in sources),
            later=tuple(each.base_offset for each in its.segments[len(sources) :]),
            first_dirty_offset=cleanable.first_dirty_offset,
            end_offset=cleanable.end_offset,
            producers={id_: LastWritten(each.last_offset, each.epoch) for id_, each in known},
            segment_bytes=config.segment_bytes,
            index_bytes_max=config.index_bytes_max,
            interval_bytes=config.index_interval_bytes,
            delete_retention_ms=config.delete_retention_ms,
            now_ms=parts.host.now_ms(),
            memory_bytes=memory,
            load_factor=parts.settings.ratio("log.cleaner.io.buffer.load.factor"),
            seed=parts.host.rng.randbytes(SEED_BYTES),
        )

    async def _swap(self, partition: Partition, its: Log, cleaned: Cleaned) -> bool:
        """Replace a group's segments; False if the log is another one by now, or has failed."""
        host = self._parts.host
        try:
            files = its.replace(cleaned.sources, cleaned.size_bytes)
            if not files:
                return False
            directory, delay_ms = its.directory, its.config.delete_delay_ms
            # The old files are removed only once the new ones surely have their names.
            await host.offload(partial(host.disk.sync_directory, directory))
        except SwapGivenUpError:
            raise
        except OSError as error:
            # Names are changed in part: a start puts that right.
            its.failed = error
            self._parts.replicas.check(partition)
            return False
        self._parts.replicas.remove_later(files, delay_ms, host.disk.remove)
        return True

    async def _note_clean(self, partition: Partition, end: Cleaned, before: int) -> bool:
        its = partition.log
        its.clean_offset = min(end.end_offset, its.end_offset)
        after = sum(each.size_bytes for each in its.segments if each.base_offset < end.end_offset)
        log.info(
            "Cleaned %s-%d up to offset %d: %d bytes of %d are left",
            partition.topic,
            partition.index,
            end.end_offset,
            after,
            before,
        )
        await self._parts.replicas.checkpoint(partition.directory, CLEANER, clean_offset_of)
        return True
