"""What is asked about a partition's records: deleting, epochs, producers, sizes."""

import pytest

from strom.broker.api import delete_records, describe_log_dirs, offset_for_leader_epoch
from tests.broker.api.conftest import create, produce
from tests.conformance.batches import Producer, batch


@pytest.mark.parametrize("version", delete_records.VERSIONS)
def test_every_version_deletes_up_to_an_offset(raw, topic, version):
    produce(raw, topic, *[batch([b"a", b"b"])] * 3)
    partition = {"partition_index": 0, "offset": 3}
    asked = {"topics": [{"name": topic, "partitions": [partition]}], "timeout": 5000}
    (found,) = raw.ask("delete_records", version, asked)["topics"][0]["partitions"]
    assert (found["low_watermark"], found["error_code"]) == (3, "none")
    place = {"partition_index": 0, "timestamp": -2}
    (start,) = raw.ask("list_offsets", 7, {"topics": [{"name": topic, "partitions": [place]}]})[
        "topics"
    ][0]["partitions"]
    assert start["offset"] == 3


def cut(raw, topic, offset=-1):
    partition = {"partition_index": 0, "offset": offset}
    asked = {"topics": [{"name": topic, "partitions": [partition]}], "timeout": 5000}
    (found,) = raw.ask("delete_records", 2, asked)["topics"][0]["partitions"]
    return found["error_code"], found["low_watermark"]


def test_a_partition_named_twice_is_answered_once_and_the_last_offset_counts(raw, topic):
    """What is deleted for good was then asked for by the last one."""
    produce(raw, topic, *[batch([b"a", b"b"])] * 3)
    far, near = ({"partition_index": 0, "offset": offset} for offset in (5, 1))
    topics = [{"name": topic, "partitions": [each]} for each in (far, near)]
    nothing = {"name": f"{topic}-nothing", "partitions": []}
    asked = {"topics": [*topics, nothing], "timeout": 5000}
    (found,) = raw.ask("delete_records", 2, asked)["topics"]
    once = {"partition_index": 0, "low_watermark": 1, "error_code": "none"}
    assert found == {"name": topic, "partitions": [once]}


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_nobody_deletes_what_the_broker_keeps_for_itself(raw, policy):
    name = "__consumer_offsets"
    raw.ask("find_coordinator", 4, {"key_type": 0, "coordinator_keys": ["g"]})
    config = {"name": "cleanup.policy", "config_operation": 0, "value": policy}
    resource = {"resource_type": 2, "resource_name": name, "configs": [config]}
    asked = {"resources": [resource], "validate_only": False}
    (changed,) = raw.ask("incremental_alter_configs", 1, asked)["responses"]
    assert changed["error_code"] == "none", changed
    assert cut(raw, name) == ("invalid_topic_exception", -1)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("compact", ("policy_violation", -1)),
        ("compact,delete", ("none", 1)),
        ("delete", ("none", 1)),
        ("", ("none", 1)),
    ],
)
def test_records_can_be_deleted_where_a_topic_is_not_only_compacted(raw, policy, expected):
    name = "policy-" + policy.replace(",", "-")
    create(raw, name, partitions=1, cleanup_policy=policy)
    produce(raw, name, batch([(b"k", b"v")] if policy else [b"v"]))
    assert cut(raw, name) == expected


@pytest.mark.parametrize("version", offset_for_leader_epoch.VERSIONS)
def test_every_version_tells_where_an_epoch_ends(raw, topic, version):
    produce(raw, topic, batch([b"a", b"b"]))

    def ask(name, index):
        partition = {"partition": index, "current_leader_epoch": -1, "leader_epoch": 0}
        asked = {"replica_id": -2, "topics": [{"topic": name, "partitions": [partition]}]}
        (found,) = raw.ask("offset_for_leader_epoch", version, asked)["topics"][0]["partitions"]
        return found["error_code"], found["leader_epoch"], found["end_offset"]

    assert ask(topic, 0) == ("none", 0, 2)
    assert ask(topic, 9) == ("unknown_topic_or_partition", -1, -1)
    assert ask("bad name", 0) == ("unknown_topic_or_partition", -1, -1)


def producers(raw, name, *indexes):
    asked = {"topics": [{"name": name, "partition_indexes": indexes}]}
    return raw.ask("describe_producers", 0, asked)["topics"][0]["partitions"]


def test_a_producer_is_described_by_its_last_batch(raw, topic):
    first = Producer(4711, 2, 0)
    second = Producer(4711, 2, 2)
    produce(raw, topic, batch([b"a", b"b"], producer=first), batch([b"c"], producer=second))
    (found,) = producers(raw, topic, 0)
    (one,) = found["active_producers"]
    assert (one["producer_id"], one["producer_epoch"], one["last_sequence"]) == (4711, 2, 2)
    assert one["current_txn_start_offset"] == -1


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        (
            "no-such",
            "unknown_topic_or_partition",
            "This server does not host this topic-partition.",
        ),
        (
            "bad name",
            "invalid_topic_exception",
            "Topic name is invalid: 'bad name' contains one or more characters other than ASCII "
            "alphanumerics, '.', '_' and '-'",
        ),
    ],
)
def test_producers_of_what_is_not_there(raw, name, code, message):
    (found,) = producers(raw, name, 0)
    assert (found["error_code"], found["error_message"]) == (code, message)


def test_a_partition_that_is_not_there_has_no_message(raw, topic):
    (found,) = producers(raw, topic, 9)
    assert (found["error_code"], found["error_message"]) == ("unknown_topic_or_partition", None)


@pytest.mark.parametrize("version", describe_log_dirs.VERSIONS)
def test_every_directory_is_told_with_the_sizes_of_what_was_asked_for(raw, broker, name, version):
    create(raw, name, partitions=1)
    records = batch([b"x" * 1000])
    produce(raw, name, records)
    asked = {"topics": [{"topic": name, "partitions": [0, 7]}, {"topic": "no", "partitions": [0]}]}
    results = raw.ask("describe_log_dirs", version, asked)["results"]
    assert [each["log_dir"] for each in results] == broker.log_dirs
    (topic,) = [topic for each in results for topic in each["topics"]]
    (partition,) = topic["partitions"]
    assert partition["partition_size"] == len(records)
    assert partition["is_future_key"] is False
    if version >= 4:
        assert all(each["total_bytes"] > each["usable_bytes"] > 0 for each in results)


def test_no_list_of_topics_is_all_and_an_empty_one_none(raw, topic):
    def told(topics):
        results = raw.ask("describe_log_dirs", 5, {"topics": topics})["results"]
        return {each["name"] for result in results for each in result["topics"]}

    assert topic in told(None)
    assert told([]) == set()
