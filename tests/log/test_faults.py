"""A disk that fails leaves no torn tail and no used offset."""

import errno

import pytest

from strom.wire.errors import ErrorCode, KafkaError
from tests.log.making import NOW, PATH, append, new_disk, open_log, values_of


def filled():
    disk = new_disk()
    log = open_log(disk)
    append(log, b"a")
    append(log, b"b")
    return disk, log


def log_size(disk) -> int:
    return dict(disk.scan(PATH))[f"{0:020d}.log"]


def refused(log) -> None:
    with pytest.raises(KafkaError) as caught:
        append(log, b"never")
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert isinstance(caught.value.__cause__, OSError) or log.failed


def test_a_full_disk_refuses_and_goes_on_when_there_is_room():
    disk, log = filled()
    before = log_size(disk)
    disk.fail_next("write_at", errno.ENOSPC)
    refused(log)
    assert log.failed is None
    assert (log.end_offset, log_size(disk)) == (2, before)
    assert append(log, b"c").base_offset == 2
    assert values_of(log) == [(0, b"a"), (1, b"b"), (2, b"c")]


def test_a_broken_disk_refuses_all_that_follows():
    disk, log = filled()
    before = log_size(disk)
    disk.fail_next("write_at", errno.EIO)
    refused(log)
    assert log.failed.errno == errno.EIO
    assert log_size(disk) == before
    refused(log)
    assert values_of(log) == [(0, b"a"), (1, b"b")]


def test_a_tail_that_cannot_be_cut_off_takes_the_log_out_of_use():
    disk, log = filled()
    disk.fail_next("write_at", errno.ENOSPC)
    disk.fail_next("truncate", errno.ENOSPC)
    refused(log)
    assert log.failed is not None
    assert values_of(log) == [(0, b"a"), (1, b"b")]
    log.close()
    # The next start finds the torn tail and cuts it.
    again = open_log(disk, clean=False)
    assert values_of(again) == [(0, b"a"), (1, b"b")]
    assert again.cut_bytes > 0


@pytest.mark.parametrize("taken", [0, 1, 60, 61, 68])
def test_a_short_write_is_continued(taken):
    disk, log = filled()
    disk.shorten_next(taken)
    append(log, b"c")
    assert values_of(log) == [(0, b"a"), (1, b"b"), (2, b"c")]


@pytest.mark.parametrize("operation", ["create", "rename", "open", "truncate"])
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_a_roll_that_fails_appends_nothing_and_can_be_tried_again(log, disk, operation, error):
    count = 0
    while log.active.size_bytes < 1900:
        append(log, b"x" * 20)
        count += 1
    disk.fail_next(operation, error)
    refused(log)
    assert log.end_offset == count
    assert len(values_of(log)) == count
    log.failed = None
    assert append(log, b"again" * 20).base_offset == count
    assert len(log.segments) == 2
    assert len(values_of(log)) == count + 1
    log.close()
    assert len(values_of(open_log(disk, clean=False))) == count + 1


def test_an_index_that_cannot_be_written_costs_no_record():
    disk, log = filled()
    disk.fail_next("write_at", errno.ENOSPC)
    with pytest.raises(OSError, match="space"):
        log.active.finish_times()
        log.active.write_indexes()
    append(log, b"c")
    log.close()
    assert len(values_of(open_log(disk, recovery_point=3))) == 3


def test_a_flush_that_fails_moves_nothing():
    disk, log = filled()
    disk.fail_next("sync", errno.EIO)
    flush = log.begin_flush()
    with pytest.raises(OSError, match="error"):
        flush.run()
    log.end_flush(flush, NOW)
    assert log.recovery_point == 0
