"""How transactions end, whoever ends them and however often (TXN-08, TXN-12)."""

import pytest

from strom.replicated.machine import Decision
from strom.transactions.beginning import NoProducer
from strom.transactions.machine import ASKS_AGAIN_MS_MIN, TIME_OUT
from strom.transactions.transaction import (
    EPOCH_MAX,
    NO_CONNECTION,
    NOBODY,
    PREPARED,
    Producer,
    State,
)
from strom.wire.errors import ErrorCode
from tests.transactions.machine_table import TIMEOUT_MS, A, B, Table, refused

ENDS, SAME, FENCED, BUSY, INVALID = "ends", "same", "fenced", "busy", "invalid"
NEW, OLD = 0, -1

#: As the head of `ending.py` has it: abort, abort again, commit, commit again.
VERSION_2 = {
    State.ONGOING: (ENDS, FENCED, ENDS, FENCED),
    State.PREPARE_ABORT: (BUSY, BUSY, BUSY, BUSY),
    State.PREPARE_COMMIT: (BUSY, BUSY, BUSY, BUSY),
    State.COMPLETE_ABORT: (ENDS, SAME, INVALID, INVALID),
    State.COMPLETE_COMMIT: (ENDS, INVALID, INVALID, SAME),
    State.EMPTY: (ENDS, FENCED, INVALID, FENCED),
}
#: Abort, commit.
VERSION_1 = {
    State.ONGOING: (ENDS, ENDS),
    State.PREPARE_ABORT: (BUSY, INVALID),
    State.PREPARE_COMMIT: (INVALID, BUSY),
    State.COMPLETE_ABORT: (SAME, INVALID),
    State.COMPLETE_COMMIT: (INVALID, SAME),
    State.EMPTY: (INVALID, INVALID),
}
CODES = {
    FENCED: ErrorCode.PRODUCER_FENCED,
    BUSY: ErrorCode.CONCURRENT_TRANSACTIONS,
    INVALID: ErrorCode.INVALID_TXN_STATE,
}
ASKED_2 = [(False, NEW), (False, OLD), (True, NEW), (True, OLD)]
TABLE_2 = [
    (state, commit, epoch, expected)
    for state, row in VERSION_2.items()
    for (commit, epoch), expected in zip(ASKED_2, row, strict=True)
]
TABLE_1 = [
    (state, commit, expected)
    for state, row in VERSION_1.items()
    for commit, expected in zip((False, True), row, strict=True)
]


@pytest.mark.parametrize(("state", "commit", "epoch", "expected"), TABLE_2)
def test_every_end_of_version_2_is_answered_as_the_table_says(state, commit, epoch, expected):
    table = Table()
    current = table.put(state)
    producer = Producer(current.id, current.epoch + epoch)
    if expected in CODES:
        with refused(CODES[expected]):
            table.end(producer, commit)
        assert table.state() is state
    elif expected == SAME:
        assert table.end(producer, commit) == current
        assert table.state() is state
    else:
        assert table.end(producer, commit) == Producer(current.id, current.epoch + 1)
        assert table.state() is (State.PREPARE_COMMIT if commit else State.PREPARE_ABORT)


@pytest.mark.parametrize(("state", "commit", "expected"), TABLE_1)
def test_every_end_of_version_1_is_answered_as_the_table_says(state, commit, expected):
    table = Table(version=1)
    producer = table.put(state)
    if expected in CODES:
        with refused(CODES[expected]):
            table.end(producer, commit)
        assert table.state() is state
        return
    assert table.end(producer, commit) == NOBODY
    if expected == SAME:
        assert table.state() is state
    else:
        assert table.machine.prepared["t"].producer == producer
        assert table.state() is (State.PREPARE_COMMIT if commit else State.PREPARE_ABORT)
    for epoch in (producer.epoch - 1, producer.epoch + 1):
        with refused(ErrorCode.PRODUCER_FENCED):
            table.end(Producer(producer.id, epoch), commit)


@pytest.mark.parametrize("state", VERSION_2)
@pytest.mark.parametrize("commit", [True, False])
def test_an_end_of_an_epoch_further_back_is_fenced_once_the_markers_are_written(state, commit):
    table = Table()
    current = table.put(state)
    told = ErrorCode.CONCURRENT_TRANSACTIONS if state in PREPARED else ErrorCode.PRODUCER_FENCED
    for epoch in (current.epoch - 2, current.epoch + 1):
        with refused(told):
            table.end(Producer(current.id, epoch), commit)
    assert table.state() is state


def test_a_late_end_touches_no_later_transaction(table):
    first = table.init()
    table.add(first, A)
    second = table.end(first)
    table.complete()
    table.add(second, A)
    for commit in (True, False):
        with refused(ErrorCode.PRODUCER_FENCED):
            table.end(first, commit)
    assert table.state() is State.ONGOING


def test_a_commit_that_uses_up_the_epochs_hands_over_to_another_id(table):
    last = table.put(State.ONGOING, epoch=EPOCH_MAX - 1, partitions=frozenset({A}))
    given = table.end(last)
    assert given == Producer(100, 0)
    # The markers are still the old producer's, with an epoch that no client ever gets.
    assert table.machine.prepared["t"].producer == Producer(last.id, EPOCH_MAX)
    with refused(ErrorCode.CONCURRENT_TRANSACTIONS):
        table.end(last)
    table.complete()
    assert table.end(last) == given
    with refused(ErrorCode.INVALID_TXN_STATE):
        table.end(last, commit=False)
    table.add(given, A)
    with refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING):
        table.end(last)


def test_who_knows_its_new_id_early_is_told_to_come_again(table):
    last = table.put(State.ONGOING, epoch=EPOCH_MAX - 1)
    given = table.end(last)
    for ask in (lambda: table.add(given, A), lambda: table.init(expected=given)):
        with refused(ErrorCode.CONCURRENT_TRANSACTIONS):
            ask()
    table.complete()
    table.add(given, A)


@pytest.mark.parametrize("comes_again", ["abort", "init"])
def test_nobody_gets_the_last_epoch_after_a_time_out(table, comes_again):
    """What is written with it could never be ended: there is no epoch for its marker."""
    last = table.put(State.ONGOING, epoch=EPOCH_MAX - 1, partitions=frozenset({A}), started_ms=0)
    table.now_ms += TIMEOUT_MS
    table.do(table.machine.on_timer(TIME_OUT, table.now_ms))
    assert table.machine.prepared["t"].producer == Producer(last.id, EPOCH_MAX)
    table.complete()

    def come_again():
        if comes_again == "init":
            return table.init(expected=last)
        return table.end(last, commit=False)

    given = come_again()
    assert given == Producer(100, 0)
    if table.machine.prepared:
        assert not table.machine.prepared["t"].partitions
        table.complete()
    assert come_again() == given
    table.add(given, A)


def test_a_restart_knows_which_id_follows(table):
    last = table.put(State.ONGOING, epoch=EPOCH_MAX - 1)
    given = table.end(last)
    table.restart()
    table.complete()
    assert table.end(last) == given


def test_txn_12_what_was_prepared_is_there_after_a_restart(table):
    producer = table.init()
    table.add(producer, A, B)
    table.end(producer)
    before = table.machine.prepared
    table.restart()
    assert table.machine.prepared == before
    assert table.machine.on_loaded(0).reply == ("t",)
    assert before["t"].partitions == {A, B}
    table.complete()
    assert table.state() is State.COMPLETE_COMMIT
    assert table.machine.prepared == {}


def test_only_what_was_prepared_is_completed(table):
    producer = table.init()
    table.add(producer, A)
    assert table.machine.complete("t", producer, 0) == Decision((), None)
    table.end(producer)
    assert table.machine.complete("t", producer, 0) == Decision((), None)
    assert table.machine.complete("unknown", producer, 0) == Decision((), None)


# Version 1: what is late looks as if it were in time.


@pytest.fixture
def older():
    """A table with a transaction of version 1 that was begun by connection 5."""
    table = Table(version=1)
    table.producer = table.init()
    table.add(table.producer, A, connection=5)
    return table


@pytest.mark.parametrize("commit", [True, False])
def test_an_end_by_an_older_connection_than_the_transaction_was_begun_by_ends_nothing(
    older, commit
):
    assert older.end(older.producer, commit, connection=4) is NoProducer.DOUBTED
    assert older.state() is State.ONGOING
    older.end(older.producer, connection=5)
    assert older.state() is State.PREPARE_COMMIT


@pytest.mark.parametrize("connection", [5, 6, NO_CONNECTION])
def test_an_end_by_the_same_connection_or_a_newer_one_is_believed(older, connection):
    assert older.end(older.producer, connection=connection) == NOBODY
    assert older.state() is State.PREPARE_COMMIT


def test_whoever_is_still_there_asks_again_by_the_older_connection_and_is_believed(older):
    older.end(older.producer, connection=4)
    assert older.end(older.producer, connection=3) is NoProducer.DOUBTED
    older.now_ms += ASKS_AGAIN_MS_MIN
    assert older.end(older.producer, connection=3) == NOBODY
    assert older.state() is State.PREPARE_COMMIT


def test_two_that_were_delayed_by_the_same_connection_are_both_doubted(older):
    older.end(older.producer, connection=4)
    older.now_ms += ASKS_AGAIN_MS_MIN - 1
    assert older.end(older.producer, connection=4) is NoProducer.DOUBTED
    assert older.state() is State.ONGOING


def test_who_takes_over_by_an_older_connection_is_believed(older):
    """What counts is by which connection this transaction was begun."""
    older.end(older.producer)
    older.complete()
    successor = older.init()
    for _ in range(2):
        older.add(successor, A, connection=3)
        assert older.end(successor, connection=3) == NOBODY
        older.complete()


def test_who_was_believed_once_is_doubted_again_with_the_next_transaction(older):
    older.end(older.producer, connection=4)
    older.now_ms += ASKS_AGAIN_MS_MIN
    older.end(older.producer, connection=4)
    older.complete()
    older.add(older.producer, A, connection=6)
    assert older.end(older.producer, connection=4) is NoProducer.DOUBTED


def test_partitions_that_come_late_by_an_older_connection_leave_the_newest_one_known(older):
    older.add(older.producer, B, connection=2)
    assert older.end(older.producer, connection=4) is NoProducer.DOUBTED


def test_with_version_2_the_epoch_tells_and_no_connection_is_doubted(table):
    producer = table.init()
    table.add(producer, A, connection=5)
    assert table.end(producer, connection=4).epoch == producer.epoch + 1
