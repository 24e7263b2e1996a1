"""Transactions over a restart, at the points that a kill hardly ever hits (TXN-12).

What a coordinator leaves behind that dies between two of its steps is written into its log while
the broker is stopped.
"""

import time

import pytest

from strom.broker.coordination import java_hash
from strom.log.config import LogConfig
from strom.log.disk import RealDisk
from strom.records.record import Record, read_records, write_batch
from strom.transactions.records import read, write_key, write_value
from strom.transactions.transaction import Producer, State, record_of, transaction_of
from tests.conformance.transacting import END_V2, Tx, describe
from tests.conformance.transcript import Transcript
from tests.log.making import open_log, whole_batches
from tests.log.making import read as read_log
from tests.patience import until

PARTITIONS = 50
GROUP_OFFSET = 5


def coordinators_log(process, name):
    """The log that the coordinator of a transactional id writes, of a broker that is stopped."""
    path = process.directory / f"__transaction_state-{java_hash(name) % PARTITIONS}"
    return open_log(RealDisk(), LogConfig(), clean=False, path=str(path))


def newest(log, name):
    """What the log says last of a transactional id."""
    part = read_log(log, 0, max_bytes=1 << 20, end_offset=log.end_offset, whole_first=True)
    records = [each for batch in whole_batches(part.read_bytes()) for each in read_records(batch)]
    found = [read(each.key, each.value) for each in records]
    own = [each.value for each in found if each.key.transactional_id == name]
    return transaction_of(name, own[-1])


def write(log, transaction):
    """Write a record as the coordinator would have."""
    key, value = record_of(transaction, 2)
    now_ms = round(time.time() * 1000)
    record = Record(0, now_ms, write_key(key), write_value(value))
    log.append_as_leader(memoryview(write_batch([record])), leader_epoch=0, now_ms=now_ms)
    log.close()


@pytest.fixture
def stopped(broker_process):
    """A broker that stopped with a transaction open, which wrote to two partitions and a group."""
    process = broker_process(transaction_state_log_num_partitions=PARTITIONS)
    talk = Transcript(process.bootstrap, "kept")
    with talk.raw:
        talk.create(partitions=2)
        tx = Tx(talk).with_group()
        tx.init()
        tx.write("a")
        tx.write("b", partition=1)
        tx.commit_offset(GROUP_OFFSET)
    process.stop()
    # What is written by hand must be looked for.
    (process.directory / ".kafka_cleanshutdown").unlink()
    return process, tx


def resumed(process, tx):
    """The conversation goes on with the broker that is back."""
    process.start()
    tx.talk = Transcript(process.bootstrap, "kept")
    return tx


def until_complete(tx):
    (state,) = until(
        lambda: describe(tx.talk, tx.name),
        lambda states: states[0]["transaction_state"].startswith("Complete"),
    )
    return state


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_txn_12_what_was_prepared_is_finished_after_a_restart(stopped, commit):
    process, tx = stopped
    log = coordinators_log(process, tx.name)
    open_one = newest(log, tx.name)
    assert open_one.state is State.ONGOING
    state = State.PREPARE_COMMIT if commit else State.PREPARE_ABORT
    producer = Producer(tx.id, tx.epoch + 1)
    write(log, open_one._replace(state=state, producer=producer, version=2))
    resumed(process, tx)
    with tx.talk.raw:
        found = until_complete(tx)
        assert found["transaction_state"] == ("CompleteCommit" if commit else "CompleteAbort")
        for partition in range(2):
            tx.read(partition=partition)
            told = tx.talk.lines[-1]["fetch v12"]
            assert told["last_stable_offset"] == told["high_watermark"] == 2
            assert told["aborted"] == ([] if commit else [0])
        (told,) = tx.offset(stable=True)["groups"][0]["topics"][0]["partitions"]
        assert told["committed_offset"] == (GROUP_OFFSET if commit else -1)
        # The producer asks again, as its answer was lost; and goes on.
        asked = tx.who() | {"committed": commit}
        answer = tx.talk.raw.ask("end_txn", END_V2, asked)
        assert (answer["error_code"], answer["producer_epoch"]) == ("none", tx.epoch + 1)
        tx.epoch, tx.sequence = answer["producer_epoch"], {}
        tx.write("c")
        assert tx.talk.lines[-1]["produce v12"]["error_code"] == "none"


def test_txn_12_markers_that_were_written_before_are_no_harm(stopped):
    """Some partitions have their marker already, and get it again."""
    process, tx = stopped
    for _ in range(2):
        log = coordinators_log(process, tx.name)
        open_one = newest(log, tx.name)
        producer = Producer(tx.id, tx.epoch + 1)
        places = frozenset({("kept", 0), ("kept", 1)})
        prepared = open_one._replace(
            state=State.PREPARE_COMMIT,
            producer=producer,
            partitions=places,
            version=2,
            started_ms=1,
        )
        write(log, prepared)
        resumed(process, tx)
        with tx.talk.raw:
            until_complete(tx)
        process.stop()
        (process.directory / ".kafka_cleanshutdown").unlink()
    resumed(process, tx)
    with tx.talk.raw:
        tx.read()
        assert tx.talk.lines[-1]["fetch v12"]["records"] == ["0-0: 1", "1-1: 1", "2-2: 1"]


def test_a_transaction_ends_although_its_topic_is_gone(broker_process):
    process = broker_process()
    talk = Transcript(process.bootstrap, "gone")
    with talk.raw:
        talk.create()
        talk.create("-kept")
        tx = Tx(talk)
        tx.init()
        tx.write("a")
        tx.write("b", suffix="-kept")
        talk.raw.ask("delete_topics", 6, {"topics": [{"name": "gone"}], "timeout": 10_000})
        tx.end(committed=True)
        assert until_complete(tx)["transaction_state"] == "CompleteCommit"
        tx.read(suffix="-kept")
        assert talk.lines[-1]["fetch v12"]["last_stable_offset"] == 2
