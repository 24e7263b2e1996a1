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


# What an append leads to.


class Appended:
    """A log that was just appended to."""

    def __init__(self, *, flush_messages=100, base_offset=0, hint=None):
        self.end_offset, self.recovery_point, self.failed = 10, 5, None
        self.config = SimpleNamespace(flush_messages=flush_messages)
        self.active = SimpleNamespace(base_offset=base_offset)
        self._hint, self.ended = hint, []

    def begin_write_back(self):
        return self._hint

    def end_write_back(self, hint):
        self.ended.append(hint)
        raise OSError("The room stays taken")


def on_appended(log):
    """Return whether the append waits, what was begun, and what of it ran in threads."""
    begun, ran = [], []

    async def note(work):
        ran.append(work)

    flushing = Flushing(SimpleNamespace(offload=note), None, begun.append)
    waits = flushing.on_appended(SimpleNamespace(log=log, flushing=None))
    names = [each.__name__ for each in begun]
    for each in begun:
        if each.__name__ == "_write_back":
            asyncio.run(each)
        each.close()
    return waits, names, ran


def test_an_append_waits_for_the_sync_that_its_settings_ask_for_and_for_no_other():
    assert on_appended(Appended(flush_messages=5))[:2] == (True, ["_flush_alone"])
    assert on_appended(Appended(base_offset=7))[:2] == (False, ["_flush_alone"]), "it left one"
    assert on_appended(Appended(base_offset=5))[:2] == (False, [])


def test_the_disk_is_told_to_begin_early_and_off_the_loop():
    hint = SimpleNamespace(run=lambda: None)
    log = Appended(hint=hint)
    assert on_appended(log) == (False, ["_write_back"], [hint.run])
    assert log.ended == [hint]
