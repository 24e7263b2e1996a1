"""How a worker writes the rows of one task.

What a task of a plain write leaves behind in its worker, its producer, the next one goes on with:
the broker knows it already, and there is no need to be introduced.
"""

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from pyspark import TaskContext

from strom.spark.cluster import Cluster
from strom.spark.encoding import RowEncoder, Target
from strom.spark.exactly_once import TaskOfBatch, TaskTransaction, new_identity
from strom.spark.options import Connection
from strom.spark.producing import Producer, WriteError
from strom.spark.write_options import Delivery, WriteOptions

#: Where Spark tells a task whose it is.
BATCH_ID = "streaming.sql.batchId"
QUERY_ID = "sql.streaming.queryId"


def write_plainly(
    options: WriteOptions, first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]
) -> int:
    """Write the rows and wait until they are acknowledged; how many there were."""
    with plain_producer(options.connection, options.delivery) as producer:
        rows = _encode(options, first, rest, producer)
        producer.flush()
    return rows


def begin(options: WriteOptions) -> TaskTransaction:
    """Begin the transaction of this task."""
    return TaskTransaction(options, task_of_batch())


def write_once(
    transaction: TaskTransaction,
    options: WriteOptions,
    first: pa.RecordBatch,
    rest: Iterator[pa.RecordBatch],
) -> int:
    """Write and commit the rows, unless they are out already; how many were written."""
    if transaction.is_written():
        # Spark goes on with a worker that has taken all that it was given.
        deque(rest, maxlen=0)
        return 0
    try:
        rows = _encode(options, first, rest, transaction)
        transaction.commit()
    except BaseException:
        transaction.abort()
        raise
    return rows


def _encode(
    options: WriteOptions, first: pa.RecordBatch, rest: Iterator[pa.RecordBatch], target: Target
) -> int:
    encoder = RowEncoder(options.topic, options.delivery, target, _turn(), _wall_ms)
    encoder.add(first)
    rows = int(first.num_rows)
    for batch in rest:
        encoder.add(batch)
        rows += batch.num_rows
    encoder.flush()
    return rows


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
