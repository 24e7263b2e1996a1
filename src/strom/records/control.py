"""Control records: what brokers write among the data, and clients never see.

    key   = version int16 | type int16
    value = a message of the type: the end of a transaction (markers), or what the quorum
            notes in the metadata log and in its snapshots

A control batch holds one kind of producer's records only: a marker stands alone in its batch,
with the producer whose transaction it ends; the quorum's records have no producer. Keys and
markers have modules of their own, `control_key` and `marker`.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from strom.records.batch import CONTROL_FLAG
from strom.records.control_key import ControlType, read_control_type, write_control_key
from strom.records.record import Record, write_batch
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import KafkaMessage, kafka_message
from strom.wire.primitives import MalformedFrame

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kio.schema.leader_change_message.v0 import data as leader_change_message
    from kio.schema.snapshot_footer_record.v0 import data as snapshot_footer
    from kio.schema.snapshot_header_record.v0 import data as snapshot_header
else:
    leader_change_message = kafka_message("leader_change_message", "data")
    snapshot_footer = kafka_message("snapshot_footer_record", "data")
    snapshot_header = kafka_message("snapshot_header_record", "data")

_VALUE_VERSION = struct.Struct(">h")


#: The message of each type, and its newest version: a newer one is read as that.
FORMS: dict[ControlType, tuple[KafkaMessage, int]] = {
    ControlType.LEADER_CHANGE: (kafka_message("leader_change_message", "data"), 1),
    ControlType.SNAPSHOT_HEADER: (kafka_message("snapshot_header_record", "data"), 0),
    ControlType.SNAPSHOT_FOOTER: (kafka_message("snapshot_footer_record", "data"), 0),
    ControlType.KRAFT_VERSION: (kafka_message("k_raft_version_record", "data"), 0),
    ControlType.KRAFT_VOTERS: (kafka_message("voters_record", "data"), 0),
    ControlType.ABORT: (kafka_message("end_txn_marker", "data"), 0),
    ControlType.COMMIT: (kafka_message("end_txn_marker", "data"), 0),
}


class Control(NamedTuple):
    """A control record, read: its type and its message (None where the type is unknown)."""

    type: ControlType
    message: Any


def read_control(record: Record) -> Control:
    """Return what a record of a control batch says."""
    type_ = read_control_type(record.key)
    if type_ is ControlType.UNKNOWN:
        return Control(type_, None)
    value = record.value
    if value is None or len(value) < _VALUE_VERSION.size:
        raise KafkaError(ErrorCode.INVALID_RECORD, "A control record without a message")
    (version,) = _VALUE_VERSION.unpack_from(value)
    if version < 0:
        raise KafkaError(
            ErrorCode.INVALID_RECORD, f"Invalid version {version} of a control record's message"
        )
    form, newest = FORMS[type_]
    # A marker's version stands in front of its message; the others have it as their first field.
    start = _VALUE_VERSION.size if type_ in (ControlType.ABORT, ControlType.COMMIT) else 0
    try:
        message = form.read(min(version, newest), value, start)
    except MalformedFrame as error:
        raise KafkaError(
            ErrorCode.INVALID_RECORD, f"Unreadable {type_.name} record: {error}"
        ) from None
    return Control(type_, message)


def write_control(type_: ControlType, message: Any, *, offset: int, now_ms: int) -> Record:  # noqa: ANN401
    """Return the record that says the message; markers are written by `marker`."""
    form, _ = FORMS[type_]
    return Record(offset, now_ms, write_control_key(type_), form.write(message.version, message))


def write_control_batch(
    messages: Sequence[tuple[ControlType, object]],
    *,
    base_offset: int,
    leader_epoch: int,
    now_ms: int,
) -> bytearray:
    """Return one batch of the quorum's control records, in the order given."""
    records = [
        write_control(type_, message, offset=base_offset + index, now_ms=now_ms)
        for index, (type_, message) in enumerate(messages)
    ]
    return write_batch(records, leader_epoch=leader_epoch, flags=CONTROL_FLAG)


def leader_change(leader_id: int, voter_ids: Sequence[int], granting_ids: Sequence[int]) -> object:
    """Return the message that a new leader of the quorum writes first."""
    voter = leader_change_message.Voter
    return leader_change_message.LeaderChangeMessage(
        version=0,
        leader_id=leader_id,
        voters=tuple(voter(voter_id=each) for each in voter_ids),
        granting_voters=tuple(voter(voter_id=each) for each in granting_ids),
    )


def leader_change_batch(
    leader_id: int,
    voter_ids: Sequence[int],
    *,
    base_offset: int,
    leader_epoch: int,
    now_ms: int,
    granting_ids: Sequence[int] | None = None,
) -> bytearray:
    """Return the batch with which a new leader opens its epoch; without votes told, all granted."""
    granting = voter_ids if granting_ids is None else granting_ids
    message = leader_change(leader_id, voter_ids, granting)
    return write_control_batch(
        ((ControlType.LEADER_CHANGE, message),),
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        now_ms=now_ms,
    )


def snapshot_header_batch(
    *, last_contained_log_timestamp: int, base_offset: int, leader_epoch: int, now_ms: int
) -> bytearray:
    """Return the batch that opens a snapshot."""
    message = snapshot_header.SnapshotHeaderRecord(
        version=0, last_contained_log_timestamp=last_contained_log_timestamp
    )
    return write_control_batch(
        ((ControlType.SNAPSHOT_HEADER, message),),
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        now_ms=now_ms,
    )


def snapshot_footer_batch(*, base_offset: int, leader_epoch: int, now_ms: int) -> bytearray:
    """Return the batch that ends a snapshot; one without it is not whole."""
    message = snapshot_footer.SnapshotFooterRecord(version=0)
    return write_control_batch(
        ((ControlType.SNAPSHOT_FOOTER, message),),
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        now_ms=now_ms,
    )
