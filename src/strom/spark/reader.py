"""The readers that Spark calls: one for batches, one for streams, over what they share.

They are two classes because Spark plans no partitions, without a word, for a batch reader that is
a stream reader as well. Methods with names in Java's manner are Spark's.

A reader lives in two places: planning on the driver, in one process per query, and `read` in the
workers, on a copy. Nothing that planning sets is there in a worker, but for the task itself. What
decodes records is loaded in the workers alone: the first query waits for each process in turn.
"""

import secrets
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from strom.spark.changes import fresh_places, starts, tell_losses
from strom.spark.clock import now_ms
from strom.spark.cluster import Topic
from strom.spark.committing import Commits
from strom.spark.housekeeping import end_task
from strom.spark.options import ReadOptions
from strom.spark.pacing import Delay, limited
from strom.spark.places import Place, Progress
from strom.spark.planning import Planner, partitions_of, plan_batch, report_loss
from strom.spark.task import Task

if TYPE_CHECKING:
    import pyarrow as pa

    from strom.spark.planning import Topics


class Share(NamedTuple):
    """The tasks that one of several workers takes, of a read that is planned where it runs."""

    number: int
    of: int


class TaskReader:
    """What a worker does, for batches and streams alike."""

    def __init__(self, options: ReadOptions) -> None:
        self.options = options

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """Yield the records of a task as Arrow's batches."""
        from strom.records.columns import Columns
        from strom.spark.arrow import to_arrow
        from strom.spark.fetching import RangeReader

        options = self.options
        for task in self._tasks(partition.value):
            reader = RangeReader(
                task,
                options.connection,
                lambda what: report_loss(what, options.fails_on_data_loss),
            )
            for taken in reader.read(Columns(options.includes_headers)):
                yield to_arrow(taken, task.place)
        end_task()

    def _tasks(self, planned: Task | Share | None) -> list[Task]:
        if isinstance(planned, Share):
            return plan_batch(Planner(self.options))[planned.number :: planned.of]
        return [] if planned is None else [planned]


class BatchReader(TaskReader, DataSourceReader):
    """Reads what there is between two points."""

    def partitions(self) -> list[InputPartition]:
        """Plan the tasks; what comes in after that is not read.

        Spark asks once for a frame, however often it is used: beside a stream it would stay as it
        is when the first micro-batch begins. With `readAnew` the plan is made in the tasks.
        """
        planner = Planner(self.options)
        if self.options.reads_anew:
            places = partitions_of(planner.subscribed(), self.options.subscription)
            count = max(1, len(places))
            return [InputPartition(Share(number, count)) for number in range(count)]
        return [InputPartition(task) for task in plan_batch(planner)]


class StreamReader(TaskReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads what comes in, one micro-batch after the other."""

    def __init__(self, options: ReadOptions) -> None:
        super().__init__(options)
        self._planner = Planner(options)
        self._commits = Commits(options)
        self._delay: Delay | None = None
        if options.min_offsets is not None:
            self._delay = Delay(options.min_offsets, options.max_trigger_delay_ms)
        #: Topics and ends as they were seen last.
        self._seen: tuple[dict[str, Topic], dict[Place, int]] | None = None
        #: With the trigger availableNow, what was seen first is read and no more.
        self._stops = False

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return where a new query begins; one with a checkpoint goes on from there.

        Spark asks again when it runs the first micro-batch, and when it runs it again after a
        restart. The answer may be another one by then: so what counts is in that batch's end.
        """
        topics = self._planner.subscribed()
        offsets = self._planner.resolve(self.options.starting, topics, "startingOffsets")
        return Progress(offsets, _ids(topics), secrets.token_hex(4), began=offsets).write()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return how much one micro-batch takes, as the options say."""
        if self.options.max_offsets is not None:
            return ReadMaxRows(self.options.max_offsets)
        if self.options.min_offsets is not None:
            return ReadMinRows(self.options.min_offsets)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Read what is there now, in as many micro-batches as it takes, and then end."""
        self._stops = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Return where the next micro-batch ends.

        It is asked for when the one before is done with, and that is when progress is committed:
        Spark's own call for it comes with the next micro-batch, on a quiet topic never.
        """
        before = Progress.read(start)
        self._commits.commit(before, is_last=False)
        if not (self._stops and self._seen):
            topics = self._planner.topics()
            self._seen = topics, self._planner.latest(topics, before.offsets)
        topics, end = self._seen
        if self._stops and before.offsets == end:
            self._commits.commit(before, is_last=True)
        ids = _ids(topics)
        if not isinstance(limit, ReadAllAvailable):
            fresh = fresh_places(before, end.keys(), ids)
            begin = {**before.offsets, **self._planner.earliest(fresh, topics)}
            if self._waits(begin, end):
                return start
            if isinstance(limit, ReadMaxRows):
                end = limited(begin, end, limit.max_rows)
        if (end, ids) == (before.offsets, before.ids):
            return start
        began = before.offsets if before.began == before.offsets else None
        return Progress(end, ids, before.query or secrets.token_hex(4), began).write()

    def _waits(self, begin: dict[Place, int], end: dict[Place, int]) -> bool:
        if self._delay is None or self._stops:
            return False
        return self._delay.holds_back(begin, end, now_ms=now_ms())

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """Return how far the topics went when they were last seen, for the query's progress."""
        if self._seen is None:
            return None
        topics, end = self._seen
        return Progress(end, _ids(topics), "").write()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Plan the tasks of a micro-batch; planned again they are the same."""
        before, after = Progress.read(start), Progress.read(end)
        if after.began is not None:
            before = before._replace(offsets=after.began)
        topics = self._seen[0] if self._seen else self._planner.topics()
        ids = _ids(topics)
        places = partitions_of(topics, self.options.subscription) & after.offsets.keys()
        earliest = self._planner.earliest(fresh_places(before, places, ids), topics)
        begin = starts(before, after, ids, earliest)
        tell_losses(before, after, ids, begin, self._planner.lose)
        return [InputPartition(task) for task in self._planner.tasks(begin, after.offsets, topics)]


def _ids(topics: "Topics") -> dict[str, Any]:
    return {name: topic.id for name, topic in topics.items()}
