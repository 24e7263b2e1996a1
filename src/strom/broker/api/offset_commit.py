# Messages compiled by mypyc.
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
from typing import Any, TypeAlias

from strom.broker.answers import NO_THROTTLE, require_few
from strom.broker.context import Context
from strom.broker.coordinating import commit
from strom.groups.committing import Commit, NewOffset
from strom.groups.owners import Author
from strom.groups.records import NO_TOPIC_ID
from strom.metadata import image
from strom.wire.errors import ErrorCode
from strom.wire.messages import kafka_message

answer = kafka_message("offset_commit", "response")
#: Messages, and a request's topics, with the fields of all versions: kio's types have one's.
Request: TypeAlias = Any
Response: TypeAlias = Any
Topic: TypeAlias = Any

KEY = 8
VERSIONS = range(2, 11)

TOPIC_IDS_FROM = 10

#: The partitions of the response that wait for the coordinator's codes.
Places = list[Any]


def handle(request: Request, context: Context) -> Response | Coroutine[Any, Any, Response]:
    """Have the group's coordinator commit what can be committed."""
    require_few(sum([len(each.partitions) for each in request.topics]))
    answers = []
    offsets: list[NewOffset] = []
    places: Places = []
    for each in request.topics:
        known = find_topic(each, context)
        answers.append(answer_of(each, read_topic(each, known, (offsets, places), context)))
    response = respond(answers)
    if not offsets:
        return response
    author = Author(
        request.member_id,
        request.generation_id_or_member_epoch,
        request.group_instance_id,
        version=context.version,
    )
    wanted = Commit(request.group_id, author, offsets, request.retention_time)
    codes = commit(wanted, context)
    if not isinstance(codes, list):
        return fill_later(response, places, codes)
    fill(places, codes)
    return response


def find_topic(topic: Topic, context: Context) -> image.Topic | None:
    """Return the topic that is meant, if there is one."""
    if context.version >= TOPIC_IDS_FROM:
        return context.image.topics_by_id.get(topic.topic_id or NO_TOPIC_ID)
    return context.image.topics_by_name.get(topic.name)


def read_topic(
    topic: Topic,
    known: image.Topic | None,
    taken: tuple[list[NewOffset], Places],
    context: Context,
) -> list[Any]:
    """Take the offsets of partitions that exist; answer for the others."""
    offsets, places = taken
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if known is None and context.version >= TOPIC_IDS_FROM:
        missing = ErrorCode.UNKNOWN_TOPIC_ID
    answers = []
    for each in topic.partitions:
        index = each.partition_index
        if known is None or index not in known.partitions:
            code = missing
        else:
            code = ErrorCode.NONE
            offsets.append(
                NewOffset(
                    known.name,
                    index,
                    each.committed_offset,
                    each.committed_leader_epoch,
                    each.committed_metadata,
                    known.id,
                )
            )
        told = answer.OffsetCommitResponsePartition(partition_index=index, error_code=code)
        answers.append(told)
        if code is ErrorCode.NONE:
            places.append(told)
    return answers


def answer_of(topic: Topic, partitions: list[Any]) -> Any:  # noqa: ANN401 - a response's topic
    """Answer for a topic, named as it was asked about."""
    return answer.OffsetCommitResponseTopic(
        name=topic.name, topic_id=topic.topic_id, partitions=partitions
    )


def respond(topics: list[Any]) -> Response:
    """Answer for all topics."""
    return answer.OffsetCommitResponse(throttle_time=NO_THROTTLE, topics=topics)


def fill(places: Places, codes: list[ErrorCode]) -> None:
    """Put the coordinator's codes where they belong."""
    for place, code in zip(places, codes, strict=True):
        place.error_code = code


async def fill_later(
    response: Response, places: Places, coming: Coroutine[Any, Any, list[ErrorCode]]
) -> Response:
    """Answer once the offsets are committed, or cannot be."""
    fill(places, await coming)
    return response
