"""AddPartitionsToTxn (key 24): take partitions into a transaction, or ask whether they are in.

Behaviour:
- All partitions of a transaction are taken in, or none: if one of them does not exist, or is an
  internal topic's, that one has its code and the others OPERATION_NOT_ATTEMPTED.
- To verify only, as leaders do for clients that add partitions themselves, changes nothing; a
  partition that is not in is TRANSACTION_ABORTABLE.

Versions:
- v0 to v3 come from clients, with one transaction; v2 is the first whose clients know
  PRODUCER_FENCED. v4 and v5 come from brokers, with many, and may verify.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from strom.broker.answers import NO_THROTTLE
from strom.broker.context import Context, Large
from strom.broker.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from strom.broker.transacting import BY_LEADER, BY_REQUEST, known_code, shard_of
from strom.broker.turns import answer_of, pieces
from strom.transactions.transaction import Producer, TopicPartition
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.lazy import lazy

if TYPE_CHECKING:
    from kio.schema.add_partitions_to_txn.v5 import request as asked
    from kio.schema.add_partitions_to_txn.v5 import response as answer
else:
    asked = lazy("kio.schema.add_partitions_to_txn.v5.request")
    answer = lazy("kio.schema.add_partitions_to_txn.v5.response")

KEY = 24
VERSIONS = range(6)

#: Of partitions of which is only asked whether they exist, so many take two milliseconds.
PLACES_AT_ONCE = 1000
#: What a transaction weighs beside its partitions.
TRANSACTION_WEIGHT = 5

MANY_FROM = 4
KNOWS_FENCED_FROM = 2

Codes = dict[TopicPartition, ErrorCode]


def upgrade(old: Any, request: asked.AddPartitionsToTxnRequest) -> asked.AddPartitionsToTxnRequest:  # noqa: ANN401
    """Read the one transaction of the older versions."""
    if old.__version__ >= MANY_FROM:
        return request
    transaction = asked.AddPartitionsToTxnTransaction(
        transactional_id=old.v3_and_below_transactional_id,
        producer_id=old.v3_and_below_producer_id,
        producer_epoch=old.v3_and_below_producer_epoch,
        topics=tuple(
            asked.AddPartitionsToTxnTopic(name=each.name, partitions=each.partitions)
            for each in old.v3_and_below_topics
        ),
    )
    return replace(request, transactions=(transaction,))


def downgrade(response: answer.AddPartitionsToTxnResponse, old: Any) -> Any:  # noqa: ANN401
    """Put the one transaction's answer where the older versions have it."""
    if old.__version__ >= MANY_FROM:
        return old
    (result,) = response.results_by_transaction
    cls = type(old)
    topic_cls, partition_cls = classes_of(cls)
    topics = tuple(
        topic_cls(
            name=topic.name,
            results_by_partition=tuple(
                partition_cls(
                    partition_index=each.partition_index,
                    partition_error_code=each.partition_error_code,
                )
                for each in topic.results_by_partition
            ),
        )
        for topic in result.topic_results
    )
    return replace(old, results_by_topic_v3_and_below=topics)


def classes_of(response: Any) -> tuple[Any, Any]:  # noqa: ANN401
    """Return the classes of topics and partitions that stand beside a version's response."""
    module = lazy(response.__module__)
    return module.AddPartitionsToTxnTopicResult, module.AddPartitionsToTxnPartitionResult


async def handle(
    request: asked.AddPartitionsToTxnRequest, context: Context
) -> answer.AddPartitionsToTxnResponse | Large:
    """Take in, or verify, each transaction's partitions."""
    told: list[tuple[asked.AddPartitionsToTxnTransaction, Codes]] = []
    count = 0
    for transaction in request.transactions:
        if told:
            await asyncio.sleep(0)
        told.append((transaction, await codes_of(transaction, context)))
        count += TRANSACTION_WEIGHT + len(told[-1][1])
    return answer_of(count, lambda: respond(told))


def respond(
    told: list[tuple[asked.AddPartitionsToTxnTransaction, Codes]],
) -> answer.AddPartitionsToTxnResponse:
    """Answer for every transaction."""
    return answer.AddPartitionsToTxnResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.NONE,
        results_by_transaction=tuple(result(*each) for each in told),
    )


async def codes_of(transaction: asked.AddPartitionsToTxnTransaction, context: Context) -> Codes:
    """Take in, or verify, the partitions of one transaction; a code for each."""
    places = [(topic.name, index) for topic in transaction.topics for index in topic.partitions]
    codes: Codes = {}
    for some in pieces(places, PLACES_AT_ONCE):
        codes |= missing(some, context)
        if len(some) == PLACES_AT_ONCE:
            await asyncio.sleep(0)
    if codes:
        return dict.fromkeys(places, ErrorCode.OPERATION_NOT_ATTEMPTED) | codes
    try:
        return await decide(transaction, places, context)
    except KafkaError as error:
        return dict.fromkeys(places, known_code(error.code, context.version, KNOWS_FENCED_FROM))


def result(
    transaction: asked.AddPartitionsToTxnTransaction, codes: Codes
) -> answer.AddPartitionsToTxnResult:
    """Answer for one transaction."""
    return answer.AddPartitionsToTxnResult(
        transactional_id=transaction.transactional_id,
        topic_results=tuple(
            answer.AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=tuple(
                    answer.AddPartitionsToTxnPartitionResult(
                        partition_index=index, partition_error_code=codes[topic.name, index]
                    )
                    for index in topic.partitions
                ),
            )
            for topic in transaction.topics
        ),
    )


def missing(places: Sequence[TopicPartition], context: Context) -> Codes:
    """Say which of them cannot be taken in."""
    codes: Codes = {}
    for topic, index in places:
        if context.version < MANY_FROM and topic in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC):
            codes[topic, index] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif context.image.partition(topic, index) is None:
            codes[topic, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return codes


async def decide(
    transaction: asked.AddPartitionsToTxnTransaction, places: list[TopicPartition], context: Context
) -> Codes:
    """Have the coordinator take the partitions in, or look whether they are."""
    name = transaction.transactional_id
    producer = Producer(transaction.producer_id, transaction.producer_epoch)
    shard = shard_of(name, context)
    machine = shard.machine
    if transaction.verify_only:
        return await shard.execute(machine.verify_partitions, name, producer, places)
    await shard.execute(
        machine.add_partitions,
        name,
        producer,
        frozenset(places),
        version=BY_LEADER if context.version >= MANY_FROM else BY_REQUEST,
        now_ms=context.now_ms,
    )
    return dict.fromkeys(places, ErrorCode.NONE)
