"""What the coordinator does by the clock, and what it tells of transactions (TXN-12)."""

from strom.transactions.listing import Filter, described, listed
from strom.transactions.machine import ENDED_MAX, EXPIRE, EXPIRED_MAX, PARTITIONS_MAX, TIME_OUT
from strom.transactions.records import write_key, write_value
from strom.transactions.transaction import Producer, State
from strom.wire.errors import ErrorCode
from tests.transactions.machine_table import RULES, TIMEOUT_MS, A, B, refused

#: The default of `max.message.bytes`.
MESSAGE_BYTES_MAX = 1_048_588


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
    for ask in (lambda: table.add(producer, A), lambda: table.end(producer)):
        with refused(ErrorCode.CONCURRENT_TRANSACTIONS):
            ask()
    table.complete()
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
