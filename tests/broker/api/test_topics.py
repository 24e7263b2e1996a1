"""Creating, deleting and growing topics in every version, and pages of their partitions.

What the newest versions answer word by word is in tests/conformance.
Rows: TOP-01, TOP-05, TOP-08, TOP-12.
"""

import pytest

from strom.broker.api import create_partitions, create_topics, delete_topics, metadata
from strom.testing.broker import LocalBroker
from tests.broker.api.conftest import create
from tests.conformance.batches import batch
from tests.conformance.raw import Raw


def wanted(name, **given):
    return {"name": name, "num_partitions": 1, "replication_factor": 1} | given


def look_up(raw, name):
    asked = {"topics": [{"name": name}], "allow_auto_topic_creation": False}
    return raw.ask("metadata", 12, asked)["topics"][0]


@pytest.mark.parametrize("version", create_topics.VERSIONS)
def test_every_version_creates(raw, name, version):
    asked = {"topics": [wanted(name)], "timeout": 10_000}
    (made,) = raw.ask("create_topics", version, asked)["topics"]
    assert made["error_code"] == "none"
    assert [each["leader_id"] for each in look_up(raw, name)["partitions"]] == [1]


@pytest.mark.parametrize("version", delete_topics.VERSIONS)
def test_every_version_deletes(raw, topic, version):
    asked = {"topics": [{"name": topic}], "topic_names": [topic, "none"], "timeout": 10_000}
    answers = raw.ask("delete_topics", version, asked)["responses"]
    assert answers[0]["error_code"] == "none"
    if version < 6:
        assert answers[1]["error_code"] == "unknown_topic_or_partition"
    assert look_up(raw, topic)["error_code"] == "unknown_topic_or_partition"


@pytest.mark.parametrize("version", create_partitions.VERSIONS)
def test_every_version_grows_and_the_new_partition_is_there_at_once(raw, topic, version):
    asked = {"topics": [{"name": topic, "count": 3}], "timeout": 10_000}
    (grown,) = raw.ask("create_partitions", version, asked)["results"]
    assert grown["error_code"] == "none"
    place = {"partition_index": 2, "timestamp": -1}
    found = raw.ask("list_offsets", 7, {"topics": [{"name": topic, "partitions": [place]}]})
    assert found["topics"][0]["partitions"][0]["offset"] == 0


def test_a_name_given_twice_does_not_count_for_the_others(raw, name):
    """Not with its partitions, which may be more than a request may ask for."""
    many, good = wanted(name, num_partitions=10_001), wanted(f"{name}-good")
    asked = {"topics": [many, good, many], "timeout": 10_000}
    answers = raw.ask("create_topics", 7, asked)["topics"]
    assert [(each["name"], each["error_code"], each["error_message"]) for each in answers] == [
        (name, "invalid_request", "Duplicate topic name."),
        (f"{name}-good", "none", None),
    ]
    told = raw.ask("create_topics", 7, asked | {"timeout": 0})["topics"]
    assert [each["error_code"] for each in told] == ["invalid_request", "request_timed_out"]


@pytest.mark.parametrize("timeout", [0, -5])
def test_without_time_nothing_is_begun(raw, name, timeout):
    asked = {"topics": [wanted(name)], "timeout": timeout}
    (refused,) = raw.ask("create_topics", 7, asked)["topics"]
    assert refused["error_code"] == "request_timed_out"
    assert look_up(raw, name)["error_code"] == "unknown_topic_or_partition"


def describe(raw, *names, limit=2000, cursor=None):
    topics = [{"name": each} for each in names]
    asked = {"topics": topics, "response_partition_limit": limit, "cursor": cursor}
    return raw.ask("describe_topic_partitions", 0, asked)


def places(answer):
    return [
        (topic["name"], each["partition_index"])
        for topic in answer["topics"]
        for each in topic["partitions"]
    ]


def test_pages_follow_each_other_without_gap_or_repetition(raw, name):
    first, second = f"{name}-a", f"{name}-b"
    create(raw, first, partitions=3)
    create(raw, second, partitions=2)
    seen, cursor = [], None
    while True:
        page = describe(raw, second, first, limit=2, cursor=cursor)
        seen.append(places(page))
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == [
        [(first, 0), (first, 1)],
        [(first, 2), (second, 0)],
        [(second, 1)],
    ]


def test_a_page_that_ends_with_a_topic_points_at_the_next(raw, name):
    first, second = f"{name}-a", f"{name}-b"
    create(raw, first, partitions=2)
    create(raw, second, partitions=1)
    page = describe(raw, first, second, limit=2)
    assert page["next_cursor"] == {"topic_name": second, "partition_index": 0}


@pytest.mark.parametrize(("cursor_topic", "index"), [("zz", 0), (None, -1)])
def test_a_cursor_that_cannot_be_is_refused(raw, topic, cursor_topic, index):
    cursor = {"topic_name": cursor_topic or topic, "partition_index": index}
    (refused,) = describe(raw, topic, cursor=cursor)["topics"]
    assert refused["error_code"] == "invalid_request"


def test_a_cursor_behind_the_last_partition_finds_none(raw, topic):
    page = describe(raw, topic, cursor={"topic_name": topic, "partition_index": 7})
    assert page["topics"][0]["partitions"] == []
    assert page["next_cursor"] is None


def test_a_topic_made_by_asking_for_it_has_all_its_partitions_at_once(tmp_path):
    """Whoever sees fewer sends its keys elsewhere than everybody after it."""
    with (
        LocalBroker({"num.partitions": "3"}, directory=tmp_path) as broker,
        Raw(broker.bootstrap) as raw,
    ):
        for version in metadata.VERSIONS:
            name = f"asked-{version}"
            asked = {"topics": [{"name": name}], "allow_auto_topic_creation": True}
            (made,) = raw.ask("metadata", version, asked)["topics"]
            assert made["error_code"] == "none"
            led = {each["partition_index"]: each["leader_id"] for each in made["partitions"]}
            assert led == {0: 1, 1: 1, 2: 1}
            data = [{"index": index, "records": batch([b"first"])} for index in range(3)]
            topics = [{"name": name, "partition_data": data}]
            sent = raw.ask("produce", 9, {"acks": -1, "timeout": 5000, "topic_data": topics})
            answers = sent["responses"][0]["partition_responses"]
            assert [each["error_code"] for each in answers] == ["none"] * 3
