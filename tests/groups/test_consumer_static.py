"""Static members of consumer groups: away for a while, and back in their place (GRP-16)."""

import pytest

from strom.groups.consumer.draft import SESSION
from strom.wire.errors import ErrorCode
from tests.groups.consumer_table import GROUP, INTERVAL_MS, SESSION_MS, Table, plain


@pytest.fixture
def pair(table):
    """A static member and another one, at rest."""
    a, b = table.client("a", "t", instance_id="x"), table.client("b", "t")
    table.settle(a, b)
    return a, b


def test_a_static_member_that_is_away_keeps_what_it_has(table, pair):
    """GRP-16: a restart without a rebalance."""
    a, b = pair
    before = table.group.epoch, dict(b.holds)
    reply = table.beat("a", -2, instance_id="x")
    assert (reply.member_id, reply.epoch, reply.assignment) == ("a", -2, None)
    b.beat()
    again = table.join("a2", "t", instance_id="x")
    assert plain(again.assignment) == a.holds
    assert (table.group.epoch, b.holds) == before
    assert set(table.group.members) == {"a2", "b"}
    assert again.epoch == table.group.epoch


def test_a_group_that_is_full_takes_back_whose_place_there_is():
    """Upstream KAFKA-20601."""
    full = Table({"t": 4}, group_consumer_max_size=2)
    a, b = full.client("a", "t", instance_id="x"), full.client("b", "t")
    full.settle(a, b)
    stranger = full.refused(lambda: full.join("a2", "t", instance_id="y"))
    assert stranger is ErrorCode.GROUP_MAX_SIZE_REACHED
    in_use = full.refused(lambda: full.join("a2", "t", instance_id="x"))
    assert in_use is ErrorCode.UNRELEASED_INSTANCE_ID
    a.go_away()
    full.join("a2", "t", instance_id="x")
    assert set(full.group.members) == {"a2", "b"}


def test_the_timers_of_the_last_life_are_forgotten(table, pair):
    a, _ = pair
    a.go_away()
    table.join("a2", "t", instance_id="x")
    assert {key[2] for key in table.timers} == {"a2", "b"}


def test_a_name_that_is_in_use_is_not_given_to_another(table, pair):
    assert len(pair) == 2
    for member_id in ("a", "a2"):
        refused = table.refused(lambda who=member_id: table.join(who, "t", instance_id="x"))
        assert refused is ErrorCode.UNRELEASED_INSTANCE_ID


def test_the_last_life_of_a_static_member_is_fenced(table, pair):
    a, _ = pair
    a.go_away()
    table.join("a2", "t", instance_id="x")
    for epoch in (a.epoch, -1, -2):
        refused = table.refused(lambda at=epoch: table.beat("a", at, instance_id="x"))
        assert refused is ErrorCode.FENCED_INSTANCE_ID


def test_a_name_that_nobody_has_is_unknown(table, pair):
    assert len(pair) == 2
    for epoch in (1, -1, -2):
        refused = table.refused(lambda at=epoch: table.beat("b", at, instance_id="y"))
        assert refused is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_that_stays_away_is_out_after_its_session(table, pair):
    a, b = pair
    a.go_away()
    for _ in range(SESSION_MS // 5000):
        table.advance(5000)
        b.beat()
    assert table.came == [(SESSION, GROUP, "a")]
    table.settle(b)
    assert b.holds == {"t": [0, 1, 2, 3]}


def test_a_static_member_can_leave_for_good(table, pair):
    a, b = pair
    a.leave()
    table.settle(b)
    assert b.holds == {"t": [0, 1, 2, 3]}
    assert not table.group.instances


def test_a_static_member_that_wants_something_else_when_it_is_back(table, pair):
    a, b = pair
    table.set_topic("u", 2)
    a.go_away()
    table.advance(INTERVAL_MS)
    again = table.join("a2", "u", instance_id="x")
    assert plain(again.assignment) == {"u": [0, 1]}
    table.settle(b)
    assert b.holds == {"t": [0, 1, 2, 3]}


def test_a_static_member_away_while_the_others_change(table, pair):
    """What it has is not given to anybody until it is back or out."""
    a, b = pair
    held = set(a.holds["t"])
    a.go_away()
    table.advance(INTERVAL_MS)
    c = table.client("c", "t")
    table.settle(b, c)
    assert held.isdisjoint(b.holds.get("t", []) + c.holds.get("t", []))


def test_a_static_member_in_the_middle_of_giving_up_comes_back(table):
    a = table.client("a", "t", instance_id="x")
    table.advance(INTERVAL_MS)
    b = table.client("b", "t")
    table.beat("a", a.epoch, instance_id="x")
    table.beat("a", -2, instance_id="x")
    again = table.join("a2", "t", instance_id="x")
    assert plain(again.assignment) == {"t": [0, 1]}
    table.advance(INTERVAL_MS)
    b.beat()
    assert b.holds == {"t": [2, 3]}


def test_a_member_that_takes_another_name_leaves_its_first_one_to_others(table):
    table.join("a", "t", instance_id="x")
    table.join("a", "t", instance_id="y")
    table.beat("a", -1, instance_id="y")
    table.join("b", "t", instance_id="x")
    assert set(table.group.members) == {"b"}
    assert dict(table.group.instances) == {"x": "b"}
    assert table.replayed() == table.groups
