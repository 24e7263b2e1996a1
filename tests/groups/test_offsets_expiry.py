"""Offsets that go by themselves: nobody reads by them, or their topic is gone (OFS-11, TOP-06)."""

import pytest

from strom.groups.classic.group import ClassicGroup, Phase
from strom.groups.committing import RECORDS_MAX
from strom.groups.machine import EXPIRE, GROUPS_AT_ONCE
from strom.groups.records import GroupMetadataKey, OffsetCommitKey, OffsetCommitValue
from strom.metadata.delta import advance
from strom.metadata.image import Image
from strom.metadata.records import RemoveTopic, TopicCreated
from strom.metadata.settings.values import BrokerSettings
from strom.replicated.machine import KeyValue
from strom.wire.errors import ErrorCode
from tests.groups.offsets_table import (
    MINUTE_MS,
    OTHER_ID,
    RETENTION_MS,
    TOPIC_ID,
    Table,
    empty_group,
    member,
    stable_group,
)


@pytest.fixture
def table():
    return Table()


# Expiry.


def test_offsets_of_a_simple_consumer_expire_one_by_one_after_their_commit(table):
    table.commit(t_0=1)
    table.now_ms += 10
    table.commit(t_1=2)
    table.now_ms += RETENTION_MS - 10
    table.expire()
    assert table.offsets() == {("t", 1): 2}
    table.now_ms += 10
    table.expire()
    assert table.offsets() == {}
    assert table.machine.group_ids() == []


def test_offsets_of_a_group_expire_after_its_last_member_has_gone(table):
    table.commit(t_0=1)
    table.now_ms += 10 * RETENTION_MS
    table.become(empty_group(since_ms=table.now_ms))
    table.now_ms += RETENTION_MS - 1
    table.expire()
    assert table.offsets() == {("t", 0): 1}
    table.now_ms += 1
    table.expire()
    assert table.offsets() == {}
    assert table.machine.group_ids() == []


def test_a_group_of_an_old_log_that_does_not_say_since_when_it_is_empty(table):
    table.commit(t_0=1)
    table.become(empty_group(since_ms=-1))
    table.now_ms += RETENTION_MS
    table.expire()
    assert table.machine.group_ids() == []


def test_members_keep_the_offsets_of_what_they_read_and_no_others(table):
    table.commit(t_0=1, u_0=2)
    table.become(stable_group(topics=["t"]))
    table.now_ms += RETENTION_MS
    table.expire()
    assert table.offsets() == {("t", 0): 1}


@pytest.mark.parametrize("phase", [Phase.PREPARING, Phase.COMPLETING])
def test_nothing_expires_while_members_join(table, phase):
    table.commit(u_0=2)
    table.become(ClassicGroup("g", phase=phase, protocol_type="consumer", members={"m": member()}))
    table.now_ms += 2 * RETENTION_MS
    table.expire()
    assert table.offsets() == {("u", 0): 2}


def test_members_that_do_something_else_keep_all_offsets(table):
    table.commit(u_0=2)
    table.become(stable_group(protocol_type="connect"))
    table.now_ms += 2 * RETENTION_MS
    table.expire()
    assert table.offsets() == {("u", 0): 2}


def test_an_old_client_can_have_its_offsets_expire_earlier(table):
    table.commit(retention_ms=100, t_0=1)
    table.commit(t_1=2)
    table.now_ms += 99
    table.expire()
    assert table.offsets() == {("t", 0): 1, ("t", 1): 2}
    table.now_ms += 1
    table.expire()
    assert table.offsets() == {("t", 1): 2}


def test_what_a_transaction_may_still_change_does_not_expire(table):
    table.commit(t_0=1, t_1=2)
    table.commit(transaction=(9, 0), t_0=5)
    table.now_ms += 2 * RETENTION_MS
    table.expire()
    assert table.offsets() == {("t", 0): 1}
    table.machine.on_marker(9, 0, committed=False)
    table.expire()
    assert table.machine.group_ids() == []


def test_a_group_stays_while_a_transaction_may_give_it_offsets(table):
    table.commit(transaction=(9, 0), t_0=5)
    table.become(empty_group(since_ms=table.now_ms))
    table.now_ms += 2 * RETENTION_MS
    table.expire()
    assert table.machine.group("g") is not None
    table.machine.on_marker(9, 0, committed=False)
    table.expire()
    assert table.machine.group("g") is None


def test_the_settings_say_for_how_long_and_how_often():
    settings = {"offsets_retention_minutes": 1, "offsets_retention_check_interval_ms": 70}
    table = Table(**settings)
    table.commit(t_0=1)
    table.carry_out(table.machine.on_loaded(table.now_ms))
    assert table.timers[EXPIRE, ""] == table.now_ms + 70
    table.now_ms += MINUTE_MS
    table.expire()
    assert table.offsets() == {}
    assert table.timers[EXPIRE, ""] == table.now_ms + 70


def test_a_group_that_goes_leaves_tombstones_for_all_that_was_written_of_it(table):
    table.commit(t_0=1)
    table.now_ms += RETENTION_MS
    decision = table.machine.on_timer((EXPIRE, ""), table.now_ms)
    assert decision.records == (
        KeyValue(OffsetCommitKey(group="g", topic="t", partition=0), None),
        KeyValue(GroupMetadataKey(group="g"), None),
    )


def test_many_groups_are_looked_through_some_at_a_time(table):
    for number in range(2 * GROUPS_AT_ONCE + 1):
        table.commit(f"g{number}", t_0=1)
    table.now_ms += RETENTION_MS
    assert table.expire() == 3
    assert table.machine.group_ids() == []


def test_more_offsets_than_fit_into_a_batch_go_one_batch_after_the_other(table):
    count = 2 * RECORDS_MAX + 5
    table.commit("a", t_0=1)
    table.commit("b", **{f"t_{each}": 1 for each in range(count)})
    table.commit("c", t_0=1)
    table.now_ms += RETENTION_MS
    assert table.expire() > 3
    assert table.machine.group_ids() == []


# Topics that are deleted (TOP-06).


def deletion(name, topic_id):
    created = advance(Image(), [TopicCreated(name=name, topic_id=topic_id)])
    return advance(created.after, [RemoveTopic(topic_id=topic_id)])


def delete_topic(table, name, topic_id):
    """Have the machine follow the deletion; how many decisions that took."""
    table.timers.clear()
    table.carry_out(table.machine.on_metadata(deletion(name, topic_id), table.now_ms))
    rounds = 0
    while table.timers:
        key, _ = table.timers.popitem()
        table.carry_out(table.machine.on_timer(key, table.now_ms))
        rounds += 1
    return rounds


def test_offsets_go_with_their_topic(table):
    table.commit(t_0=1, t_1=2, u_0=3)
    table.commit("h", t_0=4)
    delete_topic(table, "t", TOPIC_ID)
    assert table.offsets() == {("u", 0): 3}
    assert table.offsets("h") == {}
    assert table.machine.group_ids() == ["g", "h"]


def test_offsets_of_a_new_topic_of_the_same_name_stay(table):
    table.commit(t_0=1)
    delete_topic(table, "t", OTHER_ID)
    assert table.offsets() == {("t", 0): 1}


def test_offsets_of_which_the_topics_id_is_not_known_go_with_the_name(table):
    value = OffsetCommitValue(offset=1, commit_timestamp_ms=1)
    table.machine.apply(KeyValue(OffsetCommitKey(group="g", topic="t", partition=0), value))
    delete_topic(table, "t", OTHER_ID)
    assert table.offsets() == {}


def test_offsets_in_open_transactions_go_too(table):
    table.commit(transaction=(9, 0), t_0=5, u_0=6)
    delete_topic(table, "t", TOPIC_ID)
    table.machine.on_marker(9, 0, committed=True)
    assert table.offsets() == {("u", 0): 6}


def test_a_topic_that_many_groups_read_takes_several_decisions(table):
    for number in range(RECORDS_MAX + 1):
        table.commit(f"g{number}", t_0=1)
    assert delete_topic(table, "t", TOPIC_ID) == 2
    assert not table.machine.offsets.by_group


def load(table, *topics):
    """Have the machine do what it does first, where there are these topics, by name and id."""
    created = [TopicCreated(name=name, topic_id=topic_id) for name, topic_id in topics]
    table.machine.see(advance(Image(), created).after, BrokerSettings({}))
    table.timers.clear()
    table.carry_out(table.machine.on_loaded(table.now_ms))
    rounds = 0
    while (
        key := next((k for k, due in table.timers.items() if due <= table.now_ms), None)
    ) is not None:
        del table.timers[key]
        table.carry_out(table.machine.on_timer(key, table.now_ms))
        rounds += 1
    return rounds


def test_offsets_of_a_topic_that_was_deleted_unseen_go_once_the_log_was_read(table):
    table.commit(t_0=1, t_1=2)
    table.commit("h", t_0=4)
    load(table, ("t", TOPIC_ID))
    assert table.offsets() == {("t", 0): 1, ("t", 1): 2}
    load(table, ("t", OTHER_ID))
    assert table.offsets() == {}
    assert table.offsets("h") == {}
    assert table.machine.group_ids() == ["g", "h"]


def test_offsets_of_an_unknown_id_stay_while_there_is_a_topic_of_the_name(table):
    """A transaction's have none."""
    table.commit(transaction=(9, 0), t_0=5, u_0=6)
    table.machine.on_marker(9, 0, committed=True)
    load(table, ("t", OTHER_ID))
    assert table.offsets() == {("t", 0): 5}


def test_what_a_transaction_may_commit_for_the_new_topic_is_not_deleted_with_the_old(table):
    table.commit(t_0=1)
    table.commit(transaction=(9, 0), t_0=5)
    load(table, ("t", OTHER_ID))
    table.machine.on_marker(9, 0, committed=True)
    assert table.offsets() == {("t", 0): 5}


def test_many_offsets_of_missing_topics_go_in_several_decisions(table):
    for number in range(2 * GROUPS_AT_ONCE):
        table.commit(f"g{number}", t_0=1)
    table.commit("z", **{f"t_{each}": 1 for each in range(RECORDS_MAX + 1)})
    assert load(table) > 3
    assert not table.machine.offsets.by_group


def test_what_is_to_be_kept_for_ever_is_kept_as_long_as_a_record_can_tell(table):
    assert table.commit(retention_ms=2**63 - 1, t_0=1) == [ErrorCode.NONE]
    assert table.machine.offsets.of("g")["t", 0].expire_timestamp_ms == 2**63 - 1
