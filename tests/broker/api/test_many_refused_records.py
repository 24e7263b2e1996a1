"""Thousands of records that a topic does not take: who looks for them holds up nobody."""

import threading

import pytest

from strom.records import validate
from tests.broker.api.conftest import create
from tests.conformance.batches import batch

MANY = validate.NAMED_AT_ONCE + 1


@pytest.fixture
def readers(monkeypatch):
    """The threads that read records one by one."""
    threads = []
    read_records = validate.read_records

    def read(*arguments, **keywords):
        threads.append(threading.current_thread())
        return read_records(*arguments, **keywords)

    monkeypatch.setattr(validate, "read_records", read)
    return threads


def send(raw, topic, values, acks):
    data = {"index": 0, "records": batch(values)}
    topics = [{"name": topic, "partition_data": [data]}]
    told = raw.ask("produce", 9, {"acks": acks, "timeout": 5000, "topic_data": topics})
    return told["responses"][0]["partition_responses"][0]


@pytest.mark.parametrize("acks", [1, -1])
def test_a_thread_looks_for_them(broker, raw, name, readers, acks):
    topic = create(raw, name, partitions=1, cleanup_policy="compact")["name"]
    told = send(raw, topic, [b"no key"] * MANY, acks)
    assert len(told["record_errors"]) == MANY
    assert readers
    assert broker._thread not in readers


def test_a_few_are_named_at_once(broker, raw, name, readers):
    topic = create(raw, name, partitions=1, cleanup_policy="compact")["name"]
    assert len(send(raw, topic, [b"no key"] * 10, 1)["record_errors"]) == 10
    assert readers == [broker._thread]


def test_an_answer_names_so_many_and_no_more(raw, name):
    topic = create(raw, name, partitions=1, cleanup_policy="compact")["name"]
    told = send(raw, topic, [b"no key"] * (validate.RECORD_ERRORS_MAX + 5), 1)
    assert len(told["record_errors"]) == validate.RECORD_ERRORS_MAX
    assert f"due to {validate.RECORD_ERRORS_MAX + 5} record errors" in told["error_message"]


def test_who_waits_for_no_answer_is_told_by_the_end_of_the_connection(raw, name, readers):
    topic = create(raw, name, partitions=1, cleanup_policy="compact")["name"]
    topics = [
        {"name": topic, "partition_data": [{"index": 0, "records": batch([b"no key"] * MANY)}]}
    ]
    raw.send("produce", 9, {"acks": 0, "timeout": 5000, "topic_data": topics})
    assert raw.closed()
    assert readers == []
