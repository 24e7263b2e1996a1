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

from collections.abc import Coroutine, Sequence
from typing import Any, Final

from strom.broker.answers import require_few
from strom.broker.context import Context
from strom.broker.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from strom.broker.transacting import BY_LEADER, BY_REQUEST, known_code, note_sender, shard_of
from strom.transactions.transaction import NO_CONNECTION, Producer, TopicPartition
from strom.wire.add_partitions_to_txn import (
    MANY_FROM,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    TopicAdded,
    TransactionAdded,
    TransactionToAdd,
)
from strom.wire.errors import ErrorCode, KafkaError

KEY: Final = 24
VERSIONS: Final = range(6)

KNOWS_FENCED_FROM: Final = 2

Codes = dict[TopicPartition, ErrorCode]


def handle(
    request: AddPartitionsToTxnRequest, context: Context
) -> AddPartitionsToTxnResponse | Coroutine[Any, Any, AddPartitionsToTxnResponse]:
    """Take in, or verify, each transaction's partitions."""
    transactions = request.transactions
    asked = [len(topic.partitions) for each in transactions for topic in each.topics]
    require_few(len(transactions) + sum(asked))
    if len(transactions) == 1:
        note_sender(transactions[0].transactional_id, context)
    begun = [codes_of(each, context) for each in transactions]
    found = [each for each in begun if isinstance(each, dict)]
    if len(found) == len(begun):
        return respond(transactions, found)
    return answer_later(transactions, begun)


async def answer_later(
    transactions: Sequence[TransactionToAdd], begun: list[Codes | Coroutine[Any, Any, Codes]]
) -> AddPartitionsToTxnResponse:
    """Answer once the partitions are in."""
    found = [each if isinstance(each, dict) else await each for each in begun]
    return respond(transactions, found)


def codes_of(transaction: TransactionToAdd, context: Context) -> Codes | Coroutine[Any, Any, Codes]:
    """Take in, or verify, the partitions of one transaction; a code for each."""
    places = places_of(transaction)
    codes = missing(places, context)
    return refused(places, codes) if codes else decide(transaction, places, context)


def places_of(transaction: TransactionToAdd) -> list[TopicPartition]:
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
    transaction: TransactionToAdd, places: list[TopicPartition], context: Context
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
    transaction: TransactionToAdd, places: list[TopicPartition], context: Context
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
    transactions: Sequence[TransactionToAdd], found: list[Codes]
) -> AddPartitionsToTxnResponse:
    """Answer for every transaction."""
    return AddPartitionsToTxnResponse(
        [result(*each) for each in zip(transactions, found, strict=True)]
    )


def result(transaction: TransactionToAdd, codes: Codes) -> TransactionAdded:
    """Answer for one transaction."""
    topics = [
        TopicAdded(name, [(index, codes[name, index]) for index in partitions])
        for name, partitions in transaction.topics
    ]
    return TransactionAdded(transaction.transactional_id, topics)
