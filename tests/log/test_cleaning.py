"""A cleaned log holds the newest record of each key, where it was, and nothing else has changed."""

import contextlib
import errno
import os
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strom.log.cleaning import Source, UncleanableError, clean, groups
from strom.log.cleaning_choice import find_cleanable
from strom.log.cleaning_swap import SwapGivenUpError
from strom.log.cold import DamagedSegmentError
from strom.log.segment import RELATIVE_MAX
from strom.records.compression import Codec
from strom.records.control_key import ControlType
from strom.records.record import Producer, Record, write_batch
from strom.wire.errors import ErrorCode, KafkaError
from tests.effort import examples
from tests.log.cleaning import (
    COMPACT,
    DAY,
    clean_log,
    contents,
    headers,
    job_of,
    pairs_of,
    put,
    put_transactional,
)
from tests.log.making import NOW, PATH, end_transaction, first_at, new_disk, open_log, reopen

KEYS = st.sampled_from([b"a", b"b", b"c", b"", b"long" * 20])
VALUES = st.none() | st.binary(max_size=40)
BATCHES = st.lists(
    st.tuples(
        st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=5),
        st.sampled_from(Codec),
        st.booleans(),
    ),
    max_size=40,
)


def filled(batches, config=COMPACT):
    """Return a disk and a log of these batches, which rolls where they say so."""
    disk = new_disk()
    log = open_log(disk, config)
    for number, (pairs, codec, rolls) in enumerate(batches):
        put(log, *pairs, at=NOW + 10 * number, codec=codec)
        if rolls:
            log.roll(NOW)
    return disk, log


def newest(records, end_offset):
    """Say what must be left of the records: the plain model of a cleaning."""
    last = {key: offset for offset, _, key, _ in records if offset < end_offset}
    return [each for each in records if each[0] >= end_offset or last[each[2]] == each[0]]


@given(BATCHES)
@settings(max_examples=examples(150), deadline=None)
def test_cmp_01_09_10_the_newest_of_each_key_stays_at_its_offset_in_order(batches):
    disk, log = filled(batches)
    before, end = contents(log), log.active.base_offset
    clean_log(log, disk)
    assert contents(log) == newest(before, end)
    assert log.clean_offset in (0, end)
    again = reopen(log, disk, COMPACT)
    assert contents(again) == newest(before, end)


@given(BATCHES)
@settings(max_examples=examples(60), deadline=None)
def test_cleaning_twice_is_cleaning_once(batches):
    disk, log = filled(batches)
    clean_log(log, disk)
    once, sizes = contents(log), log.size_bytes
    log.clean_offset = 0
    clean_log(log, disk)
    assert contents(log) == once
    assert log.size_bytes <= sizes


@given(BATCHES, st.integers(2, 8))
@settings(max_examples=examples(60), deadline=None)
def test_with_little_memory_it_goes_as_far_as_the_map_and_then_on(batches, keys):
    disk, log = filled(batches)
    before, end = contents(log), log.active.base_offset
    for _ in range(100):
        if log.clean_offset >= end:
            break
        try:
            clean_log(log, disk, memory_bytes=24 * 2 * keys)
        except UncleanableError:
            # The keys of a single batch are too many: nothing was changed by it.
            assert keys < 5
            break
    else:
        pytest.fail("no progress")
    wanted = newest(before, end)
    assert [each for each in contents(log) if each in wanted] == wanted
    assert newest(contents(log), end) == wanted


def test_cmp_02_a_record_without_a_key_is_refused():
    log = open_log(new_disk(), COMPACT)
    with pytest.raises(KafkaError) as refused:
        put(log, (b"k", b"1"), (None, b"2"))
    assert refused.value.code is ErrorCode.INVALID_RECORD
    assert log.end_offset == 0


def test_records_without_a_key_from_before_the_policy_go():
    disk, log = filled(
        [([(None, b"1"), (b"k", b"2")], 0, True)], replace(COMPACT, cleanup_compact=False)
    )
    log.config = COMPACT
    clean_log(log, disk)
    assert pairs_of(log) == [(1, b"k", b"2")]


def test_cmp_06_the_active_segment_is_left_alone():
    disk, log = filled([([(b"k", b"1")], 0, False), ([(b"k", b"2")], 0, False)])
    assert clean_log(log, disk) == []
    assert pairs_of(log) == [(0, b"k", b"1"), (1, b"k", b"2")]
    log.roll(NOW)
    clean_log(log, disk)
    assert pairs_of(log) == [(1, b"k", b"2")]


def test_cmp_08_09_small_segments_become_one_with_the_first_ones_name():
    disk, log = filled([([(b"%d" % (each % 3), b"v" * 50)], 0, True) for each in range(12)])
    assert len(log.segments) == 13
    (group,) = clean_log(log, disk)
    assert [each.base_offset for each in group.sources] == list(range(12))
    assert [each.base_offset for each in log.segments] == [0, 12]
    assert [offset for offset, _, _ in pairs_of(log)] == [9, 10, 11]
    assert log.start_offset == 0


def test_cmp_09_segments_become_one_only_as_far_as_their_indexes_have_room():
    config = replace(COMPACT, index_bytes_max=60)
    batches = [([(b"%d" % each, b"v" * 50)], 0, True) for each in range(12)]
    disk, log = filled(batches, config)
    (size,) = {size for name, size in disk.scan(PATH) if name.endswith(".timeindex") and size}
    cleaned = clean_log(log, disk)
    assert max(len(each.sources) for each in cleaned) == config.index_bytes_max // size


def test_cmp_09_segments_become_one_only_as_far_as_their_offsets_fit_into_an_index():
    """There an offset is told by its distance from the segment's first, in 32 bits."""
    disk, log = filled([([(b"k", b"v")], 0, True)])
    bases = (0, 10, RELATIVE_MAX, 2 * RELATIVE_MAX)
    job = replace(
        job_of(log),
        sources=tuple(Source(each, 100) for each in bases),
        end_offset=2 * RELATIVE_MAX + 10,
    )
    found = [[each.base_offset for each in group] for group in groups(disk, job, job.end_offset)]
    assert found == [[0, 10], [RELATIVE_MAX], [2 * RELATIVE_MAX]]


def test_the_time_of_appending_stays_that_of_a_batch_which_loses_records():
    disk, log = filled([], replace(COMPACT, timestamp_type="LogAppendTime"))
    for pairs in ([(b"a", b"1"), (b"b", b"1")], [(b"b", b"2")]):
        records = [Record(number, 5, *pair) for number, pair in enumerate(pairs)]
        log.append_as_leader(memoryview(write_batch(records)), leader_epoch=0, now_ms=NOW)
    log.roll(NOW)
    clean_log(log, disk)
    told = [(each.record_count, each.has_append_time, each.max_timestamp) for each in headers(log)]
    assert told == [(1, True, NOW), (1, True, NOW)]


def test_cmp_08_one_segment_at_a_time_needs_space_beside_the_log():
    disk, log = filled([([(b"%d" % each, b"v" * 900)], 0, False) for each in range(9)])
    assert len(log.segments) == 5
    for cleaned in clean(disk, job_of(log), lambda _: None):
        beside = [size for name, size in disk.scan(PATH) if name.endswith(".log.cleaned")]
        assert len(beside) <= 1
        if cleaned.sources:
            log.replace(cleaned.sources, cleaned.size_bytes)


def test_cmp_11_a_tombstone_deletes_its_key_and_goes_after_its_time():
    disk, log = filled([([(b"k", b"1")], 0, True), ([(b"k", None), (b"m", b"2")], 0, True)])
    clean_log(log, disk)
    assert contents(log) == [(1, NOW + 10, b"k", None), (2, NOW + 11, b"m", b"2")]
    assert headers(log)[-1].attributes == 0x40
    assert headers(log)[-1].base_timestamp == NOW + DAY
    for later, left in ((DAY - 1, [b"k", b"m"]), (DAY, [b"m"])):
        log.clean_offset = 0
        clean_log(log, disk, now_ms=NOW + later)
        assert [key for _, key, _ in pairs_of(log)] == left
    assert contents(log) == [(2, NOW + 11, b"m", b"2")]


def test_a_horizon_once_set_stays():
    disk, log = filled([([(b"k", None)], 0, True)])
    clean_log(log, disk)
    log.clean_offset = 0
    clean_log(log, disk, now_ms=NOW + DAY // 2)
    assert headers(log)[0].base_timestamp == NOW + DAY


def test_what_an_aborted_transaction_wrote_goes_and_its_marker_later(disk):
    log = open_log(disk, COMPACT)
    one, two = Producer(1, 0, 0), Producer(2, 0, 0)
    put(log, (b"k", b"before"))
    put_transactional(log, one, (b"k", b"void"))
    put_transactional(log, two, (b"m", b"good"))
    end_transaction(log, one, ControlType.ABORT)
    end_transaction(log, two, ControlType.COMMIT)
    put(log, (b"n", b"after"), producer=Producer(1, 0, 1))
    put(log, (b"n", b"after"), producer=Producer(2, 0, 1))
    log.roll(NOW)
    clean_log(log, disk)
    assert pairs_of(log) == [(0, b"k", b"before"), (2, b"m", b"good"), (6, b"n", b"after")]
    kinds = [(each.base_offset, each.is_control) for each in headers(log)]
    assert kinds == [(0, False), (2, False), (3, True), (4, True), (5, False), (6, False)]
    assert [each.first_offset for each in log.segments[0].aborted()] == [1]
    # Nothing of it is left: the abort's marker gets a horizon, and goes when that has passed.
    for later, left in ((0, [3, 4]), (DAY - 1, [3, 4]), (DAY, [4])):
        log.clean_offset = 0
        clean_log(log, disk, now_ms=NOW + later)
        assert [each.base_offset for each in headers(log) if each.is_control] == left
        assert log.segments[0].aborted() == []
    assert pairs_of(log)[1] == (2, b"m", b"good")


def test_an_open_transaction_holds_the_cleaner_back(disk):
    log = open_log(disk, COMPACT)
    put(log, (b"k", b"1"))
    log.roll(NOW)
    put_transactional(log, Producer(1, 0, 0), (b"k", b"2"))
    log.roll(NOW)
    assert find_cleanable(log, log.end_offset, NOW).end_offset == 1
    end_transaction(log, Producer(1, 0, 0), ControlType.COMMIT)
    log.roll(NOW)
    assert find_cleanable(log, log.end_offset, NOW).end_offset == 3


def test_the_last_batch_of_a_producer_stays_as_a_header(disk):
    log = open_log(disk, COMPACT)
    producer = Producer(7, 2, 0)
    put(log, (b"k", b"1"), (b"m", b"2"), producer=producer)
    put(log, (b"k", b"3"), (b"m", b"4"))
    log.roll(NOW)
    clean_log(log, disk)
    empty, full = headers(log)
    assert (empty.record_count, empty.last_offset, empty.last_sequence) == (0, 1, 1)
    assert full.record_count == 2
    log.close()
    again = open_log(disk, COMPACT, clean=False)
    assert again.producers.get(7).last_sequence == 1


def test_cmp_04_05_how_dirty_a_log_is_and_when_it_is_due():
    _, log = filled([([(b"k", b"v" * 50)], 0, True) for _ in range(4)])
    first = find_cleanable(log, log.end_offset, NOW)
    assert first.ratio == 1.0
    assert first.is_due(0.5)
    log.clean_offset = 2
    half = find_cleanable(log, log.end_offset, NOW)
    assert half.ratio == 0.5
    assert half.is_due(0.4)
    assert not half.is_due(0.5)
    log.clean_offset = 4
    assert not find_cleanable(log, log.end_offset, NOW).is_due(0.0)


@pytest.mark.parametrize(("ratio", "times"), [(0.5, 2), (0.2, 1.25)])
def test_cmp_12_a_ratio_of_a_half_is_at_most_double_the_storage(ratio, times):
    """And one of a fifth at most a quarter more."""
    disk, log = filled([([(b"%d" % each, b"v" * 50)], 0, True) for each in range(8)])
    clean_log(log, disk)
    clean_bytes = log.size_bytes
    while not find_cleanable(log, log.end_offset, NOW).is_due(ratio):
        put(log, (b"0", b"v" * 50))
        log.roll(NOW)
    dirty_bytes = log.segments[-2].size_bytes
    assert times * clean_bytes - dirty_bytes < log.size_bytes - dirty_bytes <= times * clean_bytes


def test_cmp_04_what_is_younger_than_the_least_lag_waits():
    _, log = filled([([(b"k", b"v")], 0, True) for _ in range(4)])
    log.config = replace(COMPACT, compaction_lag_min_ms=1000)
    assert find_cleanable(log, log.end_offset, NOW + 1015).end_offset == 2
    assert find_cleanable(log, log.end_offset, NOW + 2000).end_offset == 4


def test_cmp_04_what_is_older_than_the_greatest_lag_is_due_however_little_it_is():
    _, log = filled([([(b"k", b"v")], 0, True) for _ in range(40)])
    log.config = replace(COMPACT, compaction_lag_max_ms=1000)
    log.clean_offset = 39
    assert not find_cleanable(log, log.end_offset, NOW + 1390).is_due(0.5)
    assert find_cleanable(log, log.end_offset, NOW + 1391).is_due(0.5)


def test_cmp_04_what_is_too_old_and_cannot_be_cleaned_yet_is_not_due():
    """A cleaning that gets nowhere would have the log taken for one that cannot be cleaned."""
    _, log = filled([], replace(COMPACT, compaction_lag_max_ms=1000))
    put_transactional(log, Producer(1, 0, 0), (b"k", b"v"))
    log.roll(NOW)
    found = find_cleanable(log, log.end_offset, NOW + 2000)
    assert (found.is_overdue, found.dirty_bytes) == (True, 0)
    assert not found.is_due(0.5)
    end_transaction(log, Producer(1, 0, 0), ControlType.COMMIT)
    log.roll(NOW)
    assert find_cleanable(log, log.end_offset, NOW + 2000).is_due(0.99)


def test_cmp_07_the_greatest_lag_rolls_the_segment_at_the_next_write():
    config = replace(COMPACT, compaction_lag_max_ms=1000)
    log = open_log(new_disk(), config)
    put(log, (b"k", b"1"), at=NOW)
    put(log, (b"k", b"2"), at=NOW + 1000)
    assert len(log.segments) == 1
    put(log, (b"k", b"3"), at=NOW + 1001)
    assert [each.base_offset for each in log.segments] == [0, 2]


def test_ret_01_both_policies_at_once():
    config = replace(COMPACT, cleanup_delete=True, retention_ms=1000)
    disk, log = filled([([(b"%d" % each, b"v")], 0, True) for each in range(4)], config)
    clean_log(log, disk)
    assert len(pairs_of(log)) == 4
    put(log, (b"new", b"v"), at=NOW + 2000)
    log.retain(NOW + 2000)
    assert pairs_of(log) == [(4, b"new", b"v")]


def test_a_damaged_batch_is_not_given_a_right_checksum():
    disk, log = filled([([(b"k", b"value"), (b"m", b"value")], 0, True), ([(b"k", b"2")], 0, True)])
    file = log.segments[0].file()
    file.write_at(b"V", file.size() - 3)
    before = disk.read(log.segments[0].path(".log"))
    with pytest.raises(DamagedSegmentError):
        clean_log(log, disk)
    assert disk.read(log.segments[0].path(".log")) == before
    assert not [name for name, _ in disk.scan(PATH) if name.endswith(".cleaned")]


def test_a_log_that_was_cut_meanwhile_takes_nothing():
    disk, log = filled([([(b"k", b"v")], 0, True) for _ in range(6)])
    cleaning = clean(disk, job_of(log), lambda _: None)
    cleaned = next(cleaning)
    log.truncate_to(3)
    assert log.replace(cleaned.sources, cleaned.size_bytes) == ()
    assert [offset for offset, _, _ in pairs_of(log)] == [0, 1, 2]


def test_a_time_is_found_at_a_record_that_is_there():
    config = replace(COMPACT, timestamp_type="LogAppendTime")
    disk, log = filled([([(b"k", b"1"), (b"m", b"2")], 0, True), ([(b"k", b"3")], 0, True)], config)
    clean_log(log, disk)
    assert pairs_of(log) == [(1, b"m", b"2"), (2, b"k", b"3")]
    assert first_at(log, NOW, log.end_offset).offset == 1


def test_who_reads_the_old_segment_reads_on():
    disk, log = filled([([(b"k", b"v%d" % each)], 0, True) for each in range(3)])
    part = log.read(0, max_bytes=1000, end_offset=log.end_offset, whole_first=True)
    before = part.read_bytes()
    clean_log(log, disk)
    assert part.read_bytes() == before


def names(disk):
    return sorted(name for name, _ in disk.scan(PATH))


@pytest.mark.parametrize("renames", range(3))
def test_a_swap_for_which_there_is_no_room_is_taken_back(renames):
    """A new name may need room in the directory; here so many of the three are there already."""
    disk, log = filled([([(b"k", b"v%d" % each)], 0, True) for each in range(3)])
    pairs, before = pairs_of(log), names(disk)
    refused = (".index.swap", ".timeindex.swap", ".log.swap")[renames]
    with refusing(disk, refused, errno.ENOSPC), pytest.raises(SwapGivenUpError):
        clean_log(log, disk)
    assert (pairs_of(log), names(disk)) == (pairs, before)
    clean_log(log, disk)
    assert pairs_of(log) == [(2, b"k", b"v2")]


@pytest.mark.parametrize("suffix", [".log.deleted", ".index.deleted", ".index", ".log"])
def test_a_swap_that_fails_when_the_new_segment_counts_is_finished_by_the_next_start(suffix):
    disk, log = filled([([(b"k", b"v%d" % each)], 0, True) for each in range(3)])
    with refusing(disk, suffix, errno.ENOSPC), pytest.raises(OSError, match="No space") as caught:
        clean_log(log, disk)
    assert not isinstance(caught.value, SwapGivenUpError)
    again = open_log(disk, COMPACT, clean=False, recovery_point=log.recovery_point)
    assert pairs_of(again) == [(2, b"k", b"v2")]


@contextlib.contextmanager
def refusing(disk, suffix, number):
    """Let no file get a name that ends like this."""
    rename = disk.rename

    def refuse(source, target):
        if target.endswith(suffix):
            raise OSError(number, os.strerror(number))
        rename(source, target)

    disk.rename = refuse
    yield
    disk.rename = rename


def test_a_horizon_that_is_too_far_from_the_first_time_of_a_batch_is_as_far_as_can_be(disk):
    """A log with such a batch could not be cleaned any more."""
    log = open_log(disk, replace(COMPACT, delete_retention_ms=2**63 - 1))
    put(log, (b"k", None), at=-1)
    while len(log.segments) < 3:
        put(log, (b"x", b"v" * 100))
    clean_log(log, disk)
    assert (0, b"k", None) in pairs_of(log)
