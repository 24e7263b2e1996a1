"""Where in its topics a micro-batch is, as its checkpoint says."""

import json

import pytest

from strom.pipelines.place import place_of


def noted(checkpoint, batch, *sources):
    """Write what Spark notes before it begins a micro-batch."""
    (checkpoint / "offsets").mkdir(exist_ok=True)
    (checkpoint / "offsets" / str(batch)).write_text("\n".join(["v1", "{}", *sources]))


def test_a_micro_batch_is_between_its_file_and_the_one_before(tmp_path):
    noted(tmp_path, 9, '{"rides":{"0":3,"1":5},"#query":"q"}')
    noted(tmp_path, 10, '{"rides":{"0":4,"1":5,"2":2},"#query":"q"}')
    assert place_of(tmp_path, 10) == "offsets 3 to 3 of rides-0, offsets 0 to 1 of rides-2"


def test_the_first_says_itself_where_it_begins(tmp_path):
    noted(tmp_path, 0, '{"rides":{"0":9},"#began":{"rides":{"0":7}}}')
    assert place_of(tmp_path, 0) == "offsets 7 to 8 of rides-0"


def test_each_source_is_told_by_its_own_line(tmp_path):
    noted(tmp_path, 0, "-", '{"cards":{"0":2}}')
    noted(tmp_path, 1, '{"rides":{"0":1}}', '{"cards":{"0":6}}')
    assert place_of(tmp_path, 1) == "offsets 0 to 0 of rides-0, offsets 2 to 5 of cards-0"


def test_of_many_partitions_some_are_named(tmp_path):
    noted(tmp_path, 0, json.dumps({"rides": dict.fromkeys(map(str, range(50)), 1)}))
    told = place_of(tmp_path, 0)
    assert (told.count("rides-"), told[-9:]) == (8, ", 42 more")


@pytest.mark.parametrize("source", ["17", "{", '{"rides":3}', '{"rides":{"x":1}}', "[]"])
def test_what_is_no_place_in_topics_is_not_told(tmp_path, source):
    noted(tmp_path, 0, source)
    assert place_of(tmp_path, 0) is None
    assert place_of(tmp_path, 7) is None
