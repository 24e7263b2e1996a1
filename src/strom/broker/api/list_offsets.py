"""ListOffsets (key 2): the offset at a time, or at one of the log's ends.

Behaviour:
- -1 is the end that the reader's isolation level lets it see, -2 the start, -3 the record with
  the largest time, -4 the start of what is on this broker's disk, -5 the end of what has been
  moved to other storage and -6 the start of what waits for it: nothing has, so neither exists.
- Any other number is a time: the first record at or after it, found exactly, also inside a
  batch. If there is none, the offset is -1 and no error.
- A partition asked for twice is INVALID_REQUEST, both times.

Versions:
- v1 has one offset per partition; v4 the leader's epoch; v7 allows -3, v8 -4, v9 -5, v11 -6.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from strom.broker.answers import NO_THROTTLE
from strom.broker.context import Context
from strom.replication.partition import READ_COMMITTED, Partition
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.lazy import lazy

if TYPE_CHECKING:
    from kio.schema.list_offsets.v11 import request as asked
    from kio.schema.list_offsets.v11 import response as answer
else:
    answer = lazy("kio.schema.list_offsets.v11.response")

KEY = 2
VERSIONS = range(1, 12)

LATEST = -1
EARLIEST = -2
LARGEST_TIME = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING = -6
FIRST_VERSION = {
    LATEST: 0,
    EARLIEST: 0,
    LARGEST_TIME: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING: 11,
}
#: No version knows the negative numbers that are not listed.
NEVER = 32767
NOWHERE = -1

#: Offset, time and leader epoch.
Found = tuple[int, int, int]
NOT_FOUND: Found = (NOWHERE, NOWHERE, NOWHERE)


def handle(request: asked.ListOffsetsRequest, context: Context) -> answer.ListOffsetsResponse:
    """Look up every partition."""
    counts = Counter(
        (topic.name, each.partition_index) for topic in request.topics for each in topic.partitions
    )
    return answer.ListOffsetsResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            answer.ListOffsetsTopicResponse(
                name=topic.name,
                partitions=tuple(
                    look_up(topic.name, each, request.isolation_level, context)
                    if counts[topic.name, each.partition_index] == 1
                    else refusal(each, ErrorCode.INVALID_REQUEST)
                    for each in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def look_up(
    topic: str, wanted: asked.ListOffsetsPartition, isolation_level: int, context: Context
) -> answer.ListOffsetsPartitionResponse:
    """Answer for one partition."""
    if wanted.timestamp < 0 and context.version < FIRST_VERSION.get(wanted.timestamp, NEVER):
        return refusal(wanted, ErrorCode.UNSUPPORTED_VERSION)
    try:
        partition = context.replicas.leader_of(topic, wanted.partition_index)
        partition.check_epoch(wanted.current_leader_epoch)
        offset, timestamp, epoch = find(partition, wanted.timestamp, isolation_level)
    except KafkaError as error:
        return refusal(wanted, error.code)
    return answer.ListOffsetsPartitionResponse(
        partition_index=wanted.partition_index,
        error_code=ErrorCode.NONE,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=epoch,
    )


def find(partition: Partition, timestamp: int, isolation_level: int) -> Found:
    """Find the offset that a time, or a number that stands for a place, means."""
    log = partition.log
    end_offset = partition.high_watermark
    if isolation_level == READ_COMMITTED:
        end_offset = log.last_stable_offset(end_offset)
    if timestamp == LATEST:
        return end_offset, NOWHERE, partition.leader_epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return log.start_offset, NOWHERE, log.epochs.epoch_of(log.start_offset)
    if timestamp == LARGEST_TIME:
        found = log.offset_of_max_time(end_offset)
    elif timestamp < 0:
        return NOT_FOUND
    else:
        found = log.offset_for_time(timestamp, end_offset)
    if found is None:
        return NOT_FOUND
    return found.offset, found.timestamp_ms, found.leader_epoch


def refusal(
    wanted: asked.ListOffsetsPartition, code: ErrorCode
) -> answer.ListOffsetsPartitionResponse:
    """Say why a partition cannot be looked up."""
    return answer.ListOffsetsPartitionResponse(
        partition_index=wanted.partition_index,
        error_code=code,
        timestamp=NOWHERE,
        offset=NOWHERE,
        leader_epoch=NOWHERE,
    )
