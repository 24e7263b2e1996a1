"""Metadata, ListOffsets and InitProducerId as one who asks: kio is the other side."""

import contextlib
from datetime import timedelta
from io import BytesIO
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strom.wire import init_producer_call, list_offsets_call, metadata_call
from strom.wire.errors import ErrorCode
from strom.wire.lazy import import_schema
from strom.wire.primitives import MalformedFrame

CALLS = {metadata_call: "metadata", list_offsets_call: "list_offsets",
         init_producer_call: "init_producer_id"}  # fmt: skip
INT32, INT64 = st.integers(-1, 2**31 - 1), st.integers(-2, 2**63 - 1)
NAMES = st.text(min_size=1, max_size=300)


def schema(call, kind):
    return import_schema(f"kio.schema.{CALLS[call]}.v{call.VERSION}.{kind}")


def as_asked(call, body, name):
    """The request as kio reads it, to the last byte."""
    reader = import_schema("kio.serial").entity_reader(getattr(schema(call, "request"), name))
    request, size = reader(body, 0)
    assert size == len(body)
    return request


def as_answered(call, answer):
    with BytesIO() as out:
        import_schema("kio.serial").entity_writer(type(answer))(out, answer)
        return memoryview(out.getvalue())


@given(st.none() | st.lists(NAMES, max_size=4))
def test_topics_are_asked_for_by_name_or_all(names):
    request = as_asked(metadata_call, metadata_call.write_request(names), "MetadataRequest")
    asked = None if request.topics is None else [each.name for each in request.topics]
    assert asked == names
    assert not request.allow_auto_topic_creation


def metadata_answer(brokers, topics):
    kio = schema(metadata_call, "response")
    return kio.MetadataResponse(
        throttle_time=timedelta(0),
        brokers=tuple(
            kio.MetadataResponseBroker(node_id=node, host=host, port=port, rack=rack)
            for node, host, port, rack in brokers
        ),
        cluster_id="c",
        controller_id=1,
        topics=tuple(
            kio.MetadataResponseTopic(
                error_code=error,
                name=name,
                topic_id=topic_id,
                is_internal=is_internal,
                partitions=tuple(
                    kio.MetadataResponsePartition(
                        error_code=ErrorCode.NONE,
                        partition_index=at,
                        leader_id=node,
                        replica_nodes=(1, 2, 3),
                        isr_nodes=(1, 2),
                        offline_replicas=(3,),
                    )
                    for at, node in leaders.items()
                ),
            )
            for error, name, topic_id, is_internal, leaders in topics
        ),
    )


ERRORS = st.sampled_from((ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
BROKERS = st.lists(st.tuples(INT32, NAMES, INT32, st.none() | NAMES), max_size=3)
IDS = st.uuids().filter(lambda each: each != UUID(int=0))
TOPICS = st.lists(
    st.tuples(ERRORS, NAMES, IDS, st.booleans(), st.dictionaries(INT32, INT32, max_size=3)),
    max_size=3,
)


@given(BROKERS, TOPICS)
def test_brokers_and_leaders_are_read(brokers, topics):
    found = metadata_call.read_answer(as_answered(metadata_call, metadata_answer(brokers, topics)))
    assert found.brokers == {node: (host, port) for node, host, port, _ in brokers}
    assert [tuple(each) for each in found.topics] == topics


PLACES = st.dictionaries(st.tuples(NAMES, INT32), INT64, max_size=5)


@given(PLACES, st.booleans())
def test_offsets_are_asked_for_by_time(times, committed):
    body = list_offsets_call.write_request(times, committed)
    request = as_asked(list_offsets_call, body, "ListOffsetsRequest")
    assert (request.replica_id, request.isolation_level) == (-1, int(committed))
    assert times == {
        (topic.name, each.partition_index): each.timestamp
        for topic in request.topics
        for each in topic.partitions
    }


@given(st.dictionaries(NAMES, st.lists(st.tuples(INT32, ERRORS, INT64), max_size=3), max_size=3))
def test_offsets_are_read(topics):
    kio = schema(list_offsets_call, "response")
    answer = kio.ListOffsetsResponse(
        throttle_time=timedelta(0),
        topics=tuple(
            kio.ListOffsetsTopicResponse(
                name=name,
                partitions=tuple(
                    kio.ListOffsetsPartitionResponse(
                        partition_index=number, error_code=error, offset=offset
                    )
                    for number, error, offset in found
                ),
            )
            for name, found in topics.items()
        ),
    )
    read = list_offsets_call.read_answer(as_answered(list_offsets_call, answer))
    assert [tuple(each) for each in read] == [
        (name, *each) for name, found in topics.items() for each in found
    ]


def test_a_producer_without_transactions_is_asked_for():
    request = as_asked(init_producer_call, init_producer_call.REQUEST, "InitProducerIdRequest")
    assert request.transactional_id is None
    assert (request.producer_id, request.producer_epoch) == (-1, -1)


@given(ERRORS, INT64, st.integers(-1, 2**15 - 1))
def test_who_the_producer_is_is_read(error, producer_id, epoch):
    answer = schema(init_producer_call, "response").InitProducerIdResponse(
        throttle_time=timedelta(0),
        error_code=error,
        producer_id=producer_id,
        producer_epoch=epoch,
    )
    found = init_producer_call.read_answer(as_answered(init_producer_call, answer))
    assert tuple(found) == (error, producer_id, epoch)


@pytest.mark.parametrize("call", CALLS)
@given(body=st.binary(max_size=120))
def test_whatever_the_bytes_are_they_are_an_answer_or_refused(call, body):
    with contextlib.suppress(MalformedFrame):
        call.read_answer(memoryview(body))
