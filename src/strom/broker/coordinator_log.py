"""One partition of an internal topic, as the log that a coordinator writes to and is loaded from.

What a decision writes is one batch, all or nothing. With one replica, which is what a single node
has, it is committed when it is written, and nobody waits.

The errors are those that a coordinator's clients understand, as Kafka translates them: who
lost the partition is no coordinator, who cannot replicate is not available.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

from strom.broker.flushing import Flushing
from strom.log.producers import read_marker
from strom.records.batch import (
    HEADER_SIZE,
    TRANSACTIONAL_FLAG,
    Header,
    read_header,
)
from strom.records.control_key import ControlType
from strom.records.keyed import write_keyed
from strom.records.record import Producer, read_records
from strom.replicated.machine import CoordinatorMachine, KeyValue, Transaction
from strom.replication.partition import Partition
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.fetch import Slice

#: Coordinators do not number what they write; Kafka's put a 0 where a producer's number would be.
FIRST_SEQUENCE = 0
NOBODY = Producer(base_sequence=FIRST_SEQUENCE)

#: What an append that failed means to who asked the coordinator.
TRANSLATED = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


class RecordForm(Protocol):
    """How a kind of coordinator turns its records into bytes; a module can be one."""

    def write_key(self, key: object) -> bytes:
        """Return the key's bytes."""

    def write_value(self, value: object) -> bytes:
        """Return the value's bytes."""

    def read(self, key: bytes, value: bytes | None) -> KeyValue | None:
        """Read a record; None if it is of a type that is not known."""

    def room_for_later(self, records: Sequence[KeyValue]) -> int:
        """Return how many bytes more must fit where these do, for what must follow them."""


class CoordinatorLog:
    """The log of one shard."""

    def __init__(
        self,
        partition: Partition,
        form: RecordForm,
        flushing: Flushing,
        *,
        codec: int,
        timeout_ms: int,
    ) -> None:
        self.partition = partition
        self._form = form
        self._flushing = flushing
        self._codec = codec
        self._timeout_ms = timeout_ms
        #: The lead that this log is written under: who leads anew begins anew.
        self._leader_epoch = partition.leader_epoch
        #: Everything before must be synced before it is told.
        self._flush_before = 0

    @property
    def end_offset(self) -> int:
        """The offset that the next record will get."""
        return self.partition.log.end_offset

    @property
    def name(self) -> str:
        """The partition's name, for the log."""
        return f"{self.partition.topic}-{self.partition.index}"

    def is_of(self, partition: Partition | None) -> bool:
        """Whether this is still the log of the partition under its leader of today."""
        return partition is self.partition and partition.leader_epoch == self._leader_epoch

    # Writing.

    def append(
        self, records: Sequence[KeyValue], now_ms: int, transaction: Transaction | None = None
    ) -> None:
        """Append the records as one batch, all or nothing; raise a KafkaError if it cannot be.

        What is only deleted may go in several, of which the disk may take some and not the rest:
        a batch has a limit, and names may be long.
        """
        write_key, write_value = self._form.write_key, self._form.write_value
        pairs = [
            (write_key(key), None if value is None else write_value(value))
            for key, value in records
        ]
        producer, flags = NOBODY, 0
        if transaction is not None:
            producer, flags = Producer(*transaction, FIRST_SEQUENCE), TRANSACTIONAL_FLAG
        batch = write_keyed(pairs, now_ms, producer=producer, flags=flags, codec=self._codec)
        size_bytes = len(batch) + self._form.room_for_later(records)
        if size_bytes > self.partition.log.config.message_bytes_max:
            if (
                transaction is None
                and len(records) > 1
                and all(each.value is None for each in records)
            ):
                middle = len(records) // 2
                self.append(records[:middle], now_ms)
                self.append(records[middle:], now_ms)
                return
            raise KafkaError(
                TRANSLATED[ErrorCode.MESSAGE_TOO_LARGE],
                f"What was decided takes {size_bytes} bytes, more than a batch may have.",
            )
        self.append_batch(batch, now_ms)

    def append_batch(self, batch: bytearray, now_ms: int, *, transaction_version: int = 0) -> None:
        """Append a batch that is written already."""
        partition = self.partition
        try:
            partition.append_own(memoryview(batch), now_ms, transaction_version)
        except KafkaError as error:
            if error.code == ErrorCode.KAFKA_STORAGE_ERROR:
                self._flushing.on_refused(partition)
            raise translated(error) from error
        if self._flushing.on_appended(partition):
            self._flush_before = partition.log.end_offset

    def is_committed(self, end_offset: int) -> bool:
        """Whether all before the offset is committed, and synced where that is asked for."""
        return (
            self.partition.high_watermark >= end_offset
            and self.partition.log.recovery_point >= self._flush_before
        )

    async def wait_committed(self, end_offset: int) -> None:
        """Return once all before the offset is committed; raise a KafkaError if it will not be."""
        partition = self.partition
        if not await partition.wait_committed(end_offset - 1, self._timeout_ms):
            lost = not partition.is_leader
            raise KafkaError(
                ErrorCode.NOT_COORDINATOR if lost else ErrorCode.COORDINATOR_NOT_AVAILABLE
            )
        is_flushed = partition.log.recovery_point >= self._flush_before
        if not is_flushed and not await self._flushing.flush(partition):
            raise translated(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))

    # Reading.

    def find(self, offset: int, bytes_max: int) -> Slice | None:
        """Return what to load next, None at the end; may raise a ColdError."""
        log = self.partition.log
        return log.read(offset, max_bytes=bytes_max, end_offset=log.end_offset, whole_first=True)

    def load(self, found: Slice, offset: int, machine: CoordinatorMachine) -> int:
        """Have the machine apply what the slice holds from the offset on; return where it ends.

        Of values that follow each other only the newest of each key is looked into: a group that
        reads commits the same few offsets all day. Nothing is moved past a record that deletes,
        nor past what belongs to a transaction: what these do depends on what was before.
        """
        newest: dict[bytes, bytes] = {}
        for header, batch in whole_batches(memoryview(found.read_bytes())):
            if header.is_control or header.is_transactional:
                self._apply_all(newest, machine)
                self._load_transactional(header, batch, machine)
            else:
                self._gather(batch, newest, machine)
            offset = header.last_offset + 1
        self._apply_all(newest, machine)
        return offset

    def _gather(
        self, batch: memoryview, newest: dict[bytes, bytes], machine: CoordinatorMachine
    ) -> None:
        """Take the newest values; apply them when something is deleted."""
        for _, _, key, value, _ in read_records(batch):
            # A record without a key is nobody's: compaction will take it.
            if key is None:
                continue
            if value is None:
                self._apply_all(newest, machine)
                self._apply(key, None, machine)
            else:
                # At its new place: as it would be in a log that was compacted.
                newest.pop(key, None)
                newest[key] = value

    def _apply_all(self, newest: dict[bytes, bytes], machine: CoordinatorMachine) -> None:
        """Apply what was gathered, and begin to gather anew."""
        for key, value in newest.items():
            self._apply(key, value, machine)
        newest.clear()

    def _load_transactional(
        self, header: Header, batch: memoryview, machine: CoordinatorMachine
    ) -> None:
        """Apply what was written in a transaction, or its end."""
        producer = header.producer_id, header.producer_epoch
        if header.is_control:
            marker = read_marker(header, batch)
            if marker is not None:
                machine.on_marker(*producer, committed=marker.type is ControlType.COMMIT)
            return
        for _, _, key, value, _ in read_records(batch):
            if key is not None:
                self._apply(key, value, machine, producer)

    def _apply(
        self,
        key: bytes,
        value: bytes | None,
        machine: CoordinatorMachine,
        transaction: Transaction | None = None,
    ) -> None:
        record = self._form.read(key, value)
        if record is not None:
            machine.apply(record, transaction)


def whole_batches(data: memoryview) -> Iterator[tuple[Header, memoryview]]:
    """Yield the batches; one that is cut off at the end is left for the next slice."""
    while len(data) >= HEADER_SIZE:
        header = read_header(data)
        if header.size_bytes > len(data):
            return
        yield header, data[: header.size_bytes]
        data = data[header.size_bytes :]


def translated(error: KafkaError) -> KafkaError:
    """Return what an append that failed means to who asked the coordinator."""
    return KafkaError(TRANSLATED.get(error.code, error.code), error.message)
