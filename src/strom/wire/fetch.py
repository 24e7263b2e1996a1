# Compiled by mypyc.
"""Fetch (key 1), read and written by hand: what is fetched stays in its file.

    v5   log start offset                 v12  the flexible encoding, diverging epochs
    v7   incremental sessions (KIP-227)   v13  topic ids instead of names
    v9   the fetcher's leader epoch       v15  the replica's id as a tagged field
    v11  racks                            v16  endpoints of the leaders now

A response is a list of parts: bytes, and slices of log files that the link sends as they are.
Plain classes, as for Produce: compiled code makes and reads them in a tenth of the time.
"""

import struct
from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from strom.wire.errors import ErrorCode
from strom.wire.primitives import (
    INT32,
    INT64,
    MalformedFrame,
    count_of,
    read_count,
    read_nullable_text,
    read_tags,
    read_text,
    read_uuid,
    skip_tags,
    text,
    varint,
)
from strom.wire.produce import Leader

FLEXIBLE_FROM: Final = 12
TOPIC_IDS_FROM: Final = 13
REPLICA_STATE_FROM: Final = 15
CONSUMER: Final = -1
NO_TOPIC_ID: Final = UUID(int=0)

_REPLICA_STATE: Final = struct.Struct(">iq")
_TERMS: Final = struct.Struct(">iiib")
_SESSION: Final = struct.Struct(">ii")
_ERROR_SESSION: Final = struct.Struct(">ihi")
_PLACE_V4: Final = struct.Struct(">iqi")
_PLACE_V5: Final = struct.Struct(">iqqi")
_PLACE_V9: Final = struct.Struct(">iiqqi")
_PLACE_V12: Final = struct.Struct(">iiqiqi")
_ANSWER_V4: Final = struct.Struct(">ihqq")
_ANSWER: Final = struct.Struct(">ihqqq")
_ABORTED: Final = struct.Struct(">qq")


class FetchPartition:
    """Where to read in one partition, and how much at the most."""

    __slots__ = (
        "bytes_max",
        "last_fetched_epoch",
        "leader_epoch",
        "log_start_offset",
        "offset",
        "partition_index",
    )

    def __init__(
        self,
        partition_index: int,
        offset: int,
        bytes_max: int,
        leader_epoch: int = -1,
        last_fetched_epoch: int = -1,
        log_start_offset: int = -1,
    ) -> None:
        self.partition_index = partition_index
        self.offset = offset
        self.bytes_max = bytes_max
        self.leader_epoch = leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.log_start_offset = log_start_offset


class FetchTopic:
    """A topic, by name or (from version 13) by id, and the partitions asked for."""

    __slots__ = ("name", "partitions", "topic_id")

    def __init__(
        self, name: str | None, topic_id: UUID | None, partitions: list[FetchPartition]
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = partitions


class ForgottenTopic(NamedTuple):
    """Partitions that leave the fetch session."""

    name: str | None
    topic_id: UUID | None
    partitions: list[int]


class FetchRequest:
    """What one fetcher wants, and how long it is willing to wait for how much."""

    __slots__ = (
        "bytes_max",
        "bytes_min",
        "forgotten",
        "isolation_level",
        "rack",
        "replica_epoch",
        "replica_id",
        "session_epoch",
        "session_id",
        "topics",
        "wait_max_ms",
    )

    def __init__(  # noqa: PLR0913, PLR0917 - the fields of the request
        self,
        replica_id: int,
        replica_epoch: int,
        wait_max_ms: int,
        bytes_min: int,
        bytes_max: int,
        isolation_level: int,
        session_id: int,
        session_epoch: int,
        topics: list[FetchTopic],
        forgotten: list[ForgottenTopic],
        rack: str,
    ) -> None:
        self.replica_id = replica_id
        self.replica_epoch = replica_epoch
        self.wait_max_ms = wait_max_ms
        self.bytes_min = bytes_min
        self.bytes_max = bytes_max
        self.isolation_level = isolation_level
        self.session_id = session_id
        self.session_epoch = session_epoch
        self.topics = topics
        self.forgotten = forgotten
        self.rack = rack


class Slice:
    """A part of a log file, to be sent without being read; the file is the sender's matter."""

    __slots__ = ("file", "position", "size")

    def __init__(self, file: Any, position: int, size: int) -> None:  # noqa: ANN401
        self.file = file
        self.position = position
        self.size = size

    def read_bytes(self) -> bytes:
        """Return the bytes, for those who cannot send from the file."""
        data: bytes = self.file.read_at(self.position, self.size)
        return data


class FetchedPartition:
    """What a partition has for the fetcher."""

    __slots__ = (
        "aborted",
        "current_leader",
        "diverging",
        "error_code",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "partition_index",
        "preferred_replica",
        "records",
    )

    def __init__(  # noqa: PLR0913, PLR0917 - the fields of the answer
        self,
        partition_index: int,
        error_code: ErrorCode = ErrorCode.NONE,
        high_watermark: int = -1,
        last_stable_offset: int = -1,
        log_start_offset: int = -1,
        aborted: Sequence[tuple[int, int]] | None = None,
        preferred_replica: int = -1,
        records: Slice | None = None,
        current_leader: Leader | None = None,
        diverging: tuple[int, int] | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        #: Producer id and first offset of each aborted transaction; None if nobody asked.
        self.aborted = aborted
        self.preferred_replica = preferred_replica
        self.records = records
        self.current_leader = current_leader
        #: The largest epoch not above the fetcher's, and its end offset (KIP-595).
        self.diverging = diverging


class FetchedTopic:
    """What a topic's partitions have for the fetcher."""

    __slots__ = ("name", "partitions", "topic_id")

    def __init__(
        self, name: str, topic_id: UUID | None, partitions: list[FetchedPartition]
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = partitions


class FetchResponse:
    """What a fetcher gets."""

    __slots__ = ("error_code", "session_id", "throttle_ms", "topics")

    def __init__(
        self,
        topics: Sequence[FetchedTopic],
        error_code: ErrorCode = ErrorCode.NONE,
        session_id: int = 0,
        throttle_ms: int = 0,
    ) -> None:
        self.topics = topics
        self.error_code = error_code
        self.session_id = session_id
        self.throttle_ms = throttle_ms


Part = bytes | Slice


def read_request(frame: memoryview, position: int, version: int) -> FetchRequest:
    """Read the request behind its header."""
    flexible = version >= FLEXIBLE_FROM
    replica_id, replica_epoch = CONSUMER, -1
    if version < REPLICA_STATE_FROM:
        (replica_id,) = INT32.unpack_from(frame, position)
        position += 4
    wait_max_ms, bytes_min, bytes_max, isolation_level = _TERMS.unpack_from(frame, position)
    position += 13
    session_id, session_epoch = 0, -1
    if version >= 7:
        session_id, session_epoch = _SESSION.unpack_from(frame, position)
        position += 8
    topics, position = _read_topics(frame, position, version)
    forgotten: list[ForgottenTopic] = []
    if version >= 7:
        forgotten, position = _read_forgotten(frame, position, version)
    rack: str | None = ""
    if version >= 11:
        rack, position = read_nullable_text(frame, position, flexible)
    if flexible:
        tags, position = read_tags(frame, position)
        if 1 in tags and version >= REPLICA_STATE_FROM:
            replica_id, replica_epoch = _REPLICA_STATE.unpack_from(frame, tags[1])
    if position > len(frame):
        raise MalformedFrame("the request is longer than its frame")
    return FetchRequest(
        replica_id,
        replica_epoch,
        wait_max_ms,
        bytes_min,
        bytes_max,
        isolation_level,
        session_id,
        session_epoch,
        topics,
        forgotten,
        rack or "",
    )


def _read_topics(frame: memoryview, position: int, version: int) -> tuple[list[FetchTopic], int]:
    flexible = version >= FLEXIBLE_FROM
    topic_count, position = read_count(frame, position, flexible)
    topics = []
    for _ in range(topic_count):
        name, topic_id, position = _read_which(frame, position, version)
        partition_count, position = read_count(frame, position, flexible)
        partitions = []
        for _ in range(partition_count):
            partition, position = _read_place(frame, position, version)
            partitions.append(partition)
        if flexible:
            position = skip_tags(frame, position)
        topics.append(FetchTopic(name, topic_id, partitions))
    return topics, position


def _read_which(
    frame: memoryview, position: int, version: int
) -> tuple[str | None, UUID | None, int]:
    if version >= TOPIC_IDS_FROM:
        topic_id, position = read_uuid(frame, position)
        return None, topic_id, position
    name, position = read_text(frame, position, version >= FLEXIBLE_FROM)
    return name, None, position


def _read_place(frame: memoryview, position: int, version: int) -> tuple[FetchPartition, int]:
    if version >= FLEXIBLE_FROM:
        index, epoch, offset, last_epoch, start, bytes_max = _PLACE_V12.unpack_from(frame, position)
        position = skip_tags(frame, position + 32)
        return FetchPartition(index, offset, bytes_max, epoch, last_epoch, start), position
    if version >= 9:
        index, epoch, offset, start, bytes_max = _PLACE_V9.unpack_from(frame, position)
        return FetchPartition(index, offset, bytes_max, epoch, -1, start), position + 28
    if version >= 5:
        index, offset, start, bytes_max = _PLACE_V5.unpack_from(frame, position)
        return FetchPartition(index, offset, bytes_max, -1, -1, start), position + 24
    index, offset, bytes_max = _PLACE_V4.unpack_from(frame, position)
    return FetchPartition(index, offset, bytes_max), position + 16


def _read_forgotten(
    frame: memoryview, position: int, version: int
) -> tuple[list[ForgottenTopic], int]:
    flexible = version >= FLEXIBLE_FROM
    topic_count, position = read_count(frame, position, flexible)
    topics = []
    for _ in range(topic_count):
        name, topic_id, position = _read_which(frame, position, version)
        count, position = read_count(frame, position, flexible)
        end = position + 4 * count
        if end > len(frame):
            raise MalformedFrame("an array is longer than its frame")
        indexes = list(struct.unpack_from(f">{count}i", frame, position))
        position = skip_tags(frame, end) if flexible else end
        topics.append(ForgottenTopic(name, topic_id, indexes))
    return topics, position


def write_response(response: FetchResponse, version: int) -> list[Part]:
    """Write the response behind its header, as bytes and slices in the order to send."""
    flexible = version >= FLEXIBLE_FROM
    head = INT32.pack(response.throttle_ms)
    if version >= 7:
        head = _ERROR_SESSION.pack(response.throttle_ms, response.error_code, response.session_id)
    parts: list[Part] = [head, count_of(len(response.topics), flexible)]
    for topic in response.topics:
        parts += _topic_parts(topic, version)
    if flexible:
        parts.append(b"\0")
    return _joined(parts)


def _topic_parts(topic: FetchedTopic, version: int) -> list[Part]:
    flexible = version >= FLEXIBLE_FROM
    by_id = version >= TOPIC_IDS_FROM
    topic_id = topic.topic_id or NO_TOPIC_ID
    parts: list[Part] = [
        topic_id.int.to_bytes(16, "big") if by_id else text(topic.name, flexible),
        count_of(len(topic.partitions), flexible),
    ]
    for partition in topic.partitions:
        parts.append(_partition_head(partition, version))
        if partition.records is not None:
            parts.append(partition.records)
        if flexible:
            parts.append(_partition_tags(partition))
    if flexible:
        parts.append(b"\0")
    return parts


def _joined(parts: list[Part]) -> list[Part]:
    """Join neighbouring bytes, so that there is one piece between two slices."""
    out: list[Part] = []
    run: list[bytes] = []
    for part in parts:
        if isinstance(part, bytes):
            run.append(part)
        elif part.size:
            out += (b"".join(run), part)
            run = []
    if run:
        out.append(b"".join(run))
    return out


def _partition_head(partition: FetchedPartition, version: int) -> bytes:
    """Write all of a partition's answer in front of its records, their size included."""
    flexible = version >= FLEXIBLE_FROM
    out = bytearray(_answer(partition, version))
    aborted = partition.aborted
    if aborted is None:
        out += b"\0" if flexible else b"\xff\xff\xff\xff"
    else:
        out += count_of(len(aborted), flexible)
        for producer_id, first_offset in aborted:
            out += _ABORTED.pack(producer_id, first_offset)
            if flexible:
                out += b"\0"
    if version >= 11:
        out += INT32.pack(partition.preferred_replica)
    size = partition.records.size if partition.records is not None else 0
    out += varint(size + 1) if flexible else INT32.pack(size)
    return bytes(out)


def _partition_tags(partition: FetchedPartition) -> bytes:
    """Write the tagged fields behind a partition's records."""
    if partition.diverging is None and partition.current_leader is None:
        return b"\0"
    tags = []
    if partition.diverging is not None:
        epoch, end_offset = partition.diverging
        tags.append(b"\x00\x0d" + INT32.pack(epoch) + INT64.pack(end_offset) + b"\0")
    if partition.current_leader is not None:
        leader_id, leader_epoch = partition.current_leader
        tags.append(b"\x01\x09" + INT32.pack(leader_id) + INT32.pack(leader_epoch) + b"\0")
    return varint(len(tags)) + b"".join(tags)


def _answer(partition: FetchedPartition, version: int) -> bytes:
    if version < 5:
        return _ANSWER_V4.pack(
            partition.partition_index,
            partition.error_code,
            partition.high_watermark,
            partition.last_stable_offset,
        )
    return _ANSWER.pack(
        partition.partition_index,
        partition.error_code,
        partition.high_watermark,
        partition.last_stable_offset,
        partition.log_start_offset,
    )
