"""Hundreds of topics in one request (TOP-02, TOP-06, TOP-07) are one decision.

It is one batch of the metadata log, which after a crash is there or not. It is published a portion
at a time: everybody else is served in between. Counted, not timed: how many records are published
in one turn of the loop.
"""

import pytest

from strom.broker.publisher import RECORDS_AT_ONCE
from strom.broker.quorum import Quorum
from strom.metadata import delta
from strom.metadata.outcome import CHANGES_MAX
from strom.metadata.records import PartitionChange
from tests.broker.api.conftest import create

pytestmark = pytest.mark.slow

MANY = 250
TOPIC = 2


def new_topics(*names, partitions=1):
    return [{"name": name, "num_partitions": partitions, "replication_factor": 1} for name in names]


def create_all(raw, topics, **more):
    return raw.ask("create_topics", 7, {"topics": topics, "timeout": 30_000} | more)["topics"]


def delete_all(raw, topics):
    return raw.ask("delete_topics", 6, {"topics": topics, "timeout": 30_000})["responses"]


def grow_all(raw, names, count, **more):
    topics = [{"name": each, "count": count} for each in names]
    asked = {"topics": topics, "timeout": 30_000} | more
    return raw.ask("create_partitions", 3, asked)["results"]


def resources(names, **more):
    settings = [{"name": "retention.ms", "value": "77777"} | more]
    return [{"resource_type": TOPIC, "resource_name": each, "configs": settings} for each in names]


def alter_all(raw, names):
    asked = {"resources": resources(names, config_operation=0)}
    return raw.ask("incremental_alter_configs", 1, asked)["responses"]


def replace_all(raw, names):
    return raw.ask("alter_configs", 2, {"resources": resources(names)})["responses"]


def codes(answers):
    return [each["error_code"] for each in answers]


def exists(raw, names):
    asked = {"topics": [{"name": each} for each in names], "allow_auto_topic_creation": False}
    told = raw.ask("metadata", 12, asked)["topics"]
    return [each["error_code"] == "none" for each in told]


@pytest.fixture
def names(name):
    return [f"{name}-{number}" for number in range(MANY)]


@pytest.fixture
def batches(monkeypatch):
    """How many records each batch of the metadata log has."""
    sizes = []
    append = Quorum.append

    def noted(self, records):
        # That a new partition's directory is noted is a matter of its own.
        if not isinstance(records[0], PartitionChange):
            sizes.append(len(records))
        append(self, records)

    monkeypatch.setattr(Quorum, "append", noted)
    return sizes


@pytest.fixture
def published(turn, monkeypatch):
    """At which turn of the loop each record was published."""
    turns = []
    applied = delta.applied

    def publish(image, record):
        turns.append(turn())
        return applied(image, record)

    monkeypatch.setattr(delta, "applied", publish)
    return turns


def most(seen):
    return max(seen.count(turn) for turn in set(seen))


def test_topics_live_and_go_in_one_batch_and_are_published_in_portions(
    raw, names, batches, published
):
    lives = [
        lambda: create_all(raw, new_topics(*names)),
        lambda: alter_all(raw, names),
        lambda: replace_all(raw, names),
        lambda: grow_all(raw, names, 2),
        lambda: delete_all(raw, [{"name": each} for each in names]),
    ]
    for live in lives:
        batches.clear()
        published.clear()
        answers = live()
        told = [each.get("name", each.get("resource_name")) for each in answers]
        assert told == names
        assert codes(answers) == ["none"] * MANY
        if live is not lives[2]:
            assert len(batches) == 1
            assert batches[0] >= MANY
            assert len(published) >= MANY
            assert most(published) <= RECORDS_AT_ONCE
    assert exists(raw, names) == [False] * MANY


def test_topics_that_are_created_by_asking_for_them_are_so_in_one_batch(
    raw, names, batches, published
):
    """One Metadata request may name thousands of topics that are not there."""
    asked = {"topics": [{"name": each} for each in names], "allow_auto_topic_creation": True}
    told = raw.ask("metadata", 12, asked)["topics"]
    assert [each["name"] for each in told] == names
    assert [len(each["partitions"]) for each in told] == [1] * MANY
    assert batches == [2 * MANY]
    assert most(published) <= RECORDS_AT_ONCE


def test_a_topic_of_many_partitions_is_published_in_portions(raw, name, published):
    create(raw, name, partitions=5 * RECORDS_AT_ONCE)
    assert len(published) > 5 * RECORDS_AT_ONCE
    assert most(published) <= RECORDS_AT_ONCE


def test_a_name_given_twice_is_refused_however_far_apart(raw, names):
    twice = [*names, names[0]]
    answers = create_all(raw, new_topics(*twice))
    assert [each["name"] for each in answers] == names
    assert codes(answers) == ["invalid_request"] + ["none"] * (MANY - 1)
    grown = grow_all(raw, [*names[1:], names[1]], 2)
    assert codes(grown) == ["invalid_request"] + ["none"] * (MANY - 2)
    altered = alter_all(raw, [*names[1:], names[1]])
    refused = "invalid_request"
    assert codes(altered) == [refused] + ["none"] * (MANY - 2) + [refused]
    assert altered[0]["resource_name"] == altered[-1]["resource_name"] == names[1]


def test_a_topic_deleted_by_name_and_by_id_is_deleted_once_however_far_apart(raw, names):
    made = create_all(raw, new_topics(*names))
    wanted = [{"name": each} for each in names] + [{"topic_id": made[0]["topic_id"]}]
    answers = delete_all(raw, wanted)
    assert sorted(codes(answers)) == ["invalid_request"] + ["none"] * MANY
    assert exists(raw, names) == [False] * MANY


def test_names_of_one_request_do_not_collide_with_each_other(raw, name, names):
    """As in Kafka, which looks at the topics that were there before."""
    alike = [f"{name}.x", *names, f"{name}_x"]
    assert codes(create_all(raw, new_topics(*alike))) == ["none"] * len(alike)


def test_to_validate_many_creates_none(raw, names):
    answers = create_all(raw, new_topics(*names), validate_only=True)
    assert codes(answers) == ["none"] * MANY
    assert exists(raw, names) == [False] * MANY


def test_too_many_partitions_in_all_topics_together_are_refused(raw, names):
    answers = create_all(raw, new_topics(*names, partitions=41))
    assert codes(answers) == ["policy_violation"] * MANY
    assert exists(raw, names) == [False] * MANY


def test_to_change_too_much_in_one_request_is_refused(raw, names):
    """As in Kafka: all of it, and each thing that is named."""
    create_all(raw, new_topics(*names))
    far_too_many = [{"name": each} for each in names * (CHANGES_MAX // MANY + 1)]
    answers = delete_all(raw, far_too_many)
    assert [each["name"] for each in answers] == names
    assert codes(answers) == ["policy_violation"] * MANY
    settings = [{"name": f"x{n}", "value": "", "config_operation": 1} for n in range(100)]
    changes = [
        {"resource_type": TOPIC, "resource_name": each, "configs": settings} for each in names
    ]
    answers = raw.ask("incremental_alter_configs", 1, {"resources": changes})["responses"]
    assert codes(answers) == ["policy_violation"] * MANY
    assert exists(raw, names) == [True] * MANY


def test_a_large_topic_that_is_there_already_is_refused(raw, name):
    assert codes(create_all(raw, new_topics(name, partitions=MANY))) == ["none"]
    assert codes(create_all(raw, new_topics(name, partitions=MANY))) == ["topic_already_exists"]


def test_to_validate_a_large_topic_changes_nothing(raw, name):
    large = new_topics(name, partitions=MANY)
    assert codes(create_all(raw, large, validate_only=True)) == ["none"]
    assert exists(raw, [name]) == [False]
    create_all(raw, new_topics(name))
    assert codes(grow_all(raw, [name], MANY, validate_only=True)) == ["none"]
    assert codes(grow_all(raw, [name], 1_000_000)) == ["policy_violation"]
    assert codes(grow_all(raw, [name], 2)) == ["none"]
