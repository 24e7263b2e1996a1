"""Every message that kio knows, in every version: kio's bytes are ours, and the other way round."""

import contextlib
from dataclasses import fields
from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from strom.wire.errors import ErrorCode
from strom.wire.messages import Call, KafkaMessage, kafka_message
from strom.wire.primitives import MalformedFrame
from strom.wire.schema import NEVER
from tests.effort import examples
from tests.wire.kio_messages import (
    Values,
    bytes_of,
    class_in,
    every_message,
    in_ours,
    kio_class,
    read_by_kio,
)

MESSAGES = [pytest.param(*each, id=f"{each[0]}-{each[1]}") for each in every_message()]
SEEDS = some.integers(0, 2**32)


def check(name, version, kind, values):
    """Kio's message is written as kio writes it, and read as kio reads it."""
    form = kafka_message(name, kind)
    original = values.message(kio_class(name, version, kind))
    data = bytes_of(original)
    ours = in_ours(original, form)
    assert form.write(version, ours) == data
    read, end = form.reader(version)(memoryview(data), 0)
    assert end == len(data)
    assert read == ours


@pytest.mark.parametrize(("name", "kind", "versions"), MESSAGES)
@settings(max_examples=examples(5))
@given(seed=SEEDS)
def test_every_version_has_the_bytes_of_kio(name, kind, versions, seed):
    for version in versions:
        check(name, version, kind, Values(seed))


@pytest.mark.parametrize(("name", "kind", "versions"), MESSAGES)
def test_a_message_of_nothing_has_the_bytes_of_kio(name, kind, versions):
    for version in versions:
        check(name, version, kind, Values())


@pytest.mark.parametrize(("name", "kind", "versions"), MESSAGES)
@settings(max_examples=examples(5))
@given(seed=SEEDS)
def test_a_message_behind_others_is_read_where_it_stands(name, kind, versions, seed):
    form, version = kafka_message(name, kind), versions[-1]
    data = bytes_of(Values(seed).message(kio_class(name, version, kind)))
    read, end = form.reader(version)(b"before" + data + b"behind", 6)
    assert end == 6 + len(data)
    assert form.write(version, read) == data


@pytest.mark.parametrize(("name", "kind", "versions"), MESSAGES)
def test_every_field_of_every_version_is_in_the_one_class(name, kind, versions):
    form = kafka_message(name, kind)
    for version in versions:
        entity = kio_class(name, version, kind)
        known = getattr(form, entity.__name__).FIELDS
        assert {each.name for each in fields(entity)} <= set(known)
        assert form.api_key == getattr(entity, "__api_key__", NEVER)
        assert (version >= form.flexible_since) == entity.__flexible__


@pytest.mark.parametrize(("name", "kind", "versions"), MESSAGES)
@settings(max_examples=examples(10))
@given(seed=SEEDS, data=some.data())
def test_a_broken_message_is_read_or_malformed(name, kind, versions, seed, data):
    version = data.draw(some.sampled_from(versions))
    message = bytearray(bytes_of(Values(seed).message(kio_class(name, version, kind))))
    for _ in range(data.draw(some.integers(1, 3)) if message else 0):
        message[data.draw(some.integers(0, len(message) - 1))] = data.draw(some.integers(0, 255))
    del message[data.draw(some.integers(0, len(message))) :]
    with contextlib.suppress(MalformedFrame):
        kafka_message(name, kind).read(version, bytes(message))


# From version to version.


def test_an_old_request_gets_the_defaults_of_what_it_cannot_say():
    entity = kio_class("metadata", 1, "request")
    topic = class_in(entity, "topics")(name="flights")
    read = kafka_message("metadata", "request").read(1, bytes_of(entity(topics=(topic,))))
    assert [(each.name, each.topic_id) for each in read.topics] == [("flights", None)]
    assert read.allow_auto_topic_creation is True
    assert read.include_topic_authorized_operations is False


@pytest.mark.parametrize("retention_ms", [-1, 0, 2**63 - 1, -(2**63)])
def test_a_duration_of_64_bits_may_be_any_number(retention_ms):
    form = kafka_message("offset_commit", "request")
    request = form.OffsetCommitRequest(group_id="g", retention_time=retention_ms)
    assert form.read(2, form.write(2, request)).retention_time == retention_ms


def test_a_message_that_is_made_twice_has_one_class():
    """As by two threads that meet it together."""
    made = [KafkaMessage("list_groups", "response") for _ in range(2)]
    classes = [each.ListGroupsResponse for each in made]
    assert classes[0] is classes[1]


def test_a_field_that_an_old_version_must_have_is_written_empty():
    form = kafka_message("join_group", "response")
    response = form.JoinGroupResponse(protocol_name=None)
    assert read_by_kio("join_group", 0, "response", form.write(0, response)).protocol_name == ""
    assert read_by_kio("join_group", 9, "response", form.write(9, response)).protocol_name is None


def test_what_must_be_there_is_asked_for():
    form = kafka_message("heartbeat", "request")
    with pytest.raises((TypeError, AttributeError)):
        form.write(4, form.HeartbeatRequest(group_id="g", member_id=None))


def test_an_id_of_zeros_is_none_and_none_is_zeros():
    form = kafka_message("metadata", "request")
    request = form.MetadataRequest(topics=(form.MetadataRequestTopic(topic_id=None, name="t"),))
    data = form.write(12, request)
    assert bytes(16) in data
    assert form.read(12, data) == request


def test_records_are_a_view_of_what_was_received():
    call = Call("fetch", 13)
    message = call.response
    partition = message.PartitionData(partition_index=1, records=b"batches")
    topic = message.FetchableTopicResponse(topic_id=UUID(int=7), partitions=(partition,))
    data = message.write(13, message.FetchResponse(responses=(topic,)))
    received = bytearray(data)
    records = call.read(memoryview(received)).responses[0].partitions[0].records
    received[received.index(b"batches")] = ord("B")
    assert bytes(records) == b"Batches"


def test_messages_are_equal_by_their_fields_and_show_them():
    form = kafka_message("heartbeat", "response")
    one = form.HeartbeatResponse(throttle_time=timedelta(0), error_code=ErrorCode.NONE)
    assert one == form.HeartbeatResponse()
    assert hash(one) == hash(form.HeartbeatResponse())
    assert one != form.HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    assert one != "HeartbeatResponse"
    assert repr(one).startswith(
        "HeartbeatResponse(throttle_time=datetime.timedelta(0), error_code="
    )


def test_a_message_that_nobody_knows_is_told_by_its_name():
    with pytest.raises(LookupError, match="kio has no request of launch"):
        _ = kafka_message("launch", "request").LaunchRequest
