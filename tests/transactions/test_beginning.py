"""Who has a transactional id, and what is taken into its transaction (TXN-05)."""

import pytest

from strom.replicated.machine import Decision
from strom.transactions.beginning import NoProducer
from strom.transactions.machine import TIME_OUT
from strom.transactions.transaction import EPOCH_MAX, Producer, State
from strom.wire.errors import ErrorCode
from tests.transactions.machine_table import TIMEOUT_MS, A, B, Table, refused

# Who has the transactional id.


def test_a_new_id_gets_a_new_producer_at_epoch_0(table):
    assert table.init() == Producer(100, 0)
    assert table.state() is State.EMPTY


def test_txn_05_each_newcomer_fences_off_the_one_before(table):
    first = table.init()
    second = table.init()
    assert second == Producer(first.id, 1)
    with refused(ErrorCode.PRODUCER_FENCED):
        table.add(first, A)
    with refused(ErrorCode.PRODUCER_FENCED):
        table.end(first)
    table.add(second, A)


def test_an_id_is_taken_only_when_one_is_needed(table):
    ask = table.machine.init_producer_id
    assert ask("t", 1, None, None, now_ms=0) == Decision((), NoProducer.NEEDS_ID)
    table.init()
    assert ask("t", 1, None, None, now_ms=0).reply == Producer(100, 1)


def test_a_producer_that_says_its_epoch_gets_the_next_and_again_the_same(table):
    """KIP-360: a repeated request must not raise the epoch twice."""
    first = table.init()
    second = table.init(expected=first)
    assert second == Producer(first.id, 1)
    assert table.init(expected=first) == second
    assert table.init(expected=second) == Producer(first.id, 2)
    with refused(ErrorCode.PRODUCER_FENCED):
        table.init(expected=first)


def test_one_that_was_fenced_does_not_come_back_by_saying_its_epoch(table):
    first = table.init()
    table.init()
    with refused(ErrorCode.PRODUCER_FENCED):
        table.init(expected=first)
    with refused(ErrorCode.PRODUCER_FENCED):
        table.init(expected=Producer(999, 0))


def test_a_fenced_one_does_not_abort_what_its_successor_has_open(table):
    """Kafka would: it looks at the id alone as long as a transaction is open."""
    first = table.init()
    second = table.init()
    table.add(second, A)
    with refused(ErrorCode.PRODUCER_FENCED):
        table.init(expected=first)
    assert table.state() is State.ONGOING


def test_an_id_that_was_forgotten_is_given_anew_whatever_is_expected(table):
    assert table.init(expected=Producer(5, 8)) == Producer(100, 0)


def test_what_is_open_is_aborted_before_a_newcomer_gets_it(table):
    first = table.init()
    table.add(first, A)
    assert table.init() is NoProducer.ABORTING
    assert table.state() is State.PREPARE_ABORT
    for ask in (table.init, lambda: table.add(first, A), lambda: table.end(first)):
        with refused(ErrorCode.CONCURRENT_TRANSACTIONS):
            ask()
    table.complete()
    with refused(ErrorCode.PRODUCER_FENCED):
        table.add(first, A)
    with refused(ErrorCode.INVALID_TXN_STATE):
        table.end(first)
    assert table.init() == Producer(first.id, 2)
    with refused(ErrorCode.PRODUCER_FENCED):
        table.end(first)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_fencing_raises_the_epoch_by_one_in_every_version(version):
    table = Table(version)
    first = table.init()
    table.add(first, A)
    table.init()
    assert table.machine.prepared["t"].producer == Producer(first.id, 1)


def test_a_producer_with_no_epochs_left_gets_another_id(table):
    last = table.put(State.EMPTY, epoch=EPOCH_MAX - 1)
    given = table.init()
    assert given == Producer(100, 0)
    with refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING):
        table.add(last, A)


def test_one_that_missed_its_new_id_gets_it_again(table):
    last = table.put(State.EMPTY, epoch=EPOCH_MAX - 1)
    given = table.init(expected=last)
    assert given == Producer(100, 0)
    assert table.init(expected=last) == given


def test_one_that_had_the_id_before_does_not_pass_for_its_successor(table):
    """The successor's epochs begin at 0, as its own did."""
    last = table.put(State.EMPTY, epoch=EPOCH_MAX - 1)
    assert table.init() == Producer(100, 0)
    for epoch in (0, 1):
        with refused(ErrorCode.PRODUCER_FENCED):
            table.init(expected=Producer(last.id, epoch))


@pytest.mark.parametrize("version", [0, 1])
def test_what_was_answered_before_a_time_out_is_not_answered_again(version):
    table = Table(version)
    first = table.init()
    second = table.init(expected=first)
    table.add(second, A)
    table.now_ms += TIMEOUT_MS + 1
    table.do(table.machine.on_timer(TIME_OUT, table.now_ms))
    table.complete()
    for known in (first, second):
        with refused(ErrorCode.PRODUCER_FENCED):
            table.init(expected=known)


def test_fencing_works_with_the_last_epoch_too(table):
    table.put(State.ONGOING, epoch=EPOCH_MAX - 1)
    assert table.init() is NoProducer.ABORTING
    assert table.machine.prepared["t"].producer == Producer(7, EPOCH_MAX)
    table.complete()
    assert table.init() == Producer(100, 0)


def test_even_beyond_the_last_epoch_an_abort_goes_through(table):
    table.put(State.ONGOING, epoch=EPOCH_MAX)
    assert table.init() is NoProducer.ABORTING
    table.complete()
    assert table.init() == Producer(100, 0)


# What is in a transaction.


def test_partitions_are_taken_in_and_open_the_transaction_once(table):
    producer = table.init()
    table.add(producer, A)
    begun = table.machine.transactions["t"]
    table.now_ms += 50
    table.add(producer, A, B)
    grown = table.machine.transactions["t"]
    assert grown.partitions == {A, B}
    assert grown.started_ms == begun.started_ms == 1_000
    assert grown.updated_ms == 1_050


def test_what_is_in_already_is_not_written_again(table):
    producer = table.init()
    table.add(producer, A, B)
    decision = table.machine.add_partitions("t", producer, {A}, version=2, now_ms=1)
    assert decision == Decision((), None)


@pytest.mark.parametrize("state", [State.PREPARE_COMMIT, State.PREPARE_ABORT])
def test_nothing_is_added_while_the_last_one_ends(table, state):
    producer = table.put(state)
    with refused(ErrorCode.CONCURRENT_TRANSACTIONS):
        table.add(producer, A)
    with refused(ErrorCode.CONCURRENT_TRANSACTIONS):
        table.machine.verify_partitions("t", producer, [A])


def test_a_leader_is_told_which_partitions_are_in(table):
    producer = table.init()
    table.add(producer, A)
    told = table.machine.verify_partitions("t", producer, [A, B])
    assert told == Decision((), {A: ErrorCode.NONE, B: ErrorCode.TRANSACTION_ABORTABLE})


def test_nobody_is_known_by_another_ones_id(table):
    table.init()
    for ask in (table.add, table.end):
        with refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING):
            ask(Producer(5, 0), name="t")
        with refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING):
            ask(Producer(5, 0), name="unknown")
