"""Looking things up without waiting: what is missing is fetched aside, taken if still wanted."""

import asyncio
import dataclasses

import pytest

from strom.log.cold import ColdError, DamagedSegmentError, nothing_to_take, patiently, warmed
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


def test_who_appends_reads_nothing_back_to_know_how_old_the_segment_is(disk, monkeypatch):
    """What was just written may have been dropped from memory, and the loop would wait for it."""
    log = open_log(disk, LARGE)
    append(log, b"first", at=NOW)

    def refuse(*_):
        raise AssertionError("read back")

    monkeypatch.setattr(type(log.active.file()), "read_at", refuse)
    append(log, b"second", at=NOW + 1)
    assert log.active.first_time_ms() == NOW


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


def test_retention_that_comes_between_two_cold_segments_is_no_error_of_the_disk():
    """What has gone cannot be read; the search goes on in the next one, which is to be read too."""
    _, log = filled()
    search = FirstAt(NOW + 5_000)
    is_over = []

    async def retain_first(work):
        if not is_over:
            is_over.append(patiently(lambda: log.retain(NOW + SMALL.retention_ms + 30_000)))
        return work()

    found = asyncio.run(warmed(lambda: log.search_now(search, log.end_offset), retain_first))
    assert found.offset == log.start_offset > 5


def test_a_disk_that_fails_is_told_to_who_looks_something_up():
    def fail():
        raise OSError("broken")

    def look_up():
        raise ColdError(fail)

    with pytest.raises(OSError, match="broken"):
        asyncio.run(warmed(look_up, inline))


# A batch that the disk has spoiled since it was written.

LENGTH_AT = 8
INDEX_PATH, LOG_PATH = (f"{PATH}/00000000000000000000{suffix}" for suffix in (".index", ".log"))


#: Every fourth batch is indexed, so there is a way past the others.
SPARSE = dataclasses.replace(LARGE, index_interval_bytes=400)


def rotten(number, mask=0x40):
    """A closed log of one segment, and where the batch begins whose length is wrong by now."""
    disk, log = filled(SPARSE, count=40)
    position = log.active.size_bytes // 40 * number
    disk.corrupt(LOG_PATH, position + LENGTH_AT, mask)
    return disk, log, position


def outcome(log, offset):
    return attempted(lambda: log.read(offset, **ALL).position)


def attempted(look_up):
    """What one gets who comes up to twenty times for what was not in memory."""
    for _ in range(20):
        try:
            return look_up()
        except ColdError as error:
            error.fetch()()
        except DamagedSegmentError:
            return "damaged"
    return "cold"


@pytest.mark.parametrize("mask", [0x40, 0x80], ids=["too long", "negative"])
def test_a_rotten_batch_is_told_to_who_comes_upon_it_and_the_others_are_served(mask):
    disk, log, position = rotten(20, mask)
    index = disk.read(INDEX_PATH)
    found = {offset: outcome(log, offset) for offset in range(40)}
    damaged = [offset for offset, each in found.items() if each == "damaged"]
    # Up to the next batch that an index leads to.
    assert damaged == list(range(20, 20 + len(damaged)))
    assert 1 < len(damaged) < 5
    size = position // 20
    assert all(found[offset] == offset * size for offset in found.keys() - damaged)
    assert disk.read(INDEX_PATH) == index


def test_a_rotten_segment_is_read_once_to_find_that_out():
    disk, log, _ = rotten(20)
    assert outcome(log, 21) == "damaged"
    disk.cool()
    with pytest.raises(DamagedSegmentError, match=r"A batch is damaged in .*00000\.log"):
        patiently(lambda: log.read(21, **ALL))
    assert {each.path for each in disk.waits} == {LOG_PATH}
    assert len(disk.waits) == 1, "the page that the look-up begins with"


def test_offsets_that_do_not_ascend_are_a_rotten_batch_too(disk):
    """Else an index could be built of them, and never be right."""
    log = open_log(disk, SPARSE)
    for number in range(40):
        append(log, b"x" * 50, at=NOW + (number == 22))
    log = reopen(log, disk, SPARSE)
    # The batch in front of the one with the largest time seems to be far behind it.
    disk.corrupt(LOG_PATH, log.active.size_bytes // 40 * 21 + 6)
    assert attempted(lambda: log.active.offset_before_time(NOW + 2)) == "damaged"


def test_a_segment_whose_end_is_rotten_is_served_up_to_there():
    _, log, _ = rotten(39)
    assert outcome(log, 38) != "damaged"
    assert outcome(log, 39) == "damaged"
    assert isinstance(patiently(log.active.newest_now), int)


def test_what_is_cut_off_with_a_rotten_batch_is_forgotten():
    _, log, position = rotten(20)
    assert outcome(log, 20) == "damaged"
    log.active.cut(position)
    assert not log.active.is_damaged


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_with_a_rotten_batch_opens(clean):
    """A snapshot that is missing has the producers looked for behind the batch."""
    disk, log, _ = rotten(20)
    log.close()
    for name, _ in disk.scan(PATH):
        if name.endswith(".snapshot"):
            disk.remove(f"{PATH}/{name}")
    opened = open_log(disk, LARGE, clean=clean, recovery_point=40)
    assert opened.end_offset == (40 if clean else 20)
