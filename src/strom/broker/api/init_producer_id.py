"""InitProducerId (key 22): an id and an epoch for a producer.

Behaviour:
- A producer without a transactional id gets a new id at epoch 0. One that brings its id and
  epoch along (KIP-360, after it lost track of its sequences) gets a new id as well.
- With a transactional id its coordinator answers: the same id with a higher epoch, which fences
  off whoever had it before. If that one left a transaction open, it is aborted first, and the
  newcomer hears CONCURRENT_TRANSACTIONS and comes again.
- A time-out above `transaction.max.timeout.ms` is INVALID_TRANSACTION_TIMEOUT, whoever is asked.

Versions:
- v3 lets a producer bring its id and epoch along; up to v3 a fenced one hears
  INVALID_PRODUCER_EPOCH, from v4 on PRODUCER_FENCED (KIP-588).
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from strom.broker.answers import NO_THROTTLE
from strom.broker.context import Context
from strom.broker.transacting import Given, known_code, shard_of, with_producer_id
from strom.records.batch import NO_PRODUCER_ID
from strom.transactions.beginning import NoProducer
from strom.transactions.transaction import NOBODY, Producer
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from kio.schema.init_producer_id.v5 import request as asked
    from kio.schema.init_producer_id.v5 import response as answer
else:
    answer = kafka_message("init_producer_id", "response")

KEY = 22
VERSIONS = range(6)

NO_EPOCH = -1
KNOWS_FENCED_FROM = 4
MILLISECOND = timedelta(milliseconds=1)


async def handle(
    request: asked.InitProducerIdRequest, context: Context
) -> answer.InitProducerIdResponse:
    """Give out a producer."""
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_EPOCH):
        return response(NOBODY, ErrorCode.INVALID_REQUEST)
    try:
        if request.transactional_id is None:
            producer = Producer(await context.parts.producer_ids.next_id(), 0)
        else:
            producer = await transactional(request, request.transactional_id, context)
    except KafkaError as error:
        return response(NOBODY, known_code(error.code, context.version, KNOWS_FENCED_FROM))
    return response(producer, ErrorCode.NONE)


async def transactional(
    request: asked.InitProducerIdRequest, transactional_id: str, context: Context
) -> Producer:
    """Have the coordinator give the transactional id to who asks."""
    expected = None
    if request.producer_id != NO_PRODUCER_ID:
        expected = Producer(request.producer_id, request.producer_epoch)
    timeout_ms = request.transaction_timeout // MILLISECOND
    if transactional_id:
        check_timeout(timeout_ms, context)
    shard = shard_of(transactional_id, context)

    def decide(spare_id: int | None) -> Given | Coroutine[Any, Any, Given]:
        reply: Given | Coroutine[Any, Any, Given] = shard.run(
            shard.machine.init_producer_id,
            transactional_id,
            timeout_ms,
            expected,
            spare_id,
            now_ms=context.now_ms,
        )
        return context.parts.markers.ended(shard, transactional_id, reply)

    producer = await with_producer_id(decide, context)
    if isinstance(producer, NoProducer):
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    return producer


def check_timeout(timeout_ms: int, context: Context) -> None:
    """Refuse a time that no coordinator would grant."""
    if not 0 < timeout_ms <= context.settings.number("transaction.max.timeout.ms"):
        raise KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)


def response(producer: Producer, code: ErrorCode) -> answer.InitProducerIdResponse:
    """Tell the producer, or why there is none."""
    return answer.InitProducerIdResponse(
        throttle_time=NO_THROTTLE,
        error_code=code,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
    )
