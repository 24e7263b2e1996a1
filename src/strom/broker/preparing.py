"""What some batches of a Produce request need before they can be appended, done off the loop.

- A topic with a `compression.type` of its own has them recompressed.
- A batch that holds much when decompressed is looked into by a thread, before it is checked.
- A log that was not used since the start reads its indexes.

A request without such a batch is told by `must_prepare`, and costs no more than that.
"""

import contextlib
from collections.abc import Mapping
from typing import Final, NamedTuple

from strom.broker.context import Context
from strom.log.cold import warmed
from strom.log.log import Log
from strom.records.batch import HEADER_SIZE, read_header
from strom.records.validate import check_field, is_heavy
from strom.records.walk import Facts, inspect_batch
from strom.replication.partition import Partition
from strom.wire.errors import KafkaError
from strom.wire.produce import ProducePartition, ProduceRequest, ProduceTopic

#: Topic and partition.
Place = tuple[str, int]
#: What was found in the records of some batches already.
Known = Mapping[Place, Facts]
NOTHING_KNOWN: Final[Known] = {}


class Prepared(NamedTuple):
    """A request whose batches can be appended on the loop; those that cannot be are refused."""

    request: ProduceRequest
    known: Known
    refused: dict[Place, KafkaError]


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
    """Do what is to be done off the loop; the request must have its own records."""
    known: dict[Place, Facts] = {}
    refused: dict[Place, KafkaError] = {}
    topics = []
    for topic in request.topics:
        name = name_of(topic, context)
        partitions = []
        for batch in topic.partitions:
            partition = context.replicas.find(name, batch.partition_index)
            ready = batch
            if partition is not None:
                try:
                    ready = await prepare_batch(partition, batch, context, known)
                except KafkaError as error:
                    # Without a batch nothing is appended; why not is told instead of that.
                    refused[partition.topic, partition.index] = error
                    ready = ProducePartition(batch.partition_index, None)
            partitions.append(ready)
        topics.append(ProduceTopic(topic.name, topic.topic_id, partitions))
    return Prepared(request.with_topics(topics), known, refused)


async def prepare_batch(
    partition: Partition, batch: ProducePartition, context: Context, known: dict[Place, Facts]
) -> ProducePartition:
    """Prepare one batch and its log; return the batch as it is to be appended."""
    offload = context.parts.host.offload
    # An error of the disk comes again with the append, which tells it.
    with contextlib.suppress(OSError):
        await warmed(partition.log.active.offset_index_now, offload)
    log, records = partition.log, batch.records
    if records is None or len(records) < HEADER_SIZE or not needs_thread(log, records):
        return batch
    header = check_field(records, context.header.version)

    def work() -> tuple[memoryview, Facts]:
        if not log.needs_recompression(records):
            return records, inspect_batch(header, records)
        changed = memoryview(log.recompress(records))
        return changed, inspect_batch(read_header(changed), changed)

    changed, known[partition.topic, partition.index] = await offload(work)
    return ProducePartition(batch.partition_index, changed)


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
