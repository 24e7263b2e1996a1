"""Batches that come together are written at once, and are what they were one by one."""

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strom.log.config import LogConfig
from strom.log.segment import Segment
from strom.log.snapshots import write_snapshot
from strom.records.batch import TRANSACTIONAL_FLAG, read_header
from strom.records.control_key import ControlType
from strom.records.record import NO_PRODUCER, Producer
from strom.testing.disk import FakeDisk, FakeFile
from strom.wire.errors import ErrorCode, KafkaError
from tests.log.making import (
    NOW,
    PATH,
    SMALL,
    append,
    batch,
    end_transaction,
    new_disk,
    open_log,
    values_of,
)

ROOMY = LogConfig(segment_bytes=100_000, index_interval_bytes=100)


@pytest.fixture
def writes(monkeypatch):
    """The sizes of all writes to files of batches, and of how many parts each was."""
    found = []
    write_parts_at, write_at = FakeFile.write_parts_at, FakeFile.write_at

    def note_parts(self, parts, position):
        found.append(len(parts))
        with monkeypatch.context() as inner:
            inner.setattr(FakeFile, "write_at", write_at)
            return write_parts_at(self, parts, position)

    def note(self, data, position):
        found.append(1)
        return write_at(self, data, position)

    monkeypatch.setattr(FakeFile, "write_parts_at", note_parts)
    monkeypatch.setattr(FakeFile, "write_at", note)
    return found


def place(log, *values, at=NOW, **options):
    records = batch(*values, at=at, **options)
    return log.place_as_leader(records, read_header(records), 0, at)


def write(log, at=NOW):
    return log.write_placed(0, at)


def test_what_is_placed_is_no_part_of_the_log_until_it_is_written(writes):
    log = open_log(new_disk(), ROOMY)
    append(log, b"first")
    writes.clear()
    size = log.size_bytes
    placed = [place(log, b"a", b"b"), place(log, b"c"), place(log, b"d")]
    assert [(each.base_offset, each.last_offset) for each in placed] == [(1, 2), (3, 3), (4, 4)]
    assert (log.end_offset, log.size_bytes, writes) == (1, size, [])
    assert write(log) == log.size_bytes - size
    assert writes == [3]
    assert values_of(log) == list(enumerate([b"first", b"a", b"b", b"c", b"d"]))
    assert write(log) == 0


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        (Producer(7, 0, 0), Producer(7, 0, 1), True),
        (Producer(7, 0, 2**31 - 1), Producer(7, 0, 0), True),
        (Producer(7, 0, 0), Producer(8, 0, 0), False),
        (Producer(7, 0, 0), Producer(7, 1, 0), False),
        (Producer(7, 0, 0), NO_PRODUCER, False),
        (Producer(7, 0, 0), Producer(7, 0, 0), False),
    ],
)
def test_only_the_next_of_the_same_producer_goes_with_the_one_before(
    writes, first, second, together
):
    log = open_log(new_disk(), ROOMY)
    append(log, b"first")
    writes.clear()
    place(log, b"a", producer=first)
    place(log, b"b", producer=second)
    write(log)
    assert writes[0] == (2 if together else 1)


def test_a_transaction_is_not_mixed_with_what_is_none(writes):
    log = open_log(new_disk(), ROOMY)
    append(log, b"first")
    writes.clear()
    place(log, b"a", producer=Producer(7, 0, 0), flags=TRANSACTIONAL_FLAG)
    with pytest.raises(KafkaError) as caught:
        place(log, b"b", producer=Producer(7, 0, 1))
    assert caught.value.code == ErrorCode.INVALID_TXN_STATE
    assert writes == [1]


def test_a_duplicate_of_what_came_with_it_is_told_where_that_is():
    log = open_log(new_disk(), ROOMY)
    append(log, b"first")
    first = place(log, b"a", producer=Producer(7, 0, 0))
    again = place(log, b"a", producer=Producer(7, 0, 0))
    write(log)
    assert again.duplicate
    assert again.base_offset == first.base_offset == 1
    assert log.end_offset == 2


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_write_that_fails_tells_all_and_changes_nothing(disk, code):
    log = open_log(disk, ROOMY)
    append(log, b"first", producer=Producer(7, 0, 0))
    size, known = log.size_bytes, write_snapshot(log.producers)
    placed = [place(log, b"%d" % n, producer=Producer(7, 0, n)) for n in (1, 2, 3)]
    disk.fail_next("write_at", code)
    assert write(log) == 0
    assert {each.error.code for each in placed} == {ErrorCode.KAFKA_STORAGE_ERROR}
    assert (log.end_offset, log.size_bytes) == (1, size)
    assert write_snapshot(log.producers) == known
    assert dict(disk.scan(PATH))[f"{0:020d}.log"] == size
    if code == errno.ENOSPC:
        again = [place(log, b"%d" % n, producer=Producer(7, 0, n)) for n in (1, 2, 3)]
        write(log)
        assert [each.error for each in again] == [None] * 3
        assert values_of(log) == list(enumerate([b"first", b"1", b"2", b"3"]))


@pytest.mark.parametrize("taken", [1, 70, 75, 150])
def test_a_short_write_is_gone_on_with(disk, taken):
    log = open_log(disk, ROOMY)
    append(log, b"first")
    placed = [place(log, b"%d" % n) for n in range(3)]
    disk.shorten_next(taken)
    write(log)
    assert [each.error for each in placed] == [None] * 3
    assert values_of(log) == list(enumerate([b"first", b"0", b"1", b"2"]))


def test_the_index_is_no_larger_than_it_may_be():
    """As if each had been written by itself: the next segment is begun in time."""
    config = LogConfig(segment_bytes=100_000, index_interval_bytes=1, index_bytes_max=60)
    by_one, together = open_log(new_disk(), config), open_log(new_disk(), config)
    for number in range(40):
        append(by_one, b"%d" % number, at=NOW + number)
        place(together, b"%d" % number, at=NOW + number)
    write(together)
    assert bases(together) == bases(by_one)
    assert len(by_one.segments) > 5


#: A producer's number or none, how far its sequence jumps, a value's size, how much later it is.
STEPS = st.lists(
    st.tuples(
        st.sampled_from([None, 1, 1, 1, 2]),
        st.sampled_from([0, 0, 0, 0, 0, -1, 1]),
        st.sampled_from([1, 40, 300, 1500, 3000]),
        st.sampled_from([0, 1, 1, 100_000, -100_000]),
        st.booleans(),
    ),
    max_size=30,
)


@given(STEPS)
def test_log_02_files_and_answers_are_those_of_batches_that_came_one_by_one(steps):
    config = LogConfig(segment_bytes=2000, index_interval_bytes=100, segment_ms=150_000)
    disks = new_disk(), new_disk()
    by_one, together = (open_log(disk, config) for disk in disks)
    sequences, at = {1: 0, 2: 0}, NOW
    told, pending = [], []
    for number, jump, size, later, is_last in steps:
        at += later
        producer = NO_PRODUCER
        if number is not None:
            producer = Producer(number, 0, max(sequences[number] + jump, 0))
        options = {"at": at, "producer": producer}
        outcome = outcome_of(lambda: append(by_one, b"v" * size, **options))  # noqa: B023
        if number is not None and isinstance(outcome, tuple) and not outcome[2]:
            sequences[number] = producer.base_sequence + 1
        told.append(outcome)
        pending.append(refusal_or(lambda: place(together, b"v" * size, **options)))  # noqa: B023
        if is_last:
            write(together, at)
    write(together, at)
    assert [each if isinstance(each, ErrorCode) else facts(each) for each in pending] == told
    for log in (by_one, together):
        log.close()
    assert files_of(disks[0]) == files_of(disks[1])


def refusal_or(work):
    try:
        return work()
    except KafkaError as error:
        return error.code


def outcome_of(work):
    found = refusal_or(work)
    return found if isinstance(found, ErrorCode) else facts(found)


def facts(appended):
    assert appended.error is None
    return appended.base_offset, appended.last_offset, appended.duplicate


def files_of(disk: FakeDisk):
    return {name: disk.read(f"{PATH}/{name}") for name, _ in disk.scan(PATH)}


def test_a_batch_larger_than_a_segment_is_refused_alone():
    log = open_log(new_disk(), SMALL)
    append(log, b"first")
    placed = place(log, b"a")
    assert outcome_of(lambda: place(log, b"v" * 3000)) == ErrorCode.RECORD_LIST_TOO_LARGE
    write(log)
    assert facts(placed) == (1, 1, False)


def test_what_a_coordinator_writes_comes_behind_what_was_placed():
    log = open_log(new_disk(), ROOMY)
    append(log, b"first")
    placed = place(log, b"a", producer=Producer(7, 0, 0), flags=TRANSACTIONAL_FLAG)
    marker = end_transaction(log, Producer(7, 0, -1), ControlType.COMMIT)
    assert (placed.base_offset, marker.base_offset, log.end_offset) == (1, 2, 3)


def test_a_fault_of_ours_is_no_success_to_anybody(monkeypatch):
    log = open_log(new_disk(), ROOMY)
    append(log, b"first")
    placed = place(log, b"a")

    def fail(self, batches, size_bytes):
        raise MemoryError

    with monkeypatch.context() as inner:
        inner.setattr(Segment, "write", fail)
        with pytest.raises(MemoryError):
            place(log, b"b", producer=Producer(7, 0, 0))
    assert placed.error.code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert write(log) == 0
    assert append(log, b"next").base_offset == 1


def test_a_file_that_cannot_be_read_when_batches_are_joined_is_told_by_the_write(disk):
    """How old a segment is stands in its first batch, which a start does not read."""
    log = open_log(disk, ROOMY)
    append(log, b"first")
    log.active._first_time = None
    placed = [place(log, b"a")]
    disk.cool()
    disk.break_reads(PATH)
    placed.append(place(log, b"b"))
    write(log)
    assert {each.error.code for each in placed} == {ErrorCode.KAFKA_STORAGE_ERROR}


def test_a_sequence_that_goes_on_in_another_epoch_is_refused():
    log = open_log(new_disk(), ROOMY)
    append(log, b"first")
    placed = place(log, b"a", producer=Producer(7, 0, 0))
    again = outcome_of(lambda: place(log, b"b", producer=Producer(7, 1, 1)))
    assert again == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    write(log)
    assert facts(placed) == (1, 1, False)


@pytest.mark.parametrize("times", [(0, 200), (0, 0, 200), (0, 200, 1), (0, 1, 200, 2, 400)])
def test_segments_are_as_old_as_those_of_batches_that_came_one_by_one(times):
    config = LogConfig(segment_bytes=100_000, segment_ms=150)
    by_one, together = open_log(new_disk(), config), open_log(new_disk(), config)
    for number, later in enumerate(times):
        append(by_one, b"%d" % number, at=NOW + later)
        place(together, b"%d" % number, at=NOW + later)
    write(together)
    assert bases(together) == bases(by_one)
    assert len(by_one.segments) > 1


def bases(log):
    return [each.base_offset for each in log.segments]
