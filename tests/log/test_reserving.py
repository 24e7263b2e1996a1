"""A log that grows has room reserved ahead, and gives back what it does not use."""

import dataclasses

from strom.log.config import LogConfig
from strom.log.flush import RESERVED_BYTES, WRITE_BACK_BYTES
from tests.log.making import NOW, PATH, append, new_disk, open_log, reopen, values_of

LARGE = LogConfig(segment_bytes=1 << 30, message_bytes_max=1 << 30)
FIRST = f"{PATH}/{0:020d}.log"


def grown():
    """A log that a hint is due for, and its disk."""
    disk = new_disk()
    log = open_log(disk, LARGE)
    append(log, b"x" * WRITE_BACK_BYTES)
    return log, disk


def reserve(log):
    hint = log.begin_write_back()
    hint.run()
    log.end_write_back(hint)


def test_room_is_reserved_behind_what_the_disk_is_told_to_write():
    log, disk = grown()
    assert disk.reserved_bytes(FIRST) == 0
    reserve(log)
    assert disk.reserved_bytes(FIRST) == log.size_bytes + RESERVED_BYTES


def test_a_segment_that_is_left_gives_its_room_back():
    log, disk = grown()
    reserve(log)
    log.roll(NOW)
    assert disk.reserved_bytes(FIRST) == 0


def test_a_log_that_is_closed_gives_its_room_back():
    log, disk = grown()
    reserve(log)
    log = reopen(log, disk, LARGE)
    assert disk.reserved_bytes(FIRST) == 0
    assert len(values_of(log)) == 1


def test_room_that_is_reserved_after_the_segment_was_left_is_given_back():
    log, disk = grown()
    hint = log.begin_write_back()
    log.roll(NOW)
    append(log, b"next")
    hint.run()
    assert disk.reserved_bytes(FIRST) > 0
    log.end_write_back(hint)
    assert disk.reserved_bytes(FIRST) == 0
    assert [len(value) for _, value in values_of(log)] == [WRITE_BACK_BYTES, 4]


def test_a_hint_that_ends_when_its_segment_is_gone_harms_nothing():
    log, disk = grown()
    hint = log.begin_write_back()
    log.truncate_fully_and_start_at(7, NOW)
    append(log, b"new")
    hint.run()
    log.end_write_back(hint)
    assert values_of(log) == [(7, b"new")]
    assert not disk.exists(FIRST)


def test_room_that_was_reserved_when_the_process_ended_is_given_back_later():
    log, disk = grown()
    reserve(log)
    # Nothing is lost but the process.
    found = open_log(disk, LARGE, clean=False)
    assert found.end_offset == 1
    assert disk.reserved_bytes(FIRST) > 0
    append(found, b"more")
    reopen(found, disk, LARGE)
    assert disk.reserved_bytes(FIRST) == 0


def test_a_log_that_is_cut_counts_on_no_room():
    log, disk = grown()
    append(log, b"more")
    reserve(log)
    log.truncate_to(1)
    assert disk.reserved_bytes(FIRST) == 0
    assert not log.active.is_allocated


def test_a_preallocated_file_may_have_room_reserved_too(disk):
    config = dataclasses.replace(LARGE, segment_bytes=3 * WRITE_BACK_BYTES, preallocate=True)
    log = open_log(disk, config)
    append(log, b"x" * WRITE_BACK_BYTES)
    reserve(log)
    size_bytes = log.size_bytes
    reopen(log, disk, config)
    assert dict(disk.scan(PATH))[f"{0:020d}.log"] == size_bytes
