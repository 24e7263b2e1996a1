"""Members of the classic protocol in a consumer group."""

import pytest

from strom.groups.classic.group import Protocol
from strom.groups.classic.leaving import Leaver
from strom.groups.consumer.draft import JOIN, SYNC
from strom.groups.consumer.embedded import read_subscription, read_version
from strom.wire.errors import ErrorCode
from strom.wire.primitives import INT16, MalformedFrame
from tests.groups.classic_consumer import Classic, wants
from tests.groups.consumer_table import GROUP, INTERVAL_MS, REBALANCE_MS, Table


def test_a_classic_member_joins_a_consumer_group(table):
    c = table.client("c", "t")
    table.advance(INTERVAL_MS)
    named = table.classic_join("", wants("t"), new_member_id="a")
    assert (named.error, named.member_id) == (ErrorCode.MEMBER_ID_REQUIRED, "a")
    a = Classic(table, "a", "t")
    a.take_part()
    assert a.holds == {}
    table.settle(c)
    a.beat()
    assert (a.holds, c.holds) == ({"t": [2, 3]}, {"t": [0, 1]})


def test_a_classic_member_without_a_round_trip_for_its_id(table):
    table.client("c", "t")
    joined = table.classic_join("", wants("t"), must_return=False, new_member_id="a")
    assert (joined.error, joined.member_id) == (ErrorCode.NONE, "a")
    assert (joined.protocol, joined.protocol_type, joined.leader) == ("range", "consumer", "")
    assert joined.members == ()


def test_a_classic_member_is_told_in_the_version_that_it_speaks(table):
    table.client("c", "t")
    table.advance(INTERVAL_MS)
    joined = table.classic_join("", wants("t", version=1), must_return=False, new_member_id="a")
    synced = table.classic_sync("a", joined.generation_id)
    assert read_version(synced.assignment) == 1
    assert (synced.protocol_type, synced.protocol) == ("consumer", "range")


def test_a_classic_member_waits_until_there_is_a_step_to_take(table):
    c = table.client("c", "t")
    table.advance(INTERVAL_MS)
    a = Classic(table, "a", "t")
    a.take_part()
    assert table.classic_beat("a", a.generation_id) is ErrorCode.NONE, "nothing is free yet"
    c.beat()
    assert table.classic_beat("a", a.generation_id) is ErrorCode.NONE
    c.beat()
    assert table.classic_beat("a", a.generation_id) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_group_of_classic_members_alone_follows_its_topics_and_its_epochs():
    """They stay in a consumer group where downgrades are not allowed."""
    table = Table({"t": 2}, group_consumer_migration_policy="upgrade")
    c = table.client("c", "t")
    a = Classic(table, "a", "t")
    a.take_part()
    c.leave()
    table.advance(INTERVAL_MS)
    a.beat()
    a.beat()
    assert a.holds == {"t": [0, 1]}
    table.set_topic("t", 3)
    table.advance(INTERVAL_MS)
    a.beat()
    assert a.holds == {"t": [0, 1, 2]}


def test_a_classic_member_that_does_not_sync_or_join_in_time_is_out(table):
    c = table.client("c", "t")
    table.advance(INTERVAL_MS)
    joined = table.classic_join("", wants("t"), must_return=False, new_member_id="a")
    assert table.timers[SYNC, GROUP, "a"] == table.now_ms + REBALANCE_MS
    table.classic_sync("a", joined.generation_id)
    assert (SYNC, GROUP, "a") not in table.timers
    table.settle(c)
    assert table.classic_beat("a", joined.generation_id) is ErrorCode.REBALANCE_IN_PROGRESS
    due = table.timers[JOIN, GROUP, "a"]
    table.advance(1000)
    table.classic_beat("a", joined.generation_id)
    assert table.timers[JOIN, GROUP, "a"] == due, "it has its time once"
    while table.now_ms < due:
        table.advance(5000)
        c.beat()
        if "a" in table.group.members:
            table.classic_beat("a", joined.generation_id)
    assert (JOIN, GROUP, "a") in table.came
    assert set(table.group.members) == {"c"}


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"generation_id": 7}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "z"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "c"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"instance_id": "y"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocol": "roundrobin"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_who_is_not_of_the_generation_is_refused(table, said, code):
    table.client("c", "t")
    joined = table.classic_join("", wants("t"), must_return=False, new_member_id="a")
    asked = {"member_id": "a", "generation_id": joined.generation_id} | said
    assert table.refused(lambda: table.classic_sync(**asked)) is code
    if not set(said) & {"protocol", "protocol_type"}:
        assert table.refused(lambda: table.classic_beat(**asked)) is code


@pytest.mark.parametrize(
    "said", [{"protocol_type": "connect"}, {"protocols": (Protocol("sticky", wants("t")),)}]
)
def test_protocols_that_the_others_do_not_have_are_refused(table, said):
    table.client("c", "t")
    table.classic_join("", wants("t"), must_return=False, new_member_id="a")
    joined = table.classic_join("", wants("t"), must_return=False, new_member_id="b", **said)
    assert joined.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_subscription_that_cannot_be_read_is_refused(table):
    table.client("c", "t")
    joined = table.classic_join("", b"", must_return=False, new_member_id="a")
    assert joined.error is ErrorCode.UNKNOWN_SERVER_ERROR


def test_classic_members_are_refused_where_there_is_no_migration():
    table = Table({"t": 4}, group_consumer_migration_policy="disabled")
    table.client("c", "t")
    joined = table.classic_join("", wants("t"), must_return=False, new_member_id="a")
    assert joined.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_members_of_both_protocols_leave_by_the_classic_request(table):
    table.client("c", "t")
    table.client("d", "t", instance_id="x")
    table.classic_join("", wants("t"), must_return=False, new_member_id="a")
    codes = table.classic_leave(
        Leaver("c"), Leaver("", "x"), Leaver("z"), Leaver("", "y"), Leaver("no", "x")
    )
    assert codes == (
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
    )
    assert set(table.group.members) == {"a"}


def test_nobody_leaves_and_nothing_changes(table):
    table.client("c", "t")
    before = len(table.log)
    assert table.classic_leave(Leaver("z")) == (ErrorCode.UNKNOWN_MEMBER_ID,)
    assert len(table.log) == before


# What classic consumers tell each other.


@pytest.mark.parametrize("version", range(6))
def test_subscriptions_of_all_versions_are_read(version):
    """A version that is not known yet begins as the newest that is."""
    known = min(version, 3)
    body = wants("t", "u", owned={"t": [1, 2]}, version=known, rack="r")
    data = INT16.pack(version) + body[2:]
    read = read_subscription(data)
    assert read.topics == ("t", "u")
    assert bool(read.owned_partitions) == (version >= 1)
    assert read.rack_id == ("r" if version >= 3 else None)


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"\xff\xff\0\0\0\0", b"\0\0\0\0\0\5", b"\0\1\0\0\0\1"]
)
def test_what_is_no_subscription_is_said_to_be_none(data):
    with pytest.raises(MalformedFrame):
        read_subscription(data)


def test_a_static_classic_member_that_is_replaced_is_not_waited_for(table):
    """It was told to join again; its next life is not it."""
    table.join("a", "t")
    table.classic_join("", wants("t"), instance_id="i", new_member_id="old")
    table.classic_sync("old", table.group.members["old"].epoch, instance_id="i")
    table.join("b", "t")
    table.advance(INTERVAL_MS)
    epoch = table.group.members["old"].epoch
    assert table.classic_beat("old", epoch, "i") is ErrorCode.REBALANCE_IN_PROGRESS
    assert table.watch.called_in == {"old"}
    table.classic_join("", wants("t"), instance_id="i", new_member_id="new")
    assert table.watch.called_in == frozenset()
