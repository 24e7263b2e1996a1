"""The transaction coordinator's decisions, one by one (TXN-05, TXN-08, TXN-12)."""

from dataclasses import replace
from itertools import count

import pytest

from strom.replicated.machine import Decision
from strom.transactions.beginning import NoProducer
from strom.transactions.form import write_key, write_value
from strom.transactions.listing import Filter, described, listed
from strom.transactions.machine import (
    ENDED_MAX,
    EXPIRE,
    EXPIRED_MAX,
    PARTITIONS_MAX,
    TIME_OUT,
    Rules,
)
from strom.transactions.machine import TransactionMachine as Machine
from strom.transactions.transaction import (
    EPOCH_MAX,
    NOBODY,
    Producer,
    State,
    Transaction,
    record_of,
)
from strom.wire.errors import ErrorCode, KafkaError

RULES = Rules(
    version=2,
    expiration_ms=1_000_000,
    time_out_interval_ms=10_000,
    expire_interval_ms=3_600_000,
)
A, B = ("a", 0), ("b", 1)
TIMEOUT_MS = 60_000
#: The default of `max.message.bytes`.
MESSAGE_BYTES_MAX = 1_048_588


class Table:
    """A machine whose decisions are carried out at once."""

    def __init__(self, version=2):
        self.machine = Machine(replace(RULES, version=version))
        self.version = version
        self.now_ms = 1_000
        self.ids = count(100)

    def do(self, decision: Decision):
        for record in decision.records:
            self.machine.apply(record)
        for key, value in decision.soft:
            self.machine.set_soft(key, value)
        return decision.reply

    def init(self, name="t", expected=None, timeout_ms=TIMEOUT_MS):
        def ask(spare_id):
            return self.machine.init_producer_id(
                name, timeout_ms, expected, spare_id, now_ms=self.now_ms
            )

        reply = self.do(ask(None))
        return self.do(ask(next(self.ids))) if reply is NoProducer.NEEDS_ID else reply

    def add(self, producer, *partitions, name="t"):
        decision = self.machine.add_partitions(
            name, producer, frozenset(partitions), version=self.version, now_ms=self.now_ms
        )
        return self.do(decision)

    def end(self, producer, commit=True, version=None, name="t"):
        def ask(spare_id):
            return self.machine.end(
                name,
                producer,
                commit=commit,
                version=self.version if version is None else version,
                spare_id=spare_id,
                now_ms=self.now_ms,
            )

        reply = self.do(ask(None))
        return self.do(ask(next(self.ids))) if reply is NoProducer.NEEDS_ID else reply

    def complete(self, name="t"):
        known = self.machine.prepared[name]
        self.do(self.machine.complete(name, known.producer, self.now_ms))

    def put(self, state, epoch=5, **other):
        """Have a transaction in a state, however it came there."""
        transaction = Transaction("t", Producer(7, epoch), TIMEOUT_MS, state, **other)
        self.machine.apply(record_of(transaction, self.machine.rules.version))
        return transaction.producer

    def state(self, name="t"):
        return self.machine.transactions[name].state

    def restart(self):
        """Go on with what the log has; soft state is lost."""
        again = Machine(self.machine.rules)
        for each in self.machine.transactions.values():
            again.apply(record_of(each, again.rules.version))
        self.machine = again


@pytest.fixture
def table():
    return Table()


def refused(code):
    return pytest.raises(KafkaError, match=rf"^{code.name}")


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
    with refused(ErrorCode.CONCURRENT_TRANSACTIONS):
        table.init()
    with refused(ErrorCode.PRODUCER_FENCED):
        table.add(first, A)
    with refused(ErrorCode.INVALID_TXN_STATE):
        table.end(first)
    table.complete()
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


# How it ends.

ENDS, SAME, FENCED, BUSY, INVALID = "ends", "same", "fenced", "busy", "invalid"
NEW, OLD = 0, -1

#: As the head of `ending.py` has it: abort, abort again, commit, commit again.
VERSION_2 = {
    State.ONGOING: (ENDS, FENCED, ENDS, FENCED),
    State.PREPARE_ABORT: (FENCED, BUSY, FENCED, INVALID),
    State.PREPARE_COMMIT: (FENCED, INVALID, FENCED, BUSY),
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
def test_an_end_of_an_epoch_further_back_is_fenced_in_every_state(state, commit):
    table = Table()
    current = table.put(state)
    for epoch in (current.epoch - 2, current.epoch + 1):
        with refused(ErrorCode.PRODUCER_FENCED):
            table.end(Producer(current.id, epoch), commit)


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


# By the clock.


def test_txn_12_what_takes_too_long_is_aborted_and_its_producer_fenced(table):
    producer = table.init()
    table.add(producer, A)
    table.now_ms += TIMEOUT_MS
    assert table.machine.on_timer(TIME_OUT, table.now_ms).records == ()
    table.now_ms += 1
    decision = table.machine.on_timer(TIME_OUT, table.now_ms)
    table.do(decision)
    assert decision.timers == ((TIME_OUT, table.now_ms + RULES.time_out_interval_ms),)
    assert decision.reply == ("t",)
    assert table.state() is State.PREPARE_ABORT
    with refused(ErrorCode.PRODUCER_FENCED):
        table.add(producer, A)
    with refused(ErrorCode.INVALID_TXN_STATE):
        table.end(producer)


def test_txn_12_a_transaction_that_grows_has_no_more_time_than_it_had(table):
    producer = table.init()
    table.add(producer, A)
    table.now_ms += TIMEOUT_MS
    table.add(producer, B)
    table.now_ms += 1
    assert table.machine.on_timer(TIME_OUT, table.now_ms).reply == ("t",)


def test_a_producer_that_was_too_slow_may_abort_and_go_on(table):
    producer = table.init()
    table.add(producer, A)
    table.now_ms += TIMEOUT_MS + 1
    table.do(table.machine.on_timer(TIME_OUT, table.now_ms))
    table.complete()
    next_one = table.end(producer, commit=False)
    assert next_one == Producer(producer.id, 1)
    table.add(next_one, A)


def test_many_that_take_too_long_are_aborted_in_turns(table):
    for number in range(ENDED_MAX + 1):
        name = f"t{number:04}"
        table.add(table.init(name), A, name=name)
    table.now_ms += TIMEOUT_MS + 1
    decision = table.machine.on_timer(TIME_OUT, table.now_ms)
    assert len(decision.records) == ENDED_MAX
    assert decision.timers == ((TIME_OUT, table.now_ms),)
    table.do(decision)
    assert len(table.machine.on_timer(TIME_OUT, table.now_ms).records) == 1


def test_large_ones_that_take_too_long_are_aborted_a_few_at_a_time(table):
    """TXN-12: what one decision writes must fit into a batch, or none of them would ever end."""
    for name in "abc":
        places = [(f"{index:0249}", 0) for index in range(PARTITIONS_MAX // 2 + 1)]
        table.add(table.init(name), *places, name=name)
    table.now_ms += TIMEOUT_MS + 1
    for name in "abc":
        decision = table.machine.on_timer(TIME_OUT, table.now_ms)
        assert decision.reply == (name,)
        (record,) = decision.records
        assert len(write_key(record.key) + write_value(record.value)) < MESSAGE_BYTES_MAX / 2
        again_ms = table.now_ms + (RULES.time_out_interval_ms if name == "c" else 0)
        assert decision.timers == ((TIME_OUT, again_ms),)
        table.do(decision)


def test_an_id_that_is_not_used_is_forgotten(table):
    table.init("resting")
    open_one = table.init("open")
    table.add(open_one, A, name="open")
    table.now_ms += RULES.expiration_ms - 1
    assert table.machine.on_timer(EXPIRE, table.now_ms).records == ()
    table.now_ms += 1
    decision = table.machine.on_timer(EXPIRE, table.now_ms)
    table.do(decision)
    assert decision.timers == ((EXPIRE, table.now_ms + RULES.expire_interval_ms),)
    assert list(table.machine.transactions) == ["open"]


def test_many_ids_are_forgotten_in_turns(table):
    for number in range(EXPIRED_MAX + 1):
        table.init(f"t{number:04}")
    table.now_ms += RULES.expiration_ms
    decision = table.machine.on_timer(EXPIRE, table.now_ms)
    assert len(decision.records) == EXPIRED_MAX
    assert decision.timers == ((EXPIRE, table.now_ms),)
    table.do(decision)
    assert len(table.machine.on_timer(EXPIRE, table.now_ms).records) == 1


def test_the_clock_is_watched_from_the_start(table):
    timers = dict(table.machine.on_loaded(500).timers)
    assert timers == {TIME_OUT: 10_500, EXPIRE: 3_600_500}


# What is told of them.


def test_lists_are_filtered_by_everything_at_once(table):
    one, two = table.init("one"), table.init("two")
    table.add(two, A, name="two")
    known = table.machine.transactions.values()

    def names(**wanted):
        return [each.transactional_id for each in listed(known, Filter(**wanted), 5_000)]

    assert names() == ["one", "two"]
    assert names(states=["Ongoing"]) == ["two"]
    assert names(states=["Ongoing", "Empty"]) == ["one", "two"]
    assert names(states=["ongoing"]) == []
    assert names(producer_ids=[one.id]) == ["one"]
    assert names(producer_ids=[one.id], states=["Ongoing"]) == []
    assert names(duration_ms=3_999) == ["one", "two"]
    assert names(duration_ms=4_000) == ["one"]
    assert names(matches=lambda name: name == "two") == ["two"]
    assert Filter(states=["Odd", "PrepareEpochFence", "Dead"]).unknown_states() == ("Odd",)


def test_a_description_is_of_one_that_is_known(table):
    table.init("one")
    known = table.machine.transactions
    assert described(known, "one").state.title == "Empty"
    with refused(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND):
        described(known, "two")
    with refused(ErrorCode.INVALID_REQUEST):
        described(known, "")
