"""The log of a consumer group: what it gives back, after the cleaner and from other versions."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as some

from strom.groups.classic.group import ClassicGroup
from strom.groups.consumer import replay
from strom.groups.consumer.group import Became, ConsumerGroup, Phase
from strom.groups.consumer.member import State
from strom.groups.consumer.rows import current_row, group_gone, group_row, member_gone, target_row
from strom.groups.machine import GroupMachine
from strom.groups.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    TopicPartitions,
    read,
    write_key,
)
from strom.metadata.image import Image
from tests.groups.consumer_table import GROUP, INTERVAL_MS, Table, plain, topic_id


@pytest.fixture
def table():
    return Table({"t": 4, "u": 2})


def busy(table):
    """Make a log with all kinds of records in it."""
    a = table.client("a", "t")
    b = table.client("b", "t", instance_id="x")
    c = table.client("c", pattern="[tu]")
    table.settle(a, b, c)
    a.leave()
    b.go_away()
    b2 = table.client("b2", "t", "u", instance_id="x")
    table.settle(b2, c)
    return b2, c


def test_the_log_gives_a_group_back(table):
    busy(table)
    assert table.replayed() == table.groups


def test_what_a_draft_worked_out_counts_for_the_group_that_it_was_of_and_no_other():
    machine = GroupMachine(Image(), None)
    before, after = ConsumerGroup(GROUP), ConsumerGroup(GROUP, epoch=7)
    assert not machine.take_over(Became(GROUP, before, after))
    machine.groups[GROUP] = ConsumerGroup(GROUP)
    assert not machine.take_over(Became(GROUP, before, after))
    machine.groups[GROUP] = before
    assert machine.take_over(Became(GROUP, before, after))
    assert machine.groups[GROUP] is after


@given(kept=some.data())
def test_a_log_that_the_cleaner_has_been_through_gives_the_same_group_back(kept):
    """It drops older records of a key, in any order of segments; the newest stays."""
    table = Table({"t": 4, "u": 2})
    busy(table)
    newest = {key: place for place, (key, _) in enumerate(table.log)}
    log = [
        each
        for place, each in enumerate(table.log)
        if newest[each[0]] == place or kept.draw(some.booleans())
    ]
    groups = {}
    for each in log:
        Table.apply(groups, read(*each))
    assert groups == table.groups


def test_deleting_a_group_deletes_all_that_it_has(table):
    busy(table)
    for record in group_gone(table.group):
        table.log.append((write_key(record.key), None))
    assert table.replayed() == {}


def test_what_deletes_something_that_is_not_there_has_no_effect():
    groups = {}
    for key, value in (*member_gone(GROUP, "a"), *group_gone(ConsumerGroup(GROUP))):
        replay.apply(groups, key, value)
    assert groups == {}
    replay.apply(groups, *group_row(GROUP, 1, 0))
    for key, value in member_gone(GROUP, "a"):
        replay.apply(groups, key, value)
    assert groups == {GROUP: ConsumerGroup(GROUP, epoch=1)}


def test_a_classic_group_of_the_name_is_replaced_but_never_deleted_by_the_other_kind():
    classic = ClassicGroup(GROUP)
    groups = {GROUP: classic}
    for key, value in group_gone(ConsumerGroup(GROUP)):
        replay.apply(groups, key, value)
    assert groups == {GROUP: classic}
    replay.apply(groups, *group_row(GROUP, 3, 7))
    assert groups == {GROUP: ConsumerGroup(GROUP, epoch=3, metadata_hash=7)}


def test_partitions_without_epochs_are_as_old_as_the_member():
    """Before 4.3 these were not written."""
    groups = {}
    replay.apply(
        groups,
        ConsumerGroupCurrentMemberAssignmentKey(group_id=GROUP, member_id="a"),
        ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=5,
            previous_member_epoch=4,
            state=1,
            assigned_partitions=(TopicPartitions(topic_id=topic_id("t"), partitions=(1, 2)),),
            partitions_pending_revocation=(
                TopicPartitions(topic_id=topic_id("t"), partitions=(3,), assignment_epochs=(2, 3)),
            ),
        ),
    )
    member = groups[GROUP].members["a"]
    assert member.state is State.UNREVOKED_PARTITIONS
    assert member.assigned == {topic_id("t"): {1: 5, 2: 5}}
    assert member.revoking == {topic_id("t"): {3: 5}}


def test_a_state_that_is_not_known_is_unknown():
    assert State(42) is State.UNKNOWN


def test_what_was_known_of_topics_before_4_1_goes_at_the_next_change(table):
    """The record of that time says something else about the topics than the hash of now."""
    table.join("a", "t")
    old = ConsumerGroupPartitionMetadataKey(group_id=GROUP)
    replay.apply(table.groups, old, ConsumerGroupPartitionMetadataValue(topics=()))
    before = len(table.log)
    table.set_topic("t", 5)
    table.advance(INTERVAL_MS)
    table.beat("a", 2)
    assert (old, None) in table.written(before)
    assert not table.group.has_old_metadata


def test_a_group_of_another_kafka_is_assigned_to_anew_once(table):
    """The hash of its topics is another number there."""
    a = table.client("a", "t")
    replay.apply(table.groups, *group_row(GROUP, 2, 12345))
    table.restart()
    replay.apply(table.groups, *group_row(GROUP, 2, 12345))
    table.settle(a)
    assert table.group.epoch == 3
    assert a.holds == {"t": [0, 1, 2, 3]}


def test_what_is_written_is_sorted(table):
    table.join("a", "u", "t")
    written = dict(table.written())
    (member,) = (value for key, value in written.items() if "MemberMetadata" in type(key).__name__)
    assert member.subscribed_topic_names == ("t", "u")
    held = table.group.members["a"]
    row = current_row(GROUP, held).value
    assert [each.topic_id for each in row.assigned_partitions] == sorted(
        (topic_id("t"), topic_id("u"))
    )
    assert row.assigned_partitions[0].partitions == (0, 1, 2, 3)
    assert row.assigned_partitions[0].assignment_epochs == (2, 2, 2, 2)
    target = target_row(GROUP, "a", {UUID(int=2): frozenset({3, 1}), UUID(int=1): frozenset({0})})
    assert [each.topic_id.int for each in target.value.topic_partitions] == [1, 2]
    assert target.value.topic_partitions[1].partitions == (1, 3)


def test_how_far_a_group_is(table):
    assert ConsumerGroup(GROUP).phase is Phase.EMPTY
    a = table.client("a", "t")
    assert table.group.phase is Phase.STABLE
    table.client("b", "t")
    assert table.group.phase is Phase.ASSIGNING
    table.advance(INTERVAL_MS)
    a.beat()
    assert table.group.phase is Phase.RECONCILING
    assert plain(table.group.members["a"].revoking) == {"t": [2, 3]}
