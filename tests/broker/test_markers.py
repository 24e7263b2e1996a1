"""Markers on their way: written at once where they can be, until they are where not (TXN-08)."""

import asyncio
import contextlib
from types import SimpleNamespace

import pytest

from strom.broker.markers import Markers
from strom.broker.outbox import Outbox
from strom.transactions.ending import End
from strom.transactions.transaction import Producer, State
from strom.wire.errors import ErrorCode, KafkaError
from tests.broker.transactions import Image, Replicas, Shard
from tests.patience import PATIENCE_SECONDS

A, B, OFFSETS = ("a", 0), ("b", 1), ("__consumer_offsets", 7)
PREPARE, COMPLETE = ("end", State.PREPARE_COMMIT), ("complete", State.COMPLETE_COMMIT)


class Groups:
    """The coordinators of groups, of which one takes markers."""

    topic = OFFSETS[0]

    def __init__(self, told):
        self.told = told
        self.failures = []

    def led(self, index):
        if self.failures:
            raise self.failures.pop(0)
        return self

    def end_transaction(self, producer, coordinator_epoch, *, committed, version):
        self.told.append((OFFSETS, committed, producer.epoch, version))


class Scene:
    """A prepared transaction and its surroundings."""

    def __init__(self, tasks):
        self.shard = Shard()
        self.told = self.shard.told
        self.replicas = Replicas(self.told, A, B)
        self.image = Image(self.replicas)
        self.image.places.add(OFFSETS)
        self.groups = Groups(self.told)
        #: The partitions whose disk did not take a marker.
        self.distrusted = []
        around = SimpleNamespace(
            host=SimpleNamespace(now_ms=lambda: 1000, offload=asyncio.to_thread),
            replicas=self.replicas,
            flushing=SimpleNamespace(
                on_appended=lambda _: False, on_refused=self.distrusted.append
            ),
            start_task=tasks.create_task,
        )
        transactions = SimpleNamespace(on_alone=None)
        self.markers = Markers(around, self.groups, transactions, lambda: self.image)
        self.on_alone = transactions.on_alone

    def prepare(self, *partitions, commit=True):
        """Have a transaction end over these partitions; its reply."""
        machine, run = self.shard.machine, self.shard.run
        producer = run(machine.init_producer_id, "t", 1000, None, 7, now_ms=1)
        run(machine.add_partitions, "t", producer, frozenset(partitions), version=2, now_ms=1)
        self.told.clear()
        return run(machine.end, "t", End(producer, commit, 2), spare_id=None, now_ms=1)

    async def end(self, *partitions, **given):
        """Have it end, and give the loop a turn for what follows the answer; the answer."""
        reply = self.markers.ended(self.shard, "t", self.prepare(*partitions, **given))
        assert self.told == [("end", self.shard.machine.transactions["t"].state)]
        await asyncio.sleep(0)
        return reply

    async def until(self, state):
        """Wait for all that is under way, which must have led to the state."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})
        assert self.shard.machine.transactions["t"].state is state


@contextlib.asynccontextmanager
async def staged():
    """A scene, which ends when its tasks do."""
    async with asyncio.TaskGroup() as tasks:
        yield Scene(tasks)


async def test_where_it_can_be_all_is_written_right_behind_the_answer():
    async with staged() as scene:
        assert await scene.end(B, A, OFFSETS) == Producer(7, 1)
        assert scene.told == [
            PREPARE,
            (OFFSETS, True, 1, 2),
            (A, "COMMIT", 1, 2),
            (B, "COMMIT", 1, 2),
            COMPLETE,
        ]


async def test_a_partition_that_is_gone_needs_no_marker():
    async with staged() as scene:
        del scene.replicas.by_place[A]
        scene.image.places.discard(A)
        await scene.end(A, B, commit=False)
        assert scene.told[1:] == [(B, "ABORT", 1, 2), ("complete", State.COMPLETE_ABORT)]


async def test_a_partition_that_has_seen_a_later_epoch_needs_no_marker():
    async with staged() as scene:
        scene.replicas.by_place[A].refusals = [ErrorCode.INVALID_PRODUCER_EPOCH]
        await scene.end(A, B)
        assert scene.told[1:] == [(B, "COMMIT", 1, 2), COMPLETE]


async def test_what_cannot_be_written_is_tried_until_it_can_be():
    async with staged() as scene:
        refused = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR]
        scene.replicas.by_place[A].refusals = refused
        scene.groups.failures = [KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)]
        await scene.end(A, B, OFFSETS)
        assert scene.told == [PREPARE, (B, "COMMIT", 1, 2)]
        await scene.until(State.COMPLETE_COMMIT)
        assert scene.told[2:] == [(OFFSETS, True, 1, 2), (A, "COMMIT", 1, 2), COMPLETE]
        assert scene.distrusted == [scene.replicas.by_place[A]]


async def test_it_is_complete_when_its_markers_are_committed():
    async with staged() as scene:
        scene.replicas.by_place[A].committed = asyncio.Event()
        await scene.end(A, B)
        for _ in range(10):
            await asyncio.sleep(0)
        assert scene.told[1:] == [(A, "COMMIT", 1, 2), (B, "COMMIT", 1, 2)]
        scene.replicas.by_place[A].committed.set()
        await scene.until(State.COMPLETE_COMMIT)
        assert scene.told[3:] == [COMPLETE]


async def test_what_is_under_way_is_not_begun_twice():
    async with staged() as scene:
        scene.replicas.by_place[A].committed = asyncio.Event()
        await scene.end(A)
        scene.on_alone(scene.shard, ("t", "unknown"))
        await asyncio.sleep(0)
        scene.replicas.by_place[A].committed.set()
        await scene.until(State.COMPLETE_COMMIT)
        assert scene.told == [PREPARE, (A, "COMMIT", 1, 2), COMPLETE]
        scene.on_alone(scene.shard, ("t",))
        assert len(scene.told) == 3


async def test_a_log_that_was_not_used_yet_is_made_ready_first():
    async with staged() as scene:
        scene.replicas.by_place[A].log.active.is_loaded = False
        await scene.end(A)
        assert scene.told == [PREPARE]
        await scene.until(State.COMPLETE_COMMIT)
        assert scene.told[1:] == [(A, "COMMIT", 1, 2), COMPLETE]


async def test_the_answer_is_sent_before_the_markers_are_written():
    """Small answers wait for the turn of the loop to be over; this one would for the markers."""
    async with staged() as scene:
        scene.markers.send_answers = lambda: scene.told.append("answers")
        await scene.end(A, B)
        assert scene.told[1:] == [
            "answers",
            (A, "COMMIT", 1, 2),
            (B, "COMMIT", 1, 2),
            COMPLETE,
        ]


def test_a_broker_sends_the_answers_that_wait_in_its_outbox(strom_broker):
    send_answers = strom_broker.broker.parts.markers.send_answers
    assert isinstance(send_answers.__self__, Outbox)


async def test_a_completion_that_cannot_be_written_is_tried_again():
    async with staged() as scene:
        reply = scene.prepare(A)
        scene.shard.failures = [KafkaError(ErrorCode.NOT_COORDINATOR)]
        assert scene.markers.ended(scene.shard, "t", reply) == reply
        await asyncio.sleep(0)
        assert scene.told[-1] == (A, "COMMIT", 1, 2)
        await scene.until(State.COMPLETE_COMMIT)
        assert scene.told.count((A, "COMMIT", 1, 2)) == 1


async def test_nothing_is_tried_for_a_coordinator_that_is_none_any_more():
    # The scene ends when its tasks do.
    async with staged() as scene:
        scene.replicas.by_place[A].refusals = [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 3
        await scene.end(A)
        scene.shard.is_closed = True


async def test_no_marker_is_written_before_the_outcome_is_committed():
    async with staged() as scene:
        reply = scene.prepare(A)
        committed = asyncio.Event()

        async def later():
            await committed.wait()
            return reply

        coming = asyncio.ensure_future(scene.markers.ended(scene.shard, "t", later()))
        for _ in range(5):
            await asyncio.sleep(0)
        assert scene.told == [PREPARE]
        # The client is gone; the transaction is ended all the same.
        coming.cancel()
        await asyncio.sleep(0)
        committed.set()
        await scene.until(State.COMPLETE_COMMIT)


async def not_committed(scene, code):
    """Have it end, and the end not be committed for now; who asked is told."""
    scene.prepare(A)

    async def later():
        raise KafkaError(code)

    with pytest.raises(KafkaError, match=code.name):
        await scene.markers.ended(scene.shard, "t", later())
    assert scene.told == [PREPARE]


async def test_an_outcome_that_is_not_committed_is_told_to_who_asked():
    async with staged() as scene:
        await not_committed(scene, ErrorCode.NOT_COORDINATOR)
        scene.shard.is_closed = True
        scene.shard.settled.set()
        await scene.until(State.PREPARE_COMMIT)


async def test_an_outcome_that_is_committed_late_gets_its_markers_then():
    """Whoever asks again meanwhile is told to wait, and nobody else would write them."""
    async with staged() as scene:
        await not_committed(scene, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        scene.shard.settled.set()
        await scene.until(State.COMPLETE_COMMIT)


async def test_a_marker_breaks_the_guards_of_its_producer_and_no_others():
    async with staged() as scene:
        markers = scene.markers
        guards = [(place, markers.first_batches.guard(place, 7)) for place in (A, A, B)]
        other = markers.first_batches.guard(A, 8)
        await scene.end(A)
        held = [markers.first_batches.release(place, 7, guard) for place, guard in guards]
        assert held == [False, False, True]
        assert markers.first_batches.release(A, 8, other)
        assert not markers.first_batches.release(A, 8, other)
