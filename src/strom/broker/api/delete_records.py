"""DeleteRecords (key 21): make an offset the first one that can be read.

Behaviour:
- Partitions succeed or fail one by one. The offset -1 stands for the high watermark; what lies
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
from itertools import islice
from typing import TYPE_CHECKING

from strom.broker.answers import NO_THROTTLE
from strom.broker.context import Context, Ordered
from strom.broker.turns import answer_each
from strom.metadata.topics import is_internal
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.lazy import lazy

if TYPE_CHECKING:
    from kio.schema.delete_records.v2 import request as asked
    from kio.schema.delete_records.v2 import response as answer

    Reply = answer.DeleteRecordsResponse
else:
    answer = lazy("kio.schema.delete_records.v2.response")

KEY = 21
VERSIONS = range(3)

#: A start that moves may have to be written down, which is a file.
PARTITIONS_AT_ONCE = 20
HIGH_WATERMARK = -1
NO_LOW_WATERMARK = -1


def handle(request: asked.DeleteRecordsRequest, context: Context) -> Reply | Ordered:
    """Move the start of every partition."""

    def refuse(
        named: tuple[str, asked.DeleteRecordsPartition], error: OSError
    ) -> answer.DeleteRecordsPartitionResult:
        index = named[1].partition_index
        code = context.replicas.note_unreadable(named[0], index, error)
        return result(index, NO_LOW_WATERMARK, code)

    return answer_each(
        [(topic.name, each) for topic in request.topics for each in topic.partitions],
        lambda wanted: delete(*wanted, context),
        lambda results: respond(request, results),
        context.parts.host.offload,
        at_once=PARTITIONS_AT_ONCE,
        failed=refuse,
    )


def respond(
    request: asked.DeleteRecordsRequest, results: Iterable[answer.DeleteRecordsPartitionResult]
) -> Reply:
    """Put the answers for the partitions under their topics."""
    rest = iter(results)
    topics = tuple(
        answer.DeleteRecordsTopicResult(
            name=topic.name, partitions=tuple(islice(rest, len(topic.partitions)))
        )
        for topic in request.topics
    )
    return answer.DeleteRecordsResponse(throttle_time=NO_THROTTLE, topics=topics)


def delete(
    topic: str, wanted: asked.DeleteRecordsPartition, context: Context
) -> answer.DeleteRecordsPartitionResult:
    """Move the start of one partition, or say why not."""
    try:
        low_watermark = move_start(topic, wanted.partition_index, wanted.offset, context)
    except KafkaError as error:
        return result(wanted.partition_index, NO_LOW_WATERMARK, error.code)
    return result(wanted.partition_index, low_watermark, ErrorCode.NONE)


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
