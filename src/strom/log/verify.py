"""Checking a data directory without a broker: what is wrong is returned, nothing is changed.

Of every partition: each batch's checksum and place; that offsets and leader epochs only rise;
that each entry of an index points at the batch it claims; snapshots of producers, aborted
transactions, leader epochs. Of the directory: its identity, and checkpoints against the logs.

What a broker left behind that was killed is wrong in ways that recovery mends (a torn batch at
the very end, indexes behind the log); it is told all the same.
"""

import os
import re
from collections.abc import Generator, Iterator
from typing import NamedTuple

from strom.log.aborted import AbortedTransaction, read_entries
from strom.log.checkpoints import (
    CHECKPOINTS,
    CLEANER,
    LOG_START,
    DamagedCheckpointError,
    read_lines,
)
from strom.log.dump import (
    StoredBatch,
    base_offset_of,
    read_batches,
    read_bytes,
    read_index,
    read_offset_entries,
    read_time_entries,
)
from strom.log.snapshots import read_snapshot
from strom.records.control_key import ControlType, read_control_type
from strom.records.record import read_records
from strom.wire.errors import KafkaError

PARTITION_NAME = re.compile(r"(?P<topic>.+)-(?P<index>\d+)(\.[\w-]+-future)?$")
IDENTITY_FILE = "meta.properties"
IDENTITY_KEYS = ("version", "cluster.id", "node.id", "directory.id")
EPOCHS_FILE = "leader-epoch-checkpoint"
TOPIC_FILE = "partition.metadata"
TOPIC_TEXT = re.compile(rb"version: 0\ntopic_id: [\w-]{22}\n?$")


class Problem(NamedTuple):
    """Something that is not as it must be: in which file, where in it, and what."""

    path: str
    position: int | None
    what: str

    def __str__(self) -> str:
        place = "" if self.position is None else f" at {self.position}"
        return f"{self.path}{place}: {self.what}"


class Span(NamedTuple):
    """The offsets and leader epoch that a log has reached."""

    start_offset: int
    end_offset: int
    epoch: int


#: Yields problems and, when it is done, returns how far the log goes.
Verdict = Generator[Problem, None, Span]


def verify_directory(directory: str) -> Iterator[Problem]:
    """Yield what is wrong in one of `log.dirs`."""
    yield from _verify_identity(os.path.join(directory, IDENTITY_FILE))
    spans: dict[tuple[str, int], Span] = {}
    for name in sorted(os.listdir(directory)):
        path = os.path.join(directory, name)
        found = PARTITION_NAME.match(name)
        if found is None or not os.path.isdir(path):
            continue
        span = yield from _verify_log(path)
        if not name.endswith("-future"):
            spans[found["topic"], int(found["index"])] = span
    for name in CHECKPOINTS:
        yield from _verify_checkpoint(os.path.join(directory, name), spans)


def verify_partition(directory: str) -> list[Problem]:
    """Return what is wrong in one partition's directory."""
    return list(_verify_log(directory))


def _verify_log(directory: str) -> Verdict:
    """Yield what is wrong in one partition's directory; return how far its log goes."""
    names = sorted(os.listdir(directory))
    segments = [name for name in names if name.endswith(".log")]
    if not segments:
        yield Problem(directory, None, "no segment")
        return Span(0, 0, -1)
    span = Span(base_offset_of(segments[0]), 0, -1)
    for name in segments:
        path = os.path.join(directory, name)
        base_offset = base_offset_of(name)
        if base_offset < span.end_offset:
            yield Problem(path, None, f"begins before offset {span.end_offset}")
        span = yield from _verify_segment(path, span._replace(end_offset=base_offset))
    for name in names:
        yield from _verify_beside(os.path.join(directory, name), span)
    return span


def _verify_beside(path: str, span: Span) -> Iterator[Problem]:
    """Yield what is wrong in a file that stands beside the segments."""
    name = os.path.basename(path)
    if name.endswith(".checkpoint"):
        yield from _verify_image(path)
    elif name.endswith(".snapshot"):
        if read_snapshot(read_bytes(path), "") is None:
            yield Problem(path, None, "the snapshot of the producers is damaged")
    elif name == EPOCHS_FILE:
        yield from _verify_epochs(path, span)
    elif name == TOPIC_FILE and not TOPIC_TEXT.match(read_bytes(path)):
        yield Problem(path, None, "no topic id")


def _verify_image(path: str) -> Iterator[Problem]:
    """Yield what is wrong in a snapshot of the metadata: it must begin and end as one."""
    yield from _verify_segment(path, Span(0, 0, -1))
    marks = [batch for batch in read_batches(path) if batch.header.is_control]
    try:
        types = [
            read_control_type(each.key) for batch in marks for each in read_records(batch.data)
        ]
    except KafkaError as error:
        yield Problem(path, None, f"unreadable: {error}")
        return
    if not types or types[0] != ControlType.SNAPSHOT_HEADER:
        yield Problem(path, None, "the snapshot has no header")
    if not types or types[-1] != ControlType.SNAPSHOT_FOOTER:
        yield Problem(path, None, "the snapshot has no footer: it was not finished")


class _Indexes:
    """What the indexes of a segment claim, ticked off batch by batch."""

    __slots__ = ("_aborted", "_positions", "_stem", "_times")

    def __init__(self, log_path: str) -> None:
        self._stem = log_path.removesuffix(".log")
        base_offset = base_offset_of(log_path)
        self._positions = {
            position: offset
            for offset, position in read_offset_entries(self._read(".index"), base_offset)
        }
        #: From the last to the first, so that the next to come is at the end.
        self._times = [*read_time_entries(self._read(".timeindex"), base_offset)][::-1]
        self._aborted = {each.last_offset: each for each in read_entries(self._read(".txnindex"))}

    def _read(self, suffix: str) -> bytes:
        path = self._stem + suffix
        return read_index(path) if os.path.exists(path) else b""

    def check(self, batch: StoredBatch) -> Iterator[Problem]:
        """Yield the entries for this batch that do not fit it."""
        header = batch.header
        offset = self._positions.pop(batch.position, None)
        if offset is not None and offset != header.last_offset:
            what = f"offset {offset} for a batch that ends with {header.last_offset}"
            yield Problem(self._stem + ".index", None, what)
        while self._times and self._times[-1][1] <= header.last_offset:
            timestamp, of = self._times.pop()
            if of < header.base_offset or timestamp != header.max_timestamp:
                what = f"time {timestamp} for offset {of}, whose batch has {header.max_timestamp}"
                yield Problem(self._stem + ".timeindex", None, what)
        aborted = self._aborted.pop(header.last_offset, None)
        if aborted is not None and not _is_abort(batch, aborted):
            yield Problem(
                self._stem + ".txnindex", None, f"no abort marker at {aborted.last_offset}"
            )

    def rest(self) -> Iterator[Problem]:
        """Yield the entries that fit no batch."""
        for position, offset in self._positions.items():
            yield Problem(
                self._stem + ".index", None, f"offset {offset}: no batch at position {position}"
            )
        for timestamp, offset in self._times:
            yield Problem(self._stem + ".timeindex", None, f"time {timestamp}: no offset {offset}")
        for offset in self._aborted:
            yield Problem(self._stem + ".txnindex", None, f"no abort marker at {offset}")


def _is_abort(batch: StoredBatch, aborted: AbortedTransaction) -> bool:
    if not batch.header.is_control or batch.header.producer_id != aborted.producer_id:
        return False
    try:
        types = [read_control_type(record.key) for record in read_records(batch.data)]
    except KafkaError:
        return False
    return types == [ControlType.ABORT]


def _verify_segment(path: str, before: Span) -> Verdict:
    """Yield what is wrong in a segment and its indexes; return how far the log goes after it."""
    indexes = _Indexes(path)
    start_offset, next_offset, epoch = before
    end = 0
    for batch in read_batches(path):
        header = batch.header
        end = batch.end_position
        if not batch.is_valid:
            yield Problem(path, batch.position, "the checksum does not fit")
        if header.base_offset < next_offset:
            what = f"offset {header.base_offset} after {next_offset - 1}"
            yield Problem(path, batch.position, what)
        if header.leader_epoch < epoch:
            what = f"leader epoch {header.leader_epoch} after {epoch}"
            yield Problem(path, batch.position, what)
        yield from indexes.check(batch)
        next_offset = max(next_offset, header.last_offset + 1)
        epoch = max(epoch, header.leader_epoch)
    rest = os.stat(path).st_size - end
    if rest > 0:
        yield Problem(path, end, f"{rest} bytes that are no whole batch")
    yield from indexes.rest()
    return Span(start_offset, next_offset, epoch)


def _verify_epochs(path: str, span: Span) -> Iterator[Problem]:
    try:
        entries = [tuple(map(int, line.split(" "))) for line in read_lines(read_bytes(path))]
    except (DamagedCheckpointError, ValueError) as error:
        yield Problem(path, None, f"unreadable: {error}")
        return
    if sorted(set(entries)) != entries:
        yield Problem(path, None, "the epochs do not ascend")
    if span.epoch >= 0 and not any(entry[0] == span.epoch for entry in entries):
        yield Problem(path, None, f"epoch {span.epoch} of the last batch is missing")


def _verify_identity(path: str) -> Iterator[Problem]:
    if not os.path.exists(path):
        yield Problem(path, None, "missing: the directory was never formatted")
        return
    lines = read_bytes(path).decode("utf-8", "replace").splitlines()
    known = dict(line.split("=", 1) for line in lines if "=" in line and line[0] != "#")
    for key in IDENTITY_KEYS:
        if not known.get(key):
            yield Problem(path, None, f"{key} is missing")


def _verify_checkpoint(path: str, spans: dict[tuple[str, int], Span]) -> Iterator[Problem]:
    if not os.path.exists(path):
        return
    try:
        lines = read_lines(read_bytes(path))
        entries = [
            (topic, int(index), int(offset)) for topic, index, offset in map(str.split, lines)
        ]
    except (DamagedCheckpointError, ValueError) as error:
        yield Problem(path, None, f"unreadable: {error}")
        return
    for topic, index, offset in entries:
        span = spans.get((topic, index))
        if span is None:
            yield Problem(path, None, f"{topic}-{index} has no directory")
        elif offset > span.end_offset:
            what = f"{topic}-{index}: offset {offset} is beyond the log's end {span.end_offset}"
            yield Problem(path, None, what)
        elif offset < span.start_offset and os.path.basename(path) not in (CLEANER, LOG_START):
            what = f"{topic}-{index}: offset {offset} is before the log's start {span.start_offset}"
            yield Problem(path, None, what)
