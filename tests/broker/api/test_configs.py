"""Settings described and changed over the wire, in every version; the levels of loggers.

What the newest versions answer word by word is in tests/conformance.
"""

import logging

import pytest

from strom.broker.api import alter_configs, describe_configs, incremental_alter_configs
from tests.conformance.raw import Raw

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
STOCK = (
    "This most likely occurs because of a request being malformed by the client library or the "
    "message was sent to an incompatible broker. See the broker logs for more details."
)


def describe(raw, kind, name, *keys, version=4, **given):
    wanted = {"resource_type": kind, "resource_name": name, "configuration_keys": keys or None}
    (found,) = raw.ask("describe_configs", version, {"resources": [wanted]} | given)["results"]
    return found


def value(raw, kind, name, key):
    (found,) = describe(raw, kind, name, key)["configs"]
    return found["value"]


def change(raw, kind, name, *changes, version=1, **given):
    configs = [{"name": n, "config_operation": op, "value": v} for n, op, v in changes]
    wanted = {"resource_type": kind, "resource_name": name, "configs": configs}
    asked = {"resources": [wanted]} | given
    (found,) = raw.ask("incremental_alter_configs", version, asked)["responses"]
    return found["error_code"], found["error_message"]


@pytest.mark.parametrize("version", describe_configs.VERSIONS)
def test_every_version_describes(raw, topic, version):
    found = describe(raw, TOPIC, topic, "retention.ms", version=version)
    assert [(each["name"], each["value"]) for each in found["configs"]] == [
        ("retention.ms", "604800000")
    ]


@pytest.mark.parametrize("version", incremental_alter_configs.VERSIONS)
def test_a_change_shows_at_once(raw, topic, version):
    assert change(raw, TOPIC, topic, ("retention.ms", SET, "77"), version=version) == ("none", None)
    assert value(raw, TOPIC, topic, "retention.ms") == "77"


@pytest.mark.parametrize("version", alter_configs.VERSIONS)
def test_a_full_change_takes_back_what_it_does_not_name(raw, topic, version):
    change(raw, TOPIC, topic, ("retention.ms", SET, "77"))
    configs = [{"name": "segment.ms", "value": "88"}]
    wanted = {"resource_type": TOPIC, "resource_name": topic, "configs": configs}
    (found,) = raw.ask("alter_configs", version, {"resources": [wanted]})["responses"]
    assert found["error_code"] == "none"
    assert value(raw, TOPIC, topic, "retention.ms") == "604800000"
    assert value(raw, TOPIC, topic, "segment.ms") == "88"


def test_one_bad_resource_does_not_spoil_the_others(raw, topic):
    def resource(kind, name):
        configs = [{"name": "retention.ms", "config_operation": SET, "value": "5"}]
        return {"resource_type": kind, "resource_name": name, "configs": configs}

    asked = {"resources": [resource(TOPIC, "none"), resource(TOPIC, topic), resource(77, "x")]}
    found = raw.ask("incremental_alter_configs", 1, asked)["responses"]
    assert [each["error_code"] for each in found] == [
        "unknown_topic_or_partition",
        "none",
        "invalid_request",
    ]


def test_a_resource_named_twice_is_refused_both_times(raw, topic):
    configs = [{"name": "retention.ms", "config_operation": SET, "value": "5"}]
    resource = {"resource_type": TOPIC, "resource_name": topic, "configs": configs}
    found = raw.ask("incremental_alter_configs", 1, {"resources": [resource] * 2})["responses"]
    assert [each["error_message"] for each in found] == [
        "Each resource must appear at most once."
    ] * 2


def test_documentation_comes_when_asked_for(raw, topic):
    assert describe(raw, TOPIC, topic, "retention.ms")["configs"][0]["documentation"] is None
    found = describe(raw, TOPIC, topic, "retention.ms", include_documentation=True)
    assert found["configs"][0]["documentation"]


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        (METRICS, "", "Client metrics subscription name must not be empty"),
        (GROUP, "", "Group name must not be empty"),
        (LOGGER, "7", "Unexpected broker id, expected 1 but received 7"),
        (0, "", STOCK),
    ],
)
def test_what_cannot_be_described_is_refused_in_kafkas_words(raw, kind, name, message):
    found = describe(raw, kind, name)
    assert (found["error_code"], found["error_message"]) == ("invalid_request", message)


def test_a_subscription_need_not_exist_to_be_described(raw):
    found = describe(raw, METRICS, "never-set")
    assert {each["name"] for each in found["configs"]} == {"interval.ms", "match", "metrics"}


# Loggers.

NAME = "strom.replicas"


@pytest.fixture(autouse=True)
def quiet():
    """Leave the loggers as they were."""
    before = logging.getLogger(NAME).level
    yield
    logging.getLogger(NAME).setLevel(before)


def test_the_level_of_a_logger_is_changed_shown_and_taken_back(raw):
    before = value(raw, LOGGER, "1", NAME)
    assert change(raw, LOGGER, "1", (NAME, SET, "ERROR")) == ("none", None)
    assert value(raw, LOGGER, "1", NAME) == "ERROR"
    assert logging.getLogger(NAME).level == logging.ERROR
    assert change(raw, LOGGER, "1", (NAME, DELETE, None)) == ("none", None)
    assert value(raw, LOGGER, "1", NAME) == before


def test_validating_changes_no_level(raw):
    before = value(raw, LOGGER, "1", NAME)
    assert change(raw, LOGGER, "1", (NAME, SET, "ERROR"), validate_only=True) == ("none", None)
    assert value(raw, LOGGER, "1", NAME) == before


LEVELS = "DEBUG, ERROR, FATAL, INFO, TRACE, WARN"


@pytest.mark.parametrize(
    ("node", "asked", "code", "message"),
    [
        ("1", ("no.logger", SET, "INFO"), "invalid_config", "Logger no.logger does not exist!"),
        (
            "1",
            (NAME, SET, "LOUD"),
            "invalid_config",
            f"Cannot set the log level of {NAME} to LOUD as it is not a supported log level. "
            f"Valid log levels are {LEVELS}",
        ),
        (
            "1",
            (NAME, APPEND, "INFO"),
            "invalid_request",
            "APPEND operation is not allowed for the BROKER_LOGGER resource",
        ),
        (
            "1",
            ("strom", DELETE, None),
            "invalid_request",
            "Removing the log level of the root logger is not allowed",
        ),
        (
            "2",
            (NAME, SET, "INFO"),
            "invalid_request",
            "Unexpected node id. Expected 1, but received 2",
        ),
        ("x", (NAME, SET, "INFO"), "invalid_request", "Node id must be an integer, but it is: x"),
        ("1", (NAME, SET, None), "invalid_request", f"Null value not supported for : {NAME}"),
        ("1", (NAME, 7, "INFO"), "unknown_server_error", None),
    ],
    ids=str,
)
def test_levels_that_cannot_be_are_refused_in_kafkas_words(raw, node, asked, code, message):
    assert change(raw, LOGGER, node, asked) == (code, message)


def test_nobody_gets_the_same_settings_more_often_than_anybody_needs(raw, topic):
    """A few bytes ask for a page of them: thousands of times that is more than there is memory."""
    times = describe_configs.REPEATED_MAX + 2
    wanted = {"resource_type": BROKER, "resource_name": "1", "configuration_keys": ["node.id"]}
    other = {"resource_type": TOPIC, "resource_name": topic, "configuration_keys": ["retention.ms"]}
    asked = {"resources": [wanted] * times + [other]}
    told = raw.ask("describe_configs", 4, asked)["results"]
    codes = [each["error_code"] for each in told]
    assert codes == ["none"] * (times - 2) + ["invalid_request"] * 2 + ["none"]
    assert [len(each["configs"]) for each in told] == [1] * (times - 2) + [0] * 2 + [1]
    assert told[-2]["error_message"] == "Each resource is described 100 times at most."


@pytest.mark.parametrize("name", ["1" * 5000, "-" + "9" * 5000, str(2**31), "1_0", "--1", "x"])
def test_a_broker_is_named_by_a_number_that_a_broker_can_have(raw, name):
    found = describe(raw, BROKER, name)
    assert found["error_code"] == "invalid_request"
    assert found["error_message"] == f"Broker id must be an integer, but it is: {name}"


@pytest.mark.parametrize("name", ["1", ""])
@pytest.mark.parametrize(
    ("asked", "code", "message"),
    [
        (("num.io.threads", APPEND, "1"), "invalid_config",
         "Config value append is not allowed for config key: num.io.threads"),
        (("num.io.threads", SUBTRACT, "1"), "invalid_config",
         "Config value subtract is not allowed for config key: num.io.threads"),
        (("foo.bar", APPEND, "1"), "invalid_config", "Unknown config name: foo.bar"),
        (("listener.name.plaintext.max.connections", SUBTRACT, "1"), "invalid_config",
         "Unknown config name: listener.name.plaintext.max.connections"),
        (("num.io.threads", 9, "1"), "invalid_request", "Unknown operations type 9"),
    ],
)  # fmt: skip
def test_operations_on_a_broker_are_refused_in_words_of_their_own(raw, name, asked, code, message):
    assert change(raw, BROKER, name, asked) == (code, message)


def test_a_bad_value_is_told_rather_than_that_the_topic_is_missing(raw):
    """Kafka looks at the settings first, and at the topic once they can be."""
    bad = "Invalid value soon for configuration retention.ms: Not a number of type LONG"
    assert change(raw, TOPIC, "none", ("retention.ms", SET, "soon")) == ("invalid_config", bad)
    missing = "The topic 'none' does not exist."
    assert change(raw, TOPIC, "none", ("retention.ms", SET, "1")) == (
        "unknown_topic_or_partition",
        missing,
    )


@pytest.mark.parametrize(
    ("kind", "name", "asked", "message"),
    [
        (77, "x", [("segment.ms", APPEND, "1")], "Unknown resource type 77"),
        (77, "x", [("segment.ms", 9, "1")], "Unknown resource type 77"),
        (BROKER, " 1", [("num.io.threads", SET, "8")], "Node id must be an integer, but it is:  1"),
        (BROKER, "1_", [("num.io.threads", SET, "8")], "Node id must be an integer, but it is: 1_"),
        (TOPIC, "none", [("segment.ms", SET, None), ("retention.ms", APPEND, None)],
         "Null value not supported for : segment.ms, retention.ms"),
        (BROKER, "7", [("num.io.threads", SET, None)],
         "Null value not supported for : num.io.threads"),
    ],
)  # fmt: skip
def test_what_is_asked_improperly_is_told_first(raw, kind, name, asked, message):
    assert change(raw, kind, name, *asked) == ("invalid_request", message)


def test_a_limit_of_thousands_of_digits_is_refused_as_others_are(raw):
    key = "max.connections.per.ip.overrides"
    code, message = change(raw, BROKER, "1", (key, SET, f"localhost:{'9' * 5000}"))
    assert code == "invalid_request"
    assert "write host:count" in message


def test_a_name_that_no_record_can_hold_ends_the_connection(broker):
    """It would be written to the metadata log, and Kafka's clients could list nothing any more."""
    setting = {"name": "metrics", "config_operation": SET, "value": "a"}
    resource = {"resource_type": METRICS, "resource_name": "m" * 40_000, "configs": [setting]}
    with Raw(broker.bootstrap) as raw:
        raw.send("incremental_alter_configs", 1, {"resources": [resource]})
        assert raw.closed()
    with Raw(broker.bootstrap) as raw:
        listed = raw.ask("list_config_resources", 1, {"resource_types": [METRICS]})
        assert "m" * 40_000 not in {each["resource_name"] for each in listed["config_resources"]}
