"""OffsetCommit (key 8): note how far a group has read.

Behaviour:
- Partitions that do not exist are refused one by one, with UNKNOWN_TOPIC_OR_PARTITION (or
  UNKNOWN_TOPIC_ID, if the topic is named by an id); an offset with too much metadata with
  OFFSET_METADATA_TOO_LARGE. If the group's coordinator refuses, all others get its code.
- With one replica the answer is given before `handle` returns: commits of a connection are in
  the log in their order, and none costs a task.
- Many offsets are written in several batches: each is in the log whole or not at all.

Versions:
- v2 to v4 bring a retention time, v6 leader epochs, v7 the name of a static member; v10 has
  topic ids instead of names. Before v9 a missing group is ILLEGAL_GENERATION.
"""

from collections.abc import Coroutine
from typing import Any

from strom.broker.answers import require_few
from strom.broker.context import Context
from strom.broker.coordinating import commit
from strom.groups.committing import Commit, NewOffset
from strom.groups.owners import Author
from strom.groups.records import NO_TOPIC_ID
from strom.metadata.image import Topic
from strom.wire.errors import ErrorCode
from strom.wire.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    TopicCommitted,
    TopicOffsets,
)

KEY = 8
VERSIONS = range(2, 11)

#: Where the code of an offset that the coordinator was given goes.
Places = list[tuple[TopicCommitted, int]]


def handle(
    request: OffsetCommitRequest, context: Context
) -> OffsetCommitResponse | Coroutine[Any, Any, OffsetCommitResponse]:
    """Have the group's coordinator commit what can be committed."""
    require_few(sum([len(each.partitions) for each in request.topics]))
    topics: list[TopicCommitted] = []
    offsets: list[NewOffset] = []
    places: Places = []
    for asked in request.topics:
        answer = TopicCommitted(asked.name, asked.topic_id, [])
        topics.append(answer)
        read_topic(asked, find_topic(asked, context), answer, (offsets, places))
    response = OffsetCommitResponse(topics)
    if not offsets:
        return response
    author = Author(request.member_id, request.epoch, request.instance_id, version=context.version)
    wanted = Commit(request.group_id, author, offsets, request.retention_ms)
    codes = commit(wanted, context)
    if not isinstance(codes, list):
        return fill_later(response, places, codes)
    fill(places, codes)
    return response


def find_topic(asked: TopicOffsets, context: Context) -> Topic | None:
    """Return the topic that is meant, if there is one."""
    if asked.name is None:
        return context.image.topics_by_id.get(asked.topic_id or NO_TOPIC_ID)
    return context.image.topics_by_name.get(asked.name)


def read_topic(
    asked: TopicOffsets,
    topic: Topic | None,
    answer: TopicCommitted,
    taken: tuple[list[NewOffset], Places],
) -> None:
    """Take the offsets of partitions that exist; answer for the others."""
    offsets, places = taken
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if topic is None and asked.name is None:
        missing = ErrorCode.UNKNOWN_TOPIC_ID
    for index, offset, leader_epoch, metadata in asked.partitions:
        if topic is None or index not in topic.partitions:
            answer.partitions.append((index, missing))
            continue
        offsets.append(NewOffset(topic.name, index, offset, leader_epoch, metadata, topic.id))
        places.append((answer, len(answer.partitions)))
        answer.partitions.append((index, ErrorCode.NONE))


def fill(places: Places, codes: list[ErrorCode]) -> None:
    """Put the coordinator's codes where they belong."""
    for (answer, position), code in zip(places, codes, strict=True):
        if code is not ErrorCode.NONE:
            answer.partitions[position] = answer.partitions[position][0], code


async def fill_later(
    response: OffsetCommitResponse,
    places: Places,
    coming: Coroutine[Any, Any, list[ErrorCode]],
) -> OffsetCommitResponse:
    """Answer once the offsets are committed, or cannot be."""
    fill(places, await coming)
    return response
