"""Descriptions against what Apache Kafka 4.3.1 answered for the same settings (BRK-21, TOP-18)."""

from pathlib import Path

import pytest

from strom.metadata.settings import load
from strom.metadata.settings.catalogue import BROKER, TOPIC, Kind, Resource
from strom.metadata.settings.definition import TYPE_NAMES
from strom.metadata.settings.describe import describe

SOURCES = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    7: "CLIENT_METRICS_CONFIG",
    8: "GROUP_CONFIG",
}

STATIC = {
    "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "node.id": "1",
    "process.roles": "broker,controller",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "advertised.listeners": "PLAINTEXT://127.0.0.1:9092",
    "log.dirs": "/data/1",
    "log.retention.hours": "24",
    "num.partitions": "3",
    "my.own": "5",
    "log.cleaner.min.cleanable.ratio": ".25",
    "log.roll.hours": "48",
}
OWN = {
    "log.retention.ms": "1000000",
    "listener.name.plaintext.ssl.keystore.password": "secret",
}
#: The second is written by a controller that tracks eligible leaders.
CLUSTER = {"log.flush.interval.ms": "1000000", "min.insync.replicas": "1"}
TOPIC_OVERRIDES = {"segment.ms": "5000", "cleanup.policy": "compact"}

#: Strom has a default where Kafka has none, and shows the file's value although another unit is set
#: at run time, where Kafka shows its default.
DIFFERENT = {"node.id", "process.roles", "controller.listener.names", "log.retention.hours"}
#: The defaults that are other ones for a node that names itself alone.
ALONE = {
    "offsets.topic.replication.factor=3:DEFAULT": "offsets.topic.replication.factor=1:DEFAULT",
    "transaction.state.log.min.isr=2:DEFAULT": "transaction.state.log.min.isr=1:DEFAULT",
    "transaction.state.log.replication.factor=3:DEFAULT": (
        "transaction.state.log.replication.factor=1:DEFAULT"
    ),
}


@pytest.fixture
def settings():
    return load(STATIC).settings.with_dynamic(OWN, CLUSTER)


def line(prefix, described):
    synonyms = [
        f"{each.name}={'null' if each.value is None else each.value}:{SOURCES[each.source]}"
        for each in described.synonyms
    ]
    value = "null" if described.value is None else described.value
    flags = (str(described.read_only).lower(), str(described.sensitive).lower())
    parts = (prefix, described.name, value, SOURCES[described.source], *flags)
    return "|".join((*parts, TYPE_NAMES[described.type], " ".join(synonyms)))


@pytest.mark.parametrize(
    ("prefix", "resource", "overrides"),
    [
        ("BROKER1", Resource(Kind.BROKER, "1"), {}),
        ("BROKER", Resource(Kind.BROKER, ""), {}),
        ("TOPICprobe2", Resource(Kind.TOPIC, "probe2"), TOPIC_OVERRIDES),
        ("GROUPg2", Resource(Kind.GROUP, "g2"), {}),
    ],
)
def test_descriptions_are_kafkas(prefix, resource, overrides, settings):
    answers = (Path(__file__).parent / "kafka_4_3_described.txt").read_text()
    for its_default, ours in ALONE.items():
        assert its_default in answers
        answers = answers.replace(its_default, ours)
    kafkas = [each for each in answers.splitlines() if each.startswith(f"{prefix}|")]
    described = describe(resource, settings, overrides)
    mine = [line(prefix, each) for each in described if not each.name.startswith("strom.")]
    assert [each for each in mine if each.split("|")[1] not in DIFFERENT] == [
        each for each in kafkas if each.split("|")[1] not in DIFFERENT
    ]
    assert len(mine) == len(kafkas)


def test_only_what_is_asked_for_is_described(settings):
    asked = describe(Resource(Kind.TOPIC, "t"), settings, {}, ["retention.ms", "foo"])
    assert [each.name for each in asked] == ["retention.ms"]
    assert len(describe(Resource(Kind.TOPIC, "t"), settings, {}, [])) > 30


def test_the_documentation_is_there(settings):
    (described,) = describe(Resource(Kind.BROKER, "1"), settings, {}, ["num.partitions"])
    assert described.documentation == BROKER["num.partitions"].doc
    assert not described.is_default
    (described,) = describe(Resource(Kind.TOPIC, "t"), settings, {}, ["preallocate"])
    assert described.documentation == TOPIC["preallocate"].doc
    assert described.is_default


def test_a_name_that_nobody_knows_keeps_its_value_to_itself(settings):
    (described,) = describe(Resource(Kind.TOPIC, "t"), settings, {"foo": "secret"}, ["foo"])
    assert described.value is None
    assert described.sensitive
    cluster = settings.with_dynamic({}, {"foo": "secret"})
    (described,) = describe(Resource(Kind.BROKER, ""), cluster, {})
    assert described.value is None


def test_a_secret_is_never_shown(settings):
    secret = settings.with_dynamic({}, {"sasl.jaas.config": "password"})
    for resource in (Resource(Kind.BROKER, "1"), Resource(Kind.BROKER, "")):
        (described,) = describe(resource, secret, {}, ["sasl.jaas.config"])
        assert described.value is None
        assert {each.value for each in described.synonyms} == {None}


def test_internal_settings_are_shown_once_they_are_set(settings):
    topic = Resource(Kind.TOPIC, "t")
    assert not describe(topic, settings, {}, ["internal.segment.bytes"])
    name = "internal.segment.bytes"
    (described,) = describe(topic, settings, {name: "14"}, [name])
    assert described.value == "14"


def test_a_group_and_a_subscription_of_their_own(settings):
    name = "consumer.session.timeout.ms"
    (described,) = describe(Resource(Kind.GROUP, "g"), settings, {name: "50000"}, [name])
    assert line("G", described) == (
        f"G|{name}|50000|GROUP_CONFIG|false|false|INT|"
        f"{name}=50000:GROUP_CONFIG group.{name}=45000:DEFAULT_CONFIG"
    )
    described = describe(Resource(Kind.CLIENT_METRICS, "m"), settings, {"metrics": "a,b"})
    assert [line("M", each) for each in described] == [
        "M|interval.ms|300000|DEFAULT_CONFIG|false|false|INT|",
        "M|match||DEFAULT_CONFIG|false|false|LIST|",
        "M|metrics|a,b|CLIENT_METRICS_CONFIG|false|false|LIST|metrics=a,b:CLIENT_METRICS_CONFIG",
    ]


def test_the_lists_of_a_subscription_are_described_as_they_count(settings):
    (described,) = describe(
        Resource(Kind.CLIENT_METRICS, "m"), settings, {"metrics": " a , b,a"}, ["metrics"]
    )
    assert described.value == "a,b"
