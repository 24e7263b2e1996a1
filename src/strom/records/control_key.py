# Compiled by mypyc.
"""The keys of control records: what such a record is.

    key   = version int16 | type int16

Types and versions of later brokers may stand in a log: neither is a fault.
"""

from enum import IntEnum
from struct import Struct
from typing import Final

from strom.wire.errors import ErrorCode, KafkaError

#: The version of the key; readers must take newer ones.
KEY_VERSION: Final = 0
_KEY: Final = Struct(">hh")


class ControlType(IntEnum):
    """What a control record says; UNKNOWN stands for types of later versions."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


#: To call the class for each number would take longer than all else about a key.
_TYPES: Final = {int(each): each for each in ControlType}


def read_control_type(key: bytes | None) -> ControlType:
    """Return the type that a control record's key names."""
    if key is None or len(key) < _KEY.size:
        raise KafkaError(
            ErrorCode.INVALID_RECORD, "Invalid value size found for control record key"
        )
    version, number = _KEY.unpack_from(key)
    if version < 0:
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"Invalid version found for control record: {version}. May indicate data corruption",
        )
    return _TYPES.get(number, ControlType.UNKNOWN)


def write_control_key(type_: ControlType) -> bytes:
    """Return the key of a control record of this type."""
    return _KEY.pack(KEY_VERSION, type_)
