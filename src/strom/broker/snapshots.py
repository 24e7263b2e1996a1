"""Snapshot files of the metadata log: `<end offset>-<epoch>.checkpoint`, as Kafka writes them.

    header and the voters   control records
    the records             that lead to the image at the end offset
    footer                  control record; a file without it is not whole and is not used

A snapshot is written beside its name and renamed, synced, so it is there whole or not at all.
`bootstrap.checkpoint`, written when a directory is formatted, has the same form: the records
that a new cluster begins with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from strom.log.disk import Disk
from strom.metadata.records import read_record, write_record
from strom.raft.voters import Voters, version_message
from strom.records.batch import HEADER_SIZE, Header, compute_crc, read_header
from strom.records.control import read_control, snapshot_footer_batch, write_control_batch
from strom.records.control_key import ControlType
from strom.records.record import Record, read_records, write_batch
from strom.wire.messages import kafka_message

SUFFIX = ".checkpoint"
#: How much of a file is read to find the header; it stands first, with the voters at most.
HEAD_BYTES = 64 * 1024
#: A batch of a snapshot is closed once it has so many bytes; Kafka reads at most 8 MiB.
BATCH_BYTES = 1024 * 1024

if TYPE_CHECKING:
    from kio.schema.snapshot_header_record.v0 import data as snapshot_header
else:
    snapshot_header = kafka_message("snapshot_header_record", "data")


class SnapshotId(NamedTuple):
    """Where in the log a snapshot stands: the later one is the larger one."""

    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        """The name of its file."""
        return f"{self.end_offset:020}-{self.epoch:010}{SUFFIX}"


def parse_file_name(name: str) -> SnapshotId | None:
    """Return which snapshot the file is, if it is one."""
    end_offset, _, epoch = name.removesuffix(SUFFIX).partition("-")
    if not name.endswith(SUFFIX) or not end_offset.isdecimal() or not epoch.isdecimal():
        return None
    return SnapshotId(int(end_offset), int(epoch))


@dataclass(slots=True)
class Contents:
    """What a snapshot holds."""

    records: list[object] = field(default_factory=list)
    voters: Voters | None = None
    is_whole: bool = False


def write_snapshot(
    records: Iterable[object],
    *,
    epoch: int,
    voters: Voters | None,
    last_timestamp_ms: int,
    now_ms: int,
) -> bytes:
    """Return the bytes of a snapshot."""
    messages: list[tuple[ControlType, object]] = [
        (
            ControlType.SNAPSHOT_HEADER,
            snapshot_header.SnapshotHeaderRecord(
                version=0, last_contained_log_timestamp=last_timestamp_ms
            ),
        )
    ]
    if voters is not None:
        messages.append((ControlType.KRAFT_VERSION, version_message()))
        messages.append((ControlType.KRAFT_VOTERS, voters.write()))
    whole = write_control_batch(messages, base_offset=0, leader_epoch=epoch, now_ms=now_ms)
    offset = len(messages)
    for frames in _batches(records):
        batch = [Record(offset + index, now_ms, None, frame) for index, frame in enumerate(frames)]
        whole += write_batch(batch, leader_epoch=epoch)
        offset += len(batch)
    whole += snapshot_footer_batch(base_offset=offset, leader_epoch=epoch, now_ms=now_ms)
    return bytes(whole)


def _batches(records: Iterable[object]) -> Iterator[Sequence[bytes]]:
    frames: list[bytes] = []
    size_bytes = 0
    for record in records:
        frame = write_record(record)
        frames.append(frame)
        size_bytes += len(frame)
        if size_bytes >= BATCH_BYTES:
            yield frames
            frames, size_bytes = [], 0
    if frames:
        yield frames


def read_snapshot(data: bytes) -> Contents:
    """Return what the snapshot holds; `is_whole` is false if its end is missing or damaged."""
    contents = Contents()
    for header, batch in _sound_batches(data):
        for record in read_records(batch):
            if header.is_control:
                take_control(contents, record)
            else:
                contents.records.append(read_record(record.value or b""))
    return contents


def _sound_batches(data: bytes) -> Iterator[tuple[Header, memoryview]]:
    """Yield the batches up to the first that is damaged."""
    whole = memoryview(data)
    position = 0
    while len(data) - position >= HEADER_SIZE:
        header = read_header(data, position)
        batch = whole[position : position + header.size_bytes]
        if not HEADER_SIZE <= header.size_bytes == len(batch) or header.crc != compute_crc(batch):
            return
        yield header, batch
        position += header.size_bytes


def take_control(contents: Contents, record: Record) -> None:
    """Note what a control record of the quorum says."""
    control = read_control(record)
    if control.type is ControlType.KRAFT_VOTERS:
        contents.voters = Voters.read(control.message)
    elif control.type is ControlType.SNAPSHOT_FOOTER:
        contents.is_whole = True


def list_snapshots(disk: Disk, directory: str) -> list[tuple[SnapshotId, int]]:
    """Return the snapshots in the directory with their sizes, the oldest first."""
    found = [(parse_file_name(name), size) for name, size in disk.scan(directory)]
    return sorted((each, size) for each, size in found if each is not None)


def last_timestamp_ms(disk: Disk, path: str) -> int | None:
    """Return the time of the newest record that a snapshot stands for; None if it does not say."""
    try:
        file = disk.open(path)
    except FileNotFoundError:
        return None
    try:
        head = file.read_at(0, HEAD_BYTES)
    finally:
        file.close()
    for header, batch in _sound_batches(head):
        for record in read_records(batch) if header.is_control else ():
            control = read_control(record)
            if control.type is ControlType.SNAPSHOT_HEADER:
                stated: int = control.message.last_contained_log_timestamp
                return stated
    return None
