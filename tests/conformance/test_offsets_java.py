"""Apache Kafka's tools on offsets: what is in the topic, what a group has, moving and deleting it.

Rows: OFS-01, OFS-07, OFS-08, OFS-09, OFS-11.
"""

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from confluent_kafka import Consumer, TopicPartition

from strom.broker.coordination import java_hash
from tests.conformance.batches import CONTROL, headers
from tests.conformance.clients import Confluent, Sent
from tests.conformance.raw import Raw
from tests.conformance.test_offsets import BUSY, with_confluent
from tests.patience import PATIENCE_SECONDS, until

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(600)]

FORMATTER = "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"
COUNT = 20
FIRST_MS = 1_700_000_000_000


@pytest.fixture
def tool(strom, kafka_tool):
    def run(name, *arguments):
        done = kafka_tool(name, "--bootstrap-server", strom.bootstrap, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture
def group(strom, topic, name):
    """A group without members that has read five of twenty records, a minute apart."""
    records = [Sent(None, b"%d" % each, time_ms=FIRST_MS + 60_000 * each) for each in range(COUNT)]
    Confluent.send(strom.bootstrap, topic, records, "none")
    assert with_confluent(strom.bootstrap, topic, name, 5)[1] == 5
    return name


def rows(text):
    """The rows of a table as dicts."""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    start = next(number for number, line in enumerate(lines) if line[0] == "GROUP")
    return [dict(zip(lines[start], line, strict=False)) for line in lines[start + 1 :]]


def objects(text):
    """What the formatter shows: one JSON object behind the other."""
    found, position = [], text.find("{")
    while position >= 0:
        value, end = json.JSONDecoder().raw_decode(text, position)
        found.append(value)
        position = text.find("{", end)
    return found


def messages(bootstrap, partition):
    """How many records a partition of offsets has, without the markers that no reader is shown."""
    place = {"partition": partition, "fetch_offset": 0, "partition_max_bytes": 1 << 30}
    topics = [{"topic": "__consumer_offsets", "partitions": [place]}]
    asked = {"replica_id": -1, "max_wait": 0, "max_bytes": 1 << 30, "topics": topics}
    with Raw(bootstrap) as raw:
        (told,) = raw.ask("fetch", 12, asked)["responses"][0]["partitions"]
    return sum(each.count for each in headers(told["records"]) if not each.attributes & CONTROL)


def test_the_topic_of_offsets_reads_as_kafkas(strom, tool, topic, group):
    """OFS-01: its records are Kafka's own."""
    partition = java_hash(group) % 50
    shown = tool(
        "kafka-console-consumer",
        *("--topic", "__consumer_offsets", "--partition", partition, "--offset", "earliest"),
        *("--max-messages", messages(strom.bootstrap, partition), "--formatter", FORMATTER),
    )
    found = objects(shown)
    (last,) = [each for each in found if each["key"]["data"]["group"] == group]
    assert last["key"] == {
        "type": 1,
        "data": {"group": group, "topic": topic, "partition": 0},
    }
    assert last["value"]["version"] == 4
    data = last["value"]["data"]
    assert (data["offset"], data["leaderEpoch"], data["metadata"]) == (5, 0, "")
    assert abs(data["commitTimestamp"] - time.time() * 1000) < 600_000
    assert re.fullmatch(r"[\w-]{22}", data["topicId"])


def test_a_group_without_members_is_described(tool, topic, group):
    """OFS-08, OFS-09: lag is the end of the log without what was read."""
    (row,) = rows(tool("kafka-consumer-groups", "--describe", "--offsets", "--group", group))
    expected = {
        "GROUP": group,
        "TOPIC": topic,
        "PARTITION": "0",
        "CURRENT-OFFSET": "5",
        "LOG-END-OFFSET": str(COUNT),
        "LAG": str(COUNT - 5),
        "CONSUMER-ID": "-",
        "HOST": "-",
        "CLIENT-ID": "-",
    }
    assert expected.items() <= row.items()


def test_offsets_are_moved_in_every_way(tool, topic, group, tmp_path):
    """OFS-07: to a number, by so many, to the start, the end, a day, a time ago, as in a file."""

    def moved(*way, of=("--topic", topic)):
        asked = "--reset-offsets", "--group", group, *of, *way, "--execute"
        (row,) = rows(tool("kafka-consumer-groups", *asked))
        return int(row["NEW-OFFSET"])

    # The first record is of 22:13:20 on that day, and the eighth came seven minutes later.
    assert moved("--to-offset", 7) == 7
    assert moved("--shift-by", -3) == 4
    assert moved("--to-earliest") == 0
    assert moved("--to-latest") == COUNT
    assert moved("--to-datetime", "2023-11-14T22:20:00.000Z") == 7
    assert moved("--to-current") == 7
    # From a year before the first record on: all of them.
    age = datetime.now(UTC) - datetime(2022, 11, 14, tzinfo=UTC)
    assert moved("--by-duration", f"P{age.days}D") == 0
    (tmp_path / "offsets.csv").write_text(f'"{topic}",0,5\n')
    assert moved("--from-file", tmp_path / "offsets.csv", of=()) == 5


def test_moved_offsets_are_where_a_consumer_goes_on(strom, tool, topic, group):
    """OFS-07."""
    asked = "--reset-offsets", "--group", group, "--all-topics", "--to-offset", 11, "--execute"
    tool("kafka-consumer-groups", *asked)
    assert with_confluent(strom.bootstrap, topic, group, 2) == ([b"11", b"12"], 13)


def test_offsets_are_deleted(strom, tool, topic, group):
    asked = "--delete-offsets", "--group", group, "--topic", topic
    assert "Successful" in tool("kafka-consumer-groups", *asked)
    consumer = Consumer({"bootstrap.servers": strom.bootstrap, "group.id": group, "log_level": 0})
    (committed,) = consumer.committed([TopicPartition(topic, 0)], PATIENCE_SECONDS)
    consumer.close()
    assert committed.offset < 0


def test_offsets_of_an_abandoned_group_expire(broker_process, kafka_tool, name):
    """OFS-11: the settings are the broker's; the formatter shows the tombstones that remain."""
    process = broker_process(offsets_retention_minutes=1, offsets_retention_check_interval_ms=50)
    Confluent.send(process.bootstrap, name, [Sent(None, b"x")], "none")
    with Raw(process.bootstrap) as raw:
        asked = {"coordinator_keys": [name], "key_type": 0}
        raw.ask("find_coordinator", 4, asked)
        offsets = [{"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}]
        # An old client's commit, which says itself how soon it is out of date.
        old = {
            "group_id": name,
            "generation_id_or_member_epoch": -1,
            "retention_time": 100,
            "topics": [{"name": name, "partitions": offsets}],
        }
        code = BUSY[0]
        while code in BUSY:
            code = raw.ask("offset_commit", 4, old)["topics"][0]["partitions"][0]["error_code"]
        assert code == "none"
        everything = {"group_id": name, "topics": None}
        until(lambda: not raw.ask("offset_fetch", 7, everything)["topics"])
    partition = java_hash(name) % 50
    shown = kafka_tool(
        "kafka-console-consumer",
        *("--bootstrap-server", process.bootstrap, "--topic", "__consumer_offsets"),
        *("--partition", partition, "--offset", "earliest"),
        *("--max-messages", messages(process.bootstrap, partition), "--formatter", FORMATTER),
    ).stdout
    found = objects(shown)
    assert [each["value"] is None for each in found] == [False, True]
    assert {each["key"]["data"]["group"] for each in found} == {name}


def test_the_tools_run_side_by_side_with_commits(strom, tool, topic, group):
    """Nothing is lost or mixed up while groups are described and others commit."""

    def commit_many(number):
        return with_confluent(strom.bootstrap, topic, f"{group}-{number}", 3)[1]

    with ThreadPoolExecutor(4) as pool:
        describing = pool.submit(tool, "kafka-consumer-groups", "--describe", "--group", group)
        committed = list(pool.map(commit_many, range(6)))
    (row,) = rows(describing.result())
    assert committed == [3] * 6
    assert row["CURRENT-OFFSET"] == "5"
