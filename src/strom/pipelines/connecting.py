"""Whether the cluster that a pipeline names is there, with the topics that it reads and writes.

Asks brokers and nothing else: a pipeline whose topics are missing can be told so without Spark.
"""

from collections.abc import Iterable
from dataclasses import replace

from strom.pipelines.declaration import FRAME, TOPIC, Node, Pipeline, Sink, Source
from strom.pipelines.explaining import WHERE_BROKERS
from strom.pipelines.graph import ANY_SERVER, SERVERS, kind_of
from strom.spark.cluster import Cluster
from strom.spark.failure import OptionError, UnreachableError
from strom.spark.options import Connection, ReadOptions
from strom.spark.planning import Planner, tell_missing
from strom.spark.write_options import WriteOptions
from strom.wire.errors import KafkaError

#: How long a broker may take to answer; who runs a pipeline waits longer for one that starts.
ANSWER_MS_MAX = 10_000


def cluster_problems(pipeline: Pipeline) -> list[str]:
    """Return what keeps the sources and sinks of a checked pipeline from their topics."""
    servers = pipeline.settings.bootstrap or ANY_SERVER
    problems: list[str] = []
    silent: set[str] = set()
    for node in pipeline.nodes:
        options = getattr(node, "options", {})
        at = options.get(SERVERS, servers)
        if at in silent:
            continue
        try:
            problems += [f"{kind_of(node)} '{node.name}': {told}" for told in _missing(node, at)]
        except UnreachableError as error:
            silent.add(at)
            problems.append(f"no broker answers at {at}: {error}; {WHERE_BROKERS}")
        except KafkaError as error:
            # Such as a name that no topic can have.
            problems.append(f"{kind_of(node)} '{node.name}': the broker refuses it: {error}")
    return problems


def _missing(node: Node, servers: str) -> Iterable[str]:
    match node:
        case Source(kind=kind) if kind != FRAME:
            options = ReadOptions.parse({SERVERS: servers, **node.options}, streaming=kind == TOPIC)
            try:
                Planner(replace(options, connection=_quick(options.connection))).subscribed()
            except OptionError as error:
                yield str(error)
        case Sink(kind=kind) if kind == TOPIC:
            to = WriteOptions.parse({SERVERS: servers, **node.options}, streaming=True)
            cluster = Cluster(_quick(to.connection))
            if to.topic is not None and not cluster.topics([to.topic]):
                yield from tell_missing(cluster, [to.topic], "topic")


def _quick(connection: Connection) -> Connection:
    return replace(connection, patience_ms=min(ANSWER_MS_MAX, connection.patience_ms))
