# Compiled by mypyc.
"""Produce (key 0), read and written by hand: the records are never copied.

v3   the first with record batches        v9   the flexible encoding
v5   log start offset in the answer       v10  the leader now, as a tagged field
v8   errors by record in the answer       v13  topic ids instead of names

Plain classes, no named tuples: compiled code makes and reads them in a tenth of the time.
"""

import struct
from typing import Final, NamedTuple, cast
from uuid import UUID

from strom.wire.errors import ErrorCode
from strom.wire.primitives import (
    INT32,
    count_of,
    nullable_text,
    read_count,
    read_nullable_text,
    read_nullable_view,
    read_text,
    read_uuid,
    skip_tags,
    text,
)

FLEXIBLE_FROM: Final = 9
TOPIC_IDS_FROM: Final = 13
NO_OFFSET: Final = -1
NO_TIME: Final = -1
_NONE: Final = ErrorCode.NONE

_ACKS_TIMEOUT: Final = struct.Struct(">hi")
_ANSWER: Final = struct.Struct(">ihqqq")
_ANSWER_V3: Final = struct.Struct(">ihqq")


class ProducePartition:
    """The records for one partition, in the frame that brought them."""

    __slots__ = ("partition_index", "records")

    def __init__(self, partition_index: int, records: memoryview | None) -> None:
        self.partition_index = partition_index
        self.records = records


class ProduceTopic:
    """A topic, by name or (from version 13) by id, and what is for its partitions."""

    __slots__ = ("name", "partitions", "topic_id")

    def __init__(
        self, name: str | None, topic_id: UUID | None, partitions: list[ProducePartition]
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = partitions


class ProduceRequest:
    """Batches for many partitions; the views die with the frame."""

    __slots__ = ("acks", "timeout_ms", "topics", "transactional_id")

    def __init__(
        self, transactional_id: str | None, acks: int, timeout_ms: int, topics: list[ProduceTopic]
    ) -> None:
        self.transactional_id = transactional_id
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.topics = topics

    def with_topics(self, topics: list[ProduceTopic]) -> "ProduceRequest":
        """Return the request with other topics."""
        return ProduceRequest(self.transactional_id, self.acks, self.timeout_ms, topics)


class Leader(NamedTuple):
    """Who leads a partition now, told with NOT_LEADER_OR_FOLLOWER (KIP-951)."""

    leader_id: int
    leader_epoch: int


class ProducePartitionResponse:
    """What became of one partition's records."""

    __slots__ = (
        "base_offset",
        "current_leader",
        "error_code",
        "error_message",
        "log_append_time_ms",
        "log_start_offset",
        "partition_index",
        "record_errors",
    )

    def __init__(  # noqa: PLR0913 - the fields of the answer, each with its name
        self,
        partition_index: int,
        error_code: ErrorCode = ErrorCode.NONE,
        base_offset: int = NO_OFFSET,
        log_append_time_ms: int = NO_TIME,
        log_start_offset: int = NO_OFFSET,
        *,
        record_errors: tuple[tuple[int, str | None], ...] = (),
        error_message: str | None = None,
        current_leader: Leader | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.base_offset = base_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.record_errors = record_errors
        self.error_message = error_message
        self.current_leader = current_leader


class ProduceTopicResponse:
    """What became of one topic's records."""

    __slots__ = ("name", "partitions", "topic_id")

    def __init__(
        self, name: str | None, topic_id: UUID | None, partitions: list[ProducePartitionResponse]
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = partitions


class ProduceResponse:
    """What became of every batch of a request."""

    __slots__ = ("throttle_ms", "topics")

    def __init__(self, topics: list[ProduceTopicResponse], throttle_ms: int = 0) -> None:
        self.topics = topics
        self.throttle_ms = throttle_ms


def read_request(frame: memoryview, position: int, version: int) -> ProduceRequest:
    """Read the request behind its header, without copying the records."""
    flexible = version >= FLEXIBLE_FROM
    transactional_id, position = read_nullable_text(frame, position, flexible)
    acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(frame, position)
    topic_count, position = read_count(frame, position + 6, flexible)
    topics = []
    for _ in range(topic_count):
        topic, position = _read_topic(frame, position, version)
        topics.append(topic)
    return ProduceRequest(transactional_id, acks, timeout_ms, topics)


def _read_topic(frame: memoryview, position: int, version: int) -> tuple[ProduceTopic, int]:
    flexible = version >= FLEXIBLE_FROM
    name: str | None = None
    topic_id: UUID | None = None
    if version >= TOPIC_IDS_FROM:
        topic_id, position = read_uuid(frame, position)
    else:
        name, position = read_text(frame, position, flexible)
    partition_count, position = read_count(frame, position, flexible)
    partitions = []
    for _ in range(partition_count):
        (index,) = INT32.unpack_from(frame, position)
        view, position = read_nullable_view(frame, position + 4, flexible)
        if flexible:
            position = skip_tags(frame, position)
        partitions.append(ProducePartition(index, cast("memoryview | None", view)))
    if flexible:
        position = skip_tags(frame, position)
    return ProduceTopic(name, topic_id, partitions), position


def write_response(response: ProduceResponse, version: int) -> list[bytes]:
    """Write the response behind its header."""
    flexible = version >= FLEXIBLE_FROM
    parts = [count_of(len(response.topics), flexible)]
    for topic in response.topics:
        if version >= TOPIC_IDS_FROM:
            assert topic.topic_id is not None
            parts.append(topic.topic_id.bytes)
        else:
            parts.append(text(topic.name or "", flexible))
        parts.append(count_of(len(topic.partitions), flexible))
        parts += [_partition(each, version) for each in topic.partitions]
        if flexible:
            parts.append(b"\0")
    parts.append(INT32.pack(response.throttle_ms))
    if flexible:
        parts.append(b"\0")
    return [b"".join(parts)]


def _partition(answer: ProducePartitionResponse, version: int) -> bytes:
    index, offset, time_ms = answer.partition_index, answer.base_offset, answer.log_append_time_ms
    # Nearly always there is none, and to make a number of one takes as long as all the rest.
    code = 0 if answer.error_code is _NONE else int(answer.error_code)
    if version < 5:
        return _ANSWER_V3.pack(index, code, offset, time_ms)
    start = _ANSWER.pack(index, code, offset, time_ms, answer.log_start_offset)
    if version < 8:
        return start
    flexible = version >= FLEXIBLE_FROM
    leader = answer.current_leader
    if not answer.record_errors and answer.error_message is None and leader is None:
        # By far the most frequent answer: no record errors, no message, no tagged fields.
        return start + (b"\x01\0\0" if flexible else b"\0\0\0\0\xff\xff")
    tail = b"\0" if flexible else b""
    parts = [start, count_of(len(answer.record_errors), flexible)]
    for index, message in answer.record_errors:
        parts += (INT32.pack(index), nullable_text(message, flexible), tail)
    parts.append(nullable_text(answer.error_message, flexible))
    if leader is None or version < 10:
        parts.append(tail)
    else:
        # One tagged field: tag 0, nine bytes: two numbers and an empty section of tags.
        parts.append(b"\x01\x00\x09" + INT32.pack(leader[0]) + INT32.pack(leader[1]) + b"\0")
    return b"".join(parts)
