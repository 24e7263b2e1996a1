"""Where replicas go (TOP-13, TOP-14): evenly, over racks first."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as some

from strom.metadata.placement import Placer, Usable
from strom.wire.errors import ErrorCode, KafkaError


def placer(count, *, racks=1, fenced=(), seed=0):
    brokers = [
        Usable(each, f"rack-{each % racks}" if racks > 1 else None, each in fenced)
        for each in range(count)
    ]
    return Placer(brokers, Random(seed))


def place(count, partitions, factor, **how):
    made = placer(count, **how)
    return [made.place(factor) for _ in range(partitions)]


@pytest.mark.slow
@given(count=some.integers(1, 9), racks=some.integers(1, 4), seed=some.integers(), data=some.data())
def test_no_broker_gets_two_replicas_of_a_partition_and_all_are_used_alike(
    count, racks, seed, data
):
    factor = data.draw(some.integers(1, count))
    placed = place(count, count, factor, racks=racks, seed=seed)
    assert all(len(set(each)) == factor for each in placed)
    if count % racks == 0:
        assert set(Counter(each[0] for each in placed).values()) == {1}


def test_two_partitions_have_two_leaders_while_a_broker_is_free():
    for seed in range(20):
        assert len({each[0] for each in place(3, 3, 2, seed=seed)}) == 3


def test_two_times_two_replicas_do_not_land_on_two_of_three_brokers():
    for seed in range(20):
        placed = place(3, 2, 2, seed=seed)
        assert len({broker for each in placed for broker in each}) == 3


def test_which_broker_starts_is_random():
    assert len({place(3, 1, 1, seed=seed)[0] for seed in range(30)}) == 3


def test_replicas_are_on_as_many_racks_as_there_are():
    """BRK-23."""
    for each in place(6, 30, 3, racks=3):
        assert len({broker % 3 for broker in each}) == 3


def test_two_racks_of_different_sizes_share_the_lead_within_each():
    led = Counter(each[0] for each in place(5, 60, 3, racks=2))
    assert max(led[1], led[3]) - min(led[1], led[3]) <= 2


def test_a_fenced_broker_follows_but_does_not_lead():
    placed = place(3, 12, 3, fenced={1})
    assert 1 not in {each[0] for each in placed}
    assert all(1 in each for each in placed)


@pytest.mark.parametrize(
    ("factor", "fenced", "message"),
    [
        (0, (), "Invalid replication factor 0: the replication factor must be positive."),
        (
            4,
            (),
            "The target replication factor of 4 cannot be reached because only 3 broker(s) are "
            "registered or some brokers have all their log directories cordoned.",
        ),
        (
            1,
            (0, 1, 2),
            "All brokers are currently fenced, or have all their log directories cordoned.",
        ),
    ],
)
def test_what_cannot_be_placed_is_refused_in_kafkas_words(factor, fenced, message):
    with pytest.raises(KafkaError) as refused:
        placer(3, fenced=fenced).place(factor)
    assert refused.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
    assert refused.value.message == message
