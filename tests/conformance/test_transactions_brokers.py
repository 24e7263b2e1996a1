"""Transactions over the wire, the other half: offsets, markers, lists and the coordinator's log.

Each case is played to Strom and to Apache Kafka, whose answers are in `answers/transactions.json`.
Rows: TXN-06, TXN-07, TXN-08, TXN-12; KIP-447, KIP-890, KIP-1228.
"""

import pytest

from strom.broker.coordination import java_hash
from strom.records.record import read_records
from strom.transactions.records import read
from tests.conformance.batches import headers
from tests.conformance.transacting import ABORT, COMMIT, END_V1, Tx, describe
from tests.conformance.transcript import check, is_peer, play


def markers(talk, tx, *, suffix="", version=2, **values):
    topics = [{"name": talk.topic(suffix), "partition_indexes": [0]}]
    marker = {
        "producer_id": tx.id,
        "producer_epoch": tx.epoch,
        "transaction_result": ABORT,
        "coordinator_epoch": 0,
        "transaction_version": 2,
        "topics": topics,
    }
    return talk.ask("write_txn_markers", version, {"markers": [marker | values]})


def brokers_and_admins_write_markers(talk):
    talk.create()
    tx = Tx(talk)
    tx.init()
    markers(talk, tx, suffix="-unknown")
    tx.write("a")
    tx.read()
    # By version 2 the epoch of the open transaction is too low; by version 1 it is the right one.
    markers(talk, tx)
    markers(talk, tx, producer_epoch=tx.epoch - 1, transaction_version=1)
    markers(talk, tx, version=1)
    tx.read()
    tx.producers()
    markers(talk, tx, version=1)
    markers(talk, tx, coordinator_epoch=-2)
    markers(talk, tx, producer_epoch=tx.epoch + 1, transaction_result=COMMIT)
    tx.producers()
    talk.ask("write_txn_markers", 2, {"markers": []})
    # Who never wrote here may be told of an end as well.
    markers(talk, tx, producer_id=tx.id + 100_000)


def offsets_of_version_2_count_when_the_transaction_does(talk):
    talk.create(partitions=2)
    tx = Tx(talk).with_group()
    tx.init()
    tx.offset()
    tx.commit_offset(5)
    tx.described()
    tx.offset()
    tx.offset(stable=True)
    tx.end(COMMIT)
    tx.described()
    tx.offset(stable=True)
    tx.commit_offset(7)
    tx.commit_offset(8)
    tx.end(ABORT)
    tx.described()
    tx.offset(stable=True)


def offsets_of_version_1_count_when_the_transaction_does(talk):
    talk.create()
    tx = Tx(talk).with_group()
    tx.init()
    for version in range(3, 5):
        tx.commit_offset(3, version)
    tx.add_offsets()
    for version in range(5):
        tx.commit_offset(version, version)
    tx.offset(stable=True)
    tx.end(COMMIT, END_V1)
    tx.described()
    tx.offset(stable=True)
    for version in range(3, 5):
        tx.commit_offset(9, version)
    tx.offset(stable=True)


def what_is_committed_is_checked(talk):
    talk.create()
    tx = Tx(talk).with_group()
    tx.init()
    tx.add_offsets()
    for version in range(6):
        tx.commit_offset(1, version, partition=7)
        tx.commit_offset(1, version, suffix="-unknown")
        tx.commit_offset(1, version, producer_epoch=tx.epoch + 1)
        tx.commit_offset(1, version, producer_id=tx.id + 100_000)
        tx.commit_offset(1, version, transactional_id=talk.topic("-nobody"))
        tx.commit_offset(1, version, group_id="")
    for version in range(3, 6):
        tx.commit_offset(1, version, generation_id=5, member_id="m")
        tx.commit_offset(1, version, generation_id=-1, member_id="m")
        tx.commit_offset(1, version, generation_id=-1, group_instance_id="i")
    for version in range(5):
        tx.add_offsets(version, producer_epoch=tx.epoch + 1)
        tx.add_offsets(version, producer_id=tx.id + 100_000)
        tx.add_offsets(version, transactional_id=talk.topic("-nobody"))
        tx.add_offsets(version, transactional_id="")
    tx.end(ABORT)


def a_zombie_commits_no_offset(talk):
    talk.create()
    tx = Tx(talk).with_group()
    tx.init()
    tx.commit_offset(1)
    zombie = tx.epoch
    tx.init()
    tx.begin()
    for version in range(6):
        tx.commit_offset(2, version, producer_epoch=zombie)
    tx.commit_offset(3)
    for version in range(6):
        tx.commit_offset(2, version, producer_epoch=zombie)
    tx.end(COMMIT)
    tx.described()
    tx.offset(stable=True)


def transactions_are_listed(talk):
    talk.create()
    one, other = Tx(talk, "-one"), Tx(talk, "-two")
    one.init()
    other.init()
    other.write("a")
    for asked in (
        {},
        {"state_filters": ["Ongoing"]},
        {"state_filters": ["Ongoing", "Empty"]},
        {"state_filters": ["Odd", "Ongoing"]},
        {"state_filters": ["Odd"]},
        {"state_filters": ["ongoing"]},
        {"producer_id_filters": [one.id]},
        {"producer_id_filters": [one.id, other.id], "state_filters": ["Ongoing"]},
        {"producer_id_filters": [999_999]},
        {"duration_filter": 3_600_000},
        {"duration_filter": 0},
        {"duration_filter": -5},
        {"transactional_id_pattern": ".*-one"},
        {"transactional_id_pattern": "-one"},
        {"transactional_id_pattern": ""},
        {"transactional_id_pattern": "*"},
        {"transactional_id_pattern": ".*-(one|two)", "state_filters": ["Empty"]},
    ):
        talk.ask("list_transactions", 2, asked, only=lambda answer: own(answer, talk))
    for version in (0, 1):
        talk.ask("list_transactions", version, {}, only=lambda answer: own(answer, talk))
    told = describe(talk, one.name, "", talk.topic("-nobody"), other.name)
    talk.lines.append({"describe_transactions v0": talk.steady(told)})
    other.end(ABORT)


def own(answer, talk):
    """The list without other conversations' transactions."""
    states = [
        each
        for each in answer["transaction_states"]
        if each["transactional_id"].startswith(talk.name)
    ]
    return answer | {
        "transaction_states": sorted(states, key=lambda each: each["transactional_id"])
    }


def what_is_in_the_coordinators_log(talk):
    """The records of `__transaction_state`, field by field."""
    talk.create(partitions=2)
    tx = Tx(talk)
    tx.init()
    tx.write("a")
    tx.write("b", partition=1)
    tx.end(COMMIT)
    tx.described()
    tx.end(ABORT)
    tx.described()
    tx.add(0)
    tx.end(COMMIT, END_V1)
    tx.described()
    tx.add(1)
    tx.init()
    tx.described()
    tx.begin()
    talk.lines.extend(logged(talk, tx))


def logged(talk, tx):
    """What the coordinator wrote for a transactional id."""
    count = len(partitions_of(talk.raw, "__transaction_state"))
    index = java_hash(tx.name) % count
    asked = {"max_wait": 0, "min_bytes": 0, "max_bytes": 2**30, "session_epoch": -1}
    place = {"partition": index, "current_leader_epoch": -1, "log_start_offset": -1}
    place |= {"fetch_offset": 0, "partition_max_bytes": 2**30}
    topic = {"topic": "__transaction_state", "partitions": [place]}
    (told,) = talk.raw.ask("fetch", 12, asked | {"topics": [topic]})["responses"][0]["partitions"]
    data, ids = told["records"], {tx.id: "own", -1: "none"}
    for header in headers(data):
        for each in read_records(data[: header.size]):
            key, value = read(each.key, each.value)
            if key.transactional_id == tx.name:
                yield {"record": as_noted(value, ids)}
        data = data[header.size :]


def as_noted(value, ids):
    """A record without what differs from run to run."""
    begun, updated = (
        value.transaction_start_timestamp_ms,
        value.transaction_last_update_timestamp_ms,
    )
    partitions = value.transaction_partitions
    return {
        "state": value.transaction_status,
        "producer": ids.get(value.producer_id),
        "epoch": value.producer_epoch,
        "previous": ids.get(value.previous_producer_id),
        "next": ids.get(value.next_producer_id),
        "timeout_ms": value.transaction_timeout_ms,
        "partitions": None if partitions is None else indexes_of(partitions),
        "has_begun": begun > 0,
        "is_updated": updated > 0,
        "version": value.client_transaction_version,
    }


def indexes_of(partitions):
    return sorted(index for each in partitions for index in each.partition_ids)


def partitions_of(raw, topic):
    asked = {"topics": [{"name": topic}], "allow_auto_topic_creation": False}
    (told,) = raw.ask("metadata", 12, asked)["topics"]
    return told["partitions"]


CASES = [
    brokers_and_admins_write_markers,
    offsets_of_version_2_count_when_the_transaction_does,
    offsets_of_version_1_count_when_the_transaction_does,
    what_is_committed_is_checked,
    a_zombie_commits_no_offset,
    what_is_in_the_coordinators_log,
    transactions_are_listed,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_answers_are_the_same_when_every_step_takes_its_time(patient, case, name):
    """Where each record must be on the disk first, nothing is decided and written at once."""
    check("transactions", case.__name__, play(case, patient.bootstrap, name), peer=False)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_answers_are_those_of_apache_kafka(either, case, name, request):
    check("transactions", case.__name__, play(case, either.bootstrap, name), peer=is_peer(request))
