"""JoinGroup: newcomers, the barrier, the vote, and who is not taken in (GRP-01, GRP-05, GRP-07)."""

import pytest

from strom.groups.classic.group import Phase, Protocol
from strom.groups.classic.joining import NEW_MEMBER_TIMEOUT_MS
from strom.groups.classic.replies import JoinedMember
from strom.wire.errors import ErrorCode
from tests.groups.classic_table import (
    DELAY_MS,
    RANGE,
    SESSION_MS,
    Table,
)


@pytest.fixture
def table():
    return Table()


def protocols(*names):
    return tuple(Protocol(name, name.encode()) for name in names)


def test_a_newcomer_is_given_an_id_and_joins_with_it(table):
    first = table.join()
    assert first.error is ErrorCode.MEMBER_ID_REQUIRED
    assert first.reply.member_id == "client-1"
    assert not table.group.members
    second = table.join(first.reply.member_id)
    table.advance(DELAY_MS)
    assert second.reply.member_id == "client-1"
    assert list(table.group.members) == ["client-1"]


def test_a_client_from_before_version_4_is_a_member_at_once(table):
    call = table.join(must_return=False)
    assert call.waits
    assert list(table.group.members) == ["client-1"]


def test_an_id_that_nobody_comes_back_with_is_forgotten(table):
    member_id = table.join().reply.member_id
    table.advance(SESSION_MS)
    assert table.join(member_id).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert table.group.phase is Phase.EMPTY
    assert table.timers == {}


def test_the_first_members_wait_for_more_of_them(table):
    _, one = table.enter()
    table.advance(DELAY_MS - 1)
    assert one.waits
    table.advance(1)
    assert one.reply.generation_id == 1


def test_each_newcomer_lengthens_the_first_wait_but_not_beyond_the_rebalance_timeout():
    table = Table(delay_ms=3_000)
    calls = [table.enter(rebalance_ms=10_000)[1]]
    for _ in range(3):
        table.advance(2_900)
        calls.append(table.enter(rebalance_ms=10_000)[1])
    assert all(each.waits for each in calls)
    table.advance(10_000 - 3 * 2_900)
    assert {each.reply.generation_id for each in calls} == {1}


def test_without_a_delay_the_first_member_is_in_at_once():
    table = Table(delay_ms=0)
    _, call = table.enter()
    table.advance(0)
    assert call.reply.generation_id == 1


def test_grp_07_the_first_joiner_leads_and_is_told_of_everybody(table):
    first, one = table.enter(protocols=(Protocol("range", b"first"),))
    second, two = table.enter(protocols=(Protocol("range", b"second"),))
    table.advance(2 * DELAY_MS)
    assert one.reply.leader == two.reply.leader == first
    assert one.reply.members == (
        JoinedMember(first, None, b"first"),
        JoinedMember(second, None, b"second"),
    )
    assert two.reply.members == ()
    assert not one.reply.skip_assignment


def test_a_member_more_calls_everybody_in(table):
    leader, other = table.found(2)
    third, call = table.enter()
    assert table.group.phase is Phase.PREPARING
    assert table.beat(leader, 1).error is ErrorCode.REBALANCE_IN_PROGRESS
    calls = [table.join(other), table.join(leader), call]
    assert {each.reply.generation_id for each in calls} == {2}
    assert {each.reply.leader for each in calls} == {leader}
    assert len(calls[1].reply.members) == 3
    assert set(table.settle()) == {leader, other, third}


def test_the_barrier_waits_as_long_as_the_slowest_member_may_take(table):
    quick, slow = (
        table.enter(rebalance_ms=20_000)[0],
        table.enter(rebalance_ms=90_000)[0],
    )
    table.advance(2 * DELAY_MS)
    table.settle()
    _, newcomer = table.enter(rebalance_ms=20_000)
    again = table.join(quick, rebalance_ms=20_000)
    for _ in range(89):
        table.beat(slow, 1)
        table.advance(1_000)
    assert newcomer.waits
    assert again.waits
    table.advance(1_000)
    assert again.reply.generation_id == newcomer.reply.generation_id == 2
    assert table.beat(slow, 1).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_stays_silent_ends_the_waiting_when_its_session_ends(table):
    leader, _ = table.found(2)
    again = table.join(leader)
    table.advance(SESSION_MS)
    assert again.reply.generation_id == 2
    assert list(table.group.members) == [leader]


def test_who_waits_to_join_needs_no_heartbeats(table):
    leader, other = table.found(2)
    waiting = table.join(leader)
    for _ in range(5):
        table.advance(SESSION_MS - 1)
        table.beat(other, 1)
    assert waiting.waits
    assert set(table.group.members) == {leader, other}


def test_a_newcomer_whose_client_is_gone_does_not_wait_for_ever(table):
    leader, other = table.found(2, rebalance_ms=10 * NEW_MEMBER_TIMEOUT_MS)
    newcomer_id, newcomer = table.enter()
    table.join(leader, rebalance_ms=10 * NEW_MEMBER_TIMEOUT_MS)
    for _ in range(NEW_MEMBER_TIMEOUT_MS // 5_000):
        table.beat(other, 1)
        table.advance(5_000)
    assert newcomer.reply.member_id == ""
    assert newcomer.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert newcomer_id not in table.group.members


def test_who_asks_twice_is_answered_twice(table):
    leader, other = table.found(2)
    twice = [table.join(leader), table.join(leader)]
    table.join(other)
    assert [each.reply.generation_id for each in twice] == [2, 2]


def test_a_member_that_comes_back_unchanged_is_told_again_and_nobody_is_called_in(table):
    leader, other = table.found(2)
    again = table.join(other)
    assert (again.reply.generation_id, again.reply.leader) == (1, leader)
    assert again.reply.members == ()
    assert table.group.phase is Phase.STABLE


def test_while_the_leader_shares_the_work_it_is_told_of_everybody_again(table):
    leader, _ = table.enter()[0], table.enter()[0]
    table.advance(2 * DELAY_MS)
    assert table.group.phase is Phase.COMPLETING
    again = table.join(leader)
    assert again.reply.generation_id == 1
    assert len(again.reply.members) == 2


def test_grp_11_a_leader_that_comes_back_calls_everybody_in(table):
    leader, other = table.found(2)
    again = table.join(leader)
    assert again.waits
    table.join(other)
    assert again.reply.generation_id == 2


@pytest.mark.parametrize("phase", [Phase.COMPLETING, Phase.STABLE])
def test_a_member_with_something_new_to_say_calls_everybody_in(table, phase):
    leader, other = table.enter()[0], table.enter()[0]
    table.advance(2 * DELAY_MS)
    if phase is Phase.STABLE:
        table.settle()
    assert table.group.phase is phase
    changed = table.join(other, protocols=(Protocol("range", b"other topics"),))
    assert changed.waits
    again = table.join(leader)
    assert again.reply.generation_id == 2
    assert again.reply.members[1].metadata == b"other topics"


def test_most_votes_win_among_protocols_that_all_members_know(table):
    calls = [
        table.enter(protocols=protocols("sticky", "range", "only mine"))[1],
        table.enter(protocols=protocols("range", "sticky"))[1],
        table.enter(protocols=protocols("range", "sticky", "x"))[1],
    ]
    table.advance(3 * DELAY_MS)
    assert {each.reply.protocol for each in calls} == {"range"}
    assert {each.metadata for each in calls[0].reply.members} == {b"range"}


def test_who_knows_no_shared_protocol_is_not_taken_in(table):
    table.found(2)
    refused = table.join(protocols=protocols("cooperative"))
    assert refused.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    refused = table.join(protocols=RANGE, kind="connect")
    assert refused.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert table.group.phase is Phase.STABLE


@pytest.mark.parametrize(("kind", "offered"), [("", RANGE), ("consumer", ())])
def test_a_group_begins_with_a_type_and_a_protocol(kind, offered):
    call = Table().join(kind=kind, protocols=offered)
    assert call.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_grp_09_what_is_shared_is_the_clients_affair(table):
    _, call = table.enter(kind="sr", protocols=protocols("v0"))
    table.advance(DELAY_MS)
    assert (call.reply.protocol_type, call.reply.protocol) == ("sr", "v0")
    assert list(table.settle().values()) == [b"part of client-1"]
    assert table.logged.protocol_type == "sr"


def test_an_id_that_was_never_given_is_refused(table):
    assert table.join("stranger").error is ErrorCode.UNKNOWN_MEMBER_ID
    assert table.group is None
    table.found(1)
    assert table.join("stranger").error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_takes_in_no_more_members_than_it_may_have():
    table = Table(max_size=2)
    ids = table.found(2)
    assert table.join().error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert table.join().reply.member_id == ""
    assert not table.join(ids[0]).replies


def test_of_promised_ids_only_as_many_join_as_there_is_room_for():
    table = Table(max_size=1)
    ids = [table.join().reply.member_id for _ in range(2)]
    first, second = (table.join(each) for each in ids)
    assert second.error is ErrorCode.GROUP_MAX_SIZE_REACHED
    table.advance(DELAY_MS)
    assert first.reply.generation_id == 1
    assert table.group.promised == frozenset()


def test_a_group_that_is_too_large_after_a_restart_loses_who_comes_last(table):
    ids = table.found(3)
    table.limits = type(table.limits)(max_size=2, initial_delay_ms=DELAY_MS)
    table.restart()
    assert table.group.phase is Phase.PREPARING
    calls = [table.join(each) for each in ids]
    assert calls[2].error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert [each.reply.generation_id for each in calls[:2]] == [2, 2]


def test_a_second_round_may_begin_while_the_first_is_not_over(table):
    leader, other = table.enter()[0], table.enter()[0]
    table.advance(2 * DELAY_MS)
    waiting = table.sync(other, 1)
    newcomer_id, newcomer = table.enter()
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert table.sync(leader, 1).error is ErrorCode.REBALANCE_IN_PROGRESS
    table.join(leader)
    table.join(other)
    assert newcomer.reply.generation_id == 2
    assert table.settle()[newcomer_id] == f"part of {newcomer_id}".encode()


def test_all_who_were_called_in_may_stay_away(table):
    table.found(2)
    newcomer_id, newcomer = table.enter()
    table.advance(SESSION_MS)
    assert newcomer.reply.leader == newcomer_id
    assert list(table.group.members) == [newcomer_id]


def test_a_member_that_says_the_same_again_must_mean_the_same_kind_of_group(table):
    (member,) = table.found(1)
    refused = table.join(member, kind="connect")
    assert refused.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert list(table.group.members) == [member]
