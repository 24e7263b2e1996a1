"""DeleteRecords (key 21): make an offset the first one that can be read.

Behaviour:
- Partitions succeed or fail one by one; of one that is named several times, the last counts. The
  offset -1 stands for the high watermark; what lies
  beyond it, or below 0, is OFFSET_OUT_OF_RANGE; one before the log's start changes nothing.
- Those of the broker's own topics are not for deletion: INVALID_TOPIC_EXCEPTION.
- A topic that is only compacted has no start to move: POLICY_VIOLATION.
- What the disk does not take is KAFKA_STORAGE_ERROR, and the start is where it was.
- The answer's low watermark is the smallest first offset of the replicas; there is one replica.
- Many partitions take several turns on the loop; later requests of the connection wait for them.
- As in Kafka, the new start outlives a crash once the next checkpoint has noted it.

Versions:
- v0 to v2 differ in encoding only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from strom.broker.answers import NO_THROTTLE
from strom.broker.context import Context, Ordered
from strom.broker.turns import answer_each
from strom.metadata.topics import is_internal
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from kio.schema.delete_records.v2 import request as asked
    from kio.schema.delete_records.v2 import response as answer

    Reply = answer.DeleteRecordsResponse
else:
    answer = kafka_message("delete_records", "response")

KEY = 21
VERSIONS = range(3)

HIGH_WATERMARK = -1
NO_LOW_WATERMARK = -1

#: A topic's name and the number of one of its partitions.
Named = tuple[str, int]


def handle(request: asked.DeleteRecordsRequest, context: Context) -> Reply | Ordered:
    """Move the start of every partition."""

    wanted = {
        (topic.name, each.partition_index): each.offset
        for topic in request.topics
        for each in topic.partitions
    }

    def refuse(named: Named, error: OSError) -> answer.DeleteRecordsPartitionResult:
        topic, index = named
        code = context.replicas.note_unreadable(topic, index, error)
        return result(index, NO_LOW_WATERMARK, code)

    return answer_each(
        list(wanted),
        lambda named: delete(*named, wanted[named], context),
        lambda results: respond(wanted, results),
        context.parts.host.offload,
        refuse,
    )


def respond(
    wanted: Iterable[Named], results: Iterable[answer.DeleteRecordsPartitionResult]
) -> Reply:
    """Put the answers for the partitions under their topics."""
    by_topic: dict[str, list[answer.DeleteRecordsPartitionResult]] = {}
    for (topic, _), found in zip(wanted, results, strict=True):
        by_topic.setdefault(topic, []).append(found)
    topics = tuple(
        answer.DeleteRecordsTopicResult(name=topic, partitions=tuple(found))
        for topic, found in by_topic.items()
    )
    return answer.DeleteRecordsResponse(throttle_time=NO_THROTTLE, topics=topics)


def delete(
    topic: str, index: int, offset: int, context: Context
) -> answer.DeleteRecordsPartitionResult:
    """Move the start of one partition, or say why not."""
    try:
        low_watermark = move_start(topic, index, offset, context)
    except KafkaError as error:
        return result(index, NO_LOW_WATERMARK, error.code)
    return result(index, low_watermark, ErrorCode.NONE)


def move_start(topic: str, index: int, offset: int, context: Context) -> int:
    """Return the first offset after the move."""
    if is_internal(topic) and context.image.partition(topic, index) is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    partition = context.replicas.leader_of(topic, index)
    log = partition.log
    if log.config.cleanup_compact and not log.config.cleanup_delete:
        raise KafkaError(ErrorCode.POLICY_VIOLATION)
    wanted = partition.high_watermark if offset == HIGH_WATERMARK else offset
    if not 0 <= wanted <= partition.high_watermark:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    log.raise_start_offset(wanted)
    return log.start_offset


def result(index: int, low_watermark: int, code: ErrorCode) -> answer.DeleteRecordsPartitionResult:
    """Answer for one partition."""
    return answer.DeleteRecordsPartitionResult(
        partition_index=index, low_watermark=low_watermark, error_code=code
    )
