"""Offsets are cut into tasks: all of them, none twice, and always in the same places."""

from hypothesis import given
from hypothesis import strategies as st

from strom.spark.ranges import Range, cut

RANGES = st.lists(st.tuples(st.integers(0, 2**62), st.integers(-5, 10**9)), max_size=8).map(
    lambda each: [Range(("t", n), start, start + size) for n, (start, size) in enumerate(each)]
)
LIMIT = st.none() | st.integers(1, 40)


def joined(pieces):
    """Put the pieces of each partition together again."""
    whole = {}
    for place, start, end in pieces:
        first, last = whole.get(place, (start, start))
        assert last == start, "a gap, or out of order"
        whole[place] = (first, end)
    return whole


@given(RANGES, LIMIT, st.none() | st.integers(10**7, 10**9))
def test_all_offsets_are_in_exactly_one_task(ranges, min_partitions, max_records):
    pieces = cut(ranges, min_partitions, max_records)
    assert joined(pieces) == {each.place: each[1:] for each in ranges if each.size > 0}
    assert all(each.size > 0 for each in pieces)
    assert max_records is None or all(each.size <= max_records for each in pieces)
    assert pieces == cut(list(ranges), min_partitions, max_records)


def test_without_limits_a_partition_is_a_task():
    ranges = [Range(("t", 0), 0, 5), Range(("t", 1), 3, 3), Range(("t", 2), 0, 9)]
    assert cut(ranges, None, None) == [ranges[0], ranges[2]]
    assert cut(ranges, 2, None) == [ranges[0], ranges[2]]


def test_large_partitions_get_more_tasks_as_in_sparks_connector():
    ranges = [Range(("t", 0), 0, 100), Range(("t", 1), 0, 10)]
    sizes = [each.size for each in cut(ranges, 4, None)]
    assert sizes == [33, 33, 34, 10]


def test_one_large_partition_is_cut():
    assert [each.size for each in cut([Range(("t", 0), 7, 107)], None, 30)] == [25, 25, 25, 25]
