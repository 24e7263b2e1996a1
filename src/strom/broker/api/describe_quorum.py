"""DescribeQuorum (key 55): who votes about the metadata log, who leads it, how far they are.

Behaviour:
- Only `__cluster_metadata` partition 0 has a quorum. A request that names anything else, or more
  than that, gets UNKNOWN_TOPIC_OR_PARTITION for all that it names.
- The leader is told as fetching now: it has all that it has.
- A voter is reached at the listeners that it registered as a controller; one without any has none.

Versions:
- v1 has times; v2 directory ids, messages, and where the voters can be reached.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strom.broker.answers import STOCK_TEXTS, require_few
from strom.broker.context import Context
from strom.metadata.topics import METADATA_TOPIC
from strom.wire.errors import ErrorCode
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from kio.schema.describe_quorum.v2 import request as asked
    from kio.schema.describe_quorum.v2 import response as answer

    Reply = answer.DescribeQuorumResponse
else:
    answer = kafka_message("describe_quorum", "response")

KEY = 55
VERSIONS = range(3)

UNKNOWN_OFFSET = -1
UNKNOWN_TIME = -1


def handle(request: asked.DescribeQuorumRequest, context: Context) -> Reply:
    """Describe the quorum, if that is what was asked for."""
    wanted = [
        (topic.topic_name, tuple(each.partition_index for each in topic.partitions))
        for topic in request.topics
    ]
    require_few(sum(1 + len(indexes) for _, indexes in wanted))
    known = wanted == [(METADATA_TOPIC, (0,))]
    return answer.DescribeQuorumResponse(
        error_code=ErrorCode.NONE,
        error_message="",
        topics=tuple(
            answer.TopicData(
                topic_name=name,
                partitions=tuple(
                    described(context) if known else unknown(index) for index in indexes
                ),
            )
            for name, indexes in wanted
        ),
        nodes=nodes(context) if known else (),
    )


def described(context: Context) -> answer.PartitionData:
    """Describe the metadata log."""
    quorum = context.parts.quorum
    return answer.PartitionData(
        partition_index=0,
        error_code=ErrorCode.NONE,
        error_message="",
        leader_id=quorum.leader_id,
        leader_epoch=quorum.leader_epoch,
        high_watermark=quorum.high_watermark,
        current_voters=voters(context),
        observers=(),
    )


def voters(context: Context) -> tuple[answer.ReplicaState, ...]:
    """Tell how far each voter is; of those that we do not hear from, nothing is known."""
    quorum = context.parts.quorum
    states = []
    for _, (key, _) in sorted(quorum.voters.by_id.items()):
        leads = key.id == quorum.leader_id
        now_ms = context.now_ms if leads else UNKNOWN_TIME
        states.append(
            answer.ReplicaState(
                replica_id=key.id,
                replica_directory_id=key.directory_id,
                log_end_offset=quorum.end_offset if leads else UNKNOWN_OFFSET,
                last_fetch_timestamp=now_ms,
                last_caught_up_timestamp=now_ms,
            )
        )
    return tuple(states)


def nodes(context: Context) -> tuple[answer.Node, ...]:
    """Tell where the voters can be reached."""
    return tuple(
        answer.Node(node_id=node_id, listeners=listeners(node_id, context))
        for node_id in context.parts.quorum.voters.ids
    )


def listeners(node_id: int, context: Context) -> tuple[answer.Listener, ...]:
    """Tell where a voter serves as a controller, today and not when the quorum was begun."""
    registered = context.image.controllers.get(node_id)
    if registered is None:
        return ()
    return tuple(
        answer.Listener(name=each.name, host=each.host, port=each.port)
        for each in registered.end_points
    )


def unknown(index: int) -> answer.PartitionData:
    """Say that a partition has no quorum, with the zeros that Kafka fills in."""
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return answer.PartitionData(
        partition_index=index,
        error_code=code,
        error_message=STOCK_TEXTS[code],
        leader_id=0,
        leader_epoch=0,
        high_watermark=0,
        current_voters=(),
        observers=(),
    )
