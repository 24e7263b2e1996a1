"""What is left of a batch when its log is cleaned.

    data        the records that are the newest of their key; older ones and those without a key
                go. A tombstone stays until its batch's delete horizon
    aborted     nothing
    a marker    stays until nothing of its transaction is left and a delete horizon has passed

The delete horizon (KIP-534) is set by the first cleaning that finds a batch with tombstones, or
with a marker that is no longer needed: now and `delete.retention.ms` on. It takes the place of the
base timestamp, and a bit of the attributes says so; from then on it stays.

Base offset, last offset, producer, sequence and leader epoch of a batch never change, so a batch
that is left is found where it was. One that is left without records stays as a header where it is
the last one known of its producer: without it a restart would forget the sequence number.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from strom.log.aborted import AbortedTransaction
from strom.log.cold import DamagedSegmentError
from strom.log.producers import Marker, read_marker
from strom.records.batch import (
    CODEC_MASK,
    DELETE_HORIZON_FLAG,
    HEADER_SIZE,
    NO_PRODUCER_ID,
    Buffer,
    Header,
    compute_crc,
)
from strom.records.compression import compress, expand
from strom.records.control_key import ControlType
from strom.records.record import seal
from strom.records.walk import OffsetMap, rebase

TIME_MAX = 2**63 - 1
NO_OFFSET = -1


class LastWritten(NamedTuple):
    """What is known of a producer that may still write."""

    #: Of its newest batch, NO_OFFSET if it is known by a marker only.
    last_offset: int
    epoch: int


class Transactions:
    """The transactions that are met on a way through the log, from some offset on."""

    def __init__(self, aborted: Iterable[AbortedTransaction], start_offset: int) -> None:
        ahead = [each for each in aborted if each.last_offset >= start_offset]
        self._ahead = deque(sorted(ahead, key=lambda each: each.first_offset))
        #: Under way and void, by producer.
        self._void: dict[int, AbortedTransaction] = {}
        #: Producers of which data was met, in a transaction that is void, or that counts.
        self._met_void: set[int] = set()
        self._met: set[int] = set()
        #: The aborted transactions of which there was data still; their markers stay.
        self.kept: list[AbortedTransaction] = []

    def is_void(self, header: Header) -> bool:
        """Take a batch of data into account; return whether its transaction was aborted."""
        self._go_to(header.last_offset)
        if not header.is_transactional:
            return False
        if header.producer_id in self._void:
            self._met_void.add(header.producer_id)
            return True
        self._met.add(header.producer_id)
        return False

    def is_spent(self, header: Header, marker: Marker | None) -> bool:
        """Take a control batch into account; return whether nothing needs it any more."""
        self._go_to(header.last_offset)
        if marker is None:
            return header.record_count == 0
        producer_id = header.producer_id
        if marker.type is not ControlType.ABORT:
            is_needed = producer_id in self._met
            self._met.discard(producer_id)
            return not is_needed
        aborted = self._void.pop(producer_id, None)
        if aborted is None or producer_id not in self._met_void:
            return True
        self._met_void.discard(producer_id)
        self.kept.append(aborted)
        return False

    def _go_to(self, offset: int) -> None:
        while self._ahead and self._ahead[0].first_offset <= offset:
            aborted = self._ahead.popleft()
            self._void.setdefault(aborted.producer_id, aborted)


class Sieve:
    """One way through a log, batch by batch, with a map of what is newest."""

    def __init__(
        self,
        offsets: OffsetMap,
        latest_offset: int,
        transactions: Transactions,
        producers: Mapping[int, LastWritten],
        *,
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        self._offsets = offsets
        self._latest_offset = latest_offset
        self.transactions = transactions
        self._producers = producers
        self._now_ms = now_ms
        self._new_horizon = min(now_ms + delete_retention_ms, TIME_MAX)

    def left_of(self, header: Header, batch: memoryview, *, keep_place: bool) -> Buffer | None:
        """Return the batch as it is to be, None if nothing is left.

        `keep_place` has its header kept in any case, as the place where the segment ends.
        """
        check(header, batch)
        if header.is_control:
            left = self._left_of_marker(header, batch)
        elif self.transactions.is_void(header) or header.record_count == 0:
            left = None
        else:
            left = self._left_of_data(header, batch)
        if left is None and (keep_place or self._is_newest(header)):
            return emptied(header) if header.record_count else batch
        return left

    def _left_of_marker(self, header: Header, batch: memoryview) -> Buffer | None:
        is_spent = self.transactions.is_spent(header, read_marker(header, batch))
        if header.record_count == 0:
            return None
        if not is_spent:
            return batch
        if header.attributes & DELETE_HORIZON_FLAG:
            return None if header.base_timestamp <= self._now_ms else batch
        return self._with_horizon(header, batch[HEADER_SIZE:])

    def _left_of_data(self, header: Header, batch: memoryview) -> Buffer | None:
        codec = header.attributes & CODEC_MASK
        data = expand(codec, batch[HEADER_SIZE:]) if codec else batch[HEADER_SIZE:]
        has_horizon = bool(header.attributes & DELETE_HORIZON_FLAG)
        sifted = self._offsets.sift(
            data,
            0,
            len(data),
            header.record_count,
            header.base_offset,
            header.base_timestamp,
            self._latest_offset,
            not has_horizon or self._now_ms < header.base_timestamp,
        )
        if sifted.record_count == 0:
            return None
        needs_horizon = sifted.has_tombstones and not has_horizon
        if sifted.records is None and not needs_horizon:
            return batch
        newest = header.max_timestamp if header.has_append_time else sifted.newest_ms
        header = header.changed(record_count=sifted.record_count, max_timestamp=newest)
        records = data if sifted.records is None else sifted.records
        if needs_horizon:
            return self._with_horizon(header, records)
        return seal(header, compress(codec, records) if codec else records)

    def _with_horizon(self, header: Header, records: Buffer) -> Buffer:
        # Times are told by how far they lie from the first, which must be a number of the format.
        horizon = min(self._new_horizon, header.base_timestamp + TIME_MAX)
        shift = horizon - header.base_timestamp
        moved = rebase(records, 0, len(records), header.record_count, shift)
        header = header.changed(
            attributes=header.attributes | DELETE_HORIZON_FLAG, base_timestamp=horizon
        )
        codec = header.attributes & CODEC_MASK
        return seal(header, compress(codec, moved) if codec else moved)

    def _is_newest(self, header: Header) -> bool:
        """Whether it is the last batch that is known of a producer."""
        if header.producer_id == NO_PRODUCER_ID:
            return False
        last = self._producers.get(header.producer_id)
        if last is None:
            return False
        if last.last_offset == NO_OFFSET:
            return header.is_control and header.producer_epoch == last.epoch
        return header.last_offset == last.last_offset


def check(header: Header, batch: memoryview) -> None:
    """Refuse a damaged batch: written anew, it would have a right checksum over wrong bytes."""
    if header.crc != compute_crc(batch):
        raise DamagedSegmentError(f"The batch at offset {header.base_offset} is damaged")


def emptied(header: Header) -> Buffer:
    """Return the batch without its records."""
    attributes = header.attributes & ~(CODEC_MASK | DELETE_HORIZON_FLAG)
    return seal(
        header.changed(attributes=attributes, base_timestamp=header.max_timestamp, record_count=0),
        b"",
    )
