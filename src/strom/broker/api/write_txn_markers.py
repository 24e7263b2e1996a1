"""WriteTxnMarkers (key 27): write the ends of transactions into partitions this broker leads.

Behaviour:
- Coordinators on other brokers send it, and admins who abort a transaction that hangs: one that a
  partition has open and no coordinator knows of. Each partition has a code of its own.
- A marker of an earlier epoch than the partition has seen of the producer, or of an earlier
  coordinator, is refused.
- The answer comes when the markers are committed.

Versions:
- v2 tells the version of transactions: from 2 on the epoch must be higher than that of what the
  marker ends, so that one that comes late ends nothing (KIP-890, KIP-1228).
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Iterator
from typing import TYPE_CHECKING

from strom.broker.context import Context
from strom.broker.markers import Marker
from strom.records.record import Producer
from strom.transactions.transaction import TopicPartition
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from kio.schema.write_txn_markers.v2 import request as asked
    from kio.schema.write_txn_markers.v2 import response as answer
else:
    answer = kafka_message("write_txn_markers", "response")

KEY = 27
VERSIONS = range(1, 3)

#: A coordinator of groups that cannot take a marker is to its sender a partition without leader.
NOT_HERE = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)


async def handle(
    request: asked.WriteTxnMarkersRequest, context: Context
) -> answer.WriteTxnMarkersResponse:
    """Write every marker into its partitions, a few in a turn of the loop."""
    wanted = [
        ((topic.name, index), marker)
        for each in request.markers
        for marker in (marker_of(each),)
        for topic in each.topics
        for index in topic.partition_indexes
    ]
    return respond(request, [await write(place, marker, context) for place, marker in wanted])


def marker_of(wanted: asked.WritableTxnMarker) -> Marker:
    """Read what is to be written."""
    return Marker(
        Producer(wanted.producer_id, wanted.producer_epoch),
        wanted.coordinator_epoch,
        wanted.transaction_result,
        wanted.transaction_version,
    )


def respond(
    request: asked.WriteTxnMarkersRequest, codes: Iterable[ErrorCode]
) -> answer.WriteTxnMarkersResponse:
    """Put the codes under their markers and topics."""
    rest = iter(codes)
    return answer.WriteTxnMarkersResponse(
        markers=tuple(
            answer.WritableTxnMarkerResult(
                producer_id=each.producer_id,
                topics=tuple(written(topic, rest) for topic in each.topics),
            )
            for each in request.markers
        )
    )


def written(
    topic: asked.WritableTxnMarkerTopic, codes: Iterator[ErrorCode]
) -> answer.WritableTxnMarkerTopicResult:
    """Tell what became of a marker in one topic, by the next of the codes."""
    return answer.WritableTxnMarkerTopicResult(
        name=topic.name,
        partitions=tuple(
            answer.WritableTxnMarkerPartitionResult(partition_index=index, error_code=next(codes))
            for index in topic.partition_indexes
        ),
    )


async def write(place: TopicPartition, marker: Marker, context: Context) -> ErrorCode:
    """Write a marker into one partition."""
    if marker.producer.id < 0 or marker.producer.epoch < 0:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    markers = context.parts.markers
    await markers.make_ready(place)
    try:
        coming = markers.write(place, marker)
        if isinstance(coming, Coroutine):
            await coming
    except KafkaError as error:
        is_away = error.code in NOT_HERE
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if is_away else error.code
    return ErrorCode.NONE
