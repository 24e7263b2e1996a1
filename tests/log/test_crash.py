"""Whatever is under way when the power goes, the log comes back with what it promised."""

from random import Random

import pytest

from strom.log.log import Log
from strom.records.control_key import ControlType
from strom.records.record import Producer
from strom.testing.disk import FakeDisk, PowerCutError
from tests.log.making import (
    NOW,
    SMALL,
    aborted,
    append,
    append_transactional,
    end_transaction,
    flush,
    new_disk,
    open_log,
    reopen,
    values_of,
)


class Story:
    """A log with all that can happen to it, and the model of what it must hold."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.disk = new_disk()
        #: Every batch that was tried, in order: what is recovered must be a beginning of it.
        self.tried: list[list[bytes]] = []
        #: So many batches were answered, and so many of them are flushed.
        self.answered = self.flushed = 0
        self.recovery_point = 0
        self.sequence = 0
        self.log: Log | None = None

    def run(self) -> None:
        self.log = open_log(self.disk)
        for step in range(40):
            self.step(self.log, step)
        self.log.close()

    def step(self, log: Log, step: int) -> None:
        what = self.rng.randrange(10)
        if what == 0:
            log.roll(NOW + step)
        elif what < 3:
            self.flush(log)
        else:
            self.append(log, step, what)

    def append(self, log: Log, step: int, what: int) -> None:
        values = [self.rng.randbytes(self.rng.randrange(200)) for _ in range(1 + what % 3)]
        self.tried.append(values)
        if what == 3:
            producer = Producer(5, 0, self.sequence)
            append(log, *values, at=NOW + step, producer=producer, epoch=step // 9)
            self.sequence += len(values)
        else:
            append(log, *values, at=NOW + step, epoch=step // 9)
        self.answered = len(self.tried)

    def flush(self, log: Log) -> None:
        flush = log.begin_flush()
        answered = self.answered
        flush.run()
        log.end_flush(flush, NOW)
        self.flushed, self.recovery_point = answered, log.recovery_point


def check(story: Story, log: Log) -> int:
    """Compare a recovered log with its story; return how many batches came back."""
    found = [len(list(batches)) and header.record_count for header, batches in log.read_batches(0)]
    count = len(found)
    assert story.flushed <= count <= len(story.tried)
    expected = [value for values in story.tried[:count] for value in values]
    assert values_of(log) == list(enumerate(expected))
    for offset in range(0, log.end_offset, 3):
        assert values_of(log, offset)[0][0] == offset
    check_parts(log)
    return count


def check_parts(log: Log) -> None:
    """Everything beside the batches must be as the batches say."""
    epochs: dict[int, int] = {}
    last_sequence = -1
    for header, _ in log.read_batches(0):
        epochs.setdefault(header.leader_epoch, header.base_offset)
        if header.producer_id == 5:
            last_sequence = header.last_sequence
    known = None if log.producers is None else log.producers.get(5)
    assert (known.last_sequence if known else -1) == last_sequence
    assert set(epochs.items()) <= set(log.epochs.entries)
    for segment in log.segments:
        positions = list(segment.offset_index().positions)
        starts = [position for position, _, _ in segment.batches(segment.base_offset)]
        assert set(positions) <= set(starts)


def count_changes(seed: int) -> int:
    story = Story(seed)
    before = story.disk.changes
    story.run()
    return story.disk.changes - before


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_crash_at_every_change_loses_nothing_that_was_flushed(seed):
    for changes in range(0, count_changes(seed), 1 + seed % 2):
        story = Story(seed)
        story.disk.cut_power_after(changes)
        with pytest.raises(PowerCutError):
            story.run()
        story.disk.crash(Random(changes))
        log = open_log(story.disk, clean=False, recovery_point=story.recovery_point)
        count = check(story, log)
        # It goes on, and a second crash right after recovery finds the same.
        log.close()
        again = open_log(story.disk, clean=False, recovery_point=story.recovery_point)
        assert check(story, again) == count
        append(again, b"goes on")
        assert values_of(again)[-1][1] == b"goes on"


@pytest.mark.parametrize("seed", range(3))
def test_a_crash_during_recovery_loses_nothing_either(seed):
    story = Story(seed)
    story.disk.cut_power_after(count_changes(seed) * 2 // 3)
    with pytest.raises(PowerCutError):
        story.run()
    story.disk.crash(Random(seed))
    for changes in range(12):
        story.disk.cut_power_after(changes)
        try:
            open_log(story.disk, clean=False, recovery_point=story.recovery_point)
        except PowerCutError:
            story.disk.crash(Random(changes))
    story.disk.crash()
    check(story, open_log(story.disk, clean=False, recovery_point=story.recovery_point))


def test_after_a_clean_close_a_crash_loses_nothing():
    story = Story(7)
    story.run()
    story.disk.crash()
    log = open_log(story.disk, recovery_point=story.log.recovery_point)
    story.flushed = len(story.tried)
    assert check(story, log) == len(story.tried)


def test_transactions_are_found_again_from_the_batches(log, disk):
    first, second = Producer(1, 0, 0), Producer(2, 0, 0)
    append_transactional(log, first, b"a", b"b")
    append_transactional(log, second, b"c")
    end_transaction(log, first, ControlType.ABORT, coordinator_epoch=3)
    for _ in range(30):
        append(log, b"x" * 50)
    flush(log)
    before, stable = aborted(log, 0, 99), log.last_stable_offset(log.end_offset)
    assert before == [(1, 0, 3, 2)]
    assert stable == 2
    for recovery_point in (0, log.recovery_point):
        disk.crash()
        again = open_log(disk, clean=False, recovery_point=recovery_point)
        assert aborted(again, 0, 99) == before
        assert again.last_stable_offset(again.end_offset) == stable
        assert again.producers.get(1).coordinator_epoch == 3


def with_one_aborted(disk):
    log = open_log(disk)
    append_transactional(log, Producer(1, 0, 0), b"a", b"b")
    end_transaction(log, Producer(1, 0), ControlType.ABORT)
    return log


@pytest.mark.parametrize("seed", range(20))
def test_what_was_aborted_stays_so_if_the_power_goes_after_a_clean_stop(disk, seed):
    log = with_one_aborted(disk)
    log.close()
    disk.crash(Random(seed))
    assert aborted(open_log(disk, recovery_point=3), 0, 99) == [(1, 0, 2, 3)]


@pytest.mark.parametrize("seed", range(20))
def test_what_was_aborted_stays_so_if_the_power_goes_after_a_roll_behind_a_flush(disk, seed):
    """As with flush.messages=1: the recovery point is where the next segment begins."""
    log = with_one_aborted(disk)
    flush(log)
    log.roll(NOW)
    disk.sync_directory(log.directory)
    disk.crash(Random(seed))
    log = open_log(disk, clean=False, recovery_point=3)
    assert aborted(log, 0, 99) == [(1, 0, 2, 3)]


def crash_while(disk: FakeDisk, work) -> bool:
    """Run the work; tell whether the power went meanwhile."""
    try:
        work()
    except PowerCutError:
        return True
    return False


def filled(disk: FakeDisk) -> Log:
    log = open_log(disk)
    for number in range(60):
        append(log, b"%d" % number, at=NOW + number, epoch=number // 25)
    return flush(log)


@pytest.mark.parametrize("target", [10, 33, 45])
def test_a_crash_while_truncating_leaves_the_log_before_or_after_or_between(target):
    changes = 0
    went = True
    while went:
        disk = new_disk()
        log = filled(disk)
        before = values_of(log)
        disk.cut_power_after(changes)
        went = crash_while(disk, lambda log=log: log.truncate_to(target))
        disk.crash(Random(changes))
        # Whoever truncates writes the recovery point down, before or after.
        again = open_log(disk, clean=False, recovery_point=target)
        assert again.end_offset >= target
        assert values_of(again) == before[: again.end_offset]
        changes += 1


def test_a_crash_while_retaining_leaves_an_end_of_the_log():
    changes = 0
    went = True
    while went:
        disk = new_disk()
        log = filled(disk)
        before = values_of(log)
        disk.cut_power_after(changes)
        later = NOW + 30 + SMALL.retention_ms
        went = crash_while(disk, lambda log=log, later=later: log.retain(later))
        disk.crash(Random(changes))
        again = open_log(disk, clean=False, recovery_point=60)
        assert again.end_offset == 60
        assert values_of(again) == before[again.start_offset :]
        changes += 1
    assert again.start_offset > 0 or changes > 3


def with_one_synced(disk):
    log = open_log(disk)
    append(log, b"a" * 100)
    return flush(log)


@pytest.mark.parametrize("seed", range(20))
def test_a_clean_stop_is_one_also_where_the_start_was_raised_over_all(disk, seed):
    """DeleteRecords with -1: nothing is left to be read, and what is written next is not torn."""
    log = with_one_synced(disk)
    append(log, b"b" * 100)
    assert log.raise_start_offset(2)
    log.close()
    disk.crash(Random(seed))
    log = open_log(disk, recovery_point=2, start_offset=2)
    append(log, b"c")
    assert values_of(log, 2) == [(2, b"c")]


@pytest.mark.parametrize("seed", range(20))
def test_what_retention_took_does_not_come_back_after_a_clean_stop(disk, seed):
    log = with_one_synced(disk)
    log.roll(NOW)
    append(log, b"b" * 100)
    assert log.raise_start_offset(2)
    assert log.retain(NOW).start_offset_changed is False
    log.close()
    disk.crash(Random(seed))
    names = [name for name, _ in disk.scan(log.directory) if name.endswith(".log")]
    assert names == ["00000000000000000002.log"]


def test_what_a_crash_has_lost_behind_a_raised_start_is_no_gap_of_the_log(disk):
    """The start was raised over batches that nobody has synced."""
    log = with_one_synced(disk)
    for value in (b"b", b"c", b"d"):
        append(log, value)
    log.roll(NOW)
    append(log, b"e")
    log.active.file().sync()
    disk.sync_directory(log.directory)
    assert log.raise_start_offset(2)
    # Of the first segment only what was synced is left, and the second one is whole.
    disk.crash()
    log = open_log(disk, clean=False, recovery_point=log.recovery_point, start_offset=2)
    assert (log.start_offset, log.end_offset, values_of(log)) == (2, 2, [])
    append(log, b"next")
    assert values_of(log) == [(2, b"next")]


def test_a_raised_start_that_is_forgotten_again_has_nothing_torn_served(disk):
    """Where the logs begin is noted at another time than what is on disk of them."""
    log = with_one_synced(disk)
    for value in (b"b", b"c"):
        append(log, value)
        log.roll(NOW)
    append(log, b"d")
    disk.sync_directory(log.directory)
    assert log.raise_start_offset(4)
    disk.crash(Random(2))
    again = open_log(disk, clean=False, recovery_point=log.recovery_point)
    assert values_of(again) == [(0, b"a" * 100)]


def test_what_is_synced_behind_a_raised_start_outlives_a_hole_in_front_of_it(disk):
    """A checkpoint may name an earlier start, that was raised in the same way."""
    log = with_one_synced(disk)
    append(log, b"b")
    append(log, b"c")
    assert log.raise_start_offset(2)
    noted = log.recovery_point
    log.roll(NOW)
    append(log, b"d")
    assert log.raise_start_offset(4)
    append(log, b"e")
    flush(log)
    assert log.recovery_point == 5
    disk.crash()
    again = open_log(disk, clean=False, recovery_point=noted, start_offset=2)
    assert again.end_offset == 5
    assert values_of(again, 4) == [(4, b"e")]


def test_a_transaction_that_ended_in_front_of_the_first_segment_is_not_open(log, disk):
    """A clean stop leaves a snapshot that no segment begins with; retention does not take it."""
    producer = Producer(1, 0, 0)
    append_transactional(log, producer, b"a")
    log = reopen(log, disk)
    # In time the system writes it.
    disk.open(f"{log.directory}/{1:020d}.snapshot").sync()
    end_transaction(log, producer, ControlType.COMMIT)
    later = NOW + SMALL.retention_ms + 1
    log.retain(later)
    append(log, b"b", at=later)
    flush(log)
    # The snapshot that the first segment begins with was not waited for.
    disk.crash()
    log = open_log(disk, clean=False, recovery_point=log.recovery_point)
    assert (log.start_offset, log.end_offset) == (2, 3)
    assert log.last_stable_offset(3) == 3


@pytest.mark.parametrize("seed", range(20))
def test_a_segment_that_ends_at_the_recovery_point_is_read_again(disk, seed):
    """It is left when the point is there already, and what recovery wrote of it was not synced."""
    log = with_one_aborted(disk)
    flush(log)
    disk.crash()
    log = open_log(disk, clean=False, recovery_point=3)
    log.roll(NOW)
    disk.sync_directory(log.directory)
    disk.crash(Random(seed))
    log = open_log(disk, clean=False, recovery_point=3)
    assert aborted(log, 0, 99) == [(1, 0, 2, 3)]
    log.roll(NOW)
    append(log, b"c")
    log.begin_flush().run()
    disk.crash(Random(seed))
    assert aborted(open_log(disk, clean=False, recovery_point=4), 0, 99) == [(1, 0, 2, 3)]


def test_a_raised_start_that_is_forgotten_again_takes_no_epoch_with_it(disk):
    log = with_one_synced(disk)
    append(log, b"b" * 100, epoch=1)
    assert log.raise_start_offset(2)
    flush = log.begin_flush()
    append(log, b"c", epoch=2)
    flush.run()
    disk.crash()
    log = open_log(disk, clean=False)
    assert log.epochs.entries == ((0, 0), (1, 1), (2, 2))
