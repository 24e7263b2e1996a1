# Messages compiled by mypyc.
"""ListOffsets (key 2): the offset at a time, or at one of the log's ends.

Behaviour:
- -1 is the end that the reader's isolation level lets it see, -2 the start, -3 the record with
  the largest time, -4 the start of what is on this broker's disk, -5 the end of what has been
  moved to other storage and -6 the start of what waits for it: nothing has, so neither exists.
- Any other number is a time: the first record at or after it, found exactly, also inside a
  batch. If there is none, the offset is -1 and no error.
- A partition asked for twice is INVALID_REQUEST, both times.
- A search by time reads and decompresses batches, in a thread. Where that fails for the disk, it is
  KAFKA_STORAGE_ERROR; for a damaged batch, CORRUPT_MESSAGE.

Versions:
- v1 has one offset per partition; v4 the leader's epoch; v7 allows -3, v8 -4, v9 -5, v11 -6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Final

from strom.broker.answers import NO_THROTTLE
from strom.broker.context import Context, Ordered
from strom.broker.turns import answer_each
from strom.log.times import FirstAt, Latest, Search
from strom.replication.partition import READ_COMMITTED, Partition
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from kio.schema.list_offsets.v11 import request as asked
    from kio.schema.list_offsets.v11 import response as answer

    #: A topic's name, and what is asked about one of its partitions.
    Named = tuple[str, asked.ListOffsetsPartition]
else:
    answer = kafka_message("list_offsets", "response")

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
NOT_FOUND: Final[Found] = (NOWHERE, NOWHERE, NOWHERE)


def handle(
    request: asked.ListOffsetsRequest, context: Context
) -> answer.ListOffsetsResponse | Ordered:
    """Look up every partition."""
    partitions = [(topic.name, each) for topic in request.topics for each in topic.partitions]
    repeated = repeated_in([(name, each.partition_index) for name, each in partitions])
    #: What was read so far for those who look for a time.
    searches: dict[tuple[str, int], Search] = {}

    def look(named: Named) -> answer.ListOffsetsPartitionResponse:
        name, wanted = named
        partition = name, wanted.partition_index
        if partition in repeated:
            return refusal(wanted, ErrorCode.INVALID_REQUEST)
        search = searches.get(partition)
        if search is None and (wanted.timestamp >= 0 or wanted.timestamp == LARGEST_TIME):
            search = searches[partition] = search_for(wanted.timestamp)
        return look_up(name, wanted, search, request.isolation_level, context)

    def refuse(named: Named, error: OSError) -> answer.ListOffsetsPartitionResponse:
        name, wanted = named
        code = context.replicas.note_unreadable(name, wanted.partition_index, error)
        return refusal(wanted, code)

    return answer_each(
        partitions,
        look,
        lambda found: respond(request, found),
        context.parts.host.offload,
        refuse,
    )


def repeated_in(partitions: list[tuple[str, int]]) -> set[tuple[str, int]]:
    """Return those that are there more than once."""
    if len(set(partitions)) == len(partitions):
        return set()
    return {each for each, count in Counter(partitions).items() if count > 1}


def respond(
    request: asked.ListOffsetsRequest, found: Iterable[answer.ListOffsetsPartitionResponse]
) -> answer.ListOffsetsResponse:
    """Put the answers for the partitions under their topics."""
    rest = iter(found)
    return answer.ListOffsetsResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            answer.ListOffsetsTopicResponse(
                name=topic.name, partitions=tuple(islice(rest, len(topic.partitions)))
            )
            for topic in request.topics
        ),
    )


def search_for(timestamp: int) -> Search:
    """Return the search for a time, or for the largest one."""
    return Latest() if timestamp == LARGEST_TIME else FirstAt(timestamp)


def look_up(
    topic: str,
    wanted: asked.ListOffsetsPartition,
    search: Search | None,
    isolation_level: int,
    context: Context,
) -> answer.ListOffsetsPartitionResponse:
    """Answer for one partition."""
    if wanted.timestamp < 0 and context.version < FIRST_VERSION.get(wanted.timestamp, NEVER):
        return refusal(wanted, ErrorCode.UNSUPPORTED_VERSION)
    try:
        partition = context.replicas.leader_of(topic, wanted.partition_index)
        partition.check_epoch(wanted.current_leader_epoch)
        offset, timestamp, epoch = find(partition, wanted.timestamp, search, isolation_level)
    except KafkaError as error:
        return refusal(wanted, error.code)
    return answer.ListOffsetsPartitionResponse(
        partition_index=wanted.partition_index,
        error_code=ErrorCode.NONE,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=epoch,
    )


def find(
    partition: Partition, timestamp: int, search: Search | None, isolation_level: int
) -> Found:
    """Find the offset that a time, or a number that stands for a place, means."""
    log = partition.log
    end_offset = partition.high_watermark
    if isolation_level == READ_COMMITTED:
        end_offset = log.last_stable_offset(end_offset)
    if timestamp == LATEST:
        return end_offset, NOWHERE, partition.leader_epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return log.start_offset, NOWHERE, log.epochs.epoch_of(log.start_offset)
    if search is None:
        return NOT_FOUND
    found = log.search_now(search, end_offset)
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
