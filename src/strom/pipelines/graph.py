"""A declaration that has been checked: every name known, no circle, each node after its inputs.

`check` returns all that is wrong, and all that is odd, in one go; `Graph.of` raises if anything is
wrong. A Graph therefore stands for a pipeline that can be run as far as can be told without Spark.
"""

import difflib
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

from strom.pipelines.declaration import (
    BAD_RECORDS,
    FAIL,
    FILES,
    FRAME,
    MODES,
    TOPIC,
    Node,
    Pipeline,
    Sink,
    Source,
    Step,
)
from strom.pipelines.failure import DeclarationError

SERVERS = "kafka.bootstrap.servers"
#: Stands for the cluster, which is known when the pipeline runs.
ANY_SERVER = "127.0.0.1:9092"

#: Names of sources and steps are parameters of functions; others become directories and groups.
INPUT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}")
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,99}")
#: A time as Spark reads it: only of seconds there are parts.
_AMOUNT = r"(\d+(\.\d+)?\s+seconds?|\d+\s+(((micro|milli)second)|minute|hour|day|week)s?)"
TIME = re.compile(rf"\s*(interval\s+)?{_AMOUNT}(\s+{_AMOUNT})*\s*", re.IGNORECASE | re.ASCII)
#: What the method of Spark that runs a query calls its own parameters.
NOT_IN_QUERIES = ("self", "sqlQuery", "args")


class Findings(NamedTuple):
    """What a check found: what keeps the pipeline from running, and what is merely odd."""

    problems: tuple[str, ...]
    warnings: tuple[str, ...]


class Graph:
    """The nodes of a pipeline in an order in which each comes after its inputs."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = tuple(nodes)
        self._by_name = {node.name: node for node in nodes}

    @classmethod
    def of(cls, pipeline: Pipeline) -> "Graph":
        """Return the checked graph."""
        problems = check(pipeline).problems
        if problems:
            raise DeclarationError(problems)
        return cls(in_order(pipeline.nodes))

    def __getitem__(self, name: str) -> Node:
        return self._by_name[name]

    @property
    def sinks(self) -> tuple[Sink, ...]:
        """Return the sinks, as they were declared."""
        return tuple(node for node in self.nodes if isinstance(node, Sink))

    def above(self, name: str) -> tuple[Node, ...]:
        """Return all that a node is made from, itself last, each after its inputs."""
        wanted = {name}
        for node in reversed(self.nodes):
            if node.name in wanted:
                wanted.update(node.inputs)
        return tuple(node for node in self.nodes if node.name in wanted)

    def sources_of(self, name: str) -> tuple[Source, ...]:
        """Return the sources that a node is made from."""
        return tuple(node for node in self.above(name) if isinstance(node, Source))

    def readers(self, name: str) -> tuple[Node, ...]:
        """Return the nodes that read a node."""
        return tuple(node for node in self.nodes if name in node.inputs)


def in_order(nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes, inputs first, otherwise as they were declared."""
    sorter = TopologicalSorter({node.name: node.inputs for node in nodes})
    by_name = {node.name: node for node in nodes}
    sorter.prepare()
    ordered: list[Node] = []
    places = {node.name: place for place, node in enumerate(nodes)}
    while sorter.is_active():
        ready = sorted(sorter.get_ready(), key=places.__getitem__)
        ordered += [by_name[name] for name in ready]
        sorter.done(*ready)
    return ordered


def check(pipeline: Pipeline) -> Findings:
    """Return everything that is wrong or odd about a pipeline."""
    nodes = pipeline.nodes
    if untexts := tuple(_no_texts(pipeline)):
        return Findings(untexts, ())
    problems = [*_setting_problems(pipeline), *_name_problems(pipeline), *_input_problems(nodes)]
    problems += _shared_paths(nodes)
    for node in nodes:
        problems += _own_problems(node)
    if not any(isinstance(node, Sink) for node in nodes):
        problems.append("there is no sink: nothing would be run; see Pipeline.to_topic")
    circle = None if problems else _circle(nodes)
    if circle:
        problems.append(f"a circle: {' → '.join(circle)}; a step cannot come after itself")
    return Findings(tuple(problems), () if problems else (*_unused(nodes), *_echoes(nodes)))


def nearest(name: str, names: Iterable[str]) -> str:
    """Return a hint at the name that was probably meant, or what there is to choose from."""
    known = sorted(set(names))
    close = difflib.get_close_matches(name, known, 1)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"there is {', '.join(known)}" if known else "there is none"


def kind_of(node: Node) -> str:
    """Return what a node is, in a word."""
    return type(node).__name__.lower()


def _setting_problems(pipeline: Pipeline) -> Iterable[str]:
    settings = pipeline.settings
    if settings.bootstrap is not None:
        yield from _servers_problem(settings.bootstrap)
    if not isinstance(settings.every, str) or not TIME.fullmatch(settings.every):
        yield f"every = {settings.every!r} is no time such as '1 second' or '5 minutes'"


def _servers_problem(given: object) -> Iterable[str]:
    # Loaded here: commands that have nothing to do with pipelines start without it.
    from strom.spark.failure import OptionError
    from strom.spark.given import Given

    if not isinstance(given, str):
        yield f"bootstrap = {given!r} is no text such as 'one:9092, two:9092'"
        return
    try:
        Given({SERVERS: given}).servers()
    except OptionError as error:
        yield f"bootstrap = '{given}': {error}"


def _no_texts(pipeline: Pipeline) -> Iterable[str]:
    """Yield what stands where a name should, and is none."""
    for given in (pipeline.name, *(name for node in pipeline.nodes for name in _names(node))):
        if not isinstance(given, str):
            yield f"{given!r} is no name: names are texts"


def _names(node: Node) -> tuple[object, ...]:
    named = () if isinstance(node, Step) else node.options.values()
    return node.name, *node.inputs, *named


def _name_problems(pipeline: Pipeline) -> Iterable[str]:
    counted = Counter(node.name for node in pipeline.nodes)
    for name, count in counted.items():
        if count > 1:
            kinds = " and ".join(kind_of(node) for node in pipeline.nodes if node.name == name)
            yield f"'{name}' is declared {count} times, as {kinds}: every name stands for one thing"
    sinks = {node.name for node in pipeline.nodes if isinstance(node, Sink)}
    for name in (pipeline.name, *sinks):
        if not NAME.fullmatch(name):
            yield f"'{name}' is no name: a letter, then up to 99 letters, digits and ._-"
    for name in counted.keys() - sinks:
        if not INPUT_NAME.fullmatch(name):
            yield (
                f"'{name}' is no name for a source or step: a letter, then up to 99 letters, "
                "digits and _; a topic's own name stands beside it: topic('rides', 'ride-events')"
            )


def _input_problems(nodes: Sequence[Node]) -> Iterable[str]:
    known = {node.name: node for node in nodes}
    readable = [node.name for node in nodes if not isinstance(node, Sink)]
    for node in nodes:
        for name in node.inputs:
            if name not in known:
                yield f"{kind_of(node)} '{node.name}' reads '{name}', which is unknown: " + nearest(
                    name, readable
                )
            elif isinstance(known[name], Sink):
                yield (
                    f"{kind_of(node)} '{node.name}' reads the sink '{name}': rows only go into "
                    f"it; read '{known[name].inputs[0]}', which it is written from"
                )


def _own_problems(node: Node) -> Iterable[str]:
    match node:
        case Source():
            yield from _choice_problem(node, "bad", node.bad, BAD_RECORDS)
            yield from _option_problems(node)
            if node.bad != FAIL and node.body is None:
                yield (
                    f"source '{node.name}': bad = '{node.bad}' and dead letters are for sources "
                    "with json, avro or protobuf"
                )
        case Step():
            yield from _step_problems(node)
        case Sink():
            yield from _choice_problem(node, "mode", node.mode, MODES)
            yield from _option_problems(node)
            yield from _sink_problems(node)


def _step_problems(step: Step) -> Iterable[str]:
    if not step.inputs:
        yield (
            f"step '{step.name}' has no input: name one as a parameter, in SQL in braces "
            "(FROM {rides}); a step that reads from elsewhere is a Pipeline.source"
        )
    if isinstance(step.transform, str):
        for name in sorted({*step.inputs} & {*NOT_IN_QUERIES}):
            yield (
                f"step '{step.name}': '{name}' cannot stand in a query, as Spark takes the name "
                "for something else; call it otherwise"
            )


def _option_problems(node: Source | Sink) -> Iterable[str]:
    # Loaded here: commands that have nothing to do with pipelines start without it.
    from strom.spark.failure import OptionError
    from strom.spark.options import ReadOptions
    from strom.spark.write_options import WriteOptions

    options = {SERVERS: ANY_SERVER, **node.options}
    try:
        if isinstance(node, Source) and node.kind != FRAME:
            ReadOptions.parse(options, streaming=node.kind == TOPIC)
        elif isinstance(node, Sink) and node.kind == TOPIC:
            WriteOptions.parse(options, streaming=True)
    except OptionError as error:
        yield f"{kind_of(node)} '{node.name}': {error}"


def _sink_problems(sink: Sink) -> Iterable[str]:
    given = {name.lower() for name in sink.options}
    if "checkpointlocation" in given:
        yield (
            f"sink '{sink.name}': checkpoints are in the pipeline's directory (--dir); "
            "leave out the option 'checkpointLocation'"
        )
    if sink.kind == FILES and "mode" in given:
        yield f"sink '{sink.name}': files only get rows that are final; leave out mode"
    if sink.kind == FILES and not sink.options["path"].strip():
        yield f"sink '{sink.name}': path is empty: where do the files go?"


def _shared_paths(nodes: Sequence[Node]) -> Iterable[str]:
    """Yield the sinks whose files would be taken for each other's."""
    by_path: dict[str, list[str]] = {}
    for node in nodes:
        if isinstance(node, Sink) and node.kind == FILES:
            path = os.path.normpath(node.options["path"])
            by_path.setdefault(path, []).append(f"'{node.name}'")
    for path, sinks in by_path.items():
        if len(sinks) > 1:
            yield (
                f"sinks {' and '.join(sinks)} write to {path}: Spark would take the micro-batches "
                "of one for those of the other; give each a path of its own"
            )


def _choice_problem(node: Node, field: str, value: str, known: Sequence[str]) -> Iterable[str]:
    if value not in known:
        yield f"{kind_of(node)} '{node.name}': {field} = '{value}' is unknown: " + nearest(
            str(value), known
        )


def _circle(nodes: Sequence[Node]) -> list[str] | None:
    try:
        TopologicalSorter({node.name: node.inputs for node in nodes}).prepare()
    except CycleError as error:
        names: list[str] = error.args[1]
        return names
    return None


def _unused(nodes: Sequence[Node]) -> Iterable[str]:
    used = {name for node in nodes for name in node.inputs}
    for node in nodes:
        if not isinstance(node, Sink) and node.name not in used:
            yield f"{kind_of(node)} '{node.name}' is read by nobody and will not run"


def _echoes(nodes: Sequence[Node]) -> Iterable[str]:
    """Yield the sinks that write into a topic which they are made from."""
    # Loaded here: commands that have nothing to do with pipelines start without it.
    from strom.spark.options import ReadOptions
    from strom.spark.write_options import WriteOptions

    graph = Graph(in_order(nodes))
    for sink in graph.sinks:
        if sink.kind != TOPIC:
            continue
        to = WriteOptions.parse({SERVERS: ANY_SERVER, **sink.options}, streaming=True)
        for source in graph.sources_of(sink.name):
            if source.kind != TOPIC or to.topic is None:
                continue
            read = ReadOptions.parse({SERVERS: ANY_SERVER, **source.options}, streaming=True)
            same = read.connection.servers == to.connection.servers
            if same and read.subscription.reads(to.topic):
                yield (
                    f"sink '{sink.name}' writes into topic '{to.topic}', which source "
                    f"'{source.name}' reads: what is written is read again, without end"
                )
