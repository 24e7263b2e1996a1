"""CreatePartitions (key 37): give topics more partitions.

Behaviour:
- Topics succeed or fail one by one; a name given twice is INVALID_REQUEST, once.
- The count is what the topic has afterwards. The client may say on which brokers the new ones go.
- The answer comes when this broker holds the new partitions.
- All topics are one decision: after a crash all of them have grown, or none.

Versions:
- v0 to v3 differ in encoding only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strom.broker.answers import NO_THROTTLE
from strom.broker.context import Context
from strom.broker.deciding import decide
from strom.metadata.outcome import Refusal
from strom.metadata.topic_decisions import MorePartitions
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from kio.schema.create_partitions.v3 import request as asked
    from kio.schema.create_partitions.v3 import response as answer
else:
    answer = kafka_message("create_partitions", "response")

KEY = 37
VERSIONS = range(4)


async def handle(
    request: asked.CreatePartitionsRequest, context: Context
) -> answer.CreatePartitionsResponse:
    """Have the controller add the partitions."""
    parts = context.parts
    try:
        outcomes = await decide(
            parts,
            request.timeout,
            parts.controller.create_partitions,
            [read_topic(topic) for topic in request.topics],
            rng=parts.host.rng,
            validate_only=request.validate_only,
        )
    except KafkaError as error:
        refusal = Refusal.of(error)
        outcomes = dict.fromkeys((topic.name for topic in request.topics), refusal)
    return answer.CreatePartitionsResponse(
        throttle_time=NO_THROTTLE,
        results=tuple(result(name, outcome) for name, outcome in outcomes.items()),
    )


def read_topic(topic: asked.CreatePartitionsTopic) -> MorePartitions:
    """Read what is asked for."""
    given = topic.assignments
    brokers = None if given is None else tuple(each.broker_ids for each in given)
    return MorePartitions(topic.name, topic.count, brokers)


def result(name: str, refusal: Refusal | None) -> answer.CreatePartitionsTopicResult:
    """Tell what became of one topic."""
    return answer.CreatePartitionsTopicResult(
        name=name,
        error_code=ErrorCode.NONE if refusal is None else refusal.code,
        error_message=None if refusal is None else refusal.message,
    )
