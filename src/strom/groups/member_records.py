"""Records of consumer groups, written by hand: one for every step of every member.

And for every member that comes, that there is one, the group's epoch, and that of its targets.
The bytes are those that `versioned` makes of the same classes.
"""

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from strom.wire.primitives import INT16, INT32, nullable_text, text, varint

Write = Callable[[Any], bytes]

#: How many ids of topics are remembered as bytes.
IDS_MAX: Final = 1000

#: So many numbers, and no more, are written by a layout that is at hand.
FEW: Final = 64

_FEW: Final = tuple(struct.Struct(f">b{each}i") for each in range(FEW))
_VERSION: Final = INT16.pack(0)
_CURRENT: Final = struct.Struct(">hiib")
_NO_TAGS: Final = b"\0"
_EPOCH: Final = struct.Struct(">hib")
#: One field of eight bytes, its tag 0.
_EPOCH_AND_NUMBER: Final = struct.Struct(">hibbbq")
#: One field, its tag 0: that nothing is there takes one byte.
_NOT_CLASSIC: Final = b"\1\0\1\0"


def writer_by_type(writers: dict[type, Write], otherwise: Write) -> Write:
    """Return what has each thing written by the writer of its type."""

    def write(thing: Any) -> bytes:  # noqa: ANN401 - of any type
        return writers.get(type(thing), otherwise)(thing)

    return write


def group_key_writer(number: int) -> Write:
    """Return what writes the keys of that type, which name a group."""
    start = INT16.pack(number)

    def write(key: Any) -> bytes:  # noqa: ANN401 - of one of several types
        return start + text(key.group_id, False)

    return write


def key_writer(number: int) -> Write:
    """Return what writes the keys of that type, which name a group and a member of it."""
    start = INT16.pack(number)

    def write(key: Any) -> bytes:  # noqa: ANN401 - of one of several types
        return start + text(key.group_id, False) + text(key.member_id, False)

    return write


def write_epoch(value: Any) -> bytes:  # noqa: ANN401 - the module of the classes knows this one
    """Write the epoch of a group, and the hash of its topics."""
    return _write_epoch(value.epoch, value.metadata_hash)


def write_target_epoch(value: Any) -> bytes:  # noqa: ANN401 - as above
    """Write the epoch that targets are of, and the time they were made at."""
    return _write_epoch(value.assignment_epoch, value.assignment_timestamp)


def _write_epoch(epoch: int, number: int) -> bytes:
    if number == 0:
        return _EPOCH.pack(0, epoch, 0)
    return _EPOCH_AND_NUMBER.pack(0, epoch, 1, 0, 8, number)


def member_writer(otherwise: Write) -> Write:
    """Return what writes who a member is; one of the classic protocol is written otherwise."""

    def write(value: Any) -> bytes:  # noqa: ANN401 - as above
        if value.classic_member_metadata is not None:
            return otherwise(value)
        names = value.subscribed_topic_names
        parts = [
            _VERSION,
            nullable_text(value.instance_id, True),
            nullable_text(value.rack_id, True),
            text(value.client_id, True),
            text(value.client_host, True),
            varint(len(names) + 1),
        ]
        for each in names:
            parts.append(text(each, True))  # noqa: PERF401 - a generator would take longer
        parts += (
            nullable_text(value.subscribed_topic_regex, True),
            INT32.pack(value.rebalance_timeout_ms),
            nullable_text(value.server_assignor, True),
            _NOT_CLASSIC,
        )
        return b"".join(parts)

    return write


def write_target(value: Any) -> bytes:  # noqa: ANN401 - as above
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
