"""Batches on their way to their leaders, each of them written once however often it is sent.

A producer numbers the records that it sends to a partition, so a broker knows a batch that comes
again. Up to five batches are on their way at a time. When one fails for a reason that passes (a
new leader, a broker that starts, an answer that did not come), the answers to the others are
waited for, and whatever has failed is sent again, in order, one by one.

A batch that a topic holds to be too large is sent in halves, which keep the numbers of their
records. A batch that cannot be written within the delivery's time-out ends the task, and so the
producer: its numbers are not used again.
"""

import struct
from collections import deque
from collections.abc import Iterable, Set
from dataclasses import dataclass
from typing import NamedTuple

from strom.records.batch import (
    HEADER_SIZE,
    MAGIC,
    TRANSACTIONAL_FLAG,
    Buffer,
    Header,
    read_header,
    write_header,
)
from strom.records.compression import compress
from strom.records.record import Record, read_records, seal, write_records
from strom.spark.clock import Patience, now_ms
from strom.spark.cluster import PASSING, Cluster, Topic
from strom.spark.failure import UnreachableError
from strom.spark.link import Address, drop_link, link_to
from strom.spark.places import Place
from strom.spark.write_options import Delivery
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import Call
from strom.wire.primitives import count_of, nullable_text, text, varint

#: The last that names topics and leaves it to the client to add partitions to a transaction.
PRODUCE = Call("produce", 11)
ACKS_ALL = -1
SEQUENCES = 2**31

TAKEN = (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
#: What another attempt may cure.
PASSING_HERE = PASSING | {
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
}
_TAKEN_OVER = (
    "another attempt of this task has taken over, or it took longer than "
    "kafka.transaction.timeout.ms, which can be raised"
)
ADVICE = {
    ErrorCode.MESSAGE_TOO_LARGE: "a record is larger than the topic's max.message.bytes",
    ErrorCode.PRODUCER_FENCED: _TAKEN_OVER,
    ErrorCode.INVALID_PRODUCER_EPOCH: _TAKEN_OVER,
    ErrorCode.INVALID_TXN_STATE: _TAKEN_OVER,
    ErrorCode.INVALID_RECORD: "a compacted topic takes no record without a key",
}

_ACKS_TIMEOUT = struct.Struct(">hi")
_INDEX = struct.Struct(">i")


class WriteError(RuntimeError):
    """Rows could not be written."""


class Identity(NamedTuple):
    """Who writes: an id, the epoch that fences off earlier lives, and the name of both if any."""

    id: int
    epoch: int
    transactional_id: str | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """Records on their way, sealed."""

    place: Place
    data: bytearray | memoryview
    count: int


#: A batch that was not taken, and why.
Failed = tuple[Batch, Exception]


class Producer:
    """Sends batches; each partition gets them in the order in which they were given."""

    def __init__(self, cluster: Cluster, delivery: Delivery, identity: Identity) -> None:
        self._cluster = cluster
        self._delivery = delivery
        self._identity = identity
        self._sequences: dict[Place, int] = {}
        #: Partitions that may not have taken a batch yet.
        self._unknown_at: set[Place] = set()
        self._topics: dict[str, Topic] = {}
        self._learned_ms: dict[str, int] = {}
        #: What has been sent and not been answered, in order.
        self._waiting: deque[tuple[Address, Batch]] = deque()

    def count_partitions(self, topic: str) -> int:
        """Return how many partitions the topic has."""
        learned_ms = self._learned_ms.get(topic)
        if learned_ms is None or now_ms() - learned_ms > self._delivery.metadata_age_ms:
            # The question goes the way of the batches, and their answers come first.
            self.flush()
            self._learn({topic})
        return len(self._topics[topic].leaders)

    def expect(self, places: Set[Place]) -> None:
        """Batches may come for any partition."""

    def send(self, place: Place, records: memoryview, count: int, *, now_ms: int) -> None:
        """Send records, given with room for a header in front; wait only if many are under way."""
        self._wait_for_the_first(place)
        batch = self._seal(place, records, count, now_ms)
        while len(self._waiting) >= self._delivery.in_flight_max:
            self._settle()
        leader = self._topics[place[0]].leaders.get(place[1])
        error = self._dispatch(leader, batch)
        if error is None and leader is not None:
            self._waiting.append((leader, batch))
        elif error is not None:
            self._recover([*self._drain(leader, error), (batch, error)])

    def flush(self) -> None:
        """Return when everything that was sent has been taken."""
        while self._waiting:
            self._settle()

    def close(self) -> None:
        """Let go of connections on which there may be answers still."""
        for leader, _ in self._waiting:
            drop_link(leader, self._cluster.connection)
        self._waiting.clear()

    def _wait_for_the_first(self, place: Place) -> None:
        """See that a partition has taken a first batch before there is a second.

        A broker that knows nothing of a producer takes whatever comes first for its beginning.
        """
        if place not in self._sequences:
            self._unknown_at.add(place)
        elif place in self._unknown_at:
            while any(batch.place == place for _, batch in self._waiting):
                self._settle()
            self._unknown_at.discard(place)

    def _seal(self, place: Place, records: memoryview, count: int, now_ms: int) -> Batch:
        sequence = self._sequences.get(place, 0)
        self._sequences[place] = (sequence + count) % SEQUENCES
        delivery, identity = self._delivery, self._identity
        flags = TRANSACTIONAL_FLAG if identity.transactional_id is not None else 0
        header = Header(
            base_offset=0,
            length=len(records) - 12,
            leader_epoch=-1,
            magic=MAGIC,
            crc=0,
            attributes=delivery.codec | flags,
            last_offset_delta=count - 1,
            base_timestamp=now_ms,
            max_timestamp=now_ms,
            producer_id=identity.id,
            producer_epoch=identity.epoch,
            base_sequence=sequence,
            record_count=count,
        )
        if delivery.codec:
            payload = compress(delivery.codec, records[HEADER_SIZE:], delivery.codec_level)
            return Batch(place, seal(header, payload), count)
        write_header(records, header)
        return Batch(place, records, count)

    def _dispatch(self, leader: Address | None, batch: Batch) -> Exception | None:
        """Send the batch on its way; return why that is not possible, if it is not."""
        connection, name = self._cluster.connection, self._identity.transactional_id
        if leader is None:
            return KafkaError(ErrorCode.LEADER_NOT_AVAILABLE)
        request = write_request(batch, name, connection.request_timeout_ms)
        try:
            link_to(leader, connection).send(PRODUCE.key, PRODUCE.version, *request)
        except UnreachableError as error:
            drop_link(leader, connection)
            return error
        return None

    def _settle(self) -> None:
        """Wait for the oldest answer; see to it that what has failed arrives all the same."""
        leader, batch = self._waiting.popleft()
        error = self._answer(leader)
        if error is not None:
            self._recover([(batch, error), *self._drain(leader, error)])

    def _answer(self, leader: Address) -> Exception | None:
        """Return why the batch that is answered next was not taken, if it was not."""
        try:
            code, message = read_response(link_to(leader, self._cluster.connection).receive())
        except UnreachableError as error:
            drop_link(leader, self._cluster.connection)
            return error
        return None if code in TAKEN else KafkaError(code, message)

    def _drain(self, leader: Address | None, error: Exception) -> list[Failed]:
        """Wait for all answers; return what has failed, in order, when this leader's link did so.

        On a connection that is gone no answer comes any more.
        """
        gone = {leader: error} if isinstance(error, UnreachableError) else {}
        failed: list[Failed] = []
        while self._waiting:
            leader, batch = self._waiting.popleft()
            reason = gone.get(leader) or self._answer(leader)
            if isinstance(reason, UnreachableError):
                gone[leader] = reason
            if reason is not None:
                failed.append((batch, reason))
        return failed

    def _recover(self, failed: list[Failed]) -> None:
        """Send again what has failed, in order; nothing else is under way."""
        for batch, error in failed:
            self._deliver(batch, error)

    def _deliver(self, batch: Batch, error: Exception) -> None:
        """Send one batch until it is taken; nothing else is under way."""
        patience = Patience(self._delivery.timeout_ms, self._cluster.connection.retry_backoff_ms)
        reason: Exception | None = error
        # What was sent before this one had failed too, and has been taken by now.
        if isinstance(error, KafkaError) and error.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            reason = self._attempt(batch)
        while reason is not None:
            if isinstance(reason, KafkaError):
                if reason.code is ErrorCode.MESSAGE_TOO_LARGE and batch.count > 1:
                    for half in halves(batch, self._delivery):
                        self._deliver(half, KafkaError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER))
                    return
                self._refuse(batch.place, reason)
            patience.wait(f"{_named(batch.place)}: {reason}")
            reason = self._attempt(batch)

    def _refuse(self, place: Place, error: KafkaError) -> None:
        if error.code not in PASSING_HERE:
            advice = ADVICE.get(error.code)
            raise WriteError(f"{_named(place)}: {error}" + (f" ({advice})" if advice else ""))

    def _attempt(self, batch: Batch) -> Exception | None:
        topic, partition = batch.place
        self._learn({topic})
        leader = self._topics[topic].leaders.get(partition)
        error = self._dispatch(leader, batch)
        if error is None and leader is not None:
            error = self._answer(leader)
        return error

    def _learn(self, names: set[str]) -> None:
        """Ask who leads the partitions now."""
        found = self._cluster.topics(names)
        for name in names - found.keys():
            raise WriteError(f"There is no topic '{name}': create it before rows go there.")
        self._topics |= found
        self._learned_ms |= dict.fromkeys(found, now_ms())


def _named(place: Place) -> str:
    return f"partition {place[1]} of topic '{place[0]}'"


def halves(batch: Batch, delivery: Delivery) -> Iterable[Batch]:
    """Return the batch as two; every record keeps its place in the producer's numbering."""
    records = list(read_records(batch.data))
    header = read_header(batch.data)
    middle = len(records) // 2
    for first, stop in ((0, middle), (middle, len(records))):
        part = [
            Record(at, each.timestamp_ms, each.key, each.value, each.headers)
            for at, each in enumerate(records[first:stop])
        ]
        payload: bytes | bytearray = write_records(part, 0, header.base_timestamp)
        if delivery.codec:
            payload = compress(delivery.codec, payload, delivery.codec_level)
        own = header.changed(
            last_offset_delta=len(part) - 1,
            base_sequence=(header.base_sequence + first) % SEQUENCES,
            record_count=len(part),
        )
        yield Batch(batch.place, seal(own, payload), len(part))


def write_request(
    batch: Batch, transactional_id: str | None, timeout_ms: int
) -> tuple[bytes, Buffer, bytes]:
    """Return a Produce request with one batch: what is before it, the batch, and what is behind."""
    topic, partition = batch.place
    before = b"".join(
        (
            nullable_text(transactional_id, True),
            _ACKS_TIMEOUT.pack(ACKS_ALL, timeout_ms),
            count_of(1, True),
            text(topic, True),
            count_of(1, True),
            _INDEX.pack(partition),
            varint(len(batch.data) + 1),
        )
    )
    # Behind it: no tagged fields of the partition, the topic or the request.
    return before, batch.data, b"\0\0\0"


def read_response(answer: memoryview) -> tuple[ErrorCode, str | None]:
    """Return what became of the one batch of a request."""
    (topic,) = PRODUCE.read(answer).responses
    (found,) = topic.partition_responses
    messages = (each.batch_index_error_message for each in found.record_errors)
    return found.error_code, found.error_message or next(filter(None, messages), None)
