"""Changing settings (TOP-18): incrementally and as a whole, in Kafka's words."""

import pytest

from strom.metadata.config_decisions import Alteration, Operation
from strom.metadata.outcome import CHANGES_MAX, Refusal
from strom.wire.errors import ErrorCode, KafkaError
from tests.metadata.cluster import Cluster

TOPIC = (2, "t")
BROKER = (4, "1")
ALL_BROKERS = (4, "")


@pytest.fixture
def cluster():
    made = Cluster()
    made.create("t", configs=(("retention.ms", "5"),))
    return made


def alter(cluster, resource, *alterations, validate_only=False):
    reply = cluster.do(
        cluster.controller.incrementally_alter_configs(
            [(resource, tuple(Alteration(*each) for each in alterations))],
            validate_only=validate_only,
        )
    )
    return reply[resource]


def replace(cluster, resource, config, validate_only=False):
    decision = cluster.controller.replace_configs([(resource, config)], validate_only=validate_only)
    return cluster.do(decision)[resource]


def test_one_setting_changes_and_the_others_stay(cluster):
    assert alter(cluster, TOPIC, ("cleanup.policy", Operation.SET, "compact")) is None
    assert dict(cluster.image.config(TOPIC)) == {"retention.ms": "5", "cleanup.policy": "compact"}


def test_a_deleted_setting_is_as_never_set(cluster):
    assert alter(cluster, TOPIC, ("retention.ms", Operation.DELETE)) is None
    assert dict(cluster.image.config(TOPIC)) == {}
    assert alter(cluster, TOPIC, ("bogus", Operation.DELETE)) is None


def test_a_list_grows_from_its_default_and_shrinks(cluster):
    alter(cluster, TOPIC, ("cleanup.policy", Operation.APPEND, "compact,delete"))
    assert cluster.image.config(TOPIC)["cleanup.policy"] == "delete,compact"
    alter(cluster, TOPIC, ("cleanup.policy", Operation.SUBTRACT, "delete"))
    assert cluster.image.config(TOPIC)["cleanup.policy"] == "compact"


def test_what_is_set_already_is_not_written_again_but_for_brokers(cluster):
    ask = cluster.controller.incrementally_alter_configs
    same = (Alteration("retention.ms", Operation.SET, "5"),)
    assert ask([(TOPIC, same)], validate_only=False).records == ()
    alter(cluster, BROKER, ("retention.ms", Operation.SET, "5"))
    assert len(ask([(BROKER, same)], validate_only=False).records) == 1


SET = Operation.SET


@pytest.mark.parametrize(
    ("resource", "alteration", "code", "message"),
    [
        ((2, "no"), ("retention.ms", SET, "5"), "UNKNOWN_TOPIC_OR_PARTITION",
         "The topic 'no' does not exist."),
        ((2, ""), ("retention.ms", SET, "5"), "INVALID_REQUEST",
         "Default topic resources are not allowed."),
        ((32, ""), ("x", SET, "5"), "INVALID_REQUEST", "Default group resources are not allowed."),
        ((16, ""), ("x", SET, "5"), "INVALID_REQUEST", "Subscription name can't be empty"),
        ((99, "x"), ("x", SET, "5"), "INVALID_REQUEST", "Unknown resource type 99"),
        (TOPIC, ("bogus", SET, "5"), "INVALID_CONFIG", "Unknown topic config name: bogus"),
        (TOPIC, ("retention.ms", SET, None), "INVALID_REQUEST",
         "Null value not supported for : retention.ms"),
        (TOPIC, ("retention.ms", Operation.APPEND, "5"), "INVALID_CONFIG",
         "Can't APPEND to key retention.ms because its type is not LIST."),
        (TOPIC, ("retention.ms", Operation.SUBTRACT, "5"), "INVALID_CONFIG",
         "Can't SUBTRACT to key retention.ms because its type is not LIST."),
        (BROKER, ("min.insync.replicas", SET, "1"), "INVALID_CONFIG",
         "Broker-level min.insync.replicas cannot be altered while ELR is enabled."),
        (ALL_BROKERS, ("min.insync.replicas", Operation.DELETE), "INVALID_CONFIG",
         "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."),
    ],
)  # fmt: skip
def test_a_change_that_cannot_be_is_refused_in_kafkas_words(
    cluster, resource, alteration, code, message
):
    before = cluster.image
    assert alter(cluster, resource, alteration) == Refusal(ErrorCode[code], message)
    assert cluster.image == before


def test_a_resource_changes_as_a_whole_or_not_at_all(cluster):
    refused = alter(cluster, TOPIC, ("retention.ms", SET, "6"), ("bogus", SET, "1"))
    assert refused.code is ErrorCode.INVALID_CONFIG
    assert dict(cluster.image.config(TOPIC)) == {"retention.ms": "5"}


def test_a_setting_or_a_resource_named_twice_is_refused(cluster):
    twice = alter(cluster, TOPIC, ("retention.ms", SET, "6"), ("retention.ms", SET, "7"))
    assert twice == Refusal(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    change = (TOPIC, (Alteration("retention.ms", SET, "6"),))
    reply = cluster.controller.incrementally_alter_configs([change] * 2, validate_only=False).reply
    assert reply[TOPIC].message == "Each resource must appear at most once."


def test_replacing_takes_back_what_is_not_named(cluster):
    assert replace(cluster, TOPIC, {"cleanup.policy": "compact"}) is None
    assert dict(cluster.image.config(TOPIC)) == {"cleanup.policy": "compact"}
    assert replace(cluster, TOPIC, {"retention.ms": None}).code is ErrorCode.INVALID_REQUEST


def test_validating_only_writes_nothing(cluster):
    before = cluster.image
    assert alter(cluster, TOPIC, ("retention.ms", SET, "6"), validate_only=True) is None
    assert replace(cluster, TOPIC, {}, validate_only=True) is None
    assert cluster.image == before


def test_one_bad_resource_does_not_spoil_the_others(cluster):
    asked = [
        ((2, "no"), (Alteration("retention.ms", SET, "6"),)),
        (TOPIC, (Alteration("retention.ms", SET, "6"),)),
    ]
    reply = cluster.do(cluster.controller.incrementally_alter_configs(asked, validate_only=False))
    assert reply[TOPIC] is None
    assert reply[2, "no"].code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_so_many_settings_and_resources_are_changed_in_a_request_and_no_more(cluster):
    many = tuple((f"unknown.{number}", Operation.DELETE) for number in range(CHANGES_MAX + 1))
    config = {name: "1" for name, _ in many}
    resources = [((2, name), ()) for name, _ in many]
    change = cluster.controller.incrementally_alter_configs
    for ask in (
        lambda: alter(cluster, TOPIC, *many),
        lambda: replace(cluster, TOPIC, config),
        lambda: change(resources, validate_only=False),
    ):
        with pytest.raises(KafkaError) as caught:
            ask()
        assert caught.value.code is ErrorCode.POLICY_VIOLATION
    assert alter(cluster, TOPIC, *many[1:]) is None
    assert len(change(resources[1:], validate_only=False).reply) == CHANGES_MAX
