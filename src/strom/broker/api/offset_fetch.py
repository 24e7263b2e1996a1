# Messages compiled by mypyc.
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

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeAlias
from uuid import UUID

from strom.broker.answers import NO_THROTTLE, answer_of, require_few
from strom.broker.context import Context, Large
from strom.groups.committing import Answer, Answers, Query, Wanted
from strom.groups.records import NO_TOPIC_ID
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import kafka_message

asked = kafka_message("offset_fetch", "request")
answer = kafka_message("offset_fetch", "response")
#: Messages, and a request's group, with the fields of all versions: kio's types have one's.
Request: TypeAlias = Any
Response: TypeAlias = Any
GroupWanted: TypeAlias = Any
#: A response's group, topic and partition.
GroupFound: TypeAlias = Any
TopicFound: TypeAlias = Any
PartitionFound: TypeAlias = Any

KEY = 9
VERSIONS = range(1, 11)

CODE_FROM = 2
GROUPS_FROM = 8
TOPIC_IDS_FROM = 10

NO_OFFSET = -1
NO_LEADER_EPOCH = -1

#: The names of the topics that were asked for; None where an id is not known.
Names = list[str | None]


def upgrade(request: Request, version: int) -> None:
    """Read the one group of the older versions."""
    if version >= GROUPS_FROM:
        return
    topics = request.topics
    if topics is not None:
        topics = tuple(
            asked.OffsetFetchRequestTopics(name=each.name, partition_indexes=each.partition_indexes)
            for each in topics
        )
    request.groups = (asked.OffsetFetchRequestGroup(group_id=request.group_id, topics=topics),)


def downgrade(response: Response, version: int) -> None:
    """Put the one group's topics and code at the top."""
    if version >= GROUPS_FROM:
        return
    (only,) = response.groups
    response.error_code = only.error_code
    response.topics = tuple(
        answer.OffsetFetchResponseTopic(
            name=topic.name,
            partitions=tuple(
                answer.OffsetFetchResponsePartition(
                    partition_index=each.partition_index,
                    committed_offset=each.committed_offset,
                    committed_leader_epoch=each.committed_leader_epoch,
                    metadata=each.metadata,
                    error_code=each.error_code,
                )
                for each in topic.partitions
            ),
        )
        for topic in only.topics
    )


def handle(
    request: Request, context: Context
) -> Response | Large | Coroutine[Any, Any, Response | Large]:
    """Ask the coordinator of each group."""
    named = [len(topic.partition_indexes) for each in request.groups for topic in each.topics or ()]
    require_few(len(request.groups) + sum(named))
    if len(request.groups) != 1:
        return find_each(request, context)
    found = find(request.groups[0], request.require_stable, context)
    return answer_later(found) if isinstance(found, Coroutine) else respond([found])


async def answer_later(coming: Coroutine[Any, Any, GroupFound]) -> Response | Large:
    """Answer for the one group once nothing of it can be undone any more."""
    return respond([await coming])


async def find_each(request: Request, context: Context) -> Response | Large:
    """Ask about one group after the other: to be asked for all it has, a group is only named."""
    found = []
    for group in request.groups:
        one = find(group, request.require_stable, context)
        found.append(await one if isinstance(one, Coroutine) else one)
        await asyncio.sleep(0)
    return respond(found)


def respond(found: list[GroupFound]) -> Response | Large:
    """Answer for all groups."""
    count = sum([len(topic.partitions) for group in found for topic in group.topics])
    return answer_of(
        count, lambda: answer.OffsetFetchResponse(throttle_time=NO_THROTTLE, groups=found)
    )


def read(wanted: GroupWanted, require_stable: bool, context: Context) -> tuple[Names, Query]:
    """Return the names of the topics that are asked about, and the question."""
    names = [each.name or name_of(each.topic_id, context) for each in wanted.topics or ()]
    topics = None
    if wanted.topics is not None:
        topics = [
            Wanted(name, each.topic_id or NO_TOPIC_ID, each.partition_indexes)
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
        return group_found(wanted, all_topics(answers, context))
    coming = iter(answers)
    topics = []
    for known, topic in zip(names, wanted.topics, strict=True):
        if known is None:
            found = nothing_of(topic, ErrorCode.UNKNOWN_TOPIC_ID)
        else:
            found = [partition(each) for each in next(coming)[1]]
        topics.append(topic_found(topic.name, topic.topic_id, found))
    return group_found(wanted, topics)


def group_found(
    wanted: GroupWanted, topics: list[TopicFound], code: ErrorCode = ErrorCode.NONE
) -> GroupFound:
    """Answer for a group."""
    return answer.OffsetFetchResponseGroup(group_id=wanted.group_id, topics=topics, error_code=code)


def topic_found(name: str, topic_id: UUID | None, partitions: list[PartitionFound]) -> TopicFound:
    """Answer for a topic."""
    return answer.OffsetFetchResponseTopics(name=name, topic_id=topic_id, partitions=partitions)


def nothing_of(topic: Any, code: ErrorCode) -> list[PartitionFound]:  # noqa: ANN401 - a request's
    """Tell of each partition why nothing can be told."""
    return [
        answer.OffsetFetchResponsePartitions(
            partition_index=each,
            committed_offset=NO_OFFSET,
            committed_leader_epoch=NO_LEADER_EPOCH,
            metadata="",
            error_code=code,
        )
        for each in topic.partition_indexes
    ]


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
        topics.append(topic_found(name, topic_id, [partition(each) for each in found]))
    return topics


def partition(found: Answer) -> PartitionFound:
    """Answer for a partition."""
    index, value, code = found
    return answer.OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=NO_OFFSET if value is None else value.offset,
        committed_leader_epoch=NO_LEADER_EPOCH if value is None else value.leader_epoch,
        metadata="" if value is None else value.metadata,
        error_code=code,
    )


def refused(wanted: GroupWanted, code: ErrorCode, context: Context) -> GroupFound:
    """Tell why nothing can be told of a group."""
    if context.version >= CODE_FROM:
        return group_found(wanted, [], code)
    topics = [
        topic_found(topic.name, topic.topic_id, nothing_of(topic, code))
        for topic in wanted.topics or ()
    ]
    return group_found(wanted, topics)
