"""Bytes from outside: counts that lie, fields not known, noise; kio sees none of them."""

import pkgutil
import struct
from contextlib import suppress
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from importlib import import_module
from io import BytesIO
from types import UnionType
from typing import get_args, get_origin
from uuid import UUID

import kio.schema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.describe_topic_partitions.v0.request import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from kio.schema.errors import ErrorCode
from kio.schema.fetch.v15.request import FetchRequest, ReplicaState
from kio.schema.leave_group.v1.request import LeaveGroupRequest
from kio.schema.metadata.v4.request import MetadataRequest as LegacyMetadata
from kio.schema.metadata.v12.request import MetadataRequest
from kio.schema.offset_delete.v0.request import OffsetDeleteRequest
from kio.schema.voters_record.v0.data import VotersRecord
from kio.serial import entity_reader, entity_writer

from strom.wire.guard import check_counts, cut_unknown, guarded_reader, walk
from strom.wire.primitives import MalformedFrame, read_text, text, varint

HUGE = [2**27, 2**31 - 1]


@pytest.mark.parametrize("count", [*HUGE, 2**32 - 1, 2**35 - 1])
@pytest.mark.parametrize("entity", [MetadataRequest, CreateTopicsRequest])
def test_flexible_count_that_lies_is_refused(entity, count):
    with pytest.raises(MalformedFrame, match="array"):
        check_counts(entity, varint(count) + b"xx")


@pytest.mark.parametrize("count", HUGE)
@pytest.mark.parametrize("entity", [LegacyMetadata])
def test_legacy_count_that_lies_is_refused(entity, count):
    with pytest.raises(MalformedFrame, match="array"):
        check_counts(entity, struct.pack(">i", count) + b"xx")


@pytest.mark.parametrize("size", [32767, 32768, 40_000, 2**21])
def test_a_string_is_no_longer_than_the_older_encoding_can_tell(size):
    name = "x" * size
    topic = CreatableTopic(
        name=name, num_partitions=1, replication_factor=1, assignments=(), configs=()
    )
    buffer = BytesIO()
    entity_writer(CreateTopicsRequest)(buffer, CreateTopicsRequest(topics=(topic,)))
    read = guarded_reader(CreateTopicsRequest)
    if size == 32767:
        assert read(buffer.getvalue()).topics[0].name == name
        return
    with pytest.raises(MalformedFrame, match="a string of"):
        read(buffer.getvalue())


def test_a_string_read_by_hand_has_the_same_limit():
    for size in (0, 32767):
        assert read_text(text("x" * size, True), 0, True)[0] == "x" * size
    with pytest.raises(MalformedFrame, match="a string of 32768 bytes"):
        read_text(text("x" * 32768, True), 0, True)


def test_count_inside_an_element_is_checked():
    frame = struct.pack(">h", 1) + b"g" + struct.pack(">ih", 1, 1) + b"t" + struct.pack(">i", 2**30)
    with pytest.raises(MalformedFrame, match="array"):
        check_counts(OffsetDeleteRequest, frame)


def test_count_behind_other_fields_is_checked():
    with pytest.raises(MalformedFrame, match="array"):
        check_counts(VotersRecord, b"\0\0" + varint(2**31))


@pytest.mark.parametrize(
    ("entity", "data"),
    [
        (CreateTopicsRequest, b"\0" + bytes(5) + b"\0"),
        (CreateTopicsRequest, b"\2\2t" + bytes(6) + b"\0\1\0" + bytes(5) + b"\0"),
        (OffsetDeleteRequest, b"\0\1g" + b"\xff" * 4),
        (OffsetDeleteRequest, b"\0\1g" + b"\0\0\0\1" + b"\0\1t" + b"\xff" * 4),
    ],
)
def test_null_where_an_array_must_be_is_refused(entity, data):
    with pytest.raises(MalformedFrame, match="must be there"):
        guarded_reader(entity)(data)


@pytest.mark.parametrize(
    ("entity", "data"),
    [(MetadataRequest, b"\0\0\0\0"), (LegacyMetadata, b"\xff\xff\xff\xff\0")],
)
def test_null_where_an_array_may_be_missing_is_read(entity, data):
    assert guarded_reader(entity)(data).topics is None


def test_message_cut_off_is_refused():
    for size in range(7):
        with pytest.raises(MalformedFrame):
            check_counts(LeaveGroupRequest, b"\0\3abc\0\4abcd"[:size])


def test_tagged_field_longer_than_its_message_is_refused():
    topic = CreatableTopic(
        name="t" * 3, num_partitions=-1, replication_factor=-1, assignments=(), configs=()
    )
    request = CreateTopicsRequest(
        topics=(topic,), timeout=timedelta(milliseconds=1), validate_only=False
    )
    frame = written(request)[:-1] + b"\1\7" + varint(2**30)
    with pytest.raises(MalformedFrame, match="tagged"):
        check_counts(CreateTopicsRequest, frame)


def written(message):
    out = BytesIO()
    entity_writer(type(message))(out, message)
    return out.getvalue()


@pytest.mark.parametrize("cursor", [None, True])
def test_nullable_entity_is_walked_over(cursor):
    request = DescribeTopicPartitionsRequest(
        topics=(TopicRequest(name="t"),),
        response_partition_limit=-1,
        cursor=Cursor(topic_name="t", partition_index=-1) if cursor else None,
    )
    check_counts(DescribeTopicPartitionsRequest, written(request))


def request_classes():
    """Every request that kio knows, in its oldest and its newest version."""
    for api in pkgutil.iter_modules(kio.schema.__path__):
        if not api.ispkg:
            continue
        package = import_module(f"kio.schema.{api.name}")
        versions = {int(each.name[1:]) for each in pkgutil.iter_modules(package.__path__)}
        for version in sorted({min(versions), max(versions)}):
            try:
                module = import_module(f"kio.schema.{api.name}.v{version}.request")
            except ModuleNotFoundError:
                continue
            camel = "".join(word.capitalize() for word in api.name.split("_")) + "Request"
            yield getattr(module, camel)


#: One value of each kind, none of which is its default, so that tagged fields are written.
SAMPLES = {
    "bool": True,
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint16"), 77),
    "float64": 1.5,
    "string": "text",
    **dict.fromkeys(("bytes", "records"), b"bytes" * 40),
    "uuid": UUID(int=2**127),
    "error_code": ErrorCode.offset_out_of_range,
    **dict.fromkeys(("timedelta_i32", "timedelta_i64"), timedelta(milliseconds=9)),
    "datetime_i64": datetime(2026, 11, 16, tzinfo=UTC),
}


def sample(entity):
    """A message with every field set and two elements in every array."""
    values = {}
    for each in fields(entity):
        kind = each.metadata.get("kafka_type")
        declared = each.type
        if isinstance(declared, UnionType):
            declared = next(one for one in get_args(declared) if one is not type(None))
        is_array = get_origin(declared) is tuple
        if kind is not None:
            one = SAMPLES[kind]
        else:
            one = sample(get_args(declared)[0] if is_array else declared)
        values[each.name] = (one, one) if is_array else one
    return entity(**values)


@pytest.mark.slow
def test_every_request_ends_where_kio_says():
    """A walk that lost its way would end elsewhere, or find counts where none are."""
    for entity in request_classes():
        data = written(sample(entity))
        assert walk(entity, data, []) == len(data), entity
        _, read = entity_reader(entity)(data, 0)
        assert read == len(data)


def with_unknown_tags(data, known=b"", count=0):
    """The message with two fields more in its last section of tagged fields."""
    assert data[-1] == 0
    return data[:-1] + varint(count + 2) + known + varint(99) + b"\2xy" + varint(300) + b"\0"


def test_unknown_tagged_fields_are_stepped_over():
    message = sample(CreateTopicsRequest)
    data = written(message)
    assert cut_unknown(CreateTopicsRequest, with_unknown_tags(data)) == data
    assert guarded_reader(CreateTopicsRequest)(with_unknown_tags(data)) == message


def test_unknown_tagged_field_of_an_element_is_stepped_over():
    name = TopicRequest(name="t")
    request = DescribeTopicPartitionsRequest(
        topics=(name, name), response_partition_limit=-1, cursor=None
    )
    element = written(name)
    data = written(request).replace(element, with_unknown_tags(element))
    assert guarded_reader(DescribeTopicPartitionsRequest)(data) == request


def test_known_tagged_fields_stay():
    # Count, tag, and two lengths of two bytes stand in front of the text.
    message = FetchRequest(
        cluster_id="c" * 200,
        replica_state=ReplicaState(replica_id=-1, replica_epoch=-1),
        max_wait=timedelta(0),
        min_bytes=0,
        max_bytes=0,
        isolation_level=0,
        session_id=0,
        session_epoch=0,
        topics=(),
        forgotten_topics_data=(),
        rack_id="",
    )
    data = written(message)
    tags = data.index(b"c" * 200) - 6
    assert data[tags] == 1
    more = data[:tags] + b"\2" + data[tags + 1 :] + varint(99) + b"\1x"
    assert guarded_reader(FetchRequest)(more) == message


NOISY = (MetadataRequest, LegacyMetadata, CreateTopicsRequest, VotersRecord, FetchRequest)


@given(data=st.binary(max_size=60))
def test_noise_is_read_or_malformed(data):
    for entity in NOISY:
        with suppress(MalformedFrame):
            guarded_reader(entity)(data)


@given(st.data())
def test_broken_message_is_read_or_malformed(data):
    entity = data.draw(st.sampled_from(NOISY))
    message = bytearray(written(sample(entity)))
    for _ in range(data.draw(st.integers(1, 3))):
        message[data.draw(st.integers(0, len(message) - 1))] = data.draw(st.integers(0, 255))
    with suppress(MalformedFrame):
        guarded_reader(entity)(bytes(message))
