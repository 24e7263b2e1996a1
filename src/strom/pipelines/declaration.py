"""A pipeline as its author writes it: named sources, steps and sinks, and the settings of the run.

    from pyspark.sql import DataFrame
    from strom.pipelines import Pipeline

    pipeline = Pipeline("rides", bootstrap="localhost:9092")
    pipeline.topic("rides", json="rider string, km double")

    @pipeline.step
    def long_rides(rides: DataFrame) -> DataFrame:
        return rides.where("km > 10")

    pipeline.to_topic("long-rides", of="long_rides", key="rider")

A step's inputs are its parameters, as names of sources or other steps; in SQL they stand in braces:
`SELECT * FROM {rides}`. Nothing is looked up while the file is read, so the order of declarations
does not matter; `graph` checks them all at once. Nothing here knows Spark.
"""

import inspect
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from strom.pipelines.failure import DeclarationError

Function = TypeVar("Function", bound=Callable[..., Any])

#: What becomes of records that are not what `json` says.
BAD_RECORDS = ("fail", "skip", "keep")
#: What of a result a sink gets: new rows, changed rows, or all rows, each time.
APPEND = "append"
MODES = (APPEND, "update", "complete")

TOPIC, TABLE, FRAME = "topic", "table", "frame"
FILES, BATCHES = "files", "batches"


@dataclass(frozen=True, slots=True)
class Source:
    """Where rows come from: a topic as a stream, a topic as a table, or a function's frame."""

    name: str
    kind: str
    options: Mapping[str, str] = field(default_factory=dict)
    #: The columns in the JSON of a record's value; None leaves the bytes.
    json: str | None = None
    bad: str = "fail"
    load: Callable[..., Any] | None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        """A source has none."""
        return ()


@dataclass(frozen=True, slots=True)
class Step:
    """Rows from other rows: a function of frames, or a query."""

    name: str
    inputs: tuple[str, ...]
    transform: Callable[..., Any] | str
    about: str = ""


@dataclass(frozen=True, slots=True)
class Sink:
    """Where rows go: one streaming query each, with a checkpoint of its own."""

    name: str
    kind: str
    of: str
    options: Mapping[str, str] = field(default_factory=dict)
    mode: str = "append"
    #: The column that is a record's key; the value is then JSON of all columns.
    key: str | None = None
    write: Callable[..., Any] | None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        """What is written."""
        return (self.of,)


Node = Source | Step | Sink


@dataclass(frozen=True, slots=True)
class Settings:
    """How a pipeline runs."""

    bootstrap: str | None
    #: How often a micro-batch begins; "0 seconds": as soon as the one before is done.
    every: str
    #: Where Spark runs.
    master: str
    #: Settings of Spark.
    spark: Mapping[str, str]


class Pipeline:
    """Collects what a pipeline is made of."""

    def __init__(
        self,
        name: str,
        *,
        bootstrap: str | None = None,
        every: str = "1 second",
        master: str = "local[*]",
        spark: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.settings = Settings(bootstrap, every, master, dict(spark or {}))
        self.nodes: list[Node] = []

    def topic(
        self,
        name: str,
        topic: str | None = None,
        *,
        json: str | None = None,
        bad: str = "fail",
        **options: str,
    ) -> None:
        """Declare a topic as a stream of rows.

        With `json`, columns such as "rider string, km double", the rows are `key` (text), `time`,
        `topic`, `partition`, `offset` and those columns; without it they are as Spark's connector
        has them. `bad` says what becomes of a record that is no such JSON: "fail" ends the run
        with the record's place, "skip" leaves it out, "keep" has its text in a column `bad`.
        """
        given = options if SUBSCRIBING & options.keys() else {"subscribe": topic or name, **options}
        self.nodes.append(Source(name, TOPIC, {**READING, **given}, json, bad))

    def table(
        self, name: str, topic: str | None = None, *, json: str | None = None, **options: str
    ) -> None:
        """Declare a topic as a table: the newest value of each key, as it is when a run begins.

        A key whose newest value is null is not in it.
        """
        given = {**COMMITTED, "subscribe": topic or name, **options}
        self.nodes.append(Source(name, TABLE, given, json))

    def source(self, load: Function) -> Function:
        """Declare a source by a function of the Spark session; its name is the source's."""
        self.nodes.append(Source(load.__name__, FRAME, load=load))
        return load

    def step(self, transform: Function) -> Function:
        """Declare a step by a function; its parameters name the inputs."""
        inputs = tuple(inspect.signature(transform).parameters)
        about = (inspect.getdoc(transform) or "").partition("\n")[0]
        self.nodes.append(Step(transform.__name__, inputs, transform, about))
        return transform

    def sql(self, name: str, query: str) -> None:
        """Declare a step by a query; its inputs stand in braces: `SELECT * FROM {rides}`."""
        try:
            pieces = list(string.Formatter().parse(query))
        except ValueError as error:
            problem = f"step '{name}': {error} in the query; a brace that names no input is doubled"
            raise DeclarationError([problem]) from None
        inputs = dict.fromkeys(name for _, name, _, _ in pieces if name is not None)
        self.nodes.append(Step(name, tuple(inputs), query))

    def to_topic(
        self,
        name: str,
        *,
        of: str,
        key: str | None = None,
        mode: str = "append",
        **options: str,
    ) -> None:
        """Write to a topic; `topic` is the sink's name unless an option says.

        Rows that are final (`mode` append) are written exactly once, rows that change at least
        once: a changelog, in which the newest of a key counts.

        With `key`, the name of a column, a record has that column as its key and all columns as
        JSON for its value. Without it the rows have a column `value`, and maybe `key`, `headers`
        and `partition`.
        """
        self.nodes.append(Sink(name, TOPIC, of, {"topic": name, **options}, mode, key))

    def to_files(self, name: str, *, of: str, path: str, **options: str) -> None:
        """Write to files under a path, Parquet unless the option `format` says otherwise."""
        self.nodes.append(Sink(name, FILES, of, {"format": "parquet", "path": path, **options}))

    def to_batches(self, *, of: str, mode: str = "append") -> Callable[[Function], Function]:
        """Declare a sink by a function that is called with each micro-batch and its number.

        A batch may come a second time after a crash, with the same number: write it so that this
        changes nothing.
        """

        def declare(write: Function) -> Function:
            self.nodes.append(Sink(write.__name__, BATCHES, of, mode=mode, write=write))
            return write

        return declare


#: The options of a topic that say what is read; one of them must be there.
SUBSCRIBING = frozenset({"subscribe", "subscribePattern", "assign"})
#: What another pipeline writes exactly once is there once for those who read what is committed.
COMMITTED = {"kafka.isolation.level": "read_committed"}
#: A pipeline begins with what is there.
READING = {**COMMITTED, "startingOffsets": "earliest"}
