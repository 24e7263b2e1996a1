"""A stream's offset in its checkpoint."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from strom.spark.places import Progress

NAMES = st.text("abc.-_", min_size=1, max_size=5)
PLACES = st.dictionaries(st.tuples(NAMES, st.integers(0, 99)), st.integers(0, 2**63 - 1))


@given(PLACES, st.dictionaries(NAMES, st.uuids()), st.text("0af", max_size=4), st.none() | PLACES)
def test_what_is_written_is_read(offsets, ids, query, began):
    progress = Progress(offsets, ids, query, began)
    assert Progress.read(progress.write()) == progress


def test_a_checkpoint_of_sparks_connector_is_taken_up():
    found = Progress.read({"rides": {"0": 23, "1": 5}})
    assert found == Progress({("rides", 0): 23, ("rides", 1): 5}, {}, "")


def test_what_is_equal_is_written_equally():
    one = Progress({("b", 1): 1, ("a", 0): 2}, {"b": UUID(int=1), "a": UUID(int=2)}, "q")
    other = Progress({("a", 0): 2, ("b", 1): 1}, {"a": UUID(int=2), "b": UUID(int=1)}, "q")
    assert str(one.write()) == str(other.write())
