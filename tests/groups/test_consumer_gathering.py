"""Those who ask in one turn of the loop are assigned to together (GRP-05, GRP-11)."""

import pytest

from strom.groups.classic.group import ClassicGroup
from strom.groups.consumer import gathering, replay
from strom.groups.consumer.draft import SESSION
from strom.groups.consumer.group import Phase
from strom.groups.consumer.member import State
from strom.groups.consumer.rows import current_row
from strom.groups.records import ConsumerGroupTargetAssignmentMetadataKey
from strom.replicated.machine import Decision, Wait
from strom.wire.errors import ErrorCode, KafkaError
from tests.groups.classic_consumer import wants
from tests.groups.consumer_table import (
    GROUP,
    REBALANCE_MS,
    SESSION_MS,
    Table,
    plain,
    topic_id,
)

JOINING = {"owned": {}, "rebalance_timeout_ms": REBALANCE_MS, "topics": ["t"]}


@pytest.fixture
def table():
    return Table({"t": 6}, group_consumer_assignment_interval_ms=0)


def ask_together(table, **requests):
    """Have members ask in one turn; what each is told."""
    waiting = {name: table.ask(name, *asked[:1], **asked[1]) for name, asked in requests.items()}
    table.end_turn()
    return {
        name: table.answer_to(reply) if isinstance(reply, Wait) else reply
        for name, reply in waiting.items()
    }


def join_together(table, *names):
    return ask_together(table, **dict.fromkeys(names, (0, JOINING)))


def answers_by_turn(table):
    """End one turn after the other; how many answers there are after each."""
    key = gathering.turn_key(GROUP)
    while table.timers.pop(key, None) is not None:
        table.carry_out(lambda: table.machine.on_timer(key, table.now_ms))
        yield len(table.answers)


def assignments_made(table, since=0):
    written = [type(key) for key, _ in table.written(since)]
    return written.count(ConsumerGroupTargetAssignmentMetadataKey)


def test_members_that_join_together_are_assigned_to_once_and_give_nothing_up(table):
    told = join_together(table, "a", "b", "c")
    assert {name: (each.epoch, plain(each.assignment)) for name, each in told.items()} == {
        "a": (4, {"t": [0, 3]}),
        "b": (4, {"t": [1, 4]}),
        "c": (4, {"t": [2, 5]}),
    }
    assert assignments_made(table) == 1
    assert table.group.phase is Phase.STABLE


def test_nobody_is_answered_before_the_turn_is_over(table):
    assert isinstance(table.ask("a", 0, **JOINING), Wait)
    assert isinstance(table.ask("b", 0, **JOINING), Wait)
    assert table.answers == []
    assert table.group.phase is Phase.ASSIGNING


def test_who_asks_while_others_wait_waits_with_them(table):
    table.join("a", "t")
    waiting = table.ask("b", 0, **JOINING)
    also = table.ask("a", 2)
    table.end_turn()
    assert plain(table.answer_to(also).assignment) == {"t": [0, 1, 2]}
    assert table.answer_to(waiting).assignment == {}


def test_a_heartbeat_of_a_group_that_is_assigned_to_waits_for_nothing(table):
    table.join("a", "t")
    assert table.ask("a", 2).epoch == 2


def test_within_the_interval_nobody_waits(table):
    """Then the assignment is to wait, and its members go on with the one before."""
    table.set_group_config(consumer_assignment_interval_ms=1000)
    table.join("a", "t")
    assert table.ask("b", 0, **JOINING).assignment == {}


def test_whoever_gives_something_up_goes_first_so_that_others_get_it(table):
    table.join("a", "t")
    assert table.join("b", "t").assignment == {}
    assert plain(table.beat("a", 2).assignment) == {"t": [0, 1, 2]}
    told = ask_together(table, c=(0, JOINING), b=(3, {}), a=(2, {"owned": {"t": [0, 1]}}))
    assert {name: plain(each.assignment) for name, each in told.items()} == {
        "a": {"t": [0, 1]},
        "b": {"t": [3, 4]},
        "c": {"t": [2, 5]},
    }


def test_who_asks_twice_is_told_all_once_and_taken_at_its_last_word(table):
    table.join("a", "t")
    table.join("b", "t")
    table.beat("a", 2)
    table.ask("c", 0, **JOINING)
    full = {"topics": ["t"], "rebalance_timeout_ms": REBALANCE_MS, "owned": {"t": [0, 1, 2, 3]}}
    table.ask("a", 2, **full)
    waiting = table.ask("a", 2, owned={"t": [0, 1]})
    table.end_turn()
    assert plain(table.answer_to(waiting).assignment) == {"t": [0, 1]}
    assert table.group.members["a"].state is State.STABLE


def test_whoever_finds_that_somebody_has_left_waits_for_nobody(table):
    """It has the others assigned to, who then find it done."""
    join_together(table, "a", "b", "c")
    before = len(table.log)
    table.beat("c", -1)
    assert plain(table.ask("a", 4).assignment) == {"t": [0, 2, 3]}
    assert plain(table.ask("b", 4).assignment) == {"t": [1, 4, 5]}
    assert assignments_made(table, before) == 1


def test_whoever_subscribes_to_something_else_waits_as_if_it_joined(table):
    join_together(table, "a", "b")
    table.set_topic("u", 1)
    told = ask_together(table, a=(3, {"topics": ["t", "u"]}), b=(3, {"topics": ["t", "u"]}))
    assert {each.epoch for each in told.values()} == {5}


def test_who_waits_has_a_session(table):
    table.ask("a", 0, **JOINING)
    assert table.timers[SESSION, GROUP, "a"] == table.now_ms + SESSION_MS


def test_who_leaves_while_it_waits_is_answered_at_once(table):
    waiting = table.ask("a", 0, **JOINING)
    other = table.ask("b", 0, **JOINING)
    table.beat("a", -1)
    with pytest.raises(KafkaError) as refused:
        table.answer_to(waiting)
    assert refused.value.code is ErrorCode.UNKNOWN_MEMBER_ID
    table.end_turn()
    assert plain(table.answer_to(other).assignment) == {"t": [0, 1, 2, 3, 4, 5]}


def test_a_static_member_that_goes_for_a_while_is_answered_and_not_brought_back(table):
    static = JOINING | {"instance_id": "i"}
    waiting = table.ask("a", 0, **static)
    table.beat("a", -2, instance_id="i")
    assert table.refused(lambda: table.answer_to(waiting)) is ErrorCode.UNKNOWN_MEMBER_ID
    table.end_turn()
    assert table.group.members["a"].is_away


def test_a_static_member_whose_place_is_taken_is_answered(table):
    table.join("other", "t")
    waiting = table.ask("a", 0, instance_id="i", **JOINING)
    table.classic_join("", wants("t"), instance_id="i", new_member_id="b")
    assert table.refused(lambda: table.answer_to(waiting)) is ErrorCode.UNKNOWN_MEMBER_ID
    table.end_turn()
    assert set(table.group.members) == {"other", "b"}


def test_whoever_waits_when_the_group_becomes_a_classic_one_is_answered(table):
    table.join("a", "t")
    table.classic_join("", wants("t"), must_return=False, new_member_id="b")
    table.beat("a", -1)
    assert isinstance(table.group, ClassicGroup)
    waiting = table.ask("c", 0, **JOINING)
    table.beat("c", -1)
    assert table.refused(lambda: table.answer_to(waiting)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert isinstance(table.group, ClassicGroup)
    table.end_turn()
    assert isinstance(table.group, ClassicGroup)


def test_a_turn_ends_for_a_group_that_is_gone_without_effect(table):
    key = gathering.turn_key("gone")
    assert table.machine.on_timer(key, table.now_ms) == Decision((), None)


def test_one_that_is_refused_leaves_the_others_their_step(table):
    table.join("a", "t")
    odd = table.group.members["a"]._replace(state=State.UNKNOWN)
    table.machine.groups[GROUP] = replay.step(table.group, current_row(GROUP, odd))
    waiting = table.ask("b", 0, **JOINING)
    fenced = table.ask("a", 2)
    table.end_turn()
    assert table.refused(lambda: table.answer_to(fenced)) is ErrorCode.FENCED_MEMBER_EPOCH
    assert table.answer_to(waiting).epoch == 3


@pytest.mark.parametrize(("limit", "value"), [("STEPS_MAX", 2), ("BYTES_MAX", 200)])
def test_many_take_their_steps_some_at_a_time(table, monkeypatch, limit, value):
    """A decision is one batch of the log, which has a limit."""
    monkeypatch.setattr(gathering, limit, value)
    waiting = [table.ask(name, 0, **JOINING) for name in "abc"]
    counts = list(answers_by_turn(table))
    assert counts[0] == 0, "it is looked whether more are coming"
    assert set(counts) - {0, 3}, "some are answered before the others"
    assert counts[-1] == 3
    assert [plain(table.answer_to(each).assignment) for each in waiting] == [
        {"t": [0, 3]},
        {"t": [1, 4]},
        {"t": [2, 5]},
    ]
    assert assignments_made(table) == 1


def test_targets_that_fill_a_batch_are_written_alone_and_the_steps_come_next(table, monkeypatch):
    """Even if somebody joins in every turn, and all are to be assigned to again."""
    monkeypatch.setattr(gathering, "BYTES_MAX", 250)
    waiting = [table.ask(name, 0, **JOINING) for name in "abc"]
    answered = answers_by_turn(table)
    assert [next(answered), next(answered)] == [0, 0]
    assert assignments_made(table) == 1
    table.ask("d", 0, **JOINING)
    assert next(answered) > 0
    assert assignments_made(table) == 1
    table.end_turn()
    told = [table.answer_to(each) for each in waiting]
    assert sum(len(plain(each.assignment)["t"]) for each in told if each.assignment) >= 5
    assert set(table.group.members) == set("abcd")


def test_whoever_is_answered_at_once_has_its_earlier_word_taken_for_nothing(table):
    """It would give up by that what it has been given meanwhile."""
    table.set_topic("u", 1)
    table.join("a", "t")
    table.join("z", "t")
    waiting = table.ask("a", 2, owned={}, topics=["t", "u"])
    table.beat("z", -1)
    table.classic_join("", wants("u"), must_return=False, new_member_id="c")
    reply = table.ask("a", 2)
    assert not isinstance(reply, Wait)
    assert table.answer_to(waiting) == reply
    before = table.group.members["a"]
    assert not table.watch.asking
    table.end_turn()
    assert table.group.members["a"] == before


def test_a_member_that_changes_its_protocol_while_it_waits_is_answered(table):
    table.join("other", "t")
    waiting = table.ask("a", 0, **JOINING)
    table.classic_join("a", wants("t"))
    assert table.refused(lambda: table.answer_to(waiting)) is ErrorCode.UNKNOWN_MEMBER_ID
    table.end_turn()
    assert table.group.members["a"].classic is not None


def test_who_came_first_goes_first_however_many_come_meanwhile(table, monkeypatch):
    monkeypatch.setattr(gathering, "STEPS_MAX", 2)
    for name in "abcd":
        table.ask(name, 0, **JOINING)
    answered = answers_by_turn(table)
    while next(answered) == 0:
        pass
    for name in "0123":
        table.ask(name, 0, **JOINING)
    table.end_turn()
    assert [ticket[2] for ticket, _ in table.answers] == list("abcd0123")


def test_a_coordinator_that_is_lost_in_the_turn_has_taken_the_members_in(table):
    """Who waited is told to find the next one, and joins there again."""
    table.ask("a", 0, **JOINING)
    table.restart()
    assert set(table.group.members) == {"a"}
    assert (SESSION, GROUP, "a") in table.timers
    assert plain(table.join("a", "t").assignment) == {"t": [0, 1, 2, 3, 4, 5]}
    assert topic_id("t") in table.group.owners
