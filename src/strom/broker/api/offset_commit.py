"""OffsetCommit (key 8): note how far a group has read.

Behaviour:
- Partitions that do not exist are refused one by one, with UNKNOWN_TOPIC_OR_PARTITION (or
  UNKNOWN_TOPIC_ID, if the topic is named by an id); an offset with too much metadata with
  OFFSET_METADATA_TOO_LARGE. If the group's coordinator refuses, all others get its code.
- With one replica the answer is given before `handle` returns: commits of a connection are in
  the log in their order, and none costs a task.
- Many offsets are committed a portion at a time: each portion is in the log whole or not at all.

Versions:
- v2 to v4 bring a retention time, v6 leader epochs, v7 the name of a static member; v10 has
  topic ids instead of names. Before v9 a missing group is ILLEGAL_GENERATION.
"""

from collections.abc import Coroutine, Iterator
from itertools import islice
from typing import Any

from strom.broker.context import Context, Large, Ordered
from strom.broker.turns import AT_ONCE, serve_each
from strom.groups.committing import Commit, NewOffset
from strom.groups.owners import Author
from strom.groups.records import NO_TOPIC_ID
from strom.metadata.image import Topic
from strom.wire.errors import ErrorCode, KafkaError
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
) -> OffsetCommitResponse | Coroutine[Any, Any, OffsetCommitResponse] | Ordered:
    """Have the group's coordinator commit what can be committed."""
    if sum(len(each.partitions) for each in request.topics) <= AT_ONCE:
        return commit(request, context)
    return Ordered(commit_in_turns(request, context))


async def commit_in_turns(request: OffsetCommitRequest, context: Context) -> Large:
    """Commit many offsets a portion at a time."""
    responses = await serve_each(cut(request), lambda piece: commit(piece, context))
    return Large(lambda: joined(request, responses))


def cut(request: OffsetCommitRequest) -> Iterator[OffsetCommitRequest]:
    """Yield the request in pieces that are committed at once."""
    topics: list[TopicOffsets] = []
    left = AT_ONCE
    for name, topic_id, partitions in request.topics:
        start = 0
        while start < len(partitions):
            some = partitions[start : start + left]
            topics.append(TopicOffsets(name, topic_id, some))
            start += len(some)
            left -= len(some)
            if left == 0:
                yield request._replace(topics=topics)
                topics, left = [], AT_ONCE
    if topics:
        yield request._replace(topics=topics)


def joined(
    request: OffsetCommitRequest, responses: list[OffsetCommitResponse]
) -> OffsetCommitResponse:
    """Return one answer for all pieces, with the topics as they were asked about."""
    rest = (each for one in responses for topic in one.topics for each in topic.partitions)
    return OffsetCommitResponse(
        [
            TopicCommitted(name, topic_id, list(islice(rest, len(partitions))))
            for name, topic_id, partitions in request.topics
        ]
    )


def commit(
    request: OffsetCommitRequest, context: Context
) -> OffsetCommitResponse | Coroutine[Any, Any, OffsetCommitResponse]:
    """Have the coordinator commit all of it in one decision."""
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
    try:
        shard = context.parts.groups.shard_for(request.group_id)
        codes = shard.run(shard.machine.commit_offsets, wanted, context.now_ms)
    except KafkaError as error:
        codes = [error.code] * len(places)
    if isinstance(codes, Coroutine):
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
    try:
        codes = await coming
    except KafkaError as error:
        codes = [error.code] * len(places)
    fill(places, codes)
    return response
