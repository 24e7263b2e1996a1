"""The last act: the files that hold the records, as Kafka would have written them."""

from pathlib import Path

from strom.cli.output import print_table
from strom.cli.quantity import size_text
from strom.log.dump import read_batches

MEANINGS = {
    ".log": "records",
    ".index": "offset to position",
    ".timeindex": "time to offset",
    ".snapshot": "producers' sequences",
    ".txnindex": "aborted transactions",
}


def show_files(directory: Path, topic: str) -> None:
    """Show every file of every partition."""
    rows = [
        (f"{path.parent.name}/{path.name}", size_text(path.stat().st_size), meaning(path))
        for folder in sorted(directory.glob(f"{topic}-*"))
        for path in sorted(folder.iterdir())
    ]
    print_table(("File", "Size#", "Holds"), rows, title="The files of the topic")


def meaning(path: Path) -> str:
    """Say what a file is for."""
    if path.suffix == ".log":
        counts = [batch.header.record_count for batch in read_batches(str(path))]
        return f"{sum(counts)} records in {len(counts)} batches"
    if path.name == "partition.metadata":
        return "the topic's id"
    if path.name == "leader-epoch-checkpoint":
        return "which leader wrote from where on"
    return MEANINGS.get(path.suffix, "")
