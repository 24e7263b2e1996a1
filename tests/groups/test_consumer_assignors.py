"""Who shall read what: the broker's own assignors (GRP-01, GRP-03, GRP-12, GRP-14)."""

from collections import Counter
from itertools import product
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as some

from strom.groups.consumer.assignors import ASSIGNORS
from strom.groups.consumer.assignors.subscriber import Subscriber

ONE, TWO, THREE = (UUID(int=each) for each in (1, 2, 3))


def subscriber(name, *topics, instance=None, owned=None, rack=None):
    return Subscriber(name, instance, frozenset(topics), owned or {}, rack)


def group(names, *topics):
    return [subscriber(name, *topics) for name in names]


def again(before, subscribers):
    """Give the subscribers what they had."""
    return [each._replace(owned=before.get(each.member_id, {})) for each in subscribers]


def sizes(assignment):
    return {name: sum(map(len, held.values())) for name, held in assignment.items()}


def pairs(held):
    return {(topic, each) for topic, partitions in held.items() for each in partitions}


def moved(before, after):
    """Return how many partitions have another reader than before."""
    was = {pair: name for name, held in before.items() for pair in pairs(held)}
    return sum(
        1 for name, held in after.items() for pair in pairs(held) if was.get(pair, name) != name
    )


def uniform(subscribers, counts):
    return ASSIGNORS["uniform"](subscribers, counts)


def ranges(subscribers, counts):
    return ASSIGNORS["range"](subscribers, counts)


# Both.


@some.composite
def situations(draw):
    """A group that had an assignment of some sort, and what it is to be assigned now."""
    counts = {UUID(int=each): draw(some.integers(0, 6)) for each in range(1, 5)}
    names = draw(some.lists(some.sampled_from("abcdefg"), min_size=1, unique=True))
    free = [(topic, each) for topic, count in counts.items() for each in range(count + 2)]
    owned = {name: {} for name in names}
    for topic, each in draw(some.lists(some.sampled_from(free), unique=True)) if free else ():
        held = owned[draw(some.sampled_from(names))]
        held[topic] = held.get(topic, frozenset()) | {each}
    return [
        Subscriber(
            name,
            draw(some.none() | some.just(f"instance of {name}")),
            draw(some.frozensets(some.sampled_from(sorted(counts)))),
            owned[name],
        )
        for name in names
    ], counts


@pytest.mark.parametrize("name", ASSIGNORS)
@given(situation=situations(), data=some.data())
def test_each_partition_goes_to_exactly_one_of_its_subscribers(name, situation, data):
    """GRP-01."""
    subscribers, counts = situation
    shuffled = data.draw(some.permutations(subscribers))
    assignment = ASSIGNORS[name](shuffled, counts)
    assert assignment == ASSIGNORS[name](subscribers, counts), "the order of members matters"
    assert set(assignment) == {each.member_id for each in subscribers}
    given_away = Counter(pair for held in assignment.values() for pair in pairs(held))
    wanted = {topic for each in subscribers for topic in each.topics}
    assert given_away == Counter((topic, each) for topic in wanted for each in range(counts[topic]))
    for each in subscribers:
        assert set(assignment[each.member_id]) <= each.topics
        assert all(assignment[each.member_id].values())


@pytest.mark.parametrize("name", ASSIGNORS)
def test_members_without_a_partition_are_idle(name):
    """GRP-03."""
    assignment = ASSIGNORS[name](group("abc", ONE), {ONE: 2})
    assert sorted(sizes(assignment).values()) == [0, 1, 1]


@pytest.mark.parametrize("name", ASSIGNORS)
def test_a_group_of_nobody_and_one_that_wants_nothing_get_nothing(name):
    assert ASSIGNORS[name]([], {}) == {}
    assert ASSIGNORS[name](group("ab"), {}) == {"a": {}, "b": {}}


# Uniform.


def far(assignment, subscribers, racks):
    """Who was given what that has no replica in its rack."""
    return [
        (each, pair)
        for each in subscribers
        for pair in sorted(pairs(assignment[each.member_id]) - pairs(each.owned))
        if each.rack not in racks[pair[0]][pair[1]]
    ]


def test_uniform_prefers_partitions_in_the_members_own_racks():
    """Also where the order of the partitions would give each of them to another rack."""
    racks = {ONE: [["x"], ["x"], ["y"], ["y"], ["z"], ["z"]]}
    subscribers = [
        subscriber(name, ONE, rack=rack) for name, rack in zip("abc", "zxy", strict=True)
    ]
    assignment = ASSIGNORS["uniform"](subscribers, {ONE: 6}, racks)
    assert assignment == {
        "a": {ONE: frozenset({4, 5})},
        "b": {ONE: frozenset({0, 1})},
        "c": {ONE: frozenset({2, 3})},
    }


def test_uniform_takes_nothing_from_a_member_for_the_sake_of_racks():
    racks = {ONE: [["x"], ["x"], ["y"], ["y"]]}
    held = {"a": {ONE: frozenset({2, 3})}, "b": {ONE: frozenset({0, 1})}}
    subscribers = [
        subscriber(name, ONE, owned=held[name], rack=rack)
        for name, rack in zip("ab", "xy", strict=True)
    ]
    assert ASSIGNORS["uniform"](subscribers, {ONE: 4}, racks) == held


def test_uniform_has_a_member_rather_give_up_what_is_far():
    racks = {ONE: [["x"], ["x"], ["y"], ["y"]]}
    subscribers = [
        subscriber("a", ONE, owned={ONE: frozenset(range(4))}, rack="y"),
        subscriber("b", ONE, rack="x"),
    ]
    assert ASSIGNORS["uniform"](subscribers, {ONE: 4}, racks) == {
        "a": {ONE: frozenset({2, 3})},
        "b": {ONE: frozenset({0, 1})},
    }


@given(situation=situations(), data=some.data())
def test_racks_cost_uniform_neither_evenness_nor_a_move(situation, data):
    subscribers, counts = situation
    rack = some.none() | some.sampled_from("xyz")
    subscribers = [each._replace(rack=data.draw(rack)) for each in subscribers]
    racks = {
        topic: [sorted(data.draw(some.frozensets(some.sampled_from("xyz")))) for _ in range(count)]
        for topic, count in counts.items()
    }
    before = {each.member_id: each.owned for each in subscribers}
    plain = ASSIGNORS["uniform"](subscribers, counts)
    aware = ASSIGNORS["uniform"](data.draw(some.permutations(subscribers)), counts, racks)
    assert aware == ASSIGNORS["uniform"](subscribers, counts, racks)
    assert sorted(sizes(aware).values()) == sorted(sizes(plain).values())
    given_away = sorted(pair for held in aware.values() for pair in pairs(held))
    assert given_away == sorted(pair for held in plain.values() for pair in pairs(held))
    assert moved(before, aware) <= moved(before, plain)
    if len({each.topics for each in subscribers}) == 1:
        assert sizes(aware) == sizes(plain)
        # Nobody could have taken another one's in place of its own, and would have it near.
        given_far = far(aware, subscribers, racks)
        for (one, (topic, _)), (_, (other, each)) in product(given_far, repeat=2):
            assert topic != other or one.rack not in racks[other][each]


def test_uniform_spreads_each_topic_over_the_members():
    assignment = uniform(group("ab", ONE, TWO), {ONE: 3, TWO: 3})
    assert assignment == {
        "a": {ONE: frozenset({0, 2}), TWO: frozenset({1})},
        "b": {ONE: frozenset({1}), TWO: frozenset({0, 2})},
    }


def test_uniform_moves_nothing_when_nothing_changed():
    subscribers, counts = group("abc", ONE, TWO), {ONE: 4, TWO: 4}
    before = uniform(subscribers, counts)
    assert uniform(again(before, subscribers), counts) == before


def test_uniform_gives_the_one_more_to_who_has_it():
    held = {"a": {ONE: frozenset({0})}, "b": {ONE: frozenset({1, 2})}, "c": {ONE: frozenset({3})}}
    assert uniform(again(held, group("abc", ONE)), {ONE: 4}) == held


def test_uniform_gives_a_newcomer_its_share_and_moves_no_more():
    """GRP-14."""
    before = uniform(group("abc", ONE), {ONE: 12})
    after = uniform(again(before, group("abcd", ONE)), {ONE: 12})
    assert sizes(after) == dict.fromkeys("abcd", 3)
    assert moved(before, after) == 3


def test_uniform_shares_out_only_what_a_leaver_had():
    """GRP-14."""
    before = uniform(group("abcd", ONE), {ONE: 12})
    after = uniform(again(before, group("abc", ONE)), {ONE: 12})
    assert all(pairs(before[name]) <= pairs(after[name]) for name in "abc")


@pytest.mark.parametrize("asking", "abc")
def test_uniform_gives_what_a_leaver_had_to_who_asks_if_others_have_as_much(asking):
    """The others hear of it only when they ask."""
    before = uniform(group("abcd", ONE), {ONE: 8})
    rest = again(before, group("abc", ONE))
    after = uniform([each._replace(is_asking=each.member_id == asking) for each in rest], {ONE: 8})
    assert sizes(after)[asking] == 3
    assert sorted(sizes(after).values()) == [2, 3, 3]
    assert moved(before, after) == 2


def test_uniform_gives_nothing_to_who_asks_that_others_lack():
    before = {"a": {ONE: frozenset({0, 1})}, "b": {ONE: frozenset({2})}}
    a, b = again(before, group("ab", ONE))
    after = uniform([a._replace(is_asking=True), b], {ONE: 4})
    assert sizes(after) == {"a": 2, "b": 2}


def test_uniform_takes_from_all_topics_of_a_member_alike():
    before = {"a": {ONE: frozenset(range(4)), TWO: frozenset(range(4))}}
    after = uniform(again(before, group("ab", ONE, TWO)), {ONE: 4, TWO: 4})
    assert after["a"] == {ONE: frozenset({0, 1}), TWO: frozenset({0, 1})}


def test_uniform_hands_out_new_partitions_where_there_are_fewest():
    before = {"a": {ONE: frozenset({0, 1})}, "b": {ONE: frozenset({2})}}
    after = uniform(again(before, group("ab", ONE)), {ONE: 4})
    assert after == {"a": {ONE: frozenset({0, 1})}, "b": {ONE: frozenset({2, 3})}}


def test_uniform_evens_out_over_members_that_read_nothing_in_common():
    """C reads only what B reads, B only what A and C read: A helps C by way of B."""
    before = {"a": {ONE: frozenset({0, 1, 2})}, "b": {TWO: frozenset({0, 1})}, "c": {}}
    subscribers = [subscriber("a", ONE), subscriber("b", ONE, TWO), subscriber("c", TWO, THREE)]
    after = uniform(again(before, subscribers), {ONE: 3, TWO: 2, THREE: 1})
    assert sizes(after) == {"a": 2, "b": 2, "c": 2}


def test_uniform_prefers_to_move_what_was_not_held_before():
    """A gets four partitions that nobody had, and must give one of five on to C: not its own."""
    before = {"a": {ONE: frozenset({5})}, "c": {TWO: frozenset({0, 1, 2, 3})}}
    subscribers = [subscriber("a", ONE), subscriber("c", ONE, TWO), subscriber("d", TWO)]
    after = uniform(again(before, subscribers), {ONE: 6, TWO: 4})
    assert sizes(after) == {"a": 4, "c": 3, "d": 3}
    assert 5 in after["a"][ONE]


def most_even(subscribers, counts):
    """Return the sizes of the most even of all assignments."""
    wanted = [(topic, each) for topic in counts for each in range(counts[topic])]
    readers = [
        [each.member_id for each in subscribers if topic in each.topics] for topic, _ in wanted
    ]
    every = (Counter(chosen) for chosen in product(*filter(None, readers)))
    return min(
        sorted((taken[each.member_id] for each in subscribers), reverse=True) for taken in every
    )


@given(data=some.data())
def test_uniform_is_as_even_as_any_assignment_can_be(data):
    counts = {UUID(int=each): data.draw(some.integers(0, 2)) for each in range(1, 4)}
    subscribers = [
        Subscriber(name, None, data.draw(some.frozensets(some.sampled_from(sorted(counts)))), {})
        for name in "abcd"
    ]
    before = uniform(
        [
            each._replace(topics=data.draw(some.just(each.topics) | some.just(frozenset(counts))))
            for each in subscribers
        ],
        counts,
    )
    after = uniform(again(before, subscribers), counts)
    assert sorted(sizes(after).values(), reverse=True) == most_even(subscribers, counts)


@given(situation=situations())
def test_uniform_takes_nothing_from_whoever_has_no_more_than_the_others(situation):
    """GRP-14: among members that want the same, the one with a fair share keeps all it has."""
    subscribers, counts = situation
    alike = [each._replace(topics=frozenset(counts)) for each in subscribers]
    after = uniform(alike, counts)
    least = sum(counts.values()) // len(alike)
    for each in alike:
        kept = {pair for pair in pairs(each.owned) if pair[1] < counts[pair[0]]}
        assert len(kept & pairs(after[each.member_id])) >= min(len(kept), least)


# Range.


def test_range_gives_the_same_numbers_of_all_topics_to_a_member():
    """GRP-12."""
    assignment = ranges(group("abc", ONE, TWO), {ONE: 7, TWO: 7})
    assert assignment["a"] == {ONE: frozenset({0, 1, 2}), TWO: frozenset({0, 1, 2})}
    assert assignment["b"] == {ONE: frozenset({3, 4}), TWO: frozenset({3, 4})}
    assert assignment["c"] == {ONE: frozenset({5, 6}), TWO: frozenset({5, 6})}


def test_range_cuts_a_topic_among_its_own_subscribers():
    subscribers = [subscriber("a", ONE, TWO), subscriber("b", TWO), subscriber("c", ONE)]
    assignment = ranges(subscribers, {ONE: 2, TWO: 3})
    assert assignment == {
        "a": {ONE: frozenset({0}), TWO: frozenset({0, 1})},
        "b": {TWO: frozenset({2})},
        "c": {ONE: frozenset({1})},
    }


def test_range_gives_a_static_member_the_same_under_another_member_id():
    """GRP-16."""
    counts = {ONE: 6}
    before = ranges(
        [subscriber("m1", ONE, instance="x"), subscriber("a", ONE), subscriber("b", ONE)], counts
    )
    after = ranges(
        [subscriber("z9", ONE, instance="x"), subscriber("a", ONE), subscriber("b", ONE)], counts
    )
    assert before["m1"] == after["z9"] == {ONE: frozenset({0, 1})}
