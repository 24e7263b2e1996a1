"""Ten thousand partitions in one request; where logs are read or written, others have their turns.

Counted, not timed: how many partitions are looked at in one turn of the loop. Most of them do not
exist, which makes no difference to how they are asked about.
"""

import select

import pytest

from strom.broker.replicas import Replicas
from strom.broker.turns import AT_ONCE
from strom.records.validate import check_field
from tests.broker.api.conftest import create, produce
from tests.conformance.batches import NOW_MS, batch
from tests.conformance.raw import Raw

pytestmark = pytest.mark.slow

MANY = 10_000
INDEXES = range(MANY)


def list_offsets(topic):
    partitions = [{"partition_index": index, "timestamp": -1} for index in INDEXES]
    return 9, {"topics": [{"name": topic, "partitions": partitions}]}


def fetch(topic):
    partitions = [{"partition": index, "partition_max_bytes": 1000} for index in INDEXES]
    asked = {"replica_id": -1, "max_bytes": 1 << 20, "session_epoch": -1}
    return 12, asked | {"topics": [{"topic": topic, "partitions": partitions}]}


def fetch_session(topic):
    version, asked = fetch(topic)
    return version, asked | {"session_epoch": 0}


def offset_for_leader_epoch(topic):
    partitions = [{"partition": index, "current_leader_epoch": -1} for index in INDEXES]
    return 4, {"topics": [{"topic": topic, "partitions": partitions}]}


def delete_records(topic):
    partitions = [{"partition_index": index, "offset": 0} for index in INDEXES]
    return 2, {"topics": [{"name": topic, "partitions": partitions}], "timeout": 5000}


def describe_producers(topic):
    return 0, {"topics": [{"name": topic, "partition_indexes": INDEXES}]}


@pytest.fixture
def looks(turn, monkeypatch):
    """At which turn of the loop each partition was looked at."""
    seen = []
    leader_of = Replicas.leader_of

    def look(self, topic, index):
        seen.append(turn())
        return leader_of(self, topic, index)

    monkeypatch.setattr(Replicas, "leader_of", look)
    return seen


@pytest.mark.parametrize(
    ("api", "ask", "is_in_turns"),
    [
        ("list_offsets", list_offsets, True),
        ("fetch", fetch, True),
        ("fetch", fetch_session, True),
        ("offset_for_leader_epoch", offset_for_leader_epoch, False),
        ("delete_records", delete_records, True),
        ("describe_producers", describe_producers, False),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_each_is_told_of(raw, topic, looks, api, ask, is_in_turns):
    produce(raw, topic, batch([b"a"]))
    version, asked = ask(topic)
    looks.clear()
    told = raw.ask(api, version, asked)
    (topics,) = [each for each in told.values() if isinstance(each, list)]
    partitions = topics[0]["partitions"]
    assert len(partitions) == MANY
    codes = [each["error_code"] for each in partitions]
    assert codes == ["none"] * 2 + ["unknown_topic_or_partition"] * (MANY - 2)
    if is_in_turns:
        assert len(looks) >= MANY
        assert max(looks.count(turn) for turn in set(looks)) <= AT_ONCE


def test_others_are_answered_while_many_partitions_are_asked_about(raw, topic, broker, monkeypatch):
    """One who asks when the first partition is looked at has its answer before the last one is."""
    leader_of = Replicas.leader_of
    answered = []

    with Raw(broker.bootstrap) as other:

        def look(self, name, index):
            if index == 0:
                other.send("api_versions", 3, {})
            elif index == MANY - 1:
                answered.extend(select.select([other.socket], [], [], 0)[0])
            return leader_of(self, name, index)

        monkeypatch.setattr(Replicas, "leader_of", look)
        version, asked = list_offsets(topic)
        raw.ask("list_offsets", version, asked)
        assert answered == [other.socket]
        other.receive("api_versions", 3)


def test_what_is_appended_while_others_are_looked_at_ends_the_wait(raw, broker, name, monkeypatch):
    """A long poll of many partitions, of which the first grows when it was already looked at."""
    create(raw, name, partitions=AT_ONCE + 1)
    leader_of = Replicas.leader_of
    appended = []

    def look(self, topic, index):
        if index == AT_ONCE and not appended:
            appended.append(index)
            records = memoryview(bytearray(batch([b"late"])))
            header = check_field(records)
            first = leader_of(self, name, 0)
            first.place(records, header, NOW_MS, all_in_sync=False)
            first.write_placed(NOW_MS)
        return leader_of(self, topic, index)

    monkeypatch.setattr(Replicas, "leader_of", look)
    partitions = [{"partition": index, "partition_max_bytes": 1000} for index in range(AT_ONCE + 1)]
    asked = {
        "replica_id": -1,
        "max_bytes": 1 << 20,
        "min_bytes": 1,
        # Longer than anybody waits for a test.
        "max_wait": 600_000,
        "session_epoch": -1,
        "topics": [{"topic": name, "partitions": partitions}],
    }
    told = raw.ask("fetch", 12, asked)["responses"][0]["partitions"]
    assert b"late" in told[0]["records"]


def test_requests_behind_a_deletion_of_many_see_it_done(raw, topic):
    produce(raw, topic, batch([b"a", b"b"]), index=1)
    # Many, and yet so few that the request itself is read at once.
    partitions = [{"partition_index": index, "offset": 0} for index in range(2, 500)]
    partitions.append({"partition_index": 1, "offset": 2})
    topics = [{"name": topic, "partitions": partitions}]
    deletion = raw.encode("delete_records", 2, {"topics": topics, "timeout": 5000})
    place = {"partition_index": 1, "timestamp": -2}
    question = {"topics": [{"name": topic, "partitions": [place]}]}
    raw.send_bytes(deletion + raw.encode("list_offsets", 9, question))
    raw.receive("delete_records", 2)
    _, told = raw.receive("list_offsets", 9)
    assert told["topics"][0]["partitions"][0]["offset"] == 2
