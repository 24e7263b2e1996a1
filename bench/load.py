#!/usr/bin/env python3
"""Load for any Kafka-compatible broker; every subcommand prints one line of JSON.

MB are 10^6 bytes of record values; times are seconds unless the name says ms; CPU is user + system.
"""

import argparse
import json
import multiprocessing
import os
import random
import resource
import socket
import struct
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

#: Of a process's number its clock of CPU time is made so; see clock_getcpuclockid(3).
CPU_CLOCK = 2
#: Kafka takes half a minute to start with 10,000 partitions.
STARTUP_SECONDS_MAX = 300
STOP_SECONDS_MAX = 120
#: When a record was sent stands at its beginning, in digits, which a query may make capitals of.
STAMP_BYTES = 20
#: How exactly a number is told: small groups change in a few milliseconds, told as seconds.
DIGITS = 6
#: What kcat prints of each record: enough to count them.
EACH_RECORD = "."


class Brokers:
    """CPU seconds and resident memory of the broker processes."""

    def __init__(self, pids):
        self.pids, self.cpu = pids, sum(map(self.cpu_seconds, pids))

    @staticmethod
    def cpu_seconds(pid):
        """In nanoseconds, not ticks: what a broker takes for a small read is a few of those."""
        return time.clock_gettime(~pid << 3 | CPU_CLOCK)

    @staticmethod
    def memory(pid):
        status = dict(
            line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        )
        return {name: int(status[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM")}

    def report(self, megabytes=None):
        if not self.pids:
            return {}
        cpu = sum(map(self.cpu_seconds, self.pids)) - self.cpu
        memory = [self.memory(pid) for pid in self.pids]
        report = {"broker_cpu": cpu}
        if megabytes:
            report["broker_cpu_per_gb"] = cpu / megabytes * 1000
        return report | {
            "broker_rss_mb": sum(m["VmRSS"] for m in memory),
            "broker_peak_mb": sum(m["VmHWM"] for m in memory),
        }


def client_cpu():
    both = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def quantiles(seconds, prefix):
    ordered = sorted(seconds)
    at = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999, "max": 1}
    return {
        f"{prefix}_{name}_ms": 1000 * ordered[min(int(len(ordered) * q), len(ordered) - 1)]
        for name, q in at.items()
    }


def values(size, count=2000):
    """Distinct record values of text that an LZ compressor roughly halves."""
    dice = random.Random(size)
    words = [
        "".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=dice.randint(3, 9)))
        for _ in range(400)
    ]
    return [" ".join(dice.choices(words, k=size // 4 + 2)).encode()[:size] for _ in range(count)]


def config(args, **own):
    own = {"bootstrap.servers": args.bootstrap, "log_level": 3} | {
        k.replace("_", "."): v for k, v in own.items()
    }
    return own | dict(pair.split("=", 1) for pair in args.config)


def create(args, topic, partitions):
    """Create the topic and wait until every partition has a leader."""
    admin = AdminClient({"bootstrap.servers": args.bootstrap})
    settings = dict(pair.split("=", 1) for pair in args.topic_config)
    begin = time.monotonic()
    new = NewTopic(topic, partitions, args.replication, config=settings)
    for future in admin.create_topics([new], request_timeout=60).values():
        with suppress(KafkaException):
            future.result()
    answered = time.monotonic()
    while True:
        found = admin.list_topics(topic, timeout=10).topics[topic].partitions
        if len(found) >= partitions and all(p.leader >= 0 for p in found.values()):
            return answered - begin, time.monotonic() - begin
        time.sleep(0.01)


def end_offsets(args, topic=None):
    topic = topic or args.topic
    own = config(args, group_id="load", enable_auto_commit=False)
    reader = Consumer(own | {"bootstrap.servers": args.bootstrap})
    try:
        partitions = reader.list_topics(topic, timeout=10).topics[topic].partitions
        return {p: end_offset(reader, TopicPartition(topic, p)) for p in partitions}
    finally:
        reader.close()


#: Unknown topic or partition, no leader, not the leader.
NOT_READY = (3, 5, 6)


def end_offset(reader, partition):
    """Ask again while a broker that was told to lead does not know it yet."""
    for _ in range(200):
        try:
            return reader.get_watermark_offsets(partition, timeout=10)[1]
        except KafkaException as error:
            if error.args[0].code() not in NOT_READY:
                raise
        time.sleep(0.05)
    raise SystemExit(f"{partition} has no leader")


def parallel(count, work, *args):
    """Run work in as many processes, which begin together; their answers."""
    context = multiprocessing.get_context("fork")
    barrier, answers = context.Barrier(count), context.SimpleQueue()

    def task():
        try:
            answers.put(work(barrier, *args))
        except BaseException as error:  # noqa: BLE001 - told to the parent, which exits with it
            barrier.abort()
            answers.put(repr(error))

    tasks = [context.Process(target=task, daemon=True) for _ in range(count)]
    for each in tasks:
        each.start()
    found = [answers.get() for _ in tasks]
    if failures := [answer for answer in found if isinstance(answer, str)]:
        raise SystemExit(failures[0])
    return found


def send(barrier, args):
    requests = {}

    def count(text):
        for broker in json.loads(text)["brokers"].values():
            requests[broker["name"]] = broker["req"].get("Produce", 0)

    own = {"acks": args.acks, "delivery.report.only.error": True, "stats_cb": count}
    producer = Producer(config(args, statistics_interval_ms=200) | own)
    producer.list_topics(args.topic, timeout=10)
    batch = [{"value": value} for value in values(args.size)]
    step = 500
    slices = [batch[i : i + step] for i in range(0, len(batch), step)]
    limit = (
        int(
            dict(pair.split("=", 1) for pair in args.config).get(
                "queue.buffering.max.messages", 100_000
            )
        )
        - step
    )
    barrier.wait()
    begin, cpu, sent = time.monotonic(), client_cpu(), 0
    while (sent < args.records) if args.records else (time.monotonic() < begin + args.seconds):
        while len(producer) > limit:
            producer.poll(0.001)
        taken = producer.produce_batch(args.topic, slices[sent // step % len(slices)])
        assert taken == step, "the client's queue is full"
        sent += step
    left = producer.flush(60)
    end, cpu = time.monotonic(), client_cpu() - cpu
    assert left == 0, f"{left} records were not delivered"
    producer.poll(0.5)
    return begin, end, sent, cpu, sum(requests.values())


def produce(args):
    if args.partitions:
        create(args, args.topic, args.partitions)
    before = sum(end_offsets(args).values())
    brokers = Brokers(args.broker_pid)
    done = parallel(args.producers, send, args)
    records, seconds = sum(d[2] for d in done), max(d[1] for d in done) - min(d[0] for d in done)
    megabytes, cpu, requests = (
        records * args.size / 1e6,
        sum(d[3] for d in done),
        sum(d[4] for d in done),
    )
    report = brokers.report(megabytes)
    assert sum(end_offsets(args).values()) - before >= records, "records were lost"
    rates = {
        "mb_s": megabytes / seconds,
        "records_s": records / seconds,
        "requests_s": requests / seconds,
    }
    return {
        "records": records,
        "seconds": seconds,
        **rates,
        "client_cpu_per_gb": cpu / megabytes * 1000,
        **report,
    }


def keep_to_one_core():
    """Have this process run on the last of its cores, where the system lets it."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def consume(args):
    """Read the whole topic with kcat, which does less for a record than Python has to.

    It keeps on fetching however much waits to be taken: else librdkafka rests for a second when
    100,000 records do. And it does not wait at the end of a partition for more to come: that took
    half a second, as long as to read what is there, whatever broker it asked. And it has one core:
    on two its threads take nearly twice as long to hand each other the records.
    """
    total = sum(end_offsets(args).values())
    settings = {
        "queued.min.messages": 10_000_000,
        "queued.max.messages.kbytes": 1_000_000,
        "fetch.wait.max.ms": 10,
    }
    command = ["kcat", "-C", "-q", "-e", "-b", args.bootstrap, "-t", args.topic]
    command += ["-o", "beginning", "-f", EACH_RECORD]
    command += [each for pair in settings.items() for each in ("-X", "=".join(map(str, pair)))]
    brokers, cpu, begin = Brokers(args.broker_pid), client_cpu(), time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=keep_to_one_core)
    seconds, megabytes = time.monotonic() - begin, total * args.size / 1e6
    assert len(done.stdout) == total, f"{len(done.stdout)} of {total} were read: {done.stderr}"
    return {
        "records": total,
        "seconds": seconds,
        "mb_s": megabytes / seconds,
        "records_s": total / seconds,
        "client_cpu_per_gb": (client_cpu() - cpu) / megabytes * 1000,
        **brokers.report(megabytes),
    }


def receive(args, count, ready, answers):
    topic = args.answers or args.topic
    ends = end_offsets(args, topic)
    consumer = Consumer(
        {"bootstrap.servers": args.bootstrap, "group.id": "load", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, p, offset) for p, offset in ends.items()])
    consumer.poll(1)
    ready.set()
    took, patience = [], time.monotonic() + args.seconds + 15
    while len(took) < count and time.monotonic() < patience:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            took.append((time.monotonic_ns() - int(message.value()[:STAMP_BYTES])) / 1e9)
    answers.put(took)
    consumer.close()


def latency(args):
    if args.partitions:
        create(args, args.topic, args.partitions)
    count = int(args.rate * args.seconds)
    context = multiprocessing.get_context("fork")
    ready, answers = context.Event(), context.Queue()
    task = context.Process(target=receive, args=(args, count, ready, answers))
    task.start()
    ready.wait(30)
    producer = Producer(config(args, linger_ms=0, acks="all"))
    producer.list_topics(args.topic, timeout=10)
    filling, acked, late = b"x" * (args.size - STAMP_BYTES), [], 0.0
    brokers, begin = Brokers(args.broker_pid), time.monotonic()
    for i in range(count):
        due = begin + i / args.rate
        while (now := time.monotonic()) < due:
            producer.poll(min(due - now, 0.001))
        late = max(late, now - due)
        stamp = time.monotonic_ns()

        def note(error, _, stamp=stamp):
            assert error is None, error
            acked.append((time.monotonic_ns() - stamp) / 1e9)

        producer.produce(args.topic, b"%020d" % stamp + filling, on_delivery=note)
    producer.flush(30)
    took = answers.get(timeout=60)
    task.join()
    report = {"sent": count, "received": len(took), "worst_delay_of_sender_ms": late * 1000}
    return (
        report
        | quantiles(took, "end_to_end")
        | quantiles(acked, "ack")
        | brokers.report(count * args.size / 1e6)
    )


def topics(args):
    brokers, admin = Brokers(args.broker_pid), AdminClient({"bootstrap.servers": args.bootstrap})
    begin = time.monotonic()
    answered, led = create(args, args.topic, args.partitions)
    missing = {TopicPartition(args.topic, p): OffsetSpec.latest() for p in range(args.partitions)}
    while missing:
        time.sleep(0.05)
        for partition, future in admin.list_offsets(missing, request_timeout=5).items():
            with suppress(KafkaException):
                future.result()
                del missing[partition]
    usable = time.monotonic() - begin
    time.sleep(2)
    return {
        "partitions": args.partitions,
        "answered": answered,
        "all_led": led,
        "usable": usable,
        **brokers.report(),
    }


def startup(args):
    request = struct.pack(">ihhihi", 14, 3, 1, 0, -1, 0)  # Metadata v1 of no topics
    begin = time.monotonic()
    with open(os.devnull, "w") as quiet:
        broker = subprocess.Popen(args.command, stdout=quiet, stderr=quiet)
    try:
        while True:
            if time.monotonic() > begin + STARTUP_SECONDS_MAX:
                raise SystemExit(f"no answer in {STARTUP_SECONDS_MAX} s")
            with (
                suppress(OSError, struct.error),
                socket.create_connection(("127.0.0.1", args.port), 1) as s,
                s.makefile("rb") as answer,
            ):
                s.sendall(request)
                if struct.unpack(">iii", answer.read(12))[2] > 0:
                    break
            time.sleep(0.005)
        ready = time.monotonic() - begin
        cpu = Brokers.cpu_seconds(broker.pid)
        time.sleep(2)
        return {"ready": ready, "cpu": cpu, **Brokers.memory(broker.pid)}
    finally:
        broker.terminate()
        broker.wait(STOP_SECONDS_MAX)


def add_verb(verbs, work, summary, **defaults):
    sub = verbs.add_parser(work.__name__, help=summary)
    sub.add_argument("--bootstrap", default="127.0.0.1:9092")
    sub.add_argument("--topic", default="load")
    sub.add_argument("--partitions", type=int, help="create the topic with so many")
    sub.add_argument("--replication", type=int, default=1)
    sub.add_argument("--topic-config", action="append", default=[], metavar="KEY=VALUE")
    sub.add_argument("--config", action="append", default=[], metavar="KEY=VALUE")
    sub.add_argument("--broker-pid", type=int, action="append", default=[])
    sub.add_argument("--size", type=int, default=1000, help="bytes of a record's value")
    sub.add_argument("--seconds", type=float, default=5)
    sub.add_argument("--records", type=int, default=0)
    sub.set_defaults(work=work, **defaults)
    return sub


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    sub = add_verb(verbs, produce, "as fast as it goes")
    sub.add_argument("--acks", default="all")
    sub.add_argument("--producers", type=int, default=1)
    add_verb(verbs, consume, "the whole topic from its beginning")
    sub = add_verb(verbs, latency, "a steady rate, from producer to consumer", seconds=20)
    sub.add_argument("--rate", type=float, default=1000)
    sub.add_argument("--answers", help="another topic, to which somebody passes the records on")
    add_verb(verbs, topics, "create a topic", partitions=1000)
    sub = verbs.add_parser("startup", help="from process start to the first answered Metadata")
    sub.add_argument("--port", type=int, required=True)
    sub.add_argument("command", nargs=argparse.REMAINDER, help="-- and the broker's command line")
    sub.set_defaults(work=startup)
    args = parser.parse_args()
    if args.verb == "startup" and args.command[:1] == ["--"]:
        del args.command[0]
    tell(args)


def tell(args):
    """Run the load that was asked for and print what it reports."""
    report = {"load": args.verb, **args.work(args)}
    rounded = {k: round(v, DIGITS) if isinstance(v, float) else v for k, v in report.items()}
    print(json.dumps(rounded), flush=True)


if __name__ == "__main__":
    main()
