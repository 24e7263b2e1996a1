"""Whenever the power goes while a log is cleaned, the old segments or the new ones are there.

Some of the records are of transactions, committed and aborted: what a careful reader sees is the
same too. Once nothing is left of an aborted one it is in no index either: when its marker has gone
as well, a reader who is told of it would drop all that its producer has written since.
"""

from random import Random

import pytest

from strom.records.control_key import ControlType
from strom.records.record import Producer, read_records
from strom.testing.disk import PowerCutError
from tests.log.cleaning import COMPACT, DAY, clean_log, contents, put, put_transactional
from tests.log.making import NOW, PATH, aborted, end_transaction, flush, new_disk, open_log

pytestmark = pytest.mark.slow

PRODUCERS = Producer(7, 0, 0), Producer(8, 0, 0)
LATER = NOW + 2 * DAY


def filled(disk):
    log = open_log(disk, COMPACT)
    sequences = dict.fromkeys(PRODUCERS, 0)
    for number in range(60):
        pairs = (b"%d" % (number % 5), b"v" * 30), (b"once %d" % number, b"")
        if number % 6 == 0:
            # All but the first of each are committed.
            producer = PRODUCERS[number // 6 % 2]
            numbered = producer._replace(base_sequence=sequences[producer])
            put_transactional(log, numbered, *pairs, at=NOW + number)
            sequences[producer] += len(pairs)
            outcome = ControlType.ABORT if number < 12 else ControlType.COMMIT
            end_transaction(log, producer, outcome)
        else:
            put(log, *pairs, at=NOW + number)
        if number % 9 == 0:
            log.roll(NOW)
    return flush(log)


def aged(disk):
    """A log whose first cleaning was long ago: of what was aborted nothing need be kept."""
    log = filled(disk)
    clean_log(log, disk)
    for _ in range(2):
        put(log, (b"3", b"newer"), at=LATER)
        log.roll(LATER)
    return flush(log)


def newest_of(records):
    """Return what each key has."""
    return {key: (offset, value) for offset, _, key, value in records}


def committed(log):
    """Return what a reader of committed records sees, who goes by the index as clients do."""
    void = sorted(aborted(log, log.start_offset, log.end_offset), key=lambda each: each[1])
    dropped, found = set(), []
    for header, batch in log.read_batches(log.start_offset):
        while void and void[0].first_offset <= header.last_offset:
            dropped.add(void.pop(0).producer_id)
        if header.is_control:
            dropped.discard(header.producer_id)
        elif header.producer_id < 0 or header.producer_id not in dropped:
            found += [(it.offset, it.timestamp_ms, it.key, it.value) for it in read_records(batch)]
    return found


def seen(log):
    return contents(log), newest_of(committed(log)), log.end_offset


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
        before = seen(log)
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


def segments_of(log):
    """Return each segment's offset, size, and transactions that are void."""
    return {(each.base_offset, each.size_bytes, tuple(each.aborted())) for each in log.segments}


def test_no_segment_has_the_transactions_of_another(disk):
    log = aged(disk)
    old, start = segments_of(log), disk.changes
    clean_log(log, disk, now_ms=LATER)
    new = segments_of(log)
    assert any(void for *_, void in old)
    assert not any(void for *_, void in new)
    for changes in range(disk.changes - start):
        disk = new_disk()
        log = aged(disk)
        before = seen(log)
        disk.cut_power_after(changes)
        with pytest.raises(PowerCutError):
            clean_log(log, disk, now_ms=LATER)
        disk.crash(Random(changes))
        again = open_log(disk, COMPACT, clean=False, recovery_point=log.recovery_point)
        assert segments_of(again) <= old | new
        check(again, before)


def check(log, before):
    found = contents(log)
    everything, newest, end_offset = before
    assert newest_of(committed(log)) == newest
    assert [each for each in everything if each in found] == found
    assert log.end_offset == end_offset
    bases = [each.base_offset for each in log.segments]
    assert bases == sorted(set(bases))
    for segment in log.segments:
        positions = list(segment.offset_index().positions)
        starts = [position for position, _, _ in segment.batches(segment.base_offset)]
        assert set(positions) <= set(starts)


def test_a_crash_while_a_start_finishes_a_swap_leaves_the_same(disk):
    log = filled(disk)
    before = seen(log)
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
    return flush(log)


def test_no_segment_of_a_group_stays_beside_its_replacement(disk):
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


def test_a_transaction_whose_marker_was_cleaned_away_is_not_open_after_a_power_cut(disk):
    """The snapshot in front of its marker has it as open, and the later ones go with their
    segments; but for the one that the active segment begins with, which is the newest."""
    log = open_log(disk, COMPACT)
    producer = PRODUCERS[0]
    put_transactional(log, producer, (b"once", b"older"))
    put(log, (b"large", b"v" * 1700))
    log.roll(NOW)
    end_transaction(log, producer, ControlType.COMMIT)
    put(log, (b"once", b"newer"))
    for days in (0, 2, 4, 6):
        now = NOW + days * DAY
        put(log, (b"again", b""), at=now)
        log.roll(now)
        put(log, (b"again", b""), at=now)
        log.expire_producers(now)
        clean_log(flush(log), disk, now_ms=now)
        disk.sync_directory(PATH)
    assert not any(header.is_control for header, _ in log.read_batches(0))
    disk.crash()
    log = open_log(disk, COMPACT, clean=False, recovery_point=log.recovery_point)
    assert log.last_stable_offset(log.end_offset) == log.end_offset
