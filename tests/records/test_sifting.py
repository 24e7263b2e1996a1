"""The cleaner's passes over records: compiled and in Python they do the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strom.records import plain_walk
from strom.records.plain_walk import BrokenRecordsError
from strom.records.record import Record, write_batch, write_records
from tests.records.strategies import record_lists

_walk = pytest.importorskip("strom.records._walk")

SEED = bytes(range(16))
FEW_KEYS = st.lists(
    st.tuples(
        st.sampled_from([None, b"", b"a", b"b", b"c" * 70]), st.none() | st.binary(max_size=9)
    ),
    max_size=12,
)


def outcome(work):
    try:
        return work()
    except BrokenRecordsError as error:
        return str(error)


def both(work):
    """Return what both modules make of it, after it was seen to be the same."""
    plain, compiled = outcome(lambda: work(plain_walk)), outcome(lambda: work(_walk))
    assert compiled == plain
    return plain


@given(FEW_KEYS, st.integers(0, 400), st.integers(0, 12), st.integers(-1, 12), st.booleans())
def test_both_keep_the_same(pairs, memory_bytes, first, latest, keeps):
    records = [Record(9 + index, index, *pair) for index, pair in enumerate(pairs)]
    payload = bytes(write_records(records, 9, 1000))

    def work(module):
        offsets = module.OffsetMap(memory_bytes, 0.9, SEED)
        fits = offsets.add(payload, 0, len(payload), len(records), 9, 9 + first)
        where = (0, len(payload), len(records), 9, 1000, 9 + latest, keeps)
        return fits, offsets.size, offsets.size_max, offsets.sift(payload, *where)

    both(work)


def test_of_two_with_a_key_the_newer_is_kept():
    records = [Record(index, 0, b"k%d" % (index % 2), b"v") for index in range(5)]
    payload = bytes(write_records(records, 0, 0))

    def work(module):
        offsets = module.OffsetMap(1000, 0.9, SEED)
        assert offsets.add(payload, 0, len(payload), 5, 0, 0)
        return offsets.sift(payload, 0, len(payload), 5, 0, 0, 4, True)

    found = both(work)
    assert found.record_count == 2
    assert found.records == payload[len(payload) // 5 * 3 :]


@given(st.binary(max_size=60), st.integers(0, 6))
def test_whatever_the_bytes_are_both_say_the_same(data, count):
    def work(module):
        offsets = module.OffsetMap(2000, 0.9, SEED)
        return offsets.sift(data, 0, len(data), count, 0, 0, 100, True)

    both(work)
    both(lambda module: module.OffsetMap(2000, 0.9, SEED).add(data, 0, len(data), count, 0, 0))
    both(lambda module: module.rebase(data, 0, len(data), count, 77))


@given(record_lists(), st.integers(-(2**62), 2**62))
def test_another_base_changes_no_time(records, shift):
    batch = write_batch(records)
    payload = bytes(batch[61:])
    moved = both(lambda module: module.rebase(payload, 0, len(payload), len(records), shift))
    base = records[0].timestamp_ms + shift
    expected = bytes(write_records(records, records[0].offset, base))
    assert bytes(moved) == expected


def test_a_range_that_is_not_there_is_refused():
    for module in (plain_walk, _walk):
        with pytest.raises(ValueError, match="no bytes"):
            module.OffsetMap(1000, 0.9, SEED).add(b"abc", 2, 9, 1, 0, 0)
        with pytest.raises(ValueError, match="no bytes"):
            module.rebase(b"abc", 2, 1, 1, 0)


def test_keys_that_differ_in_their_length_only_are_told_apart():
    records = [Record(size, 0, bytes(size), b"") for size in range(300)]
    payload = bytes(write_records(records, 0, 0))
    for module in (plain_walk, _walk):
        offsets = module.OffsetMap(24 * 1000, 0.9, SEED)
        assert offsets.add(payload, 0, len(payload), len(records), 0, 0)
        assert offsets.size == 300
