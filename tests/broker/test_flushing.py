"""Flushes: shared by those who ask at once, never waited for in vain."""

import asyncio
from types import SimpleNamespace

from strom.broker.flushing import Flushing


class Log:
    """A log of ten records that counts its syncs; it may be cut, or fail, during one."""

    def __init__(self, during=lambda log: None):
        self.end_offset = 10
        self.recovery_point = 0
        self.failed = None
        self.syncs = 0
        self._during = during

    def begin_flush(self):
        return SimpleNamespace(run=self._sync, end_offset=self.end_offset)

    def _sync(self):
        self.syncs += 1
        self._during(self)

    def end_flush(self, flush, now_ms):
        self.recovery_point = min(flush.end_offset, self.end_offset)


async def offload(work):
    await asyncio.sleep(0)
    return work()


def flushed(log, times=1):
    """Flush so many times at once; the partitions that were then found to be broken."""
    checked = []
    host = SimpleNamespace(offload=offload, now_ms=lambda: 0)
    flushing = Flushing(host, SimpleNamespace(check=checked.append), None)
    partition = SimpleNamespace(log=log, flushing=None)

    async def run():
        return await asyncio.gather(*(flushing.flush(partition) for _ in range(times)))

    assert set(asyncio.run(run())) == {log.failed is None}
    assert partition.flushing is None
    return checked


def test_those_who_ask_at_once_share_one_sync():
    log = Log()
    flushed(log, times=5)
    assert (log.recovery_point, log.syncs) == (10, 1)


def test_what_is_on_disk_is_not_synced_again():
    log = Log()
    flushed(log)
    flushed(log)
    assert log.syncs == 1


def test_what_was_cut_off_meanwhile_is_not_waited_for():
    def cut(log):
        assert log.syncs == 1
        log.end_offset = 3

    log = Log(cut)
    flushed(log, times=2)
    assert log.recovery_point == 3


def test_a_disk_that_fails_is_told_once():
    def fail(log):
        raise OSError(5, "Input/output error")

    log = Log(fail)
    assert len(flushed(log, times=3)) == 1
    assert log.failed is not None
    assert log.recovery_point == 0
