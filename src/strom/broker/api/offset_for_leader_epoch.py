"""OffsetForLeaderEpoch (key 23): where the records of a leader's epoch end.

Behaviour:
- The answer is the largest epoch not above the one asked for, and where it ends; -1 and -1 for
  one that the log has not seen.
- A client whose idea of the leadership is older or newer than ours is told so.

Versions:
- v3 tells who asks; a replica and a consumer get the same answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strom.broker.answers import NO_THROTTLE, require_few
from strom.broker.context import Context
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from kio.schema.offset_for_leader_epoch.v4 import request as asked
    from kio.schema.offset_for_leader_epoch.v4 import response as answer

    Reply = answer.OffsetForLeaderEpochResponse
else:
    answer = kafka_message("offset_for_leader_epoch", "response")

KEY = 23
VERSIONS = range(2, 5)


def handle(request: asked.OffsetForLeaderEpochRequest, context: Context) -> Reply:
    """Look up the end of every epoch."""
    require_few(sum(len(topic.partitions) for topic in request.topics))
    topics = tuple(
        answer.OffsetForLeaderTopicResult(
            topic=topic.topic,
            partitions=tuple(look_up(topic.topic, each, context) for each in topic.partitions),
        )
        for topic in request.topics
    )
    return answer.OffsetForLeaderEpochResponse(throttle_time=NO_THROTTLE, topics=topics)


def look_up(
    topic: str, wanted: asked.OffsetForLeaderPartition, context: Context
) -> answer.EpochEndOffset:
    """Answer for one partition."""
    index = wanted.partition
    try:
        partition = context.replicas.leader_of(topic, index)
        partition.check_epoch(wanted.current_leader_epoch)
    except KafkaError as error:
        return answer.EpochEndOffset(error_code=error.code, partition=index)
    epoch, end_offset = partition.log.end_offset_for_epoch(wanted.leader_epoch)
    return answer.EpochEndOffset(
        error_code=ErrorCode.NONE, partition=index, leader_epoch=epoch, end_offset=end_offset
    )
