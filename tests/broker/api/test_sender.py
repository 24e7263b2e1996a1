"""Whom the loop waits for awake: a producer of transactions, which has two connections, as one."""

import pytest

from strom.broker.alertness import SMALL_BYTES_MAX, Alertness
from tests.broker.api.conftest import create
from tests.broker.api.transacting import add, begin, until
from tests.conformance.batches import TRANSACTIONAL, Producer, batch
from tests.conformance.raw import Raw

LARGE = [b"v" * SMALL_BYTES_MAX]


@pytest.fixture
def other(broker):
    with Raw(broker.bootstrap) as connection:
        yield connection


@pytest.fixture
def expected(monkeypatch):
    """Whose next request is counted on, one after the other."""
    found = []
    monkeypatch.setattr(Alertness, "expect", lambda _, who, *_patience: found.append(who))
    return found


def produce(raw, topic, transactional_id=None, **header):
    data = [{"index": 0, "records": batch(LARGE, **header)}]
    asked = {"acks": -1, "timeout": 5000, "topic_data": [{"name": topic, "partition_data": data}]}
    asked["transactional_id"] = transactional_id
    (told,) = raw.ask("produce", 9, asked)["responses"][0]["partition_responses"]
    assert told["error_code"] == "none"


def test_a_producer_of_transactions_is_waited_for_by_both_connections(raw, other, name, expected):
    create(raw, name)
    who = begin(raw, name)
    expected.clear()
    assert add(raw, name, who, name, [0]) == ["none"]
    producer = Producer(who["producer_id"], who["producer_epoch"], 0)
    produce(other, name, name, producer=producer, attributes=TRANSACTIONAL)
    asked = {"transactional_id": name, "committed": True} | who
    assert until(raw, "end_txn", 3, asked)["error_code"] == "none"

    assert len(expected) == 3
    assert len(set(expected)) == 1


def test_another_producer_is_another_one(raw, other, name, expected):
    create(raw, name)
    last = []
    for connection, its_name in ((raw, name), (other, f"{name}-other")):
        add(connection, its_name, begin(connection, its_name), name, [0])
        last.append(expected[-1])

    assert last[0] != last[1]


def test_nobody_waits_for_who_sends_much_outside_of_transactions(raw, name, expected):
    create(raw, name)
    expected.clear()
    produce(raw, name)

    assert expected == []


def test_nobody_waits_for_who_has_been_sent_much(raw, name, expected):
    """A reader is busy with what it got: to wait awake took a tenth of the time of a read."""
    create(raw, name)
    read = {"topic": name, "partitions": [{"partition": 0, "fetch_offset": 0}]}
    asked = {"max_wait": 0, "min_bytes": 0, "max_bytes": 1 << 20, "topics": [read]}

    def fetched():
        expected.clear()
        (told,) = raw.ask("fetch", 12, asked)["responses"][0]["partitions"]
        return len(told["records"] or b""), len(expected)

    produce(raw, name)
    size, count = fetched()
    assert size > SMALL_BYTES_MAX
    assert count == 0
    read["partitions"][0]["fetch_offset"] = 1
    assert fetched() == (0, 1)
