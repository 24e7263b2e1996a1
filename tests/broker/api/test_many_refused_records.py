"""Records that a topic does not take: who names them, and how many are named."""

import threading

import pytest

from strom.records import validate
from tests.broker.api.conftest import create
from tests.conformance.batches import GZIP, NONE, batch

#: A batch of them is heavy if it is compressed: it takes a thread to look into it.
VALUES = [b"no key" * 200] * 300


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


@pytest.fixture
def compacted(raw, name):
    """A topic that wants keys."""
    return create(raw, name, partitions=1, cleanup_policy="compact")["name"]


def asked(topic, values, acks, codec=NONE):
    data = {"index": 0, "records": batch(values, codec=codec)}
    topics = [{"name": topic, "partition_data": [data]}]
    return {"acks": acks, "timeout": 5000, "topic_data": topics}


def send(raw, topic, values, acks=1, codec=NONE):
    told = raw.ask("produce", 9, asked(topic, values, acks, codec))
    return told["responses"][0]["partition_responses"][0]


@pytest.mark.parametrize("acks", [1, -1])
def test_a_thread_names_those_of_a_heavy_batch(broker, raw, compacted, readers, acks):
    told = send(raw, compacted, VALUES, acks, GZIP)
    assert told["error_code"] == "invalid_record"
    assert [each["batch_index"] for each in told["record_errors"]] == list(range(len(VALUES)))
    assert f"due to {len(VALUES)} record errors" in told["error_message"]
    assert told["log_start_offset"] == 0
    assert readers
    assert broker._thread not in readers


def test_others_are_named_at_once(broker, raw, compacted, readers):
    told = send(raw, compacted, VALUES)
    assert [each["batch_index"] for each in told["record_errors"]] == list(range(len(VALUES)))
    assert readers == [broker._thread]


def test_a_heavy_batch_that_is_refused_leaves_the_next_one_alone(raw, compacted):
    assert send(raw, compacted, VALUES, codec=GZIP)["error_code"] == "invalid_record"
    taken = send(raw, compacted, [(b"key", value) for value in VALUES], codec=GZIP)
    assert (taken["error_code"], taken["base_offset"]) == ("none", 0)


def test_an_answer_names_so_many_and_no_more(raw, compacted):
    told = send(raw, compacted, [b"no key"] * (validate.RECORD_ERRORS_MAX + 5))
    assert len(told["record_errors"]) == validate.RECORD_ERRORS_MAX
    assert f"due to {validate.RECORD_ERRORS_MAX + 5} record errors" in told["error_message"]


@pytest.mark.parametrize("codec", [NONE, GZIP])
def test_who_waits_for_no_answer_is_told_by_the_end_of_the_connection(raw, compacted, codec):
    raw.send("produce", 9, asked(compacted, VALUES, 0, codec))
    assert raw.closed()
