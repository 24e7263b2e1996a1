"""Control records: the bytes that Apache Kafka 4.3.1 writes, read and written."""

import struct
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strom.records.batch import read_header
from strom.records.control import (
    leader_change_batch,
    read_control,
    snapshot_footer_batch,
    snapshot_header_batch,
    write_control,
    write_control_batch,
)
from strom.records.control_key import ControlType, write_control_key
from strom.records.marker import write_marker
from strom.records.record import Producer, Record, read_records
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import kafka_message

KRAFT_VERSION_RECORD = kafka_message("k_raft_version_record", "data")
LEADER_CHANGE_MESSAGE = kafka_message("leader_change_message", "data")
SNAPSHOT_HEADER_RECORD = kafka_message("snapshot_header_record", "data")
COMMIT = bytes.fromhex(
    "00000000000000010000004200000000027e9bde07003000000000000001a1e28ceae6000001a1e28ceae600"
    "000000000000180000ffffffff000000012000000008000000010c00000000000000"
)
ABORT = bytes.fromhex(
    "0000000000000003000000420000000002dab47b4b003000000000000001a1e28ceaf8000001a1e28ceaf800"
    "000000000000180000ffffffff000000012000000008000000000c00000000000000"
)
SNAPSHOT_HEADER = bytes.fromhex(
    "000000000000000000000047000000000281d7a5b5002000000000000001a1e277c896000001a1e277c896ff"
    "ffffffffffffffffffffffffff000000012a000000080000000316000000000000000000000000"
)
SNAPSHOT_FOOTER = bytes.fromhex(
    "00000000000000070000003f0000000002061c64d5002000000000000001a1e277c8e5000001a1e277c8e5ff"
    "ffffffffffffffffffffffffff000000011a00000008000000040600000000"
)
#: A snapshot's header, the version of the quorum's protocol, and its voters.
SNAPSHOT_START = bytes.fromhex(
    "00000000000000000000009a00000000020e619f44002000000002000001a1e277c956000001a1e277c956ff"
    "ffffffffffffffffffffffffff000000032a0000000800000003160000000001a1e277c90b00001e00000208"
    "000000050a000000010000820100000408000000066e000002000000010119b731f85a43acb00d45e53dbdf0"
    "27020b434f4e54524f4c4c45520a3132372e302e302e314af9000000000100000000"
)


def test_markers_are_those_of_kafka():
    for golden, outcome in ((COMMIT, ControlType.COMMIT), (ABORT, ControlType.ABORT)):
        header = read_header(golden)
        written = write_marker(
            outcome,
            producer=Producer(24, 0, 17),
            coordinator_epoch=0,
            now_ms=header.base_timestamp,
            offset=header.base_offset,
            leader_epoch=0,
        )
        assert written == golden


def test_snapshot_is_framed_as_kafka_does():
    header = snapshot_header_batch(
        last_contained_log_timestamp=0, base_offset=0, leader_epoch=0, now_ms=1794800863382
    )
    footer = snapshot_footer_batch(base_offset=7, leader_epoch=0, now_ms=1794800863461)
    assert header == SNAPSHOT_HEADER
    assert footer == SNAPSHOT_FOOTER


def test_batch_of_several_is_written_as_it_was_read():
    read = [read_control(record) for record in read_records(SNAPSHOT_START)]
    assert [each.type for each in read] == [
        ControlType.SNAPSHOT_HEADER,
        ControlType.KRAFT_VERSION,
        ControlType.KRAFT_VOTERS,
    ]
    assert read[0].message == SNAPSHOT_HEADER_RECORD.SnapshotHeaderRecord(
        version=0, last_contained_log_timestamp=1794800863499
    )
    assert read[1].message == KRAFT_VERSION_RECORD.KRaftVersionRecord(version=0, k_raft_version=1)
    assert read[2].message.voters[0].endpoints[0].port == 19193
    written = write_control_batch(read, base_offset=0, leader_epoch=0, now_ms=1794800863574)
    assert written == SNAPSHOT_START


def test_leader_change_names_leader_and_voters():
    batch = leader_change_batch(
        2, [1, 2, 3], granting_ids=[2, 3], base_offset=10, leader_epoch=4, now_ms=99
    )
    header = read_header(batch)
    assert header.is_control
    assert not header.is_transactional
    assert (header.base_offset, header.leader_epoch, header.base_timestamp) == (10, 4, 99)
    (record,) = read_records(batch)
    type_, message = read_control(record)
    assert type_ is ControlType.LEADER_CHANGE
    assert message.leader_id == 2
    assert [voter.voter_id for voter in message.voters] == [1, 2, 3]
    assert [voter.voter_id for voter in message.granting_voters] == [2, 3]


def test_sole_voter_grants_its_own_vote():
    batch = leader_change_batch(1, [1], base_offset=0, leader_epoch=1, now_ms=0)
    (record,) = read_records(batch)
    assert record.value == bytes.fromhex("00000000000102000000010002000000010000")
    assert len(record.value) == 19


def test_newer_leader_change_is_read():
    voter = LEADER_CHANGE_MESSAGE.Voter(voter_id=1, voter_directory_id=UUID(int=5))
    message = LEADER_CHANGE_MESSAGE.LeaderChangeMessage(
        version=1, leader_id=1, voters=(voter,), granting_voters=()
    )
    record = write_control(ControlType.LEADER_CHANGE, message, offset=0, now_ms=0)
    assert read_control(record).message == message


def test_marker_tells_the_coordinator_epoch():
    batch = write_marker(ControlType.ABORT, producer=Producer(5, 1), coordinator_epoch=77, now_ms=0)
    (record,) = read_records(batch)
    assert read_control(record).message.coordinator_epoch == 77


def test_type_of_a_later_version_has_no_message():
    key = struct.pack(">hh", 0, 99)
    assert read_control(Record(0, 0, key, b"?")) == (ControlType.UNKNOWN, None)


@pytest.mark.parametrize("type_", [each for each in ControlType if each >= 0])
@given(value=st.none() | st.binary(max_size=40))
def test_noise_as_message_is_read_or_refused(type_, value):
    record = Record(0, 0, write_control_key(type_), value)
    try:
        assert read_control(record).type is type_
    except KafkaError as error:
        assert error.code == ErrorCode.INVALID_RECORD
