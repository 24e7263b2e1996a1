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

from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from strom.broker.answers import NO_THROTTLE
from strom.broker.context import Context, Large
from strom.broker.coordinating import shard_of
from strom.broker.turns import answer_of, pieces, serve_each
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from kio.schema.offset_delete.v0 import request as asked
    from kio.schema.offset_delete.v0 import response as answer

    from strom.broker.shard import Shard
    from strom.groups.machine import GroupMachine
else:
    answer = kafka_message("offset_delete", "response")

KEY = 47
VERSIONS = range(1)

Place = tuple[str, int]
Codes = dict[Place, ErrorCode]


async def handle(
    request: asked.OffsetDeleteRequest, context: Context
) -> answer.OffsetDeleteResponse | Large:
    """Have the group's coordinator delete what can be deleted."""
    places = [
        (topic.name, each.partition_index) for topic in request.topics for each in topic.partitions
    ]
    try:
        shard = shard_of(request.group_id, context)
        found = await serve_each(
            pieces(places) if places else [()],
            lambda some: delete(request.group_id, some, shard, context),
        )
    except KafkaError as error:
        return answer.OffsetDeleteResponse(
            error_code=error.code, throttle_time=NO_THROTTLE, topics=()
        )
    return answer_of(len(places), lambda: respond(request, found))


def delete(
    group_id: str, places: Sequence[Place], shard: Shard[GroupMachine], context: Context
) -> Codes | Coroutine[Any, Any, Codes]:
    """Delete the offsets of those of the partitions that exist; return their codes."""
    existing = [each for each in places if context.image.partition(*each) is not None]
    codes = shard.run(shard.machine.delete_offsets, group_id, existing)
    if isinstance(codes, Coroutine):
        return delete_later(existing, codes)
    return dict(zip(existing, codes, strict=True))


async def delete_later(
    existing: list[Place], coming: Coroutine[Any, Any, list[ErrorCode]]
) -> Codes:
    """Return the codes once nothing can be undone any more."""
    return dict(zip(existing, await coming, strict=True))


def respond(request: asked.OffsetDeleteRequest, found: list[Codes]) -> answer.OffsetDeleteResponse:
    """Tell what became of each partition."""
    codes = {place: code for some in found for place, code in some.items()}
    return answer.OffsetDeleteResponse(
        error_code=ErrorCode.NONE, throttle_time=NO_THROTTLE, topics=told(request, codes)
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
