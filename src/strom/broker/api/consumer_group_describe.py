"""ConsumerGroupDescribe (key 69): consumer groups with their epochs, and what each member has.

Behaviour:
- Groups are described one by one; one that does not exist, or is of another kind, is
  GROUP_ID_NOT_FOUND, and an empty id INVALID_GROUP_ID.
- Where the protocol is turned off (`group_protocols`) every group is UNSUPPORTED_VERSION.
- What a member has includes what it was told to give up and has not yet.

Versions:
- v1 tells which protocol a member speaks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strom.broker.answers import (
    GROUP_OPERATIONS,
    NO_THROTTLE,
    NOT_ASKED,
    answer_of,
    each_once,
    require_few,
)
from strom.broker.context import Context, Large
from strom.broker.coordinating import shard_of
from strom.broker.group_protocols import require_consumer_protocol
from strom.groups.consumer.coordinator import find
from strom.groups.consumer.limits import limits_of
from strom.groups.consumer.member import by_topic
from strom.groups.consumer.target import target_of
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from kio.schema.consumer_group_describe.v1 import request as asked
    from kio.schema.consumer_group_describe.v1 import response as answer

    from strom.groups.consumer.assignors.subscriber import Partitions
    from strom.groups.consumer.group import ConsumerGroup
    from strom.groups.consumer.member import Member
    from strom.metadata.image import Image

    Reply = answer.ConsumerGroupDescribeResponse
else:
    answer = kafka_message("consumer_group_describe", "response")

KEY = 69
VERSIONS = range(2)

#: A group is described with its members.
GROUPS_AT_ONCE = 50

CLASSIC_MEMBER: Final = 0
CONSUMER_MEMBER: Final = 1


def handle(request: asked.ConsumerGroupDescribeRequest, context: Context) -> Reply | Large:
    """Describe each group."""
    require_few(len(request.group_ids))
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NOT_ASKED
    groups = each_once(request.group_ids, lambda each: describe(each, operations, context))
    return answer_of(
        len(groups),
        lambda: answer.ConsumerGroupDescribeResponse(throttle_time=NO_THROTTLE, groups=groups),
        at_once=GROUPS_AT_ONCE,
    )


def describe(group_id: str, operations: int, context: Context) -> answer.DescribedGroup:
    """Describe a group, or say why not."""
    try:
        require_consumer_protocol(context)
        group = find(shard_of(group_id, context).machine, group_id)
    except KafkaError as error:
        return refused(group_id, error)
    limits = limits_of(group_id, context.image, context.settings)
    members = [group.members[each] for each in sorted(group.members)]
    return answer.DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group_id,
        group_state=group.phase,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor(limits.assignors),
        members=tuple(described(each, group, context.image) for each in members),
        authorized_operations=operations,
    )


def refused(group_id: str, error: KafkaError) -> answer.DescribedGroup:
    """Say why a group cannot be described."""
    return answer.DescribedGroup(
        error_code=error.code,
        error_message=error.message,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=(),
    )


def described(member: Member, group: ConsumerGroup, image: Image) -> answer.Member:
    """Describe a member."""
    held = by_topic((*member.assigned.items(), *member.revoking.items()))
    return answer.Member(
        member_id=member.id,
        instance_id=member.instance_id,
        rack_id=member.rack,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.topic_names)),
        subscribed_topic_regex=member.pattern,
        assignment=assigned(held, image),
        target_assignment=assigned(target_of(group, member.id), image),
        member_type=CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
    )


def assigned(partitions: Partitions, image: Image) -> answer.Assignment:
    """Tell partitions with the names of their topics; a topic that is gone has none any more."""
    topics = [image.topics_by_id[each] for each in partitions if each in image.topics_by_id]
    return answer.Assignment(
        topic_partitions=tuple(
            answer.TopicPartitions(
                topic_id=topic.id,
                topic_name=topic.name,
                partitions=tuple(sorted(partitions[topic.id])),
            )
            for topic in sorted(topics, key=lambda topic: topic.name)
        )
    )
