"""Whenever the power goes while a log is cleaned, the old segments or the new ones are there."""

from random import Random

import pytest

from strom.testing.disk import PowerCutError
from tests.log.cleaning import COMPACT, clean_log, contents, put
from tests.log.making import NOW, PATH, new_disk, open_log

pytestmark = pytest.mark.slow


def filled(disk):
    log = open_log(disk, COMPACT)
    for number in range(60):
        put(log, (b"%d" % (number % 5), b"v" * 30), (b"once %d" % number, b""), at=NOW + number)
        if number % 9 == 0:
            log.roll(NOW)
    flush = log.begin_flush()
    flush.run()
    log.end_flush(flush, NOW)
    return log


def newest_of(records):
    """Return what each key has."""
    return {key: (offset, value) for offset, _, key, value in records}


def changes_of_a_cleaning() -> int:
    disk = new_disk()
    log = filled(disk)
    before = disk.changes
    clean_log(log, disk)
    return disk.changes - before


@pytest.mark.parametrize("seed", range(3))
def test_a_crash_at_every_change_leaves_the_old_segments_or_the_new(seed):
    outcomes = set()
    for changes in range(changes_of_a_cleaning()):
        disk = new_disk()
        log = filled(disk)
        before = contents(log)
        disk.cut_power_after(changes)
        with pytest.raises(PowerCutError):
            clean_log(log, disk)
        disk.crash(Random(1000 * seed + changes))
        again = open_log(disk, COMPACT, clean=False, recovery_point=log.recovery_point)
        names = [name for name, _ in disk.scan(PATH)]
        assert not [name for name in names if name.endswith((".swap", ".cleaned", ".deleted"))]
        found = contents(again)
        outcomes.add(len(found))
        check(again, before)
        # It goes on from there: cleaned once more it is as if nothing had been.
        clean_log(again, disk)
        check(again, before)
        disk.crash(Random(changes))
        check(open_log(disk, COMPACT, clean=False, recovery_point=log.recovery_point), before)
    assert len(outcomes) > 2


def check(log, before):
    found = contents(log)
    assert newest_of(found) == newest_of(before)
    assert [each for each in before if each in found] == found
    assert log.end_offset == 120
    bases = [each.base_offset for each in log.segments]
    assert bases == sorted(set(bases))
    for segment in log.segments:
        positions = list(segment.offset_index().positions)
        starts = [position for position, _, _ in segment.batches(segment.base_offset)]
        assert set(positions) <= set(starts)


def test_a_crash_while_a_start_finishes_a_swap_leaves_the_same():
    disk = new_disk()
    log = filled(disk)
    before = contents(log)
    # In the middle of the last group's swap.
    disk.cut_power_after(changes_of_a_cleaning() - 3)
    with pytest.raises(PowerCutError):
        clean_log(log, disk)
    disk.crash(Random(5))
    for changes in range(12):
        disk.cut_power_after(changes)
        try:
            open_log(disk, COMPACT, clean=False, recovery_point=log.recovery_point)
        except PowerCutError:
            disk.crash(Random(changes))
    disk.crash()
    again = open_log(disk, COMPACT, clean=False, recovery_point=log.recovery_point)
    check(again, before)


def hollow(disk):
    """Return a log whose first segments become one, of which only the beginning has records."""
    log = open_log(disk, COMPACT)
    for key in (b"stays", b"goes", b"goes", b"goes"):
        put(log, (key, b"v"))
        log.roll(NOW)
    put(log, (b"goes", b"v" * 1800))
    log.roll(NOW)
    flush = log.begin_flush()
    flush.run()
    log.end_flush(flush, NOW)
    return log


def test_no_segment_of_a_group_stays_beside_its_replacement():
    disk = new_disk()
    log = hollow(disk)
    before, start = contents(log), disk.changes
    clean_log(log, disk)
    after = contents(log)
    assert [offset for offset, *_ in after] == [0, 4]
    for changes in range(disk.changes - start):
        disk = new_disk()
        log = hollow(disk)
        disk.cut_power_after(changes)
        with pytest.raises(PowerCutError):
            clean_log(log, disk)
        disk.crash(Random(changes))
        again = open_log(disk, COMPACT, clean=False, recovery_point=log.recovery_point)
        assert contents(again) in (before, after)
