"""Producers with ids: each record once, in order (TXN-01 … TXN-04); open transactions."""

import pytest

from strom.log.producers import SEQUENCE_MAX
from strom.log.snapshots import read_snapshot, write_snapshot
from strom.records.batch import TRANSACTIONAL_FLAG, patch_place, read_header
from strom.records.control_key import ControlType
from strom.records.record import Producer
from strom.wire.errors import ErrorCode, KafkaError
from tests.log.making import (
    NOW,
    SMALL,
    aborted,
    append,
    append_transactional,
    batch,
    end_transaction,
    new_disk,
    open_log,
    read,
    reopen,
    values_of,
    whole_batches,
)


def send(log, sequence: int, count: int = 1, *, epoch: int = 0, producer_id: int = 9):
    producer = Producer(producer_id, epoch, sequence)
    return append(log, *[b"%d" % (sequence + each) for each in range(count)], producer=producer)


def refused(call, *args, **kwargs) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        call(*args, **kwargs)
    return caught.value.code


def test_txn_02_each_of_the_last_five_batches_is_recognised_and_not_written_again(log):
    for sequence in range(0, 12, 2):
        send(log, sequence, 2)
    end = log.end_offset
    for sequence in range(2, 12, 2):
        appended = send(log, sequence, 2)
        assert (appended.base_offset, appended.last_offset) == (sequence, sequence + 1)
        assert (appended.append_time_ms, appended.duplicate) == (-1, True)
    assert log.end_offset == end
    # The sixth last is forgotten: it is out of order now.
    assert refused(send, log, 0, 2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_txn_03_a_gap_is_refused_and_leaves_no_trace(log):
    send(log, 0)
    assert refused(send, log, 2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 1).base_offset == 1


def test_a_batch_that_overlaps_a_known_one_is_no_duplicate(log):
    send(log, 0, 3)
    assert refused(send, log, 0, 2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_producers_do_not_disturb_each_other(log):
    for sequence in range(3):
        for producer_id in (1, 2):
            assert not send(log, sequence, producer_id=producer_id).duplicate
    append(log, b"without an id")
    assert log.end_offset == 7


def test_an_unknown_producer_may_begin_with_any_number(log):
    assert not send(log, 500).duplicate
    assert not send(log, 501).duplicate


def test_sequences_wrap_round(log):
    send(log, SEQUENCE_MAX - 1, 2)
    assert log.producers.get(9).last_sequence == SEQUENCE_MAX
    assert not send(log, 0).duplicate
    log = open_log(new_disk())
    send(log, SEQUENCE_MAX, 3)
    assert log.producers.get(9).last_sequence == 1
    assert send(log, SEQUENCE_MAX, 3).duplicate
    assert not send(log, 2).duplicate


def test_an_older_epoch_is_fenced_and_a_newer_one_begins_at_zero(log):
    send(log, 0, 5, epoch=3)
    assert refused(send, log, 5, epoch=2) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert refused(send, log, 5, epoch=4) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert not send(log, 0, 5, epoch=4).duplicate
    assert refused(send, log, 5, epoch=3) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_the_state_outlives_a_restart_a_roll_and_the_segments_it_came_from(log, disk):
    send(log, 0, 2)
    log.roll(NOW)
    append(log, b"other")
    log.retain(NOW + SMALL.retention_ms + 10)
    log = reopen(log, disk)
    again = send(log, 0, 2)
    assert (again.base_offset, again.last_offset, again.duplicate) == (0, 1, True)
    assert refused(send, log, 3) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 2).base_offset == 3


def test_the_state_goes_back_with_a_truncation(log):
    for sequence in range(30):
        send(log, sequence)
        append(log, b"x" * 50)
    log.truncate_to(40)
    assert log.producers.get(9).last_sequence == 19
    assert send(log, 20).base_offset == 40


def test_silent_producers_are_forgotten_but_not_their_open_transactions(log):
    send(log, 0)
    append_transactional(log, Producer(1, 0, 0), b"open")
    assert log.expire_producers(NOW + SMALL.producer_expiration_ms - 1) == 0
    assert log.expire_producers(NOW + SMALL.producer_expiration_ms) == 1
    assert log.producers.get(9) is None
    assert log.last_stable_offset(log.end_offset) == 1


def test_open_transactions_hold_the_last_stable_offset(log):
    append(log, b"before")
    append_transactional(log, Producer(1, 0, 0), b"a")
    append_transactional(log, Producer(2, 0, 0), b"b")
    assert log.last_stable_offset(3) == 1
    end_transaction(log, Producer(1, 0), ControlType.COMMIT)
    # Ended, but its marker (offset 3) is not committed yet.
    assert log.last_stable_offset(3) == 1
    assert log.last_stable_offset(4) == 2
    end_transaction(log, Producer(2, 0), ControlType.ABORT)
    assert log.last_stable_offset(5) == 5
    assert log.last_stable_offset(4) == 4


def test_the_aborted_list_covers_exactly_the_range(log):
    for number in range(4):
        append_transactional(log, Producer(number, 0, 0), b"a", b"b")
        end_transaction(log, Producer(number, 0), ControlType(number % 2))
        append(log, b"x" * 300)
        log.roll(NOW)
    assert [each.producer_id for each in aborted(log, 0, 99)] == [0, 2]
    assert aborted(log, 0, 1) == [(0, 0, 2, 3)]
    assert aborted(log, 2, 4) == [(0, 0, 2, 3)]
    assert aborted(log, 3, 8) == []
    assert [each.first_offset for each in aborted(log, 9, 10)] == [8]


def test_one_that_is_open_while_another_is_aborted_is_in_the_list_too(log):
    """Its end is behind that of the other: how far to look is noted with each."""
    for producer_id in (1, 2):
        append_transactional(log, Producer(producer_id, 0, 0), b"a")
    end_transaction(log, Producer(2, 0), ControlType.ABORT)
    log.roll(NOW)
    end_transaction(log, Producer(1, 0), ControlType.ABORT)
    assert aborted(log, 0, 2) == [(2, 1, 2, 0), (1, 0, 3, 4)]


def test_a_reader_of_a_slice_hears_of_the_aborted_in_it_and_hardly_more(log):
    for number in range(40):
        append_transactional(log, Producer(number, 0, 0), b"a")
        end_transaction(log, Producer(number, 0), ControlType.ABORT)
    for offset in range(80):
        found = read(log, offset, max_bytes=300, end_offset=80, whole_first=True)
        headers = [read_header(each) for each in whole_batches(found.read_bytes())]
        inside = {each.producer_id for each in headers if each.last_offset >= offset}
        told = {each.producer_id for each in log.aborted_within(offset, found)}
        assert inside <= told
        assert len(told - inside) <= 3


def test_a_reader_behind_the_last_batch_of_a_segment_hears_of_the_aborted_in_the_next_one(log):
    """Kafka's cleaner leaves gaps at the ends of segments, and a reader goes on in the gap."""
    for _ in range(10):
        append(log, b"x" * 50)
    log.roll(NOW, 20)
    data = batch(b"a", producer=Producer(1, 0, 0), flags=TRANSACTIONAL_FLAG)
    patch_place(data, 20, 0)
    log.append_as_follower(data, now_ms=NOW)
    end_transaction(log, Producer(1, 0), ControlType.ABORT)
    found = read(log, 10, max_bytes=10**6, end_offset=log.end_offset, whole_first=True)
    assert [each.producer_id for each in log.aborted_within(10, found)] == [1]


def test_a_transaction_takes_transactional_batches_only(log):
    append_transactional(log, Producer(9, 0, 0), b"a")
    assert refused(send, log, 1) == ErrorCode.INVALID_TXN_STATE


def test_markers_are_fenced_by_both_epochs(log):
    append_transactional(log, Producer(9, 5, 0), b"a")
    commit = ControlType.COMMIT
    assert refused(end_transaction, log, Producer(9, 4), commit) == ErrorCode.INVALID_PRODUCER_EPOCH
    end_transaction(log, Producer(9, 5), commit, coordinator_epoch=7)
    append_transactional(log, Producer(9, 5, 1), b"b")
    assert (
        refused(end_transaction, log, Producer(9, 5), commit, coordinator_epoch=6)
        == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    )


def test_kip_890_a_marker_of_version_2_must_raise_the_epoch(log):
    append_transactional(log, Producer(9, 5, 0), b"a")
    commit = ControlType.COMMIT
    late = refused(end_transaction, log, Producer(9, 5), commit, version=2)
    assert late == ErrorCode.INVALID_PRODUCER_EPOCH
    end_transaction(log, Producer(9, 6), commit, version=2)
    # The same one again is let through: the transaction is over anyway.
    end_transaction(log, Producer(9, 6), commit, version=2)
    assert refused(append_transactional, log, Producer(9, 5, 1), b"b")
    append_transactional(log, Producer(9, 6, 0), b"b")
    assert log.last_stable_offset(log.end_offset) == 3


def test_a_snapshot_gives_the_state_back_and_a_damaged_one_none(log):
    send(log, 7, 3)
    append_transactional(log, Producer(1, 2, 0), b"a")
    end_transaction(log, Producer(1, 3), ControlType.ABORT, coordinator_epoch=4, version=2)
    append_transactional(log, Producer(2, 0, 0), b"b")
    data = write_snapshot(log.producers)
    again = read_snapshot(data, "flug-0")
    assert write_snapshot(again) == data
    assert again.last_stable_offset(9) == 5
    written = again.get(9).batches[0]
    assert (written.first_sequence, written.last_sequence) == (7, 9)
    assert (written.first_offset, written.last_offset) == (0, 2)
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 4
        assert read_snapshot(bytes(damaged), "") is None
        assert read_snapshot(data[:position], "") is None


def test_markers_do_not_count_as_records_of_the_producer(log):
    append_transactional(log, Producer(9, 0, 0), b"a")
    end_transaction(log, Producer(9, 0), ControlType.COMMIT)
    append_transactional(log, Producer(9, 0, 1), b"b")
    assert values_of(log)[0][1] == b"a"
    assert log.producers.get(9).last_sequence == 1


def test_a_marker_of_the_last_epoch_need_not_raise_it(log):
    """There is none above it: what was written with it would be open for good."""
    append_transactional(log, Producer(9, 2**15 - 1, 0), b"a")
    end_transaction(log, Producer(9, 2**15 - 1), ControlType.COMMIT, version=2)
    assert log.last_stable_offset(log.end_offset) == 2
