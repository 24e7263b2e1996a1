"""Topics and settings over the wire: what is done, what is refused, and in which words.

Each case is played to Strom and to Apache Kafka, whose answers are in `answers/admin.json`.
Rows: TOP-01, TOP-05, TOP-08, TOP-12, TOP-13, ADM; one bad item never spoils the others.
"""

import pytest

from tests.conformance.batches import batch
from tests.conformance.transcript import check, is_peer, play

TOPIC, BROKER, LOGGER = 2, 4, 8
SET, DELETE, APPEND, SUBTRACT = range(4)
NEWEST = {
    "create_topics": 7,
    "delete_topics": 6,
    "create_partitions": 3,
    "alter_configs": 2,
    "incremental_alter_configs": 1,
    "describe_configs": 4,
    "metadata": 13,
    "delete_records": 2,
    "list_offsets": 11,
    "describe_topic_partitions": 0,
    "produce": 12,
    "offset_for_leader_epoch": 4,
    "describe_producers": 0,
    "elect_leaders": 2,
}


def ask(talk, api, only=None, **values):
    return talk.ask(api, NEWEST[api], {"timeout": 10000, **values}, only=only)


def create(talk, *topics, **values):
    filled = [{"num_partitions": 1, "replication_factor": 1} | topic for topic in topics]
    return ask(talk, "create_topics", topics=filled, **values)


def settings(**values):
    return [{"name": k.replace("_", "."), "value": v} for k, v in values.items()]


def names_are_checked(talk):
    for name in ("", ".", "..", "a b", "a/b", "ä", "x" * 250, "a:b", "__cluster_metadata"):
        create(talk, {"name": name}, validate_only=True)
    create(talk, {"name": "x" * 249}, validate_only=True)


def names_that_collide_in_metrics_are_refused(talk):
    talk.create(".a_b")
    create(talk, {"name": talk.topic("_a.b")})
    create(talk, {"name": talk.topic("_a_b")})


def a_taken_name_is_refused(talk):
    talk.create()
    create(talk, {"name": talk.topic()})
    create(talk, {"name": talk.topic()}, validate_only=True)


def one_bad_topic_does_not_spoil_the_others(talk):
    create(talk, {"name": talk.topic("-good")}, {"name": "bad name"}, {"name": talk.topic("-too")})


def a_name_given_twice_is_refused(talk):
    create(talk, {"name": talk.topic()}, {"name": talk.topic()})


def partition_counts_are_checked(talk):
    for count in (0, -2):
        create(talk, {"name": talk.topic(), "num_partitions": count})
    create(talk, {"name": talk.topic("-default"), "num_partitions": -1})


def replication_factors_are_checked(talk):
    for factor in (0, -2, 2, 4):
        create(talk, {"name": talk.topic(), "replication_factor": factor})
    create(talk, {"name": talk.topic("-default"), "replication_factor": -1})


def assignment(*replicas):
    return [
        {"partition_index": index, "broker_ids": list(ids)} for index, ids in enumerate(replicas)
    ]


def given_assignments_are_checked(talk):
    free = {"num_partitions": -1, "replication_factor": -1}
    create(talk, {"name": talk.topic("-ok"), **free, "assignments": assignment([1], [1])})
    create(talk, {"name": talk.topic(), **free, "assignments": assignment([7])})
    create(talk, {"name": talk.topic(), **free, "assignments": assignment([1, 1])})
    create(talk, {"name": talk.topic(), **free, "assignments": assignment([])})
    create(talk, {"name": talk.topic(), "assignments": assignment([1])})
    gap = [{"partition_index": 1, "broker_ids": [1]}]
    create(talk, {"name": talk.topic(), **free, "assignments": gap})


def settings_of_a_new_topic_are_checked(talk):
    for bad in (
        {"retention_ms": "soon"},
        {"cleanup_policy": "burn"},
        {"max_message_bytes": "-1"},
        {"no_such_thing": "1"},
        {"segment_bytes": "1"},
        {"compression_type": "rar"},
        {"message_timestamp_type": "Never"},
        {"min_insync_replicas": "0"},
        {"preallocate": "maybe"},
        {"retention_ms": None},
        {"min_cleanable_dirty_ratio": "2"},
        {"flush_messages": "0"},
        {"segment_ms": "0"},
        {"delete_retention_ms": "-1"},
    ):
        create(talk, {"name": talk.topic(), "configs": settings(**bad)})


def settings_of_a_new_topic_are_told(talk):
    given = settings(retention_ms="1234", cleanup_policy="compact,delete")

    def only_given(answer):
        (topic,) = answer["topics"]
        keep = {"retention.ms", "cleanup.policy", "segment.bytes"}
        topic["configs"] = [each for each in topic["configs"] if each["name"] in keep]
        return answer

    topic = {"name": talk.topic(), "num_partitions": 3, "replication_factor": 1, "configs": given}
    ask(talk, "create_topics", topics=[topic], only=only_given)


def nothing_is_made_by_validating(talk):
    create(talk, {"name": talk.topic()}, validate_only=True)
    ask(talk, "metadata", topics=[{"name": talk.topic()}], allow_auto_topic_creation=False)


def topics_are_deleted_by_name_and_by_id(talk):
    topic_id = talk.create("-by-id")
    talk.create("-by-name")
    ask(talk, "delete_topics", topics=[{"name": talk.topic("-by-name")}])
    ask(talk, "delete_topics", topics=[{"topic_id": topic_id, "name": None}])
    ask(talk, "delete_topics", topics=[{"topic_id": topic_id, "name": None}])
    ask(talk, "delete_topics", topics=[{"name": talk.topic("-by-name")}])


def a_deletion_asked_oddly_is_refused(talk):
    topic_id = talk.create()
    ask(talk, "delete_topics", topics=[{"name": talk.topic(), "topic_id": topic_id}])
    ask(talk, "delete_topics", topics=[{"name": talk.topic()}, {"name": talk.topic()}])
    ask(talk, "delete_topics", topics=[{"name": None}])


def partitions_are_added(talk):
    talk.create(partitions=2)

    def grow(count, assignments=None, suffix="", **values):
        topic = {"name": talk.topic(suffix), "count": count, "assignments": assignments}
        ask(talk, "create_partitions", topics=[topic], **values)

    grow(1)
    grow(2)
    grow(0)
    grow(-1)
    grow(3, suffix="-none")
    grow(3, [{"broker_ids": [9]}])
    grow(3, [{"broker_ids": [1]}, {"broker_ids": [1]}])
    grow(4, [{"broker_ids": [1]}])
    grow(3, [{"broker_ids": [1, 1]}])
    grow(5, validate_only=True)
    grow(3, [{"broker_ids": [1]}])
    grow(4)


def a_topic_to_grow_named_twice_is_refused(talk):
    talk.create()
    topic = {"name": talk.topic(), "count": 2}
    ask(talk, "create_partitions", topics=[topic, topic])


def change(talk, *changes, resource=None, **values):
    configs = [
        {"name": name, "config_operation": operation, "value": value}
        for name, operation, value in changes
    ]
    kind, name = resource or (TOPIC, talk.topic())
    asked = {"resource_type": kind, "resource_name": name, "configs": configs}
    ask(talk, "incremental_alter_configs", resources=[asked], **values)


def describe(talk, *keys, resource=None):
    kind, name = resource or (TOPIC, talk.topic())
    asked = {"resource_type": kind, "resource_name": name, "configuration_keys": list(keys) or None}
    talk.settle()
    ask(talk, "describe_configs", resources=[asked], include_synonyms=True)


def lists_are_appended_to_and_subtracted_from(talk):
    talk.create()
    change(talk, ("cleanup.policy", APPEND, "compact"))
    describe(talk, "cleanup.policy")
    change(talk, ("cleanup.policy", APPEND, "compact"))
    describe(talk, "cleanup.policy")
    change(talk, ("cleanup.policy", SUBTRACT, "delete"))
    describe(talk, "cleanup.policy")
    change(talk, ("cleanup.policy", DELETE, None))
    describe(talk, "cleanup.policy")
    change(talk, ("retention.ms", APPEND, "1"))
    change(talk, ("retention.ms", SUBTRACT, "1"))
    for odd in ("", ",", " ", ",compact, delete ,", "compact,", "compact,,"):
        change(talk, ("cleanup.policy", APPEND, odd))
        describe(talk, "cleanup.policy")
    for odd in ("", ",", ",compact", "gone, compact ,"):
        change(talk, ("cleanup.policy", SUBTRACT, odd))
        describe(talk, "cleanup.policy")


def what_is_twice_in_a_list_is_there_once(talk):
    talk.create(cleanup_policy="delete,delete")
    describe(talk, "cleanup.policy")
    change(talk, ("cleanup.policy", SET, "compact,delete,compact"))
    describe(talk, "cleanup.policy")
    given = {"resource_type": TOPIC, "resource_name": talk.topic()}
    twice = settings(cleanup_policy="delete,delete")
    ask(talk, "alter_configs", resources=[given | {"configs": twice}])
    describe(talk, "cleanup.policy")


def changes_of_settings_are_checked(talk):
    talk.create()
    change(talk, ("retention.ms", SET, "soon"))
    change(talk, ("no.such.thing", SET, "1"))
    change(talk, ("retention.ms", SET, None))
    change(talk, ("retention.ms", 9, "1"))
    change(talk, ("retention.ms", SET, "1"), ("retention.ms", SET, "2"))
    change(talk, ("retention.ms", SET, "1"), resource=(TOPIC, talk.topic("-none")))
    change(talk, ("retention.ms", SET, "1"), resource=(99, talk.topic()))
    change(talk, ("retention.ms", SET, "1"), resource=(TOPIC, ""))
    change(talk, ("retention.ms", SET, "77"), validate_only=True)
    describe(talk, "retention.ms")
    change(talk, ("retention.ms", SET, "77"), ("segment.ms", SET, "88"))
    describe(talk, "retention.ms", "segment.ms", "no.such.thing")
    change(talk, ("retention.ms", DELETE, None))
    describe(talk, "retention.ms", "segment.ms")


def a_full_change_replaces_all(talk):
    talk.create(retention_ms=5, segment_ms=6)
    given = {"resource_type": TOPIC, "resource_name": talk.topic()}
    ask(talk, "alter_configs", resources=[given | {"configs": settings(flush_ms="9")}])
    describe(talk, "retention.ms", "segment.ms", "flush.ms")
    ask(talk, "alter_configs", resources=[given | {"configs": settings(flush_ms="x")}])
    ask(talk, "alter_configs", resources=[given | {"configs": settings(flush_ms=None)}])
    ask(talk, "alter_configs", resources=[given | {"configs": []}])
    describe(talk, "flush.ms")


def broker_settings_change_as_far_as_kafka_lets_them(talk):
    node, default = (BROKER, "1"), (BROKER, "")
    change(talk, ("log.dirs", SET, "/elsewhere"), resource=node)
    change(talk, ("broker.id", SET, "3"), resource=node)
    change(talk, ("listeners", SET, "PLAINTEXT://:1"), resource=default)
    change(talk, ("log.retention.ms", SET, "soon"), resource=default)
    change(talk, ("log.retention.ms", SET, "1"), resource=(BROKER, "99"))
    change(talk, ("log.retention.ms", SET, "1"), resource=(BROKER, "one"))
    change(talk, ("min.insync.replicas", SET, "0"), resource=node)
    change(talk, ("min.insync.replicas", SET, "2"), resource=node)
    of_listener = "listener.name.plaintext."
    change(talk, (f"{of_listener}max.connections", SET, "5000"), resource=default)
    change(talk, (f"{of_listener}max.connections", DELETE, None), resource=default)
    change(talk, (f"{of_listener}ssl.keystore.location", SET, "/x"), resource=default)
    change(talk, ("log.cleaner.io.buffer.size", SET, "600000"), resource=default)
    describe(talk, "log.cleaner.io.buffer.size", resource=node)
    change(talk, ("log.cleaner.io.buffer.size", SET, "700000"), resource=node)
    describe(talk, "log.cleaner.io.buffer.size", resource=node)
    describe(talk, "log.cleaner.io.buffer.size", resource=default)
    change(talk, ("log.cleaner.io.buffer.size", DELETE, None), resource=node)
    change(talk, ("log.cleaner.io.buffer.size", DELETE, None), resource=default)
    describe(talk, "log.cleaner.io.buffer.size", resource=node)


def threads_are_doubled_or_halved_at_most(talk):
    default = (BROKER, "")
    # Only what is refused: another test's broker shall have the threads that it began with.
    for name, value in (
        ("background.threads", "21"),
        ("background.threads", "4"),
        ("background.threads", "0"),
        ("num.io.threads", "100"),
        ("num.network.threads", "100"),
        ("log.cleaner.threads", "3"),
    ):
        change(talk, (name, SET, value), resource=default)


def a_description_of_what_is_not_there_is_refused(talk):
    describe(talk, resource=(TOPIC, talk.topic("-none")))
    describe(talk, resource=(TOPIC, "a b"))
    describe(talk, resource=(BROKER, "99"))
    describe(talk, resource=(BROKER, "one"))
    describe(talk, resource=(99, "x"))
    describe(talk, resource=(TOPIC, ""))
    for name in ("99", "one", ""):
        describe(talk, resource=(LOGGER, name))


def every_setting_of_a_topic_is_described(talk):
    talk.create(retention_ms=86400000)
    describe(talk)


def metadata_tells_what_is_asked(talk):
    topic_id = talk.create(partitions=2)
    none = {"name": talk.topic("-none")}
    ask(talk, "metadata", topics=[{"name": talk.topic()}, none], allow_auto_topic_creation=False)
    ask(talk, "metadata", topics=[{"name": None, "topic_id": topic_id}])
    unknown = "00000000-0000-0000-0000-00000000abcd"
    ask(talk, "metadata", topics=[{"name": None, "topic_id": type(topic_id)(unknown)}])
    ask(talk, "metadata", topics=[])
    ask(talk, "metadata", topics=[{"name": "bad name"}], allow_auto_topic_creation=True)
    authorized = {"include_topic_authorized_operations": True}
    ask(talk, "metadata", topics=[{"name": talk.topic()}], **authorized)


def metadata_goes_by_the_id_and_tells_a_topic_once(talk):
    topic_id = talk.create()
    unknown = type(topic_id)(int=0xABCD)
    ask(talk, "metadata", topics=[{"name": talk.topic("-none"), "topic_id": topic_id}])
    ask(talk, "metadata", topics=[{"name": talk.topic(), "topic_id": unknown}])
    ask(talk, "metadata", topics=[{"name": talk.topic()}] * 2)
    ask(talk, "metadata", topics=[{"name": None, "topic_id": topic_id}] * 2)


def metadata_by_id_is_for_those_who_know_of_it(talk):
    """Versions 10 and 11 have the field, and refuse it; where there are ids, only they count."""
    topic_id = talk.create()
    named, by_id = {"name": talk.topic()}, {"name": None, "topic_id": topic_id}
    both = {"name": talk.topic(), "topic_id": topic_id}
    unknown = {"name": None, "topic_id": type(topic_id)(int=0xABCD)}
    authorized = {
        "allow_auto_topic_creation": False,
        "include_topic_authorized_operations": True,
        "include_cluster_authorized_operations": True,
    }
    nameless = {"name": None}
    talk.ask("metadata", 9, {"topics": [both], **authorized})
    for version in (10, 11):
        for topics in ([named, both], [by_id], [both], [nameless]):
            talk.ask("metadata", version, {"topics": topics, **authorized})
    talk.ask("metadata", 12, {"topics": [named, both], **authorized})
    for topics in ([named, unknown], [by_id, named]):
        ask(talk, "metadata", topics=topics, **authorized)


def pages_of_partitions_follow_the_cursor(talk):
    talk.create("-a", partitions=3)
    talk.create("-b", partitions=2)
    topics = [{"name": talk.topic("-b")}, {"name": talk.topic("-a")}]
    cursor = None
    for _ in range(4):
        asked = {"topics": topics, "response_partition_limit": 2, "cursor": cursor}
        cursor = ask(talk, "describe_topic_partitions", **asked)["next_cursor"]
        if cursor is None:
            return


def partitions_that_are_not_there_are_told(talk):
    ask(talk, "describe_topic_partitions", topics=[{"name": talk.topic("-none")}])
    ask(talk, "describe_topic_partitions", topics=[{"name": "bad name"}])


def fill(talk, batches=3):
    for _ in range(batches):
        data = {"index": 0, "records": batch([b"a", b"b"])}
        topic = {"name": talk.topic(), "partition_data": [data]}
        talk.raw.ask("produce", 9, {"acks": -1, "timeout": 5000, "topic_data": [topic]})


def cut(talk, offset, index=0, suffix=""):
    partition = {"partition_index": index, "offset": offset}
    ask(talk, "delete_records", topics=[{"name": talk.topic(suffix), "partitions": [partition]}])


def records_are_deleted_up_to_an_offset(talk):
    talk.create()
    fill(talk)
    cut(talk, 3)
    cut(talk, 1)
    cut(talk, 7)
    cut(talk, -2)
    cut(talk, 0, index=5)
    cut(talk, 0, suffix="-none")
    cut(talk, -1)
    offsets(talk, -2, -1, -4, -5)


def records_of_a_compacted_topic_are_not_deleted(talk):
    talk.create(cleanup_policy="compact")
    cut(talk, 0)


def offsets(talk, *times, index=0, epoch=-1, isolation=0):
    for time in times:
        wanted = {"partition_index": index, "timestamp": time, "current_leader_epoch": epoch}
        topics = [{"name": talk.topic(), "partitions": [wanted]}]
        asked = {"replica_id": -1, "isolation_level": isolation, "topics": topics}
        ask(talk, "list_offsets", **asked)


def offsets_are_found(talk):
    talk.create()
    offsets(talk, -1, -2, -3, -4, -5, 0)
    fill(talk)
    offsets(talk, -1, -2, -3, -4, -5, 0, 1_700_000_000_000, 1_700_000_000_001, -9)
    offsets(talk, -1, index=3)
    offsets(talk, -1, epoch=0, isolation=1)
    offsets(talk, -1, epoch=4)


def epochs_end_where_they_end(talk):
    talk.create()
    fill(talk)
    for current, epoch in ((-1, 0), (-1, 5), (0, 0), (3, 0), (-1, -1)):
        partition = {"partition": 0, "current_leader_epoch": current, "leader_epoch": epoch}
        topics = [{"topic": talk.topic(), "partitions": [partition]}]
        ask(talk, "offset_for_leader_epoch", replica_id=-2, topics=topics)


CASES = (
    names_are_checked,
    names_that_collide_in_metrics_are_refused,
    a_taken_name_is_refused,
    one_bad_topic_does_not_spoil_the_others,
    a_name_given_twice_is_refused,
    partition_counts_are_checked,
    replication_factors_are_checked,
    given_assignments_are_checked,
    settings_of_a_new_topic_are_checked,
    settings_of_a_new_topic_are_told,
    nothing_is_made_by_validating,
    topics_are_deleted_by_name_and_by_id,
    a_deletion_asked_oddly_is_refused,
    partitions_are_added,
    a_topic_to_grow_named_twice_is_refused,
    lists_are_appended_to_and_subtracted_from,
    what_is_twice_in_a_list_is_there_once,
    changes_of_settings_are_checked,
    a_full_change_replaces_all,
    broker_settings_change_as_far_as_kafka_lets_them,
    threads_are_doubled_or_halved_at_most,
    a_description_of_what_is_not_there_is_refused,
    every_setting_of_a_topic_is_described,
    metadata_tells_what_is_asked,
    metadata_goes_by_the_id_and_tells_a_topic_once,
    metadata_by_id_is_for_those_who_know_of_it,
    pages_of_partitions_follow_the_cursor,
    partitions_that_are_not_there_are_told,
    records_are_deleted_up_to_an_offset,
    records_of_a_compacted_topic_are_not_deleted,
    offsets_are_found,
    epochs_end_where_they_end,
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_is_answered_as_kafka_does(case, either, name, request):
    """BRK-04."""
    check("admin", case.__name__, play(case, either.bootstrap, name), peer=is_peer(request))
