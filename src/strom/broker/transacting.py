"""Takes a request to the coordinator of its transaction: what several handlers share.

- A new producer id is asked for only when the coordinator needs one, and then the decision is made
  again with it.
- A leader that gets the first batch of a transaction asks the coordinator before it appends it:
  whether the partition is in (version 1), or to take it in (version 2). It asks once for all
  partitions of a request; whatever follows in the same transaction is known by the log itself.
  What has to be waited for is waited for before anything is appended. A transaction that ends
  meanwhile makes the answer worthless, which the marker on its way tells (`first_batches`).
"""

import asyncio
from collections.abc import Callable, Coroutine
from struct import Struct
from typing import Any, NamedTuple

from strom.broker.context import Context
from strom.broker.coordination import java_hash
from strom.broker.internal_topics import OFFSETS_TOPIC
from strom.broker.shard import Shard
from strom.records.batch import HEADER_SIZE, MAGIC, TRANSACTIONAL_FLAG
from strom.records.validate import check_field
from strom.transactions.beginning import NoProducer
from strom.transactions.machine import TransactionMachine
from strom.transactions.transaction import Producer, TopicPartition
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.produce import ProduceRequest

#: The transaction's versions, as the coordinator knows them.
BY_REQUEST, BY_LEADER = 0, 2
#: From these on a leader adds the partition itself; from those the client knows "abortable".
PRODUCE_ADDS_FROM, OFFSETS_ADD_FROM = 12, 5
PRODUCE_ABORTABLE_FROM, OFFSETS_ABORTABLE_FROM = 11, 4

VERIFICATION = "transaction.partition.verification.enable"
BACKOFF = "add.partitions.to.txn.retry.backoff.ms"
BACKOFF_MAX = "add.partitions.to.txn.retry.backoff.max.ms"

#: Where a batch has its magic, and the byte of the attributes with all flags but the newest.
_MAGIC_AT = 16
_FLAGS_AT = 22
#: Where a batch says whose it is: attributes, then producer id, epoch and first sequence.
_ATTRIBUTES_AT = 21
_ATTRIBUTES = Struct(">h")
_PRODUCER_AT = 43
_PRODUCER = Struct(">qhi")

#: Retriable errors that old clients would not retry; as Kafka, this one is told instead.
_UNREACHABLE = (
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)

Given = Producer | NoProducer
#: Decides with a spare producer id, or without.
Decide = Callable[[int | None], Given | Coroutine[Any, Any, Given]]
Refused = dict[TopicPartition, KafkaError]
#: Whose batch there is for each partition, and its first sequence number.
Batches = dict[TopicPartition, tuple[Producer, int]]
TransactionShard = Shard[TransactionMachine]


def shard_of(transactional_id: str, context: Context) -> TransactionShard:
    """Return the coordinator of the transactional id; refuse an empty one."""
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    return context.parts.transactions.shard_for(transactional_id)


def note_sender(transactional_id: str, context: Context) -> None:
    """Have the loop wait for this producer's next request, by whichever connection it comes."""
    context.connection.sender = hash(transactional_id)


def known_code(code: ErrorCode, version: int, knows_fenced_from: int) -> ErrorCode:
    """Return the code as clients of the version know it."""
    if code is ErrorCode.PRODUCER_FENCED and version < knows_fenced_from:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code


async def with_producer_id(decide: Decide, context: Context) -> Given:
    """Have the coordinator decide, with a new producer id if it needs one."""
    found = await result_of(decide(None))
    if found is NoProducer.NEEDS_ID:
        found = await result_of(decide(await context.parts.producer_ids.next_id()))
    return found


async def result_of(reply: Given | Coroutine[Any, Any, Given]) -> Given:
    """Return the reply, once it is there."""
    return await reply if isinstance(reply, Coroutine) else reply


class Joining(NamedTuple):
    """A producer's first batches of a transaction in some partitions."""

    transactional_id: str
    producer: Producer
    #: The first sequence number of the batch for each.
    partitions: dict[TopicPartition, int]
    #: Whether they are to be added, or must have been.
    adds: bool
    #: Whether the client knows that a transaction can be aborted and tried again.
    knows_abortable: bool
    #: Whether what is to be appended are a producer's records, not a group's offsets.
    is_produced: bool


def has_transactional(request: ProduceRequest) -> bool:
    """Whether a batch of the request is one of a transaction."""
    for topic in request.topics:
        for each in topic.partitions:
            records = each.records
            if records is None or len(records) < HEADER_SIZE or records[_MAGIC_AT] != MAGIC:
                continue
            if records[_FLAGS_AT] & TRANSACTIONAL_FLAG:
                return True
    return False


def join(request: ProduceRequest, context: Context) -> Refused | Coroutine[Any, Any, Refused]:
    """Have the coordinator say of each partition that it is in; return where it is not."""
    assert request.transactional_id is not None
    new, known = batches_of(request, context)
    if not new:
        return {}
    producers = {producer for producer, _ in new.values()}
    if len(producers) > 1:
        return {each: KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING) for each in new}
    version = context.version
    joining = Joining(
        request.transactional_id,
        producers.pop(),
        {place: sequence for place, (_, sequence) in new.items()},
        adds=version >= PRODUCE_ADDS_FROM,
        knows_abortable=version >= PRODUCE_ABORTABLE_FROM,
        is_produced=True,
    )
    reply = take_in(joining, context)
    if isinstance(reply, Coroutine):
        return join_later(joining, known, reply, context)
    return in_turn(joining, reply, context)


async def join_later(
    joining: Joining, known: Batches, reply: Coroutine[Any, Any, Refused], context: Context
) -> Refused:
    """Wait for the coordinator; what partitions knew as open may have ended meanwhile."""
    refused = in_turn(joining, await reply, context)
    for place, (producer, _) in known.items():
        if not is_open(place, producer, context):
            refused[place] = not_open()
    return refused


def in_turn(joining: Joining, refused: Refused, context: Context) -> Refused:
    """Refuse also what would come in front of a batch that was refused for now.

    A partition that has nothing of a producer takes any number for its first one. With version 2
    that must be 0; before, a transaction may begin with any.
    """
    if joining.adds:
        return refused
    first_batches, producer = context.parts.markers.first_batches, joining.producer
    for place, sequence in joining.partitions.items():
        error = refused.get(place)
        if error is None:
            if not first_batches.take(place, producer, sequence):
                refused[place] = KafkaError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        elif error.code is ErrorCode.NOT_ENOUGH_REPLICAS:
            first_batches.put_off(place, producer, sequence)
    return refused


def not_open() -> KafkaError:
    """Return what a producer is told of a batch that would come behind the marker."""
    return KafkaError(ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction")


def batches_of(request: ProduceRequest, context: Context) -> tuple[Batches, Batches]:
    """Return the batches of transactions: those that are their partition's first, and others."""
    new: Batches = {}
    known: Batches = {}
    for topic in request.topics:
        name = topic.name if topic.topic_id is None else context.topic_name(topic.topic_id)
        for each in topic.partitions:
            index, records = each.partition_index, each.records
            if name is None or records is None or len(records) < HEADER_SIZE:
                continue
            if not _ATTRIBUTES.unpack_from(records, _ATTRIBUTES_AT)[0] & TRANSACTIONAL_FLAG:
                continue
            partition = context.replicas.find(name, index)
            if partition is None or not partition.is_leader:
                continue
            producer_id, epoch, sequence = _PRODUCER.unpack_from(records, _PRODUCER_AT)
            producers = partition.log.producers
            is_known = producers is not None and producers.has_open(producer_id, epoch)
            if not is_known and not is_batch(records, context.version):
                continue
            found = known if is_known else new
            found[name, index] = Producer(producer_id, epoch), sequence
    return new, known


def is_batch(records: memoryview, version: int) -> bool:
    """Whether the field can be appended at all: else nothing of it opens a transaction."""
    try:
        check_field(records, version)
    except KafkaError:
        return False
    return True


def take_in(joining: Joining, context: Context) -> Refused | Coroutine[Any, Any, Refused]:
    """Ask the coordinator; return where it says no, or what will."""
    if not joining.adds and not context.settings.flag(VERIFICATION):
        return {}
    try:
        reply = ask(joining, context)
    except KafkaError as error:
        if joining.adds and error.code is ErrorCode.CONCURRENT_TRANSACTIONS:
            return keep_asking(joining, context)
        return refuse_all(joining, error)
    if isinstance(reply, Coroutine):
        return take_in_later(joining, reply, context)
    return judge(joining, reply, context)


def ask(
    joining: Joining, context: Context
) -> dict[TopicPartition, ErrorCode] | Coroutine[Any, Any, Any] | None:
    """Have the coordinator decide; the reply has a code for each, None stands for all is well."""
    name, producer, partitions = joining.transactional_id, joining.producer, joining.partitions
    shard = shard_of(name, context)
    if joining.adds:
        return shard.run(
            shard.machine.add_partitions,
            name,
            producer,
            frozenset(partitions),
            version=BY_LEADER,
            now_ms=context.now_ms,
        )
    return shard.run(shard.machine.verify_partitions, name, producer, list(partitions))


async def keep_asking(joining: Joining, context: Context) -> Refused:
    """Ask again for a while: the transaction before is about to be complete."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + context.settings.number(BACKOFF_MAX) / 1000
    while True:
        await asyncio.sleep(context.settings.number(BACKOFF) / 1000)
        try:
            reply = ask(joining, context)
        except KafkaError as error:
            if error.code is not ErrorCode.CONCURRENT_TRANSACTIONS or loop.time() >= deadline:
                return refuse_all(joining, error)
            continue
        if isinstance(reply, Coroutine):
            return await take_in_later(joining, reply, context)
        return judge(joining, reply, context)


async def take_in_later(
    joining: Joining, reply: Coroutine[Any, Any, Any], context: Context
) -> Refused:
    """Wait for the coordinator; what has ended meanwhile is no longer open."""
    first_batches, producer_id = context.parts.markers.first_batches, joining.producer.id
    guards = {place: first_batches.guard(place, producer_id) for place in joining.partitions}
    try:
        refused = judge(joining, await reply, context)
    except KafkaError as error:
        refused = refuse_all(joining, error)
    finally:
        ended = [
            place
            for place, guard in guards.items()
            if not first_batches.release(place, producer_id, guard)
        ]
    for place in ended:
        refused.setdefault(place, not_open())
    return refused


def judge(
    joining: Joining, codes: dict[TopicPartition, ErrorCode] | None, context: Context
) -> Refused:
    """Say which batches cannot be appended."""
    refused: Refused = {}
    for place, sequence in joining.partitions.items():
        code = ErrorCode.NONE if codes is None else codes[place]
        if code is not ErrorCode.NONE:
            refused[place] = translated(KafkaError(code), joining)
        elif joining.adds and sequence > 0 and is_unknown(place, joining.producer, context):
            # With version 2 a producer begins each transaction with an epoch of its own.
            refused[place] = KafkaError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    return refused


def is_open(place: TopicPartition, producer: Producer, context: Context) -> bool:
    """Whether the partition has a transaction of the producer open."""
    partition = context.replicas.find(*place)
    producers = None if partition is None else partition.log.producers
    return producers is not None and producers.has_open(*producer)


def is_unknown(place: TopicPartition, producer: Producer, context: Context) -> bool:
    """Whether the partition has nothing of the producer."""
    partition = context.replicas.find(*place)
    producers = None if partition is None else partition.log.producers
    return producers is None or producers.get(producer.id) is None


def refuse_all(joining: Joining, error: KafkaError) -> Refused:
    """Refuse all partitions for the same reason."""
    return {place: translated(error, joining) for place in joining.partitions}


def translated(error: KafkaError, joining: Joining) -> KafkaError:
    """Return what the coordinator's refusal is to a producer, as its version knows it."""
    code = error.code
    if code is ErrorCode.PRODUCER_FENCED:
        return KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH)
    if code is ErrorCode.TRANSACTION_ABORTABLE and not joining.knows_abortable:
        return KafkaError(ErrorCode.INVALID_TXN_STATE, "Partition was not added to the transaction")
    is_busy = code is ErrorCode.CONCURRENT_TRANSACTIONS and not joining.adds
    if joining.is_produced and (is_busy or code in _UNREACHABLE):
        return KafkaError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            "Unable to verify the partition has been added to the transaction. "
            f"Underlying error: {code.name}",
        )
    return KafkaError(code)


def offsets_partition(group_id: str, context: Context) -> TopicPartition:
    """Return the partition that holds the offsets of the group."""
    topic = context.image.topics_by_name.get(OFFSETS_TOPIC)
    if topic is None:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return OFFSETS_TOPIC, java_hash(group_id) % len(topic.partitions)
