"""TxnOffsetCommit (key 28): note how far a group has read, as part of a transaction.

Behaviour:
- The offsets count when the transaction is committed; until then nobody sees them, but who asks for
  stable offsets hears UNSTABLE_OFFSET_COMMIT.
- The group's coordinator asks that of the transaction first, as a leader does before it appends
  (`transacting`): the partition that holds the group's offsets must be in, or is taken in.
- A member of the group is fenced by its generation or epoch (KIP-447): what it was assigned may be
  another's by now. An epoch before counts for the partitions that the member has had since.
  Partitions that do not exist are refused one by one.
- Many offsets are written in several batches: each is in the log whole or not at all.

Versions:
- v0 and v1 are told COORDINATOR_NOT_AVAILABLE in place of COORDINATOR_LOAD_IN_PROGRESS.
- v3 brings the member and its generation; v4 knows TRANSACTION_ABORTABLE; from v5 on the group's
  coordinator takes the partition in by itself (KIP-890).
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING

from strom.broker.answers import NO_THROTTLE, require_few
from strom.broker.context import Context
from strom.broker.coordinating import commit
from strom.broker.transacting import (
    OFFSETS_ABORTABLE_FROM,
    OFFSETS_ADD_FROM,
    Joining,
    is_open,
    offsets_partition,
    take_in,
)
from strom.groups.committing import Commit, NewOffset
from strom.groups.owners import Author
from strom.metadata.image import Topic
from strom.transactions.transaction import Producer
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from kio.schema.txn_offset_commit.v5 import request as asked
    from kio.schema.txn_offset_commit.v5 import response as answer
else:
    answer = kafka_message("txn_offset_commit", "response")

KEY = 28
VERSIONS = range(6)
KNOWS_LOADING_FROM = 2

Codes = dict[tuple[str, int], ErrorCode]


async def handle(
    request: asked.TxnOffsetCommitRequest, context: Context
) -> answer.TxnOffsetCommitResponse:
    """Have the group's coordinator take the offsets into the transaction."""
    require_few(sum(len(topic.partitions) for topic in request.topics))
    codes: Codes = {}
    offsets = []
    for wanted in request.topics:
        topic = context.image.topics_by_name.get(wanted.name)
        for each in wanted.partitions:
            if topic is None or each.partition_index not in topic.partitions:
                codes[wanted.name, each.partition_index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                offsets.append(new_offset(topic, each))
    if offsets:
        try:
            told = await commit_all(request, offsets, context)
        except KafkaError as error:
            told = [error.code] * len(offsets)
        for offset, code in zip(offsets, told, strict=True):
            codes[offset.topic, offset.partition] = retriable_code(code, context.version)
    return response(request, codes)


def retriable_code(code: ErrorCode, version: int) -> ErrorCode:
    """Return the code as clients of the version know it: old ones give up at "loading"."""
    if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < KNOWS_LOADING_FROM:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return code


def new_offset(topic: Topic, asked_for: asked.TxnOffsetCommitRequestPartition) -> NewOffset:
    """Return what is to be committed for a partition."""
    return NewOffset(
        topic.name,
        asked_for.partition_index,
        asked_for.committed_offset,
        asked_for.committed_leader_epoch,
        asked_for.committed_metadata,
        topic.id,
    )


async def commit_all(
    request: asked.TxnOffsetCommitRequest, offsets: list[NewOffset], context: Context
) -> list[ErrorCode]:
    """Commit the offsets with the transaction; a code for each."""
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    # Who does not coordinate the group does not ask about the transaction.
    context.parts.groups.shard_for(request.group_id)
    producer = Producer(request.producer_id, request.producer_epoch)
    await require_transaction(request, producer, context)
    author = Author(
        request.member_id,
        request.generation_id,
        request.group_instance_id,
        is_transactional=True,
        version=context.version,
    )
    wanted = Commit(request.group_id, author, offsets, transaction=producer)
    codes = commit(wanted, context)
    return codes if isinstance(codes, list) else await codes


async def require_transaction(
    request: asked.TxnOffsetCommitRequest, producer: Producer, context: Context
) -> None:
    """Refuse offsets of a transaction that is not open, or has not this partition in it."""
    place = offsets_partition(request.group_id, context)
    if is_open(place, producer, context):
        return
    version = context.version
    joining = Joining(
        request.transactional_id,
        producer,
        {place: 0},
        version >= OFFSETS_ADD_FROM,
        version >= OFFSETS_ABORTABLE_FROM,
        is_produced=False,
    )
    reply = take_in(joining, context)
    refused = await reply if isinstance(reply, Coroutine) else reply
    if place in refused:
        raise refused[place]


def response(request: asked.TxnOffsetCommitRequest, codes: Codes) -> answer.TxnOffsetCommitResponse:
    """Answer for each partition."""
    return answer.TxnOffsetCommitResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            answer.TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=tuple(
                    answer.TxnOffsetCommitResponsePartition(
                        partition_index=each.partition_index,
                        error_code=codes[topic.name, each.partition_index],
                    )
                    for each in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )
