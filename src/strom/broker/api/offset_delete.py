"""OffsetDelete (key 47): forget how far a group has read in some partitions.

Behaviour:
- Partitions that do not exist are refused one by one with UNKNOWN_TOPIC_OR_PARTITION, those of
  topics that members of the group read with GROUP_SUBSCRIBED_TO_TOPIC. An offset that is not
  there is deleted all the same.
- What is wrong with the group stands at the top, and nothing else is said: GROUP_ID_NOT_FOUND,
  NON_EMPTY_GROUP if its members do something else than consume.

Versions:
- v0 is the only one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strom.broker.answers import NO_THROTTLE, require_few
from strom.broker.context import Context
from strom.broker.coordinating import shard_of
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from kio.schema.offset_delete.v0 import request as asked
    from kio.schema.offset_delete.v0 import response as answer
else:
    answer = kafka_message("offset_delete", "response")

KEY = 47
VERSIONS = range(1)

Codes = dict[tuple[str, int], ErrorCode]


async def handle(
    request: asked.OffsetDeleteRequest, context: Context
) -> answer.OffsetDeleteResponse:
    """Have the group's coordinator delete the offsets of those of the partitions that exist."""
    require_few(sum(len(topic.partitions) for topic in request.topics))
    existing = [
        (topic.name, each.partition_index)
        for topic in request.topics
        for each in topic.partitions
        if context.image.partition(topic.name, each.partition_index) is not None
    ]
    try:
        shard = shard_of(request.group_id, context)
        codes = await shard.execute(shard.machine.delete_offsets, request.group_id, existing)
    except KafkaError as error:
        return answer.OffsetDeleteResponse(
            error_code=error.code, throttle_time=NO_THROTTLE, topics=()
        )
    return answer.OffsetDeleteResponse(
        error_code=ErrorCode.NONE,
        throttle_time=NO_THROTTLE,
        topics=told(request, dict(zip(existing, codes, strict=True))),
    )


def told(
    request: asked.OffsetDeleteRequest, codes: Codes
) -> tuple[answer.OffsetDeleteResponseTopic, ...]:
    """Tell what became of each partition; one without a code does not exist."""
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return tuple(
        answer.OffsetDeleteResponseTopic(
            name=topic.name,
            partitions=tuple(
                answer.OffsetDeleteResponsePartition(
                    partition_index=each.partition_index,
                    error_code=codes.get((topic.name, each.partition_index), missing),
                )
                for each in topic.partitions
            ),
        )
        for topic in request.topics
    )
