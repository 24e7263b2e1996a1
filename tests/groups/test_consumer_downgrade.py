"""From the consumer protocol back to the classic one, while everybody goes on reading."""

import pytest

from strom.groups.classic.group import ClassicGroup, Phase
from strom.groups.classic.leaving import Leaver
from strom.groups.consumer.embedded import write_assignment
from strom.groups.consumer.group import ConsumerGroup
from strom.replicated.machine import Wait
from strom.wire.errors import ErrorCode
from tests.groups.classic_consumer import Classic, classic_group, told, wants
from tests.groups.consumer_table import GROUP, INTERVAL_MS, SESSION_MS, Table, plain, topic_id


def test_a_consumer_group_becomes_classic_when_its_last_such_member_leaves(table):
    c = table.client("c", "t")
    a = Classic(table, "a", "t")
    table.advance(INTERVAL_MS)
    a.take_part()
    table.settle(c)
    a.beat()
    epoch = table.group.epoch
    c.leave()
    group = table.group
    assert isinstance(group, ClassicGroup)
    assert (group.phase, group.generation_id) == (Phase.PREPARING, epoch)
    assert (group.protocol_type, group.protocol, group.leader) == ("consumer", "range", "a")
    assert told(group.members["a"].assignment) == a.holds
    assert table.classic_beat("a", epoch) is ErrorCode.REBALANCE_IN_PROGRESS
    assert all(not key[0].startswith("consumer") for key in table.timers)
    assert table.replayed() == table.groups
    joined = table.classic_join("a", wants("t"))
    assert (joined.generation_id, joined.leader) == (epoch + 1, "a")


def test_what_a_member_still_reads_is_given_to_nobody_when_the_group_changes_back_and_forth(table):
    (a,) = classic_group(
        table, "a", assignments={"a": write_assignment({topic_id("t"): range(4)}, 1, table.image)}
    )
    table.join("c", "t")
    assert plain(table.group.targets["a"]) == {"t": [0, 1]}, "what it shall have"
    table.beat("c", -1)
    assert isinstance(table.group, ClassicGroup)
    assert told(table.group.members["a"].assignment) == a.holds == {"t": [0, 1, 2, 3]}
    d = table.client("d", "t")
    assert d.holds == {}
    assert isinstance(table.group, ConsumerGroup)
    assert plain(table.group.members["a"].assigned) == a.holds


def test_what_a_member_is_told_to_give_up_is_still_its_own_when_the_group_becomes_classic(table):
    whole = write_assignment({topic_id("t"): range(4)}, 1, table.image)
    (a,) = classic_group(table, "a", assignments={"a": whole})
    c = table.client("c", "t")
    a.join()
    assert plain(table.group.members["a"].revoking) == {"t": [2, 3]}, "and it has not yet"
    c.leave()
    assert told(table.group.members["a"].assignment) == a.holds


@pytest.mark.parametrize("way", ["session", "leave group"])
def test_a_consumer_group_becomes_classic_however_its_last_such_member_goes(table, way):
    table.client("c", "t")
    a = Classic(table, "a", "t")
    a.take_part()
    if way == "session":
        for _ in range(SESSION_MS // 5000):
            table.advance(5000)
            if isinstance(table.group, ConsumerGroup):
                a.beat()
    else:
        table.classic_leave(Leaver("c"))
    assert isinstance(table.group, ClassicGroup)
    assert set(table.group.members) == {"a"}


@pytest.mark.parametrize("policy", ["disabled", "upgrade"])
def test_a_consumer_group_stays_one_where_downgrades_are_not_allowed(policy):
    table = Table({"t": 4}, group_consumer_migration_policy="bidirectional")
    c = table.client("c", "t")
    Classic(table, "a", "t").take_part()
    other = Table({"t": 4}, group_consumer_migration_policy=policy)
    table.machine.see(table.image, other.machine.settings)
    c.leave()
    assert isinstance(table.group, ConsumerGroup)
    assert set(table.group.members) == {"a"}


def test_a_consumer_group_stays_one_if_it_is_too_large_for_a_classic_one():
    table = Table({"t": 4}, group_max_size=1)
    c = table.client("c", "t")
    for name in "ab":
        table.classic_join("", wants("t"), must_return=False, new_member_id=name)
    c.leave()
    assert isinstance(table.group, ConsumerGroup)


def test_an_empty_consumer_group_makes_way_for_a_classic_one(table):
    table.client("c", "t").leave()
    assert isinstance(table.classic_join("", wants("t"), must_return=False), Wait)
    assert isinstance(table.group, ClassicGroup)
    assert table.replayed()[GROUP].id == GROUP


def test_an_empty_consumer_group_does_not_know_members_of_another_time(table):
    table.client("c", "t").leave()
    assert table.classic_join("old", wants("t")).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert isinstance(table.group, ConsumerGroup)


def test_a_static_member_comes_back_with_the_other_protocol(table):
    """It takes its place, also without having left: it is another program by now (GRP-16)."""
    c = table.client("c", "t", instance_id="x")
    d = table.client("d", "t")
    table.settle(c, d)
    a = Classic(table, "", "t", instance_id="x")
    joined = table.classic_join("", wants("t"), instance_id="x", new_member_id="a")
    assert (joined.error, joined.member_id) == (ErrorCode.NONE, "a")
    a.id, a.generation_id = "a", joined.generation_id
    synced = table.classic_sync("a", a.generation_id, instance_id="x")
    assert told(synced.assignment) == c.holds
    assert isinstance(table.group, ConsumerGroup)
    assert set(table.group.members) == {"a", "d"}


def test_the_last_consumer_member_comes_back_with_the_other_protocol(table):
    """Nothing has changed for anybody: the group is classic, and no round begins."""
    c = table.client("c", "t", instance_id="x")
    b = Classic(table, "b", "t")
    table.advance(INTERVAL_MS)
    b.take_part()
    table.settle(c)
    b.beat()
    joined = table.classic_join("", wants("t"), instance_id="x", new_member_id="a")
    assert (joined.error, joined.member_id) == (ErrorCode.NONE, "a")
    group = table.group
    assert isinstance(group, ClassicGroup)
    assert (group.phase, set(group.members)) == (Phase.STABLE, {"a", "b"})
    assert told(group.members["a"].assignment) == c.holds
    assert told(group.members["b"].assignment) == b.holds
    assert table.replayed() == table.groups


def test_the_last_consumer_member_comes_back_classic_and_wants_something_else(table):
    table.set_topic("u", 1)
    c = table.client("c", "t", instance_id="x")
    table.settle(c)
    table.classic_join("", wants("u"), instance_id="x", new_member_id="a")
    assert isinstance(table.group, ClassicGroup)
    assert table.group.phase in (Phase.PREPARING, Phase.COMPLETING)


def test_a_classic_static_member_comes_back_with_the_consumer_protocol(table):
    table.client("d", "t")
    table.advance(INTERVAL_MS)
    table.classic_join("", wants("t"), instance_id="x", new_member_id="a")
    reply = table.join("c", "t", instance_id="x")
    assert reply.epoch == table.group.epoch
    assert set(table.group.members) == {"c", "d"}
    assert table.group.members["c"].classic is None


def test_a_classic_static_member_joins_again_under_its_id(table):
    table.client("d", "t")
    table.classic_join("", wants("t"), instance_id="x", new_member_id="a")
    again = table.classic_join("a", wants("t"), instance_id="x")
    assert (again.error, again.member_id) == (ErrorCode.NONE, "a")
    other = table.classic_join("b", wants("t"), instance_id="x")
    assert other.error is ErrorCode.FENCED_INSTANCE_ID
