"""Requests of transactions, read and written by hand, against kio's classes of each version."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as some

from strom.wire import add_partitions_to_txn, end_txn
from strom.wire.codec import NOT_A_MESSAGE, load_class
from strom.wire.errors import ErrorCode
from strom.wire.primitives import MalformedFrame
from tests.wire.versions import (
    NUMBERS,
    TEXTS,
    class_in,
    few,
    in_short,
    make,
    read_in_kio,
    request_of,
    written,
)

IDS = some.integers(-1, 2**63 - 1)
EPOCHS = some.integers(-1, 2**15 - 1)
CODES = some.sampled_from([ErrorCode.NONE, ErrorCode.PRODUCER_FENCED])
WHO = some.tuples(TEXTS, IDS, EPOCHS)
TOPICS = few(some.tuples(TEXTS, few(NUMBERS).map(tuple)))
TOLD = few(some.builds(add_partitions_to_txn.TopicAdded, TEXTS, few(some.tuples(NUMBERS, CODES))))
MODULES = [end_txn, add_partitions_to_txn]
each_version = pytest.mark.parametrize("version", range(6))


@each_version
@in_short
@given(who=WHO, committed=some.booleans())
def test_an_end_is_read_as_kio_writes_it(version, who, committed):
    name, producer_id, epoch = who
    read = request_of(
        end_txn,
        version,
        transactional_id=name,
        producer_id=producer_id,
        producer_epoch=epoch,
        committed=committed,
    )
    assert read == (*who, committed)


@each_version
@in_short
@given(answer=some.builds(end_txn.EndTxnResponse, CODES, IDS, EPOCHS, some.just(42)))
def test_the_answer_to_an_end_reads_in_kio_as_it_was_written(version, answer):
    read = read_in_kio(end_txn, version, answer)
    if version >= 5:
        assert (read.producer_id, read.producer_epoch) == answer[1:3]


def request_for_one(version, who, topics):
    """What kio writes up to version 3."""
    cls = load_class("add_partitions_to_txn", version, "request")
    topic = class_in(cls, "v3_and_below_topics")
    return make(
        cls,
        v3_and_below_transactional_id=who[0],
        v3_and_below_producer_id=who[1],
        v3_and_below_producer_epoch=who[2],
        v3_and_below_topics=tuple(topic(name=name, partitions=places) for name, places in topics),
    )


def request_for_many(version, transactions):
    """What kio writes from version 4 on."""
    cls = load_class("add_partitions_to_txn", version, "request")
    one = class_in(cls, "transactions")
    topic = class_in(one, "topics")
    made = tuple(
        one(
            transactional_id=name,
            producer_id=producer_id,
            producer_epoch=epoch,
            verify_only=verify_only,
            topics=tuple(topic(name=each, partitions=places) for each, places in topics),
        )
        for (name, producer_id, epoch), verify_only, topics in transactions
    )
    return make(cls, transactions=made)


@pytest.mark.parametrize("version", range(4))
@in_short
@given(who=WHO, topics=TOPICS)
def test_partitions_of_one_transaction_are_read_as_kio_writes_them(version, who, topics):
    data = memoryview(written(request_for_one(version, who, topics)))
    read = add_partitions_to_txn.read_request(data, 0, version)
    assert read.transactions == [(*who, False, topics)]


@pytest.mark.parametrize("version", [4, 5])
@in_short
@given(transactions=few(some.tuples(WHO, some.booleans(), TOPICS)))
def test_partitions_of_many_transactions_are_read_as_kio_writes_them(version, transactions):
    data = memoryview(written(request_for_many(version, transactions)))
    read = add_partitions_to_txn.read_request(data, 0, version)
    assert read.transactions == [(*who, verify, topics) for who, verify, topics in transactions]


def as_told(topics):
    """What kio has read of topics, in the form of the module."""
    return [
        (
            each.name,
            [
                (one.partition_index, ErrorCode(one.partition_error_code))
                for one in each.results_by_partition
            ],
        )
        for each in topics
    ]


@each_version
@in_short
@given(name=TEXTS, topics=TOLD)
def test_the_answer_about_one_transaction_reads_in_kio_as_it_was_written(version, name, topics):
    told = [add_partitions_to_txn.TransactionAdded(name, topics)]
    answer = add_partitions_to_txn.AddPartitionsToTxnResponse(told, throttle_ms=42)
    read = read_in_kio(add_partitions_to_txn, version, answer)
    if version < 4:
        assert as_told(read.results_by_topic_v3_and_below) == topics
    else:
        (only,) = read.results_by_transaction
        assert (only.transactional_id, as_told(only.topic_results)) == (name, topics)


@pytest.mark.parametrize("version", [4, 5])
@in_short
@given(
    told=few(some.builds(add_partitions_to_txn.TransactionAdded, TEXTS, TOLD)),
    code=CODES,
)
def test_the_answer_about_many_reads_in_kio_as_it_was_written(version, told, code):
    answer = add_partitions_to_txn.AddPartitionsToTxnResponse(told, code, 42)
    read = read_in_kio(add_partitions_to_txn, version, answer)
    found = [
        (each.transactional_id, as_told(each.topic_results)) for each in read.results_by_transaction
    ]
    assert found == told


@pytest.mark.parametrize("module", MODULES)
@each_version
@in_short
@given(data=some.binary(max_size=60))
def test_any_bytes_are_a_request_or_refused(module, version, data):
    with contextlib.suppress(MalformedFrame, *NOT_A_MESSAGE):
        module.read_request(memoryview(data), 0, version)


@each_version
def test_partitions_that_are_cut_off_are_refused(version):
    who, topics = ("tx", 5, 1), [("t", (0, 1)), ("u", (2,))]
    if version < 4:
        data = written(request_for_one(version, who, topics))
    else:
        data = written(request_for_many(version, [(who, True, topics)]))
    # The last byte is that of the message's own tagged fields, which nobody reads.
    end = len(data) - (version >= 3)
    for size in range(end):
        with pytest.raises((MalformedFrame, *NOT_A_MESSAGE)):
            add_partitions_to_txn.read_request(memoryview(data)[:size], 0, version)
    assert add_partitions_to_txn.read_request(memoryview(data)[:end], 0, version).transactions


@each_version
def test_an_end_that_is_cut_off_is_refused(version):
    request = make(
        load_class("end_txn", version, "request"),
        transactional_id="tx",
        producer_id=5,
        producer_epoch=1,
        committed=True,
    )
    data = written(request)
    for size in range(len(data) - (version >= 3)):
        with pytest.raises((MalformedFrame, *NOT_A_MESSAGE)):
            end_txn.read_request(memoryview(data)[:size], 0, version)


@pytest.mark.parametrize("module", MODULES)
def test_a_transaction_without_a_name_is_refused(module):
    # Of version 3 both begin with the name, which has a length of none.
    with pytest.raises(MalformedFrame):
        module.read_request(memoryview(bytes(60)), 0, 3)


@pytest.mark.parametrize("version", [4, 5])
def test_more_transactions_than_bytes_are_refused(version):
    data = memoryview(b"\xff\xff\xff\xff\x0f" + bytes(60))
    with pytest.raises(MalformedFrame):
        add_partitions_to_txn.read_request(data, 0, version)


def test_more_partitions_than_bytes_are_refused():
    start = b"\0\2tx" + bytes(10) + b"\0\0\0\1\0\1t"
    for count in (b"\x7f\xff\xff\xff", b"\0\0\0\x20"):
        with pytest.raises((MalformedFrame, *NOT_A_MESSAGE)):
            add_partitions_to_txn.read_request(memoryview(start + count + bytes(60)), 0, 0)
