"""CreatePartitions (key 37): give topics more partitions.

Behaviour:
- Topics succeed or fail one by one; a name given twice is INVALID_REQUEST, once.
- The count is what the topic has afterwards. The client may say on which brokers the new ones go.
- The answer comes when this broker holds the new partitions.
- Many topics are decided on and grow a portion at a time: after a crash some may have grown.

Versions:
- v0 to v3 differ in encoding only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strom.broker.answers import NO_THROTTLE
from strom.broker.context import Context, Large
from strom.broker.deciding import decide_in_turns
from strom.broker.turns import answer_of, portions
from strom.metadata.outcome import Refusal
from strom.metadata.topic_decisions import MorePartitions
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.lazy import lazy

if TYPE_CHECKING:
    from kio.schema.create_partitions.v3 import request as asked
    from kio.schema.create_partitions.v3 import response as answer
else:
    answer = lazy("kio.schema.create_partitions.v3.response")

KEY = 37
VERSIONS = range(4)

#: A topic weighs as much as it gets partitions, and this much more.
TOPIC_WEIGHT = 1
#: So heavy a portion takes two or three milliseconds to decide on.
WEIGHT_AT_ONCE = 60


async def handle(
    request: asked.CreatePartitionsRequest, context: Context
) -> answer.CreatePartitionsResponse | Large:
    """Have the controller add the partitions."""
    try:
        outcomes = await grow(request, context)
    except KafkaError as error:
        refusal = Refusal.of(error)
        outcomes = dict.fromkeys((topic.name for topic in request.topics), refusal)
    return answer_of(len(outcomes), lambda: respond(outcomes))


async def grow(
    request: asked.CreatePartitionsRequest, context: Context
) -> dict[str, Refusal | None]:
    """Return what became of every topic, in the order in which they are named."""
    parts = context.parts
    named = context.image.topics_by_name

    def weight(topic: asked.CreatePartitionsTopic) -> int:
        known = named.get(topic.name)
        return TOPIC_WEIGHT + max(0 if known is None else topic.count - len(known.partitions), 0)

    replies = await decide_in_turns(
        parts,
        request.timeout,
        await portions(
            request.topics,
            together=lambda topic: topic.name,
            weight=weight,
            at_once=WEIGHT_AT_ONCE,
        ),
        lambda controller, portion: controller.create_partitions(
            [read_topic(topic) for topic in portion],
            rng=parts.host.rng,
            validate_only=request.validate_only,
        ),
    )
    return {name: outcome for reply in replies for name, outcome in reply.items()}


def respond(outcomes: dict[str, Refusal | None]) -> answer.CreatePartitionsResponse:
    """Tell what became of every topic."""
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
