"""SyncGroup: the leader shares the work, everybody fetches its part, and nobody waits for ever."""

import pytest

from strom.groups.classic import syncing
from strom.groups.classic.group import Phase, Protocol
from strom.wire.errors import ErrorCode
from tests.groups.classic_table import DELAY_MS, REBALANCE_MS, SESSION_MS, Table, as_logged


def joined(count=2, **other):
    """A group whose leader is to share the work."""
    table = Table()
    ids = [table.enter(**other)[0] for _ in range(count)]
    table.advance(2 * DELAY_MS)
    return table, ids


def test_everybody_gets_the_part_that_the_leader_gave_it():
    table, (leader, other) = joined()
    early = table.sync(other, 1)
    assert early.waits
    own = table.sync(leader, 1, given={leader: b"p0", other: b"p1"})
    assert (own.reply.assignment, early.reply.assignment) == (b"p0", b"p1")
    assert (own.reply.protocol_type, own.reply.protocol) == ("consumer", "range")
    assert table.group.phase is Phase.STABLE


def test_who_comes_after_the_leader_is_answered_at_once():
    table, (leader, other) = joined()
    table.sync(leader, 1, given={other: b"p1"})
    assert table.sync(other, 1).reply.assignment == b"p1"
    assert table.sync(other, 1).reply.assignment == b"p1"


def test_whom_the_leader_forgot_has_nothing():
    table, (leader, other) = joined()
    table.sync(leader, 1, given={leader: b"all", "stranger": b"x"})
    assert table.sync(other, 1).reply.assignment == b""
    assert list(table.logged.members) == [leader, other]


def test_what_was_shared_is_in_the_log():
    table, (leader, other) = joined()
    assert table.logged.members == {}
    table.settle()
    assert table.logged == as_logged(table.group)
    assert table.logged.members[other].assignment == f"part of {other}".encode()
    assert (table.logged.leader, table.logged.generation_id) == (leader, 1)


def test_who_is_not_of_the_generation_is_refused():
    table, (leader, _) = joined()
    assert table.sync("stranger", 1).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert table.sync(leader, 1, instance="x").error is ErrorCode.UNKNOWN_MEMBER_ID
    assert table.sync(leader, 0).error is ErrorCode.ILLEGAL_GENERATION
    assert Table().sync(leader, 1).error is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("wrong", [{"protocol_type": "connect"}, {"protocol": "sticky"}])
def test_who_has_another_protocol_in_mind_is_refused(wrong):
    table, (leader, _) = joined()
    assert table.sync(leader, 1, **wrong).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert not table.sync(leader, 1, protocol_type="consumer", protocol="range").waits


def test_a_group_that_is_called_in_has_nothing_to_fetch():
    table, (leader, other) = joined()
    table.settle()
    table.join(leader)
    assert table.sync(other, 1).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_leader_that_never_shares_the_work_is_removed_and_another_leads():
    table, (leader, other) = joined()
    waiting = table.sync(other, 1)
    for _ in range(REBALANCE_MS // 5_000):
        table.beat(leader, 1)
        table.advance(5_000)
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert list(table.group.members) == [other]
    again = table.join(other)
    assert (again.reply.leader, again.reply.generation_id) == (other, 2)


def test_a_member_that_never_fetches_its_part_is_removed_though_it_sends_heartbeats():
    table, (leader, other) = joined()
    table.settle(leader)
    for _ in range(REBALANCE_MS // 5_000):
        table.beat(leader, 1)
        table.beat(other, 1)
        table.advance(5_000)
    assert table.group.phase is Phase.PREPARING
    assert list(table.group.members) == [leader]


def test_once_all_have_their_part_no_time_is_measured_any_more():
    table, ids = joined()
    table.settle()
    assert [key[0] for key in table.timers] == ["classic-session"] * len(ids)


def test_a_member_that_waits_for_its_part_needs_no_heartbeats():
    table, (leader, other) = joined()
    waiting = table.sync(other, 1)
    for _ in range(4):
        table.beat(leader, 1)
        table.advance(SESSION_MS - 1)
    table.beat(leader, 1)
    assert waiting.waits
    table.sync(leader, 1, given={other: b"p1"})
    assert waiting.reply.assignment == b"p1"
    table.advance(SESSION_MS)
    assert other not in table.group.members, "its session began with the answer"


def test_a_leader_that_dies_while_others_wait_is_replaced():
    table, (leader, other) = joined()
    waiting = table.sync(other, 1)
    table.advance(SESSION_MS)
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert leader not in table.group.members


def test_a_work_that_could_not_be_written_is_shared_again():
    table, (leader, other) = joined()
    waiting = table.sync(other, 1)
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    for generation in (0, 1):
        table.carry_out(
            lambda generation=generation: syncing.fail_to_share(
                table.group, generation, error, now_ms=table.now_ms
            )
        )
    assert waiting.error is error
    assert table.group.phase is Phase.PREPARING
    table.join(leader)
    assert table.join(other).reply.generation_id == 2


def test_a_round_that_is_broken_off_leaves_nobody_with_a_part():
    table, (leader, _) = joined()
    table.settle()
    table.join(leader)
    assert all(each.assignment for each in table.group.members.values()), "still at work"
    table.advance(SESSION_MS)
    assert table.group.phase is Phase.COMPLETING
    table.join(leader, protocols=(Protocol("range", b"news"),))
    assert [each.assignment for each in table.group.members.values()] == [b""]


def test_a_late_word_of_a_failed_write_changes_nothing():
    table, _ = joined()
    table.settle()
    before = table.group
    table.carry_out(
        lambda: syncing.fail_to_share(
            table.group, 1, ErrorCode.UNKNOWN_SERVER_ERROR, now_ms=table.now_ms
        )
    )
    assert table.group is before
