"""The records of `__consumer_offsets`: as Apache Kafka 4.3.1 wrote them, and any others.

Rows: OFS-01, GRP-01, GRP-03.
"""

from dataclasses import MISSING, fields
from typing import get_args, get_origin, get_type_hints
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as some

from strom.groups import records
from strom.groups.records import (
    NO_TOPIC_ID,
    TYPES,
    OffsetCommitKey,
    OffsetCommitValue,
    read,
    write_key,
    write_value,
)
from strom.replicated.machine import KeyValue
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import write_message
from strom.wire.primitives import INT16, MalformedFrame

TOPIC_ID = UUID("1342602c-65a2-473c-8c78-d7ce1a4a87ca")
READ_ID = UUID("9207d857-6555-4cc4-b4a7-a516d98bc72e")


def classic_member(name, member_id, instance_id):
    return records.MemberMetadata(
        member_id=member_id,
        group_instance_id=instance_id,
        client_id=name,
        client_host="/127.0.0.1",
        rebalance_timeout=60000,
        session_timeout=60000,
        subscription=b"mine",
        assignment=f"part of {name}".encode(),
    )


#: What Apache Kafka 4.3.1 wrote into its log: key and value in hex, and what they say.
GOLDEN = {
    "an offset": (
        "000100016700017400000000",
        "0004000000000000000500000003026d000001a1e3a35a0e0100101342602c65a2473c8c78d7ce1a4a87ca",
        OffsetCommitKey(group="g", topic="t", partition=0),
        OffsetCommitValue(
            offset=5,
            leader_epoch=3,
            metadata="m",
            commit_timestamp_ms=1794820495886,
            topic_id=TOPIC_ID,
        ),
    ),
    "an offset that expires early": (
        "000100036f6c6400017400000000",
        "0001000000000000000b0000000001a1e3a35acf000001a1e3a4e16f",
        OffsetCommitKey(group="old", topic="t", partition=0),
        OffsetCommitValue(
            offset=11,
            commit_timestamp_ms=1794820496079,
            expire_timestamp_ms=1794820596079,
        ),
    ),
    "an offset of a transaction": (
        "0001000374786700017800000000",
        "00040000000000000007ffffffff01000001a1e3a3f85400",
        OffsetCommitKey(group="txg", topic="x", partition=0),
        OffsetCommitValue(offset=7, commit_timestamp_ms=1794820536404),
    ),
    "a group without members": (
        "00020003747867",
        "00030008636f6e73756d657200000002ffffffff000001a1e3a427ff00000000",
        records.GroupMetadataKey(group="txg"),
        records.GroupMetadataValue(
            protocol_type="consumer",
            generation=2,
            protocol=None,
            leader=None,
            current_state_timestamp=1794820548607,
            members=(),
        ),
    ),
    "a consumer group": (
        "00030003676c64",
        "00000000000201000878b017a60ebf4a1b",
        records.ConsumerGroupMetadataKey(group_id="gld"),
        records.ConsumerGroupMetadataValue(epoch=2, metadata_hash=8696476882431855131),
    ),
    "a static member of one": (
        "00050003676c64000161",
        "000002690002610b2f3132372e302e302e310206676c642d74010000ea600672616e676501000100",
        records.ConsumerGroupMemberMetadataKey(group_id="gld", member_id="a"),
        records.ConsumerGroupMemberMetadataValue(
            instance_id="i",
            rack_id=None,
            client_id="a",
            client_host="/127.0.0.1",
            subscribed_topic_names=("gld-t",),
            subscribed_topic_regex="",
            rebalance_timeout_ms=60000,
            server_assignor="range",
        ),
    ),
    "a member with a rack and a pattern": (
        "00050003676c64000162",
        "000000027202620b2f3132372e302e302e310107676c642d2e2a0000ea600672616e676501000100",
        records.ConsumerGroupMemberMetadataKey(group_id="gld", member_id="b"),
        records.ConsumerGroupMemberMetadataValue(
            instance_id=None,
            rack_id="r",
            client_id="b",
            client_host="/127.0.0.1",
            subscribed_topic_names=(),
            subscribed_topic_regex="gld-.*",
            rebalance_timeout_ms=60000,
            server_assignor="range",
        ),
    ),
    "a member of a consumer group that uses the classic protocol": (
        "00050003676c640016396564504e546f2d5250434738705845314c59555777",
        "0000000002630b2f3132372e302e302e310206676c642d74010000ea6000010024010000ea600206"
        "72616e6765160001000000010005676c642d74ffffffff000000000000",
        records.ConsumerGroupMemberMetadataKey(group_id="gld", member_id="9edPNTo-RPCG8pXE1LYUWw"),
        records.ConsumerGroupMemberMetadataValue(
            instance_id=None,
            rack_id=None,
            client_id="c",
            client_host="/127.0.0.1",
            subscribed_topic_names=("gld-t",),
            subscribed_topic_regex="",
            rebalance_timeout_ms=60000,
            server_assignor=None,
            classic_member_metadata=records.ClassicMemberMetadata(
                session_timeout_ms=60000,
                supported_protocols=(
                    records.ClassicProtocol(
                        name="range",
                        metadata=b"\0\x01\0\0\0\x01\0\x05gld-t\xff\xff\xff\xff\0\0\0\0",
                    ),
                ),
            ),
        ),
    ),
    "when it was assigned to": (
        "00060003676c64",
        "000000000002010008000001a1e594e74b",
        records.ConsumerGroupTargetAssignmentMetadataKey(group_id="gld"),
        records.ConsumerGroupTargetAssignmentMetadataValue(
            assignment_epoch=2, assignment_timestamp=1794853103435
        ),
    ),
    "what a member shall have": (
        "00070003676c64000161",
        "0000029207d85765554cc4b4a7a516d98bc72e0300000000000000010000",
        records.ConsumerGroupTargetAssignmentMemberKey(group_id="gld", member_id="a"),
        records.ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=(records.TopicPartition(topic_id=READ_ID, partitions=(0, 1)),)
        ),
    ),
    "what a member has": (
        "00080003676c64000161",
        "0000000000020000000000029207d85765554cc4b4a7a516d98bc72e030000000000000001010009"
        "0300000002000000020100",
        records.ConsumerGroupCurrentMemberAssignmentKey(group_id="gld", member_id="a"),
        records.ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=2,
            previous_member_epoch=0,
            state=0,
            assigned_partitions=(
                records.TopicPartitions(
                    topic_id=READ_ID, partitions=(0, 1), assignment_epochs=(2, 2)
                ),
            ),
            partitions_pending_revocation=(),
        ),
    ),
    "a pattern": (
        "00100003676c640006676c642d2e2a",
        "00000206676c642d740000000000000022000001a1e594e7cc00",
        records.ConsumerGroupRegularExpressionKey(group_id="gld", regular_expression="gld-.*"),
        records.ConsumerGroupRegularExpressionValue(
            topics=("gld-t",), version=34, timestamp=1794853103564
        ),
    ),
    "a classic group with members": (
        "00020004676c6432",
        "00030008636f6e73756d657200000002000572616e67650026732d38376535316438362d34386336"
        "2d343737372d386233632d613935393661323063386164000001a1e594e957000000020026732d38"
        "376535316438362d343863362d343737372d386233632d6139353936613230633861640001730001"
        "78000a2f3132372e302e302e310000ea600000ea60000000046d696e650000000970617274206f66"
        "20780026792d66313638636533662d383935382d346333612d383265392d66663836376563343166"
        "3539ffff000179000a2f3132372e302e302e310000ea600000ea60000000046d696e650000000970"
        "617274206f662079",
        records.GroupMetadataKey(group="gld2"),
        records.GroupMetadataValue(
            protocol_type="consumer",
            generation=2,
            protocol="range",
            leader="s-87e51d86-48c6-4777-8b3c-a9596a20c8ad",
            current_state_timestamp=1794853103959,
            members=(
                classic_member("x", "s-87e51d86-48c6-4777-8b3c-a9596a20c8ad", "s"),
                classic_member("y", "y-f168ce3f-8958-4c3a-82e9-ff867ec41f59", None),
            ),
        ),
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_a_record_is_read_and_written_as_kafka_did(name):
    key_hex, value_hex, key, value = GOLDEN[name]
    assert read(bytes.fromhex(key_hex), bytes.fromhex(value_hex)) == KeyValue(key, value)
    assert write_key(key).hex() == key_hex
    assert write_value(value).hex() == value_hex
    assert read(bytes.fromhex(key_hex), None) == KeyValue(key, None)


def test_offsets_of_every_version_are_read():
    """Versions 0, 2 and 3 have no time to expire, 3 an epoch, and 4 is flexible."""
    key = write_key(OffsetCommitKey(group="g", topic="t", partition=0))
    offset, at = (5).to_bytes(8), (77).to_bytes(8)
    for version, body, epoch in (
        (0, offset + b"\0\x01m" + at, -1),
        (2, offset + b"\0\x01m" + at, -1),
        (3, offset + b"\0\0\0\x03" + b"\0\x01m" + at, 3),
        (4, offset + b"\0\0\0\x03" + b"\x02m" + at + b"\0", 3),
    ):
        found = read(key, version.to_bytes(2) + body)
        assert found.value == OffsetCommitValue(
            offset=5, leader_epoch=epoch, metadata="m", commit_timestamp_ms=77
        )


def test_the_form_of_the_time_before_is_read_as_an_offset():
    key = b"\0\0" + write_key(OffsetCommitKey(group="g", topic="t", partition=0))[2:]
    value = b"\0\0" + (5).to_bytes(8) + b"\0\x01m" + (77).to_bytes(8)
    expected = KeyValue(
        OffsetCommitKey(group="g", topic="t", partition=0),
        OffsetCommitValue(offset=5, leader_epoch=-1, metadata="m", commit_timestamp_ms=77),
    )
    assert read(key, value) == expected


def test_tags_that_a_newer_kafka_adds_are_stepped_over():
    key = write_key(OffsetCommitKey(group="g", topic="t", partition=0))
    plain = write_value(
        OffsetCommitValue(offset=5, leader_epoch=3, metadata="m", commit_timestamp_ms=77)
    )
    assert read(key, plain[:-1] + b"\x01\x07\x02xy").value == OffsetCommitValue(
        offset=5, leader_epoch=3, metadata="m", commit_timestamp_ms=77
    )
    group = records.ConsumerGroupMetadataValue(epoch=3, metadata_hash=9)
    tagged = write_value(group)
    assert tagged[6] == 1
    more = tagged[:6] + b"\x02" + tagged[7:] + b"\x05\x01x"
    key = write_key(records.ConsumerGroupMetadataKey(group_id="g"))
    assert read(key, more).value == group


def test_a_type_that_is_not_known_is_none_and_a_version_is_refused():
    assert read(b"\0\x0a\0\x01g", b"\0\0abc") is None
    assert read(b"\x7f\xff", None) is None
    key, value, _, _ = GOLDEN["an offset"]
    with pytest.raises(KafkaError) as caught:
        read(bytes.fromhex(key), b"\0\x05" + bytes.fromhex(value)[2:])
    assert caught.value.code == ErrorCode.UNSUPPORTED_VERSION
    with pytest.raises(KafkaError):
        read(write_key(records.GroupMetadataKey(group="g")), b"\0\x05")


@given(some.binary(max_size=40), some.none() | some.binary(max_size=60))
def test_any_bytes_are_a_record_or_refused(key, value):
    try:
        found = read(key, value)
    except (MalformedFrame, KafkaError):
        return
    assert found is None or isinstance(found, KeyValue)


@given(some.sampled_from(sorted(TYPES)), some.binary(max_size=60))
def test_any_bytes_behind_a_known_type_are_a_record_or_refused(kind, data):
    try:
        found = read(kind.to_bytes(2) + data, b"\0\0" + data)
    except (MalformedFrame, KafkaError):
        return
    assert isinstance(found, KeyValue)


# Every type, every version.

LEAVES = {
    "string": some.text(max_size=8),
    "bytes": some.binary(max_size=8),
    "int8": some.integers(-(2**7), 2**7 - 1),
    "int32": some.integers(-(2**31), 2**31 - 1),
    "int64": some.integers(-(2**63), 2**63 - 1),
    "uuid": some.uuids(),
}


def values_of(hint, kind):
    """What a field can hold."""
    nullable = type(None) in get_args(hint)
    if nullable:
        (hint,) = (each for each in get_args(hint) if each is not type(None))
    if get_origin(hint) is tuple:
        made = some.lists(values_of(get_args(hint)[0], kind), max_size=3).map(tuple)
    else:
        made = messages(hint) if kind == "struct" else LEAVES[kind]
    return some.none() | made if nullable else made


def messages(cls):
    hints = get_type_hints(cls)
    return some.builds(
        cls,
        **{each.name: values_of(hints[each.name], each.metadata["kind"]) for each in fields(cls)},
    )


def in_version(message, version):
    """The message as it reads back: what the version lacks has its default."""
    if isinstance(message, tuple):
        return tuple(in_version(each, version) for each in message)
    if not hasattr(message, "__newest__"):
        return message
    kept = {}
    for each in fields(message):
        value = getattr(message, each.name)
        is_there = each.metadata["since"] <= version <= each.metadata["until"]
        assert is_there or each.default is not MISSING
        kept[each.name] = in_version(value, version) if is_there else each.default
    return type(message)(**kept)


@pytest.mark.parametrize("kind", sorted(TYPES))
@given(data=some.data())
def test_every_record_reads_back_as_it_was_written(kind, data):
    key_class, value_class = TYPES[kind]
    key, value = data.draw(messages(key_class)), data.draw(messages(value_class))
    written = write_value(value)
    # An offset that expires is written in the one version that can say so.
    expected = KeyValue(key, in_version(value, INT16.unpack_from(written)[0]))
    assert read(write_key(key), written) == expected
    assert read(write_key(key), None) == KeyValue(key, None)


@pytest.mark.parametrize("version", range(5))
@given(value=messages(records.GroupMetadataValue))
def test_a_classic_group_of_every_version_is_read(version, value):
    data = INT16.pack(version) + write_message(value, version)
    key = write_key(records.GroupMetadataKey(group="g"))
    assert read(key, data).value == in_version(value, version)


@given(
    group=some.text(max_size=8), topic=some.text(max_size=8), partition=LEAVES["int32"],
    value=some.builds(
        OffsetCommitValue,
        offset=LEAVES["int64"], leader_epoch=LEAVES["int32"], metadata=LEAVES["string"],
        commit_timestamp_ms=LEAVES["int64"], topic_id=some.uuids() | some.just(NO_TOPIC_ID),
    ),
)  # fmt: skip
def test_every_offset_reads_back_as_it_was_written(group, topic, partition, value):
    key = OffsetCommitKey(group=group, topic=topic, partition=partition)
    assert read(write_key(key), write_value(value)) == KeyValue(key, value)


def test_offsets_that_were_read_share_what_they_have_in_common():
    """There are many more offsets than groups, topics and ids."""
    value = write_value(OffsetCommitValue(offset=5, topic_id=TOPIC_ID))
    one, other = (
        read(write_key(OffsetCommitKey(group="g r", topic="t t", partition=each)), value)
        for each in range(2)
    )
    assert one.key.group is other.key.group
    assert one.key.topic is other.key.topic
    assert one.value.topic_id is other.value.topic_id


def test_an_id_that_is_cut_off_is_malformed():
    value = write_value(OffsetCommitValue(offset=5, topic_id=TOPIC_ID))
    with pytest.raises(MalformedFrame):
        read(write_key(OffsetCommitKey(group="g", topic="t", partition=0)), value[:-1])


def test_a_struct_that_may_be_missing_has_a_byte_that_says_so():
    """KIP-893, also where the struct is a tagged field."""
    value = records.ConsumerGroupMemberMetadataValue(
        instance_id=None,
        rack_id=None,
        client_id="c",
        client_host="h",
        subscribed_topic_names=(),
        subscribed_topic_regex=None,
        server_assignor=None,
        classic_member_metadata=records.ClassicMemberMetadata(
            session_timeout_ms=5, supported_protocols=()
        ),
    )
    written = write_value(value)
    assert written.endswith(b"\x01" + b"\x00\x07" + b"\x01" + b"\0\0\0\x05" + b"\x01" + b"\0")
