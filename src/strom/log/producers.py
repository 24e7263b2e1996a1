# Compiled by mypyc.
"""What a log knows of its producers: their sequence numbers and their open transactions.

A producer with an id numbers its records. The log takes a batch only if it continues the numbers
(so that nothing is missing), and recognises each of the last five batches (so that one that is sent
again is not written again). An epoch fences off the producer's earlier selves.

    check   before the write: refuse, recognise a duplicate, or let pass; changes nothing
    apply   after the write, and again for each batch that recovery reads; refuses nothing

All of it can be found again from the batches. A snapshot (snapshots.py) saves reading them.

The last stable offset is where the earliest transaction begins that is still open, or whose marker
is not yet committed (above the high watermark).
"""

from collections import deque
from collections.abc import Iterator
from enum import Enum, auto
from struct import Struct
from typing import Final, NamedTuple

from strom.log.aborted import AbortedTransaction
from strom.records.batch import (
    CONTROL_FLAG,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL_FLAG,
    Buffer,
    Header,
)
from strom.records.control_key import ControlType, read_control_type
from strom.records.marker import read_packed
from strom.records.record import read_records
from strom.wire.errors import ErrorCode, KafkaError

#: As many as a producer may have in flight (`max.in.flight.requests.per.connection`).
REMEMBERED_BATCHES: Final = 5
SEQUENCE_MAX: Final = 2**31 - 1
NO_TRANSACTION: Final = -1
NO_COORDINATOR_EPOCH: Final = -1
PRODUCER_EPOCH_MAX: Final = 2**15 - 1
_MARKER_VALUE: Final = Struct(">hi")


class Origin(Enum):
    """Who appends, and so how much is checked."""

    CLIENT = auto()
    #: Group and transaction coordinators: no sequence numbers, but epochs; markers.
    COORDINATOR = auto()
    #: A leader has checked already.
    REPLICATION = auto()


#: Looked up once, for it is asked with every batch.
CLIENT: Final = Origin.CLIENT


class Written:
    """One batch that a producer has in the log."""

    __slots__ = (
        "first_offset",
        "first_sequence",
        "last_offset",
        "last_sequence",
        "timestamp_ms",
    )

    def __init__(
        self,
        first_sequence: int,
        last_sequence: int,
        first_offset: int,
        last_offset: int,
        timestamp_ms: int,
    ) -> None:
        self.first_sequence = first_sequence
        self.last_sequence = last_sequence
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.timestamp_ms = timestamp_ms


class Producer:
    """One producer, as this partition knows it."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_timestamp_ms", "transaction_start")

    def __init__(self, epoch: int = NO_PRODUCER_EPOCH) -> None:
        self.epoch = epoch
        self.coordinator_epoch = NO_COORDINATOR_EPOCH
        self.last_timestamp_ms = -1
        #: The first offset of the open transaction.
        self.transaction_start = NO_TRANSACTION
        self.batches: deque[Written] = deque(maxlen=REMEMBERED_BATCHES)

    @property
    def last_sequence(self) -> int:
        """The number of the latest record, or -1 if none is known in this epoch."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        """The offset of the latest record, or -1 if none is known in this epoch."""
        return self.batches[-1].last_offset if self.batches else -1

    def find(self, header: Header) -> Written | None:
        """Return the remembered batch that has exactly the numbers of this one."""
        first = header.base_sequence
        batches = self.batches
        # What continues the numbers is new, and so nearly all is.
        if header.producer_epoch == self.epoch and batches and first != self.last_sequence + 1:
            last = header.last_sequence
            for each in batches:
                if each.first_sequence == first and each.last_sequence == last:
                    return each
        return None

    def enter_epoch(self, epoch: int) -> None:
        """Let the numbers begin anew if the epoch is another one."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()


class Marker(NamedTuple):
    """The end of a transaction, as a control batch tells it."""

    type: ControlType
    coordinator_epoch: int
    timestamp_ms: int


class Producers:
    """All producers of one partition."""

    __slots__ = ("_by_id", "_open", "_unreplicated", "name")

    def __init__(self, name: str) -> None:
        #: As in messages: "<topic>-<index>".
        self.name = name
        self._by_id: dict[int, Producer] = {}
        #: Producer id to first offset, in the order in which the transactions began.
        self._open: dict[int, int] = {}
        #: (first offset, offset of the marker) of ended ones that were not committed when last
        #: asked; in the order of the markers.
        self._unreplicated: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._by_id)

    def items(self) -> Iterator[tuple[int, Producer]]:
        """Yield every producer with its id, in ascending order of ids."""
        return iter(sorted(self._by_id.items()))

    def get(self, producer_id: int) -> Producer | None:
        """Return the producer of this id, if the log has anything of it."""
        return self._by_id.get(producer_id)

    def has_open(self, producer_id: int, epoch: int) -> bool:
        """Whether the producer has a transaction open here, in this epoch."""
        known = self._by_id.get(producer_id)
        return known is not None and known.epoch == epoch and known.transaction_start >= 0

    def restore(self, producer_id: int, producer: Producer) -> None:
        """Take a producer over from a snapshot."""
        self._by_id[producer_id] = producer
        if producer.transaction_start != NO_TRANSACTION:
            self._open[producer_id] = producer.transaction_start
            self._open = dict(sorted(self._open.items(), key=lambda item: item[1]))

    # Before the write.

    def check(
        self, header: Header, origin: Origin, offset: int, marker: Marker | None, version: int = 0
    ) -> Written | None:
        """Return what an earlier copy of this batch became, or None if it is to be written.

        The header has a producer id; the offset is the one that the batch would get; the version
        is that of the transaction protocol, which matters for markers only.
        """
        known = self._by_id.get(header.producer_id)
        if known is None:
            return None
        if marker is not None:
            self._check_marker(known, header, marker, offset, version)
            return None
        is_client = origin is CLIENT
        if is_client and (earlier := known.find(header)) is not None:
            return earlier
        if header.producer_epoch < known.epoch:
            raise self._fenced(header, known, offset, "<", -1)
        if is_client:
            self._check_sequence(known, header, offset)
        if known.transaction_start != NO_TRANSACTION and not header.attributes & TRANSACTIONAL_FLAG:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"Expected transactional write from producer {header.producer_id} at offset "
                f"{offset} in partition {self.name}",
            )
        return None

    def _check_sequence(self, known: Producer, header: Header, offset: int) -> None:
        first = header.base_sequence
        if header.producer_epoch != known.epoch:
            if first != 0 and known.epoch != NO_PRODUCER_EPOCH:
                raise KafkaError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"Invalid sequence number for new epoch of {self._place(header, offset)}: "
                    f"{header.producer_epoch} (request epoch), {first} (seq. number), "
                    f"{known.epoch} (current producer epoch)",
                )
            return
        last = known.last_sequence
        # Kafka's rule: the number behind the largest one is 0.
        if first != last + 1 and not (first == 0 and last == SEQUENCE_MAX):
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number for {self._place(header, offset)}: {first} "
                f"(incoming seq. number), {last} (current end sequence number)",
            )

    def _place(self, header: Header, offset: int) -> str:
        return f"producer {header.producer_id} at offset {offset} in partition {self.name}"

    def _check_marker(
        self, known: Producer, header: Header, marker: Marker, offset: int, version: int
    ) -> None:
        # KIP-890: from version 2 on the coordinator raises the epoch for each marker, so one
        # with the known epoch is late, or the repetition of one that already ended it. Only the
        # last epoch cannot be raised: what was ever written with it would stay open for good.
        epoch = header.producer_epoch
        is_open = known.transaction_start != NO_TRANSACTION
        if epoch < known.epoch or (
            version >= 2 and epoch == known.epoch and epoch < PRODUCER_EPOCH_MAX and is_open
        ):
            raise self._fenced(header, known, offset, "<=" if version >= 2 else "<", version)
        if known.coordinator_epoch > marker.coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"Invalid coordinator epoch for producerId {header.producer_id} at offset "
                f"{offset} in partition {self.name}: {marker.coordinator_epoch} (zombie), "
                f"{known.coordinator_epoch} (current)",
            )

    def _fenced(
        self, header: Header, known: Producer, offset: int, compared: str, version: int
    ) -> KafkaError:
        return KafkaError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"Epoch of producer {header.producer_id} at offset {offset} in {self.name} is "
            f"{header.producer_epoch}, which is {compared} the last seen epoch {known.epoch} "
            f"(TV{version})",
        )

    # After the write.

    def apply(
        self, header: Header, base_offset: int, marker: Marker | None
    ) -> AbortedTransaction | None:
        """Take the batch into account; return the transaction that it aborted, if it did."""
        producer_id = header.producer_id
        producer = self._by_id.get(producer_id)
        if producer is None:
            producer = self._by_id[producer_id] = Producer(header.producer_epoch)
        elif producer.epoch != header.producer_epoch:
            producer.enter_epoch(header.producer_epoch)
        if header.attributes & CONTROL_FLAG:
            return self._end_transaction(producer_id, producer, base_offset, marker)
        last_offset = base_offset + header.last_offset_delta
        producer.last_timestamp_ms = timestamp = header.max_timestamp
        producer.batches.append(
            Written(header.base_sequence, header.last_sequence, base_offset, last_offset, timestamp)
        )
        if header.attributes & TRANSACTIONAL_FLAG and producer.transaction_start < 0:
            producer.transaction_start = base_offset
            self._open[producer_id] = base_offset
        return None

    def _end_transaction(
        self, producer_id: int, producer: Producer, offset: int, marker: Marker | None
    ) -> AbortedTransaction | None:
        if marker is None:
            return None
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp_ms = marker.timestamp_ms
        first_offset = producer.transaction_start
        if first_offset == NO_TRANSACTION:
            return None
        producer.transaction_start = NO_TRANSACTION
        del self._open[producer_id]
        self._unreplicated.append((first_offset, offset))
        if marker.type is not ControlType.ABORT:
            return None
        stable = next(iter(self._open.values()), offset + 1)
        return AbortedTransaction(producer_id, first_offset, offset, stable)

    # What follows from it.

    def settle(self, high_watermark: int) -> None:
        """Forget the ends that are committed; where nobody reads, nobody else would."""
        if self._unreplicated:
            self._unreplicated = [each for each in self._unreplicated if each[1] >= high_watermark]

    def last_stable_offset(self, high_watermark: int) -> int:
        """Return up to where every transaction is decided, and the decision committed."""
        self.settle(high_watermark)
        if not self._open and not self._unreplicated:
            return high_watermark
        # The one that began first is the first.
        first = next(iter(self._open.values()), high_watermark)
        for start, _ in self._unreplicated:
            first = min(first, start)
        return min(first, high_watermark)

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget the producers that were silent for so long; return how many."""
        # A producer with an open transaction is kept, or the transaction would never end.
        silent = [
            producer_id
            for producer_id, producer in self._by_id.items()
            if producer.transaction_start == NO_TRANSACTION
            and now_ms - producer.last_timestamp_ms >= expiration_ms
        ]
        for producer_id in silent:
            del self._by_id[producer_id]
        return len(silent)


def read_marker(header: Header, batch: Buffer) -> Marker | None:
    """Return the end of a transaction that a batch tells, None if it tells something else."""
    if not header.attributes & CONTROL_FLAG or header.producer_id == NO_PRODUCER_ID:
        return None
    packed = read_packed(header, batch)
    if packed is not None:
        return Marker(packed[0], packed[1], header.base_timestamp)
    for record in read_records(batch):
        kind = read_control_type(record.key)
        if kind in (ControlType.COMMIT, ControlType.ABORT) and record.value is not None:
            coordinator_epoch = _MARKER_VALUE.unpack_from(record.value)[1]
            return Marker(kind, coordinator_epoch, record.timestamp_ms)
    # Compaction has taken the marker out, and all of its transaction with it.
    return None
