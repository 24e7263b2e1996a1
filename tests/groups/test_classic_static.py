"""Static members: they come back to their place, and who held it is fenced (GRP-16)."""

import pytest

from strom.groups.classic.group import Phase, Protocol
from strom.groups.classic.leaving import Leaver
from strom.wire.errors import ErrorCode
from tests.groups.classic_table import DELAY_MS, REBALANCE_MS, SESSION_MS, Table

LONG_MS = 10 * 60_000


def founded(**other):
    """A stable group of a static leader "a" and a static member "b"."""
    table = Table(**other)
    calls = [table.join(instance=name, session_ms=LONG_MS) for name in ("a", "b")]
    table.advance(2 * DELAY_MS)
    table.settle()
    return table, [each.reply.member_id for each in calls]


def test_a_static_member_joins_without_being_sent_back_for_an_id():
    table = Table()
    call = table.join(instance="a")
    assert call.waits
    assert table.group.instances == {"a": "a-1"}


def test_grp_16_a_restarted_static_member_gets_a_new_id_and_its_old_part_without_a_round():
    table, (_, old) = founded()
    generation = table.group.generation_id
    back = table.join(instance="b", session_ms=LONG_MS).reply
    assert back.error is ErrorCode.NONE
    assert back.member_id not in ("", old)
    assert back.generation_id == generation
    assert table.group.phase is Phase.STABLE
    part = table.sync(back.member_id, generation, instance="b").reply
    assert part.assignment == f"part of {old}".encode()


def test_the_new_id_of_a_static_member_outlives_the_coordinator():
    table, _ = founded()
    back = table.join(instance="b", session_ms=LONG_MS).reply
    table.restart()
    assert table.group.instances["b"] == back.member_id
    assert table.beat(back.member_id, 1, "b").error is ErrorCode.NONE


def test_the_old_life_of_a_static_member_is_fenced_in_all_that_it_does():
    table, (_, old) = founded()
    table.join(instance="b", session_ms=LONG_MS)
    assert table.beat(old, 1, "b").error is ErrorCode.FENCED_INSTANCE_ID
    assert table.sync(old, 1, instance="b").error is ErrorCode.FENCED_INSTANCE_ID
    assert table.join(old, instance="b").error is ErrorCode.FENCED_INSTANCE_ID
    assert table.leave(Leaver(old, "b")).reply == (ErrorCode.FENCED_INSTANCE_ID,)
    assert table.beat(old, 1).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_restarted_leader_leads_on_and_is_told_to_leave_the_assignment_alone():
    table, _ = founded()
    back = table.join(instance="a", session_ms=LONG_MS).reply
    assert back.leader == back.member_id == table.group.leader
    assert back.skip_assignment
    assert len(back.members) == 2


def test_a_restarted_leader_that_cannot_skip_is_not_told_that_it_leads():
    table, (old, _) = founded()
    back = table.join(instance="a", session_ms=LONG_MS, can_skip=False).reply
    assert back.leader == old
    assert back.members == ()
    assert not back.skip_assignment


def test_a_restarted_follower_has_nothing_to_skip():
    table, (leader, _) = founded()
    back = table.join(instance="b", session_ms=LONG_MS).reply
    assert (back.leader, back.skip_assignment, back.members) == (leader, False, ())


def test_a_static_member_that_makes_the_group_choose_again_calls_everybody_in():
    both = (Protocol("range", b""), Protocol("sticky", b""))
    table = Table()
    ids = [table.join(instance=name, protocols=both) for name in "ab"]
    table.advance(2 * DELAY_MS)
    table.settle()
    back = table.join(instance="b", protocols=(Protocol("sticky", b""),))
    assert back.waits
    assert table.group.phase is Phase.PREPARING
    table.join(ids[0].reply.member_id, instance="a", protocols=both)
    assert back.reply.protocol == "sticky"


def test_a_static_member_that_comes_back_while_the_work_is_shared_has_it_shared_again():
    table = Table()
    calls = [table.join(instance=name) for name in "ab"]
    table.advance(2 * DELAY_MS)
    leader, old = (each.reply.member_id for each in calls)
    waiting = table.sync(old, 1, instance="b")
    back = table.join(instance="b")
    assert waiting.error is ErrorCode.FENCED_INSTANCE_ID
    assert table.group.phase is Phase.PREPARING
    table.join(leader, instance="a")
    assert back.reply.generation_id == 2


def test_the_old_life_of_a_static_member_that_waits_to_join_hears_that_it_is_fenced():
    table = Table()
    old = table.join(instance="a")
    new = table.join(instance="a")
    assert old.error is ErrorCode.FENCED_INSTANCE_ID
    assert old.reply.member_id == "a-1"
    table.advance(2 * DELAY_MS)
    assert new.reply.member_id == new.reply.leader == "a-2"


def test_a_static_member_that_is_away_keeps_its_place_in_a_round():
    table, (leader, away) = founded()
    _, newcomer = table.enter()
    again = table.join(leader, instance="a", session_ms=LONG_MS)
    table.advance(REBALANCE_MS)
    assert newcomer.reply.generation_id == 2
    assert away in [each.member_id for each in again.reply.members]


def test_a_static_member_that_is_away_too_long_loses_its_place():
    table, (leader, _) = founded()
    for _ in range(LONG_MS // 5_000):
        table.beat(leader, 1, "a")
        table.advance(5_000)
    assert table.group.phase is Phase.PREPARING
    assert list(table.group.members) == [leader]


def test_a_round_with_nobody_but_static_members_who_are_away_waits_for_them():
    table, (leader, _) = founded()
    table.leave(Leaver("", "b"))
    table.advance(3 * REBALANCE_MS)
    assert table.group.phase is Phase.PREPARING
    again = table.join(leader, instance="a", session_ms=LONG_MS)
    assert again.reply.generation_id == 2


def test_a_static_member_that_comes_back_waits_for_others_who_are_away_no_longer_than_a_round():
    table, (leader, away) = founded()
    gone = table.join(instance="c")
    for member_id, instance in ((leader, "a"), (away, "b")):
        table.join(member_id, instance=instance, session_ms=LONG_MS)
    assert gone.reply.generation_id == 2
    table.leave(Leaver("", "c"))
    table.advance(REBALANCE_MS)
    again = table.join(leader, instance="a", session_ms=LONG_MS)
    assert again.waits, "the other one may come back as well"
    table.advance(REBALANCE_MS)
    assert again.reply.generation_id == 3
    assert [each.member_id for each in again.reply.members] == [leader, away]


def test_static_members_who_are_away_and_gave_themselves_no_time_are_asked_for_now_and_then():
    table, _ = founded()
    calls = [table.join(instance=name, session_ms=LONG_MS, rebalance_ms=0) for name in "ab"]
    leader = calls[0].reply.member_id
    table.leave(Leaver("", "b"))
    asked = len(table.came)
    table.advance(60_000)
    assert len(table.came) - asked <= 61
    assert table.join(leader, instance="a", session_ms=LONG_MS).reply.generation_id == 2


def test_a_static_member_is_sent_away_by_its_name_alone():
    table, (leader, _) = founded()
    assert table.leave(Leaver("", "b"), Leaver("", "c")).reply == (
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
    )
    assert list(table.group.members) == [leader]


def test_a_full_group_takes_a_static_member_back():
    table, _ = founded(max_size=2)
    assert table.join(instance="b", session_ms=LONG_MS).error is ErrorCode.NONE
    assert table.join(instance="c").error is ErrorCode.GROUP_MAX_SIZE_REACHED


@pytest.mark.parametrize("instance", ["a", "c"])
def test_a_promised_id_is_no_static_members(instance):
    table, _ = founded()
    promised = table.join().reply.member_id
    refused = table.join(promised, instance=instance)
    assert refused.error in (ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNKNOWN_MEMBER_ID)


def test_the_next_life_of_a_static_member_that_has_not_synced_must_sync_too():
    table = Table()
    calls = [table.join(instance=name, session_ms=LONG_MS) for name in "ab"]
    table.advance(2 * DELAY_MS)
    leader, old = (each.reply.member_id for each in calls)
    table.settle(leader)
    new = table.join(instance="b", session_ms=LONG_MS).reply.member_id
    assert table.group.unsynced == {new}
    for _ in range(REBALANCE_MS // SESSION_MS):
        table.advance(SESSION_MS)
    assert list(table.group.members) == [leader]
    assert old not in table.group.members
