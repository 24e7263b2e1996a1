"""Changes at run time, with the codes and texts that Apache Kafka 4.3.1 gave (BRK-21, TOP-18)."""

from uuid import UUID

import pytest

from strom.metadata.config_decisions import (
    Alteration,
    Operation,
    incrementally_alter_configs,
    replace_configs,
)
from strom.metadata.image import Image, applied
from strom.metadata.records import Config, TopicCreated
from strom.metadata.settings import BrokerSettings
from strom.metadata.settings.catalogue import Kind, Resource
from strom.metadata.settings.rules import SettingRules, read_match
from strom.wire.errors import ErrorCode

SET, DELETE, APPEND, SUBTRACT = Operation
TOPIC = Resource(Kind.TOPIC, "flugdaten")
BROKER = Resource(Kind.BROKER, "1")
ALL = Resource(Kind.BROKER, "")
GROUP = Resource(Kind.GROUP, "g")
METRICS = Resource(Kind.CLIENT_METRICS, "m")
SETTINGS = BrokerSettings({"log.dirs": "/data"})

CONFIG, REQUEST = ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST


def image_with(resource, config):
    image = applied(Image(), TopicCreated(name="flugdaten", topic_id=UUID(int=1)))
    for name, value in config.items():
        record = Config(
            resource_type=resource[0], resource_name=resource[1], name=name, value=value
        )
        image = applied(image, record)
    return image


def outcome(resource, decision):
    """Return what is written, or the code and words of the refusal."""
    refusal = decision.reply[resource]
    if refusal is not None:
        return refusal.code, refusal.message
    return {record.name: record.value for record in decision.records}


def ask(resource, *changes, now=None, settings=SETTINGS):
    asked = [(resource, tuple(Alteration(*each) for each in changes))]
    image = image_with(resource, now or {})
    rules = SettingRules(settings)
    decision = incrementally_alter_configs(image, asked, rules, validate_only=False)
    return outcome(resource, decision)


def replace(resource, now, values):
    asked = [(resource, values)]
    image = image_with(resource, now)
    decision = replace_configs(image, asked, SettingRules(SETTINGS), validate_only=False)
    return outcome(resource, decision)


@pytest.mark.parametrize("resource", [TOPIC, BROKER, ALL])
def test_setting_and_removing(resource):
    name = "retention.ms" if resource is TOPIC else "log.retention.ms"
    assert ask(resource, (name, SET, "5")) == {name: "5"}
    # A broker is told again what it has; a topic is not.
    again = {} if resource is TOPIC else {name: "5"}
    assert ask(resource, (name, SET, "5"), now={name: "5"}) == again
    assert ask(resource, (name, DELETE), now={name: "5"}) == {name: None}
    assert ask(resource, (name, DELETE)) in ({}, {name: None})
    assert ask(resource, ("foo", DELETE)) in ({}, {"foo": None})


def test_adding_to_and_taking_from_a_list():
    assert ask(TOPIC, ("cleanup.policy", APPEND, "compact")) == {"cleanup.policy": "delete,compact"}
    assert ask(TOPIC, ("cleanup.policy", APPEND, "delete"), now={"cleanup.policy": "delete"}) == {}
    both = {"cleanup.policy": "delete,compact"}
    assert ask(TOPIC, ("cleanup.policy", SUBTRACT, "delete"), now=both) == {
        "cleanup.policy": "compact"
    }
    assert ask(TOPIC, ("cleanup.policy", SUBTRACT, "delete,compact"), now=both) == {
        "cleanup.policy": ""
    }
    assert ask(ALL, ("log.cleanup.policy", APPEND, "compact")) == {
        "log.cleanup.policy": "delete,compact"
    }


def test_a_list_is_written_as_it_came_and_counts_once():
    for given in ("compact,delete,compact", "compact, delete"):
        assert ask(TOPIC, ("cleanup.policy", SET, given)) == {"cleanup.policy": given}
        assert replace(TOPIC, {}, {"cleanup.policy": given}) == {"cleanup.policy": given}
        assert SETTINGS.of_topic("cleanup.policy", {"cleanup.policy": given}) == (
            "compact",
            "delete",
        )
    twice = {"log.cleanup.policy": "delete,delete"}
    assert ask(ALL, ("log.cleanup.policy", SET, "delete,delete")) == twice
    assert BrokerSettings(SETTINGS.static | twice)["log.cleanup.policy"] == ("delete",)
    assert ask(METRICS, ("metrics", SET, "a,a")) == {"metrics": "a,a"}
    assert ask(TOPIC, ("leader.replication.throttled.replicas", SET, "*,*"))[0] is CONFIG


def test_what_is_given_twice_is_added_once_and_taken_away_as_often():
    replicas = "leader.replication.throttled.replicas"
    now = {replicas: "0:1,0:1"}
    assert ask(TOPIC, ("cleanup.policy", APPEND, "compact,compact")) == {
        "cleanup.policy": "delete,compact"
    }
    assert ask(TOPIC, (replicas, APPEND, "0:1,1:1,1:1"), now=now) == {replicas: "0:1,0:1,1:1"}
    assert ask(TOPIC, (replicas, SUBTRACT, "0:1"), now=now) == {replicas: "0:1"}
    assert ask(TOPIC, (replicas, SUBTRACT, "0:1,0:1"), now=now) == {replicas: ""}


@pytest.mark.parametrize("given", [",", " , ,"])
def test_a_list_of_nothing_but_commas_is_refused(given):
    refusal = "Configuration 'cleanup.policy' values must not be empty."
    assert ask(TOPIC, ("cleanup.policy", SET, given)) == (CONFIG, refusal)
    refusal = "Configuration 'log.cleanup.policy' values must not be empty."
    assert ask(ALL, ("log.cleanup.policy", SET, given)) == (REQUEST, refusal)


def test_replacing_all_settings():
    now = {"retention.ms": "5", "flush.ms": "7"}
    assert replace(TOPIC, now, {"retention.ms": "6", "segment.ms": "1"}) == {
        "flush.ms": None,
        "retention.ms": "6",
        "segment.ms": "1",
    }
    assert replace(TOPIC, now, {}) == {"flush.ms": None, "retention.ms": None}
    assert replace(BROKER, {}, {"max.connections": "6"}) == {"max.connections": "6"}


def test_a_broker_takes_names_that_nobody_defined():
    assert ask(BROKER, ("foo", SET, "3")) == {"foo": "3"}
    assert ask(ALL, ("foo", SET, "3")) == {"foo": "3"}
    name = "listener.name.plaintext.ssl.keystore.password"
    assert ask(BROKER, (name, SET, "secret")) == {name: "secret"}


THREADS = "Dynamic thread count update validation failed for"
CLEANERS = "Log cleaner threads cannot be"


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("num.io.threads", "17", f"{THREADS} num.io.threads=17, value should not be greater than "
         "double the current value 8"),
        ("num.io.threads", "3", f"{THREADS} num.io.threads=3, value should be at least half the "
         "current value 8"),
        ("background.threads", "21", f"{THREADS} background.threads=21, value should not be "
         "greater than double the current value 10"),
        ("log.cleaner.threads", "3", f"{CLEANERS} increased to more than double the current "
         "value 1"),
    ],
)  # fmt: skip
def test_threads_are_doubled_or_halved_at_most(name, value, why):
    wrapped = f"org.apache.kafka.common.config.ConfigException: {why}"
    message = f"Invalid value {wrapped} for configuration Invalid dynamic configuration"
    assert ask(ALL, (name, SET, value)) == (REQUEST, message)


def test_threads_go_on_from_where_they_are():
    assert ask(ALL, ("num.io.threads", SET, "16")) == {"num.io.threads": "16"}
    now = {"num.io.threads": "16"}
    wider = SETTINGS.with_dynamic({}, now)
    assert ask(ALL, ("num.io.threads", SET, "32"), now=now, settings=wider) == {
        "num.io.threads": "32"
    }
    assert ask(ALL, ("log.retention.ms", SET, "5"), now=now, settings=wider) == {
        "log.retention.ms": "5"
    }


def test_a_cleaner_has_a_thread():
    _, message = ask(ALL, ("log.cleaner.threads", SET, "0"))
    assert message == "requirement failed: log.cleaner.threads must be at least 1"


@pytest.mark.parametrize("resource", [BROKER, ALL])
@pytest.mark.parametrize("name", ["max.connections", "max.connection.creation.rate"])
@pytest.mark.parametrize("prefix", ["", "listener.name.plaintext."])
def test_a_limit_that_lets_nobody_in_is_refused(resource, name, prefix):
    """Nobody could take it back: who wanted to would have to connect."""
    wrapped = f"org.apache.kafka.common.config.ConfigException: Invalid {name} 0"
    refusal = f"Invalid value {wrapped} for configuration Invalid dynamic configuration"
    assert ask(resource, (prefix + name, SET, "0")) == (REQUEST, refusal)
    assert ask(resource, (prefix + name, SET, "1")) == {prefix + name: "1"}
    other = f"listener.name.other.{name}"
    assert ask(resource, (other, SET, "0")) == {other: "0"}


@pytest.mark.parametrize("item", ["client_id=", "client_id=a=b", "=a", "client_id"])
def test_a_pattern_is_one_name_and_one_expression(item):
    refusal = f"Illegal client matching pattern: {item}"
    assert ask(METRICS, ("match", SET, f"client_source_port=1,{item}")) == (CONFIG, refusal)


REFUSALS = [
    (TOPIC, ("foo", SET, "1"), CONFIG, "Unknown topic config name: foo"),
    (
        TOPIC,
        ("retention.ms", SET, "abc"),
        CONFIG,
        "Invalid value abc for configuration retention.ms: Not a number of type LONG",
    ),
    (
        TOPIC,
        ("retention.ms", SET, "-5"),
        CONFIG,
        "Invalid value -5 for configuration retention.ms: Value must be at least -1",
    ),
    (
        TOPIC,
        ("retention.ms", APPEND, "5"),
        CONFIG,
        "Can't APPEND to key retention.ms because its type is not LIST.",
    ),
    (
        TOPIC,
        ("foo", SUBTRACT, "5"),
        CONFIG,
        "Can't SUBTRACT to key foo because its type is not LIST.",
    ),
    (
        TOPIC,
        ("cleanup.policy", APPEND, "bogus"),
        CONFIG,
        "Invalid value bogus for configuration cleanup.policy: "
        "String must be one of: compact, delete",
    ),
    (
        TOPIC,
        ("remote.storage.enable", SET, "true"),
        CONFIG,
        "Tiered Storage functionality is disabled in the broker. "
        "Topic cannot be configured with remote log storage.",
    ),
    (
        TOPIC,
        ("retention.ms", SET, None),
        REQUEST,
        "Null value not supported for : retention.ms",
    ),
    (
        TOPIC,
        ("retention.ms", SET, "1" * 32768),
        CONFIG,
        "The configuration value cannot be added because it exceeds the maximum value size of "
        "32767 bytes.",
    ),
    (
        Resource(Kind.TOPIC, ""),
        ("retention.ms", SET, "1"),
        REQUEST,
        "Default topic resources are not allowed.",
    ),
    (Resource(3, "x"), ("a", SET, "1"), REQUEST, "Unknown resource type 3"),
    (
        BROKER,
        ("num.partitions", SET, "3"),
        REQUEST,
        "Cannot update these configs dynamically: [num.partitions]",
    ),
    (
        BROKER,
        ("num.io.threads", SET, "abc"),
        REQUEST,
        "Invalid value abc for configuration num.io.threads: Not a number of type INT",
    ),
    (
        ALL,
        ("log.retention.ms", SET, "0"),
        REQUEST,
        "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or equal to "
        "1",
    ),
    (
        BROKER,
        ("cordoned.log.dirs", SET, "/x"),
        REQUEST,
        "requirement failed: All entries in cordoned.log.dirs must be present in log.dirs or "
        "log.dir. Missing entries : /x",
    ),
    (
        BROKER,
        ("listeners", SET, "PLAINTEXT://:1,OTHER://:2"),
        REQUEST,
        "requirement failed: Error creating broker listeners from 'OTHER://:2': No security "
        "protocol defined for listener OTHER; add OTHER:PLAINTEXT to "
        "listener.security.protocol.map",
    ),
    (
        BROKER,
        ("listener.security.protocol.map", SET, "PLAINTEXT:SSL"),
        REQUEST,
        "requirement failed: the listener PLAINTEXT://:9092 wants SSL, which is not served: use a "
        "PLAINTEXT listener",
    ),
    (
        ALL,
        ("listeners", SET, "PLAINTEXT://:1"),
        REQUEST,
        "Cannot update these configs at default cluster level, broker id must be specified: "
        "[listeners]",
    ),
    (
        ALL,
        ("listener.name.plaintext.ssl.keystore.password", SET, "secret"),
        REQUEST,
        "Cannot update these configs at default cluster level, broker id must be specified: "
        "[listener.name.plaintext.ssl.keystore.password]",
    ),
    (
        BROKER,
        ("ssl.keystore.password", SET, "secret"),
        REQUEST,
        "These security configs can be dynamically updated only per-listener using the listener "
        "prefix: [ssl.keystore.password]",
    ),
    (
        BROKER,
        ("listener.name.plaintext.max.connections", SET, "many"),
        REQUEST,
        "Invalid value many for configuration max.connections: Not a number of type INT",
    ),
    (
        Resource(Kind.BROKER, "abc"),
        ("max.connections", SET, "1"),
        REQUEST,
        "Unable to parse broker name as a base 10 number.",
    ),
    (
        Resource(Kind.BROKER, "-1"),
        ("max.connections", SET, "1"),
        REQUEST,
        "Invalid negative broker ID.",
    ),
    (
        ALL,
        ("group.consumer.assignment.interval.ms", SET, "99999"),
        REQUEST,
        "group.consumer.assignment.interval.ms must be less than or equal to "
        "group.consumer.max.assignment.interval.ms",
    ),
    (GROUP, ("foo", SET, "1"), CONFIG, "Unknown group config name: foo"),
    (
        GROUP,
        ("consumer.session.timeout.ms", SET, "1"),
        CONFIG,
        "consumer.session.timeout.ms must be greater than or equal to "
        "group.consumer.min.session.timeout.ms",
    ),
    (
        GROUP,
        ("consumer.session.timeout.ms", SET, "9000000"),
        CONFIG,
        "consumer.session.timeout.ms must be less than or equal to "
        "group.consumer.max.session.timeout.ms",
    ),
    (
        GROUP,
        ("streams.num.standby.replicas", SET, "3"),
        CONFIG,
        "streams.num.standby.replicas must be less than or equal to "
        "group.streams.max.standby.replicas",
    ),
    (
        Resource(Kind.GROUP, ""),
        ("share.isolation.level", SET, "read_committed"),
        REQUEST,
        "Default group resources are not allowed.",
    ),
    (METRICS, ("foo", SET, "1"), REQUEST, "Unknown client metrics configuration: foo"),
    (
        METRICS,
        ("interval.ms", SET, "1"),
        REQUEST,
        "Invalid value 1 for interval.ms, interval must be between 100 and 3600000 (1 hour)",
    ),
    (METRICS, ("match", SET, "x"), CONFIG, "Illegal client matching pattern: x"),
    (
        METRICS,
        ("match", SET, "client_id=["),
        CONFIG,
        "Illegal client matching pattern: client_id=[",
    ),
    (METRICS, ("match", SET, "foo=b"), CONFIG, "Illegal client matching pattern: foo=b"),
    (
        METRICS,
        ("metrics", APPEND, "c"),
        CONFIG,
        "Can't APPEND to key metrics because its type is not LIST.",
    ),
    (
        Resource(Kind.CLIENT_METRICS, ""),
        ("interval.ms", SET, "1000"),
        REQUEST,
        "Subscription name can't be empty",
    ),
]


@pytest.mark.parametrize(("resource", "asked", "code", "message"), REFUSALS)
def test_refusals_are_kafkas(resource, asked, code, message):
    assert ask(resource, asked) == (code, message)


def test_a_setting_may_be_named_once():
    _, message = ask(TOPIC, ("retention.ms", SET, "5"), ("retention.ms", SET, "6"))
    assert message == "Error due to duplicate config keys"


def test_listeners_may_be_set_to_what_they_are():
    assert ask(BROKER, ("listeners", SET, "PLAINTEXT://:9092"))


def test_several_fixed_settings_are_named_together():
    _, message = ask(BROKER, ("num.partitions", SET, "3"), ("node.id", SET, "3"))
    assert message == ("Cannot update these configs dynamically: [node.id, num.partitions]")


def test_bounds_of_compaction_must_not_cross_also_with_what_is_set_already():
    _, message = ask(
        TOPIC, ("min.compaction.lag.ms", SET, "10"), now={"max.compaction.lag.ms": "5"}
    )
    assert message == (
        "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)"
    )


def test_a_session_must_outlast_a_heartbeat():
    settings = BrokerSettings({"group.consumer.max.heartbeat.interval.ms": "90000"})
    beat = ("consumer.heartbeat.interval.ms", SET, "50000")
    _, message = ask(GROUP, beat, settings=settings)
    assert message == (
        "consumer.session.timeout.ms must be greater than consumer.heartbeat.interval.ms"
    )


def test_a_group_and_a_subscription_can_be_changed():
    assert ask(GROUP, ("share.auto.offset.reset", SET, "earliest")) == {
        "share.auto.offset.reset": "earliest"
    }
    asked = [("interval.ms", SET, "1000"), ("match", SET, "client_id=a.*"), ("metrics", SET, "*")]
    assert ask(METRICS, *asked) == {
        "interval.ms": "1000",
        "match": "client_id=a.*",
        "metrics": "*",
    }
    assert read_match("client_id=a.*, client_source_port=80") == {
        "client_id": "a.*",
        "client_source_port": "80",
    }


@pytest.mark.parametrize("resource", [TOPIC, BROKER])
def test_a_replacement_without_a_value_is_refused(resource):
    _, message = replace(resource, {}, {"x": None})
    assert message == "Null value not supported for : x"
