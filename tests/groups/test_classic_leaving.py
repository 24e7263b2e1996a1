"""Heartbeats, time-outs, leaving, restarts of the coordinator (GRP-05, GRP-10, GRP-11, GRP-17)."""

from dataclasses import replace

import pytest

from strom.groups.classic import presence
from strom.groups.classic.change import SESSION
from strom.groups.classic.group import ClassicGroup, Member, Phase, Protocol
from strom.groups.classic.leaving import Leaver
from strom.groups.classic.logged import group_record, read_group
from strom.groups.classic.subscription import reads, subscribed_topics
from strom.wire.errors import ErrorCode, KafkaError
from tests.groups.classic_table import DELAY_MS, REBALANCE_MS, SESSION_MS, Table


@pytest.fixture
def table():
    return Table()


def test_grp_10_heartbeats_keep_a_member_in_and_silence_ends_its_session(table):
    (only,) = table.found(1)
    for _ in range(10):
        table.advance(SESSION_MS - 1)
        assert table.beat(only, 1).error is ErrorCode.NONE
    table.advance(SESSION_MS)
    assert table.beat(only, 1).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert table.group.phase is Phase.EMPTY


def test_a_heartbeat_moves_a_timer_and_nothing_else(table):
    ids = table.found(2)
    decision = presence.heartbeat(table.group, ids[0], None, 1, now_ms=5)
    assert (decision.records, decision.soft, decision.answers) == ((), (), ())
    assert decision.timers == (((SESSION, "g", ids[0]), 5 + SESSION_MS),)


def test_a_heartbeat_of_another_generation_is_refused(table):
    (only,) = table.found(1)
    assert table.beat(only, 0).error is ErrorCode.ILLEGAL_GENERATION
    assert table.beat("stranger", 1).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert table.beat(only, 1, "x").error is ErrorCode.UNKNOWN_MEMBER_ID
    assert Table().beat(only, 1).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_heartbeats_are_taken_while_the_leader_shares_the_work(table):
    member_id, _ = table.enter()
    table.advance(DELAY_MS)
    assert table.group.phase is Phase.COMPLETING
    assert table.beat(member_id, 1).error is ErrorCode.NONE


def test_grp_05_a_silent_members_work_goes_to_the_others(table):
    leader, other = table.found(2)
    for _ in range(3):
        table.advance(SESSION_MS // 2)
        table.beat(leader, 1)
    assert table.group.phase is Phase.PREPARING
    assert table.join(leader).reply.generation_id == 2
    assert other not in table.group.members


def test_grp_11_a_member_that_stalls_costs_one_round_and_one_more_when_it_is_back(table):
    stays, stalls = table.found(2)

    def pass_time(generation_id, *ids):
        for _ in range(6):
            table.advance(SESSION_MS // 2)
            for each in ids:
                table.beat(each, generation_id)

    pass_time(1, stays)
    table.join(stays)
    table.settle()
    pass_time(2, stays)
    assert (table.group.generation_id, table.group.phase) == (2, Phase.STABLE)
    assert table.beat(stalls, 1).error is ErrorCode.UNKNOWN_MEMBER_ID
    back, _ = table.enter()
    table.join(stays)
    table.settle()
    pass_time(3, stays, back)
    assert (table.group.generation_id, table.group.phase) == (3, Phase.STABLE)


def test_a_member_that_leaves_calls_the_others_in_at_once(table):
    leader, other = table.found(2)
    assert table.leave(leader).reply == (ErrorCode.NONE,)
    assert table.beat(other, 1).error is ErrorCode.REBALANCE_IN_PROGRESS
    again = table.join(other)
    assert (again.reply.generation_id, again.reply.leader) == (2, other)


def test_the_last_one_leaves_an_empty_group_that_is_written(table):
    (only,) = table.found(1)
    table.leave(only)
    assert table.soft is None, "all that there is to know is in the log"
    assert table.logged.phase is Phase.EMPTY
    assert (table.logged.generation_id, table.logged.protocol_type) == (2, "consumer")
    assert (table.logged.protocol, table.logged.leader) == (None, None)
    assert table.logged.since_ms == table.now_ms
    assert table.timers == {}


def test_several_leave_at_once_each_with_its_answer_and_one_round_follows(table):
    ids = table.found(3)
    reply = table.leave(ids[1], "stranger", Leaver(ids[2], "x"), ids[2]).reply
    assert reply == (
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
    )
    assert table.join(ids[0]).reply.generation_id == 2


def test_who_leaves_a_group_that_is_not_there_is_unknown():
    assert Table().leave("a", "b").reply == (ErrorCode.UNKNOWN_MEMBER_ID,) * 2


def test_who_was_only_expected_leaves_without_a_round(table):
    table.found(1)
    promised = table.join().reply.member_id
    assert table.leave(promised).reply == (ErrorCode.NONE,)
    assert table.group.phase is Phase.STABLE
    assert table.join(promised).error is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("how", ["leaves", "stays silent"])
def test_who_is_expected_holds_the_others_up_until_it_is_gone(table, how):
    (leader,) = table.found(1)
    promised = table.join().reply.member_id
    again = table.join(leader)
    assert again.waits
    if how == "leaves":
        table.leave(promised)
    else:
        table.advance(SESSION_MS)
    assert again.reply.generation_id == 2


def test_a_member_that_leaves_while_it_waits_is_answered(table):
    member_id, joining = table.enter()
    table.leave(member_id)
    assert joining.error is ErrorCode.UNKNOWN_MEMBER_ID
    leader, other = table.enter()[0], table.enter()[0]
    table.advance(3 * DELAY_MS)
    syncing = table.sync(other, 1)
    table.leave(other)
    assert syncing.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert list(table.group.members) == [leader]


def test_a_first_round_that_everybody_left_ends_empty(table):
    member_id, _ = table.enter()
    table.leave(member_id)
    table.advance(DELAY_MS)
    assert table.group.phase is Phase.EMPTY
    assert table.group.generation_id == 1


def test_grp_17_a_rolling_restart_of_three_dynamic_members_takes_six_rounds(table):
    ids = table.found(3)
    before = table.group.generation_id
    for gone in list(ids):
        table.leave(gone)
        ids.remove(gone)
        for each in ids:
            table.join(each)
        table.settle()
        newcomer, _ = table.enter()
        for each in ids:
            table.join(each)
        ids.append(newcomer)
        table.settle()
    assert table.group.generation_id - before == 6
    assert set(table.group.members) == set(ids)


def test_after_a_restart_of_the_coordinator_the_members_go_on_without_a_round(table):
    leader, other = table.found(2)
    table.restart()
    assert table.group == table.logged
    assert table.beat(leader, 1).error is ErrorCode.NONE
    assert table.sync(other, 1).reply.assignment == f"part of {other}".encode()
    table.advance(SESSION_MS - 1)
    assert set(table.group.members) == {leader, other}
    table.advance(1)
    assert table.group.phase is Phase.EMPTY, "their sessions began anew, and ended"


def test_a_restart_in_mid_round_goes_back_to_the_last_round_that_was_over(table):
    leader, other = table.found(2)
    table.join(leader)
    table.restart()
    assert table.group.phase is Phase.STABLE
    assert table.beat(other, 1).error is ErrorCode.NONE
    again = table.join(leader)
    table.join(other)
    assert again.reply.generation_id == 2


def test_a_new_group_is_there_after_a_restart(table):
    table.join()
    table.restart()
    assert table.group == ClassicGroup("g", since_ms=table.now_ms)


def test_timers_of_what_is_over_have_no_effect(table):
    (only,) = table.found(1)
    for key in [(SESSION, "g", "stranger"), ("classic-join", "g"), ("classic-sync", "g")]:
        table.timers[key] = table.now_ms
    before = table.group
    table.advance(0)
    assert table.group is before
    assert list(before.members) == [only]
    table.logged = table.soft = None
    table.timers = {("classic-join", "g"): table.now_ms}
    table.advance(0)
    assert table.group is None


# Committing offsets, and what else asks a group.


def check(table, *args, **kwargs):
    try:
        presence.check_commit(table.group, *args, **kwargs)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def test_members_of_the_generation_may_commit(table):
    leader, other = table.found(2)
    assert check(table, leader, None, 1) is ErrorCode.NONE
    assert check(table, leader, None, 0) is ErrorCode.ILLEGAL_GENERATION
    assert check(table, "stranger", None, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert check(table, leader, "x", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    table.join(leader)
    assert table.group.phase is Phase.PREPARING
    assert check(table, other, None, 1) is ErrorCode.NONE, "before it joins again"
    table.join(other)
    assert table.group.phase is Phase.COMPLETING
    assert check(table, other, None, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    assert check(table, other, None, 2, transactional=True) is ErrorCode.NONE


def test_who_is_in_no_group_may_commit_while_nobody_else_is(table):
    table.found(1)
    assert check(table, "", None, -1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert check(table, "", None, -1, transactional=True) is ErrorCode.NONE
    table.advance(SESSION_MS)
    assert check(table, "", None, -1) is ErrorCode.NONE
    assert check(table, "stranger", None, 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_commit_counts_as_a_heartbeat(table):
    (only,) = table.found(1)
    assert presence.commit_timers(table.group, only, 7) == (((SESSION, "g", only), 7 + SESSION_MS),)
    assert presence.commit_timers(table.group, "", 7) == ()


def consumer_group(*subscriptions, kind="consumer"):
    members = {
        f"m{n}": Member(f"m{n}", None, "c", "h", 1, 1, (Protocol("range", each),))
        for n, each in enumerate(subscriptions)
    }
    return ClassicGroup(
        "g", phase=Phase.STABLE, protocol_type=kind, protocol="range", members=members
    )


def subscription(*topics):
    names = b"".join(len(each).to_bytes(2, "big") + each.encode() for each in topics)
    return b"\0\1" + len(topics).to_bytes(4, "big") + names + b"what later versions add"


def test_the_topics_of_consumers_are_known():
    group = consumer_group(subscription("a"), subscription("a", "b"))
    assert subscribed_topics(group) == {"a", "b"}
    assert reads(group, "a")
    assert not reads(group, "c")


@pytest.mark.parametrize("garbage", [b"", b"\0\1", b"\0\1\0\0\0\1\0\5ab", b"\0\1\0\0\0\1\0\1\xff"])
def test_a_consumer_that_says_something_else_may_read_any_topic(garbage):
    group = consumer_group(subscription("a"), garbage)
    assert subscribed_topics(group) is None
    assert reads(group, "anything")


def test_other_groups_read_no_topics():
    group = consumer_group(subscription("a"), kind="connect")
    assert subscribed_topics(group) is None
    assert not reads(group, "a")


def test_a_record_from_before_rebalance_timeouts_has_the_session_timeout(table):
    table.found(1)
    value = group_record(table.group).value
    (member,) = value.members
    old = replace(value, members=(replace(member, rebalance_timeout=-1),))
    (read,) = read_group("g", old).members.values()
    assert read.rebalance_timeout_ms == SESSION_MS != REBALANCE_MS
