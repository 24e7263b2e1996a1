"""Reads a range of one partition, from its leader into columns.

The next piece is asked for before the last one is decoded, so that the broker works meanwhile. A
leader that is gone is looked for and asked from where the reading was; records that are gone are
told to `on_loss`, which raises or warns, and reading goes on behind them.
"""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, TypeAlias
from uuid import UUID

from strom.records.batch import CODEC_MASK, HEADER_SIZE, Buffer
from strom.records.columns import Columns, Taken
from strom.records.compression import expand
from strom.records.plain_walk import BrokenRecordsError
from strom.spark.clock import Patience
from strom.spark.cluster import PASSING, Cluster
from strom.spark.failure import UnreachableError
from strom.spark.link import drop_link, link_to
from strom.spark.options import Connection
from strom.spark.places import EARLIEST
from strom.spark.task import Task
from strom.spark.visible import Batch, Sight, whole_batches
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import Call

#: Columns are handed on when they hold so much; compressed batches may hold more than was fetched.
COLUMNS_BYTES_MAX = 8 * 1024 * 1024
#: A topic is taken for gone when so many looks in a row did not find it.
LOOKS_MAX = 10

#: Topics by their ids: one that was deleted and made anew is not taken for the one before. Every
#: broker since Kafka 3.1 knows this version.
FETCH = Call("fetch", 13)
#: What a response has for a partition; the records are a view, gone with the next response.
Fetched: TypeAlias = Any
#: Called with words for what is lost.
OnLoss = Callable[[str], None]


class RangeReader:
    """Reads the offsets of one task."""

    def __init__(self, task: Task, connection: Connection, on_loss: OnLoss) -> None:
        self._task = task
        self._connection = connection
        self._cluster = Cluster(connection)
        self._on_loss = on_loss
        self._leader = task.leader
        self._at = task.start
        self._is_asked = False
        self._patience = Patience(connection.patience_ms, connection.retry_backoff_ms)

    def read(self, columns: Columns) -> Iterator[Taken]:
        """Yield the records, a few megabytes at a time."""
        try:
            while self._at < self._task.end:
                yield from self._read_answer(columns)
        finally:
            # Left early, by a LIMIT or an error: an answer may still be on its way.
            if self._is_asked and self._leader is not None:
                drop_link(self._leader, self._connection)
        if columns.count:
            yield columns.take()

    def _read_answer(self, columns: Columns) -> Iterator[Taken]:
        answer = self._fetch()
        if answer is None:
            return
        batches = list(whole_batches(answer.records, checks_crcs=self._connection.checks_crcs))
        if not batches:
            self._wait_for_more(answer)
            return
        self._patience.renew()
        first = self._at
        self._at = batches[-1].header.last_offset + 1
        if self._at <= first:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE, f"{self._task}: asked for {first}, got what is before"
            )
        if self._at < self._task.end:
            self._ask()
        sight = Sight(answer.aborted_transactions or () if self._connection.read_committed else ())
        for batch in batches:
            if sight.shows(batch):
                self._decode(batch, columns, first)
                if columns.size_bytes >= COLUMNS_BYTES_MAX:
                    yield columns.take()

    def _decode(self, batch: Batch, columns: Columns, first: int) -> None:
        header = batch.header
        payload: Buffer = batch.data
        start = HEADER_SIZE
        try:
            if codec := header.attributes & CODEC_MASK:
                payload, start = expand(codec, batch.data[HEADER_SIZE:]), 0
            columns.add(payload, start, len(payload), header, first, self._task.end)
        except (BrokenRecordsError, KafkaError) as error:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"{self._task}: the batch at offset {header.base_offset} cannot be read: {error}",
            ) from None

    def _ask(self) -> None:
        topic_id, (_, number) = self._task.topic_id, self._task.place
        assert self._leader is not None
        try:
            link_to(self._leader, self._connection).send(
                FETCH.key, FETCH.version, FETCH.write(self._request(topic_id, number))
            )
        except UnreachableError:
            # Found again, and told, when the answer is wanted.
            drop_link(self._leader, self._connection)
        else:
            self._is_asked = True

    def _request(self, topic_id: UUID, partition: int) -> object:
        """Return the request for one partition, without a session."""
        message, connection = FETCH.request, self._connection
        place = message.FetchPartition(
            partition=partition,
            fetch_offset=self._at,
            partition_max_bytes=connection.partition_bytes_max,
        )
        return message.FetchRequest(
            max_wait=timedelta(milliseconds=connection.fetch_wait_max_ms),
            min_bytes=connection.fetch_bytes_min,
            max_bytes=connection.fetch_bytes_max,
            isolation_level=int(connection.read_committed),
            topics=(message.FetchTopic(topic_id=topic_id, partitions=(place,)),),
        )

    def _fetch(self) -> Fetched | None:
        """Return the answer to what was asked, or None where there is to be asked again."""
        if self._leader is None:
            self._find_leader("nobody leads it")
            return None
        if not self._is_asked:
            self._ask()
        try:
            link = link_to(self._leader, self._connection)
            if not self._is_asked:
                return None
            answer = _read_answer(link.receive())
        except UnreachableError as error:
            drop_link(self._leader, self._connection)
            self._is_asked = False
            self._find_leader(error)
            return None
        self._is_asked = False
        return self._judged(answer)

    def _judged(self, answer: Fetched) -> Fetched | None:
        match answer.error_code:
            case ErrorCode.NONE:
                return answer
            case ErrorCode.OFFSET_OUT_OF_RANGE:
                self._skip_what_is_gone()
            case code if code in PASSING:
                self._find_leader(code.name)
            case code:
                raise KafkaError(code, str(self._task))
        return None

    def _find_leader(self, reason: object) -> None:
        """Look who leads the partition now; a topic that is no more is a loss."""
        topic, number = self._task.place
        found = None
        for _ in range(LOOKS_MAX):
            self._patience.wait(f"{self._task}: {reason}")
            found = self._cluster.topics([topic]).get(topic)
            if found is not None and found.id != self._task.topic_id:
                break
            if found is not None and number in found.leaders:
                self._leader = found.leaders[number]
                return
        what = "was deleted" if found is None else "was deleted and made anew"
        self._lose(self._task.end, f"the topic {what}")

    def _skip_what_is_gone(self) -> None:
        """Go on behind the records that retention, or an election, has taken away."""
        place = self._task.place
        topics = self._cluster.topics([place[0]])
        earliest = self._cluster.offsets({place: EARLIEST}, topics).get(place)
        if earliest is None or earliest <= self._at:
            self._lose(self._task.end, "the partition ends before")
        else:
            self._lose(min(earliest, self._task.end), f"the partition begins at {earliest} now")

    def _wait_for_more(self, answer: Fetched) -> None:
        """Wait until there is a whole batch; an end that was planned was there once."""
        if len(answer.records):
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE, f"{self._task}: no whole batch at offset {self._at}"
            )
        try:
            self._patience.wait(f"{self._task}: nothing to read at offset {self._at}")
        except UnreachableError:
            self._lose(self._task.end, f"the partition ends at {answer.high_watermark} now")

    def _lose(self, end: int, reason: str) -> None:
        self._on_loss(f"{self._task}: offsets {self._at} to {end - 1} are gone: {reason}")
        self._at = end


def _read_answer(body: memoryview) -> Fetched:
    """Return what the response has for the one partition, or the error of the whole."""
    response = FETCH.read(body)
    if response.error_code or not response.responses:
        return FETCH.response.PartitionData(error_code=response.error_code, records=body[:0])
    (topic,) = response.responses
    (found,) = topic.partitions
    if found.records is None:
        found.records = body[:0]
    return found
