"""DescribeTopicPartitions (key 75): topics and their partitions, page by page.

Behaviour:
- Topics come in the order of their names, each once; no list of topics means all of them.
- A page has at most as many partitions as the client asks for and
  `max.request.partition.size.limit` allows, at least one; what follows it is told by the cursor.
- A partition without a leader is no error. Who came by a listener on which a leader is not
  advertised is told of none, and of such replicas as offline.
- A page of many partitions is put together off the loop.
- A cursor begins with its topic and partition. One whose topic was not asked for, or with a
  partition below 0, is INVALID_REQUEST for every topic.

Versions:
- v0 only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strom.broker.answers import NO_THROTTLE, NOT_ASKED, TOPIC_OPERATIONS, answer_of
from strom.broker.context import Context, Large
from strom.metadata.image import Image, Topic
from strom.metadata.topics import absence_of, is_internal
from strom.wire.errors import ErrorCode
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from kio.schema.describe_topic_partitions.v0 import request as asked
    from kio.schema.describe_topic_partitions.v0 import response as answer
else:
    answer = kafka_message("describe_topic_partitions", "response")

KEY = 75
VERSIONS = range(1)

NO_LEADER = -1


def handle(
    request: asked.DescribeTopicPartitionsRequest, context: Context
) -> answer.DescribeTopicPartitionsResponse | Large:
    """Describe as many partitions as fit on a page."""
    image = context.image
    names = wanted_names(request, image)
    cursor = request.cursor
    start = 0
    if cursor is not None:
        if cursor.partition_index < 0 or (request.topics and cursor.topic_name not in names):
            refused = (ErrorCode.INVALID_REQUEST, NOT_ASKED)
            return response(tuple(absent(name, *refused) for name in names), None)
        names = [name for name in names if name >= cursor.topic_name]
        start = cursor.partition_index if names[:1] == [cursor.topic_name] else 0
    limit = context.settings.number("max.request.partition.size.limit")
    left = max(1, min(request.response_partition_limit, limit))
    topics = [image.topics_by_name.get(name) for name in names]
    count = len(names) + sum(len(topic.partitions) for topic in topics if topic is not None)
    reachable = context.reachable_brokers()
    return answer_of(min(left, count), lambda: page(names, start, left, image, reachable))


def wanted_names(request: asked.DescribeTopicPartitionsRequest, image: Image) -> list[str]:
    """List the topics' names in order."""
    if request.topics:
        return sorted({each.name for each in request.topics})
    return sorted(image.topics_by_name)


def page(
    names: list[str], start: int, left: int, image: Image, reachable: frozenset[int]
) -> answer.DescribeTopicPartitionsResponse:
    """Describe topics until the page is full; only the first begins in its middle."""
    topics = []
    for name in names:
        topic = image.topics_by_name.get(name)
        if topic is None:
            topics.append(absent(name, absence_of(name), TOPIC_OPERATIONS))
            continue
        if left == 0:
            return response(tuple(topics), answer.Cursor(topic_name=name, partition_index=0))
        indexes = [index for index in sorted(topic.partitions) if index >= start]
        topics.append(described(topic, indexes[:left], image, reachable))
        if len(indexes) > left:
            following = answer.Cursor(topic_name=name, partition_index=indexes[left])
            return response(tuple(topics), following)
        left -= len(indexes)
        start = 0
    return response(tuple(topics), None)


def response(
    topics: tuple[answer.DescribeTopicPartitionsResponseTopic, ...], following: answer.Cursor | None
) -> answer.DescribeTopicPartitionsResponse:
    """Return the page."""
    return answer.DescribeTopicPartitionsResponse(
        throttle_time=NO_THROTTLE, topics=topics, next_cursor=following
    )


def absent(
    name: str, code: ErrorCode, operations: int
) -> answer.DescribeTopicPartitionsResponseTopic:
    """Say why a topic is not described."""
    return answer.DescribeTopicPartitionsResponseTopic(
        error_code=code,
        name=name,
        topic_id=None,
        is_internal=is_internal(name),
        partitions=(),
        topic_authorized_operations=operations,
    )


def described(
    topic: Topic, indexes: list[int], image: Image, reachable: frozenset[int]
) -> answer.DescribeTopicPartitionsResponseTopic:
    """Describe some partitions of a topic."""
    return answer.DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.id,
        is_internal=is_internal(topic.name),
        partitions=tuple(partition(topic, index, image, reachable) for index in indexes),
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def partition(
    topic: Topic, index: int, image: Image, reachable: frozenset[int]
) -> answer.DescribeTopicPartitionsResponsePartition:
    """Describe one partition."""
    each = topic.partitions[index]
    return answer.DescribeTopicPartitionsResponsePartition(
        error_code=ErrorCode.NONE,
        partition_index=index,
        leader_id=each.leader if each.leader in reachable else NO_LEADER,
        leader_epoch=each.leader_epoch,
        replica_nodes=each.replicas,
        isr_nodes=each.isr,
        eligible_leader_replicas=each.eligible_leaders,
        last_known_elr=each.last_known_leaders,
        offline_replicas=image.offline_replicas(each, reachable),
    )
