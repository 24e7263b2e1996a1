# Compiled by mypyc.
"""When logs are made durable: as their settings ask, when a segment is left, and early.

No fsync waits on the loop. Data reach the disk by themselves (BRK-10); what is done here is

- the fsync that `flush.messages` asks for, which the append's answer waits for (BRK-11);
- the fsync of a segment that was left, so that a crash costs the reading of one segment;
- the hint to begin with what was appended, so that no fsync has much to wait for.

An fsync that fails, be it for want of room, leaves in doubt what is on the disk: the log directory
is taken out of use. What fails before the fsync, as a file that cannot be opened, is tried again.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress

from strom.broker.host import Host
from strom.broker.replicas import Replicas
from strom.log.flush import WriteBack
from strom.log.log import Log
from strom.replication.partition import Partition


class Flushing:
    """The flushes of one broker."""

    def __init__(
        self,
        host: Host,
        replicas: Replicas,
        start_task: Callable[[Coroutine[None, None, None]], object],
    ) -> None:
        self._host = host
        self._replicas = replicas
        self._start_task = start_task

    def on_appended(self, partition: Partition) -> bool:
        """Have the disk begin with what it can; return whether the append must wait for it."""
        log = partition.log
        if log.end_offset - log.recovery_point >= log.config.flush_messages:
            self._start_task(self._flush_alone(partition))
            return True
        if log.recovery_point < log.active.base_offset and partition.flushing is None:
            self._start_task(self._flush_alone(partition))
        hint = log.begin_write_back()
        if hint is not None:
            self._start_task(self._write_back(log, hint))
        return False

    def on_refused(self, partition: Partition) -> None:
        """Take notice of an append that the disk did not take: it may be full, or broken."""
        self._replicas.check(partition)

    async def _write_back(self, log: Log, hint: WriteBack) -> None:
        await self._host.offload(hint.run)
        with suppress(OSError):
            # Room that stays taken until the segment goes: nothing is wrong with the log.
            log.end_write_back(hint)

    async def _flush_alone(self, partition: Partition) -> None:
        await self.flush(partition)

    async def flush(self, partition: Partition) -> bool:
        """Make what the partition has durable; return whether it is.

        Those who ask meanwhile share one sync.
        """
        wanted = partition.log.end_offset
        while (log := partition.log).failed is None and (
            # What was cut off meanwhile will never be on the disk.
            log.recovery_point < min(wanted, log.end_offset)
        ):
            if partition.flushing is not None:
                await asyncio.shield(partition.flushing)
            elif not await self._flush_once(partition):
                return False
        return log.failed is None

    async def _flush_once(self, partition: Partition) -> bool:
        partition.flushing = asyncio.get_running_loop().create_future()
        try:
            return await self._sync(partition)
        finally:
            partition.flushing.set_result(None)
            partition.flushing = None

    async def _sync(self, partition: Partition) -> bool:
        # The partition may move to another log meanwhile, of which this proves nothing.
        flushed = partition.log
        try:
            flush = flushed.begin_flush()
        except OSError as error:
            # Nothing was synced, so nothing is in doubt: a full disk is only tried again.
            self._replicas.blame(partition, error)
            return False
        try:
            await self._host.offload(flush.run)
        except OSError as error:
            # Of whatever kind: the system may have thrown away what it could not write, and the
            # next sync would not say so.
            flushed.failed = error
            self._replicas.check(partition)
            return False
        flushed.end_flush(flush, self._host.now_ms())
        return True
