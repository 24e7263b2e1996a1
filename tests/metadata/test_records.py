"""Metadata records: every type of Kafka 4.3, byte for byte."""

from dataclasses import MISSING, fields
from typing import get_args, get_origin, get_type_hints
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as some

from strom.metadata import kept, records
from strom.metadata.records import (
    BY_API_KEY,
    PartitionChange,
    PartitionCreated,
    RegisterBroker,
    Unknown,
    new_id,
    read_record,
    write_record,
)
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import write_message

#: Frames out of the metadata log of an Apache Kafka 4.3.1.
FROM_KAFKA = {
    "RegisterBroker": "01000400000001000e98f6a2ed054001b6ca865ebbcbc994000000000000000e020a504c41"
    "494e544558540a3132372e302e302e314a9400000008116d657461646174612e76657273696f6e0007001e000e7368"
    "6172652e76657273696f6e00000001000e6b726166742e76657273696f6e00000001000e67726f75702e7665727369"
    "6f6e00000001001073747265616d732e76657273696f6e0000000100147472616e73616374696f6e2e76657273696f"
    "6e000000020021656c696769626c652e6c65616465722e7265706c696361732e76657273696f6e0000000100000100"
    "010011020119b731f85a43acb00d45e53dbdf027",
    "UnregisterBroker": "01010000000001000000000000000e00",
    "TopicCreated": "010200076d6d2e615f6284bd77c374fe44e59f368656a124dc8c00",
    "PartitionCreated": "0103020000000084bd77c374fe44e59f368656a124dc8c020000000102000000010101000"
    "000010000000000000000020119b731f85a43acb00d45e53dbdf02700",
    "Config": "0104000401146d696e2e696e73796e632e7265706c69636173023100",
    "PartitionChange": "0105020000000086f654a0b47d46c6962fd29cee0683bd040001010104ffffffff06050200"
    "00000107050200000001",
    "RemoveTopic": "010900354b6e0ace564ac4be1ddfc27f5f913100",
    "FeatureLevel": "010c00116d657461646174612e76657273696f6e001e00",
    "ProducerIds": "010f0000000001000000000000000e00000000000003e800",
    "BrokerRegistrationChange": "01110300000001000000000000000e01030101",
    "NoOp": "01140000",
    "BeginTransaction": "01170001001212426f6f747374726170207265636f726473",
    "EndTransaction": "01180000",
    "ClearElr": "011c00145f5f7472616e73616374696f6e5f737461746500",
}


@pytest.mark.parametrize("name", FROM_KAFKA)
def test_what_kafka_wrote_is_read_and_written_again_byte_for_byte(name):
    frame = bytes.fromhex(FROM_KAFKA[name])
    record = read_record(frame)
    assert type(record).__name__ == name
    assert write_record(record) == frame


def test_a_broker_of_kafka_is_understood():
    broker = read_record(bytes.fromhex(FROM_KAFKA["RegisterBroker"]))
    assert (broker.broker_id, broker.broker_epoch, broker.fenced) == (1, 14, True)
    assert broker.end_points[0].port == 19092
    assert [each.max_supported_version for each in broker.features] == [30, 1, 1, 1, 1, 2, 1]
    assert len(broker.log_dirs) == 1


SIZES = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
LEAVES = {
    **{name: some.integers(-(2**bits), 2**bits - 1) for name, bits in SIZES.items()},
    "uint16": some.integers(0, 2**16 - 1),
    "float64": some.floats(allow_nan=False),
    "bool": some.booleans(),
    "string": some.text(max_size=20).filter(lambda text: "\ud800" not in text),
    "bytes": some.binary(max_size=20),
    # The id of zeros may stand for none.
    "uuid": some.integers(1, 2**128 - 1).map(lambda number: UUID(int=number)),
}


def values_of(field, hint):
    """Any value of a record's field, from its declaration."""
    kind = field.metadata["kind"]
    named = get_args(hint)
    is_nullable = type(None) in named and get_origin(hint) is not tuple
    array = next((each for each in named if get_origin(each) is tuple), hint)
    if get_origin(array) is tuple:
        element = entities_of(get_args(array)[0]) if kind == "struct" else LEAVES[kind]
        values = some.lists(element, max_size=3).map(tuple)
    else:
        values = LEAVES[kind]
    return some.none() | values if is_nullable else values


def entities_of(cls):
    hints = get_type_hints(cls)
    return some.builds(
        cls, **{each.name: values_of(each, hints[each.name]) for each in fields(cls)}
    )


@pytest.mark.slow
@given(some.sampled_from(sorted(BY_API_KEY)).flatmap(lambda key: entities_of(BY_API_KEY[key])))
def test_any_record_of_any_type_comes_back_as_it_was(record):
    frame = write_record(record)
    again = read_record(frame)
    assert again == record
    assert write_record(again) == frame


def test_every_api_key_of_kafka_4_3_is_known():
    # 6, 13 and 16 were given up before the first release that wrote them.
    assert set(BY_API_KEY) == set(range(29)) - {6, 13, 16}


def test_a_record_of_an_old_version_reads_as_the_newest_with_defaults():
    topic_id = UUID(int=7)
    # Version 0 ends behind the partition epoch: no directories, no eligible leaders.
    newest = PartitionCreated(
        partition_id=3,
        topic_id=topic_id,
        replicas=(1,),
        isr=(1,),
        leader=1,
        leader_epoch=4,
        partition_epoch=5,
    )
    body = write_message(newest)
    version_0 = bytes((1, 3, 0)) + body[:-2] + b"\x00"
    assert read_record(version_0) == newest


def test_a_broker_of_version_0_has_none_of_the_later_fields():
    broker = RegisterBroker(
        broker_id=1,
        incarnation_id=UUID(int=9),
        broker_epoch=2,
        end_points=(),
        features=(),
        rack=None,
    )
    written = write_message(broker)
    # The flags of a migrating broker and of a controlled shutdown came later.
    version_0 = written[:4] + written[5:-2] + b"\x00"
    assert read_record(bytes((1, 0, 0)) + version_0) == broker


def test_a_record_type_of_a_newer_kafka_is_kept_as_it_came():
    frame = b"\x01\x63\x05 whatever it is"
    record = read_record(frame)
    assert record == Unknown(99, frame)
    assert write_record(record) == frame


@pytest.mark.parametrize("frame", [b"\x02\x14\x00\x00", b"\x01\x14\x01\x00"])
def test_a_newer_frame_or_version_of_a_known_record_is_refused(frame):
    with pytest.raises(KafkaError) as refused:
        read_record(frame)
    assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_a_change_says_nothing_about_what_stays():
    change = PartitionChange(partition_id=0, topic_id=UUID(int=1))
    assert write_message(change) == bytes(4) + UUID(int=1).bytes + b"\x00"
    optional = [each for each in fields(change) if each.default is not MISSING]
    assert all("tag" in each.metadata for each in optional if each.name != "partition_id")


def test_a_new_id_never_prints_with_a_dash_in_front():
    assert new_id(0b111110 << 122).int >> 122 != 62
    assert new_id(5).version == 4


def test_kept_records_say_what_they_are_about():
    entry = kept.AccessControlEntry(
        id=UUID(int=3),
        resource_type=2,
        resource_name="t",
        pattern_type=3,
        principal="User:a",
        host="*",
        operation=3,
        permission_type=3,
    )
    removal = kept.RemoveAccessControlEntry(id=UUID(int=3))
    assert kept.identity(entry) == kept.identity(removal)
    assert kept.is_removal(removal)
    assert not kept.is_removal(entry)


def test_directory_ids_with_a_meaning_are_kafkas():
    assert (records.DIRECTORY_UNASSIGNED.int, records.DIRECTORY_LOST.int) == (1, 2)
