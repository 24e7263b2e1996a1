"""DescribeTransactions (key 65): what is known of transactional ids.

Behaviour:
- Each id is answered by its coordinator: the state, the producer, when the transaction began and
  which partitions are in it. An id that is not known is TRANSACTIONAL_ID_NOT_FOUND.

Versions:
- v0 only.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from strom.broker.answers import NO_THROTTLE, answer_of, each_once, require_few
from strom.broker.context import Context, Large
from strom.broker.transacting import shard_of
from strom.transactions.listing import described
from strom.transactions.transaction import Transaction, by_topic
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from kio.schema.describe_transactions.v0 import request as asked
    from kio.schema.describe_transactions.v0 import response as answer
else:
    answer = kafka_message("describe_transactions", "response")

KEY = 65
VERSIONS = range(1)

EPOCH = datetime.fromtimestamp(0, UTC)


def handle(
    request: asked.DescribeTransactionsRequest, context: Context
) -> answer.DescribeTransactionsResponse | Large:
    """Describe every id."""
    require_few(len(request.transactional_ids))
    states = each_once(request.transactional_ids, lambda each: describe(each, context))
    count = sum([len(topic.partitions) for each in states for topic in each.topics])
    return answer_of(
        count,
        lambda: answer.DescribeTransactionsResponse(
            throttle_time=NO_THROTTLE, transaction_states=states
        ),
    )


def describe(transactional_id: str, context: Context) -> answer.TransactionState:
    """Describe one id, or say why not."""
    try:
        known = shard_of(transactional_id, context).machine.transactions
        return state(described(known, transactional_id))
    except KafkaError as error:
        return answer.TransactionState(
            error_code=error.code,
            transactional_id=transactional_id,
            transaction_state="",
            transaction_timeout=timedelta(0),
            transaction_start_time=EPOCH,
            producer_id=0,
            producer_epoch=0,
            topics=(),
        )


def state(transaction: Transaction) -> answer.TransactionState:
    """Describe a transaction."""
    return answer.TransactionState(
        error_code=ErrorCode.NONE,
        transactional_id=transaction.transactional_id,
        transaction_state=transaction.state.title,
        transaction_timeout=timedelta(milliseconds=transaction.timeout_ms),
        transaction_start_time=EPOCH + timedelta(milliseconds=transaction.started_ms),
        producer_id=transaction.producer.id,
        producer_epoch=transaction.producer.epoch,
        topics=tuple(
            answer.TopicData(topic=each.topic, partitions=each.partition_ids)
            for each in by_topic(transaction.partitions)
        ),
    )
