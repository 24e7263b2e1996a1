"""The table of the settings beside Apache Kafka (BRK-21, TOP-18).

Kafka's answer to DescribeConfigs tells names, types, defaults, what is fixed while a broker runs,
and what is a secret; the classes that write its documentation tell the rest.
"""

import re
import time

import pytest

from strom.metadata.settings.catalogue import BROKER, CLIENT_METRICS, GROUP, TOPIC, Kind
from strom.metadata.settings.definition import READ_ONLY, RUN_TIME, TYPE_NAMES
from tests import nodes
from tests.conformance.raw import Raw
from tests.patience import PATIENCE_SECONDS

pytestmark = [pytest.mark.java, pytest.mark.slow]

INTERNAL = "internal"
SET = 0
FROM_DEFAULT = 5

#: Kafka refuses to start without them; Strom starts a single node.
STROM_HAS_A_DEFAULT = {"node.id", "process.roles", "controller.listener.names"}
TABLES = {
    Kind.BROKER: BROKER,
    Kind.TOPIC: TOPIC,
    Kind.GROUP: GROUP,
    Kind.CLIENT_METRICS: CLIENT_METRICS,
}
#: The classes of Kafka that write a page, with what it documents.
WRITERS = {
    "kafka.server.KafkaConfig": BROKER,
    "org.apache.kafka.storage.internals.log.LogConfig": TOPIC,
    "org.apache.kafka.coordinator.group.GroupConfig": GROUP,
}
CELLS = ("Default", "Valid Values", "Importance", "Update Mode", "Server Default Property")
#: What a page has for an empty cell; and no value in a file or a request is null.
EMPTY = {'""', "null", "non-null string"}


def kafkas(definitions):
    """The settings that are not Strom's own."""
    return [each for each in definitions.values() if not each.name.startswith("strom.")]


def given(definitions, hidden):
    """A value for each setting that is described only where it has one."""
    unseen = [each for each in definitions.values() if each.hidden == hidden]
    return {each.name: each.show(each.default) or "1048576" for each in unseen}


@pytest.fixture(scope="module")
def raw():
    """A connection to Apache Kafka, in which every setting is described."""
    if reason := nodes.java_missing():
        pytest.skip(reason)
    internal = [f"{name}={value}" for name, value in given(BROKER, INTERNAL).items()]
    peer = nodes.KafkaProcess(nodes.new_directory("kafka"), *internal)
    try:
        with Raw(peer.start().bootstrap) as connection:
            make_topic(connection, given(TOPIC, INTERNAL))
            set_at_run_time(connection, given(BROKER, RUN_TIME))
            yield connection
    finally:
        peer.remove()


def make_topic(raw, settings):
    configs = [{"name": name, "value": value} for name, value in settings.items()]
    topic = {"name": "table", "num_partitions": 1, "replication_factor": 1, "configs": configs}
    made = raw.ask("create_topics", 7, {"topics": [topic], "timeout": 60_000})
    assert [each["error_code"] for each in made["topics"]] == ["none"]
    wait_described(raw, Kind.TOPIC, settings)


def set_at_run_time(raw, settings):
    configs = [
        {"name": name, "config_operation": SET, "value": value} for name, value in settings.items()
    ]
    broker = {"resource_type": Kind.BROKER, "resource_name": "1", "configs": configs}
    altered = raw.ask("incremental_alter_configs", 1, {"resources": [broker]})
    assert [each["error_code"] for each in altered["responses"]] == ["none"]
    wait_described(raw, Kind.BROKER, settings)


def wait_described(raw, kind, settings):
    """Wait until the broker has heard from the controller; the questions keep it from spinning."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not settings.keys() <= described(raw, kind).keys():
        assert time.monotonic() < deadline, f"{set(settings)} are not described"


@pytest.mark.parametrize("kind", TABLES)
def test_kafka_describes_the_settings_of_the_table(raw, kind):
    """Type, default, whether it is fixed while a broker runs, whether it is a secret."""
    assert described(raw, kind) == {
        each.name: (
            TYPE_NAMES[each.type],
            None if without_default(each) else each.show(each.default),
            kind == Kind.BROKER and each.mode == READ_ONLY,
            each.sensitive,
        )
        for each in kafkas(TABLES[kind])
    }


def described(raw, kind):
    """What Kafka answers of each setting of a resource."""
    name = "1" if kind == Kind.BROKER else "table"
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": None}
    asked = {"resources": [resource], "include_synonyms": True}
    (result,) = raw.ask("describe_configs", 4, asked)["results"]
    return {
        each["name"]: (
            TYPE_NAMES[each["config_type"]],
            default(each),
            each["read_only"],
            each["is_sensitive"],
        )
        for each in result["configs"]
    }


def default(config):
    """The default that Kafka tells: the value, unless another was given."""
    if config["config_source"] == FROM_DEFAULT:
        return config["value"]
    own = [each for each in config["synonyms"] if each["name"] == config["name"]]
    return next((each["value"] for each in own if each["source"] == FROM_DEFAULT), None)


def without_default(setting):
    """Whether Kafka tells of no default: what is only set at run time is not there before."""
    return setting.name in STROM_HAS_A_DEFAULT or setting.hidden == RUN_TIME


@pytest.mark.parametrize("writer", WRITERS)
def test_kafka_documents_the_settings_of_the_table(kafka_tool, writer):
    """Default, valid values, importance, mode of change, and what stands in for a topic's."""
    page = kafka_tool(writer)
    assert page.returncode == 0, page.stderr
    definitions = WRITERS[writer]
    assert documented(page.stdout) == {
        each.name: (
            "" if each.name in STROM_HAS_A_DEFAULT else each.show(each.default) or "",
            str(each.check or ""),
            each.importance,
            each.mode if definitions is BROKER else "",
            each.stand_in if definitions is TOPIC else "",
        )
        for each in kafkas(definitions)
        if each.hidden != INTERNAL
    }


def documented(page):
    """What a page tells of each of its settings."""
    _, *parts = re.split(r'<h4><a id="([^"]+)">', page)
    found = {}
    for name, part in zip(parts[::2], parts[1::2], strict=True):
        told = dict(re.findall(r"<tr><th>(.*?):</th><td>(.*?)</td></tr>", part))
        # In parentheses is the same number in larger units.
        cells = [told.get(each, "").partition(" (")[0] for each in CELLS]
        found[name] = tuple("" if cell in EMPTY else cell for cell in cells)
    return found
