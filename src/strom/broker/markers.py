"""Writes the ends of transactions into the partitions that they wrote to.

    prepared ──▶ a marker for each partition ──▶ complete
                 └── not now: again, until it is written or not needed any more

- A partition that is gone, with its topic, needs none. One that knows a later epoch of the producer
  has none to wait for: a later epoch is given out when all is written, and never before.
- The client hears of the end when the outcome is in the coordinator's log, as Kafka has it. Where
  this broker leads the partitions, and on a single node that is everywhere, their markers are
  written right behind the answer, in front of whatever is asked next: so the transaction that a
  client begins then never meets its last one. What has to wait, and what is too much for one turn
  on the loop, is seen through by a task of its own, not by the request: the client may be gone by
  then.
- The offsets that a transaction commits are with the group's coordinator, which takes its marker
  like any partition and lets them count, or forgets them.

`write` is the one place that a marker passes on its way to a partition's leader.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, NamedTuple, TypeVar

from strom.broker.coordination import Coordinators, Surroundings
from strom.broker.first_batches import FirstBatches
from strom.broker.shard import Shard
from strom.groups.machine import GroupMachine
from strom.log.cold import warmed
from strom.metadata.image import Image
from strom.records.control_key import ControlType
from strom.records.marker import write_marker
from strom.records.record import Producer
from strom.replication.partition import Partition
from strom.transactions.machine import TransactionMachine
from strom.transactions.transaction import TopicPartition, Transaction
from strom.wire.errors import ErrorCode, KafkaError

log = logging.getLogger("strom.markers")

RETRY_MS_MIN = 20
RETRY_MS_MAX = 1_000
#: How many are written before others get their turn on the loop.
MARKERS_AT_ONCE = 50
#: How long one attempt waits for the replicas of a partition.
COMMIT_TIMEOUT_MS = 30_000

Reply = TypeVar("Reply")
TransactionShard = Shard[TransactionMachine]
Coming = Coroutine[Any, Any, None]
#: Partitions that a marker is not committed in, each with what waits for that if it is written.
Left = list[tuple[TopicPartition, Coming | None]]


def nothing_to_send() -> None:
    """Send the answers that wait, where none do."""


class Marker(NamedTuple):
    """What a partition is told of the end of a transaction."""

    producer: Producer
    coordinator_epoch: int
    committed: bool
    #: Of transactions: from 2 on the epoch must be higher than that of what it ends.
    version: int


class Markers:
    """The ends that are on their way."""

    def __init__(
        self,
        around: Surroundings,
        groups: Coordinators[GroupMachine],
        transactions: Coordinators[TransactionMachine],
        image: Callable[[], Image],
    ) -> None:
        transactions.on_alone = self._on_alone
        self._around = around
        self._groups = groups
        self._image = image
        #: Sends the answers that wait for others, that to the end of a transaction among them.
        self.send_answers: Callable[[], None] = nothing_to_send
        #: One entry for each transaction that is seen through by a task.
        self._under_way: set[tuple[TransactionShard, str]] = set()
        #: Since others had their turn on the loop.
        self._made_ready = 0
        self.first_batches = FirstBatches()

    # One marker.

    def write(self, place: TopicPartition, marker: Marker) -> Coming | None:
        """Write the marker; return what waits until it is committed, None if it is."""
        topic, index = place
        producer, coordinator_epoch, committed, version = marker
        self.first_batches.end(place, producer.id)
        if topic == self._groups.topic:
            return self._groups.led(index).end_transaction(
                producer, coordinator_epoch, committed=committed, version=version
            )
        partition = self._around.replicas.leader_of(topic, index)
        now_ms = self._around.host.now_ms()
        outcome = ControlType.COMMIT if committed else ControlType.ABORT
        batch = write_marker(
            outcome, producer=producer, coordinator_epoch=coordinator_epoch, now_ms=now_ms
        )
        try:
            appended = partition.append_own(memoryview(batch), now_ms, version)
        except KafkaError as error:
            if error.code == ErrorCode.KAFKA_STORAGE_ERROR:
                self._around.flushing.on_refused(partition)
            raise
        must_flush = self._around.flushing.on_appended(partition)
        if must_flush or not partition.is_committed(appended.last_offset):
            return self._settle(partition, appended.last_offset, must_flush=must_flush)
        return None

    async def make_ready(self, place: TopicPartition) -> None:
        """Have a thread read what the partition needs to take a batch; then it can be written.

        Each is a write to a file: of many, others get their turn in between.
        """
        self._made_ready += 1
        if self._made_ready == MARKERS_AT_ONCE:
            self._made_ready = 0
            await asyncio.sleep(0)
        partition = self._around.replicas.find(*place)
        if partition is None or partition.log.active.is_loaded:
            return
        try:
            await warmed(partition.log.active.offset_index_now, self._around.host.offload)
        except OSError:
            log.warning("%s-%d cannot be read", *place, exc_info=True)

    async def _settle(self, partition: Partition, last_offset: int, *, must_flush: bool) -> None:
        if must_flush and not await self._around.flushing.flush(partition):
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        if not await partition.wait_committed(last_offset, COMMIT_TIMEOUT_MS):
            lost = not partition.is_leader
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER if lost else ErrorCode.REQUEST_TIMED_OUT
            )

    # All of one transaction.

    def ended(
        self, shard: TransactionShard, name: str, reply: Reply | Coroutine[Any, Any, Reply]
    ) -> Reply | Coroutine[Any, Any, Reply]:
        """Finish what a request has ended, once that is committed; pass the reply on."""
        if not isinstance(reply, Coroutine):
            # The loop comes to this before it looks at a socket again.
            asyncio.get_running_loop().call_soon(self._finish_behind_answer, shard, name)
            return reply
        told: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._around.start_task(self._finish_later(shard, name, reply, told))
        return _result_of(told)

    def _finish_behind_answer(self, shard: TransactionShard, name: str) -> None:
        """Let the client hear of the end first: it does not wait for markers."""
        self.send_answers()
        self.finish(shard, (name,))

    async def _finish_later(
        self,
        shard: TransactionShard,
        name: str,
        reply: Coroutine[Any, Any, Reply],
        told: asyncio.Future[Reply],
    ) -> None:
        try:
            found = await reply
        except KafkaError as error:
            if not told.done():
                told.set_exception(error)
            # The outcome is fixed all the same: who asks again is told to wait for the markers.
            await shard.wait_settled()
            self.finish(shard, (name,))
            return
        self.finish(shard, (name,))
        if not told.done():
            told.set_result(found)

    def _on_alone(self, shard: TransactionShard, names: object) -> None:
        """Finish what ended by itself, or was found in the log at a start."""
        assert isinstance(names, tuple)
        self.finish(shard, names)

    def finish(self, shard: TransactionShard, names: Iterable[str]) -> None:
        """Write the markers of the transactions and complete them, now or as soon as it can be."""
        for name in names:
            known = shard.machine.prepared.get(name)
            if known is None or shard.is_closed or (shard, name) in self._under_way:
                continue
            left = self._write_at_once(shard, known)
            if left or not self._complete(shard, known):
                self._under_way.add((shard, name))
                self._around.start_task(self._see_through(shard, known, left))

    def _write_at_once(self, shard: TransactionShard, known: Transaction) -> Left:
        """Write what can be written now; return where that is not all."""
        marker = marker_of(shard, known)
        left: Left = []
        for number, place in enumerate(sorted(known.partitions)):
            if number >= MARKERS_AT_ONCE or not self._is_ready(place):
                left.append((place, None))
                continue
            try:
                waiting = self.write(place, marker)
            except KafkaError as error:
                if self._is_needed(place, error):
                    left.append((place, None))
                continue
            if waiting is not None:
                left.append((place, waiting))
        return left

    def _is_ready(self, place: TopicPartition) -> bool:
        """Whether the partition takes a batch without reading its indexes first."""
        partition = self._around.replicas.find(*place)
        return partition is None or partition.log.active.is_loaded

    def _is_needed(self, place: TopicPartition, error: KafkaError) -> bool:
        """Whether a partition that refused its marker must be asked again."""
        topic, index = place
        if self._image().partition(topic, index) is None:
            return False
        if error.code is ErrorCode.INVALID_PRODUCER_EPOCH:
            log.warning("%s-%d has seen a later epoch: %s", topic, index, error.message)
            return False
        return True

    def _complete(self, shard: TransactionShard, known: Transaction) -> bool:
        """Have the coordinator note that all is written; whether it could."""
        name, now_ms = known.transactional_id, self._around.host.now_ms()
        try:
            reply = shard.run(shard.machine.complete, name, known.producer, now_ms)
        except KafkaError as error:
            log.warning("the transaction of %s cannot be completed: %s", name, error)
            return False
        if isinstance(reply, Coroutine):
            # Nobody waits for it; if it is lost, whoever coordinates next finds it prepared.
            self._around.start_task(_ignore(reply))
        return True

    async def _see_through(
        self,
        shard: TransactionShard,
        known: Transaction,
        left: Left,
    ) -> None:
        """Write what is left until nothing is; then complete the transaction."""
        name, delay_ms = known.transactional_id, RETRY_MS_MIN
        try:
            places = [
                place
                for place, coming in left
                if coming is None or not await self._done(place, coming)
            ]
            while not shard.is_closed:
                places = [each for each in places if not await self._written(shard, known, each)]
                if not places and self._complete(shard, known):
                    return
                await asyncio.sleep(delay_ms / 1000)
                delay_ms = min(delay_ms * 2, RETRY_MS_MAX)
        finally:
            self._under_way.discard((shard, name))

    async def _written(
        self, shard: TransactionShard, known: Transaction, place: TopicPartition
    ) -> bool:
        await self.make_ready(place)
        try:
            coming = self.write(place, marker_of(shard, known))
        except KafkaError as error:
            return not self._is_needed(place, error)
        return coming is None or await self._done(place, coming)

    async def _done(self, place: TopicPartition, coming: Coming) -> bool:
        try:
            await coming
        except KafkaError as error:
            return not self._is_needed(place, error)
        return True


def marker_of(shard: TransactionShard, known: Transaction) -> Marker:
    """Return what the partitions of a prepared transaction are told."""
    return Marker(
        Producer(*known.producer),
        shard.log.partition.leader_epoch,
        known.committed,
        known.version,
    )


async def _result_of(told: asyncio.Future[Reply]) -> Reply:
    return await told


async def _ignore(coming: Coroutine[Any, Any, object]) -> None:
    try:
        await coming
    except KafkaError as error:
        log.warning("a completed transaction was not committed: %s", error)
