"""DescribeProducers (key 61): who writes to a partition with sequence numbers.

Behaviour:
- Every producer that the partition's leader remembers is listed, with its last sequence, its
  last time and the first offset of its open transaction.

Versions:
- v0 only.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from strom.broker.answers import NO_THROTTLE, STOCK_TEXTS, answer_of, each_once, require_few
from strom.broker.context import Context, Large
from strom.log.producers import Producer
from strom.metadata.topics import check_topic_name
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from kio.schema.describe_producers.v0 import request as asked
    from kio.schema.describe_producers.v0 import response as answer

    Reply = answer.DescribeProducersResponse
else:
    answer = kafka_message("describe_producers", "response")

KEY = 61
VERSIONS = range(1)


def handle(request: asked.DescribeProducersRequest, context: Context) -> Reply | Large:
    """List the producers of every partition."""
    require_few(sum([len(topic.partition_indexes) for topic in request.topics]))
    named = [(topic.name, index) for topic in request.topics for index in topic.partition_indexes]
    found = iter(each_once(named, lambda each: describe(*each, context)))
    topics = tuple(
        answer.TopicResponse(
            name=topic.name, partitions=tuple(islice(found, len(topic.partition_indexes)))
        )
        for topic in request.topics
    )
    count = sum([len(each.active_producers) for topic in topics for each in topic.partitions])
    return answer_of(
        count, lambda: answer.DescribeProducersResponse(throttle_time=NO_THROTTLE, topics=topics)
    )


def describe(topic: str, index: int, context: Context) -> answer.PartitionResponse:
    """List the producers of one partition, or say why it cannot be done."""
    try:
        require_topic(topic, context)
        producers = context.replicas.leader_of(topic, index).log.producers
    except KafkaError as error:
        return answer.PartitionResponse(
            partition_index=index,
            error_code=error.code,
            error_message=error.message,
            active_producers=(),
        )
    known = () if producers is None else producers.items()
    return answer.PartitionResponse(
        partition_index=index,
        error_code=ErrorCode.NONE,
        active_producers=tuple(state(*each) for each in known),
    )


def require_topic(name: str, context: Context) -> None:
    """Refuse a topic that is not there; only then does Kafka say so in words."""
    check_topic_name(name)
    if name not in context.image.topics_by_name:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        raise KafkaError(code, STOCK_TEXTS[code])


def state(producer_id: int, producer: Producer) -> answer.ProducerState:
    """Describe one producer."""
    return answer.ProducerState(
        producer_id=producer_id,
        producer_epoch=producer.epoch,
        last_sequence=producer.last_sequence,
        last_timestamp=producer.last_timestamp_ms,
        coordinator_epoch=producer.coordinator_epoch,
        current_txn_start_offset=producer.transaction_start,
    )
