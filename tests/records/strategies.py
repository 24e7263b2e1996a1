"""Records as Hypothesis makes them."""

from hypothesis import strategies as st

from strom.records.record import Producer, Record

TIMES = st.integers(-1, 2**62)
DATA = st.none() | st.binary(max_size=200)
HEADERS = st.lists(st.tuples(st.text(max_size=20), DATA), max_size=4).map(tuple)


@st.composite
def record_lists(draw, *, contiguous=False):
    """Some records with rising offsets, as a batch holds them."""
    offset = draw(st.integers(0, 2**60))
    records = []
    for _ in range(draw(st.integers(1, 8))):
        records.append(Record(offset, draw(TIMES), draw(DATA), draw(DATA), draw(HEADERS)))
        offset += 1 if contiguous else draw(st.integers(1, 1000))
    return records


PRODUCERS = st.builds(
    Producer, st.integers(-1, 2**63 - 1), st.integers(-1, 2**15 - 1), st.integers(-1, 2**31 - 1)
)
