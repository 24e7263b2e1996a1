"""Looking things up without waiting: what is missing is fetched aside, taken if still wanted."""

import asyncio
import dataclasses

import pytest

from strom.log.cold import ColdError, nothing_to_take, warmed
from strom.log.times import FirstAt, Latest
from strom.wire.errors import ErrorCode, KafkaError
from tests.log.making import NOW, PATH, SMALL, append, first_at, new_disk, open_log, read, reopen

#: One segment only.
LARGE = dataclasses.replace(SMALL, segment_bytes=10**6)
ALL = {"max_bytes": 10**6, "end_offset": 10**6, "whole_first": True}


def filled(config=SMALL, count=60):
    """A log that was closed and opened again: nothing of it is in memory."""
    disk = new_disk()
    log = open_log(disk, config)
    for number in range(count):
        append(log, b"x" * 50, at=NOW + number * 1000)
    return disk, reopen(log, disk, config)


def cold(look_up) -> ColdError:
    with pytest.raises(ColdError) as caught:
        look_up()
    return caught.value


def test_nothing_changes_until_what_was_fetched_is_taken():
    disk, log = filled()
    first = cold(lambda: log.read(20, **ALL))
    before = disk.changes
    take = first.fetch()
    cold(lambda: log.read(20, **ALL))
    take()
    assert log.read(20, **ALL) is not None
    assert disk.changes == before


def test_two_may_fetch_the_same():
    _, log = filled()
    takes = [cold(lambda: log.read(20, **ALL)).fetch() for _ in range(2)]
    for take in takes:
        take()
    found = log.read(20, **ALL)
    log_file = log.read(21, **ALL).file
    assert found.file is log_file


def test_what_was_appended_meanwhile_is_found():
    _, log = filled(LARGE)
    take = cold(lambda: log.read(20, **ALL)).fetch()
    # Whoever appends has waited for the indexes.
    append(log, b"later")
    take()
    assert read(log, 60, **ALL).read_bytes().endswith(b"later\0")


def test_what_was_cut_off_meanwhile_stays_away():
    _, log = filled(LARGE)
    segment = log.active
    take = cold(lambda: log.read(20, **ALL)).fetch()
    log.truncate_to(30)
    take()
    assert max(segment.offset_index().offsets) < 30
    for number in range(30):
        append(log, b"y" * 70, at=NOW + number)
    assert first_at(log, NOW + 29_001, 60) is None


def test_an_index_that_is_wrong_is_built_anew_aside_while_the_log_grows():
    _, log = filled(LARGE)
    read(log, 20, **ALL)
    segment = log.active
    place = segment.locate(33)
    wrong = segment.offset_index()
    for number in range(len(wrong.positions)):
        wrong.positions[number] += 1
    take = cold(lambda: segment.locate(33)).fetch()
    append(log, b"later")
    assert segment.offset_index() is wrong
    take()
    assert segment.offset_index() is not wrong
    assert segment.locate(33) == place
    assert read(log, 60, **ALL).read_bytes().endswith(b"later\0")


def test_how_old_a_segment_is_need_be_read_once_only():
    disk, log = filled()
    oldest = log.segments[0]
    cold(oldest.newest_now).fetch()()
    newest = oldest.newest_now()
    oldest.release()
    disk.cool()
    assert oldest.newest_now() == newest
    assert disk.waits == []


def test_retention_that_needs_something_has_changed_nothing():
    disk, log = filled()
    before = disk.changes, list(log.segments), log.start_offset
    cold(lambda: log.retain(NOW + 10**12))
    assert (disk.changes, log.segments, log.start_offset) == before


@pytest.mark.parametrize("search", [FirstAt(NOW), Latest()], ids=["first at", "latest"])
def test_a_batch_that_cannot_be_read_is_told_by_the_search(search):
    disk, log = filled(LARGE, count=1)
    # How long the first record is; the header is whole.
    disk.corrupt(f"{PATH}/00000000000000000000.log", 61)
    cold(lambda: log.search_now(search, 1)).fetch()()
    cold(lambda: log.search_now(search, 1)).fetch()()
    with pytest.raises(KafkaError) as caught:
        log.search_now(search, 1)
    assert caught.value.code == ErrorCode.INVALID_RECORD


async def inline(work):
    return work()


def test_a_file_that_has_gone_is_no_error_if_nobody_wants_it_any_more():
    def gone():
        raise FileNotFoundError

    attempts = [ColdError(gone), ColdError(lambda: nothing_to_take)]

    def look_up():
        if attempts:
            raise attempts.pop()
        return "found"

    assert asyncio.run(warmed(look_up, inline)) == "found"


def test_a_disk_that_fails_is_told_to_who_looks_something_up():
    def fail():
        raise OSError("broken")

    def look_up():
        raise ColdError(fail)

    with pytest.raises(OSError, match="broken"):
        asyncio.run(warmed(look_up, inline))
