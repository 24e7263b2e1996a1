"""DeleteTopics (key 20): delete topics by name or by id.

Behaviour:
- Topics succeed or fail one by one; one given twice is INVALID_REQUEST, once.
- `delete.topic.enable=false` refuses them all: TOPIC_DELETION_DISABLED from v3 on, before that
  INVALID_REQUEST.
- The answer comes when this broker no longer serves the topics; their files go later.
- Many topics are decided on and deleted a portion at a time: after a crash some may be gone.

Versions:
- v5 has messages; v6 names topics by id too, older versions have a list of names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from strom.broker.answers import NO_THROTTLE
from strom.broker.context import Context, Large
from strom.broker.deciding import decide_in_turns
from strom.broker.turns import answer_of, portions
from strom.metadata.outcome import Refusal
from strom.metadata.topic_decisions import DeletedTopic, TopicReference
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from kio.schema.delete_topics.v6 import request as asked
    from kio.schema.delete_topics.v6 import response as answer
else:
    asked = kafka_message("delete_topics", "request")
    answer = kafka_message("delete_topics", "response")

KEY = 20
VERSIONS = range(1, 7)

TOPIC_IDS_FROM = 6
#: Older clients do not know the code that says so.
DISABLED_FROM = 3

#: So many take two or three milliseconds to decide on.
TOPICS_AT_ONCE = 100

Deleted = tuple[DeletedTopic, ...]


def upgrade(request: Any, version: int) -> None:  # noqa: ANN401 - with fields of older versions
    """Take the names from where older versions have them."""
    if version < TOPIC_IDS_FROM:
        request.topics = tuple(
            asked.DeleteTopicState(name=name, topic_id=None) for name in request.topic_names
        )


async def handle(
    request: asked.DeleteTopicsRequest, context: Context
) -> answer.DeleteTopicsResponse | Large:
    """Have the controller delete the topics."""
    try:
        require_enabled(context)
        replies = await delete(request, context)
    except KafkaError as error:
        refusal = Refusal.of(error)
        return answer_of(len(request.topics), lambda: respond([refuse_all(request, refusal)]))
    return answer_of(len(request.topics), lambda: respond(replies))


async def delete(request: asked.DeleteTopicsRequest, context: Context) -> list[Deleted]:
    """Return what became of every topic."""
    parts = context.parts
    named = context.image.topics_by_name

    def which(topic: asked.DeleteTopicState) -> object:
        """Return what is the same for the name of a topic and its id."""
        known = None if topic.name is None else named.get(topic.name)
        return topic.topic_id or topic.name if known is None else known.id

    return await decide_in_turns(
        parts,
        request.timeout,
        await portions(request.topics, together=which, at_once=TOPICS_AT_ONCE),
        lambda controller, portion: controller.delete_topics(references(portion)),
    )


def references(topics: Sequence[asked.DeleteTopicState]) -> list[TopicReference]:
    """Read which topics are meant."""
    return [TopicReference(each.name, each.topic_id) for each in topics]


def refuse_all(request: asked.DeleteTopicsRequest, refusal: Refusal) -> Deleted:
    """Refuse all topics for the same reason, each once."""
    return tuple(DeletedTopic(*each, refusal) for each in dict.fromkeys(references(request.topics)))


def respond(replies: list[Deleted]) -> answer.DeleteTopicsResponse:
    """Tell what became of every topic."""
    return answer.DeleteTopicsResponse(
        throttle_time=NO_THROTTLE,
        responses=tuple(result(each) for reply in replies for each in reply),
    )


def require_enabled(context: Context) -> None:
    """Refuse if topics cannot be deleted here."""
    if context.settings.flag("delete.topic.enable"):
        return
    if context.version < DISABLED_FROM:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Topic deletion is disabled.")
    raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED)


def result(topic: DeletedTopic) -> answer.DeletableTopicResult:
    """Tell what became of one topic."""
    refusal = topic.refusal
    return answer.DeletableTopicResult(
        name=topic.name,
        topic_id=topic.id,
        error_code=ErrorCode.NONE if refusal is None else refusal.code,
        error_message=None if refusal is None else refusal.message,
    )
