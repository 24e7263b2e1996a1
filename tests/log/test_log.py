"""A log keeps what is appended, in order, in Kafka's files."""

import dataclasses
from functools import partial
from types import SimpleNamespace

import pytest

from strom.log.config import LogConfig
from strom.log.disk import RealDisk
from strom.log.files import OpenFiles
from strom.log.producers import Origin
from strom.log.segment import Segment
from strom.records.batch import compute_crc, read_header
from strom.records.record import Record, write_batch
from strom.testing.disk import FakeDisk
from strom.wire.errors import ErrorCode, KafkaError
from tests.log.making import (
    NOW,
    PATH,
    SMALL,
    append,
    batch,
    first_at,
    flush,
    latest,
    new_disk,
    open_log,
    read,
    reopen,
    values_of,
)


def refusal(call, *args, **kwargs) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        call(*args, **kwargs)
    return caught.value.code


def test_log_01_02_records_are_appended_at_the_end_and_numbered_from_zero(log):
    """BRK-12."""
    first, second = append(log, b"a", b"b"), append(log, b"c")
    assert (first.base_offset, first.last_offset) == (0, 1)
    assert (second.base_offset, second.last_offset) == (2, 2)
    assert log.end_offset == 3
    assert values_of(log) == [(0, b"a"), (1, b"b"), (2, b"c")]


def test_log_04_05_07_reading_starts_at_any_offset_any_number_of_times(log):
    for number in range(50):
        append(log, b"%d" % number, b"x")
    for offset in (0, 99, 17, 17, 50):
        expected = [(each, b"%d" % (each // 2) if each % 2 == 0 else b"x") for each in range(100)]
        assert values_of(log, offset) == expected[offset:]


def test_log_11_reading_at_the_end_gives_nothing_and_beyond_it_an_error(log):
    append(log, b"a")
    assert read(log, 1, max_bytes=100, end_offset=1, whole_first=True) is None
    for offset in (-1, 2):
        arguments = {"max_bytes": 100, "end_offset": 1, "whole_first": True}
        assert refusal(log.read, offset, **arguments) == ErrorCode.OFFSET_OUT_OF_RANGE


def test_msg_14_batches_have_the_sizes_of_the_book(tmp_path):
    log = open_log(RealDisk(), path=f"{tmp_path}/t-0")
    append(log, b"ab")
    assert log.size_bytes == 70
    records = [Record(0, NOW, None, b"ab"), Record(1, NOW + 100, None, b"cd")]
    log.append_as_leader(memoryview(write_batch(records)), leader_epoch=0, now_ms=NOW)
    assert log.size_bytes == 70 + 80
    keyed = write_batch([Record(0, NOW, b"k1", b"ab")])
    log.append_as_leader(memoryview(keyed), leader_epoch=0, now_ms=NOW)
    assert log.size_bytes == 70 + 80 + 72
    log.close()
    assert (tmp_path / "t-0" / "00000000000000000000.log").stat().st_size == 222


def test_dsk_10_11_12_a_new_partition_has_its_files_and_rolls_into_others(log, disk):
    assert disk.scan(PATH) == [
        ("00000000000000000000.index", 0),
        ("00000000000000000000.log", 0),
        ("00000000000000000000.timeindex", 0),
        ("leader-epoch-checkpoint", 4),
    ]
    assert disk.read(f"{PATH}/leader-epoch-checkpoint") == b"0\n0\n"
    append(log, b"a", b"b", b"c", epoch=4)
    log.roll(NOW)
    append(log, b"d")
    names = [name for name, _ in disk.scan(PATH)]
    assert "00000000000000000003.log" in names
    assert "00000000000000000003.snapshot" in names
    assert "00000000000000000000.snapshot" not in names
    assert disk.read(f"{PATH}/leader-epoch-checkpoint") == b"0\n1\n4 0\n"


def test_a_batch_is_stored_as_it_came_but_for_its_place(log):
    append(log, b"first")
    sent = bytes(batch(b"a", b"b"))
    log.append_as_leader(memoryview(bytearray(sent)), leader_epoch=7, now_ms=NOW)
    stored = read(log, 1, max_bytes=999, end_offset=3, whole_first=True).read_bytes()
    assert stored[16:] == sent[16:]
    header = read_header(stored)
    assert (header.base_offset, header.leader_epoch) == (1, 7)


def test_log_append_time_rewrites_the_times_and_the_checksum():
    config = dataclasses.replace(SMALL, timestamp_type="LogAppendTime")
    log = open_log(new_disk(), config)
    appended = log.append_as_leader(batch(b"a", at=5), leader_epoch=0, now_ms=NOW)
    assert appended.append_time_ms == NOW
    ((header, stored),) = log.read_batches(0)
    assert header.has_append_time
    assert header.max_timestamp == NOW
    # The same bytes pass as a follower's, whose check is the checksum.
    assert open_log(new_disk()).append_as_follower(stored, now_ms=NOW).last_offset == 0


def test_the_broker_s_own_batches_get_their_append_time_too():
    config = dataclasses.replace(SMALL, timestamp_type="LogAppendTime")
    log = open_log(new_disk(), config)
    own = batch(b"a", at=5)
    appended = log.append_as_leader(own, leader_epoch=0, now_ms=NOW, origin=Origin.COORDINATOR)
    assert appended.append_time_ms == NOW
    ((header, stored),) = log.read_batches(0)
    assert (header.has_append_time, header.max_timestamp) == (True, NOW)
    assert header.crc == compute_crc(stored)


def test_what_is_damaged_or_too_large_is_refused_and_uses_no_offset():
    config = dataclasses.replace(SMALL, message_bytes_max=500)
    log = open_log(new_disk(), config)
    broken = batch(b"abc")
    broken[-1] ^= 1
    arguments = {"leader_epoch": 0, "now_ms": NOW}
    assert refusal(log.append_as_leader, broken, **arguments) == ErrorCode.CORRUPT_MESSAGE
    large = batch(b"x" * 600)
    assert refusal(log.append_as_leader, large, **arguments) == ErrorCode.MESSAGE_TOO_LARGE
    log.config = dataclasses.replace(config, message_bytes_max=9000)
    huge = batch(b"x" * 2500)
    assert refusal(log.append_as_leader, huge, **arguments) == ErrorCode.RECORD_LIST_TOO_LARGE
    assert append(log, b"fine").base_offset == 0


def test_dsk_16_segments_are_rolled_by_size(log):
    for _ in range(60):
        append(log, b"x" * 32)
    assert [each.base_offset for each in log.segments] == [0, 20, 40]
    assert all(each.size_bytes <= 2000 for each in log.segments)
    assert len(values_of(log)) == 60


def test_dsk_16_segments_are_rolled_by_the_age_of_their_first_batch():
    log = open_log(new_disk(), dataclasses.replace(SMALL, segment_ms=1000))
    append(log, b"a", at=NOW)
    append(log, b"b", at=NOW + 1000)
    assert len(log.segments) == 1
    append(log, b"c", at=NOW + 1001)
    assert [each.base_offset for each in log.segments] == [0, 2]


def test_segment_jitter_rolls_earlier():
    config = dataclasses.replace(SMALL, segment_ms=1000, segment_jitter_ms=1000)
    log = open_log(new_disk(), config)
    jitter = log.active.jitter_ms
    assert 0 < jitter < 1000
    append(log, b"a", at=NOW)
    append(log, b"b", at=NOW + 1000 - jitter)
    append(log, b"c", at=NOW + 1001 - jitter)
    assert len(log.segments) == 2


def test_segments_are_rolled_when_their_index_is_full():
    log = open_log(new_disk(), dataclasses.replace(SMALL, index_bytes_max=48))
    for number in range(30):
        append(log, b"x" * 50, at=NOW + number)
    assert len(log.segments) > 2
    assert all(len(each.time_index()) <= 4 for each in log.segments)
    assert len(values_of(log)) == 30


def test_index_interval_bytes_changes_while_a_segment_is_written():
    log = open_log(new_disk(), dataclasses.replace(SMALL, index_interval_bytes=10_000))
    for _ in range(10):
        append(log, b"x" * 32)
    assert len(log.active.offset_index()) == 0
    log.config = SMALL
    for _ in range(5):
        append(log, b"x" * 32)
    assert len(log.active.offset_index()) == 3


def test_segments_are_rolled_before_an_offset_is_too_far_for_the_index(log):
    append(log, b"a")
    far = write_batch([Record(2**31 + 5, NOW, None, b"far")])
    log.append_as_follower(memoryview(far), now_ms=NOW)
    assert [each.base_offset for each in log.segments] == [0, 6]
    further = write_batch([Record(2**32 + 9, NOW, None, b"further")])
    log.append_as_follower(memoryview(further), now_ms=NOW)
    assert values_of(log) == [(0, b"a"), (2**31 + 5, b"far"), (2**32 + 9, b"further")]


def test_preallocated_files_are_trimmed_when_left_and_closed(disk):
    config = dataclasses.replace(SMALL, preallocate=True)
    log = open_log(disk, config)
    assert dict(disk.scan(PATH))["00000000000000000000.log"] == 2000
    append(log, b"a")
    log.roll(NOW)
    append(log, b"b")
    log = reopen(log, disk, config)
    assert {size for name, size in disk.scan(PATH) if name.endswith(".log")} == {69}
    assert values_of(log) == [(0, b"a"), (1, b"b")]


def test_a_fetch_in_the_middle_of_a_batch_gets_it_whole(log):
    append(log, b"a", b"b", b"c")
    append(log, b"d")
    part = read(log, 1, max_bytes=1000, end_offset=4, whole_first=False)
    assert part.position == 0
    assert part.size == log.size_bytes


def test_the_first_batch_comes_whole_if_asked_and_not_at_all_otherwise(log):
    append(log, b"x" * 300)
    assert read(log, 0, max_bytes=10, end_offset=1, whole_first=True).size == log.size_bytes
    assert read(log, 0, max_bytes=10, end_offset=1, whole_first=False) is None


def test_reading_ends_in_front_of_the_given_offset(log):
    for _ in range(40):
        append(log, b"x", b"y")
    for end in range(81):
        offset, seen = 0, -1
        while (
            part := read(log, offset, max_bytes=300, end_offset=end, whole_first=True)
        ) is not None:
            last = read_header(part.read_bytes()).last_offset
            assert last < end
            seen, offset = last, last + 1
        assert seen == end // 2 * 2 - 1


def test_few_files_are_open_however_many_segments_are_read(tmp_path):
    """BRK-14."""
    log = open_log(RealDisk(), path=f"{tmp_path}/t-0", open_max=3)
    for _ in range(200):
        append(log, b"x" * 40)
    assert len(log.segments) > 8
    first = read(log, 0, max_bytes=100, end_offset=200, whole_first=True)
    assert len(values_of(log)) == 200
    assert len(log._files) <= 3
    # Whoever still sends from a file that was given back can do so.
    assert len(first.read_bytes()) == first.size
    assert first.file.fileno() >= 0


def test_what_was_just_opened_is_not_the_file_that_is_closed():
    """BRK-14: where all others are in use too, the one that has been for longest is."""
    closed = []
    files = OpenFiles(new_disk(), open_max=2)
    holders = [SimpleNamespace(used=True, release=partial(closed.append, each)) for each in "abc"]
    holders[2].used = False
    for holder in holders:
        files.admit(holder)
    assert closed == ["a"]


def test_a_clean_start_reads_no_batch(log, disk):
    for number in range(60):
        append(log, b"%d" % number)
    before = values_of(log)
    log.close()
    for name, size in disk.scan(PATH):
        if name.endswith(".log") and size:
            # Had a batch been read, this would be seen.
            disk.corrupt(f"{PATH}/{name}", 20)
    log = open_log(disk, recovery_point=log.recovery_point)
    assert log.end_offset == 60
    for name, size in disk.scan(PATH):
        if name.endswith(".log") and size:
            disk.corrupt(f"{PATH}/{name}", 20)
    assert values_of(log) == before
    append(log, b"more")
    assert log.end_offset == 61


def test_a_clean_stop_without_checkpoint_or_snapshot_is_understood_all_the_same(log, disk):
    for number in range(60):
        append(log, b"%d" % number)
    log.close()
    assert open_log(disk, recovery_point=0).end_offset == 60
    disk.remove(f"{PATH}/{60:020d}.snapshot")
    assert open_log(disk, recovery_point=60).end_offset == 60


def test_preallocated_space_is_given_back_although_the_setting_is_gone(disk):
    log = open_log(disk, dataclasses.replace(SMALL, preallocate=True))
    append(log, b"a")
    log.config = SMALL
    log = reopen(log, disk)
    disk.crash()
    assert values_of(open_log(disk, recovery_point=1)) == [(0, b"a")]


def test_a_segment_that_was_left_wants_a_flush(log):
    append(log, b"a")
    assert not log.flush_due(NOW)
    log.roll(NOW)
    assert log.flush_due(NOW)
    flush(log)
    assert not log.flush_due(NOW)


def test_closing_an_untouched_log_writes_nothing(disk):
    log = reopen(open_log(disk), disk)
    changes = disk.changes
    log.close()
    assert disk.changes == changes


def test_a_flush_syncs_names_once_that_of_a_new_directory_too():
    """A disk need not keep names in the order they were made, as the fake one does."""
    synced = []

    class Noting(FakeDisk):
        def sync_directory(self, path):
            synced.append(path)
            super().sync_directory(path)

    disk = Noting()
    disk.make_directory("/data")
    log = open_log(disk)

    def names_synced():
        append(log, b"x")
        flush(log)
        return [synced.pop(0) for _ in list(synced)]

    assert names_synced() == [PATH, "/data"]
    assert names_synced() == []
    log.roll(NOW)
    assert names_synced() == [PATH]


def test_flush_is_due_by_count_and_by_time_and_moves_the_recovery_point(disk):
    log = open_log(disk, dataclasses.replace(SMALL, flush_messages=3, flush_ms=1000))
    assert not log.flush_due(NOW + 5000)
    append(log, b"a", b"b")
    assert not log.flush_due(NOW + 999)
    assert log.flush_due(NOW + 1000)
    append(log, b"c")
    assert log.flush_due(NOW)
    flush = log.begin_flush()
    flush.run()
    append(log, b"late")
    log.end_flush(flush, NOW)
    assert log.recovery_point == 3
    assert not log.flush_due(NOW)
    disk.crash()
    assert values_of(open_log(disk, clean=False, recovery_point=3)) == [
        (0, b"a"),
        (1, b"b"),
        (2, b"c"),
    ]


def test_a_flush_that_was_overtaken_by_a_truncation_proves_nothing(log):
    append(log, b"a", b"b")
    append(log, b"c")
    flush = log.begin_flush()
    flush.run()
    log.truncate_to(2)
    log.end_flush(flush, NOW)
    assert log.recovery_point == 0


def test_write_back_begins_after_some_megabytes(tmp_path):
    log = open_log(RealDisk(), LogConfig(message_bytes_max=2**24), path=f"{tmp_path}/t-0")
    assert log.begin_write_back() is None
    append(log, b"x" * 9_000_000)
    log.begin_write_back().run()
    assert log.begin_write_back() is None


@pytest.mark.slow
def test_truncation_cuts_whole_batches_and_whole_segments():
    for offset in range(121):
        log = open_log(new_disk())
        for number in range(60):
            append(log, b"%d" % number, b"x", at=NOW + number, epoch=number // 20)
        before = values_of(log)
        log.truncate_to(offset)
        assert log.end_offset == offset
        assert values_of(log) == before[: offset // 2 * 2]
        assert all(each.start_offset < offset for each in log.epochs.entries)
        newest = latest(log, log.end_offset)
        assert (newest.timestamp_ms if newest else None) == (
            NOW + offset // 2 if offset > 1 else None
        )
        assert append(log, b"new").base_offset == offset


def test_truncation_in_front_of_the_log_begins_anew():
    log = open_log(new_disk(), start_offset=50)
    append(log, b"a")
    log.truncate_to(20)
    assert (log.start_offset, log.end_offset) == (20, 20)
    log.truncate_fully_and_start_at(90)
    assert append(log, b"b").base_offset == 90
    assert values_of(log) == [(90, b"b")]


def test_a_follower_takes_what_the_leader_placed_and_leaves_a_torn_batch_out():
    """LOG-13."""
    leader, follower = open_log(new_disk()), open_log(new_disk())
    for number in range(60):
        append(leader, b"%d" % number, epoch=number // 25)
    torn = bytes(batch(b"torn"))[:-3]
    while follower.end_offset < 60:
        part = read(leader, follower.end_offset, max_bytes=500, end_offset=60, whole_first=True)
        follower.append_as_follower(memoryview(part.read_bytes() + torn), now_ms=NOW)
    assert values_of(follower) == values_of(leader)
    assert follower.epochs.entries == leader.epochs.entries
    stale = memoryview(read(leader, 0, max_bytes=99, end_offset=9, whole_first=True).read_bytes())
    assert refusal(follower.append_as_follower, stale, now_ms=NOW)


def test_con_09_a_missing_offset_leads_to_the_next_record_that_is_there():
    leader, compacted = open_log(new_disk()), open_log(new_disk())
    for number in range(90):
        append(leader, b"%d" % number)
    for offset in [each for each in range(90) if each % 9 == 4]:
        kept = read(leader, offset, max_bytes=1, end_offset=offset + 1, whole_first=True)
        compacted.append_as_follower(memoryview(kept.read_bytes()), now_ms=NOW)
        compacted.roll(NOW)
    for offset in range(compacted.end_offset):
        part = read(compacted, offset, max_bytes=1, end_offset=90, whole_first=True)
        found = read_header(part.read_bytes()).base_offset
        assert found == next(each for each in range(offset, 90) if each % 9 == 4)


def test_dsk_14_time_is_found_to_the_record(log):
    for number in range(40):
        append(log, b"a", b"b", b"c", at=NOW + number * 10)
    for wanted in range(-5, 395):
        expected = next(
            (
                (number * 3 + index, NOW + number * 10 + index)
                for number in range(40)
                for index in range(3)
                if number * 10 + index >= wanted
            ),
            None,
        )
        found = first_at(log, NOW + wanted, log.end_offset)
        assert (found[:2] if found else None) == expected
    assert first_at(log, NOW + 100, 30) is None
    assert latest(log, 120)[:2] == (119, NOW + 392)
    assert latest(log, 60)[:2] == (59, NOW + 192)


def test_the_largest_time_may_be_anywhere(log):
    for number in range(60):
        append(log, b"x", b"y", at=NOW + (500 if number == 7 else number))
    assert latest(log, 120)[:2] == (15, NOW + 501)
    assert first_at(log, NOW + 400, 120)[:2] == (14, NOW + 500)
    assert latest(log, 10)[:2] == (9, NOW + 5)


def test_the_start_offset_is_raised_within_the_log_only(log):
    for _ in range(60):
        append(log, b"x")
    assert not log.raise_start_offset(61)
    assert log.raise_start_offset(33)
    assert not log.raise_start_offset(20)
    assert values_of(log)[0][0] == 33
    arguments = {"max_bytes": 100, "end_offset": 60, "whole_first": True}
    assert refusal(log.read, 32, **arguments) == ErrorCode.OFFSET_OUT_OF_RANGE


def test_dsk_18_a_renamed_log_goes_on(log, disk):
    append(log, b"a")
    log.rename_to("/data/flug-0.abc-delete")
    append(log, b"b")
    log.roll(NOW)
    assert values_of(log) == [(0, b"a"), (1, b"b")]
    assert disk.directories("/data") == ["flug-0.abc-delete"]


def test_recompression_is_wanted_where_the_topic_names_another_codec(log):
    assert not log.needs_recompression(batch(b"a"))
    log.config = dataclasses.replace(SMALL, compression_type="zstd")
    assert log.needs_recompression(batch(b"a"))
    log.config = dataclasses.replace(SMALL, compression_type="uncompressed")
    assert not log.needs_recompression(batch(b"a"))


def test_segments_cost_little_until_they_are_used():
    """TOP-21."""
    segment = Segment(None, "/x", 0, 0, NOW)
    assert not hasattr(segment, "__dict__")
