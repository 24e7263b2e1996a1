"""`strom transaction` on a broker with real transactions, and with one that hangs."""

import json
import uuid

import pytest
from confluent_kafka import Producer

from strom.cli import transaction as cli_transaction
from strom.testing.broker import LocalBroker
from tests.conformance.batches import TRANSACTIONAL, batch
from tests.conformance.batches import Producer as Writer
from tests.conformance.raw import Raw
from tests.patience import is_done, until, until_coordinated


@pytest.fixture
def producer(bootstrap):
    """A producer with a transaction of two partitions under way; it is committed afterwards."""

    def begin(topic):
        name = f"tx-{uuid.uuid4()}"
        made = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
        made.init_transactions(30)
        made.begin_transaction()
        for partition in (0, 1):
            made.produce(topic, b"v", partition=partition)
        made.flush()
        begun.append(made)
        return name, made

    begun = []
    yield begin
    for each in begun:
        each.commit_transaction(30)


def told(on_cluster, *arguments):
    return json.loads(on_cluster("transaction", *arguments, "--json").stdout)


def test_a_transaction_is_listed_and_described_while_it_goes_on(on_cluster, producer, topic):
    name, _ = producer(topic)
    found = told(on_cluster, "describe", name)
    assert (found["state"], found["timeout_ms"]) == ("Ongoing", 60_000)
    assert found["partitions"] == [f"{topic}-0", f"{topic}-1"]
    listed = {
        each["transactional_id"]: each for each in told(on_cluster, "list", "--state", "Ongoing")
    }
    assert listed[name]["producer_id"] == found["producer_id"]
    by_producer = told(on_cluster, "list", "--producer-id", str(found["producer_id"]))
    assert [each["transactional_id"] for each in by_producer] == [name]
    assert name in on_cluster("transaction", "list").stdout
    assert "Ongoing" in on_cluster("transaction", "describe", name).stdout


def test_an_id_that_has_begun_nothing_is_described(on_cluster, bootstrap):
    """Of such an id a coordinator tells -1 for the time when its transaction began."""
    with Raw(bootstrap) as raw:
        producer = begin_nothing(raw, name := f"tx-{uuid.uuid4()}")
    found = told(on_cluster, "describe", name)
    assert (found["state"], found["started"], found["partitions"]) == ("Empty", None, [])
    assert (found["producer_id"], found["producer_epoch"]) == producer
    assert "Empty" in on_cluster("transaction", "describe", name).stdout


def begin_nothing(raw, name):
    """Become the producer of a transactional id: its id and epoch."""
    asked = {"transactional_id": name, "transaction_timeout": 60_000}
    until_coordinated(raw, name, 1)
    told = until(lambda: raw.ask("init_producer_id", 4, asked), is_done)
    return told["producer_id"], told["producer_epoch"]


def test_what_its_coordinator_knows_does_not_hang(on_cluster, producer, topic):
    producer(topic)
    assert told(on_cluster, "find-hanging", topic, "--max-transaction-timeout", "0") == []
    assert "No transaction hangs" in on_cluster("transaction", "find-hanging", topic).stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("describe", "nobody"), "TRANSACTIONAL_ID_NOT_FOUND"),
        (("find-hanging", "no-such-topic"), "does not exist as expected"),
        (("abort", "{topic}", "9", "--start-offset", "0"), "has no partition 9"),
        (("abort", "{topic}", "0", "--start-offset", "7"), "no open transaction that begins at 7"),
    ],
)
def test_what_is_not_there_is_said(on_cluster, topic, arguments, words):
    named = [each.format(topic=topic) for each in arguments]
    assert words in on_cluster("transaction", *named, code=1).stderr


def test_who_has_no_transaction_open_is_given_no_marker(on_cluster, topic):
    """Of such a producer a broker tells -1 for the place where its transaction begins."""
    on_cluster("produce", topic, "--partition", "0", text="v\n")
    refused = on_cluster("transaction", "abort", topic, "0", "--start-offset", "-1", code=2)
    assert "--start-offset" in refused.stderr


@pytest.mark.parametrize("option", ["--producer-id", "--longer-than"])
@pytest.mark.parametrize("number", ["9223372036854775808", "-9223372036854775809"])
def test_a_number_that_no_request_holds_is_refused(on_cluster, option, number):
    assert option in on_cluster("transaction", "list", option, number, code=2).stderr


def test_a_state_is_named_in_any_case_and_an_unknown_one_is_used_wrongly(
    on_cluster, producer, topic
):
    name, _ = producer(topic)
    for state in ("ongoing", "ONGOING"):
        listed = told(on_cluster, "list", "--state", state)
        assert name in [each["transactional_id"] for each in listed]
    refused = on_cluster("transaction", "list", "--state", "odd", code=2).stderr
    assert "'odd' is no state of a transaction" in refused
    assert "prepareabort" in refused


def write_past_the_coordinator(raw, producer_id, **odd):
    """Write to t-0 as producers older than the verification could."""
    data = batch([b"v"], producer=Writer(producer_id, 0, 0), attributes=TRANSACTIONAL, **odd)
    topics = [{"name": "t", "partition_data": [{"index": 0, "records": data}]}]
    asked = {"transactional_id": "t", "acks": -1, "timeout": 10000, "topic_data": topics}
    answer = raw.ask("produce", 11, asked)["responses"][0]["partition_responses"][0]
    assert answer["error_code"] == "none", answer


def test_a_transaction_that_hangs_is_found_and_aborted(strom, monkeypatch):
    with LocalBroker({"transaction.partition.verification.enable": "false"}) as broker:
        monkeypatch.setenv("STROM_BOOTSTRAP", broker.bootstrap)
        assert strom("topic", "create", "t", "-n", "1").exit_code == 0
        with Raw(broker.bootstrap) as raw:
            write_past_the_coordinator(raw, 4711)
        (found,) = json.loads(strom("transaction", "find-hanging", "--json").stdout)
        assert (found["producer_id"], found["start_offset"]) == (4711, 0)
        aborted = strom("transaction", "abort", "t", "0", "--start-offset", "0")
        assert "Aborted the transaction of producer 4711 in t-0" in aborted.stdout
        assert strom("transaction", "find-hanging").stdout == "No transaction hangs.\n"


def test_what_hangs_is_found_though_its_id_has_a_coordinator(strom, monkeypatch):
    """Whoever took the transactional id over has begun nothing yet."""
    with LocalBroker({"transaction.partition.verification.enable": "false"}) as broker:
        monkeypatch.setenv("STROM_BOOTSTRAP", broker.bootstrap)
        assert strom("topic", "create", "t", "-n", "1").exit_code == 0
        with Raw(broker.bootstrap) as raw:
            producer_id, _ = begin_nothing(raw, "t")
            write_past_the_coordinator(raw, producer_id)
        result = strom("transaction", "find-hanging", "--json")
        assert result.exit_code == 0, result.stderr
        assert [each["producer_id"] for each in json.loads(result.stdout)] == [producer_id]


def test_a_time_that_no_calendar_has_stops_nobody(strom, monkeypatch):
    """As producers write it that take microseconds for milliseconds."""
    time_ms = 1_700_000_000_000_000
    with LocalBroker({"transaction.partition.verification.enable": "false"}) as broker:
        monkeypatch.setenv("STROM_BOOTSTRAP", broker.bootstrap)
        late = f"message.timestamp.after.max.ms={2**63 - 1}"
        assert strom("topic", "create", "t", "-n", "1", "--config", late).exit_code == 0
        with Raw(broker.bootstrap) as raw:
            write_past_the_coordinator(raw, 4711, time_ms=time_ms)
        aborted = strom("transaction", "abort", "t", "0", "--start-offset", "0", "--json")
        assert aborted.exit_code == 0, aborted.exception
        assert json.loads(aborted.stdout)["aborted"]["last_written"] == f"@{time_ms}"


def test_offsets_of_a_transaction_that_hangs_are_let_go(strom, monkeypatch):
    """TXN-12: whoever waits for the group's offsets to be stable would wait for good."""
    with LocalBroker({"transaction.partition.verification.enable": "false"}) as broker:
        monkeypatch.setenv("STROM_BOOTSTRAP", broker.bootstrap)
        monkeypatch.setattr(cli_transaction, "GRACE_MINUTES", -1)
        assert strom("topic", "create", "t", "-n", "1").exit_code == 0
        moved = strom("group", "reset", "g", "-t", "t", "--to", "end", "--execute")
        assert moved.exit_code == 0, moved.stderr
        with Raw(broker.bootstrap) as raw:
            place = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
            asked = {"transactional_id": "x", "producer_id": 4711, "producer_epoch": 0}
            asked |= {"group_id": "g", "topics": [{"name": "t", "partitions": [place]}]}
            (told,) = raw.ask("txn_offset_commit", 2, asked)["topics"][0]["partitions"]
            assert told["error_code"] == "none"
            assert stable_offset(raw) == (-1, "unstable_offset_commit")
            found = strom("transaction", "find-hanging", "--max-transaction-timeout", "0", "--json")
            (one,) = json.loads(found.stdout)
            assert (one["topic"], one["producer_id"]) == ("__consumer_offsets", 4711)
            where = (one["topic"], str(one["partition"]), "--start-offset")
            aborted = strom("transaction", "abort", *where, str(one["start_offset"]))
            assert aborted.exit_code == 0, aborted.stderr
            assert stable_offset(raw) == (0, "none")


def stable_offset(raw):
    """Ask for the offset of a group, as one does who must not read what may be aborted."""
    topic = {"name": "t", "partition_indexes": [0]}
    group = {"group_id": "g", "member_epoch": -1, "topics": [topic]}
    answer = raw.ask("offset_fetch", 9, {"groups": [group], "require_stable": True})
    (told,) = answer["groups"][0]["topics"][0]["partitions"]
    return told["committed_offset"], told["error_code"]
