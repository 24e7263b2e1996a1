"""What is measured, and what must hold of it.

A case runs one load against a broker that is up and warm, and returns numbers by name; its bars
say which ratio Strom : Kafka each number must reach. Cases of one group share a broker.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median
from typing import NamedTuple

from confluent_kafka.admin import AdminClient

from bench.load import Brokers
from tests import nodes

LOAD = Path(__file__).parent / "load.py"


class Bar(NamedTuple):
    """A number of a case, and the ratio it must reach."""

    number: str
    at_least: float | None = None
    at_most: float | None = None

    def is_met(self, ratio):
        if self.at_least is not None:
            return ratio >= self.at_least
        return ratio <= self.at_most

    def __str__(self):
        if self.at_least is not None:
            return f"≥ {self.at_least}"
        return f"≤ {self.at_most}"


@dataclass(frozen=True)
class Case:
    """One load and its bars."""

    name: str
    group: str
    run: Callable
    bars: tuple


@dataclass(frozen=True)
class Effort:
    """How long a load goes on; `--quick` makes it short to try the bench itself."""

    seconds: float = 2
    latency_seconds: float = 15
    warm_seconds: float = 10
    partitions_many: int = 10_000


def load(*arguments):
    """Run a load of load.py; what it reports."""
    command = [sys.executable, LOAD, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, arguments))}:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


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
        cpu = Bar("produce CPU s/GB", at_most=0.6)
        bars = (Bar("produce MB/s", at_least=faster), cpu)
        if self.batching == JAVA:
            return bars
        return (
            *bars,
            Bar("consume MB/s", at_least=faster),
            Bar("consume CPU s/GB", at_most=0.6),
        )

    def run(self, side, effort):
        produce = self.produce_java if self.batching == JAVA else self.produce
        sent = produce(side, effort)
        numbers = {
            "produce MB/s": sent["mb_s"],
            "produce CPU s/GB": sent["broker_cpu_per_gb"],
        }
        if self.batching != JAVA:
            # Not all of it: what is read in this time tells the rate as well.
            seconds = 1.5 * effort.seconds
            read = load("consume", *at(side), "--topic", self.topic, "--seconds", seconds)
            numbers |= {
                "consume MB/s": read["mb_s"],
                "consume CPU s/GB": read["broker_cpu_per_gb"],
            }
        delete_topic(side, self.topic)
        return numbers

    def produce(self, side, effort):
        batching = {"batch_size": 16384} if self.batching == SMALL else {}
        return load(
            *("produce", *at(side), "--topic", self.topic, "--partitions", self.partitions),
            *("--size", self.size, "--acks", self.acks, "--seconds", effort.seconds),
            *configured(compression_type=self.codec, **batching),
        )

    def produce_java(self, side, effort):
        """Kafka's own tool reports records per second; the broker's CPU is read around it."""
        load(*("produce", *at(side), "--topic", self.topic), "--partitions", self.partitions,
             *("--size", self.size, "--records", 500))  # fmt: skip
        records = int((600_000_000 if self.size == 1000 else 200_000_000) * effort.seconds / 5)
        records //= self.size
        brokers = Brokers([side.pid])
        done = nodes.kafka_tool(
            "kafka-producer-perf-test",
            *("--bootstrap-server", side.bootstrap, "--topic", self.topic),
            *("--num-records", records, "--record-size", self.size, "--throughput", -1),
            *("--command-property", f"acks={self.acks}", f"compression.type={self.codec}"),
            timeout=300,
        )
        found = re.findall(r"sent, ([\d.]+) records/sec", done.stdout)
        if not found:
            raise SystemExit(done.stdout + done.stderr)
        megabytes = records * self.size / 1e6
        rate = float(found[-1])
        return {"mb_s": rate * self.size / 1e6, **brokers.report(megabytes)}


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


def memory_after_load(side, effort):
    for size in (1000, 100):
        topic = f"memory-{size}"
        load("produce", *at(side), "--topic", topic, "--partitions", 6, "--size", size,
             "--seconds", effort.seconds)  # fmt: skip
        found = load("consume", *at(side), "--topic", topic)
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


CASES = (
    Case("empty directory", "start", start_up,
         (Bar("start s", at_most=0.15), Bar("memory MB", at_most=0.2))),
    *(Case(each.name, "throughput", each.run, each.bars) for each in THROUGHPUTS),
    Case("after the loads", "memory", memory_after_load, (Bar("memory MB", at_most=0.15),)),
    Case("1,000 records/s of 1 KB, linger 0, acks=all", "latency", latency,
         tuple(Bar(f"{name} ms", at_most=0.7) for name in ("p50", "p99", "p99.9"))),
    *(Case(f"one record a request, {n} producer{'s' * (n > 1)}", "requests",
           one_record_a_request(n), (Bar("requests/s", at_least=1.5),)) for n in (1, 10)),
    Case("a topic of 1,000 partitions", "partitions", a_thousand_partitions,
         (Bar("create s", at_most=0.5), Bar("KB per partition", at_most=0.5))),
    Case("start with 10,000 partitions", "many", start_with_many, (Bar("start s", at_most=0.5),)),
)  # fmt: skip
#: Groups whose cases start and stop the broker themselves.
SELF_STARTED = {"start", "many"}


def warm_up(side, effort):
    """Load that is not measured, so that the JVM has compiled what the measured ones use."""
    single = configured(linger_ms=0, batch_num_messages=1)
    for extra in ([], single):
        load("produce", *at(side), "--topic", "warm", "--partitions", 6,
             "--seconds", effort.warm_seconds / 2, *extra)  # fmt: skip
    load("consume", *at(side), "--topic", "warm")
    delete_topic(side, "warm")
