"""A checked graph as Spark's DataFrames: the rows of one sink, from its sources on.

Every sink is a query of its own, with its own frames: the group that shows its lag is an option of
its sources. What fails on the way is a StepError with the name of the source, step or sink.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody does

from strom.pipelines.declaration import FAIL, FRAME, TABLE, Node, Sink, Source, Step
from strom.pipelines.explaining import explain
from strom.pipelines.failure import StepError
from strom.pipelines.graph import SERVERS, Graph, nearest
from strom.pipelines.progress import BAD_RECORDS_OF
from strom.spark.values import ALL_DIGITS, Values

FORMAT = "strom"
GROUP = "kafka.group.id"


def group_of(pipeline: str, sink: str) -> str:
    """Return the consumer group that shows a sink's lag."""
    return f"{pipeline}.{sink}"


class Frames:
    """Builds the frames of sinks."""

    def __init__(self, spark: SparkSession, graph: Graph, pipeline: str, servers: str) -> None:
        self._spark = spark
        self._graph = graph
        self._pipeline = pipeline
        self._servers = servers

    def of(self, sink: Sink) -> DataFrame:
        """Return the rows that go into a sink."""
        frames: dict[str, DataFrame] = {}
        for node in self._graph.above(sink.name):
            with named(node.name):
                frames[node.name] = self._build(node, sink, frames)
        return frames[sink.name]

    def _build(self, node: Node, sink: Sink, frames: Mapping[str, DataFrame]) -> DataFrame:
        match node:
            case Source():
                return self._source(node, sink)
            case Step():
                return self._step(node, frames)
            case Sink():
                return _rows(node, frames[node.of])

    def _source(self, source: Source, sink: Sink) -> DataFrame:
        if source.kind == FRAME:
            assert source.load is not None
            return _checked(source.load(self._spark))
        options = {SERVERS: self._servers, **source.options}
        if source.kind == TABLE:
            options = {**options, "readAnew": "true"}
            return _columns(
                source, newest(self._spark.read.format(FORMAT).options(**options).load())
            )
        options.setdefault(GROUP, group_of(self._pipeline, sink.name))
        if sink.takes_dead_letters:
            options["includeHeaders"] = "true"
        records = self._spark.readStream.format(FORMAT).options(**options).load()
        return (_dead_letters if sink.takes_dead_letters else _columns)(source, records)

    def _step(self, step: Step, frames: Mapping[str, DataFrame]) -> DataFrame:
        inputs: dict[str, Any] = {name: frames[name] for name in step.inputs}
        if isinstance(step.transform, str):
            return self._spark.sql(step.transform, **inputs)
        return _checked(step.transform(**inputs))


def newest(records: DataFrame) -> DataFrame:
    """Return the newest record of each key, without keys whose newest value is null.

    In a partition the last one counts, as for compaction. A key is in two partitions if their
    number has grown; then the later one counts.
    """
    keyed = records.where("key IS NOT NULL")
    last = _latest(keyed, F.col("offset"), "key", "topic", "partition")
    return _latest(last, F.struct("timestamp", "topic", "partition"), "key").where(
        "value IS NOT NULL"
    )


def _latest(records: DataFrame, order: Column, *of: str) -> DataFrame:
    latest = records.groupBy(*of).agg(F.max_by(F.struct("*"), order).alias("record"))
    return latest.select("record.*")


def _columns(source: Source, records: DataFrame) -> DataFrame:
    """Return the values as columns, beside key, time and place of the record."""
    if source.body is None:
        return records
    beside = {
        "key": F.col("key").cast("string"),
        "time": F.col("timestamp"),
        **{each: F.col(each) for each in ("topic", "partition", "offset")},
    }
    count_as = None if source.bad == FAIL else f"{BAD_RECORDS_OF}{source.name}"
    read = Values(source.body, f"source '{source.name}': ")
    return read.columns(records, source.bad, beside=beside, count_as=count_as)


def _dead_letters(source: Source, records: DataFrame) -> DataFrame:
    """Return the records whose values cannot be read, as they go into a topic."""
    assert source.body is not None
    return Values(source.body).dead_letters(records, count_as=f"{BAD_RECORDS_OF}{source.name}")


def _rows(sink: Sink, rows: DataFrame) -> DataFrame:
    """Return rows as the sink takes them."""
    if not rows.isStreaming:
        raise StepError(
            sink.name,
            f"'{sink.of}' is no stream, so there is nothing to follow: at least one source on the "
            "way must be a topic",
        )
    if sink.key is None:
        return rows
    if sink.key not in rows.columns:
        raise StepError(
            sink.name,
            f"key = '{sink.key}' is no column of '{sink.of}': {nearest(sink.key, rows.columns)}",
        )
    return rows.select(
        F.col(sink.key).cast("string").alias("key"),
        F.to_json(F.struct("*"), ALL_DIGITS).alias("value"),
    )


def _checked(found: object) -> DataFrame:
    if not hasattr(found, "writeStream"):
        raise TypeError(
            f"it returned {type(found).__name__}, not a DataFrame: is a return missing?"
        )
    return found  # type: ignore[return-value]


@contextmanager
def named(name: str) -> Iterator[None]:
    """Tell what goes wrong in the block with the name of a source, step or sink."""
    try:
        yield
    except StepError:
        raise
    except (PySparkException, Py4JJavaError) as error:
        raise StepError(name, explain(str(error))) from error
    except Exception as error:  # whatever a step's author did
        raise StepError(name, f"{type(error).__name__}: {error}") from error


def plan_of(rows: DataFrame) -> str:
    """Return Spark's analysed plan of the rows."""
    plan: Any = rows._jdf  # the plan is not in the public interface
    return str(plan.queryExecution().analyzed().toString())


def types_of(rows: DataFrame) -> list[str]:
    """Return the columns with their types of each group over a stream, as Spark writes them."""
    plan: Any = rows._jdf  # as above
    return list(_types_in(plan.queryExecution().analyzed()))


def joins_streams(rows: DataFrame) -> bool:
    """Return whether a stream is joined with a stream, be it with itself."""
    plan: Any = rows._jdf  # as above
    return _joins_in(plan.queryExecution().analyzed())


def _joins_in(plan: Any) -> bool:  # noqa: ANN401 - Java's
    children = [plan.children().apply(number) for number in range(plan.children().size())]
    if plan.nodeName() == "Join" and all(each.isStreaming() for each in children):
        return True
    return any(_joins_in(each) for each in children)


def _types_in(plan: Any) -> Iterator[str]:  # noqa: ANN401 - Java's
    if plan.isStreaming() and plan.nodeName() == "Aggregate":
        yield str(plan.schema().simpleString())
    children = plan.children()
    for number in range(children.size()):
        yield from _types_in(children.apply(number))
