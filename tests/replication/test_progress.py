"""The high watermark: what every in-sync replica has, and never less than before (REP-10)."""

from hypothesis import given
from hypothesis import strategies as st

from strom.replication.progress import Progress


def test_a_leader_alone_in_sync_commits_what_it_appends():
    progress = Progress(1, [1], 0)
    assert progress.on_append(5)
    assert progress.high_watermark == 5


def test_the_slowest_replica_in_sync_holds_the_watermark_back():
    """CON-10."""
    progress = Progress(1, [1, 2, 3], 0)
    progress.on_append(10)
    progress.on_fetch(2, 10)
    assert progress.high_watermark == 0
    assert progress.on_fetch(3, 7)
    assert progress.high_watermark == 7


def test_a_replica_out_of_sync_does_not_count():
    progress = Progress(1, [1, 2, 3], 0)
    progress.on_append(10)
    progress.on_fetch(2, 10)
    assert progress.on_in_sync([1, 2])
    assert progress.high_watermark == 10


def test_the_leader_is_in_sync_whatever_it_is_told():
    assert Progress(1, [], 0).in_sync == {1}


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.integers(0, 50)),
            st.tuples(st.sampled_from([2, 3]), st.integers(0, 50)),
            st.tuples(st.just("isr"), st.sets(st.sampled_from([1, 2, 3]))),
        )
    )
)
def test_the_watermark_only_rises(events):
    progress = Progress(1, [1, 2, 3], 3)
    for kind, value in events:
        before = progress.high_watermark
        if kind == "append":
            rose = progress.on_append(value)
        elif kind == "isr":
            rose = progress.on_in_sync(value)
        else:
            rose = progress.on_fetch(kind, value)
        assert progress.high_watermark >= before
        assert rose == (progress.high_watermark > before)
