"""Metadata (key 3): the brokers, and who leads which partition.

Behaviour:
- No list of topics (v0: an empty one) means all of them; an empty list means none.
- A topic that is not there is created if client and broker both allow it
  (`allow_auto_topic_creation`, `auto.create.topics.enable`); the answer waits for it, so its
  partitions are exact at once.
- A bad name is INVALID_TOPIC_EXCEPTION, an unknown id UNKNOWN_TOPIC_ID, one by one. Where a
  topic has both, its id counts; one that is named twice is told once. Where some are asked for by
  id, those by name are left out.
- Brokers are told with the address of the listener that the client came by. One that is not
  advertised, as a controller's, tells of none, and partitions have LISTENER_NOT_FOUND.
- An answer with thousands of partitions is put together off the loop.

Versions:
- v1 knows "no topics" from "all topics"; v4 whether to create; v8 to v10 also ask for the
  operations allowed on the cluster.
- v10 answers with topic ids; v12 takes them. Before it a topic without a name, or with an id, is
  INVALID_REQUEST for all.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from typing import TYPE_CHECKING, Any
from uuid import UUID

from strom.broker.answers import CLUSTER_OPERATIONS, NO_THROTTLE, NOT_ASKED, TOPIC_OPERATIONS
from strom.broker.context import Context, Large
from strom.broker.deciding import TIMEOUT_DEFAULT, decide
from strom.broker.internal_topics import new_topic
from strom.metadata.image import Image, Topic
from strom.metadata.outcome import Refusal
from strom.metadata.records import NO_LEADER
from strom.metadata.topics import absence_of, find_fault, is_internal
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from kio.schema.metadata.v13 import request as asked
    from kio.schema.metadata.v13 import response as answer
else:
    asked = kafka_message("metadata", "request")
    answer = kafka_message("metadata", "response")

KEY = 3
VERSIONS = range(14)

#: The versions before know the field, and no topic by it.
BY_ID_FROM = 12
NO_CONTROLLER = -1
#: So many partitions take a few milliseconds to describe and to write.
PARTITIONS_AT_ONCE = 200


def upgrade(request: Any, version: int) -> None:  # noqa: ANN401 - with fields of older versions
    """Read what the oldest version says differently: no topics are all topics."""
    if version == 0 and not request.topics:
        request.topics = None


def handle(
    request: asked.MetadataRequest, context: Context
) -> answer.MetadataResponse | Large | Coroutine[None, None, answer.MetadataResponse | Large]:
    """Answer from the image; wait only for topics that have to be created."""
    if request.topics and context.version < BY_ID_FROM and not are_named(request.topics):
        return refuse_all(request.topics)
    missing = to_create(request, context)
    if missing:
        return create_and_answer(request, missing, context)
    return respond_or_offload(request, context, {})


def are_named(topics: Iterable[asked.MetadataRequestTopic]) -> bool:
    """Whether all topics are asked for by their names alone."""
    return all(each.topic_id is None and each.name is not None for each in topics)


def refuse_all(topics: Iterable[asked.MetadataRequestTopic]) -> answer.MetadataResponse:
    """Say nothing but that nobody asks so."""
    return answer.MetadataResponse(
        throttle_time=NO_THROTTLE,
        brokers=(),
        cluster_id=None,
        controller_id=NO_CONTROLLER,
        topics=tuple(
            absent(
                each.name or "",
                each.topic_id,
                ErrorCode.INVALID_REQUEST,
                NOT_ASKED,
                is_internal=False,
            )
            for each in topics
        ),
        error_code=ErrorCode.INVALID_REQUEST,
    )


async def create_and_answer(
    request: asked.MetadataRequest, missing: list[str], context: Context
) -> answer.MetadataResponse | Large:
    """Create the topics that are missing, then answer."""
    try:
        created = await decide(
            context.parts,
            TIMEOUT_DEFAULT,
            context.parts.controller.create_topics,
            [new_topic(name, context.settings) for name in missing],
            defaults=context.topic_defaults,
            rng=context.parts.host.rng,
            validate_only=False,
        )
    except KafkaError as error:
        return respond_or_offload(request, context, dict.fromkeys(missing, error.code))
    refused = {name: each.code for name, each in created.items() if isinstance(each, Refusal)}
    return respond_or_offload(request, context, refused)


def to_create(request: asked.MetadataRequest, context: Context) -> list[str]:
    """List the topics that are asked for by a good name, are not there and may be created."""
    if not request.topics or not request.allow_auto_topic_creation:
        return []
    if not context.settings.flag("auto.create.topics.enable"):
        return []
    if any(each.topic_id is not None for each in request.topics):
        return []
    known = context.image.topics_by_name
    names = {each.name for each in request.topics if each.name}
    return [name for name in sorted(names) if name not in known and find_fault(name) is None]


def respond_or_offload(
    request: asked.MetadataRequest,
    context: Context,
    refused: dict[str, ErrorCode],
) -> answer.MetadataResponse | Large:
    """Answer, off the loop if that is much to write."""
    if is_large(request, context.image):
        return Large(lambda: respond(request, context, refused))
    return respond(request, context, refused)


def is_large(request: asked.MetadataRequest, image: Image) -> bool:
    """Whether the answer has so many partitions that writing it would stop the loop."""
    topics: Iterable[Topic | None] = image.topics_by_name.values()
    if request.topics is not None:
        topics = (find(each, image) for each in request.topics)
    count = 0
    for topic in topics:
        count += 1 if topic is None else len(topic.partitions)
        if count > PARTITIONS_AT_ONCE:
            return True
    return False


def respond(
    request: asked.MetadataRequest,
    context: Context,
    refused: dict[str, ErrorCode],
) -> answer.MetadataResponse:
    """Put the answer together."""
    image, told = context.image, brokers(context)
    reachable = frozenset(each.node_id for each in told)
    operations = TOPIC_OPERATIONS if request.include_topic_authorized_operations else NOT_ASKED
    if request.topics is None:
        topics: Iterable[answer.MetadataResponseTopic] = (
            described(topic, image, reachable, operations)
            for _, topic in sorted(image.topics_by_name.items())
        )
    else:
        topics = (one(each, image, reachable, operations, refused) for each in told_of(request))
    response = answer.MetadataResponse(
        throttle_time=NO_THROTTLE,
        brokers=told,
        cluster_id=context.parts.cluster_id,
        controller_id=context.parts.quorum.leader_id,
        topics=tuple(topics),
        error_code=ErrorCode.NONE,
    )
    tell_of_cluster(request, response)
    return response


def tell_of_cluster(request: Any, response: Any) -> None:  # noqa: ANN401 - as above
    """Tell a request of v8 to v10 what is allowed on the cluster, if it asks."""
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS


def told_of(request: asked.MetadataRequest) -> Iterable[asked.MetadataRequestTopic]:
    """Return the topics that the answer is about, each once: where there are ids, only those."""
    each_once = dict.fromkeys(request.topics or ())
    return [each for each in each_once if each.topic_id is not None] or each_once


def brokers(context: Context) -> tuple[answer.MetadataResponseBroker, ...]:
    """List the brokers that serve, as the client can reach them."""
    return tuple(
        answer.MetadataResponseBroker(
            node_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack
        )
        for _, broker in sorted(context.image.brokers.items())
        if not broker.fenced and (endpoint := context.endpoint_of(broker)) is not None
    )


def one(
    wanted: asked.MetadataRequestTopic,
    image: Image,
    reachable: frozenset[int],
    operations: int,
    refused: dict[str, ErrorCode],
) -> answer.MetadataResponseTopic:
    """Describe a topic that was asked for, or say what is wrong with it."""
    topic = find(wanted, image)
    if topic is not None:
        return described(topic, image, reachable, operations)
    if wanted.name is None or wanted.topic_id is not None:
        code = ErrorCode.UNKNOWN_TOPIC_ID
        return absent(None, wanted.topic_id, code, NOT_ASKED, is_internal=False)
    code = refused.get(wanted.name) or absence_of(wanted.name)
    return absent(wanted.name, None, code, operations, is_internal=is_internal(wanted.name))


def find(wanted: asked.MetadataRequestTopic, image: Image) -> Topic | None:
    """Return the topic that is asked for, by its id or else by its name."""
    if wanted.topic_id is not None:
        return image.topics_by_id.get(wanted.topic_id)
    return None if wanted.name is None else image.topics_by_name.get(wanted.name)


def absent(
    name: str | None,
    topic_id: UUID | None,
    code: ErrorCode,
    operations: int,
    *,
    is_internal: bool,
) -> answer.MetadataResponseTopic:
    """Say why a topic is not described."""
    return answer.MetadataResponseTopic(
        error_code=code,
        name=name,
        topic_id=topic_id,
        is_internal=is_internal,
        partitions=(),
        topic_authorized_operations=operations,
    )


def described(
    topic: Topic, image: Image, reachable: frozenset[int], operations: int
) -> answer.MetadataResponseTopic:
    """Describe a topic's partitions."""
    partitions = tuple(
        [
            answer.MetadataResponsePartition(
                error_code=trouble_with(each.leader, reachable),
                partition_index=index,
                leader_id=each.leader if each.leader in reachable else NO_LEADER,
                leader_epoch=each.leader_epoch,
                replica_nodes=each.replicas,
                isr_nodes=each.isr,
                offline_replicas=image.offline_replicas(each, reachable),
            )
            for index, each in sorted(topic.partitions.items())
        ]
    )
    return answer.MetadataResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.id,
        is_internal=is_internal(topic.name),
        partitions=partitions,
        topic_authorized_operations=operations,
    )


def trouble_with(leader: int, reachable: frozenset[int]) -> ErrorCode:
    """Say what keeps a client from a partition's leader, if anything does."""
    if leader in reachable:
        return ErrorCode.NONE
    return ErrorCode.LEADER_NOT_AVAILABLE if leader < 0 else ErrorCode.LISTENER_NOT_FOUND
