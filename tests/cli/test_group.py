"""`strom group` on a real cluster: what real consumers stored, seen and deleted."""

import json
import struct
import sys
import time
import uuid
from types import SimpleNamespace

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from strom.cli import group as cli_group
from strom.cli import lag
from strom.cli.failure import Failure
from strom.cli.options import ClientOptions
from strom.testing.broker import LocalBroker
from tests.broker.api.conftest import produce
from tests.cli.conftest import commit
from tests.conformance.batches import batch
from tests.conformance.raw import Raw
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.slow


def described(on_cluster, group):
    (found,) = json.loads(on_cluster("group", "describe", group, "--json").stdout)
    return found


def test_lag_is_told_in_messages_and_in_time(on_cluster, group, topic, monkeypatch):
    """OFS-08, OFS-09."""
    monkeypatch.setattr(lag, "AGE_SECONDS_MAX", PATIENCE_SECONDS)
    (position,) = described(on_cluster, group)["offsets"]
    assert (position["topic"], position["partition"]) == (topic, 0)
    assert (position["current_offset"], position["end_offset"], position["lag"]) == (2, 10, 8)
    assert 0 <= position["lag_ms"] < 600_000
    shown = on_cluster("group", "describe", group).stdout
    assert "Current offset" in shown and "Lag in time" in shown


def test_the_number_of_a_batch_is_no_lag(on_cluster, bootstrap, group, topic):
    """OFS-08: what Spark's exactly-once sink stores is marked, and counted nowhere."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    marked = TopicPartition(topic, 0, 1, lag.MARKER_METADATA)
    consumer.commit(offsets=[marked], asynchronous=False)
    consumer.close()
    (position,) = described(on_cluster, group)["offsets"]
    assert (position["current_offset"], position["end_offset"]) == (1, 10)
    assert (position["lag"], position["lag_ms"]) == (None, None)


@pytest.mark.parametrize("offset", [-1, -77])
def test_a_number_below_0_is_no_offset(on_cluster, bootstrap, group, topic, offset):
    """A broker takes any; nothing can be read from there, and nobody is behind by it."""
    with Raw(bootstrap) as raw:
        commit(raw, group, topic, offset)
    (position,) = described(on_cluster, group)["offsets"]
    assert (position["current_offset"], position["end_offset"]) == (None, 10)
    assert (position["lag"], position["lag_ms"]) == (None, None)
    # Whole words: the random names of group and topic may have these digits in them.
    words = on_cluster("group", "describe", group).stdout.split()
    assert {topic, "10"} <= set(words)
    assert {"-1", "-77", "-1001"}.isdisjoint(words)


def test_an_age_that_the_library_refuses_to_look_for_is_one_line(bootstrap, topic):
    with pytest.raises(Failure, match="Failed to set assignment: "):
        lag.ages_ms(ClientOptions(bootstrap_server=bootstrap), {(topic, 0): -77})


def test_a_partition_that_cannot_be_has_no_end(on_cluster, bootstrap, group, topic):
    """The leader of a classic group assigns what it likes."""
    name = f"{group}-odd"
    with Raw(bootstrap) as raw:
        assign(raw, name, {topic: [-1, 0], "": [0]})
        found = described(on_cluster, name)
        ends = {(each["topic"], each["partition"]): each["end_offset"] for each in found["offsets"]}
        assert ends == {("", 0): None, (topic, -1): None, (topic, 0): 10}
        for shown in ("offsets", "members"):
            assert topic in on_cluster("group", "describe", name, "--show", shown).stdout


def assign(raw, name, topics):
    """Make a classic group of one member that is its leader, and assigns these to itself."""
    subscription = struct.pack(">hii", 0, 0, -1)
    asked = {"group_id": name, "session_timeout": 60_000, "rebalance_timeout": 60_000}
    protocol = {"name": "range", "metadata": subscription}
    asked |= {"protocol_type": "consumer", "protocols": [protocol]}
    # Before version 4 nobody is sent back for an id.
    joined = raw.ask("join_group", 3, asked)
    assert joined["error_code"] == "none", joined
    assignment = struct.pack(">hi", 0, len(topics))
    for topic, partitions in topics.items():
        assignment += struct.pack(">h", len(topic)) + topic.encode()
        assignment += struct.pack(f">i{len(partitions)}i", len(partitions), *partitions)
    own = {"member_id": joined["member_id"], "assignment": assignment + struct.pack(">i", -1)}
    who = {"group_id": name, "generation_id": joined["generation_id"]}
    who |= {"member_id": joined["member_id"], "assignments": [own]}
    synced = raw.ask("sync_group", 3, who)
    assert synced["error_code"] == "none", synced


@pytest.mark.timeout(PATIENCE_SECONDS * 3)
def test_transactions_do_not_hold_up_the_lag_in_time(on_cluster, bootstrap, topic, monkeypatch):
    """OFS-09: neither a mark at the end nor a transaction that is open is waited for."""
    monkeypatch.setattr(lag, "AGE_SECONDS_MAX", 10 * PATIENCE_SECONDS)
    name = f"group-{uuid.uuid4()}"
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions()
    for partition in (0, 1):
        producer.begin_transaction()
        producer.produce(topic, "v", partition=partition)
        if partition == 0:
            producer.commit_transaction()
    producer.flush()
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": name})
    offsets = [TopicPartition(topic, 0, 1), TopicPartition(topic, 1, 0)]
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()
    marked, is_open = described(on_cluster, name)["offsets"]
    assert (marked["current_offset"], marked["end_offset"], marked["lag"]) == (1, 2, 1)
    assert marked["lag_ms"] is None
    assert (is_open["current_offset"], is_open["end_offset"], is_open["lag"]) == (0, 1, 1)
    assert 0 <= is_open["lag_ms"] < 600_000
    producer.abort_transaction()


def test_a_record_without_a_time_has_no_age(on_cluster, bootstrap, topic):
    """OFS-08: not that of the epoch."""
    name = f"group-{uuid.uuid4()}"
    with Raw(bootstrap) as raw:
        produce(raw, topic, batch([b"v"], time_ms=-1))
    on_cluster("group", "reset", name, "-t", f"{topic}:0", "--to", "beginning", "--execute")
    (position,) = described(on_cluster, name)["offsets"]
    assert (position["lag"], position["lag_ms"]) == (1, None)


def test_a_watched_group_is_told_of_again_and_again(on_cluster, group, monkeypatch):
    """OFS-08."""
    waited = []

    def wait(seconds):
        waited.append(seconds)
        if len(waited) == 3:
            raise InterruptedError("enough")

    monkeypatch.setattr(cli_group, "time", SimpleNamespace(sleep=wait))
    shown = on_cluster("group", "describe", group, "--watch", "0.5", code=1).stdout
    assert waited == [0.5] * 3
    assert shown.count("Current offset") == 3


def test_a_watcher_outlives_the_broker(strom, tmp_path, monkeypatch):
    """It says that nobody is there, and goes on when somebody is: also by another life of it."""
    brokers = [LocalBroker(directory=tmp_path).start()]
    bootstrap = brokers[0].bootstrap
    monkeypatch.setenv("STROM_BOOTSTRAP", bootstrap)
    assert strom("topic", "create", "t").exit_code == 0
    assert strom("group", "reset", "g", "-t", "t", "--to", "end", "--execute").exit_code == 0
    waited = []

    def wait(seconds):
        waited.append(seconds)
        if len(waited) == 1:
            brokers[0].stop()
        elif len(waited) == 2:
            settings = {"listeners": f"PLAINTEXT://{bootstrap}"}
            brokers.append(LocalBroker(settings, directory=tmp_path).start())
        else:
            raise InterruptedError("enough")

    monkeypatch.setattr(cli_group, "time", SimpleNamespace(sleep=wait))
    watched = strom("group", "describe", "g", "--watch", "0.5")
    brokers[-1].stop()
    assert len(waited) == 3, watched.output
    assert watched.stdout.count("Current offset") == 2
    assert watched.stderr.count(f"strom: no broker at {bootstrap}") == 1


def test_what_a_watcher_reads_from_a_pipe_comes_at_once(on_cluster, group, monkeypatch):
    written = []

    def wait(_seconds):
        written.append(sys.stdout.buffer.getvalue())
        raise InterruptedError("enough")

    monkeypatch.setattr(cli_group, "time", SimpleNamespace(sleep=wait))
    on_cluster("group", "describe", group, "--watch", "0.5", "--json", code=1)
    (document,) = written
    assert [each["group"] for each in json.loads(document)] == [group]


def test_a_watched_screen_is_cleared_when_there_is_something_to_show(
    on_cluster, group, monkeypatch
):
    """To ask may take seconds, in which the screen would be empty."""
    events = []

    def ask(*asked):
        events.append("asked")
        return lag.positions(*asked)

    def enough(_seconds):
        raise InterruptedError("enough")

    terminal = SimpleNamespace(isatty=lambda: True, flush=lambda: None)
    screen = SimpleNamespace(clear=lambda: events.append("cleared"))
    monkeypatch.setattr(cli_group, "sys", SimpleNamespace(stdout=terminal))
    monkeypatch.setattr(cli_group, "console", lambda: screen)
    monkeypatch.setattr(cli_group, "positions", ask)
    monkeypatch.setattr(cli_group, "time", SimpleNamespace(sleep=enough))
    shown = on_cluster("group", "describe", group, "--watch", "0.5", code=1).stdout
    assert events == ["asked", "cleared"]
    assert "Current offset" in shown


def test_a_group_may_have_any_name(on_cluster, topic):
    for name in ("g[/x]", "[red]g"):
        on_cluster("group", "reset", name, "-t", topic, "--to", "end", "--execute")
        assert f"{name} (Empty)" in on_cluster("group", "describe", name).stdout
        on_cluster("group", "delete", name)


def test_what_nobody_knows_is_null_to_programs(on_cluster, group, topic):
    (position,) = described(on_cluster, group)["offsets"]
    assert [position[each] for each in ("consumer_id", "host", "client_id")] == [None] * 3
    moved = on_cluster("group", "reset", group, "-t", topic, "--to", "end", "--json").stdout
    assert [each["old_offset"] for each in json.loads(moved)] == [2, None, None]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_are_told_with_what_they_read(on_cluster, bootstrap, topic, protocol, monkeypatch):
    """OFS-08, OFS-10, GRP-03."""
    monkeypatch.setattr(lag, "AGE_SECONDS_MAX", PATIENCE_SECONDS)
    name = f"group-{uuid.uuid4()}"
    for partition, values in (("0", "abc"), ("1", "de")):
        on_cluster("produce", topic, *values, "--partition", partition)
    config = {"bootstrap.servers": bootstrap, "group.id": name, "client.id": "reader"}
    consumer = Consumer(config | {"group.protocol": protocol, "enable.auto.commit": False})
    consumer.subscribe([topic])
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not consumer.assignment() and time.monotonic() < deadline:
        consumer.poll(0.1)
    offsets = [TopicPartition(topic, 0, 1), TopicPartition(topic, 1, 0)]
    consumer.commit(offsets=offsets, asynchronous=False)
    found = described(on_cluster, name)
    assert (found["state"], found["type"]) == ("Stable", protocol.title())
    (member,) = found["members"]
    assert member["client_id"] == "reader"
    assert member["partitions"] == [f"{topic}-{n}" for n in range(3)]
    # Two of partition 0 and two of partition 1; nothing is stored of the third.
    assert member["lag"] == 4
    assert member["lag_ms"] == max(each["lag_ms"] or 0 for each in found["offsets"])
    refused = on_cluster("group", "reset", name, "--to", "end", "--execute", code=1)
    assert "stop the consumers first" in refused.stderr
    shown = on_cluster("group", "describe", name, "--show", "members").stdout
    assert "/127.0.0.1" in shown and "Lag in time" in shown
    consumer.close()
    while described(on_cluster, name)["state"] != "Empty" and time.monotonic() < deadline:
        pass
    assert "Empty" in on_cluster("group", "describe", name, "--show", "state").stdout


def test_groups_are_listed_and_deleted(on_cluster, group):
    assert group in on_cluster("group", "list").stdout.split()
    listed = json.loads(on_cluster("group", "list", "--state", "empty", "--json").stdout)
    assert {"group": group, "type": "Classic", "state": "Empty"} in listed
    assert on_cluster("group", "delete", group).stdout == f"Deleted group {group}.\n"
    assert group not in on_cluster("group", "list").stdout.split()
    assert "does not exist" in on_cluster("group", "describe", group, code=1).stderr
    assert "does not exist" in on_cluster("group", "delete", group, code=1).stderr


def test_a_group_that_is_named_twice_is_deleted_once(on_cluster, group):
    told = on_cluster("group", "delete", group, group).stdout
    assert told == f"Deleted group {group}.\n"


def test_a_group_without_a_name_is_left_out_unless_it_is_named(strom, monkeypatch):
    """Who commits without a group id commits to one; nobody can describe it."""
    with LocalBroker() as broker:
        monkeypatch.setenv("STROM_BOOTSTRAP", broker.bootstrap)
        assert strom("topic", "create", "t").exit_code == 0
        with Raw(broker.bootstrap) as raw:
            for name in ("", "g"):
                commit(raw, name, "t", 0)
        listed = json.loads(strom("group", "list", "--json").stdout)
        assert [each["group"] for each in listed] == ["", "g"]
        told = strom("group", "describe", "--json")
        assert (told.exit_code, told.stderr) == (0, "")
        assert [each["group"] for each in json.loads(told.stdout)] == ["g"]
        told = strom("group", "describe", "")
        assert (told.exit_code, told.stderr.count("group ''")) == (1, 1)


@pytest.mark.parametrize("more", [(), ("--json",), ("--show", "state")])
def test_a_group_that_is_missing_does_not_hide_the_others(on_cluster, group, more):
    told = on_cluster("group", "describe", "nobody's", group, *more, code=1)
    assert group in told.stdout
    assert told.stderr == "strom: Consumer group 'nobody's' does not exist.\n"


@pytest.mark.parametrize("more", [(), ("--json",), ("--show", "state")])
def test_a_group_that_nobody_can_describe_does_not_hide_the_others(
    on_cluster, bootstrap, group, more
):
    """GRP-09: workers of Kafka Connect share something else than partitions."""
    with Raw(bootstrap) as raw:
        other = share_something_else(raw, f"workers-{uuid.uuid4()}")
        told = on_cluster("group", "describe", other, group, *more, code=1)
    assert group in told.stdout
    assert told.stderr.startswith(f"strom: group '{other}': ")
    assert "is not a consumer group (connect)" in told.stderr


def test_a_group_that_nobody_can_describe_does_not_end_the_watch(
    on_cluster, bootstrap, group, monkeypatch
):
    waited = []

    def wait(seconds):
        waited.append(seconds)
        if len(waited) == 2:
            raise InterruptedError("enough")

    monkeypatch.setattr(cli_group, "time", SimpleNamespace(sleep=wait))
    with Raw(bootstrap) as raw:
        other = share_something_else(raw, f"workers-{uuid.uuid4()}")
        told = on_cluster("group", "describe", other, group, "--watch", "0.5", code=1)
    assert told.stdout.count(group) == 2
    assert told.stderr.count(f"strom: group '{other}': ") == 2


def share_something_else(raw, name):
    """Make a group of one member that is no consumer; its name."""
    asked = {"group_id": name, "session_timeout": 60_000, "rebalance_timeout": 60_000}
    asked |= {"protocol_type": "connect", "protocols": [{"name": "p", "metadata": b"work"}]}
    # Before version 4 nobody is sent back for an id.
    joined = raw.ask("join_group", 3, asked)
    assert joined["error_code"] == "none", joined
    return name


def test_an_unknown_state_is_answered_with_those_there_are(on_cluster):
    assert "preparingrebalance" in on_cluster("group", "list", "--state", "odd", code=2).stderr


def test_a_group_whose_partitions_change_hands_is_said_to_be_in_kafkas_state(
    on_cluster, bootstrap, group, topic
):
    """The client library has no name for the states that only the consumer protocol has."""
    name = f"{group}-changes"
    asked = {"group_id": name, "rebalance_timeout": 60_000, "member_epoch": 0}
    asked |= {"subscribed_topic_names": [topic], "topic_partitions": []}
    with Raw(bootstrap) as raw:
        for member in ("first", "second"):
            told = raw.ask("consumer_group_heartbeat", 1, asked | {"member_id": member})
            assert told["error_code"] == "none", told
        listed = on_cluster("group", "list", "--json").stdout
        (state,) = [each["state"] for each in json.loads(listed) if each["group"] == name]
        # The first was asked to give up what it reads, or will be with its next heartbeat.
        assert state in {"Assigning", "Reconciling"}
        assert described(on_cluster, name)["state"] in {"Assigning", "Reconciling"}
        more = ("--state", "assigning", "--state", "Reconciling")
        assert name in on_cluster("group", "list", *more).stdout.splitlines()
        assert name not in on_cluster("group", "list", "--state", "stable").stdout.splitlines()
        for shown in ("offsets", "members", "state"):
            assert "Unknown" not in on_cluster("group", "describe", name, "--show", shown).stdout
        refused = on_cluster("group", "reset", name, "-t", topic, "--to", "end", code=1)
        assert "has 2 members and is Unknown" not in refused.stderr
