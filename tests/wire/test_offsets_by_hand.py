"""OffsetCommit, OffsetFetch, ListOffsets by hand, against kio's classes of each version."""

import contextlib
from dataclasses import fields
from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as some
from kio.serial import entity_reader

from strom.wire import list_offsets, offset_commit, offset_fetch
from strom.wire.codec import NOT_A_MESSAGE, load_class
from strom.wire.errors import ErrorCode
from strom.wire.primitives import MalformedFrame
from tests.wire.versions import (
    NUMBERS,
    OPTIONAL,
    TEXTS,
    class_in,
    few,
    in_short,
    make,
    written,
)

TOPIC_ID = UUID(int=0x1234567890ABCDEF1234567890ABCDEF)
CODES = some.sampled_from([ErrorCode.NONE, ErrorCode.UNSTABLE_OFFSET_COMMIT])


def which(version, since):
    return {"topic_id": TOPIC_ID} if version >= since else {"name": "flugdaten"}


def named(version, since):
    return (None, TOPIC_ID) if version >= since else ("flugdaten", None)


@pytest.mark.parametrize("version", range(2, 11))
@in_short
@given(
    who=some.tuples(TEXTS, NUMBERS, TEXTS, OPTIONAL),
    retention=NUMBERS,
    offsets=few(some.tuples(NUMBERS, some.integers(-1, 2**60), NUMBERS, OPTIONAL)),
)
def test_a_commit_is_read_as_kio_writes_it(version, who, retention, offsets):
    group, epoch, member, instance = who
    request_class = load_class("offset_commit", version, "request")
    topic_class = class_in(request_class, "topics")
    partition_class = class_in(topic_class, "partitions")
    partitions = tuple(
        make(
            partition_class,
            partition_index=index,
            committed_offset=offset,
            committed_leader_epoch=leader_epoch,
            committed_metadata=metadata,
        )
        for index, offset, leader_epoch, metadata in offsets
    )
    request = make(
        request_class,
        group_id=group,
        generation_id_or_member_epoch=epoch,
        member_id=member,
        group_instance_id=instance,
        retention_time=timedelta(milliseconds=retention),
        topics=(make(topic_class, partitions=partitions, **which(version, 10)),),
    )
    read = offset_commit.read_request(memoryview(written(request)), 0, version)
    assert read[:3] == (group, epoch, member)
    assert read.instance_id == (instance if version >= 7 else None)
    assert read.retention_ms == (retention if version <= 4 else -1)
    (topic,) = read.topics
    assert (topic.name, topic.topic_id) == named(version, 10)
    epochs = [each[2] if version >= 6 else -1 for each in offsets]
    assert topic.partitions == [
        (index, offset, leader_epoch, metadata)
        for (index, offset, _, metadata), leader_epoch in zip(offsets, epochs, strict=True)
    ]


@pytest.mark.parametrize("version", range(2, 11))
@in_short
@given(answers=few(some.tuples(NUMBERS, CODES)))
def test_the_answer_to_a_commit_reads_in_kio_as_it_was_written(version, answers):
    topic = offset_commit.TopicCommitted("flugdaten", TOPIC_ID, answers)
    data = offset_commit.write_response(offset_commit.OffsetCommitResponse([topic], 42), version)
    read, size = entity_reader(load_class("offset_commit", version, "response"))(data, 0)
    assert size == len(data)
    if version >= 3:
        assert read.throttle_time.total_seconds() == 0.042
    (topic_read,) = read.topics
    found = [(each.partition_index, each.error_code) for each in topic_read.partitions]
    assert found == answers
    assert (
        which(version, 10).items()
        <= {each.name: getattr(topic_read, each.name) for each in fields(topic_read)}.items()
    )


@pytest.mark.parametrize("version", range(1, 11))
@in_short
@given(
    groups=few(
        some.tuples(TEXTS, some.none() | few(few(NUMBERS)), OPTIONAL, NUMBERS),
        min_size=1,
    ),
    stable=some.booleans(),
)
def test_a_question_for_offsets_is_read_as_kio_writes_it(version, groups, stable):
    request_class = load_class("offset_fetch", version, "request")
    many = version >= 8
    group_class = class_in(request_class, "groups") if many else request_class
    topic_class = class_in(group_class, "topics")
    if version == 1:
        groups = [(group, topics or [], *rest) for group, topics, *rest in groups]

    def group_of(group, topics, member, epoch, **more):
        made = topics and tuple(
            make(topic_class, partition_indexes=tuple(each), **which(version, 10))
            for each in topics
        )
        return make(
            group_class,
            group_id=group,
            topics=() if topics == [] else made,
            member_id=member,
            member_epoch=epoch,
            **more,
        )

    if many:
        asked = tuple(group_of(*each) for each in groups)
        request = make(request_class, groups=asked, require_stable=stable)
    else:
        groups = groups[:1]
        request = group_of(*groups[0], require_stable=stable)
    read = offset_fetch.read_request(memoryview(written(request)), 0, version)
    assert read.require_stable == (stable and version >= 7)
    for found, (group, topics, member, epoch) in zip(read.groups, groups, strict=True):
        assert found.group_id == group
        assert (found.topics is None) == (topics is None)
        assert [each.partitions for each in found.topics or ()] == (topics or [])
        assert {(each.name, each.topic_id) for each in found.topics or ()} <= {named(version, 10)}
        who = (member, epoch) if version >= 9 else (None, -1)
        assert (found.member_id, found.member_epoch) == who


@pytest.mark.parametrize("version", range(1, 11))
@in_short
@given(
    found=few(
        some.builds(
            offset_fetch.PartitionFound, NUMBERS, some.integers(-1, 2**60), NUMBERS, TEXTS, CODES
        )
    ),
    code=CODES,
)
def test_what_is_told_of_offsets_reads_in_kio_as_it_was_written(version, found, code):
    topic = offset_fetch.TopicFound("flugdaten", TOPIC_ID, found)
    group = offset_fetch.GroupFound("g", [topic], code)
    data = offset_fetch.write_response(offset_fetch.OffsetFetchResponse([group], 42), version)
    read, size = entity_reader(load_class("offset_fetch", version, "response"))(data, 0)
    assert size == len(data)
    if version >= 3:
        assert read.throttle_time.total_seconds() == 0.042
    if version >= 8:
        (read,) = read.groups
        assert read.group_id == "g"
    if version >= 2:
        assert read.error_code == code
    (topic_read,) = read.topics
    assert [
        (each.partition_index, each.committed_offset, each.metadata, each.error_code)
        for each in topic_read.partitions
    ] == [(each[0], each[1], each[3], each[4]) for each in found]
    if version >= 5:
        epochs = [each.committed_leader_epoch for each in topic_read.partitions]
        assert epochs == [each.leader_epoch for each in found]


@pytest.mark.parametrize("version", range(1, 12))
@in_short
@given(
    topics=few(some.tuples(TEXTS, few(some.tuples(NUMBERS, some.integers(-6, 2**60), NUMBERS)))),
    isolation_level=some.sampled_from([0, 1]),
)
def test_a_question_for_places_is_read_as_kio_writes_it(version, topics, isolation_level):
    request_class = load_class("list_offsets", version, "request")
    topic_class = class_in(request_class, "topics")
    partition_class = class_in(topic_class, "partitions")
    request = make(
        request_class,
        replica_id=-1,
        isolation_level=isolation_level,
        timeout=timedelta(milliseconds=42),
        topics=tuple(
            make(
                topic_class,
                name=name,
                partitions=tuple(
                    make(
                        partition_class,
                        partition_index=index,
                        timestamp=timestamp,
                        current_leader_epoch=epoch,
                    )
                    for index, timestamp, epoch in partitions
                ),
            )
            for name, partitions in topics
        ),
    )
    read = list_offsets.read_request(memoryview(written(request)), 0, version)
    assert read.isolation_level == (isolation_level if version >= 2 else 0)
    assert read.topics == [
        (name, [(index, time, epoch if version >= 4 else -1) for index, time, epoch in partitions])
        for name, partitions in topics
    ]


@pytest.mark.parametrize("version", range(1, 12))
@in_short
@given(
    topics=few(
        some.tuples(
            TEXTS,
            few(some.tuples(NUMBERS, CODES, some.integers(-1, 2**60), NUMBERS, NUMBERS)),
        )
    )
)
def test_what_is_told_of_places_reads_in_kio_as_it_was_written(version, topics):
    found = [
        list_offsets.TopicFound(name, [list_offsets.PartitionFound(*each) for each in partitions])
        for name, partitions in topics
    ]
    data = list_offsets.write_response(list_offsets.ListOffsetsResponse(found, 42), version)
    read, size = entity_reader(load_class("list_offsets", version, "response"))(data, 0)
    assert size == len(data)
    if version >= 2:
        assert read.throttle_time.total_seconds() == 0.042
    names = ["partition_index", "error_code", "timestamp", "offset"]
    names += ["leader_epoch"] if version >= 4 else []
    assert [
        (topic.name, [tuple(getattr(each, name) for name in names) for each in topic.partitions])
        for topic in read.topics
    ] == [(name, [each[: len(names)] for each in partitions]) for name, partitions in topics]


@pytest.mark.parametrize(
    ("module", "version"),
    [(offset_commit, each) for each in range(2, 11)]
    + [(offset_fetch, each) for each in range(1, 11)]
    + [(list_offsets, each) for each in range(1, 12)],
)
@in_short
@given(data=some.binary(max_size=60))
def test_any_bytes_are_a_request_or_refused(module, version, data):
    with contextlib.suppress(MalformedFrame, *NOT_A_MESSAGE):
        module.read_request(memoryview(data), 0, version)


def test_a_group_without_a_name_is_refused():
    with pytest.raises(MalformedFrame):
        offset_commit.read_request(memoryview(b"\xff\xff" + bytes(30)), 0, 2)
