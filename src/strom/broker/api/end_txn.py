"""EndTxn (key 26): commit or abort a transaction.

Behaviour:
- The answer comes when the outcome is in the coordinator's log: from then on nothing changes it.
  Where this broker leads all partitions of the transaction, their markers are written before any
  further request is read.
- Asked again, a producer hears the outcome again; another outcome is INVALID_TXN_STATE. What the
  answers are in each state is told at the head of `transactions/ending.py`.

Versions:
- v2 is the first whose clients know PRODUCER_FENCED; to older ones it is INVALID_PRODUCER_EPOCH.
- v5 raises the producer's epoch with every end, and hands it back (KIP-890). Before, an end that
  comes late looks like one of the producer's next transaction: if it comes by an older connection
  than that was begun by, it is CONCURRENT_TRANSACTIONS once. Kafka ends what is open.
"""

from collections.abc import Coroutine
from typing import Any

from strom.broker.context import Context
from strom.broker.transacting import (
    BY_LEADER,
    BY_REQUEST,
    Decide,
    Given,
    known_code,
    note_sender,
    result_of,
    shard_of,
    with_producer_id,
)
from strom.transactions.beginning import NoProducer
from strom.transactions.ending import End
from strom.transactions.transaction import NOBODY, Producer
from strom.wire.end_txn import EndTxnRequest, EndTxnResponse
from strom.wire.errors import ErrorCode, KafkaError

KEY = 26
VERSIONS = range(6)

KNOWS_FENCED_FROM = 2
RAISES_EPOCH_FROM = 5


def handle(
    request: EndTxnRequest, context: Context
) -> EndTxnResponse | Coroutine[Any, Any, EndTxnResponse]:
    """Fix the transaction's outcome."""
    name = request.transactional_id
    note_sender(name, context)
    end = End(
        Producer(request.producer_id, request.producer_epoch),
        request.committed,
        BY_LEADER if context.version >= RAISES_EPOCH_FROM else BY_REQUEST,
        context.connection.number,
    )

    def decide(spare_id: int | None) -> Given | Coroutine[Any, Any, Given]:
        shard = shard_of(name, context)
        reply: Given | Coroutine[Any, Any, Given] = shard.run(
            shard.machine.end, name, end, spare_id=spare_id, now_ms=context.now_ms
        )
        return context.parts.markers.ended(shard, name, reply)

    try:
        given = decide(None)
    except KafkaError as error:
        return response(NOBODY, known_code(error.code, context.version, KNOWS_FENCED_FROM))
    if isinstance(given, Producer):
        return response(given, ErrorCode.NONE)
    return answer_later(given, decide, context)


async def answer_later(
    given: NoProducer | Coroutine[Any, Any, Given], decide: Decide, context: Context
) -> EndTxnResponse:
    """Answer once the outcome is committed, or once there is an id for the producer to go on."""
    try:
        found = await result_of(given)
        if found is NoProducer.NEEDS_ID:
            found = await with_producer_id(decide, context)
    except KafkaError as error:
        return response(NOBODY, known_code(error.code, context.version, KNOWS_FENCED_FROM))
    if found is NoProducer.DOUBTED:
        return response(NOBODY, ErrorCode.CONCURRENT_TRANSACTIONS)
    assert isinstance(found, Producer)
    return response(found, ErrorCode.NONE)


def response(producer: Producer, code: ErrorCode) -> EndTxnResponse:
    """Tell the producer as it goes on, or why not."""
    return EndTxnResponse(code, producer.id, producer.epoch)
