"""Fetch as one who asks: the broker's own reader and writer are the other side."""

import contextlib
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strom.wire import fetch
from strom.wire.errors import ErrorCode
from strom.wire.fetch_call import VERSION, Aborted, Terms, read_answer, write_request
from strom.wire.primitives import MalformedFrame

INT32, INT64 = st.integers(0, 2**31 - 1), st.integers(-1, 2**63 - 1)
TOPIC = UUID(int=7)


@given(st.uuids(), INT32, INT64, INT32, INT32, st.booleans())
def test_a_broker_reads_what_was_asked(topic_id, partition, offset, wait, size, committed):
    terms = Terms(wait, 1, size, size, committed)
    body = write_request(topic_id, partition, offset, terms)
    request = fetch.read_request(memoryview(body), 0, VERSION)
    assert request.replica_id == fetch.CONSUMER
    assert (request.session_id, request.session_epoch) == (0, -1)
    assert (request.wait_max_ms, request.bytes_min, request.bytes_max) == (wait, 1, size)
    assert request.isolation_level == int(committed)
    (topic,) = request.topics
    assert topic.topic_id == topic_id
    (place,) = topic.partitions
    assert (place.partition_index, place.offset, place.bytes_max) == (partition, offset, size)
    assert (place.leader_epoch, place.last_fetched_epoch, place.log_start_offset) == (-1, -1, -1)


def answer(partition, records=b""):
    topics = [fetch.FetchedTopic("t", TOPIC, [partition])]
    parts = fetch.write_response(topics, VERSION)
    return b"".join(part if isinstance(part, bytes) else records for part in parts)


@given(INT64, INT64, INT64, st.lists(st.tuples(INT64, INT64), max_size=4), st.binary(max_size=300))
def test_what_a_broker_answers_is_read(watermark, stable, start, aborted, records):
    body = answer(
        fetch.FetchedPartition(
            3,
            high_watermark=watermark,
            last_stable_offset=stable,
            log_start_offset=start,
            aborted=aborted,
            records=fetch.Slice(None, 0, len(records)) if records else None,
            diverging=(1, 2),
        ),
        records,
    )
    found = read_answer(memoryview(body))
    assert found[:4] == (ErrorCode.NONE, watermark, stable, start)
    assert found.aborted == tuple(Aborted(*each) for each in aborted)
    assert bytes(found.records) == records


def test_an_error_of_the_partition_or_of_all_is_there():
    body = answer(fetch.FetchedPartition(0, ErrorCode.OFFSET_OUT_OF_RANGE))
    assert read_answer(memoryview(body)).error is ErrorCode.OFFSET_OUT_OF_RANGE
    (body,) = fetch.write_response([], VERSION, error_code=ErrorCode.UNKNOWN_TOPIC_ID)
    assert read_answer(memoryview(body)).error is ErrorCode.UNKNOWN_TOPIC_ID


@given(st.binary(max_size=120))
def test_whatever_the_bytes_are_they_are_an_answer_or_refused(body):
    with contextlib.suppress(MalformedFrame):
        read_answer(memoryview(body))


def test_records_longer_than_their_frame_are_refused():
    body = answer(fetch.FetchedPartition(0, records=fetch.Slice(None, 0, 50)), b"")
    with pytest.raises(MalformedFrame):
        read_answer(memoryview(body))
