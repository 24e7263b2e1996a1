"""Apache Kafka's verifiable producer and consumers: they say of each record what became of it.

Rows: GRP-01, GRP-05, OFS-02, ACK-02.
"""

import json

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests import nodes
from tests.conformance.test_groups_tools import Tool, committed, until

pytestmark = [
    *(pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(180)),
    pytest.mark.usefixtures("kafka_tool"),
]

#: So that members learn at once what they would learn by a heartbeat every few seconds.
SETTINGS = {
    "group.initial.rebalance.delay.ms": 200,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.heartbeat.interval.ms": 200,
    "group.consumer.assignment.interval.ms": 100,
}
PARTITIONS = 4
MANY, FEW = 2000, 200


class VerifiableConsumer(Tool):
    """A member of a group that tells what happens to it; it ends as with Ctrl+C."""

    def __init__(self, bootstrap, *arguments):
        self.has = set()
        #: What it has read, in order: (partition, offset, value).
        self.read = []
        self.failures, self.events = [], set()
        where = "--verbose", "--bootstrap-server", bootstrap
        super().__init__("kafka-verifiable-consumer", *where, *arguments)

    def hear(self, line):
        told = json.loads(line)
        self.events.add(told["name"])
        match told["name"]:
            case "partitions_assigned":
                self.has |= {each["partition"] for each in told["partitions"]}
            case "partitions_revoked":
                self.has -= {each["partition"] for each in told["partitions"]}
            case "record_data":
                self.read.append((told["partition"], told["offset"], told["value"]))
            case "offsets_committed" if not told["success"]:
                self.failures.append(told)


@pytest.fixture
def members(broker):
    """A maker of members."""
    made = []

    def make(*arguments):
        made.append(VerifiableConsumer(broker.bootstrap, *arguments))
        return made[-1]

    yield make
    for each in made:
        each.stop()


def send(broker, topic, count):
    """Have the verifiable producer send; what was acknowledged: (partition, offset, value)."""
    done = nodes.kafka_tool(
        "kafka-verifiable-producer",
        *("--bootstrap-server", broker.bootstrap, "--topic", topic),
        *("--max-messages", count, "--acks", -1),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    sent = [each for each in told if each["name"] == "producer_send_success"]
    (summary,) = (each for each in told if each["name"] == "tool_data")
    assert (summary["sent"], summary["acked"], len(sent)) == (count, count, count)
    return {(each["partition"], each["offset"], each["value"]) for each in sent}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_what_was_acknowledged_is_read_once_and_in_order(broker, members, name, protocol):
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result()
    group = "--topic", name, "--group-id", name, "--group-protocol", protocol
    two = [members(*group) for _ in range(2)]
    until(lambda: [len(each.has) for each in two] == [2, 2])
    sent = send(broker, name, MANY)
    until(lambda: sum(len(each.read) for each in two) >= MANY)
    assert sorted(two[0].read + two[1].read) == sorted(sent), "each once"
    for each in two:
        assert_in_order(each.read)
    until(lambda: sum(committed(broker.bootstrap, name, name)) == MANY)
    leaves, stays = two
    leaves.stop()
    assert "shutdown_complete" in leaves.events
    until(lambda: stays.has == set(range(PARTITIONS)))
    before = len(stays.read)
    more = send(broker, name, FEW)
    until(lambda: len(stays.read) >= before + FEW)
    assert set(stays.read[before:]) == more
    until(lambda: sum(committed(broker.bootstrap, name, name)) == MANY + FEW)
    assert leaves.failures == stays.failures == []


def assert_in_order(read):
    for partition in range(PARTITIONS):
        offsets = [offset for each, offset, _ in read if each == partition]
        assert offsets == sorted(offsets)
