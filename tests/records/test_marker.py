"""Markers are packed in one go: the bytes are those of the general writer, and read as by it."""

from hypothesis import given
from hypothesis import strategies as st

from strom.log.producers import read_marker
from strom.records.batch import CONTROL_FLAG, HEADER_SIZE, TRANSACTIONAL_FLAG, read_header
from strom.records.control_key import ControlType, write_control_key
from strom.records.marker import MARKER_BYTES, read_packed, write_marker
from strom.records.record import Producer, Record, read_records, write_batch

OUTCOMES = st.sampled_from([ControlType.COMMIT, ControlType.ABORT])
PRODUCERS = st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**15 - 1)).map(
    lambda who: Producer(*who)
)
INT32 = st.integers(-1, 2**31 - 1)
TIMES = st.integers(0, 2**60)


@given(OUTCOMES, PRODUCERS, INT32, TIMES, TIMES, INT32)
def test_a_marker_is_what_the_general_writer_makes(
    outcome, producer, coordinator_epoch, now_ms, offset, leader_epoch
):
    value = b"\0\0" + coordinator_epoch.to_bytes(4, signed=True)
    packed = write_marker(
        outcome,
        producer=producer,
        coordinator_epoch=coordinator_epoch,
        now_ms=now_ms,
        offset=offset,
        leader_epoch=leader_epoch,
    )
    assert packed == write_batch(
        [Record(offset, now_ms, write_control_key(outcome), value)],
        leader_epoch=leader_epoch,
        producer=producer,
        flags=CONTROL_FLAG | TRANSACTIONAL_FLAG,
    )
    header = read_header(packed)
    assert read_packed(header, packed) == (outcome, coordinator_epoch)
    assert read_marker(header, packed) == (outcome, coordinator_epoch, now_ms)


@given(OUTCOMES, st.integers(HEADER_SIZE, MARKER_BYTES - 1), st.integers(0, 255))
def test_a_record_that_differs_is_read_as_by_the_general_reader_or_left_to_it(outcome, at, byte):
    batch = write_marker(outcome, producer=Producer(5, 1), coordinator_epoch=7, now_ms=9)
    batch[at] = byte
    found = read_packed(read_header(batch), batch)
    if found is not None:
        (record,) = read_records(batch)
        assert record.key == write_control_key(found[0])
        assert record.value[2:] == found[1].to_bytes(4, signed=True)
        assert record.timestamp_ms == 9


def test_a_batch_of_another_kind_is_left_to_the_general_reader():
    batch = write_marker(ControlType.COMMIT, producer=Producer(5, 1), coordinator_epoch=7, now_ms=9)
    header = read_header(batch)
    assert read_packed(header, batch + b"\0") is None
    header.attributes = CONTROL_FLAG
    assert read_packed(header, batch) is None
    header = read_header(batch)
    header.record_count = 2
    assert read_packed(header, batch) is None
