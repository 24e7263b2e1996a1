"""What is measured of the brokers, and what must hold of it; with the cases of Spark, of all.

A case runs one load against a broker that is up and warm. Cases of one group share a broker.
"""

import re
import subprocess
import uuid
from itertools import product
from statistics import median
from typing import NamedTuple

from confluent_kafka.admin import AdminClient

from bench import perf_tools, spark
from bench.case import ROOT, Bar, Case, Measure, load
from bench.load import Brokers
from bench.sides import VENV


def coordinate(*arguments):
    """Run a load on the coordinators."""
    return load(*arguments, module="bench.coordinators")


def at(side):
    return "--bootstrap", side.bootstrap, "--broker-pid", side.pid


def configured(**config):
    return [each for k, v in config.items() for each in ("--config", f"{k.replace('_', '.')}={v}")]


def delete_topic(side, topic):
    admin = AdminClient({"bootstrap.servers": side.bootstrap})
    admin.delete_topics([topic])[topic].result()


class Throughput(NamedTuple):
    """A combination of what a producer can choose."""

    size: int
    partitions: int
    acks: str
    codec: str
    batching: str

    @property
    def name(self):
        size = "1 KB" if self.size == 1000 else f"{self.size} B"
        return f"{size}, {self.partitions}p, acks={self.acks}, {self.codec}, {self.batching}"

    @property
    def topic(self):
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower())

    @property
    def bars(self):
        faster = 1.2 if self.size == 1000 and self.codec == "none" else 1.0
        return (
            Bar("produce MB/s", at_least=faster),
            Bar("produce CPU s/GB", at_most=0.6),
            Bar("consume MB/s", at_least=faster),
            Bar("consume CPU s/GB", at_most=0.6),
        )

    def run(self, side, effort):
        if self.batching == JAVA:
            produce, consume = self.produce_java, self.consume_java
        else:
            produce, consume = self.produce, self.consume
        sent = produce(side, effort)
        read = consume(side, effort)
        delete_topic(side, self.topic)
        return {
            "produce MB/s": sent["mb_s"],
            "produce CPU s/GB": sent["broker_cpu_per_gb"],
            "consume MB/s": read["mb_s"],
            "consume CPU s/GB": read["broker_cpu_per_gb"],
        }

    def produce(self, side, effort):
        batching = {"batch_size": 16384} if self.batching == SMALL else {}
        return load(
            *("produce", *at(side), "--topic", self.topic, "--partitions", self.partitions),
            *("--size", self.size, "--acks", self.acks, "--seconds", effort.load_seconds),
            *configured(compression_type=self.codec, **batching),
        )

    def consume(self, side, _effort):
        return load("consume", *at(side), "--topic", self.topic, "--size", self.size)

    def java_records(self, effort):
        """How many records Kafka's tools are told to send and to read."""
        share = 1 if self.size == 1000 else SMALL_SHARE
        return int(effort.java_mb * share * 1e6) // self.size

    def produce_java(self, side, effort):
        """Kafka's own tool reports records per second; the broker's CPU is read around it."""
        load(*("produce", *at(side), "--topic", self.topic), "--partitions", self.partitions,
             *("--size", self.size, "--records", 500))  # fmt: skip
        records = self.java_records(effort)
        brokers = Brokers([side.pid])
        settings = {"acks": self.acks, "compression.type": self.codec}
        rate = perf_tools.send(side.bootstrap, self.topic, records, self.size, settings)
        return {"mb_s": rate * self.size / 1e6, **brokers.report(records * self.size / 1e6)}

    def consume_java(self, side, effort):
        """As its tool tells it, from when the reader has got its partitions."""
        records = self.java_records(effort)
        brokers = Brokers([side.pid])
        # A group that nobody knows: one of that name may have read the topic that was there before.
        group = f"{self.topic}-{uuid.uuid4()}"
        rate = perf_tools.receive(side.bootstrap, self.topic, records, group)
        return {"mb_s": rate * self.size / 1e6, **brokers.report(records * self.size / 1e6)}


#: Of records of 100 B Kafka's tools send and read so much less.
SMALL_SHARE = 0.4


LIBRDKAFKA, SMALL, JAVA = "librdkafka's batches", "16 KB batches", "Java's batches"
THROUGHPUTS = tuple(
    Throughput(*chosen)
    for chosen in product(
        (1000, 100), (1, 6), ("1", "all"), ("none", "lz4"), (LIBRDKAFKA, SMALL, JAVA)
    )
)


def start_up(side, _effort):
    """A formatted, empty directory; the broker is not running yet when this is called."""
    side.start()
    side.stop()
    found = load("startup", "--port", side.port, "--", *side.command())
    return {"start s": found["ready"], "memory MB": found["VmRSS"]}


def kit_ready(_side, effort):
    """A broker as a test has it, in its own process."""
    command = [str(VENV / "bin" / "python"), "-I", str(ROOT / "bench" / "kit.py")]
    took = [
        float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        for _ in range(effort.repetitions)
    ]
    return {"ready s": median(took)}


def memory_after_load(side, effort):
    for size in (1000, 100):
        topic = f"memory-{size}"
        load("produce", *at(side), "--topic", topic, "--partitions", 6, "--size", size,
             "--seconds", effort.seconds)  # fmt: skip
        found = load("consume", *at(side), "--topic", topic, "--size", size)
    return {"memory MB": found["broker_rss_mb"]}


def latency(side, effort):
    numbers = load("latency", *at(side), "--topic", "latency", "--partitions", 1,
                   "--rate", 1000, "--size", 1000, "--seconds", effort.latency_seconds)  # fmt: skip
    return {
        f"{name} ms": numbers[f"end_to_end_{key}_ms"]
        for name, key in (("p50", "p50"), ("p99", "p99"), ("p99.9", "p999"))
    }


def one_record_a_request(producers):
    single = configured(
        linger_ms=0, max_in_flight=1, batch_num_messages=1, queue_buffering_max_messages=1000
    )

    def run(side, effort):
        found = load("produce", *at(side), "--topic", f"single-{producers}", "--partitions", 1,
                     "--producers", producers, "--size", 100, "--seconds", effort.seconds,
                     *single)  # fmt: skip
        return {"requests/s": found["requests_s"]}

    return run


def a_thousand_partitions(side, _effort):
    """Three topics of 1,000 partitions, after one that is not counted.

    How much more memory does the broker hold for each partition? The growth of its resident
    memory would not tell: a JVM touches more of its heap while it works and keeps it, full of
    garbage, or it stays within what it touched before, and hides what has become alive. So for
    Kafka only objects count that are alive after a full collection, and nothing outside the heap:
    less than what it holds. For Strom all anonymous memory counts, also what is free
    inside its allocator: not less than what it holds. The first topic is not counted because both
    make some things only once.
    """
    create_thousand(side, "thousand-0")
    before = side.held_bytes()
    seconds = [create_thousand(side, f"thousand-{n}") for n in (1, 2, 3)]
    held_kb = (side.held_bytes() - before) / 1024
    return {"create s": median(seconds), "KB per partition": held_kb / (1000 * len(seconds))}


def create_thousand(side, topic):
    """Seconds until all partitions of a new topic can be used."""
    return load("topics", *at(side), "--topic", topic, "--partitions", 1000)["usable"]


def start_with_many(side, effort):
    """Make the partitions, stop cleanly, and start again."""
    side.start()
    each = 1000
    for n in range(effort.partitions_many // each):
        load("topics", "--bootstrap", side.bootstrap, "--topic", f"many-{n}", "--partitions", each)
    side.stop()
    if not (side.data / ".kafka_cleanshutdown").exists():
        raise SystemExit(f"{side.name} was not given the time to stop cleanly")
    found = load("startup", "--port", side.port, "--", *side.command())
    return {"start s": found["ready"]}


def transactions(topic, *every):
    def run(side, effort):
        found = coordinate(
            *("transact", "--bootstrap", side.bootstrap, "--topic", topic, "--partitions", 6),
            *("--size", 1000, "--seconds", effort.latency_seconds),
            *("--warm-seconds", effort.warm_seconds / 2, *every),
        )
        delete_topic(side, topic)
        return {
            "records/s": found["records_s"],
            "commit p50 ms": found["commit_p50_ms"],
            "commit p99 ms": found["commit_p99_ms"],
        }

    return run


TRANSACTION_BARS = (
    Bar("records/s", at_least=1.0),
    Bar("commit p50 ms", at_most=0.7),
    Bar("commit p99 ms", at_most=0.7),
)


def offset_commits(side, effort):
    found = coordinate("commit", "--bootstrap", side.bootstrap, "--topic", "commits",
                       "--consumers", 10, "--seconds", 2 * effort.seconds)  # fmt: skip
    return {"requests/s": found["requests_s"]}


def rebalance(protocol, members):
    """Until every partition is read again by whom it belongs to.

    The members are `bench.members`: a client library's own waits are not in it.
    """

    def run(side, effort):
        topic = f"{protocol}-{members}"
        found = coordinate(
            *("rebalance", "--bootstrap", side.bootstrap, "--topic", topic),
            *("--members", members, "--protocol", protocol),
            *("--repetitions", effort.repetitions),
        )
        return {f"{change} s": found[change] for change in CHANGES}

    return run


PROTOCOLS = ("classic", "consumer")
CHANGES = ("join", "grow", "shrink")
#: What a group of cases asks of both brokers; all else is as shipped. That a group waits for
#: more members, that members hear of a change with their next heartbeat, and that assignments
#: are made once a second are waits that settings ask for, not work.
SETTINGS = {
    "throughput": {"group.initial.rebalance.delay.ms": 0},
    "groups": {
        "group.initial.rebalance.delay.ms": 0,
        "group.consumer.assignment.interval.ms": 0,
    },
    # How long a cleaner waits before it looks for work.
    "compaction": {"log.cleaner.backoff.ms": 100},
}


def compaction(side, effort):
    """The number beside the rate: how many times the p99 without compaction that beside it is."""
    found = load(
        *("compact", "--bootstrap", side.bootstrap, "--topic", "compacted", "--data", side.data),
        *("--megabytes", effort.compacted_mb, "--seconds", effort.latency_seconds),
        module="bench.compaction",
    )
    times = found["beside_p99_ms"] / found["alone_p99_ms"]
    return {"MB/s": found["mb_s"], BESIDE: times}


BESIDE = "produce p99, times that without"


CASES = (
    Case("empty directory", "start", start_up,
         (Bar("start s", at_most=0.15), Bar("memory MB", at_most=0.2))),
    Case("the test kit's broker", "start", kit_ready,
         (Bar("ready s", at_most=0.2, of=Measure.OWN),), is_alone=True),
    *(Case(each.name, "throughput", each.run, each.bars, turns=3) for each in THROUGHPUTS),
    Case("after the loads", "memory", memory_after_load, (Bar("memory MB", at_most=0.15),)),
    Case("1,000 records/s of 1 KB, linger 0, acks=all", "latency", latency,
         tuple(Bar(f"{name} ms", at_most=0.7) for name in ("p50", "p99", "p99.9"))),
    *(Case(f"one record a request, {n} producer{'s' * (n > 1)}", "requests",
           one_record_a_request(n), (Bar("requests/s", at_least=1.5),)) for n in (1, 10)),
    Case("a topic of 1,000 partitions", "partitions", a_thousand_partitions,
         (Bar("create s", at_most=0.5), Bar("KB per partition", at_most=0.5)), repeats=False),
    Case("start with 10,000 partitions", "many", start_with_many, (Bar("start s", at_most=0.5),),
         repeats=False),
    Case("1 KB, commits every 100 ms", "transactions",
         transactions("every-100-ms", "--every-ms", 100), TRANSACTION_BARS),
    Case("1 KB, commits every 1,000 records", "transactions",
         transactions("every-1000", "--every-records", 1000), TRANSACTION_BARS),
    Case("OffsetCommit, 10 consumers", "offsets", offset_commits,
         (Bar("requests/s", at_least=1.0),)),
    *(Case(f"{protocol} protocol, {n} member{'s' * (n > 1)}", "groups", rebalance(protocol, n),
           tuple(Bar(f"{change} s", at_most=1.0) for change in CHANGES), turns=2)
      for protocol in PROTOCOLS for n in (1, 10, 100)),
    Case("1 GB of keyed records of 100 B", "compaction", compaction,
         (Bar("MB/s", at_least=0.5), Bar(BESIDE, at_most=1.2, of=Measure.OWN)), repeats=False),
    *spark.CASES,
)  # fmt: skip
#: Groups whose cases start and stop the broker themselves.
SELF_STARTED = {"start", "many"}


def warm_up(side, effort, group):
    """Load that is not measured, so that the JVM has compiled what the measured ones use."""
    single = configured(linger_ms=0, batch_num_messages=1)
    for extra in ([], single):
        load("produce", *at(side), "--topic", "warm", "--partitions", 6,
             "--seconds", effort.warm_seconds / 2, *extra)  # fmt: skip
    load("consume", *at(side), "--topic", "warm")
    delete_topic(side, "warm")
    if group == "throughput":
        for each in WARMING:
            each.run(side, effort)


#: That of Kafka's tools has most of their code compiled after these.
WARMING = 2 * tuple(
    Throughput(*chosen, JAVA) for chosen in ((1000, 6, "all", "none"), (100, 6, "1", "lz4"))
)
