"""Records of members of consumer groups, written by hand: one for every step of every member.

The bytes are those that `versioned` makes of the same classes.
"""

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from strom.wire.primitives import INT16, text, varint

#: How many ids of topics are remembered as bytes.
IDS_MAX: Final = 1000

#: So many numbers, and no more, are written by a layout that is at hand.
FEW: Final = 64

_FEW: Final = tuple(struct.Struct(f">b{each}i") for each in range(FEW))
_VERSION: Final = INT16.pack(0)
_CURRENT: Final = struct.Struct(">hiib")
_NO_TAGS: Final = b"\0"


def key_writer(number: int) -> Callable[[Any], bytes]:
    """Return what writes the keys of that type, which name a group and a member of it."""
    start = INT16.pack(number)

    def write(key: Any) -> bytes:  # noqa: ANN401 - of one of several types
        return start + text(key.group_id, False) + text(key.member_id, False)

    return write


def write_target(value: Any) -> bytes:  # noqa: ANN401 - the module of the classes knows this one
    """Write what a member shall have."""
    parts = [_VERSION, varint(len(value.topic_partitions) + 1)]
    for each in value.topic_partitions:
        parts += (topic_bytes(each.topic_id), _numbers(each.partitions), _NO_TAGS)
    parts.append(_NO_TAGS)
    return b"".join(parts)


def write_current(value: Any) -> bytes:  # noqa: ANN401 - as above
    """Write what a member has, and what it must give up first."""
    parts = [
        _CURRENT.pack(0, value.member_epoch, value.previous_member_epoch, value.state),
    ]
    _write_held(value.assigned_partitions, parts)
    _write_held(value.partitions_pending_revocation, parts)
    parts.append(_NO_TAGS)
    return b"".join(parts)


def _write_held(held: Sequence[Any], parts: list[bytes]) -> None:
    parts.append(varint(len(held) + 1))
    for each in held:
        parts += (topic_bytes(each.topic_id), _numbers(each.partitions))
        if each.assignment_epochs is None:
            parts.append(_NO_TAGS)
        else:
            epochs = _numbers(each.assignment_epochs)
            # One field, its tag 0.
            parts += (b"\1\0", varint(len(epochs)), epochs)


def _numbers(numbers: Sequence[int]) -> bytes:
    count = len(numbers)
    if count < FEW:
        return _FEW[count].pack(count + 1, *numbers)
    return varint(count + 1) + struct.pack(f">{count}i", *numbers)


@lru_cache(IDS_MAX)
def topic_bytes(topic: UUID) -> bytes:
    """Return the bytes of an id: to make them takes longer than to find them."""
    return topic.bytes
