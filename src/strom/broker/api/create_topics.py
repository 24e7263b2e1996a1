"""CreateTopics (key 19): create topics, or see whether they could be created.

Behaviour:
- Topics succeed or fail one by one; a name given twice is INVALID_REQUEST, once.
- -1 asks for `num.partitions` and `default.replication.factor`; an assignment given by the client
  replaces both.
- The answer comes when this broker holds the topic's partitions. It has the id, the counts and
  the settings of each topic.
- All topics are one decision: after a crash all of them are there, or none.
- A time of 0 or less is REQUEST_TIMED_OUT, and nothing is created.

Versions:
- v5 answers with counts and settings; v7 with the id.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from strom.broker.answers import NO_THROTTLE, answer_of
from strom.broker.context import Context, Large, Ordered
from strom.broker.deciding import decide
from strom.metadata.outcome import Refusal
from strom.metadata.settings.describe import describe_topic
from strom.metadata.topic_decisions import Created, CreatedTopic, NewTopic
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from kio.schema.create_topics.v7 import request as asked
    from kio.schema.create_topics.v7 import response as answer

    from strom.metadata.settings import BrokerSettings

    Configs = tuple[answer.CreatableTopicConfigs, ...]
else:
    answer = kafka_message("create_topics", "response")

KEY = 19
VERSIONS = range(2, 8)

#: A topic is described with dozens of settings.
TOPICS_AT_ONCE = 8
#: A name given twice is no decision: neither time nor the number of all partitions matters to it.
TWICE = Refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")


def handle(request: asked.CreateTopicsRequest, context: Context) -> Ordered:
    """Have the controller create the topics; the answer tells much more than was asked."""
    return Ordered(create_and_tell(request, context))


async def create_and_tell(
    request: asked.CreateTopicsRequest, context: Context
) -> answer.CreateTopicsResponse | Large:
    """Answer with the topics as they are."""
    counted = Counter(topic.name for topic in request.topics)
    created: Created = dict.fromkeys(counted, TWICE)
    named_once = [topic for topic in request.topics if counted[topic.name] == 1]
    try:
        created |= await decide(
            context.parts,
            request.timeout,
            context.parts.controller.create_topics,
            [read_topic(topic) for topic in named_once],
            defaults=context.topic_defaults,
            rng=context.parts.host.rng,
            validate_only=request.validate_only,
        )
    except KafkaError as error:
        created |= dict.fromkeys((topic.name for topic in named_once), Refusal.of(error))
    settings = context.settings
    return answer_of(len(created), lambda: respond(created, settings), at_once=TOPICS_AT_ONCE)


def respond(created: Created, settings: BrokerSettings) -> answer.CreateTopicsResponse:
    """Tell what became of every topic."""
    #: Most of them have the same settings.
    known: dict[frozenset[tuple[str, str]], Configs] = {}

    def configs_of(topic: CreatedTopic) -> Configs:
        key = frozenset(topic.configs.items())
        if key not in known:
            known[key] = configs(topic, settings)
        return known[key]

    return answer.CreateTopicsResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            refused(name, outcome)
            if isinstance(outcome, Refusal)
            else described(outcome, configs_of(outcome))
            for name, outcome in created.items()
        ),
    )


def read_topic(topic: asked.CreatableTopic) -> NewTopic:
    """Read what is asked for."""
    return NewTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        tuple((each.partition_index, each.broker_ids) for each in topic.assignments),
        tuple((each.name, each.value) for each in topic.configs),
    )


def described(topic: CreatedTopic, configs: Configs) -> answer.CreatableTopicResult:
    """Tell what was created."""
    return answer.CreatableTopicResult(
        name=topic.name,
        topic_id=topic.id,
        error_code=ErrorCode.NONE,
        error_message=None,
        num_partitions=topic.partition_count,
        replication_factor=topic.replication_factor,
        configs=configs,
    )


def configs(topic: CreatedTopic, settings: BrokerSettings) -> Configs:
    """Tell the settings of a topic."""
    return tuple(
        answer.CreatableTopicConfigs(
            name=each.name,
            value=each.value,
            read_only=each.read_only,
            config_source=each.source,
            is_sensitive=each.sensitive,
        )
        for each in describe_topic(settings, topic.configs)
    )


def refused(name: str, refusal: Refusal) -> answer.CreatableTopicResult:
    """Tell why a topic was not created."""
    return answer.CreatableTopicResult(
        name=name,
        topic_id=None,
        error_code=refusal.code,
        error_message=refusal.message,
        configs=(),
    )
