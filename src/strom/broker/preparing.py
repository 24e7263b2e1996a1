# Compiled by mypyc.
"""What some batches of a Produce request need before they can be appended, done off the loop.

- A topic with a `compression.type` of its own has them recompressed.
- A batch that holds much when decompressed is looked into by a thread, before it is checked; if
  the topic does not take some of its records, the thread names them.
- A log that was not used since the start reads its indexes.

A request without such a batch is told by `must_prepare`, and costs no more than that.
"""

import contextlib
from collections.abc import Mapping
from typing import Final, NamedTuple

from strom.broker.context import Context
from strom.log.cold import warmed
from strom.log.log import Log
from strom.records.batch import HEADER_SIZE, Header, read_header
from strom.records.validate import InvalidRecords, Limits, check_batch, check_field, is_heavy
from strom.records.walk import Facts, inspect_batch
from strom.replication.partition import Partition
from strom.wire.errors import KafkaError
from strom.wire.produce import ProducePartition, ProduceRequest, ProduceTopic

#: Topic and partition.
Place = tuple[str, int]
#: What was found in the records of some batches already, or why they are refused.
Known = Mapping[Place, Facts | InvalidRecords]
NOTHING_KNOWN: Final[Known] = {}


class Prepared(NamedTuple):
    """A request whose batches can be appended on the loop; those that cannot be are refused."""

    request: ProduceRequest
    known: Known
    refused: dict[Place, KafkaError]


class Task:
    """A batch for a thread, with the log that it is for."""

    __slots__ = ("header", "limits", "log", "now_ms", "records")

    def __init__(self, log: Log, records: memoryview, header: Header, now_ms: int) -> None:
        self.log = log
        self.limits = log.limits
        self.records = records
        self.header = header
        self.now_ms = now_ms

    def do(self) -> "Done":
        """Look into the batch, after it is brought into its topic's form."""
        log, records, header = self.log, self.records, self.header
        if log.needs_recompression(records):
            records = memoryview(log.recompress(records))
            header = read_header(records)
        return Done(records, look_into(records, header, self.limits, self.now_ms))


def look_into(
    records: memoryview, header: Header, limits: Limits, now_ms: int
) -> Facts | InvalidRecords:
    """Return what is found in a batch, or which records the topic does not take."""
    facts = inspect_batch(header, records)
    try:
        # Of a copy: where the time in the header is wrong, the check sets it in place.
        check_batch(header, bytearray(records[: header.size_bytes]), limits, now_ms, facts)
    except InvalidRecords as refusal:
        return refusal
    except KafkaError:
        # The loop comes to the same refusal, and takes no time for it.
        pass
    return facts


class Done:
    """A batch in its topic's form, and what was found in it."""

    __slots__ = ("outcome", "records")

    def __init__(self, records: memoryview, outcome: Facts | InvalidRecords) -> None:
        self.records = records
        self.outcome = outcome


def name_of(topic: ProduceTopic, context: Context) -> str | None:
    """Return the topic's name, also of one that is named by its id; None if there is none."""
    if topic.topic_id is None:
        return topic.name
    return context.topic_name(topic.topic_id)


def must_prepare(topic: ProduceTopic, context: Context) -> bool:
    """Whether a batch of the topic, or the log that it is for, must be prepared."""
    name = name_of(topic, context)
    replicas = context.parts.replicas
    for each in topic.partitions:
        records = each.records
        partition = replicas.find(name, each.partition_index)
        if partition is not None and records is not None and len(records) >= HEADER_SIZE:
            log = partition.log
            if not log.active.is_loaded or needs_thread(log, records):
                return True
    return False


def needs_thread(log: Log, records: memoryview) -> bool:
    """Whether the batch takes long to bring into its topic's form, or to look into."""
    return log.needs_recompression(records) or is_heavy(records)


async def prepare(request: ProduceRequest, context: Context) -> Prepared:
    """Do what is to be done off the loop; the request must have its own records.

    One thread does it for all batches: to go there and back takes longer than most of them.
    """
    refused: dict[Place, KafkaError] = {}
    tasks: dict[Place, Task] = {}
    for topic in request.topics:
        name = name_of(topic, context)
        for batch in topic.partitions:
            partition = context.replicas.find(name, batch.partition_index)
            if partition is None:
                continue
            place = partition.topic, partition.index
            try:
                task = await task_for(partition, batch.records, context)
            except KafkaError as error:
                refused[place] = error
            else:
                if task is not None:
                    tasks[place] = task
    done = await context.parts.host.offload(lambda: do_all(tasks)) if tasks else {}
    return put_together(request, context, done, refused)


async def task_for(
    partition: Partition, records: memoryview | None, context: Context
) -> Task | None:
    """Have the log ready for a batch; return what is to be done with that, if anything."""
    # An error of the disk comes again with the append, which tells it.
    with contextlib.suppress(OSError):
        await warmed(partition.log.active.offset_index_now, context.parts.host.offload)
    log = partition.log
    if records is None or len(records) < HEADER_SIZE or not needs_thread(log, records):
        return None
    return Task(log, records, check_field(records, context.header.version), context.now_ms)


def do_all(tasks: Mapping[Place, Task]) -> dict[Place, Done | KafkaError]:
    """Look into all the batches; one that cannot be brought into its form is refused alone."""
    done: dict[Place, Done | KafkaError] = {}
    for place, task in tasks.items():
        try:
            done[place] = task.do()
        except KafkaError as error:
            done[place] = error
    return done


def put_together(
    request: ProduceRequest,
    context: Context,
    done: Mapping[Place, Done | KafkaError],
    refused: dict[Place, KafkaError],
) -> Prepared:
    """Return the request as it is to be appended: without a batch nothing is."""
    known: dict[Place, Facts | InvalidRecords] = {}
    topics = []
    for topic in request.topics:
        name = name_of(topic, context) or ""
        partitions = []
        for batch in topic.partitions:
            place = name, batch.partition_index
            found = refused.get(place) or done.get(place)
            ready = batch
            if isinstance(found, KafkaError):
                refused[place] = found
                ready = ProducePartition(batch.partition_index, None)
            elif found is not None:
                ready = ProducePartition(batch.partition_index, found.records)
                known[place] = found.outcome
            partitions.append(ready)
        topics.append(ProduceTopic(topic.name, topic.topic_id, partitions))
    return Prepared(request.with_topics(topics), known, refused)


def with_own_records(request: ProduceRequest) -> ProduceRequest:
    """Copy the records out of the frame."""
    topics = [
        ProduceTopic(topic.name, topic.topic_id, [with_own(each) for each in topic.partitions])
        for topic in request.topics
    ]
    return request.with_topics(topics)


def with_own(batch: ProducePartition) -> ProducePartition:
    """Copy one partition's records."""
    records = batch.records
    copy = None if records is None else memoryview(bytearray(records))
    return ProducePartition(batch.partition_index, copy)
