"""A partition's leader moves while it is written: every record is there once, in order."""

import pytest

from strom.records.record import Record, write_records
from strom.spark.cluster import Cluster as Brokers
from strom.spark.failure import UnreachableError
from strom.spark.options import Connection
from strom.spark.producing import Identity, Producer, WriteError
from strom.spark.write_options import Delivery
from strom.wire.errors import ErrorCode
from tests.spark.scripted import NOBODY, TOPIC, Cluster, CutError, serving

COUNT = 12
#: The second batch is the first that the old leader does not take.
MOVED_AT = 1
HEADER_ROOM = bytes(61)
VALUES = [b"%d" % at for at in range(COUNT)]


@pytest.fixture
def cluster():
    with serving(Cluster(0)) as found:
        yield found


def write(cluster, timeout_ms=30_000):
    """Write the values, one each batch."""
    connection = Connection(bootstrap=tuple(cluster.addresses), retry_backoff_ms=1)
    delivery = Delivery(timeout_ms=timeout_ms)
    producer = Producer(Brokers(connection), delivery, Identity(id=7, epoch=0))
    producer.count_partitions(TOPIC)
    try:
        for value in VALUES:
            packed = HEADER_ROOM + write_records([Record(0, 0, None, value)], 0, 0)
            producer.send((TOPIC, 0), memoryview(bytearray(packed)), 1, now_ms=0)
        producer.flush()
    finally:
        producer.close()


def moves(cluster, told, leaders=(0, 1), *, is_taken=False):
    """Have the first broker lead up to a batch, then say this; Metadata names these in turn.

    With `is_taken` the batch was written all the same, and the new leader has it.
    """
    cluster.leaders = list(leaders)

    def answer(sent):
        if sent.broker == 0 and sent.sequence >= MOVED_AT:
            if is_taken:
                cluster.take(sent)
            if told is CutError:
                raise CutError
            return told
        return cluster.take(sent)

    cluster.answer_produce = answer


def sent_to(cluster, broker):
    return [sent.sequence for sent in cluster.sent if sent.broker == broker]


@pytest.mark.parametrize("is_taken", [False, True], ids=["refused", "taken"])
@pytest.mark.parametrize(
    "told",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.KAFKA_STORAGE_ERROR,
        CutError,
    ],
    ids=lambda told: getattr(told, "name", "cut"),
)
def test_the_new_leader_gets_what_the_old_one_did_not_acknowledge(cluster, told, is_taken):
    moves(cluster, told, is_taken=is_taken)
    write(cluster)
    assert cluster.taken == VALUES
    assert sent_to(cluster, 1) == list(range(MOVED_AT, COUNT))


def test_while_nobody_leads_or_the_brokers_know_of_no_other_it_is_sent_again(cluster):
    moves(cluster, ErrorCode.NOT_LEADER_OR_FOLLOWER, [0, 0, NOBODY, 0, NOBODY, NOBODY, 1])
    write(cluster)
    assert cluster.taken == VALUES
    assert sent_to(cluster, 1) == list(range(MOVED_AT, COUNT))


def test_an_election_that_does_not_end_is_told_with_its_reason(cluster):
    moves(cluster, ErrorCode.NOT_LEADER_OR_FOLLOWER, [0])
    with pytest.raises(UnreachableError, match="of topic 'rides': NOT_LEADER_OR_FOLLOWER"):
        write(cluster, timeout_ms=100)
    assert cluster.taken == VALUES[:MOVED_AT]


def test_an_error_that_no_other_leader_cures_ends_the_write(cluster):
    moves(cluster, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(WriteError, match="of topic 'rides'"):
        write(cluster)
    assert sent_to(cluster, 1) == []
