"""Batches that a thread looks into before they are appended: one thread for all of a request."""

import pytest

from strom.broker import preparing
from tests.broker.api.conftest import create
from tests.conformance import batches

VALUES = [b"value %d" % number for number in range(100)]
PARTITIONS = 6
BROKEN = 4


@pytest.fixture
def ways(monkeypatch):
    """How many batches were taken to a thread, each time that somebody went there."""
    found = []
    do_all = preparing.do_all

    def counting(tasks):
        found.append(len(tasks))
        return do_all(tasks)

    monkeypatch.setattr(preparing, "do_all", counting)
    return found


def produce(raw, topic, sealed):
    data = [{"index": index, "records": each} for index, each in enumerate(sealed)]
    asked = {"acks": -1, "timeout": 5000, "topic_data": [{"name": topic, "partition_data": data}]}
    told = raw.ask("produce", 9, asked)["responses"][0]["partition_responses"]
    return {each["index"]: (each["error_code"], each["base_offset"]) for each in told}


def test_all_batches_of_a_request_go_to_a_thread_together(raw, name, ways):
    create(raw, name, PARTITIONS)
    good = batches.batch(VALUES, codec=batches.GZIP)

    assert produce(raw, name, [good] * PARTITIONS) == dict.fromkeys(range(PARTITIONS), ("none", 0))
    assert ways == [PARTITIONS]


def test_one_that_cannot_be_read_is_refused_alone(raw, name, ways):
    create(raw, name, PARTITIONS)
    good = batches.batch(VALUES, codec=batches.GZIP)
    broken = batches.batch(VALUES, codec=batches.GZIP, count=len(VALUES) + 1)
    sealed = [broken if index == BROKEN else good for index in range(PARTITIONS)]

    answers = produce(raw, name, sealed)
    assert answers.pop(BROKEN) == ("invalid_record", -1)
    assert set(answers.values()) == {("none", 0)}
    assert ways == [PARTITIONS]


def test_one_that_cannot_be_recompressed_is_refused_alone(raw, name, ways):
    create(raw, name, PARTITIONS, compression_type="zstd")
    good = batches.batch(VALUES, codec=batches.GZIP)
    broken = bytearray(good)
    broken[-1] ^= 1
    sealed = [bytes(broken) if index == BROKEN else good for index in range(PARTITIONS)]

    answers = produce(raw, name, sealed)
    assert answers.pop(BROKEN) == ("corrupt_message", -1)
    assert set(answers.values()) == {("none", 0)}
    assert ways == [PARTITIONS]
