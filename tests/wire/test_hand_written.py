"""Produce and Fetch, written by hand for speed, agree with kio to the byte in every version."""

import contextlib
import struct
import uuid
from dataclasses import fields
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.serial import entity_reader

from strom.wire import fetch, primitives, produce
from strom.wire.errors import ErrorCode
from strom.wire.primitives import MalformedFrame
from tests.effort import examples
from tests.wire.kio_messages import bytes_of, class_in, kio_class, make

TOPIC_ID = uuid.UUID("12345678-1234-5678-1234-567812345678")
OTHER_ID = uuid.UUID("87654321-1234-5678-1234-567812345678")
#: Of each version: they differ in few fields, and the others are tried with every one of them.
in_short = settings(max_examples=examples(30))


def which(version, threshold, topic_id=TOPIC_ID, name="flugdaten"):
    return {"topic_id": topic_id} if version >= threshold else {"name": name, "topic": name}


@pytest.mark.parametrize("version", range(3, 14))
@in_short
@given(
    records=st.one_of(st.none(), st.binary(max_size=300)),
    transactional_id=st.one_of(st.none(), st.text(max_size=20)),
    acks=st.sampled_from([-1, 0, 1]),
)
def test_a_produce_request_is_read_as_kio_writes_it(version, records, transactional_id, acks):
    request_class = kio_class("produce", version, "request")
    topic_class = class_in(request_class, "topic_data")
    partition_class = class_in(topic_class, "partition_data")
    partitions = (
        make(partition_class, index=7, records=records),
        make(partition_class, index=8, records=b"x" * 200),
    )
    topic = make(topic_class, partition_data=partitions, **which(version, 13))
    request = make(
        request_class,
        transactional_id=transactional_id,
        acks=acks,
        timeout=timedelta(milliseconds=1500),
        topic_data=(topic,),
    )
    read = produce.read_request(memoryview(bytes_of(request)), 0, version)
    assert (read.transactional_id, read.acks, read.timeout_ms) == (transactional_id, acks, 1500)
    (topic_read,) = read.topics
    assert topic_read.topic_id == (TOPIC_ID if version >= 13 else None)
    assert topic_read.name == (None if version >= 13 else "flugdaten")
    assert [each.partition_index for each in topic_read.partitions] == [7, 8]
    first = topic_read.partitions[0].records
    assert (None if first is None else bytes(first)) == records


@pytest.mark.parametrize("version", range(3, 14))
@in_short
@given(
    code=st.sampled_from([ErrorCode.NONE, ErrorCode.INVALID_RECORD]),
    offset=st.integers(-1, 2**40),
    errors=st.lists(st.tuples(st.integers(0, 100), st.one_of(st.none(), st.text(max_size=9)))),
    message=st.one_of(st.none(), st.text(max_size=9)),
    leader=st.one_of(st.none(), st.just(produce.Leader(3, 9))),
)
def test_a_produce_response_reads_in_kio_as_it_was_written(
    version, code, offset, errors, message, leader
):
    answer = produce.ProducePartitionResponse(
        *(5, code, offset, 17, 3),
        record_errors=tuple(errors),
        error_message=message,
        current_leader=leader,
    )
    topic = produce.ProduceTopicResponse("flugdaten", TOPIC_ID, [answer])
    response = produce.ProduceResponse([topic], 42)
    (data,) = produce.write_response(response, version)
    read, size = entity_reader(kio_class("produce", version, "response"))(data, 0)
    assert size == len(data)
    assert read.throttle_time.total_seconds() == 0.042
    (topic_read,) = read.responses
    (partition,) = topic_read.partition_responses
    assert (partition.index, partition.error_code, partition.base_offset) == (5, code, offset)
    if version >= 5:
        assert partition.log_start_offset == 3
    if version >= 8:
        assert partition.error_message == message
        read_errors = [
            (each.batch_index, each.batch_index_error_message) for each in partition.record_errors
        ]
        assert read_errors == errors
    if version >= 10 and leader is not None:
        assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == leader


@pytest.mark.parametrize("version", range(4, 19))
@in_short
@given(
    offset=st.integers(0, 2**60),
    epoch=st.integers(-1, 100),
    session=st.tuples(st.integers(0, 2**31 - 1), st.integers(-1, 2**31 - 1)),
    rack=st.text(max_size=10),
    replica=st.integers(-1, 5),
)
def test_a_fetch_request_is_read_as_kio_writes_it(version, offset, epoch, session, rack, replica):
    request_class = kio_class("fetch", version, "request")
    topic_class = class_in(request_class, "topics")
    partition_class = class_in(topic_class, "partitions")
    partition = make(
        partition_class,
        partition=3,
        fetch_offset=offset,
        current_leader_epoch=epoch,
        last_fetched_epoch=epoch,
        log_start_offset=11,
        partition_max_bytes=4096,
        replica_directory_id=OTHER_ID,
        high_watermark=5,
    )
    values = {
        "max_wait": timedelta(milliseconds=500),
        "min_bytes": 1,
        "max_bytes": 1000,
        "isolation_level": 1,
        "session_id": session[0],
        "session_epoch": session[1],
        "topics": (make(topic_class, partitions=(partition,), **which(version, 13)),),
        "rack_id": rack,
        "replica_id": replica,
        "cluster_id": "c" * 22,
    }
    if version >= 7:
        forgotten_class = class_in(request_class, "forgotten_topics_data")
        values["forgotten_topics_data"] = (
            make(forgotten_class, partitions=(1, 2), **which(version, 13, OTHER_ID, "alt")),
        )
    if version >= 15:
        (state_class,) = [
            each.type for each in fields(request_class) if each.name == "replica_state"
        ]
        values["replica_state"] = state_class(replica_id=replica, replica_epoch=77)
    read = fetch.read_request(memoryview(bytes_of(make(request_class, **values))), 0, version)
    (topic,) = read.topics
    (place,) = topic.partitions
    assert (read.replica_id, read.wait_max_ms, read.bytes_min, read.bytes_max) == (
        replica,
        500,
        1,
        1000,
    )
    assert read.isolation_level == 1
    assert (place.partition_index, place.offset, place.bytes_max) == (3, offset, 4096)
    assert place.leader_epoch == (epoch if version >= 9 else -1)
    assert place.last_fetched_epoch == (epoch if version >= 12 else -1)
    assert (read.session_id, read.session_epoch) == (session if version >= 7 else (0, -1))
    assert read.rack == (rack if version >= 11 else "")
    if version >= 7:
        assert read.forgotten[0].partitions == [1, 2]
    if version >= 15 and replica != -1:
        assert read.replica_epoch == 77


@pytest.mark.parametrize("version", range(4, 19))
@in_short
@given(
    aborted=st.one_of(st.none(), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)))),
    records=st.binary(max_size=40),
    diverging=st.one_of(st.none(), st.just((3, 99))),
    leader=st.one_of(st.none(), st.just(produce.Leader(1, 2))),
)
def test_a_fetch_response_reads_in_kio_as_it_was_written(
    version, aborted, records, diverging, leader
):
    part = fetch.Slice(records, 0, len(records))
    partitions = [
        fetch.FetchedPartition(4, ErrorCode.NONE, 10, 9, 2, aborted, -1, part, leader, diverging),
        fetch.FetchedPartition(5, ErrorCode.OFFSET_OUT_OF_RANGE),
    ]
    topic = fetch.FetchedTopic("flugdaten", TOPIC_ID, partitions)
    response = fetch.FetchResponse([topic], session_id=6, throttle_ms=1)
    parts = fetch.write_response(response, version)
    data = b"".join(each if isinstance(each, bytes) else each.file for each in parts)
    read, size = entity_reader(kio_class("fetch", version, "response"))(data, 0)
    assert size == len(data)
    first, second = read.responses[0].partitions
    assert (first.partition_index, first.high_watermark, first.last_stable_offset) == (4, 10, 9)
    assert (first.records or b"") == records
    assert second.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    told = first.aborted_transactions
    assert (None if told is None else [(t.producer_id, t.first_offset) for t in told]) == aborted
    if version >= 12 and diverging is not None:
        assert (first.diverging_epoch.epoch, first.diverging_epoch.end_offset) == diverging
    if version >= 12 and leader is not None:
        assert first.current_leader.leader_id == 1


@pytest.mark.parametrize(("module", "versions"), [(produce, range(3, 14)), (fetch, range(4, 19))])
@given(data=st.binary(max_size=200), pick=st.integers(0, 100))
def test_arbitrary_bytes_are_refused_and_nothing_else(module, versions, data, pick):
    version = versions[pick % len(versions)]
    with contextlib.suppress(MalformedFrame, IndexError, ValueError, struct.error):
        module.read_request(memoryview(data), 0, version)


def test_ids_are_read_right_however_many_there_are():
    ids = [uuid.UUID(int=n << 64 | n) for n in range(3 * primitives.IDS_KEPT_MAX // 2)]
    frame = memoryview(b"".join(each.bytes for each in ids))
    for _ in range(2):
        found = [primitives.read_uuid(frame, 16 * at) for at in range(len(ids))]
        assert found == [(each, 16 * at + 16) for at, each in enumerate(ids)]
    assert len(primitives._ids) <= primitives.IDS_KEPT_MAX
    with pytest.raises(ValueError, match="16-char"):
        primitives.read_uuid(frame, len(frame) - 8)
