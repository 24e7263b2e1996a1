"""What no client asks on purpose: values that are odd, lists that repeat, things named twice.

Each case was found by playing random requests to both brokers. They are played to Strom and to
Apache Kafka, whose answers are in `answers/admin_odd.json`. Rows: TOP-18, ADM.
"""

import pytest

from tests.conformance.test_admin import (
    APPEND,
    BROKER,
    SET,
    SUBTRACT,
    TOPIC,
    ask,
    change,
    create,
    describe,
    fill,
    settings,
)
from tests.conformance.transcript import check, is_peer, play

CLIENT_METRICS, GROUP = 16, 32
REPLICAS = "leader.replication.throttled.replicas"
UNKNOWN_TYPE, UNKNOWN_OPERATION = 77, 9


def lists_repeat(talk):
    talk.create()
    for operation, value in (
        (SET, "delete,compact,delete"),
        (SUBTRACT, "delete"),
        (SUBTRACT, "delete"),
        (APPEND, "delete,delete"),
        (SET, ","),
        (SET, " , ,"),
    ):
        change(talk, ("cleanup.policy", operation, value))
        describe(talk, "cleanup.policy")
    for operation, value in (
        (SET, "0:1,0:1"),
        (APPEND, "0:1,1:1,1:1"),
        (SUBTRACT, "0:1"),
        (SET, "0:1,"),
        (SET, "*,*"),
    ):
        change(talk, (REPLICAS, operation, value))
        describe(talk, REPLICAS)


def lists_of_a_subscription_repeat(talk):
    resource = (CLIENT_METRICS, talk.topic())
    for name, value in (
        ("metrics", "a,a, b "),
        ("metrics", ","),
        ("match", "client_id=a,client_id=a"),
        ("match", "client_id="),
        ("match", "client_id=a=b"),
    ):
        change(talk, (name, SET, value), resource=resource)
        describe(talk, name, resource=resource)
    ask(talk, "alter_configs", resources=[{"resource_type": 16, "resource_name": talk.topic()}])


def values_are_read_as_java_reads_them(talk):
    talk.create()
    for name, value in (
        ("retention.ms", "1\u00a0"),
        ("retention.ms", "\x1f1\x00"),
        ("preallocate", "true\u2003"),
        ("cleanup.policy", "delete,\u00a0compact"),
        ("cleanup.policy", "delete\x00,compact"),
        ("min.cleanable.dirty.ratio", "0.5f"),
        ("min.cleanable.dirty.ratio", "1\n"),
        ("min.cleanable.dirty.ratio", "ff"),
    ):
        change(talk, (name, SET, value), validate_only=True)
    for span in ("P1D", "PT1.5S", "", "P", "PT", "Px", "P1W", "-PT1H"):
        reset = ("share.auto.offset.reset", SET, f"by_duration:{span}")
        change(talk, reset, resource=(GROUP, talk.topic()), validate_only=True)


def nobody_is_shut_out(talk):
    for prefix in ("", "listener.name.plaintext."):
        for name in ("max.connections", "max.connection.creation.rate"):
            for resource in ((BROKER, "1"), (BROKER, "")):
                change(talk, (prefix + name, SET, "0"), resource=resource, validate_only=True)


def lists_of_a_broker_have_words_of_their_own(talk):
    for name in ("num.io.threads", "foo.bar", "listener.name.plaintext.max.connections"):
        for operation in (APPEND, SUBTRACT, UNKNOWN_OPERATION):
            change(talk, (name, operation, "1"), resource=(BROKER, "1"))
            change(talk, (name, operation, "1"), resource=(BROKER, ""))


def what_is_wrong_with_the_request_is_told_first(talk):
    retention = ("retention.ms", SET, "soon")
    change(talk, retention, resource=(TOPIC, talk.topic("-none")))
    change(talk, ("segment.ms", APPEND, "1"), resource=(UNKNOWN_TYPE, "x"))
    change(talk, ("segment.ms", UNKNOWN_OPERATION, "1"), resource=(UNKNOWN_TYPE, "x"))
    change(talk, ("num.io.threads", SET, "8"), resource=(BROKER, " 1"))
    change(talk, ("num.io.threads", SET, None), resource=(BROKER, "7"))
    change(talk, ("segment.ms", SET, None), ("retention.ms", APPEND, None))
    given = {"resource_type": TOPIC, "resource_name": talk.topic("-none")}
    for values in ({"retention_ms": "soon"}, {"retention_ms": None, "segment_ms": None}):
        ask(talk, "alter_configs", resources=[given | {"configs": settings(**values)}])


def topics_named_twice_do_not_count(talk):
    twice = {"name": talk.topic(), "num_partitions": 10_001}
    create(talk, twice, {"name": talk.topic("-good")}, twice, validate_only=True)


def features_need_no_time(talk):
    for level in (2, -1):
        update = {"feature": "transaction.version", "max_version_level": level}
        asked = {"timeout": 0, "feature_updates": [update], "validate_only": True}
        talk.ask("update_features", 2, asked)


def records_are_deleted_up_to_the_last_offset(talk):
    talk.create()
    fill(talk)
    topics = [
        {"name": talk.topic(), "partitions": [{"partition_index": 0, "offset": offset}]}
        for offset in (5, 1)
    ]
    nothing = {"name": talk.topic("-none"), "partitions": []}
    ask(talk, "delete_records", topics=[*topics, nothing])


def names_may_be_too_long_to_move(talk):
    for length in (213, 214, 249):
        # Nobody has made it, and its name is the same each time.
        moved = {"name": "x" * length, "partitions": [0, 0]}
        talk.ask("alter_replica_log_dirs", 2, {"dirs": [{"path": "/nowhere", "topics": [moved]}]})


def strings_have_a_limit(talk):
    for length in (32_767, 32_768):
        topics = {"topics": [{"name": "x" * length}], "allow_auto_topic_creation": False}
        talk.raw.send("metadata", 12, topics)
        talk.lines.append({f"{length} bytes are answered": talk.raw.read_frame() is not None})


CASES = (
    lists_repeat,
    lists_of_a_subscription_repeat,
    values_are_read_as_java_reads_them,
    nobody_is_shut_out,
    lists_of_a_broker_have_words_of_their_own,
    what_is_wrong_with_the_request_is_told_first,
    topics_named_twice_do_not_count,
    features_need_no_time,
    records_are_deleted_up_to_the_last_offset,
    names_may_be_too_long_to_move,
    strings_have_a_limit,
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_is_answered_as_kafka_does(case, either, name, request):
    check("admin_odd", case.__name__, play(case, either.bootstrap, name), peer=is_peer(request))
