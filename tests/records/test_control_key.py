"""The keys of control records: what later brokers may write is read, what is none is refused."""

import struct

import pytest

from strom.records.control_key import ControlType, read_control_type, write_control_key
from strom.wire.errors import ErrorCode, KafkaError


@pytest.mark.parametrize("type_", [each for each in ControlType if each >= 0])
def test_a_key_tells_its_type(type_):
    assert read_control_type(write_control_key(type_)) is type_


def test_type_of_a_later_version_is_unknown():
    key = struct.pack(">hh", 0, 99)
    assert read_control_type(key) is ControlType.UNKNOWN
    # Whatever the version: newer ones begin as this one does.
    assert read_control_type(struct.pack(">hhi", 9, 1, 7)) is ControlType.COMMIT


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0", b"\xff\xff\0\0"])
def test_broken_key_is_invalid(key):
    with pytest.raises(KafkaError) as caught:
        read_control_type(key)
    assert caught.value.code == ErrorCode.INVALID_RECORD
