"""`strom log`: look into data directories without a broker; nothing is ever changed."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from strom.cli.failure import FAILED, FULL, Failure
from strom.cli.format import as_text
from strom.cli.options import examples, noun, taking

if TYPE_CHECKING:
    from strom.log.dump import Decode
    from strom.log.verify import Problem
    from strom.records.record import Record

app = noun("Read and check the files of a data directory, offline.")

METADATA_LOG = "__cluster_metadata-0"
#: Files that a dump of a directory shows; the others of a log are text, shown when named.
DUMPED = (".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint")
TEXTS = ("-checkpoint", ".deleted", "meta.properties", "partition.metadata", "quorum-state")

Paths = Annotated[list[Path], typer.Argument(metavar="PATH", show_default=False)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpOptions:
    """What to show."""

    paths: Paths
    records: Annotated[
        bool, typer.Option("--records", "-r", help="Also the records inside the batches.")
    ] = False
    json: Annotated[bool, typer.Option("--json", help="A JSON line for each batch.")] = False


@app.command(
    epilog=examples(
        "strom log dump strom-data/flugdaten-0",
        "strom log dump strom-data/flugdaten-0/00000000000000000000.log --records",
        "strom log dump strom-data/flugdaten-0 --records --json",
    )
)
@taking(DumpOptions)
def dump(options: DumpOptions) -> None:
    """Show what files hold, as kafka-dump-log does; of a directory, all its files."""
    from strom.log.dump import dump_lines

    for path in options.paths:
        for file in files_of(path, of_batches=options.json):
            with readable(file):
                if options.json:
                    dump_json(file, with_records=options.records)
                else:
                    for line in dump_lines(
                        str(file), with_records=options.records, decode=decoder(file)
                    ):
                        print(line)


def decoder(path: Path) -> "Decode | None":
    """Return what shows the payload of a metadata log; any other log holds the users' own."""
    from strom.log.dump import as_json
    from strom.metadata.records import Unknown, read_record

    if path.parent.name != METADATA_LOG:
        return None

    def decode(record: "Record") -> str:
        message = read_record(record.value or b"")
        if isinstance(message, Unknown):
            return repr(message)
        return f"{type(message).__name__} {json.dumps(as_json(message))}"

    return decode


def files_of(path: Path, *, of_batches: bool) -> list[Path]:
    """Return the files that are meant by a file, a partition's directory or a data directory."""
    from strom.log.dump import LOG_SUFFIXES

    if path.is_file():
        if not path.name.endswith((*DUMPED, *TEXTS)):
            raise Failure(f"{path} is no file of a log")
        if of_batches and not path.name.endswith(LOG_SUFFIXES):
            raise Failure(f"{path} holds no batches: --json shows {', '.join(LOG_SUFFIXES)}")
        return [path]
    if not path.is_dir():
        raise Failure(f"there is no {path}")
    files = sorted(file for file in path.rglob("*") if file.suffix in DUMPED and file.is_file())
    if not files:
        raise Failure(f"{path} holds no files of a log")
    return files


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn what cannot be read into a Failure that names the file."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno in FULL:
            # That was the output.
            raise
        raise Failure(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise Failure(f"cannot read {path}: {error}") from None


def dump_json(path: Path, *, with_records: bool) -> None:
    """Print each batch of a .log file as a line of JSON; other files have no batches."""
    from strom.log.dump import LOG_SUFFIXES, batch_fields, read_batches, record_fields
    from strom.records.record import read_records
    from strom.wire.errors import KafkaError

    if not path.name.endswith(LOG_SUFFIXES):
        return
    for batch in read_batches(str(path)):
        line: dict[str, object] = {"file": str(path), **batch_fields(batch)}
        if with_records:
            try:
                line["records"] = [
                    {
                        **record_fields(batch.header, record),
                        "key": as_text(record.key),
                        "value": as_text(record.value),
                    }
                    for record in read_records(batch.data)
                ]
            except KafkaError as error:
                line["unreadable"] = str(error)
        print(json.dumps(line, ensure_ascii=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyOptions:
    """What to check."""

    paths: Paths
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False


@app.command(
    epilog=examples("strom log verify strom-data", "strom log verify strom-data/flugdaten-0")
)
@taking(VerifyOptions)
def verify(options: VerifyOptions) -> None:
    """Check checksums, offsets and indexes; exit code 1 if anything is wrong."""
    found = []
    for path in options.paths:
        with readable(path):
            for problem in problems_in(path):
                found.append(problem)
                if not options.json:
                    print(problem)
    if options.json:
        print(json.dumps([problem._asdict() for problem in found], indent=2))
    elif not found:
        print("Everything is as it should be.")
    if found:
        raise typer.Exit(FAILED)


def problems_in(path: Path) -> "Iterator[Problem]":
    """Yield what is wrong in a data directory, or in the directory of one partition."""
    from strom.log.verify import IDENTITY_FILE, verify_directory, verify_partition

    if path.is_file():
        raise Failure(f"{path} is a file: name the directory it is in")
    if not path.is_dir():
        raise Failure(f"there is no directory {path}")
    if (path / IDENTITY_FILE).exists() or not any(path.glob("*.log")):
        yield from verify_directory(str(path))
    else:
        yield from verify_partition(str(path))
