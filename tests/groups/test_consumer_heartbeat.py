"""ConsumerGroupHeartbeat: joining, epochs, partitions that change hands (GRP-01, -05, -11)."""

import pytest

from strom.groups.consumer import replay
from strom.groups.consumer.draft import REBALANCE, SESSION
from strom.groups.consumer.group import Phase
from strom.groups.consumer.member import State
from strom.groups.consumer.request import Heartbeat, check_assignor, check_heartbeat
from strom.groups.consumer.rows import current_row
from strom.groups.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)
from strom.wire.errors import ErrorCode, KafkaError
from tests.groups.consumer_table import (
    GROUP,
    INTERVAL_MS,
    REBALANCE_MS,
    SESSION_MS,
    START_MS,
    Table,
    plain,
)

# Joining.


def test_the_first_member_gets_everything(table):
    reply = table.join("a", "t")
    assert (reply.member_id, reply.epoch, reply.heartbeat_interval_ms) == ("a", 2, 5000)
    assert plain(reply.assignment) == {"t": [0, 1, 2, 3]}
    assert table.group.phase is Phase.STABLE


def test_joining_is_written_in_kafkas_order(table):
    table.join("a", "t")
    assert [type(key) for key, _ in table.written()] == [
        ConsumerGroupMemberMetadataKey,
        ConsumerGroupMetadataKey,
        ConsumerGroupTargetAssignmentMemberKey,
        ConsumerGroupTargetAssignmentMetadataKey,
        ConsumerGroupCurrentMemberAssignmentKey,
    ]


def test_a_heartbeat_that_brings_nothing_new_writes_nothing_and_tells_nothing(table):
    table.join("a", "t")
    before = len(table.log)
    reply = table.beat("a", 2)
    assert reply.assignment is None
    assert len(table.log) == before


def test_a_full_heartbeat_is_told_everything_again(table):
    """It is sent by a client that may have missed an answer."""
    table.join("a", "t")
    said = {"topics": ["t"], "owned": {"t": [0]}, "rebalance_timeout_ms": REBALANCE_MS}
    assert plain(table.beat("a", 2, **said).assignment) == {"t": [0, 1, 2, 3]}


def test_a_member_that_wants_nothing_gets_nothing_and_lets_the_others_be(table):
    table.join("a", "t")
    table.advance(INTERVAL_MS)
    reply = table.join("b")
    assert (reply.epoch, reply.assignment) == (2, {})


def test_a_topic_that_does_not_exist_yet_gives_nothing(table):
    assert table.join("a", "later").assignment == {}
    table.set_topic("later", 2)
    table.advance(INTERVAL_MS)
    assert plain(table.beat("a", 2).assignment) == {"later": [0, 1]}


def test_a_group_that_is_full_takes_no_more(table):
    small = Table({"t": 4}, group_consumer_max_size=1)
    small.join("a", "t")
    assert small.refused(lambda: small.join("b", "t")) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert small.refused(lambda: small.join("a", "t")) is ErrorCode.NONE


def test_only_joining_makes_a_group(table):
    assert table.refused(lambda: table.beat("a", 2)) is ErrorCode.GROUP_ID_NOT_FOUND
    assert table.refused(lambda: table.beat("a", -1)) is ErrorCode.GROUP_ID_NOT_FOUND
    assert not table.groups


# Partitions change hands.


def test_members_that_come_together_are_assigned_to_together(table):
    """KIP-1263: the second one waits for the interval since the last assignment."""
    table.join("a", "t")
    assert table.join("b", "t").assignment == {}
    assert table.group.phase is Phase.ASSIGNING
    assert table.beat("a", 2).assignment is None
    table.advance(INTERVAL_MS)
    assert plain(table.beat("a", 2).assignment) == {"t": [0, 1]}


def test_nobody_waits_for_hours_where_the_clock_was_set_back(table):
    table.join("a", "t")
    table.join("b", "t")
    table.now_ms -= 60 * 60 * 1000
    assert plain(table.beat("a", 2).assignment) == {"t": [0, 1]}


def test_a_group_can_be_assigned_to_at_once():
    table = Table({"t": 4}, group_consumer_assignment_interval_ms=0)
    table.join("a", "t")
    assert table.join("b", "t").epoch == 3


def test_a_partition_is_given_up_before_it_is_given_on(table):
    """GRP-05: the member that keeps its partitions is not stopped by any of it."""
    table.join("a", "t")
    table.advance(INTERVAL_MS)
    joined = table.join("b", "t")
    assert (joined.epoch, joined.assignment) == (3, {})
    assert table.group.phase is Phase.RECONCILING

    told = table.beat("a", 2)
    assert (told.epoch, plain(told.assignment)) == (2, {"t": [0, 1]}), "it stays in its epoch"
    assert table.beat("b", 3).assignment is None, "nothing is free yet"
    assert table.beat("a", 2).assignment is None, "it has not said that it gave them up"

    assert table.beat("a", 2, owned={"t": [0, 1]}).epoch == 3
    assert plain(table.beat("b", 3).assignment) == {"t": [2, 3]}
    assert table.group.phase is Phase.STABLE


def test_what_is_free_is_given_while_the_rest_is_waited_for():
    table = Table({"t": 2, "u": 2}, group_consumer_assignment_interval_ms=0)
    a = table.client("a", "t")
    joined = table.join("b", "t", "u")
    assert plain(joined.assignment) == {"u": [0, 1]}
    table.settle(a)
    assert plain(table.group.members["b"].assigned) == {"u": [0, 1]}


def test_a_member_in_the_middle_of_its_way_is_led_to_the_newest_target(table):
    a = table.client("a", "t")
    table.advance(INTERVAL_MS)
    b = table.client("b", "t")
    table.beat("a", 2)
    b.leave()
    table.advance(INTERVAL_MS)
    a.holds = {"t": [0, 1]}
    a.beat()
    assert (a.epoch, a.holds) == (4, {"t": [0, 1, 2, 3]})


def test_those_who_leave_are_replaced_by_those_who_stay(table):
    """GRP-05, GRP-11."""
    clients = a, b, c = [table.client(name, "t") for name in "abc"]
    table.settle(*clients)
    assert sorted(len(each.holds["t"]) for each in clients) == [1, 1, 2]
    c.leave()
    table.settle(a, b)
    assert sorted(a.holds["t"] + b.holds["t"]) == [0, 1, 2, 3]
    assert len(a.holds["t"]) == 2


def test_members_without_a_partition_are_idle():
    """GRP-03."""
    table = Table({"t": 1})
    clients = [table.client(name, "t") for name in "ab"]
    table.settle(*clients)
    assert [each.holds for each in clients] == [{"t": [0]}, {}]
    assert table.group.phase is Phase.STABLE


def test_new_partitions_are_shared_out(table):
    """GRP-11."""
    clients = a, b = [table.client(name, "t") for name in "ab"]
    table.settle(*clients)
    before = [set(each.holds["t"]) for each in clients]
    table.set_topic("t", 6)
    table.settle(*clients)
    assert [len(each.holds["t"]) for each in clients] == [3, 3]
    assert before[0] <= set(a.holds["t"])
    assert before[1] <= set(b.holds["t"])


def test_each_change_raises_the_epoch_once_and_nothing_else_does(table):
    """GRP-11: partitions, a topic that goes, a member that leaves, and then quiet."""
    table.set_topic("u", 1)
    a, b = [table.client(name, "t", "u") for name in "ab"]
    table.settle(a, b)
    epochs = [table.group.epoch]
    for change in (lambda: table.set_topic("t", 6), lambda: table.delete_topic("u"), b.leave):
        change()
        for _ in range(3):
            table.settle(*([a] if change == b.leave else [a, b]))
        epochs.append(table.group.epoch)
    assert epochs == list(range(epochs[0], epochs[0] + 4))


def test_members_that_tell_their_racks_read_what_is_there(table):
    table.set_racks({1: "x", 2: "y"})
    table.set_replicas("t", (1,), (1,), (2,), (2,))
    a = table.client("a", "t", rack="y")
    b = table.client("b", "t", rack="x")
    table.settle(a, b)
    assert (a.holds, b.holds) == ({"t": [2, 3]}, {"t": [0, 1]})


def test_a_deleted_topic_is_taken_from_members(table):
    table.set_topic("u", 1)
    a = table.client("a", "t", "u")
    table.delete_topic("u")
    table.settle(a)
    assert a.holds == {"t": [0, 1, 2, 3]}


def test_a_topic_of_the_same_name_later_is_another_one(table):
    a = table.client("a", "t")
    table.delete_topic("t")
    table.settle(a)
    table.set_topic("t", 2)
    table.settle(a)
    assert a.holds == {"t": [0, 1]}


def test_partitions_that_move_to_another_rack_are_assigned_anew(table):
    """GRP-11, KIP-1101: also where the assignors make nothing of it."""
    table.set_racks({1: "a", 2: "b"})
    a = table.client("a", "t")
    epoch = table.group.epoch
    table.set_topic("t", 4)
    table.settle(a)
    assert table.group.epoch == epoch
    table.set_topic("t", 4, replicas=(2,))
    table.settle(a)
    assert table.group.epoch == epoch + 1
    assert a.holds == {"t": [0, 1, 2, 3]}


def test_a_change_of_other_topics_changes_nothing(table):
    """GRP-11: no rebalance but for what the group reads."""
    a = table.client("a", "t")
    table.set_topic("other", 3)
    before = len(table.log)
    table.settle(a)
    assert len(table.log) == before


def test_a_member_that_wants_something_else_is_freed_of_what_it_had_at_once(table):
    """Even while the group is not assigned to anew yet."""
    table.set_topic("u", 2)
    table.join("a", "t")
    told = table.beat("a", 2, topics=["u"])
    assert (told.epoch, told.assignment) == (2, {})
    assert table.shown == (3, 2, {"a": (2, "UNREVOKED_PARTITIONS", {}, {"t": [0, 1, 2, 3]})})
    table.advance(INTERVAL_MS)
    assert plain(table.beat("a", 2, owned={}).assignment) == {"u": [0, 1]}


def test_what_a_member_chooses_is_what_most_choose(table):
    table.join("a", "t", assignor="range")
    table.advance(INTERVAL_MS)
    assert table.group.assignor(("uniform", "range")) == "range"
    table.join("b", "t", assignor="uniform")
    table.join("c", "t", assignor="uniform")
    assert table.group.assignor(("uniform", "range")) == "uniform"
    assert table.group.assignor(("range",)) == "range"


@pytest.mark.parametrize("known", [("uniform", "range"), ("range", "uniform")])
@pytest.mark.parametrize("chosen", [("range", "uniform"), ("uniform", "range")])
def test_of_as_many_votes_uniform_wins(table, chosen, known):
    """Apache Kafka was asked, in every order."""
    for name, assignor in zip("ab", chosen, strict=True):
        table.join(name, "t", assignor=assignor)
    assert table.group.assignor(known) == "uniform"


def test_the_range_assignor_is_used_when_it_is_chosen():
    """GRP-12."""
    table = Table({"t": 4, "u": 4})
    clients = [table.client(name, "t", "u", assignor="range") for name in "ab"]
    table.settle(*clients)
    assert [each.holds for each in clients] == [
        {"t": [0, 1], "u": [0, 1]},
        {"t": [2, 3], "u": [2, 3]},
    ]


# Epochs.


def test_an_epoch_that_the_broker_does_not_know_is_fenced(table):
    table.join("a", "t")
    for epoch in (1, 3, 7):
        refused = table.refused(lambda epoch=epoch: table.beat("a", epoch))
        assert refused is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_member_that_missed_an_answer_repeats_its_last_epoch(table):
    """Only one epoch back, and only if it holds no more than it was given."""
    table.join("a", "t")
    table.advance(INTERVAL_MS)
    table.join("b", "t")
    table.beat("a", 2)
    table.beat("a", 2, owned={"t": [0, 1]})

    def refused(**said):
        return table.refused(lambda: table.beat("a", 2, **said))

    assert refused(owned={"t": [0, 1]}) is ErrorCode.NONE
    assert refused() is ErrorCode.FENCED_MEMBER_EPOCH
    assert refused(owned={"t": [0, 1, 2]}) is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_fenced_member_starts_over_with_epoch_0(table):
    table.join("a", "t")
    reply = table.join("a", "t")
    assert (reply.epoch, plain(reply.assignment)) == (2, {"t": [0, 1, 2, 3]})


def test_who_is_no_member_is_told_so(table):
    table.join("a", "t")
    assert table.refused(lambda: table.beat("b", 2)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert table.refused(lambda: table.beat("b", -1)) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_state_of_a_newer_kafka_sends_the_member_away(table):
    table.join("a", "t")
    unknown = table.group.members["a"]._replace(state=State.UNKNOWN)
    replay.apply(table.groups, *current_row(GROUP, unknown))
    table.advance(INTERVAL_MS)
    assert table.refused(lambda: table.beat("a", 2)) is ErrorCode.FENCED_MEMBER_EPOCH
    assert plain(table.beat("a", 2, owned={}).assignment) is None
    assert table.group.phase is Phase.STABLE


# Time.


def test_a_silent_member_is_out_after_its_session(table):
    """GRP-05."""
    a, b = table.client("a", "t"), table.client("b", "t")
    table.settle(a, b)
    for _ in range(9):
        table.advance(5000)
        b.beat()
    assert set(table.group.members) == {"b"}
    assert table.came == [(SESSION, GROUP, "a")]
    table.settle(b)
    assert b.holds == {"t": [0, 1, 2, 3]}


def test_what_a_leaver_had_goes_first_to_who_asks_first(table):
    """It can begin to read at once; GRP-05."""
    table.set_topic("t", 3)
    clients = [table.client(name, "t") for name in "abc"]
    table.settle(*clients)
    clients[0].leave()
    table.advance(INTERVAL_MS)
    clients[2].beat()
    assert clients[2].holds == {"t": [0, 2]}


def test_a_member_that_does_not_give_up_in_time_is_out(table):
    table.join("a", "t", rack="r")
    table.advance(INTERVAL_MS)
    table.join("b", "t")
    epoch = table.beat("a", 2).epoch
    for _ in range(REBALANCE_MS // 10_000):
        table.advance(10_000)
        for name, at in (("a", epoch), ("b", 3)):
            if name in table.group.members:
                table.beat(name, at)
    assert (REBALANCE, GROUP, "a") in table.came
    assert set(table.group.members) == {"b"}


def test_a_member_that_gave_up_in_time_stays(table):
    a = table.client("a", "t")
    table.advance(INTERVAL_MS)
    b = table.client("b", "t")
    table.settle(a, b)
    for _ in range(2 * REBALANCE_MS // 10_000):
        table.advance(10_000)
        a.beat()
        b.beat()
    assert set(table.group.members) == {"a", "b"}


def test_a_coordinator_that_begins_anew_gives_everybody_a_session(table):
    table.join("a", "t")
    table.advance(INTERVAL_MS)
    table.join("b", "t")
    table.beat("a", 2)
    table.advance(SESSION_MS - 2000)
    table.restart()
    assert table.timers == {
        (SESSION, GROUP, "a"): table.now_ms + SESSION_MS,
        (SESSION, GROUP, "b"): table.now_ms + SESSION_MS,
        (REBALANCE, GROUP, "a"): table.now_ms + REBALANCE_MS,
    }
    assert table.beat("a", 2, owned={"t": [0, 1]}).epoch == 3


def test_a_timer_of_something_that_is_over_has_no_effect(table):
    a = table.client("a", "t")
    table.timers[SESSION, GROUP, "gone"] = START_MS + 10
    table.timers[REBALANCE, GROUP, "a"] = START_MS + 10
    table.advance(20)
    a.beat()
    assert set(table.group.members) == {"a"}


def test_the_time_limits_of_a_group_are_its_own(table):
    """A value outside of the broker's bounds counts as the nearest within."""
    table.set_group_config(
        consumer_session_timeout_ms=50_000,
        consumer_heartbeat_interval_ms=99_999,
        consumer_assignment_interval_ms=0,
    )
    assert table.join("a", "t").heartbeat_interval_ms == 15_000
    assert table.timers[SESSION, GROUP, "a"] == START_MS + 50_000
    assert table.join("b", "t").epoch == 3


# What no group could take.


def said(**changes):
    full = {
        "group_id": "g",
        "member_id": "m",
        "epoch": 0,
        "client_id": "c",
        "client_host": "h",
        "rebalance_timeout_ms": 1,
        "topic_names": frozenset(),
        "owned": {},
    }
    return Heartbeat(**full | changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"group_id": " "}, "GroupId can't be empty."),
        ({"member_id": ""}, "MemberId can't be empty."),
        ({"instance_id": ""}, "InstanceId can't be empty."),
        ({"rack": ""}, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"owned": None}, "TopicPartitions must be empty when (re-)joining."),
        ({"owned": {1: frozenset({1})}}, "TopicPartitions must be empty when (re-)joining."),
        (
            {"topic_names": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
            "(re-)joining.",
        ),
        ({"epoch": -2}, "InstanceId can't be null."),
        ({"epoch": -3}, "MemberEpoch is invalid."),
    ],
)
def test_what_makes_no_sense_is_refused_in_kafkas_words(changes, message):
    with pytest.raises(KafkaError) as refused:
        check_heartbeat(said(**changes), must_have_id=True)
    assert (refused.value.code, refused.value.message) == (ErrorCode.INVALID_REQUEST, message)


def test_an_assignor_that_there_is_not_is_refused():
    with pytest.raises(KafkaError) as refused:
        check_assignor("best", ("uniform", "range"))
    assert refused.value.code is ErrorCode.UNSUPPORTED_ASSIGNOR
    assert refused.value.message == (
        "ServerAssignor best is not supported. Supported assignors: uniform, range."
    )


def test_old_clients_join_without_an_id():
    check_heartbeat(said(member_id=""), must_have_id=False)
    with pytest.raises(KafkaError):
        check_heartbeat(said(member_id="", epoch=1), must_have_id=False)
