"""The transaction index of a segment: which transactions were aborted.

    .txnindex   34 bytes: version int16 (0) | producer id | first offset | last offset (of the
                marker) | last stable offset when the marker was written; all int64

A reader of committed records drops what these producers wrote between the two offsets. The last
stable offset tells how far a search must go: a transaction that was open at some offset has its
entry before the last stable offset passes that offset.
"""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from strom.log.disk import Disk

ENTRY = Struct(">hqqqq")
VERSION = 0


class AbortedTransaction(NamedTuple):
    """One producer's records from the first to the last offset are void."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def write_entry(aborted: AbortedTransaction) -> bytes:
    """Return the entry in the file's form."""
    return ENTRY.pack(VERSION, *aborted)


def read_entries(data: bytes) -> Iterator[AbortedTransaction]:
    """Yield what the file holds; it ends at the first entry that cannot be one."""
    last_offset = -1
    for version, *fields in ENTRY.iter_unpack(data[: len(data) // ENTRY.size * ENTRY.size]):
        aborted = AbortedTransaction._make(fields)
        if version != VERSION or aborted.last_offset <= last_offset:
            return
        last_offset = aborted.last_offset
        yield aborted


def read_aborted(disk: Disk, path: str) -> list[AbortedTransaction]:
    """Return what the file holds; most segments have none."""
    try:
        return list(read_entries(disk.read(path)))
    except FileNotFoundError:
        return []
