"""`strom produce`: send lines, arguments, JSON or a file as records.

Keys go to partitions as the Java client sends them (murmur2), so that producers in several
languages agree where a key lives (PRO-06); a record without a key goes to any partition.
"""

import base64
import binascii
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, NamedTuple

import typer

from strom.cli import client
from strom.cli.failure import USED_WRONGLY, Failure, is_text, require_text
from strom.cli.options import ANY_BYTES, ReportOptions, Topic, examples, taking
from strom.cli.output import console
from strom.cli.span import TIME_MS_MAX

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer

#: From this size on a file is sent with a progress bar.
LARGE_BYTES = 4 << 20
UNASSIGNED = -1
FLUSH_SECONDS = 0.5


class Codec(StrEnum):
    """How batches are compressed."""

    none = "none"
    gzip = "gzip"
    snappy = "snappy"
    lz4 = "lz4"
    zstd = "zstd"


class Acks(StrEnum):
    """How many replicas must have a record before it counts as sent."""

    all = "all"
    one = "1"
    none = "0"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceOptions(ReportOptions):
    """What to send, where to, and how carefully."""

    topic: Topic
    values: Annotated[
        list[str] | None,
        typer.Argument(metavar="VALUE", show_default=False, help="Default: lines of input."),
        ANY_BYTES,
    ] = None
    key: Annotated[
        str | None, typer.Option("--key", "-k", help="Key of every record."), ANY_BYTES
    ] = None
    key_separator: Annotated[
        str | None,
        typer.Option("--key-separator", "-K", help="What stands between key and value in a line."),
        ANY_BYTES,
    ] = None
    header: Annotated[
        list[str],
        typer.Option("--header", "-H", metavar="NAME=VALUE", help="Of every record; repeatable."),
        ANY_BYTES,
    ] = field(default_factory=list)
    partition: Annotated[
        int | None, typer.Option("--partition", "-p", min=0, help="Send to this one.")
    ] = None
    file: Annotated[
        str | None,
        typer.Option("--file", "-f", metavar="FILE", help="Read lines from it."),
        ANY_BYTES,
    ] = None
    whole: Annotated[bool, typer.Option("--whole", help="All the input is one record.")] = False
    from_json: Annotated[
        bool,
        typer.Option("--from-json", help="Lines are JSON objects as `consume --json` prints."),
    ] = False
    empty_as_null: Annotated[
        bool, typer.Option("--empty-as-null", "-Z", help="Send '' as null: a tombstone.")
    ] = False
    acks: Annotated[Acks, typer.Option("--acks", "-a", help="Who must have it.")] = Acks.all
    compression: Annotated[Codec, typer.Option("--compression", "-z")] = Codec.none
    idempotence: Annotated[
        bool | None,
        typer.Option("--idempotence/--no-idempotence", help="Default: on, with acks=all."),
    ] = None
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Say where each record went.")
    ] = False


class Outgoing(NamedTuple):
    """A record to send."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int = UNASSIGNED
    #: 0 is the client's word for now.
    timestamp_ms: int = 0


@taking(ProduceOptions)
def produce(options: ProduceOptions) -> None:
    """Send records to a topic."""
    template = Template(options)
    with ExitStack() as stack:
        lines = source(options, stack)
        producer = client.producer(options, producer_properties(options))
        check_partition(producer, options)
        sending = Sending(producer, options)
        try:
            with client.refusals():
                for outgoing in template.records(lines):
                    sending.send(outgoing)
        finally:
            # Also after a signal: what was typed is sent.
            sending.finish()
    sending.report()


def producer_properties(options: ProduceOptions) -> client.Properties:
    """Return the properties that the options stand for."""
    idempotent = options.idempotence
    if idempotent is None:
        # Without acknowledgements from all replicas a retry cannot be told from a new record.
        idempotent = options.acks is Acks.all
    elif idempotent and options.acks is not Acks.all:
        raise Failure("--idempotence needs --acks all", USED_WRONGLY)
    return {
        "acks": options.acks.value,
        "compression.type": options.compression.value,
        "enable.idempotence": idempotent,
        "partitioner": "murmur2_random",
        # A topic that is created by the first record is there sooner than this.
        "topic.metadata.propagation.max.ms": 5000,
    }


def check_partition(producer: "Producer", options: ProduceOptions) -> None:
    """Refuse a partition that the topic does not have; learn whether a broker answers at all."""
    there = len(client.topic_to_write(producer, options.topic).partitions)
    if options.partition is not None and there and options.partition >= there:
        raise Failure(
            f"{options.topic} has no partition {options.partition}: they are 0 to {there - 1}"
        )


def source(options: ProduceOptions, stack: ExitStack) -> Iterable[bytes]:
    """Return the pieces of input, each to become a record."""
    if options.values:
        return [os.fsencode(text) for text in options.values]
    if options.file is None or options.file == "-":
        if sys.stdin.isatty() and not options.whole:
            return prompted()
        return [sys.stdin.buffer.read()] if options.whole else lines_of(sys.stdin.buffer)
    try:
        file = stack.enter_context(Path(options.file).open("rb"))  # noqa: SIM115 - the stack closes it
    except OSError as error:
        raise Failure(f"cannot read {options.file}: {error.strerror}") from None
    if options.whole:
        return [file.read()]
    size_bytes = os.fstat(file.fileno()).st_size
    if size_bytes >= LARGE_BYTES and sys.stderr.isatty():
        return lines_with_progress(file, size_bytes, stack)
    return lines_of(file)


def prompted() -> Iterator[bytes]:
    """Yield what is typed at a prompt, until Ctrl+D (PRO-17)."""
    while True:
        try:
            yield os.fsencode(input("> "))
        except EOFError:
            print(file=sys.stderr)
            return


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """Yield lines without their ends."""
    for line in file:
        yield line.rstrip(b"\r\n")


def lines_with_progress(file: BinaryIO, size_bytes: int, stack: ExitStack) -> Iterator[bytes]:
    """Yield lines, and show how far the file was read."""
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    progress = stack.enter_context(Progress(*columns, console=console(stderr=True)))
    task = progress.add_task("sending", total=size_bytes)
    for line in file:
        progress.advance(task, len(line))
        yield line.rstrip(b"\r\n")


class Template:
    """Makes records of pieces of input."""

    def __init__(self, options: ProduceOptions) -> None:
        self._options = options
        self._separator = bytes_of(options.key_separator)
        self._key = bytes_of(options.key)
        self._headers = tuple(read_header(text) for text in options.header)
        self._partition = UNASSIGNED if options.partition is None else options.partition
        if self._separator == b"" or (options.from_json and self._separator is not None):
            raise Failure("--key-separator must be a text, and not with --from-json", USED_WRONGLY)

    def records(self, pieces: Iterable[bytes]) -> Iterator[Outgoing]:
        """Yield the record that each piece stands for."""
        make: Callable[[bytes, int], Outgoing]
        make = self._from_json if self._options.from_json else self._from_text
        for number, piece in enumerate(pieces, start=1):
            yield make(piece, number)

    def _from_text(self, piece: bytes, number: int) -> Outgoing:
        key, value = self._key, piece
        if self._separator is not None:
            before, separator, value = piece.partition(self._separator)
            if not separator:
                text = piece.decode(errors="replace")
                raise Failure(f"No key separator found on line number {number}: '{text}'")
            key = before
        return Outgoing(self._nulled(key), self._nulled(value), self._headers, self._partition)

    def _nulled(self, data: bytes | None) -> bytes | None:
        return None if self._options.empty_as_null and not data else data

    def _from_json(self, piece: bytes, number: int) -> Outgoing:
        try:
            line = json.loads(piece)
        except ValueError as error:
            raise Failure(f"line {number} is not JSON: {error}") from None
        except RecursionError:
            raise Failure(f"line {number} is not JSON: it is nested too deeply") from None
        if not isinstance(line, dict):
            raise Failure(f"line {number} is not a JSON object")
        return Outgoing(
            json_bytes(line, "key", number) if "key" in line else self._key,
            json_bytes(line, "value", number),
            (*json_headers(line, number), *self._headers),
            self._partition,
            json_timestamp_ms(line, number),
        )


def read_header(text: str) -> tuple[str, bytes | None]:
    """Read NAME=VALUE; NAME alone is a header without a value."""
    name, separator, value = text.partition("=")
    if not name:
        raise Failure(f"--header wants NAME=VALUE, not {text!r}", USED_WRONGLY)
    if not is_text(name):
        require_text([text])
    return name, os.fsencode(value) if separator else None


def bytes_of(word: str | None) -> bytes | None:
    """Return the bytes that were given on the command line, if any."""
    return None if word is None else os.fsencode(word)


def json_bytes(line: dict[str, Any], name: str, number: int) -> bytes | None:
    """Return a text as it is, anything else as JSON, nothing for null."""
    if f"{name}_base64" in line:
        return from_base64(line[f"{name}_base64"], f"{name}_base64", number)
    value = line.get(name)
    return None if value is None else text_bytes(value, name, number)


def text_bytes(value: object, name: str, number: int) -> bytes:
    """Return a text as it is, anything else as JSON."""
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return whole_text(value, name, number).encode()


def whole_text(text: str, name: str, number: int) -> str:
    """Return the text of a line, if it is one: JSON may have half a character in it."""
    if not is_text(text):
        raise Failure(f"line {number}: {name} is no text: it has half a character")
    return text


def from_base64(text: object, name: str, number: int) -> bytes:
    """Return what the base64 in a line stands for."""
    try:
        return base64.b64decode(text, validate=True)  # type: ignore[arg-type]
    except (binascii.Error, TypeError, ValueError):
        raise Failure(f"line {number}: {name} is not base64") from None


def json_headers(line: dict[str, Any], number: int) -> Iterator[tuple[str, bytes | None]]:
    """Read headers: an object, or a list of pairs where a name may come twice."""
    is_binary = "headers_base64" in line
    headers = line["headers_base64"] if is_binary else line.get("headers")
    pairs = list(headers.items()) if isinstance(headers, dict) else headers or []
    if not isinstance(pairs, list) or not all(is_header(each) for each in pairs):
        raise Failure(f"line {number}: headers should be an object or a list of pairs")
    for name, value in pairs:
        whole_text(name, "headers", number)
        if value is None:
            yield name, None
        elif is_binary:
            yield name, from_base64(value, "headers_base64", number)
        else:
            yield name, text_bytes(value, "headers", number)


def is_header(pair: object) -> bool:
    """Whether this is a name and a value; a text of two letters is none."""
    return isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[0], str)


def json_timestamp_ms(line: dict[str, Any], number: int) -> int:
    """Return the record's time; 0, which is now, if the line has none (-1 stands for none too)."""
    timestamp = line.get("timestamp")
    if timestamp is None:
        return 0
    if type(timestamp) is not int or timestamp > TIME_MS_MAX:
        raise Failure(f"line {number}: timestamp is no number of milliseconds")
    return max(timestamp, 0)


class Sent(NamedTuple):
    """What went to a partition; without acknowledgements nobody knows the offsets."""

    records: int = 0
    first_offset: int | None = None
    last_offset: int | None = None

    def and_one_at(self, offset: int | None) -> "Sent":
        """Return this and one record more; answers come in the order of offsets."""
        first = offset if self.first_offset is None else self.first_offset
        return Sent(self.records + 1, first, offset)


class Sending:
    """One run: sends records and takes note of where they went."""

    def __init__(self, producer: "Producer", options: ProduceOptions) -> None:
        self._producer = producer
        self._options = options
        #: How many records went to each partition, and the first and last offset that is known.
        self._sent: dict[int, Sent] = {}
        self._errors: list[str] = []

    def send(self, outgoing: Outgoing) -> None:
        """Hand a record to the client; wait while its queue is full."""
        keywords: dict[str, Any] = {}
        if outgoing.headers:
            keywords["headers"] = list(outgoing.headers)
        if outgoing.timestamp_ms:
            keywords["timestamp"] = outgoing.timestamp_ms
        while True:
            try:
                self._producer.produce(
                    self._options.topic,
                    outgoing.value,
                    outgoing.key,
                    outgoing.partition,
                    self._on_delivery,
                    **keywords,
                )
            except BufferError:
                self._producer.poll(FLUSH_SECONDS)
            else:
                break
        self._producer.poll(0)
        if self._errors:
            raise Failure(self._errors[0])

    def _on_delivery(self, error: "KafkaError | None", message: "Message") -> None:
        if error is not None:
            self._errors.append(f"a record could not be sent: {error.str()}")
            return
        partition = message.partition()
        assert partition is not None
        before = self._sent.get(partition, Sent())
        self._sent[partition] = before.and_one_at(message.offset())
        if self._options.verbose:
            self._tell(message)

    def _tell(self, message: "Message") -> None:
        if self._options.json:
            place = {"partition": message.partition(), "offset": message.offset()}
            print(json.dumps({"topic": message.topic(), **place}))
        else:
            offset = "unknown" if message.offset() is None else message.offset()
            print(f"{message.topic()}-{message.partition()} offset {offset}")

    def finish(self) -> None:
        """Wait until every record was answered; a time-out of the client is an answer too."""
        while self._producer.flush(FLUSH_SECONDS):
            if self._errors:
                self._producer.purge()

    def report(self) -> None:
        """Say how it went."""
        if self._errors:
            more = f" (and {len(self._errors) - 1} more)" if len(self._errors) > 1 else ""
            raise Failure(self._errors[0] + more)
        if self._options.json:
            places = {str(number): sent._asdict() for number, sent in sorted(self._sent.items())}
            sent = sum(each.records for each in self._sent.values())
            line = {"topic": self._options.topic, "sent": sent, "partitions": places}
            print(json.dumps(line))


def add_to(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command(
        epilog=examples(
            "echo 'Countdown gestartet' | strom produce flugdaten",
            "echo 'rakete1:Liftoff' | strom produce flugdaten -K :",
            "strom produce flugdaten 'Liftoff' --key rakete1 --header source=tower --verbose",
            "strom produce users '' --key alice -Z  # a tombstone",
            "strom produce events --file events.jsonl -z zstd",
            "strom consume old --from-beginning -u end --json | strom produce new --from-json",
        )
    )(produce)
