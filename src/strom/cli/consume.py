"""`strom consume`: read records; as a reader of its own, in no group, committing nothing.

It starts at the end and runs until it is stopped, unless told otherwise, and says on the way out
how many records it showed, whatever ended it (CON-05).
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from operator import methodcaller
from typing import TYPE_CHECKING, Annotated

import typer

from strom.cli import client
from strom.cli.failure import USED_WRONGLY, Failure
from strom.cli.format import (
    Received,
    Write,
    compile_columns,
    compile_format,
    write_json,
)
from strom.cli.options import ClientOptions, Topics, examples, taking
from strom.cli.signals import Stop, stoppable
from strom.cli.span import Bounds, Kind, Point, offset_of, read_point

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

#: How long a signal may go unnoticed.
POLL_SECONDS = 0.1

Place = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumeOptions(ClientOptions):
    """What to read, from where to where, and how to show it."""

    topics: Topics
    partition: Annotated[
        list[int], typer.Option("--partition", "-p", min=0, help="Only this one; repeatable.")
    ] = field(default_factory=list)
    start: Annotated[
        str,
        typer.Option("--from", "-o", metavar="WHERE", help="beginning, end, OFFSET, -N, TIME."),
    ] = "end"
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="The same as --from beginning.")
    ] = False
    until: Annotated[
        str | None,
        typer.Option("--until", "-u", metavar="WHERE", help="end, OFFSET, TIME; else it follows."),
    ] = None
    count: Annotated[
        int | None, typer.Option("--count", "-n", min=1, help="Stop after so many records.")
    ] = None
    timeout_ms: Annotated[
        int | None, typer.Option(min=1, help="Stop when nothing came for so long.")
    ] = None
    key: Annotated[bool, typer.Option("--key", "-k", help="Show the key, TAB, the value.")] = False
    headers: Annotated[bool, typer.Option("--headers", "-H", help="Show headers first.")] = False
    format: Annotated[
        str | None,
        typer.Option(
            "--format", "-f", help="As kcat's: %t %p %o %T %k %K %s %v %S %R %h \\n \\t \\xHH."
        ),
    ] = None
    json: Annotated[bool, typer.Option("--json", help="Show each record as a JSON line.")] = False
    read_committed: Annotated[
        bool, typer.Option("--read-committed", help="Leave out aborted and open transactions.")
    ] = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No summary at the end.")] = False


@taking(ConsumeOptions)
def consume(options: ConsumeOptions) -> None:
    """Read records from topics."""
    write = writer(options)
    start = point(options.start if not options.from_beginning else "beginning")
    until = None if options.until is None else point(options.until)
    isolation = "read_committed" if options.read_committed else "read_uncommitted"
    consumer = client.consumer(
        options, {"enable.partition.eof": True, "isolation.level": isolation}
    )
    reading = Reading(consumer, options)
    try:
        reading.begin(start, until)
        with stoppable() as stop, summary(reading):
            reading.run(write, stop)
    finally:
        consumer.close()
    stop.finish()


def writer(options: ConsumeOptions) -> Write:
    """Return what writes a record as the options want it."""
    try:
        if options.format is not None:
            return compile_format(options.format)
    except ValueError as error:
        raise Failure(f"--format: {error}", USED_WRONGLY) from None
    if options.json:
        return write_json
    return compile_columns(key=options.key, headers=options.headers)


def point(text: str) -> Point:
    """Read a point; a user's mistake is a Failure."""
    try:
        return read_point(text)
    except ValueError as error:
        raise Failure(str(error), USED_WRONGLY) from None


class Reading:
    """One run: which partitions are still to be read, and how far."""

    def __init__(self, consumer: "Consumer", options: ConsumeOptions) -> None:
        self.consumer = consumer
        self.options = options
        self.shown = 0
        #: Where each partition ends, exclusive; None where it is followed.
        self.ends: dict[Place, int | None] = {}
        #: When reading ends although the last record asked for may not have come.
        self.until_ms: int | None = None

    def begin(self, start: Point, until: Point | None) -> None:
        """Find out where every partition starts and ends; begin to fetch."""
        from confluent_kafka import TopicPartition

        assigned = []
        for topic, partition in self.places():
            bounds = Bounds(*client.watermarks(self.consumer, TopicPartition(topic, partition)))
            offset = self.offset_at((topic, partition), start, bounds)
            if not bounds.start_offset <= offset <= bounds.end_offset:
                raise Failure(
                    f"offset {offset} of {topic}-{partition} is out of range: "
                    f"it holds {bounds.start_offset} to {bounds.end_offset}"
                )
            end = None if until is None else self.end_at((topic, partition), until, bounds)
            if end is None or offset < end:
                self.ends[topic, partition] = end
                assigned.append(TopicPartition(topic, partition, offset))
        with client.refusals():
            self.consumer.assign(assigned)

    def places(self) -> Iterator[Place]:
        """Yield the partitions that are meant."""
        for topic in dict.fromkeys(self.options.topics):
            there = client.partitions_of(self.consumer, topic)
            for partition in self.options.partition or there:
                if partition not in there:
                    last = there[-1]
                    raise Failure(f"{topic} has no partition {partition}: they are 0 to {last}")
                yield topic, partition

    def offset_at(self, place: Place, point: Point, bounds: Bounds) -> int:
        """Return the offset of a point in a partition."""
        at_time = None
        if point.kind is Kind.TIME:
            at_time = client.offset_of_time(self.consumer, place, point.number)
        return offset_of(point, bounds, at_time)

    def end_at(self, place: Place, until: Point, bounds: Bounds) -> int | None:
        """Return where a partition ends; None while a time is still to come."""
        if until.kind is Kind.TIME and until.number > now_ms():
            self.until_ms = until.number
            return None
        return self.offset_at(place, until, bounds)

    def run(self, write: Write, stop: Stop) -> None:
        """Show records until everything asked for was shown, or a signal came."""
        out = Output()
        idle_seconds = 0.0
        while self.ends and not stop and not self.is_full() and not self.is_late():
            message = self.consumer.poll(0)
            if message is None:
                out.flush()
                message = self.consumer.poll(POLL_SECONDS)
            if message is None:
                idle_seconds += POLL_SECONDS
                if self.options.timeout_ms and idle_seconds * 1000 >= self.options.timeout_ms:
                    break
            elif (record := self.take(message)) is not None:
                idle_seconds = 0.0
                out.write(write(record))
                self.shown += 1
        out.flush()

    def is_full(self) -> bool:
        """Whether as many records were shown as were asked for."""
        return self.options.count is not None and self.shown >= self.options.count

    def is_late(self) -> bool:
        """Whether the time to stop at has come."""
        return self.until_ms is not None and now_ms() >= self.until_ms

    def take(self, message: "Message") -> Received | None:
        """Return the record, if it is one that was asked for."""
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None
        assert partition is not None
        error = message.error()
        if error is not None and error.name() != "_PARTITION_EOF":
            raise Failure(f"{topic}-{partition}: {error.str()}")
        place = (topic, partition)
        if place not in self.ends:
            return None
        end = self.ends[place]
        assert offset is not None
        # The last offset may be a transaction's marker or compacted away: then the end of the
        # partition is what tells that everything before it was seen.
        if end is not None and offset + (error is None) >= end:
            del self.ends[place]
        if error is not None or (end is not None and offset >= end):
            return None
        return received(message)


@contextmanager
def summary(reading: Reading) -> Iterator[None]:
    """Say at the end how many records were shown, whatever ended it."""
    try:
        yield
    finally:
        if not reading.options.quiet:
            print(f"Processed a total of {reading.shown} messages", file=sys.stderr)


def received(message: "Message") -> Received:
    """Return a message as a plain value."""
    return Received(
        message.topic() or "",
        message.partition() or 0,
        message.offset() or 0,
        message.timestamp()[1],
        message.key(),
        message.value(),
        headers_of(message),
    )


#: What the client cannot read it returns with an error set. A call out of C finds that; the
#: interpreter of 3.13 does not, and the error comes up wherever C is called next.
ask_for_headers = methodcaller("headers")


def headers_of(message: "Message") -> tuple[tuple[str, bytes | None], ...]:
    """Return the headers; those that the client cannot read are told of and left out."""
    try:
        return tuple(ask_for_headers(message) or ())
    except SystemError:
        place = f"{message.topic()}-{message.partition()} at offset {message.offset()}"
        print(f"strom: {place}: headers left out, a name is not UTF-8 text", file=sys.stderr)
        return ()


class Output:
    """Standard output: exact bytes into a pipe; on a terminal, what is no text is replaced."""

    def __init__(self) -> None:
        self._is_terminal = sys.stdout.isatty()

    def write(self, data: bytes) -> None:
        """Write what one record became."""
        if self._is_terminal:
            sys.stdout.write(data.decode(errors="replace"))
        else:
            sys.stdout.buffer.write(data)

    def flush(self) -> None:
        """Let the reader see everything so far."""
        sys.stdout.flush()


def now_ms() -> int:
    """Read the clock."""
    return round(datetime.now().timestamp() * 1000)


def add_to(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command(
        epilog=examples(
            "strom consume flugdaten --from-beginning --key",
            "strom consume flugdaten --from -10 --until end",
            "strom consume flugdaten --partition 0 --from 17 --count 5 --json",
            "strom consume flugdaten --from 2026-11-16T06:00 --format '%T %k: %s\\n'",
        )
    )(consume)
