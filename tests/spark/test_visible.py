"""Which batches of an answer are seen."""

import pytest

from strom.records.batch import TRANSACTIONAL_FLAG
from strom.records.control_key import ControlType
from strom.records.marker import write_marker
from strom.records.record import Producer, Record, write_batch
from strom.spark.visible import Sight, whole_batches
from strom.wire.errors import KafkaError
from strom.wire.messages import kafka_message

ABORTED = kafka_message("fetch", "response").AbortedTransaction


def data(offset, producer=None):
    records = [Record(offset, 0, None, b"v")]
    if producer is None:
        return write_batch(records)
    return write_batch(records, producer=Producer(producer, 0, 0), flags=TRANSACTIONAL_FLAG)


def marker(offset, producer, outcome):
    return write_marker(
        outcome, producer=Producer(producer, 0), coordinator_epoch=0, now_ms=0, offset=offset
    )


def seen(batches, aborted=()):
    sight = Sight([ABORTED(producer_id=each[0], first_offset=each[1]) for each in aborted])
    whole = whole_batches(memoryview(b"".join(batches)))
    return [batch.header.base_offset for batch in whole if sight.shows(batch)]


def test_markers_are_seen_by_nobody():
    assert seen([data(0), marker(1, 5, ControlType.COMMIT), data(2)]) == [0, 2]


def test_what_was_aborted_is_not_seen_and_what_follows_is():
    batches = [
        data(0, 5),
        data(1, 6),
        marker(2, 5, ControlType.ABORT),
        data(3, 5),
        marker(4, 6, ControlType.COMMIT),
        marker(5, 5, ControlType.COMMIT),
    ]
    assert seen(batches, [(5, 0)]) == [1, 3]


def test_an_abort_that_began_in_an_earlier_answer_still_counts():
    assert seen([data(10, 5), marker(11, 5, ControlType.ABORT), data(12, 5)], [(5, 3)]) == [12]


def test_data_without_a_transaction_is_seen_whoever_wrote_it():
    assert seen([data(0)], [(-1, 0)]) == [0]


def test_without_a_list_everything_but_markers_is_seen():
    assert seen([data(0, 5), marker(1, 5, ControlType.ABORT)]) == [0]


@pytest.mark.parametrize("cut", [1, 30, 61])
def test_a_batch_that_is_cut_off_comes_again(cut):
    batches = b"".join([data(0), data(1)])
    found = whole_batches(memoryview(batches)[: len(data(0)) + cut])
    assert [batch.header.base_offset for batch in found] == [0]


def test_a_wrong_checksum_is_told_unless_nobody_asks():
    batch = data(0)
    batch[-2] ^= 1
    with pytest.raises(KafkaError, match="offset 0 fails its checksum"):
        list(whole_batches(memoryview(batch)))
    assert len(list(whole_batches(memoryview(batch), checks_crcs=False))) == 1


def test_an_older_format_is_refused():
    batch = data(0)
    batch[16] = 1
    with pytest.raises(KafkaError, match="magic 1"):
        list(whole_batches(memoryview(batch)))
