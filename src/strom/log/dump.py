"""Reading a partition's files without a broker, and saying what is in them.

The lines are those of Kafka's `kafka-dump-log`, so that what people and scripts know to read
there they can read here. Files are read by `pread` and never mapped, so a broker may go on
writing to them or cut them short. Nothing here writes.

    dump_lines(path)     what a file of any kind holds, line by line
    read_batches(path)   the batches of a .log file or of a snapshot (.checkpoint)
    batch_fields, record_fields, …   the same as values, for other forms than lines
"""

import os
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from json import dumps
from struct import Struct
from typing import NamedTuple
from uuid import UUID

from strom.log.aborted import read_entries
from strom.log.batches import walk
from strom.log.disk import RealFile
from strom.log.index import OFFSET_ENTRY, TIME_ENTRY
from strom.log.snapshots import read_snapshot
from strom.records.batch import DELETE_HORIZON_FLAG, Header, compute_crc
from strom.records.compression import CODEC_NAMES, Codec
from strom.records.control import read_control
from strom.records.control_key import ControlType, read_control_type
from strom.records.record import Record, read_records
from strom.wire.errors import KafkaError

Field = str | int | bool | list[str] | None
#: How a payload is shown; the metadata log has records that only `strom.metadata` can read.
Decode = Callable[[Record], str]

BOOTSTRAP_FILE = "bootstrap.checkpoint"
LOG_SUFFIXES = (".log", ".checkpoint", ".log.deleted")
#: More than any entry, so that zeros of this size hold none.
_INDEX_READ_BYTES = 64 * 1024
_CONTROL_NUMBER = Struct(">2xh")
#: What a null UUID looks like in Kafka's JSON.
_NO_UUID = UUID(int=0)


class StoredBatch(NamedTuple):
    """A batch as it stands in a file."""

    position: int
    header: Header
    data: memoryview

    @property
    def is_valid(self) -> bool:
        """Whether the checksum fits."""
        return compute_crc(self.data) == self.header.crc

    @property
    def end_position(self) -> int:
        """Where the next batch begins."""
        return self.position + len(self.data)


def base_offset_of(path: str) -> int:
    """Return the offset in a file's name, or 0 if there is none."""
    number = os.path.basename(path)[:20]
    return int(number) if number.isdigit() else 0


def read_bytes(path: str) -> bytes:
    """Return the content of a small file."""
    with open(path, "rb") as file:
        return file.read()


def read_index(path: str) -> bytes:
    """Return an index up to where its zeros begin, of which Kafka allocates 10 MiB ahead."""
    parts = []
    with open(path, "rb") as file:
        while (part := file.read(_INDEX_READ_BYTES)).strip(b"\0"):
            parts.append(part)
    return b"".join(parts)


def read_batches(path: str) -> Iterator[StoredBatch]:
    """Yield the whole batches of the file, valid or not, up to what cannot be one."""
    file = RealFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
    try:
        for position, header, data in walk(file, 0, file.size()):
            yield StoredBatch(position, header, data)
    finally:
        file.close()


def read_offset_entries(data: bytes, base_offset: int) -> Iterator[tuple[int, int]]:
    """Yield (offset, position) from an .index, up to the zeros that Kafka allocates ahead."""
    for index, (relative, position) in enumerate(OFFSET_ENTRY.iter_unpack(_whole(data, 8))):
        if relative == 0 and index > 0:
            return
        if relative or position:
            yield base_offset + relative, position


def read_time_entries(data: bytes, base_offset: int) -> Iterator[tuple[int, int]]:
    """Yield (timestamp, offset) from a .timeindex, up to the zeros that Kafka allocates ahead."""
    for timestamp, relative in TIME_ENTRY.iter_unpack(_whole(data, 12)):
        if timestamp == 0 and relative == 0:
            return
        yield timestamp, base_offset + relative


def _whole(data: bytes, entry_size: int) -> bytes:
    """Cut off the zeros at the end, and an entry that is not whole."""
    used = len(data.rstrip(b"\0"))
    size = (used + entry_size - 1) // entry_size * entry_size
    return data[: min(size, len(data) // entry_size * entry_size)]


def dump_lines(
    path: str, *, with_records: bool = False, decode: Decode | None = None
) -> Iterator[str]:
    """Yield what the file holds as `kafka-dump-log` prints it; records only if wanted."""
    yield f"Dumping {path}"
    if path.endswith(LOG_SUFFIXES):
        yield from _log_lines(path, with_records=with_records, decode=decode)
        return
    data = read_index(path) if path.endswith("index") else read_bytes(path)
    base_offset = base_offset_of(path)
    match os.path.splitext(path)[1]:
        case ".index":
            for offset, position in read_offset_entries(data, base_offset):
                yield f"offset: {offset} position: {position}"
        case ".timeindex":
            for timestamp, offset in read_time_entries(data, base_offset):
                yield f"timestamp: {timestamp} offset: {offset}"
        case ".txnindex":
            yield from _aborted_lines(data)
        case ".snapshot":
            yield from _snapshot_lines(data)
        case _:
            # Checkpoints and properties are text already.
            yield from data.decode("utf-8", "replace").splitlines()


def _log_lines(path: str, *, with_records: bool, decode: Decode | None) -> Iterator[str]:
    yield _log_title(os.path.basename(path))
    end = 0
    for batch in read_batches(path):
        end = batch.end_position
        yield batch_line(batch)
        if with_records:
            yield from _record_lines(batch, decode)
    rest = os.stat(path).st_size - end
    if rest > 0:
        yield f"Found {rest} invalid bytes at the end of {os.path.basename(path)}"


def _log_title(name: str) -> str:
    if name == BOOTSTRAP_FILE:
        return "KRaft bootstrap snapshot"
    if name.endswith(".checkpoint"):
        end_offset, _, epoch = name.removesuffix(".checkpoint").partition("-")
        return f"Snapshot end offset: {int(end_offset)}, epoch: {int(epoch)}"
    return f"Log starting offset: {base_offset_of(name)}"


def _record_lines(batch: StoredBatch, decode: Decode | None) -> Iterator[str]:
    try:
        for record in read_records(batch.data):
            yield record_line(batch.header, record, decode)
    except KafkaError as error:
        yield f"| unreadable: {error}"


def batch_fields(batch: StoredBatch) -> dict[str, Field]:
    """Return what is known of a batch without its records, by Kafka's names, in its order."""
    header = batch.header
    has_horizon = header.attributes & DELETE_HORIZON_FLAG
    return {
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "count": header.record_count,
        "baseSequence": header.base_sequence,
        "lastSequence": header.last_sequence,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "partitionLeaderEpoch": header.leader_epoch,
        "isTransactional": header.is_transactional,
        "isControl": header.is_control,
        "deleteHorizonMs": header.base_timestamp if has_horizon else None,
        "position": batch.position,
        _time_name(header): header.max_timestamp,
        "size": header.size_bytes,
        "magic": header.magic,
        "compresscodec": _codec_name(header.codec),
        "crc": header.crc,
        "isvalid": batch.is_valid,
    }


def batch_line(batch: StoredBatch) -> str:
    """Return Kafka's line for a batch."""
    known = batch_fields(batch)
    horizon = known["deleteHorizonMs"]
    known["deleteHorizonMs"] = _optional_long(horizon)
    return " ".join(f"{name}: {_as_text(value)}" for name, value in known.items())


def record_fields(header: Header, record: Record) -> dict[str, Field]:
    """Return what is known of a record beside its key and value, by Kafka's names."""
    sequence = header.base_sequence
    if sequence >= 0:
        sequence = (sequence + record.offset - header.base_offset) & 0x7FFFFFFF
    return {
        "offset": record.offset,
        _time_name(header): record.timestamp_ms,
        "keySize": -1 if record.key is None else len(record.key),
        "valueSize": -1 if record.value is None else len(record.value),
        "sequence": sequence,
        "headerKeys": [key for key, _ in record.headers],
    }


def record_line(header: Header, record: Record, decode: Decode | None = None) -> str:
    """Return Kafka's line for a record, with key and value, or with what a marker says."""
    known = record_fields(header, record)
    line = " ".join(f"{name}: {_as_text(value)}" for name, value in known.items())
    if header.is_control:
        return f"| {line} {control_text(record)}"
    if record.key is not None:
        line += f" key: {record.key.decode('utf-8', 'replace')}"
    if record.value is not None:
        shown = decode(record) if decode else record.value.decode("utf-8", "replace")
        line += f" payload: {shown}"
    return f"| {line}"


#: What stands before the JSON of a control record; only the first has a colon, in Kafka too.
_CONTROL_TITLES = {
    ControlType.LEADER_CHANGE: "LeaderChange:",
    ControlType.SNAPSHOT_HEADER: "SnapshotHeader",
    ControlType.SNAPSHOT_FOOTER: "SnapshotFooter",
    ControlType.KRAFT_VERSION: "KRaftVersion",
    ControlType.KRAFT_VOTERS: "KRaftVoters",
}


def control_text(record: Record) -> str:
    """Return what a control record says, in Kafka's words."""
    type_ = read_control_type(record.key)
    if type_ is ControlType.UNKNOWN:
        (number,) = _CONTROL_NUMBER.unpack_from(record.key or bytes(4))
        return f"controlType: UNKNOWN({number})"
    found = read_control(record).message
    # Markers have no version among their fields, and only one so far.
    message = as_json(found, getattr(found, "version", 0))
    if type_ in (ControlType.ABORT, ControlType.COMMIT):
        epoch = message["coordinatorEpoch"] if isinstance(message, dict) else -1
        return f"endTxnMarker: {type_.name} coordinatorEpoch: {epoch}"
    return f"{_CONTROL_TITLES[type_]} {dumps(message, separators=(',', ':'))}"


#: Fields of control records that their first version lacks.
_SINCE = {"voterDirectoryId": 1}
NEWEST = max(_SINCE.values())


def fields_made(value: object) -> Sequence[str]:
    """Return the fields of a value that is one of Kafka's messages."""
    names: Sequence[str] = getattr(value, "FIELDS", ())
    return names


def as_json(value: object, version: int = NEWEST) -> object:
    """Return a message as Kafka's JSON has it: names in camel case, UUIDs in base64."""
    names = [each.name for each in fields(value)] if is_dataclass(value) else fields_made(value)
    if names:
        known = {_camel(each): as_json(getattr(value, each), version) for each in names}
        return {name: found for name, found in known.items() if _SINCE.get(name, 0) <= version}
    if isinstance(value, tuple):
        return [as_json(each, version) for each in value]
    if isinstance(value, UUID) or value is None:
        number = value or _NO_UUID
        return urlsafe_b64encode(number.bytes).rstrip(b"=").decode()
    return value


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(each.capitalize() for each in others)


def _aborted_lines(data: bytes) -> Iterator[str]:
    for each in read_entries(data):
        yield (
            f"version: 0 producerId: {each.producer_id} firstOffset: {each.first_offset} "
            f"lastOffset: {each.last_offset} lastStableOffset: {each.last_stable_offset}"
        )


def _snapshot_lines(data: bytes) -> Iterator[str]:
    producers = read_snapshot(data, "")
    if producers is None:
        yield "Snapshot is damaged"
        return
    for producer_id, producer in producers.items():
        start = producer.transaction_start
        line = (
            f"producerId: {producer_id} producerEpoch: {producer.epoch} "
            f"coordinatorEpoch: {producer.coordinator_epoch} "
            f"currentTxnFirstOffset: {_optional_long(None if start < 0 else start)} "
            f"lastTimestamp: {producer.last_timestamp_ms}"
        )
        for each in list(producer.batches)[:1]:
            line += (
                f" firstSequence: {each.first_sequence} lastSequence: {each.last_sequence} "
                f"lastOffset: {each.last_offset} "
                f"offsetDelta: {each.last_offset - each.first_offset} "
                f"timestamp: {each.timestamp_ms}"
            )
        yield line


def _time_name(header: Header) -> str:
    return "LogAppendTime" if header.has_append_time else "CreateTime"


def _codec_name(number: int) -> str:
    return CODEC_NAMES[Codec(number)] if number <= Codec.ZSTD else f"unknown({number})"


def _optional_long(value: Field) -> str:
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def _as_text(value: Field) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{','.join(value)}]"
    return str(value)
