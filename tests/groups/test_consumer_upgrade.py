"""From the classic to the consumer protocol, while everybody goes on reading."""

import pytest

from strom.groups.classic.group import ClassicGroup, Phase
from strom.groups.classic.leaving import Leaver
from strom.groups.consumer.draft import SESSION
from strom.groups.consumer.embedded import write_assignment
from strom.groups.consumer.group import ConsumerGroup
from strom.replicated.machine import Wait
from strom.wire.errors import ErrorCode
from tests.groups.classic_consumer import Classic, classic_group, wants
from tests.groups.consumer_table import GROUP, SESSION_MS, Table, plain, topic_id


def test_a_classic_group_becomes_a_consumer_group_when_such_a_member_joins():
    table = Table({"t": 3})
    a, b = classic_group(table, "a", "b")
    generation = table.group.generation_id
    reply = table.join("c", "t")
    group = table.group
    assert isinstance(group, ConsumerGroup)
    assert set(group.members) == {"a", "b", "c"}
    assert group.epoch == group.assignment_epoch == generation + 1
    assert plain(reply.assignment) == {"t": [2]}, "what the others had is still theirs"
    assert plain(group.members["a"].assigned) == a.holds == {"t": [0]}
    assert plain(group.members["b"].assigned) == b.holds == {"t": [1]}
    assert table.replayed() == table.groups


def test_its_members_go_on_as_they_were():
    table = Table({"t": 3})
    a, b = classic_group(table, "a", "b")
    table.join("c", "t")
    a.beat()
    b.beat()
    assert (a.holds, b.holds) == ({"t": [0]}, {"t": [1]})
    assert (a.generation_id, b.generation_id) == (table.group.epoch, table.group.epoch)
    for _ in range(20):
        table.advance(5000)
        a.beat()
        b.beat()
        if "c" in table.group.members:
            table.beat("c", table.group.members["c"].epoch)
    assert set(table.group.members) == {"a", "b", "c"}


def test_what_a_classic_member_must_give_up_is_given_on_when_it_says_so(table):
    (a,) = classic_group(
        table, "a", assignments={"a": write_assignment({topic_id("t"): range(4)}, 1, table.image)}
    )
    c = table.client("c", "t")
    assert c.holds == {}
    a.beat()
    assert a.holds == {"t": [0, 1]}
    table.advance(5000)
    c.beat()
    assert c.holds == {}, "it was told, and has not said that it gave them up"
    a.beat()
    table.advance(5000)
    c.beat()
    assert c.holds == {"t": [2, 3]}
    assert a.generation_id == table.group.epoch


def test_who_waits_in_a_round_is_told_to_join_again(table):
    classic_group(table, "a", "b")
    assert isinstance(table.classic_join("a", wants("t", "u")), Wait)
    assert table.group.phase is Phase.PREPARING
    table.join("c", "t")
    ((ticket, joined),) = [each for each in table.answers if each[0] == ("join", GROUP, "a")][-1:]
    assert ticket == ("join", GROUP, "a")
    assert joined.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert all(not key[0].startswith("classic") for key in table.timers)


def test_who_waits_for_its_leader_is_told_to_join_again(table):
    classic_group(table, "a", "b")
    leader = table.group.leader
    other = "b" if leader == "a" else "a"
    table.classic_join(leader, wants("t", "u"))
    table.classic_join(other, wants("t"))
    assert table.group.phase is Phase.COMPLETING
    generation = table.group.generation_id
    assert isinstance(table.classic_sync(other, generation), Wait)
    table.join("c", "t")
    answers = dict(table.answers)
    assert answers["sync", GROUP, other].error is ErrorCode.REBALANCE_IN_PROGRESS


def halves(table):
    """Make a classic group of two with two partitions each, of which the first leads."""
    given = {
        name: write_assignment({topic_id("t"): {index, index + 1}}, 1, table.image)
        for name, index in (("a", 0), ("b", 2))
    }
    a, b = classic_group(table, "a", "b", assignments=given)
    assert table.group.leader == "a"
    return a, b


def test_what_a_member_reads_until_it_has_synced_is_given_to_nobody(table):
    """Its leader has taken a partition from it, of which it does not know yet."""
    _, b = halves(table)
    table.classic_join("a", wants("t", "u", owned={"t": [0, 1]}))
    b.join()
    generation = b.generation_id = table.group.generation_id
    given = {
        name: write_assignment({topic_id("t"): indexes}, 1, table.image)
        for name, indexes in (("a", {0, 1}), ("b", {2}))
    }
    table.classic_sync("a", generation, assignments=given)
    assert table.group.phase is Phase.STABLE
    c = table.client("c", "t")
    assert plain(table.group.members["b"].assigned) == b.holds == {"t": [2, 3]}
    assert c.holds == {}
    assert table.replayed() == table.groups
    b.beat()
    assert b.holds == {"t": [2]}
    b.beat()
    table.advance(5000)
    c.beat()
    assert c.holds == {"t": [3]}


def test_what_members_read_in_the_midst_of_a_round_is_given_to_nobody(table):
    """What their leader gave them is noted no more: it began another round before it shared."""
    a, b = halves(table)
    table.classic_join("a", wants("t", "u", owned=a.holds))
    b.join()
    assert table.group.phase is Phase.COMPLETING
    table.classic_join("a", wants("t", owned=a.holds))
    assert table.group.phase is Phase.PREPARING
    assert {each.assignment for each in table.group.members.values()} == {b""}
    c = table.client("c", "t")
    assert c.holds == {}
    for each in (a, b):
        assert plain(table.group.members[each.id].assigned) == each.holds
    assert table.replayed() == table.groups


def test_what_two_members_say_to_hold_stays_with_one(table):
    halves(table)
    table.classic_join("a", wants("t", "u", owned={"t": [0, 1, 2]}))
    table.classic_join("b", wants("t", owned={"t": [1, 2, 3]}))
    table.client("c", "t")
    held = {name: plain(each.assigned) for name, each in table.group.members.items()}
    assert (held["a"], held["b"]) == ({"t": [0, 1]}, {"t": [2, 3]})


def test_what_two_members_say_to_hold_stays_with_one_also_where_nothing_is_noted(table):
    a, b = halves(table)
    table.classic_join("a", wants("t", "u", owned=a.holds))
    b.join()
    table.classic_join("a", wants("t", owned={"t": [0, 1, 2]}))
    assert {each.assignment for each in table.group.members.values()} == {b""}
    table.client("c", "t")
    held = {name: plain(each.assigned) for name, each in table.group.members.items()}
    assert (held["a"], held["b"]) == ({"t": [0, 1, 2]}, {"t": [3]})


def test_a_group_in_its_first_round_becomes_a_consumer_group(table):
    assert isinstance(
        table.classic_join("", wants("t"), must_return=False, new_member_id="a"), Wait
    )
    c = table.client("c", "t")
    a = Classic(table, "a", "t")
    a.take_part()
    table.advance(5000)
    c.beat()
    a.beat()
    c.beat()
    assert sorted(a.holds["t"] + c.holds["t"]) == [0, 1, 2, 3]


def test_who_finds_a_group_in_its_first_round_and_wants_nothing_has_an_epoch_nevertheless(table):
    """An epoch of 0 is that of who wants to join: it would be told to say all of it again."""
    table.classic_join("", wants("t"), must_return=False, new_member_id="a")
    reply = table.join("c")
    assert reply.epoch == table.group.epoch == 1
    table.beat("c", 1)


def test_the_sessions_of_classic_members_are_their_own(table):
    classic_group(table, "a")
    table.join("c", "t")
    assert table.timers[SESSION, GROUP, "a"] == table.now_ms + SESSION_MS
    table.advance(SESSION_MS)
    assert "a" not in table.group.members


def test_an_empty_classic_group_makes_way(table):
    (a,) = classic_group(table, "a")
    table.classic_leave(Leaver(a.id))
    assert table.group.is_empty
    reply = table.join("c", "t")
    assert (reply.epoch, plain(reply.assignment)) == (2, {"t": [0, 1, 2, 3]})
    assert table.replayed() == table.groups


@pytest.mark.parametrize("policy", ["disabled", "DOWNGRADE"])
def test_a_group_stays_classic_where_upgrades_are_not_allowed(policy):
    table = Table({"t": 4}, group_consumer_migration_policy=policy)
    classic_group(table, "a")
    assert table.refused(lambda: table.join("c", "t")) is ErrorCode.GROUP_ID_NOT_FOUND
    assert isinstance(table.group, ClassicGroup)


def test_a_group_that_is_too_large_stays_classic():
    table = Table({"t": 4}, group_consumer_max_size=1)
    classic_group(table, "a", "b")
    assert table.refused(lambda: table.join("c", "t")) is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_for_something_else_stays_classic(table):
    table.classic_join("", b"what", protocol_type="connect", must_return=False, new_member_id="a")
    assert table.refused(lambda: table.join("c", "t")) is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_of_which_nothing_can_be_known_stays_classic(table):
    table.classic_join("", b"\0", must_return=False, new_member_id="a")
    assert table.refused(lambda: table.join("c", "t")) is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_with_an_assignor_of_its_own_stays_classic(table):
    own = write_assignment({topic_id("t"): {0}}, 1, table.image)[:-4] + b"\0\0\0\1x"
    classic_group(table, "a", assignments={"a": own})
    assert table.refused(lambda: table.join("c", "t")) is ErrorCode.GROUP_ID_NOT_FOUND


def test_only_a_member_that_joins_changes_the_protocol(table):
    classic_group(table, "a")
    for epoch in (1, -1):
        refused = table.refused(lambda at=epoch: table.beat("c", at))
        assert refused is ErrorCode.GROUP_ID_NOT_FOUND
