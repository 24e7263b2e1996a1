"""`strom perf`: how fast a cluster takes records, gives them back, and passes them through."""

import json
import random
import string
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from strom.cli import client
from strom.cli.failure import USED_WRONGLY, Failure
from strom.cli.latency import Latencies
from strom.cli.options import ReportOptions, Topic, examples, noun, taking
from strom.cli.output import console
from strom.cli.produce import Acks, Codec
from strom.cli.signals import Stop, stoppable

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message, Producer

app = noun("Measure a cluster: sending, reading, and the way from end to end.")

MEGABYTE = 1 << 20
REPORT_SECONDS = 5.0
REFRESH_SECONDS = 0.1
#: Different payloads, so that compression finds in them what it finds in text, not one record.
PAYLOADS_MAX = 1000
PAYLOAD_BYTES_MAX = 16 * MEGABYTE
#: The largest `message.max.bytes` of librdkafka.
SIZE_BYTES_MAX = 1_000_000_000
STUCK_SECONDS_MAX = 30.0
#: What a run that ended before anything came is taken to have lasted.
SECONDS_MIN = 1e-9
#: A latency probe begins with its number and the time it was sent.
PROBE = struct.Struct(">QQ")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions(ReportOptions):
    """The load that all measurements share."""

    topic: Topic
    size: Annotated[
        int, typer.Option("--size", "-s", min=16, max=SIZE_BYTES_MAX, help="Bytes of a record.")
    ] = 1024
    acks: Annotated[Acks, typer.Option("--acks", "-a")] = Acks.all


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceOptions(LoadOptions):
    """How to send."""

    records: Annotated[int, typer.Option("--records", "-n", min=1)] = 1_000_000
    rate: Annotated[int, typer.Option(min=0, help="Records a second; 0: as fast as it goes.")] = 0
    compression: Annotated[Codec, typer.Option("--compression", "-z")] = Codec.none


@app.command(
    epilog=examples(
        "strom perf produce performance-test --records 1000000 --size 1000",
        "strom perf produce performance-test -z lz4 -X linger.ms=100 -X batch.size=100000 --json",
    )
)
@taking(ProduceOptions)
def produce(options: ProduceOptions) -> None:
    """Send records as fast as it goes, or at a rate; measure until each is acknowledged."""
    producer = client.producer(
        options,
        {
            "acks": options.acks.value,
            "compression.type": options.compression.value,
            "enable.idempotence": options.acks is Acks.all,
            "partitioner": "murmur2_random",
            "queue.buffering.max.messages": 1_000_000,
        },
    )
    client.topic_to_write(producer, options.topic)
    with (
        client.refusals(),
        stoppable() as stop,
        progress(options.records, quiet=options.json) as show,
    ):
        run = ProduceRun(producer, options, stop)
        run.send_all(show)
    run.report()
    stop.finish()


class Progress:
    """Shows how far a run is: a bar on a terminal, else a line now and then."""

    def __init__(self, bar: Any, quiet: bool) -> None:  # noqa: ANN401 - rich's, or none
        self._bar = bar
        self._quiet = quiet
        self._next = time.perf_counter() + (REFRESH_SECONDS if bar else REPORT_SECONDS)

    def is_due(self) -> bool:
        """Whether it is time to show something."""
        return time.perf_counter() >= self._next

    def show(self, done: int, text: str) -> None:
        """Show how many records are done, and what there is to say."""
        self._next = time.perf_counter() + (REFRESH_SECONDS if self._bar else REPORT_SECONDS)
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=done, text=text)
        elif not self._quiet:
            print(text, flush=True)


@contextmanager
def progress(total: int | None, *, quiet: bool) -> Iterator[Progress]:
    """Show progress while the block runs."""
    if not sys.stderr.isatty():
        yield Progress(None, quiet)
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar

    text = TextColumn("{task.fields[text]}")
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), text)
    with Bar(*columns, console=console(stderr=True), transient=True) as bar:
        bar.add_task("", total=total, text="")
        yield Progress(bar, quiet)


def payloads(size_bytes: int) -> list[bytes]:
    """Return records of random letters; the same in every run."""
    chance = random.Random(size_bytes)
    letters = string.ascii_uppercase.encode()
    count = max(1, min(PAYLOADS_MAX, PAYLOAD_BYTES_MAX // size_bytes))
    return [bytes(chance.choices(letters, k=size_bytes)) for _ in range(count)]


def rate_text(records: int, size_bytes: int, seconds: float) -> str:
    """Return records and megabytes a second as Kafka's perf tools word it."""
    seconds = max(seconds, SECONDS_MIN)
    return f"{records / seconds:.1f} records/sec ({size_bytes / MEGABYTE / seconds:.2f} MB/sec)"


class ProduceRun:
    """One run of `perf produce`; a signal ends it early, with what was measured until then."""

    def __init__(self, producer: "Producer", options: ProduceOptions, stop: Stop) -> None:
        self._producer = producer
        self._options = options
        self._stop = stop
        self._latencies = Latencies()
        self._error: str | None = None
        self._began = time.perf_counter()
        self._shown = (0, self._began)

    def send_all(self, show: Progress) -> None:
        """Send every record and wait for the last answer."""
        pool = payloads(self._options.size)
        self._began = time.perf_counter()
        self._shown = (0, self._began)
        for number in range(self._options.records):
            if self._stop:
                break
            self._send(pool[number % len(pool)])
            # Serving answers has a price per call, not per answer.
            if number % 64 == 0:
                self._keep_up(number, show)
        while not self._stop and self._producer.flush(REFRESH_SECONDS):
            self._keep_up(self._options.records, show)
        if self._stop:
            # Nobody waits for what is still in the queue, least of all on a broker that hangs.
            self._producer.purge()
            self._producer.flush(REFRESH_SECONDS)
        self._took = time.perf_counter() - self._began

    def _send(self, payload: bytes) -> None:
        while not self._stop:
            try:
                self._producer.produce(self._options.topic, payload, on_delivery=self._on_delivery)
            except BufferError:
                self._producer.poll(0.01)
            else:
                return

    def _keep_up(self, number: int, show: Progress) -> None:
        """Serve answers, keep to the rate, show where we are."""
        self._producer.poll(0)
        if self._options.rate:
            ahead = number / self._options.rate - (time.perf_counter() - self._began)
            while ahead > 0 and not self._stop:
                self._producer.poll(min(ahead, REFRESH_SECONDS))
                ahead = number / self._options.rate - (time.perf_counter() - self._began)
        if self._error is not None:
            self._producer.purge()
            raise Failure(self._error)
        if show.is_due():
            self._show(show)

    def _show(self, show: Progress) -> None:
        done, now = len(self._latencies), time.perf_counter()
        records, seconds = done - self._shown[0], now - self._shown[1]
        self._shown = (done, now)
        stretch = self._latencies.stretch()
        show.show(
            done,
            f"{records} records sent, {rate_text(records, records * self._options.size, seconds)}, "
            f"{stretch.average_ms:.1f} ms avg latency, {stretch.max_ms:.1f} ms max latency.",
        )

    def _on_delivery(self, error: "KafkaError | None", message: "Message") -> None:
        if error is not None:
            # What a stop takes out of the queue comes back here, too.
            if not self._stop:
                self._error = f"a record could not be sent: {error.str()}"
        else:
            self._latencies.add((message.latency() or 0.0) * 1000)

    def report(self) -> None:
        """Say how it went."""
        if self._error is not None:
            raise Failure(self._error)
        records = len(self._latencies)
        size_bytes = records * self._options.size
        summary = self._latencies.summary()
        if self._options.json:
            print_result(records, size_bytes, self._took, **summary.rounded())
        else:
            rate = rate_text(records, size_bytes, self._took)
            print(f"{records} records sent, {rate}, {summary.text()}.")


def print_result(records: int, size_bytes: int, seconds: float, **more: float) -> None:
    """Print the result as a line of JSON."""
    rates = {
        "records": records,
        "bytes": size_bytes,
        "seconds": round(seconds, 4),
        "records_per_second": round(records / max(seconds, SECONDS_MIN), 1),
        "mb_per_second": round(size_bytes / MEGABYTE / max(seconds, SECONDS_MIN), 3),
    }
    print(json.dumps(rates | more))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumeOptions(ReportOptions):
    """How much to read."""

    topic: Topic
    records: Annotated[
        int | None, typer.Option("--records", "-n", min=1, help="Default: all there are.")
    ] = None


@app.command(
    epilog=examples(
        "strom perf consume performance-test",
        "strom perf consume performance-test -n 1000000 -X fetch.min.bytes=1000000 --json",
    )
)
@taking(ConsumeOptions)
def consume(options: ConsumeOptions) -> None:
    """Read a topic from its beginning as fast as it goes."""
    consumer = client.consumer(options, {"auto.offset.reset": "earliest"})
    try:
        there = assign_everything(consumer, options.topic)
        wanted = min(there, options.records) if options.records else there
        if not wanted:
            raise Failure(f"{options.topic} is empty: fill it with `strom perf produce`")
        with stoppable() as stop, progress(wanted, quiet=options.json) as show:
            records, size_bytes, seconds = read_all(consumer, wanted, show, stop)
    finally:
        consumer.close()
    if options.json:
        print_result(records, size_bytes, seconds)
    else:
        rate = rate_text(records, size_bytes, seconds)
        print(f"{records} records received, {rate}, {seconds:.3f} s.")
    stop.finish()


def assign_everything(consumer: "Consumer", topic: str, *, at_end: bool = False) -> int:
    """Assign every partition, from its start or its end; return how many offsets there are."""
    from confluent_kafka import TopicPartition

    assigned, there = [], 0
    for partition in client.partitions_of(consumer, topic):
        start, end = client.watermarks(consumer, TopicPartition(topic, partition))
        there += end - start
        assigned.append(TopicPartition(topic, partition, end if at_end else start))
    consumer.assign(assigned)
    return there


def read_all(
    consumer: "Consumer", wanted: int, show: Progress, stop: Stop
) -> tuple[int, int, float]:
    """Read as many records; return their number, their size and how long it took."""
    records = size_bytes = 0
    began = last = time.perf_counter()
    while records < wanted and not stop and time.perf_counter() - last < STUCK_SECONDS_MAX:
        for message in consumer.consume(num_messages=min(10_000, wanted - records), timeout=0.1):
            if message.error() is not None:
                raise Failure(str(message.error()))
            size_bytes += len(message)
            records += 1
            last = time.perf_counter()
        if show.is_due():
            seconds = time.perf_counter() - began
            show.show(records, f"{records} records, {rate_text(records, size_bytes, seconds)}")
    return records, size_bytes, last - began


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyOptions(LoadOptions):
    """How to probe."""

    records: Annotated[int, typer.Option("--records", "-n", min=1)] = 10_000
    rate: Annotated[int, typer.Option(min=0, help="A second; 0: the next once one came back.")] = 0
    warm_up: Annotated[int, typer.Option(min=0, help="Probes before those that count.")] = 100


@app.command(
    epilog=examples(
        "strom perf latency performance-test",
        "strom perf latency performance-test --records 30000 --rate 1000 --size 1024 --json",
    )
)
@taking(LatencyOptions)
def latency(options: LatencyOptions) -> None:
    """Measure from sending a record to having read it."""
    if options.size < PROBE.size:
        raise Failure(f"--size must be at least {PROBE.size}", USED_WRONGLY)
    settings = {
        "acks": options.acks.value,
        "enable.idempotence": options.acks is Acks.all,
        "linger.ms": 0,
    }
    producer = client.producer(options, settings)
    client.topic_to_write(producer, options.topic)
    consumer = client.consumer(options, {"fetch.wait.max.ms": 500})
    probing = Probing(producer, consumer, options)
    try:
        assign_everything(consumer, options.topic, at_end=True)
        with (
            client.refusals(),
            stoppable() as stop,
            progress(options.records + options.warm_up, quiet=options.json) as show,
        ):
            probing.run(show, stop)
    finally:
        consumer.close()
    probing.report()
    stop.finish()


class Probing:
    """One run of `perf latency`, in one thread: send what is due, then wait for what comes back."""

    def __init__(self, producer: "Producer", consumer: "Consumer", options: LatencyOptions) -> None:
        self._producer = producer
        self._consumer = consumer
        self._options = options
        self._total = options.records + options.warm_up
        self._filler = bytes(options.size - PROBE.size)
        self._latencies = Latencies()
        self._came_back = 0
        self._paced_from = 0.0
        #: When each was sent that is not back: others may write to the topic, too.
        self._under_way: dict[int, int] = {}
        self._error: str | None = None

    def run(self, show: Progress, stop: Stop) -> None:
        """Send every probe and wait until the last came back."""
        sent = 0
        last = time.perf_counter()
        while self._came_back < self._total and not stop:
            now = time.perf_counter()
            due = self._due(sent)
            if sent < self._total and now >= due:
                if sent == self._options.warm_up:
                    self._paced_from = now
                sent += self._send(sent)
                due = self._due(sent)
            self._producer.poll(0)
            if self._error is not None:
                raise Failure(self._error)
            if self._take(self._consumer.poll(max(0.0, min(due - now, REFRESH_SECONDS)))):
                last = time.perf_counter()
            elif now - last > STUCK_SECONDS_MAX:
                raise Failure(f"no probe came back for {STUCK_SECONDS_MAX:.0f} s")
            if show.is_due():
                show.show(self._came_back, self._latencies.stretch().text())

    def _due(self, number: int) -> float:
        """Return when a probe is to be sent; to warm up, each waits for the one before it."""
        if self._options.rate and number > self._options.warm_up:
            return self._paced_from + (number - self._options.warm_up) / self._options.rate
        return 0.0 if number == self._came_back else float("inf")

    def _send(self, number: int) -> bool:
        """Send a probe; False if the client keeps as many as it can."""
        sent_ns = self._under_way[number] = time.perf_counter_ns()
        probe = PROBE.pack(number, sent_ns) + self._filler
        try:
            self._producer.produce(self._options.topic, probe, on_delivery=self._on_delivery)
        except BufferError:
            del self._under_way[number]
            return False
        return True

    def _on_delivery(self, error: "KafkaError | None", _: "Message") -> None:
        if error is not None:
            self._error = f"a record could not be sent: {error.str()}"

    def _take(self, message: "Message | None") -> bool:
        """Measure a probe; False if none came."""
        if message is None:
            return False
        if message.error() is not None:
            raise Failure(str(message.error()))
        came_ns = time.perf_counter_ns()
        value = message.value() or b""
        if len(value) < PROBE.size:
            return False
        number, sent_ns = PROBE.unpack_from(value)
        if self._under_way.get(number) != sent_ns:
            return False
        del self._under_way[number]
        if number >= self._options.warm_up:
            self._latencies.add((came_ns - sent_ns) / 1e6)
        self._came_back += 1
        return True

    def report(self) -> None:
        """Say how it went."""
        summary = self._latencies.summary()
        if self._options.json:
            print(json.dumps({"records": len(self._latencies), **summary.rounded()}))
        else:
            print(f"{len(self._latencies)} records there and back, {summary.text()}.")
