"""APIs whose older versions say something in another place: one handler serves them all."""

from datetime import timedelta
from uuid import UUID

import pytest

from strom.broker.api import (
    add_partitions_to_txn,
    delete_topics,
    find_coordinator,
    leave_group,
    metadata,
    offset_commit,
    offset_fetch,
    update_features,
)
from strom.broker.dispatch import api_of
from strom.wire.errors import ErrorCode
from strom.wire.messages import kafka_message
from tests.wire.kio_messages import bytes_of, class_in, kio_class, make, read_by_kio

TOPIC_ID = UUID(int=7 << 100)


def read(module, version, **values):
    """What the handler is given of a request that kio has written."""
    api = api_of(module)
    request = make(kio_class(api.name, version, "request"), **values)
    return api.codec(version).read(memoryview(bytes_of(request)), 0)


def answered(module, version, response):
    """What kio reads of the handler's response."""
    api = api_of(module)
    (data,) = api.codec(version).write(response)
    return read_by_kio(api.name, version, "response", data)


@pytest.mark.parametrize("version", add_partitions_to_txn.VERSIONS)
def test_one_transaction_is_read_as_many(version):
    entity = kio_class("add_partitions_to_txn", version, "request")
    if version < 4:
        topic = class_in(entity, "v3_and_below_topics")(name="t", partitions=(0, 2))
        values = {
            "v3_and_below_transactional_id": "x",
            "v3_and_below_producer_id": 2**40,
            "v3_and_below_producer_epoch": 3,
            "v3_and_below_topics": (topic,),
        }
    else:
        transaction = class_in(entity, "transactions")
        topic = class_in(transaction, "topics")(name="t", partitions=(0, 2))
        one = transaction(
            transactional_id="x",
            producer_id=2**40,
            producer_epoch=3,
            verify_only=True,
            topics=(topic,),
        )
        values = {"transactions": (one,)}
    (found,) = read(add_partitions_to_txn, version, **values).transactions
    assert (found.transactional_id, found.producer_id, found.producer_epoch) == ("x", 2**40, 3)
    assert found.verify_only is (version >= 4)
    assert [(each.name, each.partitions) for each in found.topics] == [("t", (0, 2))]


@pytest.mark.parametrize("version", add_partitions_to_txn.VERSIONS)
def test_what_became_of_one_transaction_stands_at_the_top(version):
    message = kafka_message("add_partitions_to_txn", "response")
    partition = message.AddPartitionsToTxnPartitionResult(
        partition_index=2, partition_error_code=ErrorCode.INVALID_TXN_STATE
    )
    topic = message.AddPartitionsToTxnTopicResult(name="t", results_by_partition=(partition,))
    result = message.AddPartitionsToTxnResult(transactional_id="x", topic_results=(topic,))
    response = message.AddPartitionsToTxnResponse(
        throttle_time=timedelta(milliseconds=42), results_by_transaction=(result,)
    )
    told = answered(add_partitions_to_txn, version, response)
    assert told.throttle_time == timedelta(milliseconds=42)
    if version < 4:
        topics = told.results_by_topic_v3_and_below
    else:
        (only,) = told.results_by_transaction
        assert only.transactional_id == "x"
        topics = only.topic_results
    (told_topic,) = topics
    (told_partition,) = told_topic.results_by_partition
    assert told_topic.name == "t"
    assert told_partition.partition_index == 2
    assert told_partition.partition_error_code == ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize("asks_for_all", [False, True])
@pytest.mark.parametrize("version", offset_fetch.VERSIONS)
def test_offsets_of_one_group_are_read_as_of_many(version, asks_for_all):
    entity = kio_class("offset_fetch", version, "request")
    named = {"name": "t"} if version < 10 else {"topic_id": TOPIC_ID}
    if version < 8:
        topic = class_in(entity, "topics")(partition_indexes=(0, 2), **named)
        # Version 1 has no word for all topics.
        topics = None if asks_for_all and version > 1 else (topic,)
        values = {"group_id": "g", "topics": topics}
    else:
        group = class_in(entity, "groups")
        topic = class_in(group, "topics")(partition_indexes=(0, 2), **named)
        topics = None if asks_for_all else (topic,)
        values = {"groups": (make(group, group_id="g", topics=topics, member_id="m"),)}
    request = read(offset_fetch, version, require_stable=True, **values)
    assert request.require_stable is (version >= 7)
    (found,) = request.groups
    assert found.group_id == "g"
    assert found.member_id == ("m" if version >= 9 else None)
    if topics is None:
        assert found.topics is None
        return
    (asked,) = found.topics
    assert asked.partition_indexes == (0, 2)
    assert (asked.name, asked.topic_id) == (("t", None) if version < 10 else ("", TOPIC_ID))


@pytest.mark.parametrize("version", offset_fetch.VERSIONS)
def test_offsets_of_one_group_stand_at_the_top(version):
    message = kafka_message("offset_fetch", "response")
    partition = message.OffsetFetchResponsePartitions(
        partition_index=2,
        committed_offset=2**40,
        committed_leader_epoch=5,
        metadata="m",
        error_code=ErrorCode.NONE,
    )
    topic = message.OffsetFetchResponseTopics(name="t", topic_id=TOPIC_ID, partitions=(partition,))
    code = ErrorCode.NOT_COORDINATOR
    group = message.OffsetFetchResponseGroup(group_id="g", topics=(topic,), error_code=code)
    told = answered(offset_fetch, version, message.OffsetFetchResponse(groups=(group,)))
    only = told if version < 8 else told.groups[0]
    if version >= 2:
        assert only.error_code == code
    (told_topic,) = only.topics
    assert getattr(told_topic, "name", "t") == "t"
    assert getattr(told_topic, "topic_id", TOPIC_ID) == TOPIC_ID
    (found,) = told_topic.partitions
    assert (found.partition_index, found.committed_offset, found.metadata) == (2, 2**40, "m")
    assert getattr(found, "committed_leader_epoch", 5) == 5
    assert found.error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", offset_commit.VERSIONS)
def test_an_offset_is_read_in_every_version(version):
    entity = kio_class("offset_commit", version, "request")
    topic = class_in(entity, "topics")
    partition = make(
        class_in(topic, "partitions"),
        partition_index=2,
        committed_offset=2**40,
        committed_leader_epoch=5,
        committed_metadata="m",
        commit_timestamp=1,
    )
    named = {"name": "t"} if version < 10 else {"topic_id": TOPIC_ID}
    request = read(
        offset_commit,
        version,
        group_id="g",
        generation_id_or_member_epoch=7,
        member_id="member",
        group_instance_id="static",
        retention_time=timedelta(seconds=1),
        topics=(topic(partitions=(partition,), **named),),
    )
    assert (request.group_id, request.generation_id_or_member_epoch) == ("g", 7)
    assert request.member_id == "member"
    assert request.group_instance_id == ("static" if version >= 7 else None)
    assert request.retention_time == (1000 if version <= 4 else -1)
    (asked,) = request.topics
    assert (asked.name, asked.topic_id) == (("t", None) if version < 10 else ("", TOPIC_ID))
    (found,) = asked.partitions
    assert (found.partition_index, found.committed_offset) == (2, 2**40)
    assert found.committed_leader_epoch == (5 if version >= 6 else -1)
    assert found.committed_metadata == "m"


@pytest.mark.parametrize("version", find_coordinator.VERSIONS)
def test_one_coordinator_is_asked_for_and_told_as_one_of_many(version):
    values = {"key": "g", "coordinator_keys": ("g",), "key_type": 1}
    request = read(find_coordinator, version, **values)
    assert request.coordinator_keys == ("g",)
    assert request.key_type == (1 if version >= 1 else 0)
    message = kafka_message("find_coordinator", "response")
    found = message.Coordinator(
        key="g", node_id=3, host="h", port=9, error_code=ErrorCode.NONE, error_message=""
    )
    told = answered(
        find_coordinator, version, message.FindCoordinatorResponse(coordinators=(found,))
    )
    only = told if version < 4 else told.coordinators[0]
    assert (only.node_id, only.host, only.port, only.error_code) == (3, "h", 9, ErrorCode.NONE)
    if 1 <= version < 4:
        assert only.error_message == "NONE"


@pytest.mark.parametrize("version", leave_group.VERSIONS)
def test_one_member_leaves_as_one_of_many(version):
    entity = kio_class("leave_group", version, "request")
    values = {"group_id": "g", "member_id": "m"}
    if version >= 3:
        values["members"] = (class_in(entity, "members")(member_id="m"),)
    (member,) = read(leave_group, version, **values).members
    assert (member.member_id, member.group_instance_id) == ("m", None)
    message = kafka_message("leave_group", "response")
    gone = message.MemberResponse(member_id="m", error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    told = answered(leave_group, version, message.LeaveGroupResponse(members=(gone,)))
    code = told.error_code if version < 3 else told.members[0].error_code
    assert code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", delete_topics.VERSIONS)
def test_topics_to_delete_have_a_name(version):
    entity = kio_class("delete_topics", version, "request")
    values = {"topic_names": ("a", "b"), "timeout": timedelta(seconds=1)}
    if version >= 6:
        state = class_in(entity, "topics")
        values["topics"] = tuple(state(name=name, topic_id=None) for name in ("a", "b"))
    topics = read(delete_topics, version, **values).topics
    assert [(each.name, each.topic_id) for each in topics] == [("a", None), ("b", None)]


def test_a_flag_says_which_way_a_feature_may_go():
    key = class_in(kio_class("update_features", 0, "request"), "feature_updates")
    updates = tuple(
        key(feature="f", max_version_level=1, allow_downgrade=allowed) for allowed in (False, True)
    )
    request = read(update_features, 0, feature_updates=updates, timeout=timedelta(seconds=1))
    assert [each.upgrade_type for each in request.feature_updates] == [1, 2]


@pytest.mark.parametrize(("version", "topics"), [(0, None), (1, ())])
def test_no_topics_are_all_topics_in_the_oldest_version(version, topics):
    assert read(metadata, version, topics=()).topics == topics


@pytest.mark.parametrize("version", [8, 9, 10])
def test_some_versions_tell_what_is_allowed_on_the_cluster(version):
    asks = {
        "include_cluster_authorized_operations": True,
        "include_topic_authorized_operations": False,
    }
    request = read(metadata, version, topics=(), **asks)
    response = kafka_message("metadata", "response").MetadataResponse()
    metadata.tell_of_cluster(request, response)
    told = answered(metadata, version, response)
    assert told.cluster_authorized_operations == metadata.CLUSTER_OPERATIONS
