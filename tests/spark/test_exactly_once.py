"""A task's rows and its marker become visible together, once, whoever tries again.

These are the steps of the protocol, one task against a broker; what Spark makes of them when it is
killed is in test_exactly_once_crash.py.
"""

import itertools
import os

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from strom.records.record import Record, write_records
from strom.spark.asking import Coordinator, Role, refuse
from strom.spark.exactly_once import MARKER_METADATA, OFFSET_FETCH, TaskOfBatch, TaskTransaction
from strom.spark.given import parse_servers
from strom.spark.options import Connection
from strom.spark.producing import WriteError
from strom.spark.write_options import WriteOptions
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.slow

NOW_MS = 1_700_000_000_000
NAMES = itertools.count()


@pytest.fixture(params=["strom_topics", pytest.param("kafka_topics", marks=pytest.mark.java)])
def bootstrap(request):
    """Strom, then Apache Kafka."""
    return request.getfixturevalue(request.param).bootstrap


class Sink:
    """A topic of its own, and the tasks that write to it."""

    def __init__(self, bootstrap, **options):
        self.bootstrap = bootstrap
        self.topic = f"rides-{os.getpid()}-{next(NAMES)}"
        self.query_id = f"query-{self.topic}"
        connection = Connection(bootstrap=parse_servers(bootstrap), retry_backoff_ms=20)
        self.options = WriteOptions(
            **({"connection": connection, "topic": self.topic, "exactly_once": True} | options)
        )
        admin = AdminClient({"bootstrap.servers": bootstrap})
        created = admin.create_topics([NewTopic(self.topic, 2, 1)])
        created[self.topic].result(PATIENCE_SECONDS)

    def begin(self, batch_id, query_id=None):
        """Begin what a task of this batch does."""
        task = TaskOfBatch(query_id or self.query_id, batch_id, 0)
        return TaskTransaction(self.options, task)

    def send(self, transaction, *values, partition=0):
        transaction.count_partitions(self.topic)
        transaction.expect({(self.topic, partition)})
        records = [Record(at, 0, None, value) for at, value in enumerate(values)]
        packed = memoryview(bytearray(61) + write_records(records, 0, 0))
        transaction.send((self.topic, partition), packed, len(values), now_ms=NOW_MS)

    def write(self, batch_id, *values, query_id=None):
        """Do what a task does; return whether there was anything to do."""
        transaction = self.begin(batch_id, query_id)
        if transaction.is_written():
            return False
        self.send(transaction, *values)
        transaction.commit()
        return True

    def seen(self):
        """What a reader of committed records gets, in the order of its partition."""
        settings = {"bootstrap.servers": self.bootstrap, "group.id": self.topic}
        consumer = Consumer(
            settings | {"isolation.level": "read_committed", "enable.partition.eof": "true"}
        )
        try:
            consumer.assign([TopicPartition(self.topic, each, 0) for each in (0, 1)])
            found, ends = [], 0
            while ends < 2:
                each = consumer.poll(PATIENCE_SECONDS)
                assert each is not None
                if each.error() is None:
                    found.append(each.value())
                else:
                    ends += 1
            return found
        finally:
            consumer.close()


@pytest.fixture
def sink(bootstrap):
    return Sink(bootstrap)


def test_a_batch_that_is_run_again_is_not_written_again(sink):
    """STR-13."""
    assert sink.write(0, b"a", b"b")
    assert not sink.write(0, b"a", b"b")
    assert sink.write(1, b"c")
    assert not sink.write(0, b"a", b"b")
    assert not sink.write(1, b"c")
    assert sink.seen() == [b"a", b"b", b"c"]


def test_a_marker_says_that_it_is_no_progress_of_a_consumer(sink):
    """MON-05: a batch's number would look like a consumer that is far behind."""
    assert sink.write(7, b"a")
    group = TaskOfBatch(sink.query_id, 7, 0).name(sink.options.id_prefix)
    # Asked by hand: librdkafka's Python reads metadata beyond its end.
    message = OFFSET_FETCH.request
    place = message.OffsetFetchRequestTopics(name=sink.topic, partition_indexes=(0,))
    asked = message.OffsetFetchRequestGroup(group_id=group, topics=(place,))
    request = message.OffsetFetchRequest(groups=(asked,), require_stable=True)

    def read(answer):
        ((topic,),) = (each.topics for each in answer.groups)
        (found,) = topic.partitions
        # Until the transaction's end is written it is not told.
        refuse(found.error_code)
        return found.committed_offset, found.metadata

    marker = Coordinator(sink.options.connection, Role.GROUP, group).ask(
        OFFSET_FETCH, request, read
    )
    assert marker == (8, MARKER_METADATA)


def test_what_was_written_and_not_committed_is_never_seen(sink):
    """STR-13: killed before, and after, the marker."""
    dead = sink.begin(0)
    sink.send(dead, b"a", b"b")
    dead.producer.flush()
    assert sink.write(0, b"a", b"b")
    dead = sink.begin(1)
    sink.send(dead, b"c")
    dead.producer.flush()
    dead._add_marker()
    assert sink.write(1, b"c")
    assert sink.seen() == [b"a", b"b", b"c"]


def test_one_that_was_given_up_can_no_longer_commit(sink):
    zombie = sink.begin(0)
    sink.send(zombie, b"a")
    zombie.producer.flush()
    assert sink.write(0, b"a")
    with pytest.raises(WriteError, match="another attempt of this task has taken over"):
        zombie.commit()
    zombie.abort()
    assert sink.seen() == [b"a"]


def test_one_that_was_given_up_before_it_wrote_can_no_longer_write(sink):
    zombie = sink.begin(0)
    assert not zombie.is_written()
    assert sink.write(0, b"a")
    with pytest.raises(WriteError, match="another attempt of this task has taken over"):
        sink.send(zombie, b"a")
    assert sink.seen() == [b"a"]


def test_what_is_aborted_is_not_seen(sink):
    failed = sink.begin(0)
    sink.send(failed, b"a")
    sink.send(failed, b"x", partition=1)
    failed.abort()
    assert sink.seen() == []
    assert sink.write(0, b"a")
    assert sink.seen() == [b"a"]


def test_a_new_checkpoint_begins_with_markers_of_its_own(sink):
    """A sink whose name is used again with a new checkpoint drops nothing."""
    assert sink.write(5, b"a")
    assert sink.write(0, b"a", query_id=f"another-{sink.topic}")
    assert sink.seen() == [b"a", b"a"]


def test_rows_that_say_their_topics_are_written_once_too(bootstrap):
    sink = Sink(bootstrap, topic=None)
    assert sink.write(0, b"a")
    assert not sink.write(0, b"a")
    assert sink.seen() == [b"a"]
