"""`strom group reset` on a real cluster: where a group goes on, and what is left alone."""

import json
import time
import uuid
from types import SimpleNamespace

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from strom.cli import client
from strom.cli.failure import Failure
from strom.cli.lag import MARKER_METADATA
from strom.cli.options import ClientOptions
from tests.cli.conftest import commit
from tests.conformance.raw import Raw

pytestmark = pytest.mark.slow

NOW_MS = time.time_ns() // 1_000_000
LATER_MS = NOW_MS + 30_000


def stored(on_cluster, group):
    (found,) = json.loads(on_cluster("group", "describe", group, "--json").stdout)
    return {each["partition"]: each["current_offset"] for each in found["offsets"]}


@pytest.mark.parametrize(
    ("where", "offset"),
    [
        (("--to", "beginning"), 0),
        (("--to", "end"), 10),
        (("--to", "7"), 7),
        (("--to", "99"), 10),
        (("--to", "-3"), 7),
        (("--to", "@1"), 0),
        (("--to", "@99999999999999999999"), 10),
        (("--to", "1969-12-31T23:59:59.999+00:00"), 0),
        (("--shift", "4"), 6),
        (("--shift", "-5"), 0),
    ],
)
def test_offsets_are_moved_when_told_to_execute(on_cluster, group, where, offset):
    """OFS-07: shown first, done with --execute, never beyond what the partition holds."""
    assert "Nothing was changed" in on_cluster("group", "reset", group, *where).stdout
    assert stored(on_cluster, group) == {0: 2}
    on_cluster("group", "reset", group, *where, "--execute")
    assert stored(on_cluster, group) == {0: offset}


def test_offsets_of_partitions_that_are_named(on_cluster, group, topic):
    on_cluster("group", "reset", group, "-t", f"{topic}:1,2", "--to", "end", "--execute")
    assert stored(on_cluster, group) == {0: 2, 1: 0, 2: 0}


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--to", "noon"), 2, "no place to read from"),
        ((), 2, "either --to POINT or --shift N"),
        (("--to", "end", "-t", "{topic}:x"), 2, "write TOPIC or TOPIC:0,1,2"),
        (("--to", "end", "-t", "{topic}:"), 2, "write TOPIC or TOPIC:0,1,2"),
        (("--to", "end", "-t", "{topic}:0,"), 2, "write TOPIC or TOPIC:0,1,2"),
        (("--to", "end", "-t", "{topic}:0_1"), 2, "write TOPIC or TOPIC:0,1,2"),
        (("--to", "end", "-t", "{topic}:+1"), 2, "write TOPIC or TOPIC:0,1,2"),
        (("--to", "end", "-t", "{topic}:\N{ARABIC-INDIC DIGIT ONE}"), 2, "write TOPIC or TOPIC:"),
        (("--to", "end", "-t", "{topic}:7"), 1, "has no partition 7"),
        (("--shift", "1", "-t", "{topic}:1"), 1, "has stored no offset"),
    ],
)
def test_a_reset_that_makes_no_sense_is_refused(on_cluster, group, topic, arguments, code, words):
    named = [each.format(topic=topic) for each in arguments]
    assert words in on_cluster("group", "reset", group, *named, code=code).stderr


@pytest.fixture(scope="module")
def behind_a_transaction(bootstrap):
    """A topic of 16 records, with a transaction that is open from the sixth on."""
    topic = f"cli-open-{uuid.uuid4()}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 1)])[topic].result()
    plain = Producer({"bootstrap.servers": bootstrap})
    for _ in range(5):
        plain.produce(topic, "v", partition=0, timestamp=NOW_MS)
    plain.flush()
    # No machine is so slow that it ends by itself.
    lasting = {"transactional.id": topic, "transaction.timeout.ms": 900_000}
    producer = Producer({"bootstrap.servers": bootstrap} | lasting)
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic, "open", partition=0, timestamp=NOW_MS)
    producer.flush()
    for _ in range(10):
        plain.produce(topic, "v", partition=0, timestamp=LATER_MS)
    plain.flush()
    yield topic
    producer.abort_transaction()
    admin.delete_topics([topic])[topic].result()


@pytest.mark.parametrize(
    ("where", "offset"),
    [
        (("--shift", "1"), 13),
        (("--to", "14"), 14),
        (("--to", "end"), 16),
        (("--to", "-3"), 13),
        (("--to", f"@{LATER_MS}"), 6),
    ],
)
def test_an_open_transaction_holds_no_group_back(
    on_cluster, bootstrap, behind_a_transaction, where, offset
):
    """OFS-07: as with Kafka's tool, which counts to the end and not to what is stable."""
    name = f"group-{uuid.uuid4()}"
    with Raw(bootstrap) as raw:
        commit(raw, name, behind_a_transaction, 12)
    on_cluster("group", "reset", name, *where, "--execute")
    assert stored(on_cluster, name) == {0: offset}


@pytest.mark.parametrize("offset", [-1, -77])
def test_a_number_below_0_is_no_old_offset(on_cluster, bootstrap, group, topic, offset):
    with Raw(bootstrap) as raw:
        commit(raw, group, topic, offset)
    refused = on_cluster("group", "reset", group, "--shift", "1", code=1)
    assert f"has stored no offset of {topic}-0" in refused.stderr
    moved = on_cluster("group", "reset", group, "--to", "7", "--execute", "--json").stdout
    assert [(each["old_offset"], each["new_offset"]) for each in json.loads(moved)] == [(None, 7)]
    assert stored(on_cluster, group) == {0: 7}


@pytest.mark.parametrize("places", ["{topic}", "{topic}:1"])
def test_the_number_of_a_batch_is_not_reset(on_cluster, bootstrap, group, topic, places):
    """What Spark's exactly-once sink goes by would be gone."""
    with Raw(bootstrap) as raw:
        commit(raw, group, topic, 8, partition=1, metadata=MARKER_METADATA)
        named = ("-t", places.format(topic=topic))
        refused = on_cluster("group", "reset", group, *named, "--to", "0", "--execute", code=1)
        assert f"has stored of {topic}-1 is no offset" in refused.stderr
        assert stored(on_cluster, group) == {0: 2, 1: 8}
        assert marks(raw, group, topic) == {0: "", 1: MARKER_METADATA}


def test_the_number_of_a_batch_is_not_among_all_that_is_reset(on_cluster, bootstrap, group, topic):
    with Raw(bootstrap) as raw:
        commit(raw, group, topic, 8, partition=1, metadata=MARKER_METADATA)
        on_cluster("group", "reset", group, "--to", "7", "--execute")
        assert stored(on_cluster, group) == {0: 7, 1: 8}
        assert marks(raw, group, topic) == {0: "", 1: MARKER_METADATA}
        on_cluster("group", "reset", group, "-t", f"{topic}:0,2", "--to", "end", "--execute")
        assert stored(on_cluster, group) == {0: 10, 1: 8, 2: 0}
        only = f"{group}-only"
        commit(raw, only, topic, 8, partition=1, metadata=MARKER_METADATA)
    refused = on_cluster("group", "reset", only, "--to", "end", "--execute", code=1)
    assert "no offsets, only the markers of exactly-once Spark writes" in refused.stderr
    assert stored(on_cluster, only) == {1: 8}


def marks(raw, group, topic):
    """The words that are stored beside a group's offsets, by partition."""
    asked = {"group_id": group, "topics": [{"name": topic, "partition_indexes": [0, 1]}]}
    (told,) = raw.ask("offset_fetch", 9, {"groups": [asked]})["groups"]
    found = told["topics"][0]["partitions"]
    return {each["partition_index"]: each["metadata"] for each in found}


# Without records a partition of Apache Kafka may have no leader yet.
@pytest.mark.usefixtures("group")
def test_a_partition_that_cannot_be_asked_for_a_time_is_one_line(bootstrap, topic):
    """It does not count as one whose first record at that time is the number of the time."""
    options = ClientOptions(bootstrap_server=bootstrap)
    reader = client.consumer(options, {})
    try:
        # Asked for alone, all of it fails; a broker can refuse one alone as well.
        asked = [TopicPartition(topic, 0, 1), TopicPartition(topic, 7, 1)]
        _, refused = reader.offsets_for_times(asked, timeout=60)
    finally:
        reader.close()
    refusing = SimpleNamespace(offsets_for_times=lambda _asked, timeout: [refused])
    with pytest.raises(Failure, match=f"{topic}-7: Local: Unknown partition"):
        client.offset_of_time(refusing, (topic, 7), 1)
