"""The writers that Spark calls: one for batches, one for streams.

`write` runs in the workers, once for each task, and has done its work when it returns: the rows of
a plain write have been acknowledged, those of an exactly-once write are committed. So there is
nothing left to do when Spark calls `commit`, and nothing that could be taken back in `abort`.

What a task of a plain write leaves behind in its worker, its producer, the next one goes on with:
the broker knows it already, and there is no need to be introduced.
"""

import time
import warnings
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from strom.spark.cluster import Cluster
from strom.spark.encoding import RowEncoder, Target, check_columns
from strom.spark.exactly_once import TaskOfBatch, TaskTransaction, new_identity
from strom.spark.housekeeping import end_task
from strom.spark.options import Connection
from strom.spark.producing import Producer, WriteError
from strom.spark.write_options import Delivery, WriteOptions

if TYPE_CHECKING:
    import pyarrow as pa

#: Where Spark tells a task whose it is.
BATCH_ID = "streaming.sql.batchId"
QUERY_ID = "sql.streaming.queryId"


@dataclass
class Written(WriterCommitMessage):
    """What a task reports: how many rows it wrote, none if they were out already."""

    rows: int


class TaskWriter:
    """What a worker does, for batches and streams alike."""

    transaction_type: ClassVar[type[TaskTransaction]] = TaskTransaction

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        check_columns(schema, options.topic)
        for each in options.warnings:
            warnings.warn(each, stacklevel=2)
        self.options = options

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Written:
        """Write the rows of a task."""
        batches = (batch for batch in iterator if batch.num_rows)
        first = next(batches, None)
        if first is None:
            return Written(0)
        rows = (
            self._write_once(first, batches)
            if self.options.exactly_once
            else (self._write_plainly(first, batches))
        )
        end_task()
        return Written(rows)

    def _write_plainly(self, first: "pa.RecordBatch", rest: "Iterator[pa.RecordBatch]") -> int:
        with plain_producer(self.options.connection, self.options.delivery) as producer:
            rows = self._encode(first, rest, producer)
            producer.flush()
        return rows

    def _write_once(self, first: "pa.RecordBatch", rest: "Iterator[pa.RecordBatch]") -> int:
        transaction = self.transaction_type(self.options, task_of_batch())
        if transaction.is_written():
            # Spark goes on with a worker that has taken all that it was given.
            deque(rest, maxlen=0)
            return 0
        try:
            rows = self._encode(first, rest, transaction)
            transaction.commit()
        except BaseException:
            transaction.abort()
            raise
        return rows

    def _encode(
        self, first: "pa.RecordBatch", rest: "Iterator[pa.RecordBatch]", target: Target
    ) -> int:
        options = self.options
        encoder = RowEncoder(options.topic, options.delivery, target, _turn(), _wall_ms)
        encoder.add(first)
        rows = int(first.num_rows)
        for batch in rest:
            encoder.add(batch)
            rows += batch.num_rows
        encoder.flush()
        return rows


class BatchWriter(TaskWriter, DataSourceArrowWriter):
    """Writes the rows of a DataFrame; in foreachBatch it may do so exactly once."""


class StreamWriter(TaskWriter, DataSourceStreamArrowWriter):
    """Writes the rows of one micro-batch after the other."""


#: A worker serves few sinks; who has more of them introduces a producer for each task.
PRODUCERS_MAX = 16
_producers: dict[tuple[Connection, Delivery], Producer] = {}


@contextmanager
def plain_producer(connection: Connection, delivery: Delivery) -> Iterator[Producer]:
    """Lend this process's producer; one that has failed is not used again."""
    producer = _producers.pop((connection, delivery), None)
    if producer is None:
        producer = Producer(Cluster(connection), delivery, new_identity(connection))
    try:
        yield producer
    except BaseException:
        producer.close()
        raise
    if len(_producers) < PRODUCERS_MAX:
        _producers[connection, delivery] = producer


def task_of_batch() -> TaskOfBatch:
    """Return which task this is, as Spark tells it."""
    task = TaskContext.get()
    assert task is not None
    query_id, batch_id = task.getLocalProperty(QUERY_ID), task.getLocalProperty(BATCH_ID)
    if query_id is None or batch_id is None:
        raise WriteError(
            "Spark does not say which micro-batch this is, so exactly-once cannot hold: set the "
            "option 'exactlyOnce' to false, or write in the function of foreachBatch"
        )
    return TaskOfBatch(query_id, int(batch_id), task.partitionId())


def _turn() -> int:
    task = TaskContext.get()
    if task is None:
        return 0
    return task.partitionId() + int(task.getLocalProperty(BATCH_ID) or 0)


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
