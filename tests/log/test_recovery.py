"""After a crash the last segment can be anything; what is served is right all the same."""

import dataclasses
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strom.log.cold import patiently
from strom.log.config import LogConfig
from strom.log.recovery import NO_POINT
from strom.records.batch import HEADER_SIZE
from strom.records.control_key import ControlType
from strom.records.marker import MARKER_BYTES
from strom.records.record import Producer
from strom.testing.disk import FakeDisk
from tests.effort import examples
from tests.log.cleaning import COMPACT, DAY, clean_log, pairs_of, put, put_transactional
from tests.log.making import (
    NOW,
    PATH,
    append,
    append_transactional,
    end_transaction,
    first_at,
    flush,
    latest,
    new_disk,
    open_log,
    values_of,
)

ONE_SEGMENT = LogConfig(index_interval_bytes=100)
NAME = f"{PATH}/{0:020d}"
PRODUCER_ID_AT = 43


def written(count: int = 12) -> tuple[FakeDisk, list[int]]:
    """Return a disk with a log, and where its batches end."""
    disk = new_disk()
    log = open_log(disk, ONE_SEGMENT)
    ends = [0]
    for number in range(count):
        append(log, b"%d" % number, b"x" * number, at=NOW + number * 7, epoch=number // 5)
        ends.append(log.size_bytes)
    log.close()
    return disk, ends


def recovered(disk: FakeDisk, recovery_point: int = 0):
    return open_log(disk, ONE_SEGMENT, clean=False, recovery_point=recovery_point)


def whole_batches(ends: list[int], position: int) -> int:
    return sum(end <= position for end in ends) - 1


@pytest.mark.slow
def test_every_truncation_point_keeps_the_whole_batches():
    disk, ends = written()
    content = disk.read(NAME + ".log")
    for position in range(len(content) + 1):
        disk.write(NAME + ".log", content[:position])
        log = recovered(disk)
        count = whole_batches(ends, position)
        assert log.end_offset == count * 2
        assert log.size_bytes == ends[count]
        assert log.cut_bytes == position - ends[count]
        assert [offset for offset, _ in values_of(log)] == list(range(count * 2))


def test_a_tail_of_zeros_is_cut_off():
    disk, ends = written()
    content = disk.read(NAME + ".log")
    for position in (0, 30, ends[3], ends[5] + 12, ends[5] + 61, ends[5] + 64, ends[-1]):
        disk.write(NAME + ".log", content[:position] + bytes(4000))
        assert recovered(disk).end_offset == whole_batches(ends, position) * 2


def test_any_flipped_bit_cuts_the_log_there_and_never_later():
    disk, ends = written()
    content = disk.read(NAME + ".log")
    for position in range(0, len(content), 3):
        if ends[-2] <= position < ends[-2] + 8:
            # Nothing tells the last batch's offset from one behind a gap.
            continue
        disk.write(NAME + ".log", content)
        disk.corrupt(NAME + ".log", position, 1 << position % 8)
        log = recovered(disk)
        in_batch = position - ends[whole_batches(ends, position)]
        # The leader's epoch stands in front of what the checksum covers, and nothing tells it.
        if not 12 <= in_batch < 16:
            assert log.end_offset == whole_batches(ends, position) * 2
        for offset, value in values_of(log):
            number = offset // 2
            assert value == (b"x" * number if offset % 2 else b"%d" % number)


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(tail=st.binary(max_size=200), keep=st.integers(0, 2000))
def test_no_bytes_whatever_behind_the_batches_do_harm(tail, keep):
    disk, ends = written(6)
    content = disk.read(NAME + ".log")[:keep]
    disk.write(NAME + ".log", content + tail)
    log = recovered(disk)
    assert log.end_offset >= whole_batches(ends, min(keep, ends[-1])) * 2
    assert len(values_of(log)) == log.end_offset


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(
    "content",
    [None, b"", b"\0" * 800, b"\xff" * 16, b"abc", bytes([0, 0, 0, 5, 0, 0, 0, 3]) * 2],
)
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_missing_and_stale_indexes_are_built_anew(suffix, content, clean):
    disk, _ = written()
    expected = disk.read(NAME + suffix)
    if content is None:
        disk.remove(NAME + suffix)
    else:
        disk.write(NAME + suffix, content)
    log = open_log(disk, ONE_SEGMENT, clean=clean, recovery_point=24)
    for offset in range(24):
        assert values_of(log, offset)[0][0] == offset
        assert first_at(log, NOW + offset // 2 * 7, 24).offset == offset // 2 * 2
    # Too few entries are no error: a look-up then walks a little further.
    if content not in (b"", b"abc", b"\0" * 800) or not clean:
        assert disk.read(NAME + suffix) == expected


@pytest.mark.parametrize("lost", [(".timeindex",), (".index", ".timeindex")])
def test_indexes_whose_end_is_lost_are_built_anew(lost):
    """As by a power cut soon after a clean stop: what is there of them is right, but old."""
    disk, _ = written()
    before = {suffix: disk.read(NAME + suffix) for suffix in lost}
    log = open_log(disk, ONE_SEGMENT, recovery_point=24)
    later = NOW + ONE_SEGMENT.retention_ms
    for number in range(8):
        append(log, b"later", at=later + number)
    log.close()
    for suffix, content in before.items():
        disk.write(NAME + suffix, content)
    log = open_log(disk, ONE_SEGMENT, recovery_point=32)
    assert patiently(lambda: log.retain(later + 1000)).files == ()
    assert latest(log, 32).offset == 31
    assert first_at(log, later + 3, 32).offset == 27


def test_the_end_of_a_time_index_is_missed_also_where_the_other_index_is_whole():
    """The latest record is far from the end: those behind it are older."""
    disk, _ = written()
    before = disk.read(NAME + ".timeindex")
    log = open_log(disk, ONE_SEGMENT, recovery_point=24)
    later = NOW + ONE_SEGMENT.retention_ms
    for at in (later, *range(NOW, NOW + 7)):
        append(log, b"x" * 50, at=at)
    log.close()
    disk.write(NAME + ".timeindex", before)
    log = open_log(disk, ONE_SEGMENT, recovery_point=32)
    assert patiently(lambda: log.retain(later + 1000)).files == ()
    assert latest(log, 32).offset == first_at(log, later, 32).offset == 24


def test_an_index_that_points_between_batches_is_found_out():
    disk, _ = written()
    stale = bytearray(disk.read(NAME + ".index"))
    stale[15] += 1
    disk.write(NAME + ".index", bytes(stale))
    log = open_log(disk, ONE_SEGMENT, clean=True, recovery_point=24)
    assert [offset for offset, _ in values_of(log)] == list(range(24))


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_whatever_byte_of_an_index_is_wrong_reading_is_right(suffix):
    disk, _ = written()
    content = disk.read(NAME + suffix)
    for position in range(len(content)):
        for mask in (1, 0x10, 0xFF):
            disk.write(NAME + suffix, content)
            disk.corrupt(NAME + suffix, position, mask)
            log = open_log(disk, ONE_SEGMENT, clean=True, recovery_point=24)
            assert [offset for offset, _ in values_of(log)] == list(range(24))
            for number in (0, 3, 7, 11):
                assert first_at(log, NOW + number * 7, 24).offset == number * 2


def test_a_clean_index_is_the_one_that_recovery_builds():
    disk, _ = written(40)
    before = {suffix: disk.read(NAME + suffix) for suffix in (".index", ".timeindex")}
    assert len(before[".index"]) > 80
    recovered(disk)
    assert before == {suffix: disk.read(NAME + suffix) for suffix in before}


def test_segments_behind_a_damaged_one_are_removed(log, disk):
    for number in range(60):
        append(log, b"%d" % number, b"x" * 20)
    log.close()
    second = log.segments[1]
    disk.corrupt(second.path(".log"), second.size_bytes // 2)
    recovered_log = open_log(disk, clean=False, recovery_point=second.base_offset)
    assert len(recovered_log.segments) == 2
    assert recovered_log.end_offset < log.segments[2].base_offset
    assert f"{log.segments[2].base_offset:020d}.log" not in dict(disk.scan(PATH))


def test_segments_in_front_of_the_recovery_point_are_not_read(log, disk):
    for number in range(60):
        append(log, b"%d" % number, b"x" * 20)
    log.close()
    first, second = log.segments[:2]
    disk.corrupt(first.path(".log"), 200)
    recovered_log = open_log(disk, clean=False, recovery_point=second.base_offset + 2)
    assert recovered_log.end_offset == 120
    assert len(recovered_log.segments) == len(log.segments)


@pytest.mark.parametrize(
    "content", [b"", b"0\n", b"0\n2\n0 0\n", b"1\n0\n", b"\xff\0", b"0\n1\nx y\n"]
)
def test_damaged_epochs_are_found_again_in_the_batches(log, disk, content):
    for number in range(60):
        append(log, b"%d" % number, b"x" * 20, epoch=number // 7)
    log.close()
    disk.write(f"{PATH}/leader-epoch-checkpoint", content)
    again = open_log(disk, clean=False, recovery_point=120)
    assert again.epochs.entries == log.epochs.entries


def test_a_damaged_snapshot_is_as_good_as_none():
    disk, _ = written()
    path = f"{PATH}/{24:020d}.snapshot"
    disk.corrupt(path, 3)
    assert open_log(disk, ONE_SEGMENT, recovery_point=24).end_offset == 24
    assert recovered(disk, 24).end_offset == 24


@pytest.mark.parametrize("clean", [True, False])
def test_a_rotten_batch_says_nothing_of_its_producer(log, disk, clean):
    """Where no snapshot is left, producers are found again in segments that nobody has checked."""
    append_transactional(log, Producer(1, 0, 0), b"a")
    second = log.size_bytes
    append(log, b"b", producer=Producer(2, 0, 0))
    marker = log.size_bytes
    end_transaction(log, Producer(1, 0), ControlType.COMMIT)
    for value in (b"c", b"d"):
        log.roll(NOW)
        append(log, value, producer=Producer(3, 0, log.end_offset - 3))
    log.close()
    disk.corrupt(NAME + ".log", second + PRODUCER_ID_AT)
    for position in range(marker + HEADER_SIZE, marker + MARKER_BYTES):
        disk.corrupt(NAME + ".log", position)
    for offset in log.snapshots:
        disk.remove(f"{PATH}/{offset:020d}.snapshot")
    again = open_log(disk, clean=clean, recovery_point=5)
    assert [each for each, _ in again.producers.items()] == [1, 3]
    assert again.producers.get(3).last_sequence == 1


def test_what_an_interrupted_removal_left_goes_at_the_next_start():
    disk, _ = written()
    for name in ("0.log.deleted", "1.log.cleaned", "2.index.tmp", f"{99:020d}.index"):
        disk.write(f"{PATH}/{name}", b"left")
    open_log(disk, ONE_SEGMENT, recovery_point=24)
    assert {name.partition(".")[0] for name, _ in disk.scan(PATH)} == {
        f"{0:020d}",
        f"{24:020d}",
        "leader-epoch-checkpoint",
    }


def test_a_start_offset_behind_the_recovered_end_begins_anew_there():
    disk, ends = written()
    disk.write(NAME + ".log", disk.read(NAME + ".log")[: ends[3]])
    log = open_log(disk, ONE_SEGMENT, clean=False, recovery_point=0, start_offset=20)
    assert (log.start_offset, log.end_offset) == (20, 20)
    assert append(log, b"new").base_offset == 20


def compacted_once():
    """Return a disk with a log that has gaps and whose topic is not compacted any more."""
    disk = new_disk()
    log = open_log(disk, COMPACT)
    for number in range(60):
        put(log, (b"%d" % (number % 7), b"x" * 60))
    log.roll(NOW)
    clean_log(log, disk)
    put(log, (b"last", b"one"))
    log.close()
    return disk, log


def test_a_gap_within_a_segment_is_no_damage():
    """What a crash has lost of a file are bytes: where batch follows batch nothing is missing."""
    disk, log = compacted_once()
    before = pairs_of(log)
    assert len(before) < log.end_offset
    again = open_log(disk, clean=False, recovery_point=0)
    assert again.cut_bytes == 0
    assert pairs_of(again) == before


def test_offsets_that_do_not_ascend_end_the_log():
    disk, ends = written()
    content = disk.read(NAME + ".log")
    disk.write(NAME + ".log", content[: ends[5]] + content[ends[4] :])
    log = recovered(disk)
    assert log.end_offset == 10
    assert log.size_bytes == ends[5]


def without_the_end_of_its_first_segment():
    """Return a disk on which whole batches are lost, and how many offsets are left in front."""
    disk = new_disk()
    log = open_log(disk)
    for number in range(60):
        append(log, b"%d" % number, b"x" * 20)
    log.close()
    *_, (position, header, _) = log.segments[0].batches(0)
    disk.write(log.segments[0].path(".log"), disk.read(log.segments[0].path(".log"))[:position])
    return disk, header.base_offset


@pytest.mark.parametrize("config", [LogConfig(), COMPACT])
def test_a_gap_between_segments_ends_the_log(config):
    """A crash may lose the end of one file and nothing of the next, whatever the topic is."""
    disk, lost = without_the_end_of_its_first_segment()
    log = open_log(disk, config, clean=False, recovery_point=0)
    assert log.end_offset == lost
    assert len(log.segments) == 1


def test_a_gap_between_segments_ends_nothing_where_no_recovery_point_is_known():
    """Apache Kafka's cleaner leaves such gaps, and they may all be far in front of the point."""
    disk, lost = without_the_end_of_its_first_segment()
    log = open_log(disk, clean=False, recovery_point=NO_POINT)
    assert log.end_offset == 120
    offsets = [offset for offset, _ in values_of(log)]
    assert offsets == [*range(lost), *range(lost + 2, 120)]


def test_a_transaction_whose_marker_the_cleaner_took_out_in_front_of_the_point_is_over(disk):
    """The segment in front is read for its indexes, but the snapshot at the point knows more."""
    config = dataclasses.replace(COMPACT, delete_retention_ms=0)
    log = open_log(disk, config)
    producer = Producer(7, 0, 0)
    fill_segment(log, b"x")
    put_transactional(log, producer, (b"t", b"1"))
    fill_segment(log, b"y")
    end_transaction(log, producer, ControlType.COMMIT)
    put(log, (b"t", b"newer"))
    log.expire_producers(NOW + 2 * DAY)
    for number in range(2):
        fill_segment(log, b"same", once=True)
        flush(log)
        clean_log(log, disk, now_ms=NOW + number)
    log.roll(NOW + 2)
    flush(log)
    clean_log(log, disk, now_ms=NOW + 10)
    flush(log)
    point = log.recovery_point
    assert point == log.active.base_offset == log.end_offset
    put(log, (b"z", b"later"))
    before = log.last_stable_offset(log.end_offset)
    again = open_log(disk, config, clean=False, recovery_point=point)
    assert again.last_stable_offset(again.end_offset) == before == again.end_offset


def fill_segment(log, key, *, once=False):
    """Write until there is another segment, with a key of its own each time or the same one."""
    count = len(log.segments)
    while len(log.segments) == count:
        put(log, (key if once else b"%s%d" % (key, log.end_offset), b"v" * 100))


def test_what_recovery_cut_off_is_not_found_again_behind_what_was_written_next():
    """A batch of the same size with fewer records: what was behind the old one follows it well."""
    for seed in range(60):
        disk, ends = written(3)
        disk.corrupt(NAME + ".log", ends[2] - 1)
        log = recovered(disk)
        assert log.end_offset == 2
        append(log, b"instead!!")
        assert log.size_bytes == ends[2]
        disk.crash(Random(seed))
        assert values_of(recovered(disk))[2:] in ([], [(2, b"instead!!")])
