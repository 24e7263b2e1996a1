"""Creating, deleting and growing topics (TOP-02, 06, 07, 08, 12 … 15, 18): codes and texts."""

from random import Random
from uuid import UUID

import pytest

from strom.metadata.outcome import CHANGES_MAX, Refusal
from strom.metadata.topic_decisions import MorePartitions, NewTopic, TopicReference
from strom.wire.errors import ErrorCode, KafkaError
from tests.metadata.cluster import Cluster, directory_of


def grow(cluster, *asked, validate_only=False):
    return cluster.do(
        cluster.controller.create_partitions(asked, rng=Random(0), validate_only=validate_only)
    )


def delete(cluster, *asked):
    return cluster.do(cluster.controller.delete_topics(asked))


def test_a_topic_is_created_with_partitions_replicas_and_settings():
    """TOP-01."""
    cluster = Cluster(brokers=3)
    created = cluster.create("flugdaten", 3, 2, configs=(("retention.ms", "5"),))
    assert (created.partition_count, created.replication_factor) == (3, 2)
    assert created.configs == {"retention.ms": "5"}
    topic = cluster.image.topics_by_id[created.id]
    assert sorted(topic.partitions) == [0, 1, 2]
    for partition in topic.partitions.values():
        assert partition.leader == partition.replicas[0]
        assert partition.isr == partition.replicas
        assert partition.directories == tuple(directory_of(each) for each in partition.replicas)
        assert (partition.leader_epoch, partition.partition_epoch) == (0, 0)
    assert dict(cluster.image.config((2, "flugdaten"))) == {"retention.ms": "5"}


def test_what_is_not_asked_for_is_the_clusters_default():
    created = Cluster().create("t", -1, -1)
    assert (created.partition_count, created.replication_factor) == (1, 1)


REFUSED = [
    (NewTopic("t", 0, 1), "INVALID_PARTITIONS",
     "Number of partitions was set to an invalid non-positive value."),
    (NewTopic("t", -2, 1), "INVALID_PARTITIONS",
     "Number of partitions was set to an invalid non-positive value."),
    (NewTopic("t", 1, 0), "INVALID_REPLICATION_FACTOR",
     "Replication factor must be larger than 0, or -1 to use the default value."),
    (NewTopic("t", 1, 2), "INVALID_REPLICATION_FACTOR",
     "Unable to replicate the partition 2 time(s): The target replication factor of 2 cannot be "
     "reached because only 1 broker(s) are registered or some brokers have all their log "
     "directories cordoned."),
    (NewTopic("a b", 1, 1), "INVALID_TOPIC_EXCEPTION",
     "Topic name is invalid: 'a b' contains one or more characters other than ASCII "
     "alphanumerics, '.', '_' and '-'"),
    (NewTopic("is.there", 1, 1), "TOPIC_ALREADY_EXISTS", "Topic 'is.there' already exists."),
    (NewTopic("is_there", 1, 1), "INVALID_TOPIC_EXCEPTION",
     "Topic 'is_there' collides with existing topic: is.there"),
    (NewTopic("__cluster_metadata", 1, 1), "INVALID_REQUEST",
     "Creation of internal topic __cluster_metadata is prohibited."),
    (NewTopic("t", 1, 1, configs=(("bogus", "1"),)), "INVALID_CONFIG",
     "Unknown topic config name: bogus"),
    (NewTopic("t", 1, 1, configs=(("cleanup.policy", None),)), "INVALID_CONFIG",
     "Null value not supported for topic configs: cleanup.policy"),
    (NewTopic("t", 1, 1, configs=(("retention.ms", "9" * 40_000),)), "INVALID_CONFIG",
     "The configuration value cannot be added because it exceeds the maximum value size of "
     "32767 bytes."),
    (NewTopic("t", 1, -1, ((0, (1,)),)), "INVALID_REQUEST",
     "A manual partition assignment was specified, but numPartitions was not set to -1."),
    (NewTopic("t", -1, 1, ((0, (1,)),)), "INVALID_REQUEST",
     "A manual partition assignment was specified, but replication factor was not set to -1."),
    (NewTopic("t", assignments=((0, (1,)), (0, (1,)))), "INVALID_REPLICA_ASSIGNMENT",
     "Found multiple manual partition assignments for partition 0"),
    (NewTopic("t", assignments=((0, ()),)), "INVALID_REPLICA_ASSIGNMENT",
     "The manual partition assignment includes an empty replica list."),
    (NewTopic("t", assignments=((0, (7,)),)), "INVALID_REPLICA_ASSIGNMENT",
     "The manual partition assignment includes broker 7, but no such broker is registered."),
    (NewTopic("t", assignments=((0, (1, 1)),)), "INVALID_REPLICA_ASSIGNMENT",
     "The manual partition assignment includes the broker 1 more than once."),
    (NewTopic("t", assignments=((1, (1,)),)), "INVALID_REPLICA_ASSIGNMENT",
     "partitions should be a consecutive 0-based integer sequence"),
    (NewTopic("t", 10_001, 1), "POLICY_VIOLATION",
     "Excessively large number of partitions per request."),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "code", "message"), REFUSED)
def test_a_topic_that_cannot_be_is_refused_in_kafkas_words(cluster, asked, code, message):
    cluster.create("is.there")
    decision = cluster.decide_topics(asked)
    assert decision.records == ()
    assert decision.reply == {asked.name: Refusal(ErrorCode[code], message)}


def test_one_bad_topic_does_not_spoil_the_others(cluster):
    reply = cluster.do(cluster.decide_topics(NewTopic("a b"), NewTopic("good"), NewTopic("x", 0)))
    assert [isinstance(each, Refusal) for each in reply.values()] == [True, False, True]
    assert set(cluster.image.topics_by_name) == {"good"}


def test_a_name_asked_for_twice_is_refused_once():
    reply = Cluster().decide_topics(NewTopic("t"), NewTopic("t")).reply
    assert reply == {"t": Refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")}


def test_all_topics_of_a_request_together_have_a_limit():
    reply = Cluster().decide_topics(NewTopic("a", 6000), NewTopic("b", 6000)).reply
    assert {each.code for each in reply.values()} == {ErrorCode.POLICY_VIOLATION}


def test_so_many_topics_and_settings_are_a_request_and_no_more():
    settings = tuple((f"unknown.{number}", "1") for number in range(CHANGES_MAX + 1))
    reply = Cluster().decide_topics(NewTopic("a", configs=settings), NewTopic("b")).reply
    assert {each.code for each in reply.values()} == {ErrorCode.POLICY_VIOLATION}
    # One that is to have no partitions counts, too.
    empty = [NewTopic(f"t{number}", 0) for number in range(CHANGES_MAX + 1)]
    reply = Cluster().decide_topics(*empty).reply
    assert {each.code for each in reply.values()} == {ErrorCode.POLICY_VIOLATION}
    reply = Cluster().decide_topics(*empty[1:]).reply
    assert {each.code for each in reply.values()} == {ErrorCode.INVALID_PARTITIONS}


def test_validating_only_tells_the_same_and_writes_nothing(cluster):
    real = cluster.decide_topics(NewTopic("t", 2))
    checked = cluster.decide_topics(NewTopic("t", 2), validate_only=True)
    assert checked.reply == real.reply
    assert checked.records == ()


def test_a_manual_assignment_is_taken_as_it_is():
    cluster = Cluster(brokers=3)
    cluster.create("t", -1, -1, assignments=((1, (3, 1)), (0, (2, 3))))
    assert cluster.partition("t", 0).replicas == (2, 3)
    assert cluster.partition("t", 1).leader == 3


def test_manual_assignments_have_one_size_and_somebody_to_lead():
    cluster = Cluster(brokers=2)
    mixed = cluster.create("t", -1, -1, assignments=((0, (1,)), (1, (1, 2))))
    assert mixed.message == (
        "The manual partition assignment includes a partition with 2 replica(s), but this is not "
        "consistent with previous partitions, which have 1 replica(s)."
    )
    cluster.beat(2, want_fence=True)
    idle = cluster.create("t", -1, -1, assignments=((0, (2,)),))
    assert idle.message == (
        "All brokers specified in the manual partition assignment for partition 0 are fenced or "
        "in controlled shutdown."
    )


def test_a_fenced_replica_is_assigned_but_not_in_sync():
    cluster = Cluster(brokers=2)
    cluster.beat(1, want_fence=True)
    cluster.create("t", 1, 2)
    assert sorted(cluster.partition().replicas) == [1, 2]
    assert (cluster.partition().isr, cluster.partition().leader) == ((2,), 2)


def test_a_broker_with_several_directories_chooses_by_itself(cluster):
    cluster.register(2, directories=(directory_of(2), directory_of(2, 1)))
    cluster.beat(2)
    cluster.create("t", -1, -1, assignments=((0, (2,)),))
    assert cluster.partition().directories == (UUID(int=1),)


# Deleting.


def test_a_topic_is_deleted_by_name_or_by_id(cluster):
    first, second = cluster.create("a"), cluster.create("b")
    reply = delete(cluster, TopicReference("a"), TopicReference(id=second.id))
    assert [(each.name, each.id, each.refusal) for each in reply] == [
        ("a", first.id, None),
        ("b", second.id, None),
    ]
    assert not cluster.image.topics_by_id


def test_the_same_name_gets_a_new_id(cluster):
    before = cluster.create("t")
    delete(cluster, TopicReference("t"))
    after = cluster.do(cluster.decide_topics(NewTopic("t"), seed=1))["t"]
    assert before.id != after.id


UNKNOWN_ID = UUID(int=99)


@pytest.mark.parametrize(
    ("asked", "code", "message"),
    [
        ([TopicReference("no")], "UNKNOWN_TOPIC_OR_PARTITION",
         "This server does not host this topic-partition."),
        ([TopicReference(id=UNKNOWN_ID)], "UNKNOWN_TOPIC_ID",
         "This server does not host this topic ID."),
        ([TopicReference()], "INVALID_REQUEST", "Neither topic name nor id were specified."),
        ([TopicReference("t", UNKNOWN_ID)], "INVALID_REQUEST",
         "You may not specify both topic name and topic id."),
        ([TopicReference("t"), TopicReference("t")], "INVALID_REQUEST", "Duplicate topic name."),
        ([TopicReference(id=UNKNOWN_ID)] * 2, "INVALID_REQUEST", "Duplicate topic id."),
    ],
)  # fmt: skip
def test_a_deletion_that_cannot_be_is_refused_in_kafkas_words(cluster, asked, code, message):
    cluster.create("t")
    (told,) = delete(cluster, *asked)
    assert told.refusal == Refusal(ErrorCode[code], message)
    assert "t" in cluster.image.topics_by_name


def test_a_topic_named_by_name_and_by_id_is_deleted_once(cluster):
    created = cluster.create("t")
    reply = delete(cluster, TopicReference(id=created.id), TopicReference("t"))
    assert reply[0].refusal is None
    assert reply[1].refusal.message == (
        "The provided topic name maps to an ID that was already supplied."
    )
    assert not cluster.image.topics_by_id


# Growing.


def test_new_partitions_are_added_and_the_old_ones_stay():
    cluster = Cluster(brokers=3)
    cluster.create("t", 2, 2)
    before = [cluster.partition("t", index) for index in range(2)]
    assert grow(cluster, MorePartitions("t", 5)) == {"t": None}
    assert [cluster.partition("t", index) for index in range(2)] == before
    assert len({cluster.partition("t", index).leader for index in range(2, 5)}) == 3
    assert sorted(cluster.image.topics_by_name["t"].partitions) == list(range(5))


def test_new_partitions_can_be_placed_by_hand():
    cluster = Cluster(brokers=2)
    cluster.create("t", -1, -1, assignments=((0, (1,)),))
    grow(cluster, MorePartitions("t", 2, ((2,),)))
    assert cluster.partition("t", 1).leader == 2


@pytest.mark.parametrize(
    ("asked", "code", "message"),
    [
        (MorePartitions("no", 2), "UNKNOWN_TOPIC_OR_PARTITION", None),
        (MorePartitions("t", 2), "INVALID_PARTITIONS", "Topic already has 2 partition(s)."),
        (MorePartitions("t", 1), "INVALID_PARTITIONS",
         "The topic t currently has 2 partition(s); 1 would not be an increase."),
        (MorePartitions("t", -5), "INVALID_PARTITIONS",
         "The topic t currently has 2 partition(s); -5 would not be an increase."),
        (MorePartitions("t", 4, ((1,),)), "INVALID_REPLICA_ASSIGNMENT",
         "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified."),
        (MorePartitions("t", 3, ((7,),)), "INVALID_REPLICA_ASSIGNMENT",
         "The manual partition assignment includes broker 7, but no such broker is registered."),
        (MorePartitions("t", 20_000), "POLICY_VIOLATION",
         "Excessively large number of partitions per request."),
    ],
)  # fmt: skip
def test_what_is_no_growth_is_refused_in_kafkas_words(cluster, asked, code, message):
    cluster.create("t", 2)
    assert grow(cluster, asked) == {asked.name: Refusal(ErrorCode[code], message)}
    assert len(cluster.image.topics_by_name["t"].partitions) == 2


def test_all_growth_of_a_request_together_has_a_limit(cluster):
    cluster.create("a")
    cluster.create("b")
    half = CHANGES_MAX // 2
    reply = grow(cluster, MorePartitions("a", half + 2), MorePartitions("b", half + 1))
    refused = "Excessively large number of partitions per request."
    assert reply == {"a": None, "b": Refusal(ErrorCode.POLICY_VIOLATION, refused)}
    assert grow(cluster, MorePartitions("b", half + 1)) == {"b": None}


@pytest.mark.parametrize(
    ("change", "item"), [(delete, TopicReference("t")), (grow, MorePartitions("t", 2))]
)
def test_a_request_about_too_many_topics_is_refused_in_kafkas_words(change, item):
    with pytest.raises(KafkaError) as caught:
        change(Cluster(), *[item] * (CHANGES_MAX + 1))
    assert caught.value.code is ErrorCode.POLICY_VIOLATION
    assert caught.value.message == "Unable to perform excessively large batch operation."
    assert change(Cluster(), *[item] * CHANGES_MAX)


def test_growing_twice_in_one_request_or_only_checking_it_changes_nothing(cluster):
    cluster.create("t")
    twice = grow(cluster, MorePartitions("t", 2), MorePartitions("t", 3))
    assert twice == {"t": Refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")}
    assert grow(cluster, MorePartitions("t", 2), validate_only=True) == {"t": None}
    assert len(cluster.image.topics_by_name["t"].partitions) == 1
