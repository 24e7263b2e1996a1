"""Old segments go, whole, whether or not anybody has read them (RET-01 … RET-08)."""

import dataclasses

import pytest

from strom.log.cold import patiently
from strom.log.config import LogConfig
from strom.testing.disk import FakeDisk
from tests.log.making import (
    NOW,
    PATH,
    SMALL,
    append,
    batch,
    new_disk,
    open_log,
    read,
    reopen,
    values_of,
)

KEEP_ALL = dataclasses.replace(SMALL, retention_ms=-1)


def filled(config: LogConfig):
    """Return a log of three segments with 20 batches of 100 bytes each, one a second."""
    disk = new_disk()
    log = open_log(disk, config)
    for number in range(60):
        append(log, b"x" * 32, at=NOW + number * 1000, epoch=number // 30)
    assert [each.base_offset for each in log.segments] == [0, 20, 40]
    return disk, log


def test_ret_02_a_segment_goes_when_its_newest_record_is_too_old():
    _, log = filled(dataclasses.replace(SMALL, retention_ms=100_000))
    assert log.retain(NOW + 19_000 + 100_000).files == ()
    retained = log.retain(NOW + 19_001 + 100_000)
    assert retained.start_offset_changed
    assert len(retained.reasons) == 1
    assert log.start_offset == 20
    assert values_of(log)[0][0] == 20


def test_ret_03_the_oldest_segments_go_when_the_log_is_too_large():
    _, log = filled(dataclasses.replace(KEEP_ALL, retention_bytes=4000))
    assert log.size_bytes == 6000
    log.retain(NOW)
    assert (log.start_offset, log.size_bytes) == (20, 4000)
    log.config = dataclasses.replace(KEEP_ALL, retention_bytes=2001)
    assert log.retain(NOW).files == ()
    log.config = dataclasses.replace(KEEP_ALL, retention_bytes=2000)
    log.retain(NOW)
    assert log.start_offset == 40


def test_ret_04_both_limits_work_together():
    _, log = filled(dataclasses.replace(SMALL, retention_ms=100_000, retention_bytes=4000))
    log.retain(NOW + 39_001 + 100_000)
    assert log.start_offset == 40


def test_ret_07_dsk_17_the_active_segment_goes_too_and_the_offsets_go_on():
    disk, log = filled(dataclasses.replace(SMALL, retention_ms=100_000))
    log.retain(NOW + 60_000 + 100_000)
    assert (log.start_offset, log.end_offset, log.size_bytes) == (60, 60, 0)
    assert [each.base_offset for each in log.segments] == [60]
    assert log.retain(NOW + 999_000_000).files == ()
    assert append(log, b"new").base_offset == 60
    # DSK-21: epochs and recovery point follow.
    assert log.epochs.entries == ((1, 60),)
    assert log.recovery_point == 60
    log = reopen(log, disk)
    assert values_of(log) == [(60, b"new")]


def test_dsk_19_files_are_renamed_first_and_can_still_be_read_by_who_has_them():
    disk, log = filled(dataclasses.replace(SMALL, retention_bytes=4000))
    part = read(log, 0, max_bytes=100, end_offset=60, whole_first=True)
    retained = log.retain(NOW)
    assert set(retained.files) == {
        f"{PATH}/{0:020d}{suffix}.deleted" for suffix in (".log", ".index", ".timeindex")
    }
    assert all(disk.exists(each) for each in retained.files)
    assert len(part.read_bytes()) == 100
    open_log(disk, clean=False, recovery_point=60)
    assert not any(disk.exists(each) for each in retained.files)


def test_ret_01_without_the_policy_delete_nothing_goes_by_age():
    _, log = filled(SMALL)
    log.config = dataclasses.replace(SMALL, cleanup_delete=False, cleanup_compact=True)
    assert log.retain(NOW + 10**12).files == ()


def test_deleted_records_take_their_segments_with_them():
    _, log = filled(KEEP_ALL)
    log.raise_start_offset(39)
    log.retain(NOW)
    assert log.segments[0].base_offset == 20
    log.raise_start_offset(60)
    log.retain(NOW)
    assert [each.base_offset for each in log.segments] == [60]


def test_dsk_21_deleted_records_take_their_epochs_and_the_recovery_point_with_them():
    _, log = filled(KEEP_ALL)
    assert log.epochs.entries == ((0, 0), (1, 30))
    assert log.recovery_point == 0
    log.raise_start_offset(35)
    assert log.epochs.entries == ((1, 35),)
    # What is still there was not synced by that.
    assert log.recovery_point == 0
    log.retain(NOW)
    assert log.recovery_point == log.segments[0].base_offset > 0


def test_nothing_above_the_high_watermark_goes():
    _, log = filled(dataclasses.replace(SMALL, retention_ms=0))
    log.retain(NOW + 10**9, high_watermark=39)
    assert log.start_offset == 20
    log.retain(NOW + 10**9, high_watermark=60)
    assert log.start_offset == 60


UNTIMED = dataclasses.replace(SMALL, retention_ms=50_000)


class Dated(FakeDisk):
    """A disk whose files were all written half a minute after NOW."""

    def modified_ms(self, path):
        assert path == f"{PATH}/{0:020d}.log"
        return NOW + 30_000


def append_untimed(log, now_ms):
    return log.append_as_leader(batch(b"x", at=-1), leader_epoch=0, now_ms=now_ms)


@pytest.mark.parametrize("seconds", [0, 100])
def test_records_without_a_time_are_as_old_as_their_file(disk, seconds):
    log = open_log(disk, UNTIMED)
    append_untimed(log, NOW)
    log.retain(NOW + seconds * 1000)
    assert log.start_offset == (1 if seconds else 0)


def test_what_was_written_without_a_time_a_moment_ago_stays_in_an_old_segment():
    log = open_log(new_disk(), UNTIMED)
    append_untimed(log, NOW)
    append_untimed(log, NOW + 60_000)
    assert log.retain(NOW + 100_000).files == ()
    assert log.retain(NOW + 110_001).start_offset_changed


def test_after_a_restart_records_without_a_time_are_as_old_as_their_file_still():
    disk = Dated()
    disk.make_directory("/data")
    log = open_log(disk, UNTIMED)
    append_untimed(log, NOW)
    log.close()
    log = open_log(disk, UNTIMED, recovery_point=1, now_ms=NOW + 80_000)
    assert patiently(lambda: log.retain(NOW + 80_000)).files == ()
    assert log.retain(NOW + 80_001).start_offset_changed
