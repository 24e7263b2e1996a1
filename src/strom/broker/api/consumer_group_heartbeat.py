# Messages compiled by mypyc.
"""ConsumerGroupHeartbeat (key 68): all that a member of a consumer group ever asks (KIP-848).

Behaviour:
- Epoch 0 joins, -1 leaves, -2 is a static member that will be back; any other says that the
  member lives. What it does not say has not changed.
- The answer has the member's epoch, and all that it shall hold now if that has changed. It holds
  fewer partitions than its target while others have not given them up; it must say what it holds
  before what it was told to give up goes to others.
- Subscriptions are by name, by a regular expression in RE2's syntax, or both.
- Where the protocol is turned off (`group_protocols`) it is UNSUPPORTED_VERSION.

Versions:
- From v1 on there are regular expressions, and a member brings its own id.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from strom.broker.answers import NO_THROTTLE
from strom.broker.context import Context, Waiting
from strom.broker.coordinating import settle
from strom.broker.group_protocols import require_consumer_protocol
from strom.groups.consumer import coordinator
from strom.groups.consumer.assignors.subscriber import Partitions
from strom.groups.consumer.limits import limits_of
from strom.groups.consumer.member import by_topic
from strom.groups.consumer.replies import Beat
from strom.groups.consumer.request import Heartbeat, check_assignor, check_heartbeat
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import kafka_message
from strom.wire.primitives import ms_of

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from uuid import UUID

    from kio.schema.consumer_group_heartbeat.v1 import request as asked
    from kio.schema.consumer_group_heartbeat.v1 import response as answer
else:
    answer = kafka_message("consumer_group_heartbeat", "response")

KEY = 68
VERSIONS = range(2)

OWN_ID_FROM = 1


def handle(
    request: asked.ConsumerGroupHeartbeatRequest, context: Context
) -> (
    answer.ConsumerGroupHeartbeatResponse
    | Coroutine[Any, Any, answer.ConsumerGroupHeartbeatResponse]
    | Waiting
):
    """Have the coordinator take the heartbeat in."""
    try:
        require_consumer_protocol(context)
        said = read_request(request, context)
        check_heartbeat(said, must_have_id=context.version >= OWN_ID_FROM)
        if said.assignor is not None:
            limits = limits_of(said.group_id, context.image, context.settings)
            check_assignor(said.assignor, limits.assignors)
        shard = context.parts.groups.shard_for(said.group_id)
    except KafkaError as error:
        return respond(error)
    if not said.member_id:
        said = said._replace(member_id=new_member_id(context.parts.host.new_id()))
    return settle(shard, coordinator.beat, said, context.now_ms, respond)


def read_request(request: asked.ConsumerGroupHeartbeatRequest, context: Context) -> Heartbeat:
    """Read what the member says, and who it is by its connection."""
    names, owned = request.subscribed_topic_names, request.topic_partitions
    return Heartbeat(
        request.group_id,
        request.member_id,
        request.member_epoch,
        client_id=context.header.client_id or "",
        client_host=f"/{context.connection.address[0]}",
        instance_id=request.instance_id,
        rack=request.rack_id,
        rebalance_timeout_ms=ms_of(request.rebalance_timeout),
        topic_names=None if names is None else frozenset(names),
        pattern=request.subscribed_topic_regex,
        assignor=request.server_assignor,
        # A member that holds partitions of no topic holds nothing.
        owned=None
        if owned is None
        else by_topic((each.topic_id, each.partitions) for each in owned if each.topic_id),
    )


def new_member_id(number: UUID) -> str:
    """Return an id for a member that has none, in the form of Kafka's."""
    return urlsafe_b64encode(number.bytes).decode().rstrip("=")


def respond(reply: Beat | KafkaError) -> answer.ConsumerGroupHeartbeatResponse:
    """Tell the member where it stands, or why it does not."""
    if isinstance(reply, KafkaError):
        return answer.ConsumerGroupHeartbeatResponse(
            throttle_time=NO_THROTTLE,
            error_code=reply.code,
            error_message=reply.message,
            member_epoch=0,
            heartbeat_interval=timedelta(0),
        )
    return answer.ConsumerGroupHeartbeatResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.NONE,
        member_id=reply.member_id,
        member_epoch=reply.epoch,
        heartbeat_interval=timedelta(milliseconds=reply.heartbeat_interval_ms),
        assignment=None if reply.assignment is None else assigned(reply.assignment),
    )


def assigned(partitions: Partitions) -> answer.Assignment:
    """Tell the member what it shall hold."""
    return answer.Assignment(
        topic_partitions=tuple(
            answer.TopicPartitions(topic_id=topic, partitions=tuple(sorted(partitions[topic])))
            for topic in sorted(partitions, key=lambda topic: topic.int)
        )
    )
