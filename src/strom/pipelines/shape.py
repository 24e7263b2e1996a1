"""What the checkpoint of a sink depends on, and whether it still fits.

A checkpoint holds how far each source was read and what the stateful operators remember. Spark
finds some changes that do not fit, late and in its own words; others it takes up silently: with a
`sum` that has become a `max`, or a window that is longer now, old state would be mixed into new
results. So each sink's shape is kept beside its checkpoint and compared at each start:

- the streams that it reads, and its target;
- its stateful operators, as Spark's analysed plan has them, without the numbers that Spark
  gives to columns;
- the types of what its groups have: the plan does not show them, and a sum of whole numbers is
  kept otherwise than one of others;
- its mode, if it has state: what is remembered until it is final would, from one mode to
  another, never be written.

Stateless steps may change freely between two runs.

A sink of a topic knows what it has written by task. So where a micro-batch was not finished, what
says which task gets which rows must not have changed either, or rows would be left out or doubled.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from strom.pipelines.declaration import FRAME, TABLE, TOPIC, Sink, Source

#: Operators of a plan that keep state; a window is a projection below one.
STATEFUL = re.compile(
    r"(Aggregate|Deduplicate|FlatMapGroupsInPandasWithState|TransformWithState|FlatMapGroupsWithState)"
)
WINDOW = re.compile(r"named_struct\(start, .*? AS \w*window\w*")
JOIN = "Join "
#: The mark of an operator whose rows are a stream; others begin anew in each micro-batch.
STREAMING = "~"
#: What Spark numbers anew in each run.
NUMBERS = re.compile(r"#\d+L?|(?<=plan_id=)\d+|-T\d+ms")
#: The lines that draw the tree.
BRANCHES = re.compile(r"^[\s:+|-]*")
#: The options of a source that say what is read, not from where or how fast.
WHAT_IS_READ = ("subscribe", "subscribePattern", "assign")
#: Those that say how what is read is cut into tasks.
HOW_IT_IS_CUT = ("minPartitions", "maxRecordsPerPartition")
SHUFFLES = "spark.sql.shuffle.partitions"
PREFIX = "transactionalIdPrefix"
REPARTITION = re.compile(r"(Repartition|RebalancePartitions)")


class Shape(NamedTuple):
    """What a checkpoint depends on."""

    streams: dict[str, str]
    target: str
    operators: list[str]
    #: Empty in what was kept before there was this field; then they are not compared.
    types: tuple[str, ...] = ()
    #: What says which task gets which rows; empty where that is nobody's concern, or not known.
    tasks: tuple[str, ...] = ()
    #: Empty in what was kept before there was this field.
    mode: str = ""

    def write(self) -> dict[str, Any]:
        """Return it for a file."""
        return self._asdict()

    @classmethod
    def read(cls, value: Mapping[str, Any]) -> "Shape":
        """Read what `write` returned."""
        return cls(
            dict(value["streams"]),
            value["target"],
            list(value["operators"]),
            tuple(value.get("types", ())),
            tuple(value.get("tasks", ())),
            value.get("mode", ""),
        )


def shape_of(
    sink: Sink,
    sources: Sequence[Source],
    plan: str,
    types: Sequence[str] = (),
    *,
    shuffles: str = "",
    joins: bool = False,
) -> Shape:
    """Return the shape of a sink from what is above it and from Spark's analysed plan of it.

    `shuffles` is how many partitions Spark's settings have it shuffle into, `joins` whether a
    stream is joined with a stream, which may be itself.
    """
    streams = {
        source.name: next(
            (f"{key}={source.options[key]}" for key in WHAT_IS_READ if key in source.options), FRAME
        )
        for source in sources
        if source.kind != TABLE
    }
    target = sink.options.get("path") or sink.options.get("topic") or ""
    kept = operators(plan, joins=joins or len(streams) > 1)
    tasks = tuple(_tasks(sink, sources, plan, shuffles)) if sink.kind == TOPIC else ()
    where = f"{sink.kind} {target}".strip()
    return Shape(streams, where, kept, tuple(types), tasks, sink.mode)


def _tasks(sink: Sink, sources: Iterable[Source], plan: str, shuffles: str) -> Iterator[str]:
    yield f"{SHUFFLES}={shuffles}"
    yield from _given(sink, (PREFIX,))
    for source in sources:
        if source.kind != TABLE:
            yield from (f"{each} of '{source.name}'" for each in _given(source, HOW_IT_IS_CUT))
    yield from (line for line in _streaming(plan) if REPARTITION.match(line))


def _given(node: Source | Sink, names: Sequence[str]) -> list[str]:
    """Return those of the options that were given; Spark knows them in any case."""
    given = {name.lower(): value for name, value in node.options.items()}
    return [f"{name}={given[name.lower()]}" for name in names if name.lower() in given]


def _streaming(plan: str) -> Iterator[str]:
    """Yield the operators of a plan whose rows are a stream, without what Spark numbers anew."""
    for line in plan.splitlines():
        text = NUMBERS.sub("", BRANCHES.sub("", line)).strip()
        if text.startswith(STREAMING):
            yield text.removeprefix(STREAMING)


def operators(plan: str, *, joins: bool) -> list[str]:
    """Return the lines of a plan on which state depends; joins only count between streams."""
    found = []
    for text in _streaming(plan):
        if STATEFUL.match(text) or (joins and text.startswith(JOIN)):
            found.append(text)
        elif window := WINDOW.search(text):
            found.append(window[0])
    return found


def changes(old: Shape, new: Shape) -> list[str]:
    """Return in words what has changed so that the old checkpoint does not fit any more."""
    found = []
    gone = sorted(f"'{name}'" for name in old.streams.keys() - new.streams.keys())
    come = sorted(f"'{name}'" for name in new.streams.keys() - old.streams.keys())
    if gone:
        found.append(f"it no longer reads {', '.join(gone)}")
    if come:
        found.append(f"it reads {', '.join(come)} as well now")
    found += [
        f"'{name}' was {old.streams[name]} and is {new.streams[name]} now"
        for name in sorted(old.streams.keys() & new.streams.keys())
        if old.streams[name] != new.streams[name]
    ]
    if old.target != new.target:
        found.append(f"it went to {old.target} and goes to {new.target} now")
    if old.mode and old.mode != new.mode and old.operators:
        found.append(f"its mode was {old.mode} and is {new.mode} now")
    if old.operators != new.operators:
        found.append("what it keeps in its state has changed: " + _difference(old, new))
    elif old.types and old.types != new.types:
        pairs = zip(old.types, new.types, strict=False)
        before, now = next((each for each in pairs if each[0] != each[1]), (old.types, new.types))
        found.append(f"the types in its state have changed: {before} is {now} now")
    return found


def recut(old: Shape, new: Shape) -> str | None:
    """Return in words what gives rows to other tasks than before; None: nothing does."""
    if not old.tasks or old.tasks == new.tasks:
        return None
    gone = [f"{each} has gone" for each in old.tasks if each not in new.tasks]
    come = [f"{each} has come" for each in new.tasks if each not in old.tasks]
    return ", ".join(map(shorten, gone + come)) or "their order is another one"


def recut_refusal(sink: str, found: str) -> str:
    """Return what to say of a sink whose unfinished micro-batch would be cut otherwise."""
    return (
        f"the last micro-batch of sink '{sink}' was not finished, and its rows would go to other "
        f"tasks now: {found}. What it has written could not be told from what it has not. Run it "
        "as it was until that micro-batch is done (strom pipeline run … --once), then change it"
    )


def _difference(old: Shape, new: Shape) -> str:
    """Return the first operator that differs, before and now."""
    for before, now in zip(old.operators, new.operators, strict=False):
        if before != now:
            return f"{shorten(before)} is {shorten(now)} now"
    fewer, more = sorted((old.operators, new.operators), key=len)
    which = "is new" if more is new.operators else "is gone"
    return f"{shorten(more[len(fewer)])} {which}"


def shorten(text: str, length: int = 160) -> str:
    """Return a text cut to a length."""
    return text if len(text) <= length else text[: length - 1] + "…"


def refusal(pipeline: str, sink: str, found: Iterable[str]) -> str:
    """Return what to say of a sink whose checkpoint does not fit any more, and what to do."""
    return (
        f"sink '{sink}' is not the one that its checkpoint is of: {'; '.join(found)}. "
        f"Put it back as it was, or give the changed sink a new name, or begin it anew from its "
        f"sources with: strom pipeline run … --reset {sink} (what '{pipeline}' has written so far "
        "stays, and is written again)"
    )
