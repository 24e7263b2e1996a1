"""A partition's leader moves while it is read: every record comes once, in order."""

import pytest

from strom.records.columns import Columns
from strom.spark.arrow import to_arrow
from strom.spark.failure import DataLossError, UnreachableError
from strom.spark.fetching import RangeReader
from strom.spark.options import ReadOptions
from strom.spark.planning import report_loss
from strom.spark.task import Task
from strom.wire.errors import ErrorCode, KafkaError
from tests.spark.scripted import NOBODY, TOPIC, TOPIC_ID, Cluster, CutError, serving

COUNT = 10
MOVED_AT = 4


@pytest.fixture
def cluster():
    with serving(Cluster(COUNT)) as found:
        yield found


def read(cluster, patience_ms=30_000):
    """Read the whole partition from its first leader on."""
    servers = ",".join(f"{host}:{port}" for host, port in cluster.addresses)
    options = ReadOptions.parse(
        {
            "kafka.bootstrap.servers": servers,
            "subscribe": TOPIC,
            "kafka.retry.backoff.ms": "1",
            "kafkaConsumer.pollTimeoutMs": str(patience_ms),
        },
        streaming=False,
    )
    task = Task((TOPIC, 0), TOPIC_ID, 0, COUNT, cluster.addresses[0])
    reader = RangeReader(task, options.connection, lambda what: report_loss(what, True))
    found = []
    for taken in reader.read(Columns(False)):
        found += [each["offset"] for each in to_arrow(taken, task.place).to_pylist()]
    return found


def moves(cluster, told, leaders=(1,)):
    """Have the first broker lead up to a record, then say this; Metadata names these in turn."""
    cluster.leaders = list(leaders)

    def answer(asked):
        if asked.broker == 0 and asked.offset >= MOVED_AT:
            if told is CutError:
                raise CutError
            return told
        return cluster.records_from(asked.offset)

    cluster.answer_fetch = answer


def asked_of(cluster, broker):
    return [asked.offset for asked in cluster.asked if asked.broker == broker]


@pytest.mark.parametrize(
    "told",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        # A broker that does not know of the partition yet.
        ErrorCode.UNKNOWN_TOPIC_ID,
        CutError,
    ],
    ids=lambda told: getattr(told, "name", "cut"),
)
def test_the_new_leader_is_read_from_where_the_old_one_left(cluster, told):
    moves(cluster, told)
    assert read(cluster) == list(range(COUNT))
    assert asked_of(cluster, 0) == list(range(MOVED_AT + 1))
    assert asked_of(cluster, 1) == list(range(MOVED_AT, COUNT))


def test_while_nobody_leads_or_the_brokers_know_of_no_other_it_is_asked_again(
    cluster,
):
    moves(cluster, ErrorCode.NOT_LEADER_OR_FOLLOWER, [0, NOBODY, 0, NOBODY, NOBODY, 1])
    assert read(cluster) == list(range(COUNT))
    assert set(asked_of(cluster, 0)) == set(range(MOVED_AT + 1))
    assert asked_of(cluster, 1) == list(range(MOVED_AT, COUNT))


def test_a_leader_that_comes_back_is_read_again(cluster):
    cluster.leaders = [1, 0]

    def answer(asked):
        leads = 1 if asked.offset in (MOVED_AT, MOVED_AT + 1) else 0
        if asked.broker != leads:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return cluster.records_from(asked.offset)

    cluster.answer_fetch = answer
    assert read(cluster) == list(range(COUNT))


def test_a_new_leader_that_is_behind_for_a_moment_is_waited_for(cluster):
    moves(cluster, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    before, looks = cluster.answer_fetch, []

    def answer(asked):
        if asked.broker == 1 and len(looks) < 3:
            looks.append(asked)
            return b""
        return before(asked)

    cluster.answer_fetch = answer
    assert read(cluster) == list(range(COUNT))


def test_what_the_new_leader_never_had_is_told(cluster):
    moves(cluster, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    before = cluster.answer_fetch

    def answer(asked):
        return ErrorCode.OFFSET_OUT_OF_RANGE if asked.broker == 1 else before(asked)

    cluster.answer_fetch = answer
    with pytest.raises(DataLossError, match=r"rides-0: offsets 4 to 9 are gone: .* ends before"):
        read(cluster)


def test_an_election_that_does_not_end_is_told_with_its_reason(cluster):
    moves(cluster, ErrorCode.NOT_LEADER_OR_FOLLOWER, [0])
    with pytest.raises(UnreachableError, match=r"rides-0: NOT_LEADER_OR_FOLLOWER \(tried for"):
        read(cluster, patience_ms=100)


def test_an_error_that_no_other_leader_cures_ends_the_reading(cluster):
    moves(cluster, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(KafkaError, match="rides-0"):
        read(cluster)
    assert asked_of(cluster, 1) == []
