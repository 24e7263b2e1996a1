"""Bytes from outside: counts that lie, names that are too long, nulls, fields that nobody knows.

A broker reads requests of strangers: none of these may cost memory, or be taken for something else.
"""

import struct
import tracemalloc
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as some

from strom.wire.messages import kafka_message
from strom.wire.primitives import MalformedFrame, read_count, read_text, skip_tags, text, varint

HUGE = [2**27, 2**31 - 1]

CREATE_TOPICS = kafka_message("create_topics", "request")
DESCRIBE = kafka_message("describe_topic_partitions", "request")
FETCH = kafka_message("fetch", "request")
LEAVE_GROUP = kafka_message("leave_group", "request")
METADATA = kafka_message("metadata", "request")
OFFSET_DELETE = kafka_message("offset_delete", "request")
VOTERS = kafka_message("voters_record", "data")

FLEXIBLE = [(METADATA, 12), (CREATE_TOPICS, 7)]


def topic(name):
    return CREATE_TOPICS.CreatableTopic(name=name, num_partitions=1, replication_factor=1)


@pytest.mark.parametrize("count", [*HUGE, 2**32 - 1, 2**35 - 1])
@pytest.mark.parametrize(("form", "version"), FLEXIBLE)
def test_flexible_count_that_lies_is_refused(form, version, count):
    with pytest.raises(MalformedFrame, match="array"):
        form.read(version, varint(count) + b"xx")


@pytest.mark.parametrize("count", HUGE)
def test_legacy_count_that_lies_is_refused(count):
    with pytest.raises(MalformedFrame, match="array"):
        METADATA.read(4, struct.pack(">i", count) + b"xx")


def test_a_count_is_held_against_what_its_elements_take_at_least():
    assert read_count(b"\4" + bytes(12), 0, True, 4) == (3, 1)
    with pytest.raises(MalformedFrame, match="an array of 3 elements in 12 bytes"):
        read_count(b"\4" + bytes(11), 0, True, 4)


@pytest.mark.parametrize("size", [32767, 32768, 40_000, 2**21])
def test_a_string_is_no_longer_than_the_older_encoding_can_tell(size):
    name = "x" * size
    # Written by hand: no writer of ours would.
    data = b"\2" + varint(size + 1) + name.encode() + struct.pack(">ih", 1, 1) + b"\1\1\0"
    data += struct.pack(">i", 0) + b"\0\0"
    if size == 32767:
        assert CREATE_TOPICS.read(7, data).topics[0].name == name
        return
    with pytest.raises(MalformedFrame, match="a string of"):
        CREATE_TOPICS.read(7, data)


def test_a_string_has_the_same_limit_wherever_it_is_read():
    for size in (0, 32767):
        assert read_text(text("x" * size, True), 0, True)[0] == "x" * size
    with pytest.raises(MalformedFrame, match="a string of 32768 bytes"):
        read_text(text("x" * 32768, True), 0, True)


def test_count_inside_an_element_is_checked():
    frame = struct.pack(">h", 1) + b"g" + struct.pack(">ih", 1, 1) + b"t" + struct.pack(">i", 2**30)
    with pytest.raises(MalformedFrame, match="array"):
        OFFSET_DELETE.read(0, frame)


def test_count_behind_other_fields_is_checked():
    with pytest.raises(MalformedFrame, match="array"):
        VOTERS.read(0, b"\0\0" + varint(2**31))


@pytest.mark.parametrize(
    ("form", "version", "data"),
    [
        (CREATE_TOPICS, 7, b"\0" + bytes(5) + b"\0"),
        (CREATE_TOPICS, 7, b"\2\2t" + bytes(6) + b"\0\1\0" + bytes(5) + b"\0"),
        (OFFSET_DELETE, 0, b"\0\1g" + b"\xff" * 4),
        (OFFSET_DELETE, 0, b"\0\1g" + b"\0\0\0\1" + b"\0\1t" + b"\xff" * 4),
    ],
)
def test_null_where_an_array_must_be_is_refused(form, version, data):
    with pytest.raises(MalformedFrame, match="must be there"):
        form.read(version, data)


@pytest.mark.parametrize(("version", "data"), [(12, b"\0\0\0\0"), (4, b"\xff\xff\xff\xff\0")])
def test_null_where_an_array_may_be_missing_is_read(version, data):
    assert METADATA.read(version, data).topics is None


@pytest.mark.parametrize(("version", "data"), [(4, b"\0"), (3, b"\xff\xff")])
def test_null_where_a_string_must_be_is_refused(version, data):
    with pytest.raises(MalformedFrame, match="must be there"):
        kafka_message("heartbeat", "request").read(version, data + bytes(12))


def test_message_cut_off_is_refused():
    for size in range(7):
        with pytest.raises(MalformedFrame):
            LEAVE_GROUP.read(1, b"\0\3abc\0\4abcd"[:size])


def test_text_that_is_no_text_is_refused():
    with pytest.raises(MalformedFrame, match="UnicodeDecodeError"):
        LEAVE_GROUP.read(1, b"\0\1\xff\0\0")


def test_an_error_code_that_no_kafka_knows_is_refused():
    with pytest.raises(MalformedFrame, match="not a valid ErrorCode"):
        kafka_message("heartbeat", "response").read(0, struct.pack(">h", 9999))


def test_tagged_field_longer_than_its_message_is_refused():
    data = CREATE_TOPICS.write(7, CREATE_TOPICS.CreateTopicsRequest(topics=(topic("ttt"),)))
    frame = data[:-1] + b"\1\7" + varint(2**30)
    with pytest.raises(MalformedFrame, match="tagged"):
        CREATE_TOPICS.read(7, frame)


def test_unknown_tagged_fields_are_not_kept():
    """A frame may hold millions of them."""
    many = 50_000
    section = varint(many) + b"".join(varint(number) + b"\0" for number in range(many))
    tracemalloc.start()
    try:
        assert skip_tags(section, 0) == len(section)
        assert tracemalloc.get_traced_memory()[1] < many
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("mark", [0, 1, 0x7F])
def test_a_byte_of_0_and_more_says_that_a_struct_is_there(mark):
    cursor = DESCRIBE.Cursor(topic_name="t", partition_index=-1)
    data = DESCRIBE.write(0, DESCRIBE.DescribeTopicPartitionsRequest(cursor=cursor))
    at = data.index(b"\1\2t")
    read = DESCRIBE.read(0, data[:at] + bytes((mark,)) + data[at + 1 :])
    assert read.cursor == cursor


@pytest.mark.parametrize("name", [None, "t"])
def test_struct_that_may_be_missing_is_read(name):
    cursor = None if name is None else DESCRIBE.Cursor(topic_name=name, partition_index=-1)
    request = DESCRIBE.DescribeTopicPartitionsRequest(cursor=cursor)
    assert DESCRIBE.read(0, DESCRIBE.write(0, request)) == request


def with_unknown_tags(data, known=b"", count=0):
    """The message with two fields more in its last section of tagged fields."""
    assert data[-1] == 0
    return data[:-1] + varint(count + 2) + known + varint(99) + b"\2xy" + varint(300) + b"\0"


def test_unknown_tagged_fields_are_stepped_over():
    """KIP-482: that is how newer clients talk to older brokers."""
    data = CREATE_TOPICS.write(7, CREATE_TOPICS.CreateTopicsRequest(topics=(topic("t"),)))
    read, end = CREATE_TOPICS.reader(7)(with_unknown_tags(data), 0)
    assert CREATE_TOPICS.write(7, read) == data
    assert end == len(with_unknown_tags(data))


def test_unknown_tagged_field_of_an_element_is_stepped_over():
    element = b"\2t\0"
    request = DESCRIBE.DescribeTopicPartitionsRequest(
        topics=(DESCRIBE.TopicRequest(name="t"), DESCRIBE.TopicRequest(name="t")),
        response_partition_limit=5,
    )
    data = DESCRIBE.write(0, request)
    assert data.count(element) == 2
    assert DESCRIBE.read(0, data.replace(element, with_unknown_tags(element))) == request


def test_known_tagged_fields_are_read_beside_unknown_ones():
    # Count, tag, and two lengths of two bytes stand in front of the text.
    data = FETCH.write(15, FETCH.FetchRequest(cluster_id="c" * 200))
    tags = data.index(b"c" * 200) - 6
    assert data[tags] == 1
    more = data[:tags] + b"\2" + data[tags + 1 :] + varint(99) + b"\1x"
    assert FETCH.read(15, more) == FETCH.read(15, data)
    assert FETCH.read(15, more).cluster_id == "c" * 200


NOISY = ((METADATA, 12), (METADATA, 4), (CREATE_TOPICS, 7), (VOTERS, 0), (FETCH, 15))


@given(data=some.binary(max_size=60))
def test_noise_is_read_or_malformed(data):
    for form, version in NOISY:
        with suppress(MalformedFrame):
            form.read(version, data)
