"""The records of `__transaction_state`: Kafka's bytes, in both versions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strom.replicated.machine import KeyValue
from strom.transactions.records import (
    PlainTransactionLogValue,
    TransactionLogKey,
    read,
    write_key,
    write_value,
)
from strom.transactions.transaction import (
    Producer,
    State,
    Transaction,
    record_of,
    transaction_of,
)
from strom.wire.messages import write_message
from strom.wire.primitives import MalformedFrame

int64 = st.integers(0, 2**63 - 1)
transactions = st.builds(
    Transaction,
    st.text(max_size=20),
    st.builds(Producer, int64, st.integers(0, 2**15 - 1)),
    st.integers(1, 2**31 - 1),
    st.sampled_from([each for each in State if each is not State.EMPTY]),
    st.frozensets(st.tuples(st.text(max_size=10), st.integers(0, 2**31 - 1)), max_size=6),
    st.integers(-1, 2**62),
    st.integers(-1, 2**62),
    st.integers(-1, 2**62),
    st.integers(-1, 2**62),
    st.integers(0, 2),
)

KEY = bytes.fromhex("0000 0002 6162".replace(" ", ""))
PARTITIONED = Transaction(
    "ab",
    Producer(7, 3),
    60_000,
    State.ONGOING,
    frozenset({("t", 1), ("t", 0), ("s", 2)}),
    started_ms=1000,
    updated_ms=2000,
    previous_id=7,
    version=2,
)
#: As Kafka's TransactionLogValue writes it.
VALUE_1 = bytes.fromhex(
    "0001"  # version
    "0000000000000007 0003 0000ea60 01"
    "03"  # two topics: s [2], t [0, 1]
    "0273 02 00000002 00"
    "0274 03 00000000 00000001 00"
    "00000000000007d0 00000000000003e8"
    "02"  # two tagged fields: the id before, the client's version
    "00 08 0000000000000007"
    "02 02 0002".replace(" ", "")
)
VALUE_0 = bytes.fromhex(
    "0000"
    "0000000000000007 0003 0000ea60 01"
    "00000002"
    "0001 73 00000001 00000002"
    "0001 74 00000002 00000000 00000001"
    "00000000000007d0 00000000000003e8".replace(" ", "")
)


def test_a_key_is_its_type_and_the_transactional_id():
    assert write_key(TransactionLogKey(transactional_id="ab")) == KEY


def test_a_value_is_as_kafka_writes_it():
    assert write_value(record_of(PARTITIONED, 2).value) == VALUE_1
    assert write_value(record_of(PARTITIONED, 1).value) == VALUE_1


def test_before_version_1_a_value_has_no_tagged_fields():
    assert write_value(record_of(PARTITIONED, 0).value) == VALUE_0


def test_an_empty_transaction_has_no_partitions_at_all():
    empty = Transaction("ab", Producer(7, 0), 5)
    assert record_of(empty, 2).value.transaction_partitions is None
    assert transaction_of("ab", read(KEY, write_value(record_of(empty, 2).value)).value) == empty


@given(transactions)
def test_what_is_written_is_read_back(transaction):
    key, value = record_of(transaction, 2)
    found = read(write_key(key), write_value(value))
    assert found == KeyValue(key, value)
    assert transaction_of(transaction.transactional_id, found.value) == transaction


@given(transactions)
def test_a_plain_value_says_the_same_but_for_the_tagged_fields(transaction):
    key, value = record_of(transaction, 0)
    assert type(value) is PlainTransactionLogValue
    found = read(write_key(key), write_value(value))
    live = transaction_of(transaction.transactional_id, value)
    assert transaction_of(transaction.transactional_id, found.value) == live


@given(transactions, st.integers(0, 2), st.integers(-1, 2**15 - 1))
def test_a_record_is_written_as_it_is_declared(transaction, version, next_epoch):
    key, value = record_of(transaction, version)
    if version:
        value.next_producer_epoch = next_epoch
    assert write_key(key) == b"\0\0" + write_message(key)
    assert write_value(value) == type(value).__version__.to_bytes(2) + write_message(value)


def test_a_tombstone_is_read():
    assert read(KEY, None) == KeyValue(TransactionLogKey(transactional_id="ab"), None)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"\0\1" + KEY[2:], VALUE_1),
        (KEY, b"\0\2" + VALUE_1[2:]),
        (KEY, VALUE_1[:16] + b"\x63" + VALUE_1[17:]),
    ],
    ids=["type", "version", "state"],
)
def test_what_is_not_known_is_stepped_over(key, value):
    assert read(KEY, VALUE_1) is not None
    assert read(key, value) is None


def test_a_tagged_field_of_a_later_version_is_stepped_over():
    later = VALUE_1.replace(b"\x02\x00\x08", b"\x03\x00\x08", 1) + b"\x09\x01\x00"
    assert read(KEY, later) == read(KEY, VALUE_1)


@given(st.binary(max_size=40), st.none() | st.binary(max_size=60))
def test_any_bytes_are_a_record_or_refused(key, value):
    try:
        found = read(key, value)
    except MalformedFrame:
        return
    assert found is None or isinstance(found, KeyValue)


@given(st.sampled_from([0, 1]), st.binary(max_size=60))
def test_any_bytes_behind_a_known_version_are_a_record_or_refused(version, data):
    try:
        found = read(KEY, version.to_bytes(2) + data)
    except MalformedFrame:
        return
    assert found is None or isinstance(found, KeyValue)


@given(st.integers(0, len(VALUE_1) - 1))
def test_a_value_that_is_cut_off_is_refused(size):
    with pytest.raises(MalformedFrame):
        read(KEY, VALUE_1[:size])
