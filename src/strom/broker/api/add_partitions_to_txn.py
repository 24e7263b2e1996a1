# Messages compiled by mypyc.
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

from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from strom.broker.answers import NO_THROTTLE, require_few
from strom.broker.context import Context
from strom.broker.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from strom.broker.transacting import BY_LEADER, BY_REQUEST, known_code, note_sender, shard_of
from strom.transactions.transaction import NO_CONNECTION, Producer, TopicPartition
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from kio.schema.add_partitions_to_txn.v5 import request as asked
    from kio.schema.add_partitions_to_txn.v5 import response as answer
else:
    asked = kafka_message("add_partitions_to_txn", "request")
    answer = kafka_message("add_partitions_to_txn", "response")

KEY = 24
VERSIONS = range(6)

KNOWS_FENCED_FROM = 2
MANY_FROM = 4

Codes = dict[TopicPartition, ErrorCode]


def upgrade(request: Any, version: int) -> None:  # noqa: ANN401 - with fields of older versions
    """Read the one transaction of the older versions."""
    if version < MANY_FROM:
        request.transactions = (
            asked.AddPartitionsToTxnTransaction(
                transactional_id=request.v3_and_below_transactional_id,
                producer_id=request.v3_and_below_producer_id,
                producer_epoch=request.v3_and_below_producer_epoch,
                verify_only=False,
                topics=request.v3_and_below_topics,
            ),
        )


def downgrade(response: Any, version: int) -> None:  # noqa: ANN401 - as above
    """Put the one transaction's topics at the top."""
    if version < MANY_FROM:
        (only,) = response.results_by_transaction
        response.results_by_topic_v3_and_below = only.topic_results


def handle(
    request: asked.AddPartitionsToTxnRequest, context: Context
) -> answer.AddPartitionsToTxnResponse | Coroutine[Any, Any, answer.AddPartitionsToTxnResponse]:
    """Take in, or verify, each transaction's partitions."""
    transactions = request.transactions
    named = [len(topic.partitions) for each in transactions for topic in each.topics]
    require_few(len(transactions) + sum(named))
    if len(transactions) == 1:
        note_sender(transactions[0].transactional_id, context)
    begun = [codes_of(each, context) for each in transactions]
    found = [each for each in begun if isinstance(each, dict)]
    if len(found) == len(begun):
        return respond(transactions, found)
    return answer_later(transactions, begun)


async def answer_later(
    transactions: Sequence[asked.AddPartitionsToTxnTransaction],
    begun: list[Codes | Coroutine[Any, Any, Codes]],
) -> answer.AddPartitionsToTxnResponse:
    """Answer once the partitions are in."""
    found = [each if isinstance(each, dict) else await each for each in begun]
    return respond(transactions, found)


def codes_of(
    transaction: asked.AddPartitionsToTxnTransaction, context: Context
) -> Codes | Coroutine[Any, Any, Codes]:
    """Take in, or verify, the partitions of one transaction; a code for each."""
    places = places_of(transaction)
    codes = missing(places, context)
    return refused(places, codes) if codes else decide(transaction, places, context)


def places_of(transaction: asked.AddPartitionsToTxnTransaction) -> list[TopicPartition]:
    """Return the partitions of the transaction, in the order of the request."""
    return [(topic.name, index) for topic in transaction.topics for index in topic.partitions]


def refused(places: list[TopicPartition], codes: Codes) -> Codes:
    """Take none in, because of some."""
    return dict.fromkeys(places, ErrorCode.OPERATION_NOT_ATTEMPTED) | codes


def missing(places: Sequence[TopicPartition], context: Context) -> Codes:
    """Say which of them cannot be taken in."""
    codes: Codes = {}
    image, is_client = context.image, context.version < MANY_FROM
    for place in places:
        topic, index = place
        if is_client and topic in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC):
            codes[place] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif image.partition(topic, index) is None:
            codes[place] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return codes


def decide(
    transaction: asked.AddPartitionsToTxnTransaction, places: list[TopicPartition], context: Context
) -> Codes | Coroutine[Any, Any, Codes]:
    """Have the coordinator take the partitions in, or look whether they are; a code for each."""
    try:
        reply = ask(transaction, places, context)
    except KafkaError as error:
        return all_refused(places, error, context)
    if isinstance(reply, Coroutine):
        return decided_later(places, reply, context)
    return told_codes(places, reply)


async def decided_later(
    places: list[TopicPartition], coming: Coroutine[Any, Any, Codes | None], context: Context
) -> Codes:
    """Return the codes once the coordinator cannot take them back."""
    try:
        reply = await coming
    except KafkaError as error:
        return all_refused(places, error, context)
    return told_codes(places, reply)


def told_codes(places: list[TopicPartition], reply: Codes | None) -> Codes:
    """Return the coordinator's codes; None stands for all is well."""
    return dict.fromkeys(places, ErrorCode.NONE) if reply is None else reply


def all_refused(places: list[TopicPartition], error: KafkaError, context: Context) -> Codes:
    """Tell the coordinator's refusal of each."""
    return dict.fromkeys(places, known_code(error.code, context.version, KNOWS_FENCED_FROM))


def ask(
    transaction: asked.AddPartitionsToTxnTransaction, places: list[TopicPartition], context: Context
) -> Codes | Coroutine[Any, Any, Codes | None] | None:
    """Ask the coordinator; None stands for all is well."""
    name = transaction.transactional_id
    producer = Producer(transaction.producer_id, transaction.producer_epoch)
    shard = shard_of(name, context)
    if transaction.verify_only:
        return shard.run(shard.machine.verify_partitions, name, producer, places)
    is_by_leader = context.version >= MANY_FROM
    return shard.run(
        shard.machine.add_partitions,
        name,
        producer,
        frozenset(places),
        version=BY_LEADER if is_by_leader else BY_REQUEST,
        now_ms=context.now_ms,
        connection=NO_CONNECTION if is_by_leader else context.connection.number,
    )


def respond(
    transactions: Sequence[asked.AddPartitionsToTxnTransaction], found: list[Codes]
) -> answer.AddPartitionsToTxnResponse:
    """Answer for every transaction."""
    results = (result(*each) for each in zip(transactions, found, strict=True))
    return answer.AddPartitionsToTxnResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.NONE,
        results_by_transaction=tuple(results),
    )


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
