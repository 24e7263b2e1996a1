"""AddOffsetsToTxn (key 25): take the offsets of a group into a transaction.

Behaviour:
- The partition of `__consumer_offsets` that holds the group's offsets is taken in like any other;
  the offsets themselves come with TxnOffsetCommit, to the group's coordinator.
- That topic is made if there is none: clients ask for the group's coordinator only afterwards.
- Clients of version 2 of transactions do not ask: the group's coordinator takes it in by itself.

Versions:
- v2 is the first whose clients know PRODUCER_FENCED; to older ones it is INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strom.broker.answers import NO_THROTTLE
from strom.broker.context import Context
from strom.broker.internal_topics import OFFSETS_TOPIC, make_topic
from strom.broker.transacting import BY_REQUEST, known_code, offsets_partition, shard_of
from strom.transactions.transaction import Producer
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from kio.schema.add_offsets_to_txn.v4 import request as asked
    from kio.schema.add_offsets_to_txn.v4 import response as answer
else:
    answer = kafka_message("add_offsets_to_txn", "response")

KEY = 25
VERSIONS = range(5)

KNOWS_FENCED_FROM = 2


async def handle(
    request: asked.AddOffsetsToTxnRequest, context: Context
) -> answer.AddOffsetsToTxnResponse:
    """Take the group's partition in."""
    name = request.transactional_id
    try:
        shard = shard_of(name, context)
        if not context.parts.groups.has_topic:
            # No group has asked for its coordinator yet; clients do so after this.
            await make_topic(OFFSETS_TOPIC, context)
        await shard.execute(
            shard.machine.add_partitions,
            name,
            Producer(request.producer_id, request.producer_epoch),
            frozenset((offsets_partition(request.group_id, context),)),
            version=BY_REQUEST,
            now_ms=context.now_ms,
            connection=context.connection.number,
        )
    except KafkaError as error:
        return response(known_code(error.code, context.version, KNOWS_FENCED_FROM))
    return response(ErrorCode.NONE)


def response(code: ErrorCode) -> answer.AddOffsetsToTxnResponse:
    """Say whether it is in."""
    return answer.AddOffsetsToTxnResponse(throttle_time=NO_THROTTLE, error_code=code)
