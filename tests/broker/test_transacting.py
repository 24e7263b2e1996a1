"""What a leader asks before the first batch of a transaction (TXN-08, KIP-890)."""

import asyncio
from collections.abc import Coroutine
from types import SimpleNamespace

import pytest

from strom.broker.first_batches import PUT_OFF_MAX, FirstBatches
from strom.broker.transacting import Joining, join, take_in
from strom.log.producers import read_marker
from strom.records.batch import TRANSACTIONAL_FLAG, read_header
from strom.records.control_key import ControlType
from strom.records.marker import write_marker
from strom.records.record import Producer as Author
from strom.records.record import Record, write_batch
from strom.transactions.transaction import Producer, State
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.produce import ProducePartition, ProduceRequest, ProduceTopic
from tests.broker.transactions import Replicas, Shard

A, B = ("a", 0), ("b", 1)
ADDS, VERIFIES, KNOWS_LITTLE = 12, 11, 10


class Scene:
    """A leader, a coordinator and a producer that has its transactional id."""

    def __init__(self):
        self.shard = Shard()
        self.replicas = Replicas([], A, B)
        self.first_batches = FirstBatches()
        self.settings = {
            "transaction.partition.verification.enable": True,
            "add.partitions.to.txn.retry.backoff.ms": 1,
            "add.partitions.to.txn.retry.backoff.max.ms": 20,
        }
        run, machine = self.shard.run, self.shard.machine
        self.producer = run(machine.init_producer_id, "t", 1000, None, 7, now_ms=1)
        self.asked = []

    def context(self, version):
        def shard_for(name):
            self.asked.append(name)
            return self.shard

        markers = SimpleNamespace(first_batches=self.first_batches)
        parts = SimpleNamespace(transactions=SimpleNamespace(shard_for=shard_for), markers=markers)
        settings = SimpleNamespace(flag=self.settings.get, number=self.settings.get)
        return SimpleNamespace(
            version=version, parts=parts, replicas=self.replicas, settings=settings, now_ms=1
        )

    def join(self, *places, version=ADDS, producer=None, sequence=0, flags=TRANSACTIONAL_FLAG):
        """Ask for batches to these partitions; the codes that refuse some of them."""
        author = Author(*(producer or self.producer), sequence)
        records = write_batch([Record(0, 1, None, b"x")], producer=author, flags=flags)
        topics = [
            ProduceTopic(topic, None, [ProducePartition(index, memoryview(records))])
            for topic, index in places
        ]
        return join(ProduceRequest("t", -1, 1000, topics), self.context(version))

    def codes(self, *places, **given):
        refused = self.join(*places, **given)
        return {place: error.code for place, error in refused.items()}

    def open(self, place):
        """Have the partition know the transaction."""
        author = Author(*self.producer, 0)
        batch = write_batch([Record(0, 1, None, b"x")], producer=author, flags=TRANSACTIONAL_FLAG)
        self.replicas.find(*place).log.producers.apply(read_header(batch), 0, None)

    def end(self, place):
        """Have the partition know that the transaction was aborted."""
        marker = write_marker(
            ControlType.ABORT, producer=Author(*self.producer), coordinator_epoch=0, now_ms=1
        )
        header = read_header(marker)
        producers = self.replicas.find(*place).log.producers
        producers.apply(header, 1, read_marker(header, marker))


@pytest.fixture
def scene():
    return Scene()


def test_new_partitions_are_added_with_one_question(scene):
    assert scene.join(A, B) == {}
    assert scene.asked == ["t"]
    known = scene.shard.machine.transactions["t"]
    assert (known.state, known.partitions, known.version) == (State.ONGOING, {A, B}, 2)


def test_what_the_log_has_open_is_not_asked_about(scene):
    scene.open(A)
    assert scene.join(A) == {}
    assert scene.asked == []
    assert scene.join(A, B) == {}
    assert scene.shard.machine.transactions["t"].partitions == {B}


def test_what_is_open_in_another_epoch_is_asked_about(scene):
    scene.open(A)
    later = Producer(scene.producer.id, scene.producer.epoch + 1)
    assert scene.codes(A, producer=later) == {A: ErrorCode.INVALID_PRODUCER_EPOCH}


def test_batches_of_no_transaction_and_of_partitions_elsewhere_are_not_asked_about(scene):
    assert scene.join(A, flags=0) == {}
    assert scene.join(("elsewhere", 0)) == {}
    scene.replicas.find(*A).is_leader = False
    assert scene.join(A) == {}
    assert scene.asked == []


SPOILT = {
    "torn": lambda batch: batch[:-1],
    "of an older format": lambda batch: batch[:16] + b"\1" + batch[17:],
    "two batches": lambda batch: batch + batch,
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=list(SPOILT))
def test_a_field_that_is_no_batch_opens_no_transaction(scene, spoil):
    author, flags = Author(*scene.producer, 0), TRANSACTIONAL_FLAG
    records = spoil(write_batch([Record(0, 1, None, b"x")], producer=author, flags=flags))
    topic = ProduceTopic("a", None, [ProducePartition(0, memoryview(records))])
    assert join(ProduceRequest("t", -1, 1000, [topic]), scene.context(ADDS)) == {}
    assert scene.shard.machine.transactions["t"].state is State.EMPTY


def test_older_clients_must_have_added_the_partition(scene):
    assert scene.codes(A, version=VERIFIES) == {A: ErrorCode.TRANSACTION_ABORTABLE}
    assert scene.codes(A, version=KNOWS_LITTLE) == {A: ErrorCode.INVALID_TXN_STATE}
    run, machine = scene.shard.run, scene.shard.machine
    run(machine.add_partitions, "t", scene.producer, {A}, version=0, now_ms=1)
    assert scene.codes(A, B, version=VERIFIES) == {B: ErrorCode.TRANSACTION_ABORTABLE}


def test_who_does_not_verify_asks_nobody_but_still_adds(scene):
    scene.settings["transaction.partition.verification.enable"] = False
    assert scene.join(A, version=VERIFIES) == {}
    assert scene.asked == []
    assert scene.join(A) == {}
    assert scene.asked == ["t"]


def test_a_new_producer_begins_with_sequence_0(scene):
    assert scene.codes(A, sequence=3) == {A: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER}
    assert scene.codes(B, sequence=0) == {}


def test_two_producers_in_one_request_are_refused(scene):
    request = ProduceRequest("t", -1, 1000, [])
    for place, producer_id in ((A, 7), (B, 8)):
        author = Author(producer_id, 0, 0)
        records = write_batch([Record(0, 1, None, b"x")], producer=author, flags=TRANSACTIONAL_FLAG)
        partition = ProducePartition(place[1], memoryview(records))
        request.topics.append(ProduceTopic(place[0], None, [partition]))
    refused = join(request, scene.context(ADDS))
    codes = {place: error.code for place, error in refused.items()}
    assert codes == dict.fromkeys((A, B), ErrorCode.INVALID_PRODUCER_ID_MAPPING)


@pytest.mark.parametrize(
    ("told", "version", "expected"),
    [
        (ErrorCode.PRODUCER_FENCED, ADDS, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, ADDS, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ADDS, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, VERIFIES, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.NOT_COORDINATOR, ADDS, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.CONCURRENT_TRANSACTIONS, VERIFIES, ErrorCode.NOT_ENOUGH_REPLICAS),
    ],
)
def test_refusals_are_told_as_producers_know_them(scene, told, version, expected):
    scene.shard.failures = [KafkaError(told)]
    assert scene.codes(A, version=version) == {A: expected}


@pytest.mark.parametrize(
    ("told", "adds", "expected"),
    [
        (ErrorCode.PRODUCER_FENCED, True, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, True, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ErrorCode.NOT_COORDINATOR, True, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.CONCURRENT_TRANSACTIONS, False, ErrorCode.CONCURRENT_TRANSACTIONS),
    ],
)
def test_who_commits_offsets_is_told_what_the_coordinator_says(scene, told, adds, expected):
    """NOT_ENOUGH_REPLICAS is for producers: consumers give up at it."""
    scene.shard.failures = [KafkaError(told)]
    joining = Joining("t", scene.producer, {A: 0}, adds, knows_abortable=True, is_produced=False)
    assert take_in(joining, scene.context(ADDS))[A].code is expected


def awaited(coming):
    assert isinstance(coming, Coroutine)
    return asyncio.run(asyncio.wait_for(coming, 10))


def test_a_transaction_that_is_about_to_end_is_waited_for(scene):
    busy = KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    scene.shard.failures = [busy, busy]
    assert awaited(scene.join(A)) == {}
    assert scene.shard.machine.transactions["t"].partitions == {A}


def test_one_that_does_not_end_is_told_at_last(scene):
    scene.shard.failures = [KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)] * 1000
    refused = awaited(scene.join(A))
    assert refused[A].code is ErrorCode.CONCURRENT_TRANSACTIONS


@pytest.mark.parametrize("ends", [False, True])
async def test_what_ends_while_the_coordinator_is_asked_is_not_open(scene, ends):
    run, machine = scene.shard.run, scene.shard.machine
    run(machine.add_partitions, "t", scene.producer, {A, B}, version=0, now_ms=1)
    scene.shard.commit = asyncio.Event()
    coming = asyncio.ensure_future(scene.join(A, B, version=VERIFIES))
    await asyncio.sleep(0)
    if ends:
        # As a marker does that is written into the partition.
        scene.first_batches.end(A, scene.producer.id)
    scene.shard.commit.set()
    refused = await coming
    assert len(scene.first_batches) == 0
    expected = {A: ErrorCode.INVALID_TXN_STATE} if ends else {}
    assert {place: error.code for place, error in refused.items()} == expected


@pytest.mark.parametrize("ends", [False, True])
async def test_what_was_open_may_end_while_the_coordinator_is_asked_about_others(scene, ends):
    """With version 1 the marker has the epoch of the batch, which nothing else would refuse."""
    run, machine = scene.shard.run, scene.shard.machine
    run(machine.add_partitions, "t", scene.producer, {A, B}, version=0, now_ms=1)
    scene.open(A)
    scene.shard.commit = asyncio.Event()
    coming = asyncio.ensure_future(scene.join(A, B, version=VERIFIES))
    await asyncio.sleep(0)
    if ends:
        scene.end(A)
    scene.shard.commit.set()
    refused = await coming
    expected = {A: ErrorCode.INVALID_TXN_STATE} if ends else {}
    assert {place: error.code for place, error in refused.items()} == expected


def added(scene):
    run, machine = scene.shard.run, scene.shard.machine
    run(machine.add_partitions, "t", scene.producer, {A, B}, version=0, now_ms=1)


def test_with_version_1_no_batch_overtakes_one_that_was_refused_for_now(scene):
    """The partition knows nothing of the producer, and would take any number for its first one."""
    added(scene)
    scene.shard.failures = [KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)]
    assert scene.codes(A, version=VERIFIES, sequence=5) == {A: ErrorCode.NOT_ENOUGH_REPLICAS}
    for behind in (6, 8):
        codes = scene.codes(A, B, version=VERIFIES, sequence=behind)
        assert codes == {A: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER}
    assert scene.codes(A, version=VERIFIES, sequence=5) == {}
    assert scene.codes(A, version=VERIFIES, sequence=6) == {}
    assert len(scene.first_batches) == 0


def test_the_first_of_several_that_were_refused_for_now_comes_first(scene):
    added(scene)
    loading = KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    scene.shard.failures = [loading, loading, loading]
    for sequence in (6, 5, 7):
        codes = scene.codes(A, version=VERIFIES, sequence=sequence)
        assert codes == {A: ErrorCode.NOT_ENOUGH_REPLICAS}
    codes = scene.codes(A, version=VERIFIES, sequence=6)
    assert codes == {A: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER}
    assert scene.codes(A, version=VERIFIES, sequence=5) == {}


def test_what_need_not_come_any_more_keeps_nobody_back():
    batches = FirstBatches()
    now, later = Producer(7, 0), Producer(7, 1)
    batches.put_off(A, now, 0)
    assert not batches.take(A, now, 1)
    assert batches.take(B, now, 1)
    assert batches.take(A, later, 1)
    batches.put_off(A, now, 0)
    batches.end(A, now.id)
    assert batches.take(A, now, 1)


def test_not_more_is_remembered_of_such_batches_than_there_is_room_for():
    batches = FirstBatches()
    for producer_id in range(PUT_OFF_MAX + 5):
        batches.put_off(A, Producer(producer_id, 0), 0)
    assert len(batches) == PUT_OFF_MAX
    assert batches.take(A, Producer(4, 0), 1)
    assert not batches.take(A, Producer(5, 0), 1)
