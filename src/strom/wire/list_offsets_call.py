"""ListOffsets (key 2) as one who asks, written and read by hand, at version 7; `metadata_call` says
why.
"""

import struct
from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from strom.wire.errors import ErrorCode
from strom.wire.primitives import (
    INT32,
    MalformedFrame,
    count_of,
    read_count,
    read_text,
    skip_tags,
    text,
)

KEY = 2
VERSION = 7

_CONSUMER = -1
#: Replica and isolation.
_HEAD = struct.Struct(">ib")
#: A partition's index, no epoch, the time, and no tags.
_ASKED = struct.Struct(">iiqB")
#: A partition's index, its error, time, offset and epoch.
_FOUND = struct.Struct(">ihqqi")
_NO_TAGS = b"\0"


class FoundOffset(NamedTuple):
    """Where a time is in a partition."""

    topic: str
    partition: int
    error: ErrorCode
    offset: int


def write_request(times: Mapping[tuple[str, int], int], read_committed: bool) -> bytes:
    """Return the request's body, for times by topic and partition."""
    by_topic: dict[str, list[bytes]] = defaultdict(list)
    for (topic, partition), time in times.items():
        by_topic[topic].append(_ASKED.pack(partition, -1, time, 0))
    parts = [_HEAD.pack(_CONSUMER, int(read_committed)), count_of(len(by_topic), True)]
    for topic, asked in by_topic.items():
        parts += (text(topic, True), count_of(len(asked), True), *asked, _NO_TAGS)
    return b"".join((*parts, _NO_TAGS))


def read_answer(body: memoryview) -> list[FoundOffset]:
    """Read the answer behind its header; whatever is wrong with it is a MalformedFrame."""
    try:
        return _read_answer(body)
    except (struct.error, IndexError, ValueError) as error:
        raise MalformedFrame(f"no answer to a ListOffsets request: {error}") from None


def _read_answer(body: memoryview) -> list[FoundOffset]:
    # Behind the time for which the answer was held back.
    topics, position = read_count(body, INT32.size, True)
    found = []
    for _ in range(topics):
        topic, position = read_text(body, position, True)
        count, position = read_count(body, position, True)
        for _ in range(count):
            partition, error, _, offset, _ = _FOUND.unpack_from(body, position)
            position = skip_tags(body, position + _FOUND.size)
            found.append(FoundOffset(topic or "", partition, ErrorCode(error), offset))
        position = skip_tags(body, position)
    return found
