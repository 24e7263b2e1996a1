"""Topics in Spark: `format("strom")` beside Spark's own connector, at one broker, in one session.

The peer is tuned as `format("strom")` is by default: fetches of 8 MiB, batches of 900 kB. A read or
a write is timed as a whole, from naming the topic to the last row.
"""

import importlib.metadata
import re
import time
from functools import reduce
from typing import NamedTuple

from bench.case import Bar, Case, Measure, load
from bench.stage import PARTITIONS, Stage, thirds
from tests import nodes

SIZES = {"1 KB": 1000, "100 B": 100}
#: A backlog is read in so many micro-batches.
MICRO_BATCHES = 5
#: What goes through a query per second, to see how long it takes.
RATE = 100
AWAIT_SECONDS = 120

OWN, PEER = "strom", "JVM"
FETCHES = {
    "kafka.max.partition.fetch.bytes": 8 * 1024 * 1024,
    "kafka.max.poll.records": 10_000,
    "kafka.receive.buffer.bytes": 1024 * 1024,
}
BATCHES = {"kafka.batch.size": 900_000, "kafka.linger.ms": 5}


class Connector(NamedTuple):
    """One of the two, on the stage."""

    name: str
    format: str
    stage: Stage
    reading: dict
    writing: dict
    #: Of a query that should be quick: to fill batches would hold it up.
    passing: dict

    @property
    def servers(self):
        return {"kafka.bootstrap.servers": self.stage.bootstrap}

    def read(self, topic):
        options = {**self.servers, **self.reading, "subscribe": topic}
        return self.stage.spark.read.format(self.format).options(**options).load()

    def write(self, rows, topic):
        options = {**self.servers, **self.writing, "topic": topic}
        rows.write.format(self.format).options(**options).mode("append").save()

    def stream(self, topic, **options):
        own = {**self.servers, "subscribe": topic, "startingOffsets": "earliest", **options}
        return self.stage.spark.readStream.format(self.format).options(**own).load()

    def start(self, writing, **trigger):
        return writing.option("checkpointLocation", self.stage.new_checkpoint()).trigger(
            **trigger
        ).start()  # fmt: skip

    def start_mapping(self, source, target):
        """A query from topic to topic, as soon as anything comes."""
        rows = self.stream(source).selectExpr("key", "upper(cast(value as string)) as value")
        options = {**self.servers, **self.passing, "topic": target}
        return self.start(
            rows.writeStream.format(self.format).options(**options), processingTime="0 seconds"
        )


def connectors(stage):
    """Both of them, ours first."""
    return (
        # The peer writes at least once; ours would commit a transaction for each task by default.
        Connector(OWN, "strom", stage, {}, {}, {"exactlyOnce": "false"}),
        Connector(PEER, "kafka", stage, FETCHES, BATCHES, {}),
    )


class Ground:
    """The stage with its topics, and both connectors warmed up."""

    def __init__(self, effort):
        self.stage = Stage()
        self.connectors = connectors(self.stage)
        try:
            self._fill(effort)
            self._warm_up(effort)
        except BaseException:
            self.stage.close()
            raise

    def _fill(self, effort):
        for size in SIZES.values():
            self.stage.topics[size] = topic = self.stage.new_topic()
            self.connectors[0].write(self.stage.rows(row_count(size, effort), size), topic)

    def _warm_up(self, effort):
        """Run each load; what the reads of a case do not check is checked here: all is read."""
        for side in self.connectors:
            for size, topic in self.stage.topics.items():
                found, wanted = side.read(topic).count(), row_count(size, effort)
                if found != wanted:
                    raise SystemExit(f"{side.name} read {found} of {wanted} rows")
                read_topic(size)(side, effort)
                write_topic(size)(side, effort)
            read_backlog(side, effort)


def row_count(size, effort):
    return effort.spark_mb * 1_000_000 // size


def timed(side, work):
    """How many seconds it takes, on a tidy heap."""
    side.stage.tidy()
    begin = time.monotonic()
    work()
    return time.monotonic() - begin


def discard(rows):
    """Have all rows made, and thrown away."""
    rows.write.format("noop").mode("overwrite").save()


def read_topic(size):
    def run(side, effort):
        topic = side.stage.topics[size]
        seconds = timed(side, lambda: discard(side.read(topic)))
        return {"rows/s": row_count(size, effort) / seconds}

    return run


def write_topic(size):
    def run(side, effort):
        """Half of what is read: it has to go to the disk as well."""
        stage, count = side.stage, row_count(size, effort) // 2
        topic = stage.new_topic()
        seconds = timed(side, lambda: side.write(stage.rows(count, size), topic))
        if (found := stage.count(topic)) != count:
            raise SystemExit(f"{side.name} wrote {found} of {count} rows")
        stage.delete_topic(topic)
        return {"rows/s": count / seconds}

    return run


def read_backlog(side, effort):
    size = SIZES["1 KB"]
    count = row_count(size, effort)
    queries = []

    def work():
        # Each partition's share is rounded down; what that leaves would be one batch more.
        limit = {"maxOffsetsPerTrigger": count // MICRO_BATCHES + 2 * PARTITIONS}
        rows = side.stream(side.stage.topics[size], **limit, **side.reading)
        queries.append(side.start(rows.writeStream.format("noop"), availableNow=True))
        queries[0].awaitTermination(AWAIT_SECONDS)

    seconds = timed(side, work)
    found = sum(each.numInputRows for each in queries[0].recentProgress)
    if found != count:
        raise SystemExit(f"{side.name} read {found} of {count} rows: {queries[0].exception()}")
    return {"rows/s": count / seconds}


def pass_through(side, effort):
    """From sending to having what the query made of it, once the query runs."""
    stage = side.stage
    source, target = stage.new_topic(), stage.new_topic()
    query = side.start_mapping(source, target)
    try:
        for seconds in (effort.warm_seconds / 2, effort.latency_seconds):
            found = load("latency", "--bootstrap", stage.bootstrap, "--topic", source,
                         "--answers", target, "--rate", RATE, "--size", 100,
                         "--seconds", seconds)  # fmt: skip
            if found["received"] < found["sent"]:
                raise SystemExit(f"{side.name} lost records: {found}, {query.exception()}")
    finally:
        query.stop()
    for topic in (source, target):
        stage.delete_topic(topic)
    return {f"{name} ms": found[f"end_to_end_{name}_ms"] for name in ("p50", "p99")}


def begin_cold(side, _effort):
    """The first query of a session: from its start until its first records are there."""
    found = load(*("--connector", side.name), *("--bootstrap", side.stage.bootstrap),
                 module="bench.first_batch")  # fmt: skip
    return {"first micro-batch s": found["seconds"]}


def read_again_and_again(side, effort):
    """One topic ten times over: by the end a worker that keeps anything has kept a lot."""
    size = SIZES["1 KB"]
    rows = side.read(side.stage.topics[size])
    rows = reduce(type(rows).union, [rows] * effort.spark_reads)
    with side.stage.memory_of_workers() as samples:
        seconds = timed(side, lambda: discard(rows))
    # Those that plan come and go; the others are there from the beginning.
    longest = max(map(len, samples.values()))
    ends = [thirds(each) for each in samples.values() if 2 * len(each) > longest]
    return {
        "rows/s": row_count(size, effort) * effort.spark_reads / seconds,
        "MB of a worker": max(last for _, last in ends),
        FLAT: max(last / first for first, last in ends),
    }


FLAT = "MB of a worker, last third : first third"
#: One of them takes a second or two, and the next may take half as long.
TURNS = 5

CASES = (
    *(Case(f"batch read, 1 GB of {name}", "spark", read_topic(size),
           (Bar("rows/s", at_least=1.5),), turns=TURNS) for name, size in SIZES.items()),
    *(Case(f"batch write, 0.5 GB of {name}", "spark", write_topic(size),
           (Bar("rows/s", at_least=1.1),), turns=TURNS) for name, size in SIZES.items()),
    Case("streaming read of a backlog, availableNow, 1 GB of 1 KB", "spark", read_backlog,
         (Bar("rows/s", at_least=1.0),)),
    Case("topic to topic, trigger 0, 100 records/s", "spark", pass_through,
         tuple(Bar(f"{name} ms", at_most=1.2) for name in ("p50", "p99"))),
    Case("topic to topic, the first query of a session", "spark", begin_cold,
         (Bar("first micro-batch s", at_most=2, of=Measure.DIFFERENCE),)),
    Case("batch read of 10 GB of 1 KB", "spark", read_again_and_again,
         (Bar(FLAT, at_most=1.1, of=Measure.OWN), Bar("MB of a worker"), Bar("rows/s")),
         is_alone=True),
)  # fmt: skip

INTRO = """\
The two are connectors here, not brokers: `format("strom")` and Spark's own `format("kafka")`, in
one session (local[2], Unix sockets to its workers, quick checkpoints) at one Strom broker, with
topics of 4 partitions. Both were warmed up. The peer is tuned as ours is by default: fetches of 8
MiB, 10,000 records a poll, batches of 900 kB. A read or a write is timed from naming the topic to
the last row; what is read goes to `noop`. Latency is from sending a record to receiving what the
query made of it; both write at least once there, without lingering. The first query of a session is
the first of all in a JVM of its own, the peer's in a session where nothing is begun for ours; its
bar is on the difference. 10 GB are the 1 GB topic ten times, in the same workers; their memory is
what is resident. Maven resolves the peer (`tests/peer/connector.xml`).
"""


def versions():
    """Which connectors are compared: PySpark's version is ours, too."""
    pom = (nodes.PEER.parent / "connector.xml").read_text()
    found = re.findall(r"<artifactId>(.*?)</artifactId>\s*<version>\$\{(.*?)\}", pom)
    named = [f"{name} {pom.partition(f'<{key}>')[2].partition('<')[0]}" for name, key in found]
    return {"PySpark": importlib.metadata.version("pyspark"), "Spark's connector": ", ".join(named)}
