"""Decisions about offsets: who may commit, what is told, what expires.

Rows: OFS-01, OFS-02, OFS-07, OFS-11, TOP-06, GRP-02.
"""

from uuid import UUID

import pytest
from immutables import Map

from strom.groups.classic.group import ClassicGroup, Member, Phase, Protocol
from strom.groups.committing import RECORDS_MAX, Commit, NewOffset, Query, Wanted
from strom.groups.machine import EXPIRE, GROUPS_AT_ONCE, GroupMachine
from strom.groups.overview import delete, rounds_to_delete
from strom.groups.owners import Author
from strom.groups.records import (
    NO_TOPIC_ID,
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetCommitValue,
)
from strom.metadata.delta import advance
from strom.metadata.image import Image
from strom.metadata.records import RemoveTopic, TopicCreated
from strom.metadata.settings.values import BrokerSettings
from strom.replicated.machine import KeyValue
from strom.wire.errors import ErrorCode, KafkaError

MINUTE_MS = 60_000
RETENTION_MS = 10_080 * MINUTE_MS
TOPIC_ID, OTHER_ID = UUID(int=7), UUID(int=8)
NOBODY = Author(version=9)


class Table:
    """A machine, and what is done to it when a decision is carried out."""

    def __init__(self, **settings):
        named = {name.replace("_", "."): str(value) for name, value in settings.items()}
        self.machine = GroupMachine(Image(), BrokerSettings(named))
        self.now_ms = 1_000_000
        self.timers = {}

    def carry_out(self, decision):
        for record in decision.records:
            self.machine.apply(record, decision.transaction)
        for key, value in decision.soft:
            self.machine.set_soft(key, value)
        for key, due_ms in decision.timers:
            self.timers[key] = due_ms
        return decision.reply

    def commit(self, group="g", author=NOBODY, transaction=None, retention_ms=-1, **offsets):
        """Commit offsets of partitions, each given as topic_partition=offset."""
        new = []
        for name, offset in offsets.items():
            topic, _, partition = name.rpartition("_")
            new.append(NewOffset(topic, int(partition), offset, topic_id=TOPIC_ID))
        asked = Commit(group, author, new, retention_ms, transaction)
        return self.carry_out(self.machine.commit_offsets(asked, self.now_ms))

    def offsets(self, group="g", *, stable=False, topic_id=NO_TOPIC_ID, **partitions):
        """What is told of a group: of all its offsets, or of some partitions of some topics."""
        topics = None
        if partitions:
            topics = [Wanted(name, topic_id, wanted) for name, wanted in partitions.items()]
        query = Query(group, topics, require_stable=stable)
        told = self.carry_out(self.machine.fetch_offsets(query))
        return {
            (topic, each.partition): each.value.offset if each.value is not None else each.code
            for topic, found in told
            for each in found
        }

    def delete(self, group, *places):
        return self.carry_out(self.machine.delete_offsets(group, places))

    def become(self, group):
        """Have this classic group."""
        self.machine.set_soft(group.id, group)

    def expire(self):
        """Do what is due until nothing more is due now."""
        key, rounds = (EXPIRE, ""), 0
        while key is not None:
            self.timers.clear()
            self.carry_out(self.machine.on_timer(key, self.now_ms))
            key = next((each for each, due in self.timers.items() if due <= self.now_ms), None)
            rounds += 1
        return rounds


def member(topics=(), member_id="m"):
    topics_bytes = b"".join(len(t).to_bytes(2) + t.encode() for t in topics)
    subscription = b"\0\0" + len(topics).to_bytes(4) + topics_bytes + b"\xff\xff\xff\xff"
    protocols = (Protocol("range", subscription),)
    return Member(member_id, None, "c", "/h", 10_000, 60_000, protocols)


def stable_group(topics=(), protocol_type="consumer", group_id="g"):
    return ClassicGroup(
        group_id,
        phase=Phase.STABLE,
        generation_id=4,
        protocol_type=protocol_type,
        protocol="range",
        members={"m": member(topics)},
    )


def empty_group(since_ms, protocol_type="consumer"):
    return ClassicGroup("g", phase=Phase.EMPTY, since_ms=since_ms, protocol_type=protocol_type)


def refusal(ask):
    with pytest.raises(KafkaError) as caught:
        ask()
    return caught.value.code


# Commit and fetch.


def test_the_last_committed_offset_of_a_partition_is_told():
    table = Table()
    assert table.commit(t_0=5, t_1=7) == [ErrorCode.NONE, ErrorCode.NONE]
    table.commit(t_0=6)
    table.commit("h", t_0=1)
    assert table.offsets() == {("t", 0): 6, ("t", 1): 7}
    assert table.offsets("h") == {("t", 0): 1}


def test_what_was_never_committed_has_no_offset_and_no_error():
    table = Table()
    table.commit(t_0=5)
    assert table.offsets(t=[0, 3], u=[0]) == {
        ("t", 0): 5,
        ("t", 3): ErrorCode.NONE,
        ("u", 0): ErrorCode.NONE,
    }
    assert table.offsets("nobody", t=[0]) == {("t", 0): ErrorCode.NONE}
    assert table.offsets("nobody") == {}


def test_offset_metadata_and_leader_epoch_come_back_as_they_were():
    table = Table()
    asked = Commit("g", NOBODY, [NewOffset("t", 0, 5, 3, "notes"), NewOffset("t", 1, 6, -1, None)])
    table.carry_out(table.machine.commit_offsets(asked, table.now_ms))
    found = table.machine.offsets.of("g")
    assert found["t", 0][:3] == (5, 3, "notes")
    assert found["t", 1][:3] == (6, -1, "")


def test_metadata_that_is_too_long_costs_its_own_partition_only():
    table = Table(offset_metadata_max_bytes=4)
    # What is beyond the first plane takes two of Java's characters.
    texts = ["abcd", "abcde", "\U0001f600" * 2, "\U0001f600" * 3]
    new = [NewOffset("t", index, 5, metadata=text) for index, text in enumerate(texts)]
    codes = table.carry_out(table.machine.commit_offsets(Commit("g", NOBODY, new), 0))
    too_large = ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert codes == [ErrorCode.NONE, too_large, ErrorCode.NONE, too_large]
    assert table.offsets() == {("t", 0): 5, ("t", 2): 5}


def test_an_offset_of_a_deleted_topic_is_not_told_for_its_successor():
    table = Table()
    table.commit(t_0=5)
    assert table.offsets(t=[0], topic_id=TOPIC_ID) == {("t", 0): 5}
    assert table.offsets(t=[0], topic_id=OTHER_ID) == {("t", 0): ErrorCode.NONE}


# Who may commit.


def test_who_names_a_generation_of_no_group_is_refused_by_its_version():
    table = Table()
    asked = [
        Author("m", 3, version=9),
        Author("m", 3, version=8),
        Author("m", 3, is_transactional=True, version=9),
    ]
    assert [refusal(lambda each=each: table.commit(author=each, t_0=1)) for each in asked] == [
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.ILLEGAL_GENERATION,
    ]
    assert table.machine.group_ids() == []


def test_who_names_nothing_commits_to_groups_without_members_only():
    table = Table()
    table.commit(t_0=1)
    table.commit(t_0=2)
    table.become(empty_group(0))
    table.commit(t_0=3)
    table.become(stable_group())
    assert refusal(lambda: table.commit(t_0=4)) == ErrorCode.UNKNOWN_MEMBER_ID
    assert table.offsets() == {("t", 0): 3}


def test_a_member_commits_in_its_generation_and_renews_its_session():
    table = Table()
    table.become(stable_group())
    table.commit(author=Author("m", 4, version=9), t_0=1)
    assert set(table.timers.values()) == {table.now_ms + 10_000}
    for author, code in (
        (Author("m", 3, version=9), ErrorCode.ILLEGAL_GENERATION),
        (Author("x", 4, version=9), ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        assert refusal(lambda author=author: table.commit(author=author, t_0=2)) == code
    assert table.offsets() == {("t", 0): 1}


def test_in_a_simple_group_nobody_has_a_generation():
    table = Table()
    table.commit(t_0=1)
    author = Author("m", 0, version=9)
    assert refusal(lambda: table.commit(author=author, t_0=2)) == ErrorCode.UNKNOWN_MEMBER_ID


# Transactions.


def test_offsets_of_a_transaction_count_from_its_end_on():
    table = Table()
    table.commit(t_0=1)
    table.commit(transaction=(9, 0), t_0=5, t_1=6)
    assert table.offsets() == {("t", 0): 1}
    table.machine.on_marker(9, 0, committed=True)
    assert table.offsets() == {("t", 0): 5, ("t", 1): 6}


def test_offsets_of_an_aborted_transaction_never_were():
    table = Table()
    table.commit(transaction=(9, 0), t_0=5)
    table.machine.on_marker(9, 0, committed=False)
    assert table.offsets() == {}


def test_a_group_whose_offsets_did_not_count_is_there_until_it_expires():
    table = Table()
    table.commit(transaction=(9, 0), t_0=5)
    table.machine.on_marker(9, 0, committed=False)
    assert table.machine.group_ids() == ["g"]
    assert table.machine.owner("g").is_empty()
    table.expire()
    assert table.machine.group_ids() == []


def test_a_group_of_its_own_is_not_there_for_offsets_that_did_not_count():
    table = Table()
    table.commit(transaction=(9, 0), t_0=5)
    table.become(empty_group(since_ms=table.now_ms))
    table.machine.on_marker(9, 0, committed=False)
    table.expire()
    assert table.machine.group_ids() == []


def test_who_wants_stable_offsets_is_told_where_there_are_none_yet():
    table = Table()
    table.commit(t_0=1, t_1=2)
    table.commit(transaction=(9, 0), t_0=5, t_2=6)
    unstable = ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert table.offsets(stable=True, t=[0, 1, 2]) == {
        ("t", 0): unstable,
        ("t", 1): 2,
        ("t", 2): unstable,
    }
    assert table.offsets(stable=True) == {("t", 0): unstable, ("t", 1): 2}
    assert table.offsets(t=[0, 1, 2]) == {("t", 0): 1, ("t", 1): 2, ("t", 2): ErrorCode.NONE}
    table.machine.on_marker(9, 0, committed=True)
    assert table.offsets(stable=True, t=[0, 2]) == {("t", 0): 5, ("t", 2): 6}


def test_of_several_commits_the_last_that_was_written_counts():
    table = Table()
    table.commit(transaction=(8, 0), t_0=1)
    table.commit(transaction=(9, 0), t_0=2)
    table.machine.on_marker(9, 0, committed=True)
    table.machine.on_marker(8, 0, committed=True)
    assert table.offsets() == {("t", 0): 2}
    table.commit(transaction=(8, 0), t_0=3)
    table.commit(t_0=4)
    assert table.offsets(stable=True) == {("t", 0): ErrorCode.UNSTABLE_OFFSET_COMMIT}
    table.machine.on_marker(8, 0, committed=True)
    assert table.offsets(stable=True) == {("t", 0): 4}


def test_a_deleted_offset_is_not_brought_back_by_a_transaction():
    table = Table()
    table.commit(transaction=(9, 0), t_0=5, t_1=6)
    assert table.delete("g", ("t", 0)) == [ErrorCode.NONE]
    table.machine.on_marker(9, 0, committed=True)
    assert table.offsets() == {("t", 1): 6}


# Delete.


def test_single_offsets_can_be_deleted_of_topics_that_nobody_reads():
    table = Table()
    table.commit(t_0=1, t_1=2, u_0=3)
    table.become(stable_group(topics=["t"]))
    subscribed = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    codes = table.delete("g", ("t", 0), ("u", 0), ("u", 9))
    assert codes == [subscribed, ErrorCode.NONE, ErrorCode.NONE]
    assert table.offsets() == {("t", 0): 1, ("t", 1): 2}


def test_of_a_group_that_is_not_there_or_does_something_else_nothing_is_deleted():
    table = Table()
    assert refusal(lambda: table.delete("g", ("t", 0))) == ErrorCode.GROUP_ID_NOT_FOUND
    table.become(stable_group(protocol_type="connect"))
    assert refusal(lambda: table.delete("g", ("t", 0))) == ErrorCode.NON_EMPTY_GROUP


def test_a_simple_group_outlives_its_offsets_until_groups_are_cleaned_up():
    table = Table()
    table.commit(t_0=1)
    table.delete("g", ("t", 0))
    assert table.machine.group_ids() == ["g"]
    assert table.delete("g", ("t", 0)) == [ErrorCode.NONE]
    table.expire()
    assert table.machine.group_ids() == []


# Expiry.


def test_offsets_of_a_simple_consumer_expire_one_by_one_after_their_commit():
    table = Table()
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


def test_offsets_of_a_group_expire_after_its_last_member_has_gone():
    table = Table()
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


def test_a_group_of_an_old_log_that_does_not_say_since_when_it_is_empty():
    table = Table()
    table.commit(t_0=1)
    table.become(empty_group(since_ms=-1))
    table.now_ms += RETENTION_MS
    table.expire()
    assert table.machine.group_ids() == []


def test_members_keep_the_offsets_of_what_they_read_and_no_others():
    table = Table()
    table.commit(t_0=1, u_0=2)
    table.become(stable_group(topics=["t"]))
    table.now_ms += RETENTION_MS
    table.expire()
    assert table.offsets() == {("t", 0): 1}


@pytest.mark.parametrize("phase", [Phase.PREPARING, Phase.COMPLETING])
def test_nothing_expires_while_members_join(phase):
    table = Table()
    table.commit(u_0=2)
    table.become(ClassicGroup("g", phase=phase, protocol_type="consumer", members={"m": member()}))
    table.now_ms += 2 * RETENTION_MS
    table.expire()
    assert table.offsets() == {("u", 0): 2}


def test_members_that_do_something_else_keep_all_offsets():
    table = Table()
    table.commit(u_0=2)
    table.become(stable_group(protocol_type="connect"))
    table.now_ms += 2 * RETENTION_MS
    table.expire()
    assert table.offsets() == {("u", 0): 2}


def test_an_old_client_can_have_its_offsets_expire_earlier():
    table = Table()
    table.commit(retention_ms=100, t_0=1)
    table.commit(t_1=2)
    table.now_ms += 99
    table.expire()
    assert table.offsets() == {("t", 0): 1, ("t", 1): 2}
    table.now_ms += 1
    table.expire()
    assert table.offsets() == {("t", 1): 2}


def test_what_a_transaction_may_still_change_does_not_expire():
    table = Table()
    table.commit(t_0=1, t_1=2)
    table.commit(transaction=(9, 0), t_0=5)
    table.now_ms += 2 * RETENTION_MS
    table.expire()
    assert table.offsets() == {("t", 0): 1}
    table.machine.on_marker(9, 0, committed=False)
    table.expire()
    assert table.machine.group_ids() == []


def test_a_group_stays_while_a_transaction_may_give_it_offsets():
    table = Table()
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


def test_a_group_that_goes_leaves_tombstones_for_all_that_was_written_of_it():
    table = Table()
    table.commit(t_0=1)
    table.now_ms += RETENTION_MS
    decision = table.machine.on_timer((EXPIRE, ""), table.now_ms)
    assert decision.records == (
        KeyValue(OffsetCommitKey("g", "t", 0), None),
        KeyValue(GroupMetadataKey(group="g"), None),
    )


def test_many_groups_are_looked_through_some_at_a_time():
    table = Table()
    for number in range(2 * GROUPS_AT_ONCE + 1):
        table.commit(f"g{number}", t_0=1)
    table.now_ms += RETENTION_MS
    assert table.expire() == 3
    assert table.machine.group_ids() == []


def test_more_offsets_than_fit_into_a_batch_go_one_batch_after_the_other():
    table = Table()
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


def test_offsets_go_with_their_topic():
    table = Table()
    table.commit(t_0=1, t_1=2, u_0=3)
    table.commit("h", t_0=4)
    delete_topic(table, "t", TOPIC_ID)
    assert table.offsets() == {("u", 0): 3}
    assert table.offsets("h") == {}
    assert table.machine.group_ids() == ["g", "h"]


def test_offsets_of_a_new_topic_of_the_same_name_stay():
    table = Table()
    table.commit(t_0=1)
    delete_topic(table, "t", OTHER_ID)
    assert table.offsets() == {("t", 0): 1}


def test_offsets_of_which_the_topics_id_is_not_known_go_with_the_name():
    table = Table()
    value = OffsetCommitValue(1, commit_timestamp_ms=1)
    table.machine.apply(KeyValue(OffsetCommitKey("g", "t", 0), value))
    delete_topic(table, "t", OTHER_ID)
    assert table.offsets() == {}


def test_offsets_in_open_transactions_go_too():
    table = Table()
    table.commit(transaction=(9, 0), t_0=5, u_0=6)
    delete_topic(table, "t", TOPIC_ID)
    table.machine.on_marker(9, 0, committed=True)
    assert table.offsets() == {("u", 0): 6}


def test_a_topic_that_many_groups_read_takes_several_decisions():
    table = Table()
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


def test_offsets_of_a_topic_that_was_deleted_unseen_go_once_the_log_was_read():
    table = Table()
    table.commit(t_0=1, t_1=2)
    table.commit("h", t_0=4)
    load(table, ("t", TOPIC_ID))
    assert table.offsets() == {("t", 0): 1, ("t", 1): 2}
    load(table, ("t", OTHER_ID))
    assert table.offsets() == {}
    assert table.offsets("h") == {}
    assert table.machine.group_ids() == ["g", "h"]


def test_offsets_of_an_unknown_id_stay_while_there_is_a_topic_of_the_name():
    """A transaction's have none."""
    table = Table()
    table.commit(transaction=(9, 0), t_0=5, u_0=6)
    table.machine.on_marker(9, 0, committed=True)
    load(table, ("t", OTHER_ID))
    assert table.offsets() == {("t", 0): 5}


def test_what_a_transaction_may_commit_for_the_new_topic_is_not_deleted_with_the_old():
    table = Table()
    table.commit(t_0=1)
    table.commit(transaction=(9, 0), t_0=5)
    load(table, ("t", OTHER_ID))
    table.machine.on_marker(9, 0, committed=True)
    assert table.offsets() == {("t", 0): 5}


def test_many_offsets_of_missing_topics_go_in_several_decisions():
    table = Table()
    for number in range(2 * GROUPS_AT_ONCE):
        table.commit(f"g{number}", t_0=1)
    table.commit("z", **{f"t_{each}": 1 for each in range(RECORDS_MAX + 1)})
    assert load(table) > 3
    assert not table.machine.offsets.by_group


def test_the_image_and_the_settings_can_be_replaced():
    table = Table()
    image = Image(features=Map({"x": 1}))
    table.machine.see(image, BrokerSettings({"offset.metadata.max.bytes": "1"}))
    new = [NewOffset("t", 0, 5, metadata="ab")]
    codes = table.carry_out(table.machine.commit_offsets(Commit("g", NOBODY, new), 0))
    assert codes == [ErrorCode.OFFSET_METADATA_TOO_LARGE]
    assert table.machine.image is image


def test_a_group_with_many_offsets_is_deleted_in_rounds():
    """OFS-07: what one decision writes must fit into a batch."""
    table = Table()
    table.become(empty_group(table.now_ms))
    table.commit(**{f"t_{index}": 7 for index in range(2 * RECORDS_MAX + 1)})
    assert rounds_to_delete(table.machine, "g") == 3
    for left in (RECORDS_MAX + 1, 1, 0):
        assert table.machine.owner("g") is not None
        decision = delete(table.machine, "g")
        assert len(decision.records) <= RECORDS_MAX + 1
        table.carry_out(decision)
        assert len(table.offsets()) == left
    assert table.machine.owner("g") is None
    assert refusal(lambda: delete(table.machine, "g")) == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("count", [0, 1, RECORDS_MAX])
def test_a_group_with_few_offsets_is_deleted_at_once(count):
    table = Table()
    table.become(empty_group(table.now_ms))
    table.commit(**{f"t_{index}": 7 for index in range(count)})
    assert rounds_to_delete(table.machine, "g") == 1
    table.carry_out(delete(table.machine, "g"))
    assert table.machine.owner("g") is None
