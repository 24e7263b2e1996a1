"""InitProducerId (key 22): an id for an idempotent producer.

Behaviour:
- A producer without a transactional id gets a new id at epoch 0. One that brings its id and
  epoch along (KIP-360, after it lost track of its sequences) gets a new id as well.
- With a transactional id the answer is COORDINATOR_NOT_AVAILABLE: there are no transactions.

Versions:
- v3 lets a producer bring its id and epoch along.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strom.broker.answers import NO_THROTTLE
from strom.broker.context import Context
from strom.records.batch import NO_PRODUCER_ID
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.lazy import lazy

if TYPE_CHECKING:
    from kio.schema.init_producer_id.v5 import request as asked
    from kio.schema.init_producer_id.v5 import response as answer
else:
    answer = lazy("kio.schema.init_producer_id.v5.response")

KEY = 22
VERSIONS = range(6)

NO_EPOCH = -1


async def handle(
    request: asked.InitProducerIdRequest, context: Context
) -> answer.InitProducerIdResponse:
    """Give out the next producer id."""
    if request.transactional_id == "":
        return refusal(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_EPOCH):
        return refusal(ErrorCode.INVALID_REQUEST)
    try:
        producer_id = await context.parts.producer_ids.next_id()
    except KafkaError as error:
        return refusal(error.code)
    return answer.InitProducerIdResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.NONE,
        producer_id=producer_id,
        producer_epoch=0,
    )


def refusal(code: ErrorCode) -> answer.InitProducerIdResponse:
    """Say why there is no id."""
    return answer.InitProducerIdResponse(
        throttle_time=NO_THROTTLE,
        error_code=code,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_EPOCH,
    )
