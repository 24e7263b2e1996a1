"""Decisions about offsets: who may commit, what is told, what is deleted.

Rows: OFS-01, OFS-02, OFS-07, GRP-02.
"""

import pytest
from immutables import Map

from strom.groups.committing import RECORDS_MAX, Commit, NewOffset
from strom.groups.overview import delete, rounds_to_delete
from strom.groups.owners import Author
from strom.metadata.image import Image
from strom.metadata.settings.values import BrokerSettings
from strom.wire.errors import ErrorCode
from tests.groups.offsets_table import (
    NOBODY,
    OTHER_ID,
    TOPIC_ID,
    Table,
    empty_group,
    refusal,
    stable_group,
)


@pytest.fixture
def table():
    return Table()


# Commit and fetch.


def test_the_last_committed_offset_of_a_partition_is_told(table):
    assert table.commit(t_0=5, t_1=7) == [ErrorCode.NONE, ErrorCode.NONE]
    table.commit(t_0=6)
    table.commit("h", t_0=1)
    assert table.offsets() == {("t", 0): 6, ("t", 1): 7}
    assert table.offsets("h") == {("t", 0): 1}


def test_what_was_never_committed_has_no_offset_and_no_error(table):
    table.commit(t_0=5)
    assert table.offsets(t=[0, 3], u=[0]) == {
        ("t", 0): 5,
        ("t", 3): ErrorCode.NONE,
        ("u", 0): ErrorCode.NONE,
    }
    assert table.offsets("nobody", t=[0]) == {("t", 0): ErrorCode.NONE}
    assert table.offsets("nobody") == {}


def test_offset_metadata_and_leader_epoch_come_back_as_they_were(table):
    asked = Commit("g", NOBODY, [NewOffset("t", 0, 5, 3, "notes"), NewOffset("t", 1, 6, -1, None)])
    table.carry_out(table.machine.commit_offsets(asked, table.now_ms))
    found = table.machine.offsets.of("g")
    offset = found["t", 0]
    assert (offset.offset, offset.leader_epoch, offset.metadata) == (5, 3, "notes")
    offset = found["t", 1]
    assert (offset.offset, offset.leader_epoch, offset.metadata) == (6, -1, "")


def test_metadata_that_is_too_long_costs_its_own_partition_only():
    table = Table(offset_metadata_max_bytes=4)
    # What is beyond the first plane takes two of Java's characters.
    texts = ["abcd", "abcde", "\U0001f600" * 2, "\U0001f600" * 3]
    new = [NewOffset("t", index, 5, metadata=text) for index, text in enumerate(texts)]
    codes = table.carry_out(table.machine.commit_offsets(Commit("g", NOBODY, new), 0))
    too_large = ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert codes == [ErrorCode.NONE, too_large, ErrorCode.NONE, too_large]
    assert table.offsets() == {("t", 0): 5, ("t", 2): 5}


def test_an_offset_of_a_deleted_topic_is_not_told_for_its_successor(table):
    table.commit(t_0=5)
    assert table.offsets(t=[0], topic_id=TOPIC_ID) == {("t", 0): 5}
    assert table.offsets(t=[0], topic_id=OTHER_ID) == {("t", 0): ErrorCode.NONE}


# Who may commit.


def test_who_names_a_generation_of_no_group_is_refused_by_its_version(table):
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


def test_who_names_nothing_commits_to_groups_without_members_only(table):
    table.commit(t_0=1)
    table.commit(t_0=2)
    table.become(empty_group(0))
    table.commit(t_0=3)
    table.become(stable_group())
    assert refusal(lambda: table.commit(t_0=4)) == ErrorCode.UNKNOWN_MEMBER_ID
    assert table.offsets() == {("t", 0): 3}


def test_a_member_commits_in_its_generation_and_renews_its_session(table):
    table.become(stable_group())
    table.commit(author=Author("m", 4, version=9), t_0=1)
    assert set(table.timers.values()) == {table.now_ms + 10_000}
    for author, code in (
        (Author("m", 3, version=9), ErrorCode.ILLEGAL_GENERATION),
        (Author("x", 4, version=9), ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        assert refusal(lambda author=author: table.commit(author=author, t_0=2)) == code
    assert table.offsets() == {("t", 0): 1}


def test_in_a_simple_group_nobody_has_a_generation(table):
    table.commit(t_0=1)
    author = Author("m", 0, version=9)
    assert refusal(lambda: table.commit(author=author, t_0=2)) == ErrorCode.UNKNOWN_MEMBER_ID


# Transactions.


def test_offsets_of_a_transaction_count_from_its_end_on(table):
    table.commit(t_0=1)
    table.commit(transaction=(9, 0), t_0=5, t_1=6)
    assert table.offsets() == {("t", 0): 1}
    table.machine.on_marker(9, 0, committed=True)
    assert table.offsets() == {("t", 0): 5, ("t", 1): 6}


def test_offsets_of_an_aborted_transaction_never_were(table):
    table.commit(transaction=(9, 0), t_0=5)
    table.machine.on_marker(9, 0, committed=False)
    assert table.offsets() == {}


def test_a_group_whose_offsets_did_not_count_is_there_until_it_expires(table):
    table.commit(transaction=(9, 0), t_0=5)
    table.machine.on_marker(9, 0, committed=False)
    assert table.machine.group_ids() == ["g"]
    assert table.machine.owner("g").is_empty()
    table.expire()
    assert table.machine.group_ids() == []


def test_a_group_of_its_own_is_not_there_for_offsets_that_did_not_count(table):
    table.commit(transaction=(9, 0), t_0=5)
    table.become(empty_group(since_ms=table.now_ms))
    table.machine.on_marker(9, 0, committed=False)
    table.expire()
    assert table.machine.group_ids() == []


def test_who_wants_stable_offsets_is_told_where_there_are_none_yet(table):
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


def test_of_several_commits_the_last_that_was_written_counts(table):
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


def test_a_deleted_offset_is_not_brought_back_by_a_transaction(table):
    table.commit(transaction=(9, 0), t_0=5, t_1=6)
    assert table.delete("g", ("t", 0)) == [ErrorCode.NONE]
    table.machine.on_marker(9, 0, committed=True)
    assert table.offsets() == {("t", 1): 6}


# Delete.


def test_single_offsets_can_be_deleted_of_topics_that_nobody_reads(table):
    table.commit(t_0=1, t_1=2, u_0=3)
    table.become(stable_group(topics=["t"]))
    subscribed = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    codes = table.delete("g", ("t", 0), ("u", 0), ("u", 9))
    assert codes == [subscribed, ErrorCode.NONE, ErrorCode.NONE]
    assert table.offsets() == {("t", 0): 1, ("t", 1): 2}


def test_of_a_group_that_is_not_there_or_does_something_else_nothing_is_deleted(table):
    assert refusal(lambda: table.delete("g", ("t", 0))) == ErrorCode.GROUP_ID_NOT_FOUND
    table.become(stable_group(protocol_type="connect"))
    assert refusal(lambda: table.delete("g", ("t", 0))) == ErrorCode.NON_EMPTY_GROUP


def test_a_simple_group_outlives_its_offsets_until_groups_are_cleaned_up(table):
    table.commit(t_0=1)
    table.delete("g", ("t", 0))
    assert table.machine.group_ids() == ["g"]
    assert table.delete("g", ("t", 0)) == [ErrorCode.NONE]
    table.expire()
    assert table.machine.group_ids() == []


def test_the_image_and_the_settings_can_be_replaced(table):
    image = Image(features=Map({"x": 1}))
    table.machine.see(image, BrokerSettings({"offset.metadata.max.bytes": "1"}))
    new = [NewOffset("t", 0, 5, metadata="ab")]
    codes = table.carry_out(table.machine.commit_offsets(Commit("g", NOBODY, new), 0))
    assert codes == [ErrorCode.OFFSET_METADATA_TOO_LARGE]
    assert table.machine.image is image


def test_a_group_with_many_offsets_is_deleted_in_rounds(table):
    """OFS-07: what one decision writes must fit into a batch."""
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
def test_a_group_with_few_offsets_is_deleted_at_once(table, count):
    table.become(empty_group(table.now_ms))
    table.commit(**{f"t_{index}": 7 for index in range(count)})
    assert rounds_to_delete(table.machine, "g") == 1
    table.carry_out(delete(table.machine, "g"))
    assert table.machine.owner("g") is None
