"""OffsetFetch (key 9): tell how far groups have read.

Behaviour:
- A partition without a committed offset, and a group that does not exist, has -1 and no error.
- Whoever asks for stable offsets gets UNSTABLE_OFFSET_COMMIT for a partition whose offset an open
  transaction may change; for all others the question waits for nothing.
- Groups are answered one by one; what is wrong with one is told for that one. A member of a
  consumer group that names itself must be of the group's epoch.
- All offsets are those of one moment; an answer of many is written in a thread.

Versions:
- v1 has errors by partition only. From v2 on no topics means all topics; v8 has many groups;
  v10 has topic ids, one that is not known is UNKNOWN_TOPIC_ID. Of all topics those are left out
  that are gone, for they have no id.
"""

from collections.abc import Coroutine
from typing import Any, Final
from uuid import UUID

from strom.broker.answers import answer_of, require_few
from strom.broker.context import Context, Large
from strom.groups.committing import Answer, Answers, Query, Wanted
from strom.groups.records import NO_TOPIC_ID
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.offset_fetch import (
    CODE_FROM,
    TOPIC_IDS_FROM,
    GroupFound,
    GroupWanted,
    OffsetFetchRequest,
    OffsetFetchResponse,
    PartitionFound,
    TopicFound,
)

KEY: Final = 9
VERSIONS: Final = range(1, 11)

#: The names of the topics that were asked for; None where an id is not known.
Names = list[str | None]


def handle(
    request: OffsetFetchRequest, context: Context
) -> OffsetFetchResponse | Large | Coroutine[Any, Any, OffsetFetchResponse | Large]:
    """Ask the coordinator of each group."""
    asked = [len(topic.partitions) for each in request.groups for topic in each.topics or ()]
    require_few(len(request.groups) + sum(asked))
    begun = [find(group, request.require_stable, context) for group in request.groups]
    found = [each for each in begun if isinstance(each, GroupFound)]
    if len(found) == len(begun):
        return respond(found)
    return answer_later(begun)


async def answer_later(
    begun: list[GroupFound | Coroutine[Any, Any, GroupFound]],
) -> OffsetFetchResponse | Large:
    """Wait for the answers that are still to come."""
    return respond([each if isinstance(each, GroupFound) else await each for each in begun])


def respond(found: list[GroupFound]) -> OffsetFetchResponse | Large:
    """Answer for all groups."""
    count = sum([len(topic.partitions) for group in found for topic in group.topics])
    return answer_of(count, lambda: OffsetFetchResponse(found))


def read(wanted: GroupWanted, require_stable: bool, context: Context) -> tuple[Names, Query]:
    """Return the names of the topics that are asked about, and the question."""
    names = [each.name or name_of(each.topic_id, context) for each in wanted.topics or ()]
    topics = None
    if wanted.topics is not None:
        topics = [
            Wanted(name, each.topic_id or NO_TOPIC_ID, each.partitions)
            for name, each in zip(names, wanted.topics, strict=True)
            if name is not None
        ]
    group_id = wanted.group_id
    return names, Query(group_id, topics, wanted.member_id, wanted.member_epoch, require_stable)


def find(
    wanted: GroupWanted, require_stable: bool, context: Context
) -> GroupFound | Coroutine[Any, Any, GroupFound]:
    """Return what a group has committed, or why that cannot be told."""
    names, query = read(wanted, require_stable, context)
    try:
        shard = context.parts.groups.shard_for(wanted.group_id)
        answers = shard.run(shard.machine.fetch_offsets, query)
    except KafkaError as error:
        return refused(wanted, error.code, context)
    if isinstance(answers, Coroutine):
        return find_later(wanted, names, answers, context)
    return told(wanted, names, answers, context)


async def find_later(
    wanted: GroupWanted, names: Names, coming: Coroutine[Any, Any, Answers], context: Context
) -> GroupFound:
    """Answer once nothing of it can be undone any more."""
    try:
        answers = await coming
    except KafkaError as error:
        return refused(wanted, error.code, context)
    return told(wanted, names, answers, context)


def name_of(topic_id: UUID | None, context: Context) -> str | None:
    """Return the name of the topic with this id, if there is one."""
    return None if topic_id is None else context.topic_name(topic_id)


def told(wanted: GroupWanted, names: Names, answers: Answers, context: Context) -> GroupFound:
    """Answer for a group."""
    if wanted.topics is None:
        return GroupFound(wanted.group_id, all_topics(answers, context))
    coming = iter(answers)
    topics = []
    for known, (name, topic_id, partitions) in zip(names, wanted.topics, strict=True):
        if known is None:
            missing = ErrorCode.UNKNOWN_TOPIC_ID
            found = [PartitionFound(each, error_code=missing) for each in partitions]
        else:
            found = [partition(each) for each in next(coming)[1]]
        topics.append(TopicFound(name, topic_id, found))
    return GroupFound(wanted.group_id, topics)


def all_topics(answers: Answers, context: Context) -> list[TopicFound]:
    """Return all that a group has committed, as far as it can be named."""
    topics = []
    for name, found in answers:
        topic_id: UUID | None = None
        if context.version >= TOPIC_IDS_FROM:
            topic = context.image.topics_by_name.get(name)
            if topic is None:
                continue
            topic_id = topic.id
        topics.append(TopicFound(name, topic_id, [partition(each) for each in found]))
    return topics


def partition(answer: Answer) -> PartitionFound:
    """Answer for a partition."""
    index, value, code = answer
    if value is None:
        return PartitionFound(index, error_code=code)
    return PartitionFound(index, value.offset, value.leader_epoch, value.metadata, code)


def refused(wanted: GroupWanted, code: ErrorCode, context: Context) -> GroupFound:
    """Tell why nothing can be told of a group."""
    if context.version >= CODE_FROM:
        return GroupFound(wanted.group_id, [], code)
    topics = [
        TopicFound(name, topic_id, [PartitionFound(each, error_code=code) for each in partitions])
        for name, topic_id, partitions in wanted.topics or ()
    ]
    return GroupFound(wanted.group_id, topics)
