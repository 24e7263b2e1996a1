"""A pipeline at work on Spark: one streaming query per sink, from a start to a clean end.

A run holds the lock of the pipeline's directory, from before Spark starts. Before any query starts,
every sink's rows are built and compared with what its checkpoint is of, so a pipeline that cannot
run changes nothing. Then all queries start, and the run looks at them several times a second: it
writes the status, and ends

- once (`once=True`): when all that was there at the start is read;
- when it is asked to (`stopping`, or a request in the directory): each query first ends the
  micro-batch that it is in, if that takes no longer than a while;
- when a query fails: the others are stopped likewise, and the step is named.

However it ends, the next run goes on from the checkpoints. Also after a crash: what a sink promises
about a micro-batch that runs again is the sink's own (a topic and files: each row once).
"""

import json
import os
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from strom.pipelines.analysing import check_mode
from strom.pipelines.declaration import APPEND, BATCHES, FILES, Pipeline, Sink
from strom.pipelines.directory import Directory
from strom.pipelines.explaining import explain, step_of
from strom.pipelines.failure import ChangedError, PipelineError, StepError
from strom.pipelines.frames import (
    FORMAT,
    Frames,
    group_of,
    joins_streams,
    named,
    plan_of,
    types_of,
)
from strom.pipelines.graph import ANY_SERVER, SERVERS, Graph, nearest
from strom.pipelines.place import place_of
from strom.pipelines.progress import SinkProgress
from strom.pipelines.shape import SHUFFLES, changes, recut, recut_refusal, refusal, shape_of
from strom.pipelines.status import DONE, FAILED, RUNNING, STARTING, STOPPED, STOPPING, Status
from strom.spark.write_options import DEFAULT_PREFIX

LOOK_SECONDS = 0.2
#: Where Spark notes, beside the files of a sink, which micro-batches they are of.
FILES_LOG = "_spark_metadata"
#: A path with a file system of its own: file:/data, hdfs://…, s3a://….
WITH_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
#: How long a query may take to end the micro-batch that it is in before it is interrupted.
BATCH_END_SECONDS_MAX = 30.0

Show = Callable[[Status], None]


def now_ms() -> int:
    """Return the time of day."""
    return time.time_ns() // 1_000_000


class Query:
    """A sink's query, and what is known of its progress."""

    def __init__(self, query: StreamingQuery, sink: Sink, pipeline: str) -> None:
        self.query = query
        self.sink = sink
        self.progress = SinkProgress(sink.name, group_of(pipeline, sink.name))
        self._seen = ""

    def look(self) -> None:
        """Take in the micro-batches since the last look."""
        last = self.query.lastProgress
        if last is None or last["timestamp"] == self._seen:
            return
        for each in self.query.recentProgress:
            batch: dict[str, Any] = json.loads(each.json)
            if batch["timestamp"] > self._seen:
                self._seen = batch["timestamp"]
                self.progress = self.progress.after(batch)

    def is_between_batches(self) -> bool:
        """Whether nothing would be interrupted by a stop now."""
        return not self.query.isActive or not self.query.status["isTriggerActive"]


def _refuse_written_files(spark: SparkSession, sink: Sink) -> None:
    """Refuse files that another checkpoint has written.

    They have a log of the numbers of their micro-batches: a query that begins anew would count from
    0 and leave out, without a word, what it takes for written.
    """
    if sink.kind != FILES:
        return
    path = _where(sink.options["path"])
    with named(sink.name):
        if _exists(spark, f"{path}/{FILES_LOG}"):
            raise StepError(
                sink.name,
                f"{path} has files of another checkpoint, and Spark would leave out micro-batches "
                "that it takes for written; name another path, or move that directory away",
            )


def _where(path: str) -> str:
    """Return a path as Spark finds it, whose own process may have begun in another directory."""
    return path if WITH_SCHEME.match(path) else str(Path(path).absolute())


def _exists(spark: SparkSession, path: str) -> bool:
    """Ask the file system that Spark would write to: it may be none of this machine."""
    java: Any = spark  # what follows is not in the public interface
    found = java._jvm.org.apache.hadoop.fs.Path(path)
    files = found.getFileSystem(java._jsparkSession.sessionState().newHadoopConf())
    return bool(files.exists(found))


def _write_files(writer: DataStreamWriter, options: dict[str, str]) -> StreamingQuery:
    if columns := options.pop("partitionBy", None):
        writer = writer.partitionBy(*(each.strip() for each in columns.split(",")))
    options["path"] = _where(options["path"])
    return writer.format(options.pop("format")).options(**options).start()


def _write_batch(rows: DataFrame, options: dict[str, str]) -> None:
    """Write a micro-batch into a topic; one that Spark runs again is not written again."""
    options = {"exactlyOnce": "true", "transactionalIdPrefix": DEFAULT_PREFIX, **options}
    rows.write.format(FORMAT).mode(APPEND).options(**options).save()


class Run:
    """One run of a pipeline."""

    def __init__(
        self,
        pipeline: Pipeline,
        directory: Directory,
        open_spark: Callable[[], SparkSession],
        *,
        file: str,
        once: bool,
    ) -> None:
        self._pipeline = pipeline
        self._graph = Graph.of(pipeline)
        self._directory = directory
        self._open_spark = open_spark
        self._once = once
        started_ms = now_ms()
        self._status = Status(
            pipeline.name, file, STARTING, once, os.getpid(), started_ms, started_ms
        )
        self._queries: list[Query] = []

    def run(
        self, *, stopping: Callable[[], bool], show: Show, resets: Sequence[str] = ()
    ) -> Status:
        """Run until the end, and return the last status; raises what made the run fail."""
        with self._directory.held():
            try:
                self._say(STARTING, show)
                sinks = [self._sink_of(name) for name in resets]
                spark = self._open_spark()
                for sink in sinks:
                    _refuse_written_files(spark, sink)
                    self._directory.forget(sink.name)
                self._start(spark)
                state = self._follow(stopping, show)
            except Exception as error:
                self._abandon()
                if stopping():
                    # A signal to all processes of a group ends Spark under our hands.
                    return self._say(STOPPED, show, str(error))
                told = self._told(error)
                # On a full disk this fails too; what made the run fail is to be told.
                with suppress(PipelineError):
                    self._say(FAILED, show, str(told))
                if told is error:
                    raise
                raise told from error
            except BaseException:
                self._abandon()
                self._say(STOPPED, show)
                raise
            return self._say(state, show)

    def _abandon(self) -> None:
        """Stop what can still be stopped; Spark itself may be gone."""
        with suppress(Exception):
            self._end_queries()

    def _told(self, error: Exception) -> Exception:
        if isinstance(error, Py4JJavaError):
            return PipelineError(explain(str(error)))
        if isinstance(error, Py4JError | OSError):
            log = self._directory.path / "spark.log"
            return PipelineError(f"Spark is gone: {explain(str(error))}; see {log}")
        return error

    def _sink_of(self, name: str) -> Sink:
        sinks = {sink.name: sink for sink in self._graph.sinks}
        if name not in sinks:
            raise PipelineError(f"--reset {name}: there is no such sink; {nearest(name, sinks)}")
        return sinks[name]

    def _start(self, spark: SparkSession) -> None:
        """Check every sink, then start every query."""
        servers = self._pipeline.settings.bootstrap or ANY_SERVER
        frames = Frames(spark, self._graph, self._pipeline.name, servers)
        rows = {sink.name: frames.of(sink) for sink in self._graph.sinks}
        for sink in self._graph.sinks:
            with named(sink.name):
                check_mode(spark, rows[sink.name], sink.mode)
        # A plan that is shortened would hide what has changed in it.
        spark.conf.set("spark.sql.debug.maxToStringFields", "10000")
        self._compare(spark, rows)
        for sink in self._graph.sinks:
            with named(sink.name):
                query = self._write(sink, rows[sink.name], servers)
            self._queries.append(Query(query, sink, self._pipeline.name))

    def _compare(self, spark: SparkSession, rows: dict[str, DataFrame]) -> None:
        """Refuse sinks that do not fit their checkpoints, and keep what the checkpoints are of."""
        old = self._directory.shapes()
        shuffles = str(spark.conf.get(SHUFFLES))
        new = {}
        for sink in self._graph.sinks:
            sources = self._graph.sources_of(sink.name)
            its_rows = rows[sink.name]
            new[sink.name] = shape_of(
                sink,
                sources,
                plan_of(its_rows),
                types_of(its_rows),
                shuffles=shuffles,
                joins=joins_streams(its_rows),
            )
            if not self._directory.checkpoint(sink.name).exists():
                _refuse_written_files(spark, sink)
            elif sink.name in old:
                found = changes(old[sink.name], new[sink.name])
                if found:
                    raise ChangedError(refusal(self._pipeline.name, sink.name, found))
                other = recut(old[sink.name], new[sink.name])
                if other and self._directory.unfinished(sink.name) is not None:
                    raise ChangedError(recut_refusal(sink.name, other))
        self._directory.write_shapes({**old, **new})

    def _write(self, sink: Sink, rows: DataFrame, servers: str) -> StreamingQuery:
        writer = rows.writeStream.queryName(group_of(self._pipeline.name, sink.name))
        writer = writer.outputMode(sink.mode)
        writer = writer.option("checkpointLocation", str(self._directory.checkpoint(sink.name)))
        if self._once:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=self._pipeline.settings.every)
        if sink.kind == BATCHES:
            assert sink.write is not None
            return writer.foreachBatch(sink.write).start()
        if sink.kind == FILES:
            return _write_files(writer, dict(sink.options))
        options = {SERVERS: servers, **sink.options}
        if sink.mode == APPEND:
            return writer.format(FORMAT).options(**options).start()
        # Spark refuses to stream rows that change into a Python sink.
        return writer.foreachBatch(lambda rows, _: _write_batch(rows, options)).start()

    def _follow(self, stopping: Callable[[], bool], show: Show) -> str:
        """Look at the queries until the run ends; return how it ended."""
        while any(each.query.isActive for each in self._queries):
            self._raise_failure()
            if stopping() or self._directory.is_asked_to_stop():
                self._say(STOPPING, show)
                self._end_queries()
                self._raise_failure()
                return STOPPED
            self._look()
            self._say(RUNNING, show)
            time.sleep(LOOK_SECONDS)
        self._look()
        self._raise_failure()
        return DONE if self._once else STOPPED

    def _raise_failure(self) -> None:
        for each in self._queries:
            error = None if each.query.isActive else each.query.exception()
            if error is not None:
                text = str(error)
                nodes = self._graph.above(each.sink.name)
                told = explain(text).replace("--reset SINK", f"--reset {each.sink.name}")
                step = step_of(text, nodes)
                if step is not None or each.sink.kind == BATCHES:
                    told += self._place(each.sink)
                raise StepError(step or each.sink.name, told)

    def _place(self, sink: Sink) -> str:
        """Return where in its topics a sink's micro-batch is that was not finished."""
        batch = self._directory.unfinished(sink.name)
        place = None if batch is None else place_of(self._directory.checkpoint(sink.name), batch)
        return "" if place is None else f"; micro-batch {batch}: {place}"

    def _end_queries(self) -> None:
        """Stop the queries, each between two micro-batches if it comes there in time."""
        deadline = time.perf_counter() + BATCH_END_SECONDS_MAX
        batches = {id(each): each.progress.batch for each in self._queries}
        waiting = [each for each in self._queries if each.query.isActive]
        while waiting and time.perf_counter() < deadline:
            for each in list(waiting):
                each.look()
                if each.is_between_batches() or each.progress.batch > batches[id(each)]:
                    each.query.stop()
                    waiting.remove(each)
            time.sleep(LOOK_SECONDS if waiting else 0)
        for each in waiting:
            each.query.stop()
        self._look()

    def _look(self) -> None:
        for each in self._queries:
            each.look()

    def _say(self, state: str, show: Show, error: str | None = None) -> Status:
        found = replace(
            self._status,
            state=state,
            error=error,
            sinks=tuple(each.progress for each in self._queries),
        )
        if found != self._status or state == STARTING:
            self._status = replace(found, updated_ms=now_ms())
            self._directory.write_status(self._status)
        show(self._status)
        return self._status
