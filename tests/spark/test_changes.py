"""What is lost between two points of a stream is told; what is new is read from its beginning."""

from uuid import UUID

import pytest

from strom.spark.changes import fresh_places, starts, tell_losses
from strom.spark.places import Progress

OLD, NEW = UUID(int=1), UUID(int=2)


def told(before, after, ids, earliest=()):
    start = starts(before, after, ids, dict(earliest))
    words = []
    tell_losses(before, after, ids, start, words.append)
    return start, words


def at(offsets, ids):
    return Progress({("t", n): offset for n, offset in offsets.items()}, ids, "q")


def test_nothing_is_lost_where_nothing_changed():
    start, words = told(at({0: 5}, {"t": OLD}), at({0: 9}, {"t": OLD}), {"t": OLD})
    assert start == {("t", 0): 5}
    assert words == []


def test_a_new_partition_is_read_from_its_beginning():
    before, after = at({0: 5}, {"t": OLD}), at({0: 5, 1: 3}, {"t": OLD})
    assert fresh_places(before, after.offsets.keys(), {"t": OLD}) == {("t", 1)}
    start, words = told(before, after, {"t": OLD}, {("t", 1): 0})
    assert start == {("t", 0): 5, ("t", 1): 0}
    assert words == []


def test_a_new_partition_that_lost_its_beginning_is_told():
    start, words = told(at({}, {}), at({1: 9}, {"t": OLD}), {"t": OLD}, {("t", 1): 4})
    assert start == {("t", 1): 4}
    assert "t-1 begins at 4" in words[0]


@pytest.mark.parametrize("after", [at({}, {}), at({0: 9}, {"t": OLD})])
def test_a_deleted_topic_is_told(after):
    start, words = told(at({0: 5}, {"t": OLD}), after, {})
    assert start == {}
    assert len(words) == 1
    assert "Topic t was deleted" in words[0]


def test_a_partition_that_is_not_assigned_any_more_is_told_and_no_topic_held_to_be_deleted():
    before, after = at({0: 5, 1: 7}, {"t": OLD}), at({0: 4}, {"t": OLD})
    start, words = told(before, after, {"t": OLD})
    assert start == {("t", 0): 5}
    assert "Partition t-1 is not assigned any more" in words[0]
    assert "ends at 4, although it was read up to 5" in words[1]
    assert len(words) == 2


def test_a_topic_made_anew_with_fewer_partitions_is_told_once():
    before, after = at({0: 5, 1: 7}, {"t": OLD}), at({0: 9}, {"t": NEW})
    start, words = told(before, after, {"t": NEW}, {("t", 0): 0})
    assert start == {("t", 0): 0}
    assert len(words) == 1
    assert "made anew" in words[0]


def test_a_topic_made_anew_is_told_and_read_from_its_beginning():
    before, after = at({0: 5}, {"t": OLD}), at({0: 9}, {"t": NEW})
    start, words = told(before, after, {"t": NEW}, {("t", 0): 0})
    assert start == {("t", 0): 0}
    assert len(words) == 1
    assert "made anew" in words[0]


def test_a_batch_planned_for_a_topic_that_is_another_now_is_lost():
    before, after = at({0: 5}, {"t": OLD}), at({0: 9}, {"t": OLD})
    start, words = told(before, after, {"t": NEW}, {("t", 0): 0})
    assert start == {}
    assert "Topic t was deleted" in words[0]


def test_an_end_that_went_back_is_told():
    _, words = told(at({0: 5}, {}), at({0: 3}, {}), {"t": OLD})
    assert "ends at 3, although it was read up to 5" in words[0]


def test_a_new_partition_that_is_gone_before_it_was_read_is_told():
    start, words = told(at({}, {}), at({1: 9}, {"t": OLD}), {"t": OLD})
    assert start == {}
    assert "t-1 was deleted before it was read" in words[0]
