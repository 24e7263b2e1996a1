"""Rows of a streaming write into a topic, each of them once for a reader of what is committed.

Spark runs a micro-batch again when it does not know how it ended. So each task writes its rows and
a marker in one transaction, and the marker says up to which batch this task's rows are out:

1. Become the producer of this task: `<prefix>-<query id>-<task>`. That ends whatever an earlier
   life left open, and whoever still writes in its name can no longer commit.
2. Read the marker, the offset that the group of the same name has committed, and wait for one
   that is being decided. If it is beyond this batch, the rows are out already: write nothing.
3. Otherwise write the rows, commit batch + 1 as the marker, and end the transaction.

The order of 1 and 2 matters: only after 1 can nobody change the marker any more. Rows and marker
are one transaction, so a rerun finds both or neither.

It holds as long as a batch that is run again brings the same rows to the same task. The query's id
is the checkpoint's: a new checkpoint begins with markers of its own.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Set
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar

from strom.spark.asking import Coordinator, Role, ask_any, refuse
from strom.spark.cluster import Cluster
from strom.spark.failure import UnreachableError
from strom.spark.link import Link
from strom.spark.marker import MARKER_METADATA
from strom.spark.options import Connection
from strom.spark.places import Place
from strom.spark.producing import ADVICE, Identity, Producer, WriteError
from strom.spark.write_options import WriteOptions
from strom.wire.errors import KafkaError
from strom.wire.messages import Call

INIT_PRODUCER_ID = Call("init_producer_id", 4)
ADD_PARTITIONS = Call("add_partitions_to_txn", 3)
ADD_OFFSETS = Call("add_offsets_to_txn", 3)
TXN_OFFSET_COMMIT = Call("txn_offset_commit", 3)
OFFSET_FETCH = Call("offset_fetch", 8)
END_TXN = Call("end_txn", 3)

#: Where the marker stands if the rows themselves say which topics they are for.
OFFSETS_TOPIC = "__consumer_offsets"
MARKER_PARTITION = 0

Read = TypeVar("Read")

_log = logging.getLogger(__name__)


class TaskOfBatch(NamedTuple):
    """Which task of which micro-batch of which query this is."""

    query_id: str
    batch_id: int
    partition_id: int

    def name(self, prefix: str) -> str:
        """Return what the transactional id and the group of the marker are called."""
        return f"{prefix}-{self.query_id}-{self.partition_id}"


def new_identity(connection: Connection) -> Identity:
    """Return a producer that nobody has been before, for rows outside of transactions."""

    def ask(link: Link) -> Identity:
        found = link.ask(INIT_PRODUCER_ID, INIT_PRODUCER_ID.request.InitProducerIdRequest())
        refuse(found.error_code)
        return Identity(found.producer_id, found.producer_epoch)

    return ask_any(connection, ask)


class TaskTransaction:
    """The transaction of one task: its rows, and the marker of its batch."""

    def __init__(self, options: WriteOptions, task: TaskOfBatch) -> None:
        self._options = options
        self._task = task
        self._name = task.name(options.id_prefix)
        self._marker_topic = options.topic or OFFSETS_TOPIC
        self._transactions = Coordinator(options.connection, Role.TRANSACTION, self._name)
        self._groups = Coordinator(options.connection, Role.GROUP, self._name)
        self._identity = self._become_the_producer()
        self._places: set[Place] = set()
        self.producer = Producer(Cluster(options.connection), options.delivery, self._identity)

    def is_written(self) -> bool:
        """Return whether the rows of this batch are out already."""
        wanted = OFFSET_FETCH.request.OffsetFetchRequestTopics(
            name=self._marker_topic, partition_indexes=(MARKER_PARTITION,)
        )
        group = OFFSET_FETCH.request.OffsetFetchRequestGroup(group_id=self._name, topics=(wanted,))
        request = OFFSET_FETCH.request.OffsetFetchRequest(groups=(group,), require_stable=True)
        return self._groups.ask(OFFSET_FETCH, request, _read_marker) > self._task.batch_id

    def count_partitions(self, topic: str) -> int:
        """Return how many partitions the topic has."""
        return self.producer.count_partitions(topic)

    def expect(self, places: Set[Place]) -> None:
        """Take the partitions into the transaction."""
        # The coordinator may be at the other end of a connection with answers under way.
        self.producer.flush()
        self._add(places)

    def send(self, place: Place, records: memoryview, count: int, *, now_ms: int) -> None:
        """Send records as part of the transaction."""
        self.producer.send(place, records, count, now_ms=now_ms)

    def commit(self) -> None:
        """Make rows and marker visible at once."""
        self.producer.flush()
        self._add_marker()
        self._end(committed=True)

    def abort(self) -> None:
        """Take back what was written, if that is possible; if not, the next attempt does it."""
        self.producer.close()
        if not self._places:
            return
        try:
            self._end(committed=False)
        except (KafkaError, UnreachableError, WriteError) as error:
            _log.info("transaction of %s was left to the next attempt: %s", self._name, error)

    def _become_the_producer(self) -> Identity:
        timeout_ms = self._options.transaction_timeout_ms
        request = INIT_PRODUCER_ID.request.InitProducerIdRequest(
            transactional_id=self._name, transaction_timeout=_milliseconds(timeout_ms)
        )
        return self._ask_transactions(INIT_PRODUCER_ID, request, self._read_identity)

    def _read_identity(self, answer: Any) -> Identity:  # noqa: ANN401 - a response
        refuse(answer.error_code)
        return Identity(int(answer.producer_id), int(answer.producer_epoch), self._name)

    def _add(self, places: Set[Place]) -> None:
        by_topic: dict[str, list[Any]] = defaultdict(list)
        for topic, partition in sorted(places):
            by_topic[topic].append(partition)
        topics = tuple(
            ADD_PARTITIONS.request.AddPartitionsToTxnTopic(name=topic, partitions=tuple(partitions))
            for topic, partitions in by_topic.items()
        )
        who = {f"v3_and_below_{name}": value for name, value in self._who().items()}
        request = ADD_PARTITIONS.request.AddPartitionsToTxnRequest(
            **who, v3_and_below_topics=topics
        )
        self._ask_transactions(ADD_PARTITIONS, request, _read_added)
        self._places |= places

    def _add_marker(self) -> None:
        asked = ADD_OFFSETS.request.AddOffsetsToTxnRequest(**self._who(), group_id=self._name)
        self._ask_transactions(ADD_OFFSETS, asked, _read_code)
        marker = TXN_OFFSET_COMMIT.request.TxnOffsetCommitRequestPartition(
            partition_index=MARKER_PARTITION,
            committed_offset=self._task.batch_id + 1,
            committed_metadata=MARKER_METADATA,
        )
        topic = TXN_OFFSET_COMMIT.request.TxnOffsetCommitRequestTopic(
            name=self._marker_topic, partitions=(marker,)
        )
        request = TXN_OFFSET_COMMIT.request.TxnOffsetCommitRequest(
            **self._who(), group_id=self._name, topics=(topic,)
        )
        self._told(lambda: self._groups.ask(TXN_OFFSET_COMMIT, request, _read_marked))

    def _end(self, *, committed: bool) -> None:
        request = END_TXN.request.EndTxnRequest(**self._who(), committed=committed)
        self._ask_transactions(END_TXN, request, _read_code)

    def _who(self) -> dict[str, Any]:
        return {
            "transactional_id": self._name,
            "producer_id": self._identity.id,
            "producer_epoch": self._identity.epoch,
        }

    def _ask_transactions(self, call: Call, request: object, read: Callable[[Any], Read]) -> Read:
        return self._told(lambda: self._transactions.ask(call, request, read))

    def _told(self, ask: Callable[[], Read]) -> Read:
        try:
            return ask()
        except KafkaError as error:
            advice = ADVICE.get(error.code)
            raise WriteError(
                f"transaction of {self._name}: {error}" + (f" ({advice})" if advice else "")
            ) from None


def _milliseconds(number: int) -> timedelta:
    return timedelta(milliseconds=number)


def _read_code(answer: Any) -> None:  # noqa: ANN401 - a response
    refuse(answer.error_code)


def _read_added(answer: Any) -> None:  # noqa: ANN401 - a response
    for topic in answer.results_by_topic_v3_and_below:
        for each in topic.results_by_partition:
            refuse(each.partition_error_code)


def _read_marked(answer: Any) -> None:  # noqa: ANN401 - a response
    for topic in answer.topics:
        for each in topic.partitions:
            refuse(each.error_code)


def _read_marker(answer: Any) -> int:  # noqa: ANN401 - a response
    (group,) = answer.groups
    refuse(group.error_code)
    (topic,) = group.topics
    (found,) = topic.partitions
    refuse(found.error_code)
    return int(found.committed_offset)
