# Compiled by mypyc.
"""Produce (key 0): append record batches to partitions this broker leads.

Behaviour:
- Partitions succeed or fail one by one; a refused batch does not hold back the others. Of several
  batches for one partition the last counts, as in Kafka.
- Every batch has its place in its log before `handle` returns, so batches sent down one connection
  reach each log in the order they were sent. They are written with those of the requests that came
  together with this one (`Together`). A batch that must be prepared by a thread first
  (`broker.preparing`) makes the append phase wait, and the connection with it.
- acks=0 gets no answer; acks=1 is answered once this broker has the batches; acks=-1 once
  they are committed, or with REQUEST_TIMED_OUT for those that are not when time is up.
- A topic that sets `flush.messages` gets its answers after the fsync, whatever the acks.
- Before the first batch of a transaction in a partition its coordinator is asked (`transacting`);
  if it cannot say at once, the append phase waits for it. Later batches are taken because the log
  has the transaction open. Without a transactional id the whole request is refused.
- Into internal topics nobody writes but their coordinators, and a client called `__admin_client`.

Versions:
- v3 is the first with record batches; ApiVersions claims v0 nevertheless, see there.
- v7 is the first that may carry zstd.
- v13 names topics by id.
"""

import asyncio
from collections.abc import Coroutine
from typing import Final
from uuid import UUID

from strom.broker.context import Context, Ordered, Together
from strom.broker.preparing import (
    NOTHING_KNOWN,
    Known,
    must_prepare,
    name_of,
    prepare,
    with_own_records,
)
from strom.broker.transacting import Refused, has_transactional, join, note_sender
from strom.log.appending import Appended
from strom.metadata.topics import is_internal
from strom.records.validate import InvalidRecords, check_field
from strom.replication.partition import Partition
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.produce import (
    NO_OFFSET,
    NO_TIME,
    Leader,
    ProducePartition,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
    ProduceTopicResponse,
)

KEY: Final = 0
VERSIONS: Final = range(3, 14)

#: The one client that may write to internal topics.
ADMIN_CLIENT: Final = "__admin_client"
#: Refusals that tell nothing of the log.
START_NOT_TOLD: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.INVALID_TOPIC_EXCEPTION,
}
ACKS_NONE: Final = 0
ACKS_LEADER: Final = 1
ACKS_ALL: Final = -1

TAKEN: Final = ErrorCode.NONE

Reply = ProduceResponse | None


class Receipt:
    """A batch that has its place in a partition, and what its producer is told of it."""

    __slots__ = ("answer", "appended", "partition", "record_count", "size_bytes")

    def __init__(
        self,
        partition: Partition,
        appended: Appended,
        answer: ProducePartitionResponse,
        record_count: int,
        size_bytes: int,
    ) -> None:
        self.partition = partition
        self.appended = appended
        self.answer = answer
        self.record_count = record_count
        self.size_bytes = size_bytes


class PlacedRequest(Together):
    """A request whose batches have their places, and are not written yet."""

    __slots__ = ("_answers", "_context", "_now_ms", "_receipts", "_request")

    def __init__(self, request: ProduceRequest, context: Context, known: Known) -> None:
        self._request = request
        self._context = context
        self._now_ms: int = context.parts.host.now_ms()
        self._receipts: list[Receipt] = []
        try:
            self._answers = [
                place_topic(request, topic, context, self._receipts, self._now_ms, known)
                for topic in request.topics
            ]
        except BaseException:
            # A fault of ours.
            self._write()
            raise

    def _write(self) -> None:
        """Write the batches, with all that are placed beside them; none is left in its place."""
        fault: BaseException | None = None
        for receipt in self._receipts:
            try:
                receipt.partition.write_placed(self._now_ms)
            except BaseException as error:  # noqa: BLE001 - raised when all are looked at
                fault = error
            if receipt.appended.error is not None:
                refuse_unwritten(receipt, receipt.appended.error, self._context)
        if fault is not None:
            raise fault

    def finish(self) -> Reply | Coroutine[None, None, Reply]:
        """Write the batches; answer at once if nothing needs to be waited for."""
        self._write()
        context, request, answers = self._context, self._request, self._answers
        flushing, acks_all = context.parts.flushing, request.acks == ACKS_ALL
        metrics = context.parts.metrics
        to_flush: list[Partition] = []
        waits = False
        for receipt in self._receipts:
            partition, appended = receipt.partition, receipt.appended
            if appended.error is not None:
                continue
            metrics.produced_bytes += receipt.size_bytes
            metrics.produced_records += receipt.record_count
            partition.appended_bytes += receipt.size_bytes
            partition.appended_records += receipt.record_count
            if flushing.on_appended(partition):
                to_flush.append(partition)
            if acks_all and not partition.is_committed(appended.last_offset):
                waits = True
        if request.acks == ACKS_NONE:
            close_if_refused(answers, context)
            return None
        if waits or to_flush:
            receipts = self._receipts if acks_all else []
            return wait_and_answer(answers, receipts, to_flush, context, request)
        return ProduceResponse(answers)


def handle(
    request: ProduceRequest, context: Context
) -> Reply | Coroutine[None, None, Reply] | Ordered | PlacedRequest:
    """Give every batch its place; all else is done when what came together is written."""
    if request.transactional_id is None and has_transactional(request):
        return refuse_all(request, context, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if request.acks not in (ACKS_NONE, ACKS_LEADER, ACKS_ALL):
        return refuse_all(request, context, ErrorCode.INVALID_REQUIRED_ACKS)
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        request = each_once(request)
    if any(must_prepare(topic, context) for topic in request.topics):
        # The frame's buffer is used again before that is done.
        return Ordered(prepare_and_append(with_own_records(request), context))
    if request.transactional_id is not None:
        return join_and_append(request, context)
    if request.acks == ACKS_NONE:
        # If it is refused the connection is closed: nothing that comes behind may be taken.
        return append_all(request, context)
    return PlacedRequest(request, context, NOTHING_KNOWN)


def each_once(request: ProduceRequest) -> ProduceRequest:
    """Keep one batch of each partition, the last: what is found out is told by partition."""
    topics = request.topics
    if len({(topic.name, topic.topic_id) for topic in topics}) == len(topics) and all(
        0 < len({batch.partition_index for batch in topic.partitions}) == len(topic.partitions)
        for topic in topics
    ):
        return request
    kept: dict[tuple[str | None, UUID | None], dict[int, ProducePartition]] = {}
    for topic in topics:
        for batch in topic.partitions:
            of_topic = kept.setdefault((topic.name, topic.topic_id), {})
            of_topic[batch.partition_index] = batch
    return request.with_topics(
        [
            ProduceTopic(name, topic_id, list(batches.values()))
            for (name, topic_id), batches in kept.items()
        ]
    )


def join_and_append(
    request: ProduceRequest, context: Context
) -> Reply | Coroutine[None, None, Reply] | Ordered:
    """Append what its transaction's coordinator lets in."""
    assert request.transactional_id is not None
    note_sender(request.transactional_id, context)
    refused = join(request, context)
    if isinstance(refused, Coroutine):
        return Ordered(append_joined(with_own_records(request), context, refused))
    return append_all_but(request, context, refused)


async def append_joined(
    request: ProduceRequest, context: Context, coming: Coroutine[None, None, Refused]
) -> Reply:
    """Append what is let in, once that is known."""
    refused = await coming
    # No await from here to the append: what was let in may end with the next one.
    reply = append_all_but(request, context, refused)
    return await reply if isinstance(reply, Coroutine) else reply


def append_all_but(
    request: ProduceRequest,
    context: Context,
    refused: Refused,
    known: Known = NOTHING_KNOWN,
) -> Reply | Coroutine[None, None, Reply]:
    """Append all batches but some that are refused."""
    if not refused:
        return append_all(request, context, known)
    reply = append_all(without(request, refused, context), context, known)
    if isinstance(reply, Coroutine):
        return answer_all_but(reply, refused)
    return None if reply is None else with_failed(reply, refused)


async def answer_all_but(reply: Coroutine[None, None, Reply], refused: Refused) -> Reply:
    """Tell why some were refused, once the others are answered."""
    answered = await reply
    return None if answered is None else with_failed(answered, refused)


def without(request: ProduceRequest, refused: Refused, context: Context) -> ProduceRequest:
    """Leave out the records that are refused: without them nothing is appended."""
    topics = []
    for topic in request.topics:
        name = name_of(topic, context) or ""
        partitions = [
            ProducePartition(each.partition_index, None)
            if (name, each.partition_index) in refused
            else each
            for each in topic.partitions
        ]
        topics.append(ProduceTopic(topic.name, topic.topic_id, partitions))
    return request.with_topics(topics)


def append_all(
    request: ProduceRequest, context: Context, known: Known = NOTHING_KNOWN
) -> Reply | Coroutine[None, None, Reply]:
    """Append every batch, and wait for no other request."""
    return PlacedRequest(request, context, known).finish()


def place_topic(
    request: ProduceRequest,
    topic: ProduceTopic,
    context: Context,
    receipts: list[Receipt],
    now_ms: int,
    known: Known,
) -> ProduceTopicResponse:
    """Give a topic's batches their places, or say why they are refused."""
    name = name_of(topic, context)
    if name is None:
        unknown = ErrorCode.UNKNOWN_TOPIC_ID
        partitions = [
            ProducePartitionResponse(each.partition_index, unknown) for each in topic.partitions
        ]
        return ProduceTopicResponse(None, topic.topic_id, partitions)
    partitions = [
        place(name, each, request, context, receipts, now_ms, known) for each in topic.partitions
    ]
    return ProduceTopicResponse(name, topic.topic_id, partitions)


def place(  # noqa: PLR0913, PLR0917 - what every batch of a request shares is passed on
    topic: str,
    batch: ProducePartition,
    request: ProduceRequest,
    context: Context,
    receipts: list[Receipt],
    now_ms: int,
    known: Known,
) -> ProducePartitionResponse:
    """Give one batch its place, or say why it is refused."""
    index, records = batch.partition_index, batch.records
    try:
        partition = context.parts.replicas.leader_of(topic, index)
        if topic.startswith("__"):
            require_not_internal(topic, context)
        header = check_field(records, context.header.version)
        assert records is not None
        found = known.get((topic, index)) if known else None
        if isinstance(found, InvalidRecords):
            raise found
        appended = partition.place(
            records,
            header,
            now_ms,
            all_in_sync=request.acks == ACKS_ALL,
            facts=found,
        )
    except KafkaError as error:
        context.parts.metrics.refused_batches += 1
        if error.code == ErrorCode.KAFKA_STORAGE_ERROR:
            check_disk(topic, index, context)
        return refusal(topic, batch, error, context)
    answer = ProducePartitionResponse(
        index,
        TAKEN,
        appended.base_offset,
        appended.append_time_ms,
        partition.log.start_offset,
    )
    receipts.append(Receipt(partition, appended, answer, header.record_count, len(records)))
    return answer


def refuse_unwritten(receipt: Receipt, error: KafkaError, context: Context) -> None:
    """Say that a batch that had its place could not be written there."""
    answer, partition = receipt.answer, receipt.partition
    answer.error_code = error.code
    answer.base_offset = answer.log_start_offset = NO_OFFSET
    answer.log_append_time_ms = NO_TIME
    context.parts.metrics.refused_batches += 1
    check_disk(partition.topic, partition.index, context)


def check_disk(topic: str, index: int, context: Context) -> None:
    """Take the partition's directory out of use if its disk is broken."""
    partition = context.replicas.find(topic, index)
    if partition is not None:
        context.replicas.check(partition)


def require_not_internal(topic: str, context: Context) -> None:
    """Refuse what would mix with a coordinator's own records."""
    if is_internal(topic) and context.header.client_id != ADMIN_CLIENT:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)


def refusal(
    topic: str, batch: ProducePartition, error: KafkaError, context: Context
) -> ProducePartitionResponse:
    """Say why a batch was refused, and where to go instead if this broker does not lead.

    As in Kafka there are words only for what is wrong with records.
    """
    index = batch.partition_index
    leader = None
    if error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
        known = context.image.partition(topic, index)
        leader = None if known is None else Leader(known.leader, known.leader_epoch)
    return ProducePartitionResponse(
        index,
        error.code,
        log_start_offset=start_offset_told(topic, batch, error, context),
        record_errors=error.record_errors if isinstance(error, InvalidRecords) else (),
        error_message=error.message if isinstance(error, InvalidRecords) else None,
        current_leader=leader,
    )


def start_offset_told(
    topic: str, batch: ProducePartition, error: KafkaError, context: Context
) -> int:
    """Return where the log begins that refused the batch; Kafka tells it for most reasons."""
    partition = context.replicas.find(topic, batch.partition_index)
    if partition is None or error.code in START_NOT_TOLD:
        return NO_OFFSET
    try:
        check_field(batch.records, context.header.version)
    except KafkaError:
        # The log was not asked.
        return NO_OFFSET
    return partition.log.start_offset


def refuse_all(request: ProduceRequest, context: Context, code: ErrorCode) -> Reply:
    """Refuse every batch for a reason that is the request's."""
    context.parts.metrics.refused_batches += 1
    answers = [
        ProduceTopicResponse(
            topic.name,
            topic.topic_id,
            [ProducePartitionResponse(each.partition_index, code) for each in topic.partitions],
        )
        for topic in each_once(request).topics
    ]
    if request.acks == ACKS_NONE:
        close_if_refused(answers, context)
        return None
    return ProduceResponse(answers)


def close_if_refused(answers: list[ProduceTopicResponse], context: Context) -> None:
    """Close on a producer that hears no answers: it is the only way to tell it to look again."""
    refused = [
        f"{topic.name}-{each.partition_index}: {each.error_code.name}"
        for topic in answers
        for each in topic.partitions
        if each.error_code != ErrorCode.NONE
    ]
    if refused:
        context.connection.close(ValueError(f"acks=0, refused {', '.join(refused)}"))


async def wait_and_answer(
    answers: list[ProduceTopicResponse],
    receipts: list[Receipt],
    to_flush: list[Partition],
    context: Context,
    request: ProduceRequest,
) -> ProduceResponse:
    """Wait until all batches are flushed as far as need be, and committed, or time is up.

    One after another, under one deadline: it takes no longer than waiting for all together.
    """
    failed: dict[tuple[str, int], KafkaError] = {}
    for partition in to_flush:
        if not await context.parts.flushing.flush(partition):
            cause = partition.log.failed or "it is tried again later"
            error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"cannot be flushed: {cause}")
            failed[partition.topic, partition.index] = error
    loop = asyncio.get_running_loop()
    deadline = loop.time() + request.timeout_ms / 1000
    for receipt in receipts:
        partition, appended = receipt.partition, receipt.appended
        left_ms = max(deadline - loop.time(), 0) * 1000
        if appended.error is None and not await partition.wait_committed(
            appended.last_offset, left_ms
        ):
            lost = not partition.is_leader
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER if lost else ErrorCode.REQUEST_TIMED_OUT
            failed.setdefault((partition.topic, partition.index), KafkaError(code))
    return with_failed(ProduceResponse(answers), failed)


def with_failed(
    response: ProduceResponse, failed: dict[tuple[str, int], KafkaError]
) -> ProduceResponse:
    """Put what went wrong with some batches in the place of what is told of them."""
    topics = [
        ProduceTopicResponse(
            topic.name,
            topic.topic_id,
            [
                ProducePartitionResponse(
                    each.partition_index, error.code, error_message=error.message
                )
                if (error := failed.get((topic.name or "", each.partition_index))) is not None
                else each
                for each in topic.partitions
            ],
        )
        for topic in response.topics
    ]
    return ProduceResponse(topics, response.throttle_ms)


async def prepare_and_append(request: ProduceRequest, context: Context) -> Reply:
    """Do off the loop what takes long with some batches, then append them all."""
    prepared = await prepare(request, context)
    refused = prepared.refused
    if request.transactional_id is not None:
        joined = join(prepared.request, context)
        refused = refused | (await joined if isinstance(joined, Coroutine) else joined)
    reply = append_all_but(prepared.request, context, refused, prepared.known)
    return await reply if isinstance(reply, Coroutine) else reply
