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
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from strom.pipelines.failure import DeclarationError

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from strom.spark.bodies.body import Body

Function = TypeVar("Function", bound=Callable[..., Any])
#: What may be given for an option; Spark has them as texts.
Given = str | bool | int | float | Path

#: What becomes of records whose values are not what `json`, `avro` or `protobuf` says.
FAIL, SKIP, KEEP = BAD_RECORDS = ("fail", "skip", "keep")
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
    #: What the values are, with the columns in them; None leaves the bytes.
    body: "Body | None" = None
    bad: str = FAIL
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
    #: Whether it gets the records that its source could not read, and nothing else.
    takes_dead_letters: bool = False

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

    def topic(  # noqa: PLR0913 - each but the names with its own at the call
        self,
        name: str,
        topic: str | None = None,
        *,
        json: str | None = None,
        avro: "str | Path | Mapping[str, Any] | None" = None,
        protobuf: "tuple[str | Path | bytes, str] | type[Message] | None" = None,
        bad: str = FAIL,
        dead_letters: str | None = None,
        **options: Given,
    ) -> None:
        """Declare a topic as a stream of rows.

        With `json`, columns such as "rider string, km double", the rows are `key` (text), `time`,
        `topic`, `partition`, `offset` and those columns; so they are with `avro`, a schema or its
        file, and `protobuf`, a file of descriptors and a message's full name, or its class.
        Without any of them they are as Spark's connector has them.

        `bad` says what becomes of a record whose value cannot be read so: "fail" ends the run with
        the record's place and the reason, "skip" leaves it out, "keep" has it in a column `bad`.
        `dead_letters` names a topic into which such records are written, as they are, with the
        reason in headers; all other readers of the source do without them.
        """
        given = {**READING, **_subscribed(topic or name, options)}
        chosen = SKIP if dead_letters is not None and bad == FAIL else bad
        body = body_of(name, json=json, avro=avro, protobuf=protobuf)
        self.nodes.append(Source(name, TOPIC, given, body, chosen))
        if dead_letters is not None:
            sink = f"{name}-dead-letters"
            into = {"topic": dead_letters}
            self.nodes.append(Sink(sink, TOPIC, name, into, takes_dead_letters=True))

    def table(
        self,
        name: str,
        topic: str | None = None,
        *,
        json: str | None = None,
        avro: "str | Path | Mapping[str, Any] | None" = None,
        protobuf: "tuple[str | Path | bytes, str] | type[Message] | None" = None,
        **options: Given,
    ) -> None:
        """Declare a topic as a table: the newest value of each key, as it is at a micro-batch.

        A key whose newest value is null is not in it. Each micro-batch reads it anew.
        """
        given = {**COMMITTED, **_subscribed(topic or name, options)}
        body = body_of(name, json=json, avro=avro, protobuf=protobuf)
        self.nodes.append(Source(name, TABLE, given, body))

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
        **options: Given,
    ) -> None:
        """Write to a topic; `topic` is the sink's name unless an option says.

        Rows are written exactly once: those that are final (`mode` append), and those that change
        (update, complete), which are a changelog, in which the newest of a key counts.

        With `key`, the name of a column, a record has that column as its key and all columns as
        JSON for its value. Without it the rows have a column `value`, and maybe `key`, `headers`
        and `partition`.
        """
        self.nodes.append(Sink(name, TOPIC, of, {"topic": name, **_texts(options)}, mode, key))

    def to_files(self, name: str, *, of: str, path: str | Path, **options: Given) -> None:
        """Write to files under a path, Parquet unless the option `format` says otherwise."""
        # Spark knows options in any case, and these are not Spark's.
        own = {OWN_OF_FILES.get(option.lower(), option): options[option] for option in options}
        given = _texts({"format": "parquet", "path": path, **own})
        self.nodes.append(Sink(name, FILES, of, given))

    def to_batches(self, *, of: str, mode: str = "append") -> Callable[[Function], Function]:
        """Declare a sink by a function that is called with each micro-batch and its number.

        A batch may come a second time after a crash, with the same number: write it so that this
        changes nothing.
        """

        def declare(write: Function) -> Function:
            self.nodes.append(Sink(write.__name__, BATCHES, of, mode=mode, write=write))
            return write

        return declare


def _texts(options: Mapping[str, Given]) -> dict[str, str]:
    """Return options as Spark writes them."""
    for name, value in options.items():
        if not isinstance(value, Given):
            raise DeclarationError(
                [f"option '{name}' = {value!r} is no text, number, truth or path"]
            )
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in options.items()
    }


def _subscribed(topic: str, options: Mapping[str, Given]) -> dict[str, str]:
    """Return the options of a source, with its topic unless they say what is read."""
    given = _texts(options)
    return given if SUBSCRIBING & given.keys() else {"subscribe": topic, **given}


def body_of(
    source: str,
    *,
    json: str | None,
    avro: "str | Path | Mapping[str, Any] | None",
    protobuf: "tuple[str | Path | bytes, str] | type[Message] | None",
) -> "Body | None":
    """Return what a source's values are; its schema is looked at here."""
    # Loaded here: a pipeline of bytes does without.
    from strom.spark.bodies.body import SchemaError
    from strom.spark.bodies.given import avro_body, json_body, protobuf_body

    if sum(each is not None for each in (json, avro, protobuf)) > 1:
        raise DeclarationError([f"source '{source}': json, avro or protobuf, one of them"])
    try:
        if avro is not None:
            return avro_body(avro)
        if protobuf is not None:
            pair = protobuf if isinstance(protobuf, tuple) else (protobuf, None)
            return protobuf_body(*pair)
        return None if json is None else json_body(json)
    except SchemaError as error:
        raise DeclarationError([f"source '{source}': {error}"]) from None


#: What files are and how they lie; all other options are for Spark.
OWN_OF_FILES = {"format": "format", "partitionby": "partitionBy"}
#: The options of a topic that say what is read; one of them must be there.
SUBSCRIBING = frozenset({"subscribe", "subscribePattern", "assign"})
#: What another pipeline writes exactly once is there once for those who read what is committed.
COMMITTED = {"kafka.isolation.level": "read_committed"}
#: A pipeline begins with what is there.
READING = {**COMMITTED, "startingOffsets": "earliest"}
