"""Apache Kafka's own consumer with the consumer protocol (KIP-848), and what its tools tell of it.

Rows: GRP-01, GRP-05, OFS-08, OFS-09, MON-07. Each tool costs a second, so each test does much.
"""

import re

import pytest

from tests.conformance.raw import Raw
from tests.conformance.test_groups_tools import Console, Tools, committed, until

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(180)]

#: So that a tool need not wait five seconds for what a member learns by its next heartbeat.
SETTINGS = {
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.heartbeat.interval.ms": 200,
    "group.consumer.assignment.interval.ms": 100,
    "group.initial.rebalance.delay.ms": 200,
}
PARTITIONS, RECORDS = 3, 20_000


@pytest.fixture
def tools(broker, kafka_tool):
    return Tools(broker.bootstrap, kafka_tool)


@pytest.fixture
def consoles(broker):
    """A maker of console consumers of the consumer protocol that read until they are stopped."""
    made = []

    def make(*arguments):
        protocol = "--command-property", "group.protocol=consumer"
        made.append(Console(broker.bootstrap, *protocol, *arguments))
        return made[-1]

    yield make
    for each in made:
        each.stop()


def rows(told):
    """The rows of a table as dicts; a column's name has no blank in it."""
    lines = [line for line in told.splitlines() if line.strip()]
    (first,) = [n for n, line in enumerate(lines) if line.startswith("GROUP ")]
    names = lines[first].replace("COORDINATOR (ID)", "COORDINATOR").split()
    cells = (re.sub(r"\s+\((\d+)\)", r"(\1)", line).split() for line in lines[first + 1 :])
    return [dict(zip(names, each, strict=False)) for each in cells]


def test_kafkas_consumer_and_tools_in_a_consumer_group(tools, consoles, name):
    """GRP-01, GRP-05, OFS-08, OFS-09."""
    group = f"{name}-group"
    groups = "kafka-consumer-groups", "--group", group
    tools.run("kafka-topics", "--create", "--topic", name, "--partitions", 4)
    tools.run("kafka-console-producer", "--topic", name, text="one\ntwo\nthree\n")
    where = "--topic", name, "--group", group, "--from-beginning"
    first = consoles(*where)
    until(lambda: sorted(first.lines) == ["one", "three", "two"])
    consoles(*where)

    def members():
        told = rows(tools.run(*groups, "--describe", "--members", "--verbose"))
        return told if [each["#PARTITIONS"] for each in told] == ["2", "2"] else None

    told = until(members)
    assert {each["CLIENT-ID"] for each in told} == {"console-consumer"}
    for each in told:
        assert each["CURRENT-EPOCH"] == each["TARGET-EPOCH"]
        assert each["CURRENT-ASSIGNMENT"] == each["TARGET-ASSIGNMENT"]
    state, offsets, listed = tools.together(
        (tools.run, *groups, "--describe", "--state", "--verbose"),
        (tools.run, *groups, "--describe"),
        (tools.run, "kafka-groups", "--list"),
    )
    (row,) = rows(state)
    assert (row["STATE"], row["#MEMBERS"], row["ASSIGNMENT-STRATEGY"]) == ("Stable", "2", "uniform")
    assert row["GROUP-EPOCH"] == row["TARGET-ASSIGNMENT-EPOCH"]
    lags = rows(offsets)
    assert sorted(each["PARTITION"] for each in lags) == ["0", "1", "2", "3"]
    assert re.search(rf"^{group}\s+Consumer\s+consumer", listed, re.MULTILINE)
    assert "is not empty" in tools.run(*groups, "--delete")
    first.stop()
    until(lambda: len(rows(tools.run(*groups, "--describe", "--members"))) == 1)


def test_the_settings_of_a_group_by_kafkas_tool(tools, name):
    group = "--entity-type", "groups", "--entity-name", name
    tools.run(
        "kafka-configs", *group, "--alter", "--add-config", "consumer.session.timeout.ms=50000"
    )
    told = tools.run("kafka-configs", *group, "--describe")
    assert "consumer.session.timeout.ms=50000" in told
    wrong = "consumer.session.timeout.ms=1"
    refused = tools.run("kafka-configs", *group, "--alter", "--add-config", wrong, fails=True)
    assert "must be greater than or equal to group.consumer.min.session.timeout.ms" in refused


def test_the_consumer_performance_tool_with_either_protocol(tools, broker, name):
    """MON-07: it reads all that there is, and has committed it when it ends."""
    tools.run("kafka-topics", "--create", "--topic", name, "--partitions", PARTITIONS)
    sending = "--num-records", RECORDS, "--record-size", 100, "--throughput", -1
    tools.run("kafka-producer-perf-test", "--topic", name, *sending)
    protocols = ("classic", "consumer")
    reports = tools.together(
        *(
            (
                tools.run,
                "kafka-consumer-perf-test",
                *("--topic", name, "--num-records", RECORDS, "--group", f"{name}-{protocol}"),
                *("--command-property", f"group.protocol={protocol}"),
            )
            for protocol in protocols
        )
    )
    for protocol, report in zip(protocols, reports, strict=True):
        assert records_read(report) == RECORDS, report
        offsets = committed(broker.bootstrap, f"{name}-{protocol}", name)
        assert (len(offsets), sum(offsets)) == (PARTITIONS, RECORDS)
    with Raw(broker.bootstrap) as raw:
        kinds = {
            each["group_id"]: each["group_type"] for each in raw.ask("list_groups", 5)["groups"]
        }
    assert [kinds[f"{name}-{protocol}"].lower() for protocol in protocols] == list(protocols)


def records_read(report):
    """How many records the tool says that it has read: names in one line, numbers in the next."""
    lines = report.splitlines()
    (head,) = [n for n, line in enumerate(lines) if "data.consumed.in.nMsg," in line]
    names = [each.strip() for each in lines[head].split(",")]
    return int(lines[head + 1].split(",")[names.index("data.consumed.in.nMsg")])
