"""Metadata (key 3) as one who asks, written and read by hand, at version 12.

kio could do it as well, but takes a third of a second to be imported, and a process that asks just
this begins with every query of Spark. Of the answer only what such a process wants is kept.
"""

import struct
from collections.abc import Collection
from typing import NamedTuple
from uuid import UUID

from strom.wire.errors import ErrorCode
from strom.wire.primitives import (
    INT32,
    MalformedFrame,
    count_of,
    read_count,
    read_text,
    read_uuid,
    skip_tags,
    text,
)

KEY = 3
VERSION = 12

_NO_ID = bytes(16)
_ERROR = struct.Struct(">h")
#: A partition's error, its index, its leader and the leader's epoch.
_PARTITION = struct.Struct(">hiii")
#: No topic is made for being asked for; nobody wants to know who may do what; no tags.
_TERMS = b"\0\0\0"
_ALL_TOPICS = b"\0"
_NO_TAGS = b"\0"


class FoundTopic(NamedTuple):
    """A topic, and the node that leads each of its partitions (-1: none)."""

    error: ErrorCode
    name: str
    id: UUID
    is_internal: bool
    leaders: dict[int, int]


class Answer(NamedTuple):
    """Where the brokers are, and what is known of the topics."""

    brokers: dict[int, tuple[str, int]]
    topics: list[FoundTopic]


def write_request(names: Collection[str] | None) -> bytes:
    """Return the request's body; None: all topics."""
    if names is None:
        return _ALL_TOPICS + _TERMS
    topics = (_NO_ID + text(name, True) + _NO_TAGS for name in names)
    return count_of(len(names), True) + b"".join(topics) + _TERMS


def read_answer(body: memoryview) -> Answer:
    """Read the answer behind its header; whatever is wrong with it is a MalformedFrame."""
    try:
        return _read_answer(body)
    except (struct.error, IndexError, ValueError) as error:
        raise MalformedFrame(f"no answer to a Metadata request: {error}") from None


def _read_answer(body: memoryview) -> Answer:
    # Behind the time for which the answer was held back.
    brokers, position = _read_brokers(body, INT32.size)
    # Behind the cluster's name and its controller.
    _, position = read_text(body, position, True)
    count, position = read_count(body, position + INT32.size, True)
    topics = []
    for _ in range(count):
        topic, position = _read_topic(body, position)
        topics.append(topic)
    return Answer(brokers, topics)


def _read_brokers(body: memoryview, position: int) -> tuple[dict[int, tuple[str, int]], int]:
    count, position = read_count(body, position, True)
    found = {}
    for _ in range(count):
        (node,) = INT32.unpack_from(body, position)
        host, position = read_text(body, position + INT32.size, True)
        (port,) = INT32.unpack_from(body, position)
        _, position = read_text(body, position + INT32.size, True)
        position = skip_tags(body, position)
        found[node] = host or "", port
    return found, position


def _read_topic(body: memoryview, position: int) -> tuple[FoundTopic, int]:
    (error,) = _ERROR.unpack_from(body, position)
    name, position = read_text(body, position + _ERROR.size, True)
    topic_id, position = read_uuid(body, position)
    is_internal = bool(body[position])
    count, position = read_count(body, position + 1, True)
    leaders = {}
    for _ in range(count):
        _, number, leader, _ = _PARTITION.unpack_from(body, position)
        position += _PARTITION.size
        # Replicas, those in sync, and those that are offline.
        for _ in range(3):
            nodes, position = read_count(body, position, True)
            position += nodes * INT32.size
        position = skip_tags(body, position)
        leaders[number] = leader
    # Behind what one is allowed to do with it.
    position = skip_tags(body, position + INT32.size)
    return FoundTopic(ErrorCode(error), name or "", topic_id, is_internal, leaders), position
