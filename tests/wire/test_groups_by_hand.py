"""Requests of group members, read and written by hand, against kio's classes of each version."""

import contextlib
from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as some

from strom.wire import consumer_group_heartbeat, heartbeat, join_group, sync_group
from strom.wire.codec import NOT_A_MESSAGE, load_class
from strom.wire.errors import ErrorCode
from strom.wire.primitives import TEXT_BYTES_MAX, MalformedFrame, varint
from tests.wire.versions import (
    NUMBERS,
    OPTIONAL,
    TEXTS,
    class_in,
    few,
    in_short,
    read_in_kio,
    request_of,
)

NO_TOPIC = UUID(int=0)
DATA = some.binary(max_size=20)
CODES = some.sampled_from([ErrorCode.NONE, ErrorCode.FENCED_MEMBER_EPOCH])
PLACES = few(some.tuples(some.uuids(), few(NUMBERS)))


@pytest.mark.parametrize("version", range(10))
@in_short
@given(
    group=TEXTS,
    times=some.tuples(NUMBERS, NUMBERS),
    who=some.tuples(TEXTS, OPTIONAL),
    kind=TEXTS,
    protocols=few(some.tuples(TEXTS, DATA)),
)
def test_a_join_is_read_as_kio_writes_it(version, group, times, who, kind, protocols):
    protocol = class_in(load_class("join_group", version, "request"), "protocols")
    read = request_of(
        join_group,
        version,
        group_id=group,
        session_timeout=timedelta(milliseconds=times[0]),
        rebalance_timeout=timedelta(milliseconds=times[1]),
        member_id=who[0],
        group_instance_id=who[1],
        protocol_type=kind,
        protocols=tuple(protocol(name=name, metadata=data) for name, data in protocols),
        reason="because",
    )
    rebalance_timeout_ms = times[1] if version >= 1 else -1
    instance = who[1] if version >= 5 else None
    assert read == (group, times[0], rebalance_timeout_ms, who[0], instance, kind, protocols)


@pytest.mark.parametrize("version", range(10))
@in_short
@given(
    answer=some.builds(
        join_group.JoinGroupResponse,
        *(CODES, NUMBERS, OPTIONAL, OPTIONAL, TEXTS, some.booleans(), TEXTS),
        few(some.tuples(TEXTS, OPTIONAL, DATA)),
        some.just(42),
    )
)
def test_the_answer_to_a_join_reads_in_kio_as_it_was_written(version, answer):
    read = read_in_kio(join_group, version, answer)
    assert (read.generation_id, read.leader, read.member_id) == (
        answer.generation_id,
        answer.leader,
        answer.member_id,
    )
    name = answer.protocol_name
    assert read.protocol_name == (name if version >= 7 else name or "")
    if version >= 7:
        assert read.protocol_type == answer.protocol_type
    if version >= 9:
        assert read.skip_assignment == answer.skip_assignment
    assert [(each.member_id, each.metadata) for each in read.members] == [
        (member_id, metadata) for member_id, _, metadata in answer.members
    ]
    if version >= 5:
        names = [each.group_instance_id for each in read.members]
        assert names == [name for _, name, _ in answer.members]


@pytest.mark.parametrize("version", range(6))
@in_short
@given(
    who=some.tuples(TEXTS, NUMBERS, TEXTS, OPTIONAL),
    protocol=some.tuples(OPTIONAL, OPTIONAL),
    parts=some.dictionaries(TEXTS, DATA, max_size=4),
)
def test_a_sync_is_read_as_kio_writes_it(version, who, protocol, parts):
    part = class_in(load_class("sync_group", version, "request"), "assignments")
    group, generation, member, instance = who
    read = request_of(
        sync_group,
        version,
        group_id=group,
        generation_id=generation,
        member_id=member,
        group_instance_id=instance,
        protocol_type=protocol[0],
        protocol_name=protocol[1],
        assignments=tuple(part(member_id=name, assignment=data) for name, data in parts.items()),
    )
    instance = instance if version >= 3 else None
    told = protocol if version >= 5 else (None, None)
    assert read == (group, generation, member, instance, *told, parts)


@pytest.mark.parametrize("version", range(6))
@in_short
@given(
    answer=some.builds(sync_group.SyncGroupResponse, CODES, OPTIONAL, OPTIONAL, DATA, some.just(42))
)
def test_the_answer_to_a_sync_reads_in_kio_as_it_was_written(version, answer):
    read = read_in_kio(sync_group, version, answer)
    assert read.assignment == answer.assignment
    if version >= 5:
        assert (read.protocol_type, read.protocol_name) == answer[1:3]


@pytest.mark.parametrize("version", range(5))
@in_short
@given(who=some.tuples(TEXTS, NUMBERS, TEXTS, OPTIONAL), code=CODES)
def test_a_heartbeat_and_its_answer_are_as_kio_has_them(version, who, code):
    group, generation, member, instance = who
    read = request_of(
        heartbeat,
        version,
        group_id=group,
        generation_id=generation,
        member_id=member,
        group_instance_id=instance,
    )
    assert read == (group, generation, member, instance if version >= 3 else None)
    read_in_kio(heartbeat, version, heartbeat.HeartbeatResponse(code, 42))


@pytest.mark.parametrize("version", range(2))
@in_short
@given(
    who=some.tuples(TEXTS, TEXTS, NUMBERS, OPTIONAL, OPTIONAL, NUMBERS),
    names=some.none() | few(TEXTS),
    pattern=OPTIONAL,
    assignor=OPTIONAL,
    owned=some.none() | PLACES,
)
def test_what_a_consumer_says_is_read_as_kio_writes_it(
    version, who, names, pattern, assignor, owned
):
    place = class_in(load_class("consumer_group_heartbeat", version, "request"), "topic_partitions")
    group, member, epoch, instance, rack, timeout_ms = who
    held = None
    if owned is not None:
        held = tuple(place(topic_id=topic, partitions=tuple(each)) for topic, each in owned)
    read = request_of(
        consumer_group_heartbeat,
        version,
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        instance_id=instance,
        rack_id=rack,
        rebalance_timeout=timedelta(milliseconds=timeout_ms),
        subscribed_topic_names=None if names is None else tuple(names),
        subscribed_topic_regex=pattern,
        server_assignor=assignor,
        topic_partitions=held,
    )
    assert read[:6] == who
    assert read[6:9] == (names, pattern if version >= 1 else None, assignor)
    found = None
    if read.owned is not None:
        found = [(topic, list(partitions)) for topic, partitions in read.owned]
    # What has no topic's id is nowhere.
    assert found == (owned and [each for each in owned if each[0] != NO_TOPIC])


@pytest.mark.parametrize("version", range(2))
@in_short
@given(
    answer=some.builds(
        consumer_group_heartbeat.ConsumerGroupHeartbeatResponse,
        *(CODES, OPTIONAL, OPTIONAL, NUMBERS, some.integers(0, 60_000), some.none() | PLACES),
        some.just(42),
    )
)
def test_what_a_consumer_is_told_reads_in_kio_as_it_was_written(version, answer):
    read = read_in_kio(consumer_group_heartbeat, version, answer)
    assert (read.error_message, read.member_id, read.member_epoch) == answer[1:4]
    assert read.heartbeat_interval == timedelta(milliseconds=answer.heartbeat_interval_ms)
    found = None
    if read.assignment is not None:
        found = [
            (each.topic_id or NO_TOPIC, list(each.partitions))
            for each in read.assignment.topic_partitions
        ]
    assert found == answer.assignment


@pytest.mark.parametrize(
    ("module", "version"),
    [(join_group, each) for each in range(10)]
    + [(sync_group, each) for each in range(6)]
    + [(heartbeat, each) for each in range(5)]
    + [(consumer_group_heartbeat, each) for each in range(2)],
)
@in_short
@given(data=some.binary(max_size=60))
def test_any_bytes_are_a_request_or_refused(module, version, data):
    with contextlib.suppress(MalformedFrame, *NOT_A_MESSAGE):
        module.read_request(memoryview(data), 0, version)


@pytest.mark.parametrize("module", [join_group, sync_group, heartbeat, consumer_group_heartbeat])
def test_a_group_without_a_name_is_refused(module):
    newest = {join_group: 9, sync_group: 5, heartbeat: 4, consumer_group_heartbeat: 1}[module]
    with pytest.raises(MalformedFrame):
        module.read_request(memoryview(bytes(60)), 0, newest)


@pytest.mark.parametrize("module", [join_group, sync_group, heartbeat, consumer_group_heartbeat])
def test_a_name_is_as_long_as_every_version_has_room_for(module):
    """As in Kafka: the log of the groups has no more room, and all of a group is one record."""
    newest = {join_group: 9, sync_group: 5, heartbeat: 4, consumer_group_heartbeat: 1}[module]

    def read(size):
        data = varint(size + 1) + b"g" * size + bytes(60)
        module.read_request(memoryview(data), 0, newest)

    # Of the one that fits, the rest is refused: a member without an id.
    with pytest.raises(MalformedFrame, match="must be there"):
        read(TEXT_BYTES_MAX)
    with pytest.raises(MalformedFrame, match="a string of 32768 bytes"):
        read(TEXT_BYTES_MAX + 1)


def test_more_topics_than_bytes_are_refused():
    start = b"\2g\2m" + bytes(4) + b"\0\0" + bytes(4)
    data = memoryview(start + b"\xff\xff\xff\xff\x0f" + bytes(60))
    with pytest.raises(MalformedFrame):
        consumer_group_heartbeat.read_request(data, 0, 1)
