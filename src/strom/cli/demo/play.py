"""The acts of the demo, in order: a topic, live telemetry, the replay, the files."""

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from strom.cli import client
from strom.cli.consume import received
from strom.cli.demo.files import show_files
from strom.cli.demo.flight import ROCKETS, read_telemetry, telemetry
from strom.cli.demo.screen import PRODUCER, REPLAY, Screen, Seen, screen
from strom.cli.demo.stage import stage
from strom.cli.failure import Failure
from strom.cli.format import Received
from strom.cli.latency import Latencies
from strom.cli.options import ClientOptions, taking
from strom.cli.output import console
from strom.cli.topic import finished

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer

TOPIC = "flugdaten"
PARTITIONS = 3
TICK_SECONDS = 0.1
REPLAY_SECONDS = 3.0
LOST_SECONDS_MAX = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """How long to play, and where."""

    seconds: Annotated[float, typer.Option(min=1, help="How long the rockets fly.")] = 12.0
    bootstrap: Annotated[
        str | None,
        typer.Option("--bootstrap-server", "-b", help="Play on this cluster, not on its own."),
    ] = None
    topic: Annotated[str, typer.Option(help="The topic to make; it is deleted afterwards.")] = TOPIC


@taking(DemoOptions)
def demo(options: DemoOptions) -> None:
    """See it work: a broker, rockets that send telemetry, a replay, the files. Half a minute."""
    if options.bootstrap is not None:
        play(options, options.bootstrap, None)
        return
    with stage() as at:
        say(f"A broker started in {at.start_ms:.0f} ms and serves at {at.bootstrap}.")
        play(options, at.bootstrap, at.directory)
    try_next()


def play(options: DemoOptions, bootstrap: str, directory: Path | None) -> None:
    """Play all acts on a broker."""
    address = ClientOptions(bootstrap_server=bootstrap)
    create(address, options.topic)
    try:
        say(
            f"Topic {options.topic} has {PARTITIONS} partitions. Rockets are the keys: "
            "a rocket's records stay in one partition, in order."
        )
        sent = fly(address, options)
        replay(address, options.topic, sent)
        if directory is not None:
            show_files(directory, options.topic)
    finally:
        remove(address, options.topic)


def say(text: str) -> None:
    """Tell the audience what happens."""
    console().print(f"\n[bold]▸[/bold] {text}", soft_wrap=True)


def create(address: ClientOptions, topic: str) -> None:
    """Create the topic."""
    from confluent_kafka.admin import NewTopic

    admin = client.admin(address)
    with client.refusals():
        futures = admin.create_topics([NewTopic(topic, num_partitions=PARTITIONS)])
    finished(futures[topic])


def remove(address: ClientOptions, topic: str) -> None:
    """Delete the topic."""
    admin = client.admin(address)
    with client.refusals():
        futures = admin.delete_topics([topic])
    finished(futures[topic])


def reader(address: ClientOptions, topic: str) -> "Consumer":
    """Return a consumer at the beginning of every partition."""
    from confluent_kafka import TopicPartition

    consumer = client.consumer(address, {})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    return consumer


def fly(address: ClientOptions, options: DemoOptions) -> dict[str, list[bytes]]:
    """Let the rockets fly and watch them live; return what each of them sent."""
    producer = client.producer(address, {"partitioner": "murmur2_random", "linger.ms": 0})
    consumer = reader(address, options.topic)
    flying = Flying(producer, consumer, options)
    try:
        with screen(PRODUCER, PARTITIONS) as shown:
            flying.run(shown)
    finally:
        consumer.close()
    total = sum(map(len, flying.sent.values()))
    half_ms = flying.latencies.summary().p50_ms
    say(f"{total} records sent and received, half of them within {half_ms:.1f} ms.")
    return flying.sent


class Flying:
    """One thread that sends what is due, then reads until the next is."""

    def __init__(self, producer: "Producer", consumer: "Consumer", options: DemoOptions) -> None:
        self._producer = producer
        self._consumer = consumer
        self._options = options
        #: Every record that a rocket sent, in order.
        self.sent: dict[str, list[bytes]] = {rocket: [] for rocket in ROCKETS}
        self._sent_at: dict[tuple[str, int], float] = {}
        self._arrived = dict.fromkeys(ROCKETS, 0)
        self._last_ms = 0.0
        self.latencies = Latencies()

    def run(self, shown: Screen) -> None:
        """Fly, and wait until the last record was seen."""
        began = time.perf_counter()
        ticks = round(self._options.seconds / TICK_SECONDS)
        for tick in range(ticks + 1):
            self._send(tick / ticks, shown)
            while (left := began + (tick + 1) * TICK_SECONDS - time.perf_counter()) > 0:
                self._read(left, shown)
            self._refresh(shown)
        deadline = time.perf_counter() + LOST_SECONDS_MAX
        while self._arrived != {rocket: len(sent) for rocket, sent in self.sent.items()}:
            self._read(TICK_SECONDS, shown)
            if time.perf_counter() > deadline:
                raise Failure("some records did not arrive")
        self._refresh(shown)

    def _send(self, progress: float, shown: Screen) -> None:
        for rocket, sent in self.sent.items():
            measured = telemetry(rocket, progress)
            value = measured.to_json()
            self._sent_at[rocket, len(sent)] = time.perf_counter()
            self._producer.produce(self._options.topic, value, rocket)
            sent.append(value)
            shown.sent(rocket, measured)
        self._producer.poll(0)

    def _read(self, seconds: float, shown: Screen) -> None:
        message = self._consumer.poll(seconds)
        if message is None:
            return
        if message.error() is not None:
            raise Failure(str(message.error()))
        record = seen(received(message))
        number = self._arrived[record.rocket]
        self._arrived[record.rocket] += 1
        self._last_ms = (time.perf_counter() - self._sent_at[record.rocket, number]) * 1000
        self.latencies.add(self._last_ms)
        shown.seen(record)

    def _refresh(self, shown: Screen) -> None:
        sent, arrived = sum(map(len, self.sent.values())), sum(self._arrived.values())
        shown.refresh(f" {sent} sent · {arrived} received · the last after {self._last_ms:.1f} ms")


def seen(record: Received) -> Seen:
    """Return what the screen shows of a record."""
    assert record.key is not None
    assert record.value is not None
    rocket = record.key.decode()
    return Seen(record.partition, record.offset, rocket, read_telemetry(record.value))


def replay(address: ClientOptions, topic: str, sent: dict[str, list[bytes]]) -> None:
    """Read everything again from the beginning; it must be what was sent, in order."""
    say("Rewind: a reader of its own starts at offset 0, and everything is still there.")
    total = sum(map(len, sent.values()))
    again: dict[str, list[bytes]] = {rocket: [] for rocket in sent}
    pause = REPLAY_SECONDS / total if sys.stdout.isatty() else 0.0
    consumer = reader(address, topic)
    try:
        with screen(REPLAY, PARTITIONS) as shown:
            for number in range(1, total + 1):
                message = consumer.poll(LOST_SECONDS_MAX)
                if message is None or message.error() is not None:
                    raise Failure("the replay stopped short")
                record = received(message)
                shown.seen(seen(record))
                again[seen(record).rocket].append(record.value or b"")
                shown.refresh(f" {number} of {total} read again")
                time.sleep(pause)
    finally:
        consumer.close()
    if again != sent:
        raise Failure("the replay is not what was sent")
    say(f"{total} records read again: byte for byte what was sent, in order for each rocket.")


def try_next() -> None:
    """Say what to do now."""
    say("The broker stopped and took its directory with it. Now you:")
    for line in (
        "strom up                                            a broker of your own, on port 9092",
        "strom topic create flugdaten --partitions 3",
        "echo 'rakete1:Liftoff' | strom produce flugdaten -K :",
        "strom consume flugdaten --from-beginning --key",
        "strom perf produce flugdaten --records 1000000       how fast is this machine?",
        "strom --help",
    ):
        print(f"    {line}")
