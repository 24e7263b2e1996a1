"""The writers that Spark calls: one for batches, one for streams.

`write` runs in the workers, once for each task, and has done its work when it returns: the rows of
a plain write have been acknowledged, those of an exactly-once write are committed. So there is
nothing left to do when Spark calls `commit`, and nothing that could be taken back in `abort`.

A writer is also made where nothing is written, to plan. What writes is loaded in the workers alone:
the first query waits for each process in turn.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from strom.spark.fitting import check_columns
from strom.spark.housekeeping import end_task
from strom.spark.write_options import WriteOptions

if TYPE_CHECKING:
    import pyarrow as pa

    from strom.spark.exactly_once import TaskTransaction


@dataclass
class Written(WriterCommitMessage):
    """What a task reports: how many rows it wrote, none if they were out already."""

    rows: int


class TaskWriter:
    """What a worker does, for batches and streams alike."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        check_columns(schema, options.topic)
        for each in options.warnings:
            warnings.warn(each, stacklevel=2)
        self.options = options

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Written:
        """Write the rows of a task."""
        from strom.spark.writing import write_once, write_plainly

        batches = (batch for batch in iterator if batch.num_rows)
        first = next(batches, None)
        if first is None:
            return Written(0)
        if self.options.exactly_once:
            rows = write_once(self._begin(), self.options, first, batches)
        else:
            rows = write_plainly(self.options, first, batches)
        end_task()
        return Written(rows)

    def _begin(self) -> "TaskTransaction":
        from strom.spark.writing import begin

        return begin(self.options)


class BatchWriter(TaskWriter, DataSourceArrowWriter):
    """Writes the rows of a DataFrame; in foreachBatch it may do so exactly once."""


class StreamWriter(TaskWriter, DataSourceStreamArrowWriter):
    """Writes the rows of one micro-batch after the other."""
