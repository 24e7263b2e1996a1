"""A thousand offsets, partitions of a transaction or groups in one request (OFS-01, TXN-08).

What writes to thousands of files is done in turns. Counted, not timed: how many markers are written
in one turn of the loop.
"""

import pytest

from strom.broker.coordinating import OFFSETS_PER_BATCH
from strom.broker.coordination import TOLD_AT_ONCE
from strom.broker.coordinator_log import CoordinatorLog
from strom.broker.markers import MARKERS_AT_ONCE, Markers
from strom.broker.shard import Shard
from strom.groups import committing
from strom.groups.machine import GroupMachine
from tests.broker.api.conftest import create
from tests.patience import until, until_coordinated

pytestmark = pytest.mark.slow

MANY = 1000
UNKNOWN = "unknown_topic_or_partition"
#: Of settings: a topic's; to set one, and to take it back.
TOPIC, SET, DELETE = 2, 0, 1


@pytest.fixture
def wide(raw, name):
    """A topic of many partitions."""
    return create(raw, name, partitions=MANY)["name"]


@pytest.fixture
def group(raw, name):
    until_coordinated(raw, name, 0)
    return name


@pytest.fixture
def producer(raw, name):
    until_coordinated(raw, name, 1)
    asked = {"transactional_id": name, "transaction_timeout": 60_000}
    given = raw.ask("init_producer_id", 4, asked | {"producer_id": -1, "producer_epoch": -1})
    assert given["error_code"] == "none"
    return {"producer_id": given["producer_id"], "producer_epoch": given["producer_epoch"]}


@pytest.fixture
def counted(turn, monkeypatch):
    """Counts the calls of a method by the turn of the loop in which they are made."""

    def count(cls, method):
        seen = []
        was = getattr(cls, method)

        def counting(self, *args, **kwargs):
            seen.append(turn())
            return was(self, *args, **kwargs)

        monkeypatch.setattr(cls, method, counting)
        return seen

    return count


@pytest.fixture
def batches(monkeypatch):
    """How many records each batch of a coordinator's log has."""
    sizes = []
    append = CoordinatorLog.append

    def noted(self, records, *args):
        sizes.append(len(records))
        append(self, records, *args)

    monkeypatch.setattr(CoordinatorLog, "append", noted)
    return sizes


def most(seen):
    return max(seen.count(turn) for turn in set(seen))


def offsets(topic, count=MANY, offset=7, metadata=""):
    noted = {"committed_offset": offset, "committed_leader_epoch": -1}
    noted["committed_metadata"] = metadata
    partitions = [{"partition_index": index} | noted for index in range(count)]
    return [{"name": topic, "partitions": partitions}]


def commit(raw, group, topics):
    asked = {"group_id": group, "generation_id_or_member_epoch": -1, "topics": topics}
    return raw.ask("offset_commit", 9, asked)["topics"]


def fetch(raw, group, topics, **more):
    groups = [{"group_id": group, "member_epoch": -1, "topics": topics}]
    (told,) = raw.ask("offset_fetch", 9, {"groups": groups} | more)["groups"]
    assert told["error_code"] == "none"
    return told["topics"]


def codes(topics):
    return [[each["error_code"] for each in topic["partitions"]] for topic in topics]


def test_many_offsets_are_committed_in_several_batches_and_deleted_in_one(
    raw, wide, group, batches
):
    # Three of the partitions do not exist, and the first topic is in two pieces.
    asked = [*offsets(wide, MANY + 3), *offsets("none", 2), *offsets(wide, 1, offset=9)]
    told = commit(raw, group, asked)
    assert [each["name"] for each in told] == [wide, "none", wide]
    assert codes(told) == [["none"] * MANY + [UNKNOWN] * 3, [UNKNOWN] * 2, ["none"]]
    assert sum(batches) == MANY + 1
    assert max(batches) == OFFSETS_PER_BATCH
    batches.clear()
    places = [{"partition_index": index} for index in range(MANY + 3)]
    topics = [{"name": wide, "partitions": places}]
    told = raw.ask("offset_delete", 0, {"group_id": group, "topics": topics})
    assert told["error_code"] == "none"
    assert codes(told["topics"]) == [["none"] * MANY + [UNKNOWN] * 3]
    assert batches == [MANY]
    assert fetch(raw, group, None) == []


def test_many_offsets_with_all_the_metadata_that_there_may_be_are_committed(raw, wide, group):
    """All of them together are more than a batch of the coordinator's log has room for."""
    longest = "x" * 4096
    assert codes(commit(raw, group, offsets(wide, 300, metadata=longest))) == [["none"] * 300]
    (told,) = fetch(raw, group, None)
    assert [each["metadata"] for each in told["partitions"]] == [longest] * 300


def test_many_offsets_of_one_group_are_told(raw, wide, group):
    commit(raw, group, offsets(wide))
    commit(raw, group, offsets(wide, 1, offset=9))
    everything = fetch(raw, group, None)
    named = fetch(raw, group, [{"name": wide, "partition_indexes": range(MANY)}])
    assert everything == named
    found = [each["committed_offset"] for each in everything[0]["partitions"]]
    assert found == [9] + [7] * (MANY - 1)


def test_who_may_not_ask_for_many_offsets_is_told_so(raw, wide, name):
    until_coordinated(raw, name, 0)
    asked = {"group_id": name, "topics": [{"name": wide, "partition_indexes": range(MANY)}]}
    member = {"member_id": "nobody", "member_epoch": 3}
    join = {"member_id": "me", "member_epoch": 0, "subscribed_topic_names": [wide]}
    beat = {"group_id": name, "rebalance_timeout": 10_000, "topic_partitions": []}
    assert raw.ask("consumer_group_heartbeat", 0, beat | join)["error_code"] == "none"
    (told,) = raw.ask("offset_fetch", 9, {"groups": [asked | member]})["groups"]
    assert told["error_code"] == "unknown_member_id"


def test_many_offsets_of_a_transaction_are_committed_in_several_batches(
    raw, wide, group, producer, batches
):
    asked = {"transactional_id": group, "group_id": group} | producer
    assert raw.ask("add_offsets_to_txn", 3, asked)["error_code"] == "none"
    batches.clear()
    told = raw.ask(
        "txn_offset_commit", 3, asked | {"generation_id": -1, "topics": offsets(wide, MANY + 3)}
    )
    assert codes(told["topics"]) == [["none"] * MANY + [UNKNOWN] * 3]
    assert batches == [OFFSETS_PER_BATCH] * (MANY // OFFSETS_PER_BATCH)
    (unstable,) = fetch(raw, group, None, require_stable=True) or [None]
    assert unstable is None
    wanted = [{"name": wide, "partition_indexes": range(MANY)}]
    assert codes(fetch(raw, group, wanted, require_stable=True)) == [
        ["unstable_offset_commit"] * MANY
    ]
    end = {"transactional_id": group, "committed": True} | producer
    assert raw.ask("end_txn", 3, end)["error_code"] == "none"
    found = fetch(raw, group, wanted, require_stable=True)[0]["partitions"]
    assert {each["committed_offset"] for each in found} == {7}


def add(raw, transactional_id, producer, topics):
    asked = {"v3_and_below_transactional_id": transactional_id, "v3_and_below_topics": topics}
    asked |= {f"v3_and_below_{field}": value for field, value in producer.items()}
    (told,) = raw.ask("add_partitions_to_txn", 3, asked)["results_by_topic_v3_and_below"]
    return [each["partition_error_code"] for each in told["results_by_partition"]]


def test_all_partitions_are_taken_in_or_none_and_their_markers_are_written_in_portions(
    raw, wide, name, producer, counted
):
    """A transaction of so many is complete soon after its end is told."""
    too_many = [{"name": wide, "partitions": range(MANY + 1)}]
    refused = add(raw, name, producer, too_many)
    assert refused == ["operation_not_attempted"] * MANY + [UNKNOWN]
    everything = [{"name": wide, "partitions": range(MANY)}]
    assert add(raw, name, producer, everything) == ["none"] * MANY
    written = counted(Markers, "write")
    end = {"transactional_id": name, "committed": True} | producer
    assert raw.ask("end_txn", 3, end)["error_code"] == "none"
    asked = {"transactional_ids": [name]}
    until(
        lambda: raw.ask("describe_transactions", 0, asked)["transaction_states"],
        lambda told: told[0]["transaction_state"] == "CompleteCommit",
    )
    assert len(written) == MANY
    assert most(written) <= MARKERS_AT_ONCE


def test_markers_that_others_send_are_written_in_portions(raw, wide, counted):
    written = counted(Markers, "write")
    marker = {
        "producer_id": 77,
        "producer_epoch": 0,
        "transaction_result": False,
        "coordinator_epoch": 0,
        "topics": [{"name": wide, "partition_indexes": range(MANY + 1)}],
    }
    (told,) = raw.ask("write_txn_markers", 1, {"markers": [marker]})["markers"]
    assert codes(told["topics"]) == [["none"] * MANY + [UNKNOWN]]
    assert len(written) == MANY + 1
    assert most(written) <= MARKERS_AT_ONCE


def test_coordinators_are_told_of_a_change_a_few_in_one_turn(raw, name, group, counted):
    told = counted(Shard, "decide_alone")
    create(raw, name)
    assert len(told) >= 2 * TOLD_AT_ONCE
    assert most(told) <= TOLD_AT_ONCE


def test_each_group_that_is_only_named_is_looked_through_in_a_turn_of_its_own(
    raw, topic, name, counted
):
    """A request of two kilobytes may ask for all offsets of hundreds of groups."""
    until_coordinated(raw, name, 0)
    commit(raw, name, offsets(topic, 1))
    looked = counted(GroupMachine, "fetch_offsets")
    wanted = [{"group_id": name, "member_epoch": -1, "topics": None}] * 20
    told = raw.ask("offset_fetch", 9, {"groups": wanted})["groups"]
    assert len(told) == len(looked) == 20
    assert most(looked) == 1


def test_many_groups_are_listed_described_and_deleted(raw, topic, name):
    until_coordinated(raw, name, 0)
    groups = [f"{name}-{number}" for number in range(300)]
    for group in groups:
        commit(raw, group, offsets(topic, 1))
    found = raw.ask("list_groups", 5, {"states_filter": ["empty"]})["groups"]
    assert set(groups) <= {each["group_id"] for each in found}
    told = raw.ask("describe_groups", 5, {"groups": [*groups, groups[0]]})["groups"]
    assert [each["group_id"] for each in told] == groups
    assert {each["group_state"] for each in told} == {"Empty"}
    told = raw.ask("consumer_group_describe", 1, {"group_ids": groups})["groups"]
    assert {each["error_code"] for each in told} == {"group_id_not_found"}
    wanted = [{"group_id": each, "member_epoch": -1, "topics": None} for each in groups]
    told = raw.ask("offset_fetch", 9, {"groups": wanted})["groups"]
    assert [each["group_id"] for each in told] == groups
    assert {each["topics"][0]["partitions"][0]["committed_offset"] for each in told} == {7}
    told = raw.ask("delete_groups", 2, {"groups_names": [*groups, groups[0]]})["results"]
    assert [each["group_id"] for each in told] == groups
    assert {each["error_code"] for each in told} == {"none"}


def test_a_group_with_more_offsets_than_fit_into_a_batch_is_deleted(
    raw, wide, group, counted, monkeypatch
):
    """OFS-07: all in one turn, so that nobody joins a group that is half gone."""
    commit(raw, group, offsets(wide))
    size = {"name": "max.message.bytes", "value": "20000", "config_operation": SET}
    topic = {"resource_type": TOPIC, "resource_name": "__consumer_offsets", "configs": [size]}
    raw.ask("incremental_alter_configs", 1, {"resources": [topic]})
    monkeypatch.setattr(committing, "RECORDS_MAX", 300)
    applied = counted(GroupMachine, "apply")
    try:
        (told,) = raw.ask("delete_groups", 2, {"groups_names": [group]})["results"]
    finally:
        size["config_operation"] = DELETE
        raw.ask("incremental_alter_configs", 1, {"resources": [topic]})
    assert told["error_code"] == "none"
    assert len(set(applied)) == 1
    assert fetch(raw, group, None) == []
    (found,) = raw.ask("describe_groups", 6, {"groups": [group]})["groups"]
    assert found["error_code"] == "group_id_not_found"
