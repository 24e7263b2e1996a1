"""The coordinators of this broker: one shard for each partition of an internal topic it leads.

    key ─hash─▶ partition ─▶ shard = machine + log + timers + who waits

A shard is begun when this broker comes to lead its partition, and answers once the log was read
back into its machine; until then clients hear COORDINATOR_LOAD_IN_PROGRESS. When the lead is
lost it is thrown away: nothing in it is worth keeping that is not in the log.

What is read is applied in a thread, slice by slice: nobody else touches a machine that is loading.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Generic, ParamSpec, TypeVar

from strom.broker.coordinator_log import CoordinatorLog, RecordForm
from strom.broker.flushing import Flushing
from strom.broker.host import Host
from strom.broker.replicas import Replicas
from strom.broker.timers import Timers
from strom.log.cold import warmed
from strom.metadata.delta import Delta
from strom.metadata.image import Image, Topic
from strom.metadata.records import NO_LEADER
from strom.metadata.settings.values import BrokerSettings
from strom.records.control import ControlType, write_marker
from strom.records.record import Producer
from strom.replicated.machine import (
    CoordinatorMachine,
    Decision,
    KeyValue,
    Ticket,
    TimerKey,
    Wait,
)
from strom.replication.partition import Partition
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.primitives import MalformedFrame

log = logging.getLogger("strom.coordination")

#: How many keys' hashes are remembered.
HASHES_MAX = 10_000
#: When something that is due is tried again that could not be written.
RETRY_MS = 500
#: How many logs are read at a time: their readers are the threads that serve everybody.
LOADS_AT_ONCE = 2
#: How many shards are told of a change of the metadata before others get their turn.
TOLD_AT_ONCE = 10

Reply = TypeVar("Reply")
Arguments = ParamSpec("Arguments")
Outcome = Decision[KeyValue, object]
StartTask = Callable[[Coroutine[Any, Any, None]], object]


M = TypeVar("M", bound=CoordinatorMachine)
OnAlone = Callable[["Shard[M]", object], None]


@lru_cache(HASHES_MAX)
def java_hash(text: str) -> int:
    """Return what Java's String.hashCode gives, without its sign, as Kafka uses it."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for index in range(0, len(units), 2):
        value = (31 * value + (units[index] << 8 | units[index + 1])) & 0xFFFFFFFF
    # The smallest number there is has no counterpart, and counts as 0.
    return value & 0x7FFFFFFF if value <= 0x80000000 else 0x100000000 - value


def told_nobody(_shard: object, _reply: object) -> None:
    """What a decision that nobody asked for replies to nobody."""


class Shard(Generic[M]):
    """One partition's coordinator: its machine, and how its decisions are carried out."""

    def __init__(
        self, machine: M, log: CoordinatorLog, now_ms: Callable[[], int], start_task: StartTask
    ) -> None:
        self.machine = machine
        self.log = log
        self.is_loaded = False
        self.is_closed = False
        #: Told the reply of each decision that nobody asked for, once it is committed.
        self.on_alone: OnAlone[M] = told_nobody
        self._now_ms = now_ms
        self._start_task = start_task
        self._timers = Timers(now_ms, self._on_timer)
        #: Those who wait for an answer that a later decision gives.
        self._waiting: dict[Ticket, list[asyncio.Future[object]]] = {}

    @property
    def index(self) -> int:
        """The number of the partition."""
        return self.log.partition.index

    def run(
        self,
        decide: Callable[Arguments, Decision[KeyValue, Reply | Wait]],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Reply | Coroutine[Any, Any, Reply]:
        """Carry out one decision; return its reply, or what gives it once it cannot be undone."""
        return self._carry_out(decide(*args, **kwargs))

    async def execute(
        self,
        decide: Callable[Arguments, Decision[KeyValue, Reply | Wait]],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Reply:
        """Carry out one decision; return its reply once that cannot be undone."""
        reply = self._carry_out(decide(*args, **kwargs))
        return await reply if isinstance(reply, Coroutine) else reply

    def _carry_out(
        self, decision: Decision[KeyValue, Reply | Wait]
    ) -> Reply | Coroutine[Any, Any, Reply]:
        if self.is_closed:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        # No await from the decision to here and on to the end: the next one must see its effect.
        if decision.records:
            self._write(decision)
        for key, value in decision.soft:
            self.machine.set_soft(key, value)
        for timer, due_ms in decision.timers:
            self._timers.set(timer, due_ms)
        reply = decision.reply
        waiting = self._wait_for(reply.ticket) if isinstance(reply, Wait) else None
        end_offset = self.log.end_offset
        is_committed = self.log.is_committed(end_offset)
        if decision.answers:
            if is_committed:
                self._tell(decision.answers)
            else:
                # Not left to who asked: that one may be gone by then.
                self._start_task(self._tell_later(decision.answers, end_offset))
        if waiting is not None:
            assert isinstance(reply, Wait)
            return self._wait(reply.ticket, waiting)
        assert not isinstance(reply, Wait)
        # Even a decision that wrote nothing may have read what is not committed yet.
        return reply if is_committed else self._reply_later(reply, end_offset)

    def _write(self, decision: Decision[KeyValue, object]) -> None:
        records, transaction = decision.records, decision.transaction
        self.log.append(records, self._now_ms(), transaction)
        apply = self.machine.apply
        for record in records:
            apply(record, transaction)

    async def _reply_later(self, reply: Reply, end_offset: int) -> Reply:
        await self.log.wait_committed(end_offset)
        return reply

    # Those who wait.

    def _wait_for(self, ticket: Ticket) -> asyncio.Future[object]:
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(ticket, []).append(future)
        return future

    async def _wait(self, ticket: Ticket, future: asyncio.Future[object]) -> Any:  # noqa: ANN401
        try:
            return await future
        finally:
            self._forget(ticket, future)

    def _forget(self, ticket: Ticket, future: asyncio.Future[object]) -> None:
        waiting = self._waiting.get(ticket, [])
        if future in waiting:
            waiting.remove(future)
            if not waiting:
                del self._waiting[ticket]

    def _tell(self, answers: Iterable[tuple[Ticket, object]]) -> None:
        for ticket, answer in answers:
            # Who asked twice is answered twice.
            for future in self._waiting.pop(ticket, ()):
                if not future.done():
                    future.set_result(answer)

    async def _tell_later(self, answers: Iterable[tuple[Ticket, object]], end_offset: int) -> None:
        try:
            await self.log.wait_committed(end_offset)
        except KafkaError as error:
            self._refuse([ticket for ticket, _ in answers], error)
        else:
            self._tell(answers)

    def _refuse(self, tickets: Iterable[Ticket], error: KafkaError) -> None:
        for ticket in tickets:
            for future in self._waiting.pop(ticket, ()):
                if not future.done():
                    future.set_exception(KafkaError(error.code, error.message))

    # What happens by itself.

    def decide_alone(self, decide: Callable[..., Outcome], *args: object) -> None:
        """Carry out a decision that nobody asked for; raise a KafkaError if it cannot be."""
        reply = self.run(decide, *args)
        if isinstance(reply, Coroutine):
            self._start_task(self._see_through(reply))
        else:
            self.on_alone(self, reply)

    async def _see_through(self, reply: Coroutine[Any, Any, object]) -> None:
        try:
            told = await reply
        except KafkaError as error:
            log.warning("%s: a decision was not committed: %s", self.log.name, error)
        else:
            self.on_alone(self, told)

    def _on_timer(self, key: TimerKey) -> None:
        try:
            self.decide_alone(self.machine.on_timer, key, self._now_ms())
        except KafkaError as error:
            log.warning("%s: what is due for %s has to wait: %s", self.log.name, key, error)
            self._timers.set(key, self._now_ms() + RETRY_MS)
        except Exception:
            # A fault with one group must not stop the timers of the others.
            log.exception("%s: what was due for %s failed", self.log.name, key)

    def end_transaction(
        self, producer: Producer, coordinator_epoch: int, *, committed: bool, version: int
    ) -> Coroutine[Any, Any, None] | None:
        """Write that the producer's transaction ended; None if that is committed at once."""
        if self.is_closed:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        now_ms = self._now_ms()
        marker = write_marker(
            ControlType.COMMIT if committed else ControlType.ABORT,
            producer=producer,
            coordinator_epoch=coordinator_epoch,
            now_ms=now_ms,
        )
        self.log.append_batch(marker, now_ms, transaction_version=version)
        self.machine.on_marker(producer.id, producer.epoch, committed=committed)
        end_offset = self.log.end_offset
        return None if self.log.is_committed(end_offset) else self.log.wait_committed(end_offset)

    def close(self) -> None:
        """Answer nobody any more: another broker coordinates, or none."""
        self.is_closed = True
        self._timers.close()
        self._refuse(list(self._waiting), KafkaError(ErrorCode.NOT_COORDINATOR))


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What coordinators take from the broker."""

    node_id: int
    host: Host
    replicas: Replicas
    flushing: Flushing
    start_task: StartTask


@dataclass(frozen=True, slots=True)
class Kind(Generic[M]):
    """What there is a coordinator for: its topic, its machine, its records, its settings."""

    topic: str
    new_machine: Callable[[Image, BrokerSettings], M]
    #: Has a machine decide by this image and these settings from now on.
    see: Callable[[M, Image, BrokerSettings], None]
    #: Decides what follows from a change of the metadata, which the machine sees already.
    on_metadata: Callable[[M, Delta, int], Outcome] | None
    form: RecordForm
    codec: Callable[[BrokerSettings], int]
    #: The names of settings: how long a write may take, how much is read at a time.
    timeout: str
    load_buffer: str


class Coordinators(Generic[M]):
    """The shards of one internal topic that this broker leads."""

    def __init__(self, kind: Kind[M], around: Surroundings, settings: BrokerSettings) -> None:
        self.kind = kind
        self._around = around
        self._settings = settings
        self._image = Image()
        self._topic: Topic | None = None
        self._shards: dict[int, Shard[M]] = {}
        self._is_closed = False
        self._loads = asyncio.Semaphore(LOADS_AT_ONCE)
        #: Told what shards decided by themselves; set before the first of them is begun.
        self.on_alone: OnAlone[M] = told_nobody

    # For handlers.

    @property
    def topic(self) -> str:
        """The name of the internal topic."""
        return self.kind.topic

    @property
    def has_topic(self) -> bool:
        """Whether the internal topic is there."""
        return self._topic is not None

    def leader_of(self, key: str, image: Image) -> int | None:
        """Return the broker that coordinates the key; None if there is none now."""
        topic = image.topics_by_name.get(self.kind.topic)
        if topic is None:
            return None
        leader = topic.partitions[java_hash(key) % len(topic.partitions)].leader
        return None if leader == NO_LEADER else leader

    def shard_for(self, key: str) -> Shard[M]:
        """Return the shard that coordinates the key; raise a KafkaError that says why not."""
        if self._topic is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return self.led(java_hash(key) % len(self._topic.partitions))

    def led(self, index: int) -> Shard[M]:
        """Return the shard of a partition; raise a KafkaError that says why not."""
        shard = self._shards.get(index)
        if shard is None or shard.is_closed:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        if not shard.is_loaded:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return shard

    def shards(self) -> list[Shard[M]]:
        """Return all shards that answer."""
        return [each for each in self._shards.values() if each.is_loaded and not each.is_closed]

    @property
    def is_loading(self) -> bool:
        """Whether some of the shards do not answer yet."""
        return any(not each.is_loaded for each in self._shards.values())

    # Following the metadata.

    async def follow(
        self, image: Image, settings: BrokerSettings, delta: Delta | None = None
    ) -> None:
        """Begin and end shards as the metadata says; let the others see it."""
        if self._is_closed:
            return
        self._image, self._settings = image, settings
        for shard in self._shards.values():
            self.kind.see(shard.machine, image, settings)
        topic = image.topics_by_name.get(self.kind.topic)
        if topic is not self._topic:
            self._topic = topic
            self._take_up(topic)
        if delta is not None:
            await self._tell_shards(delta)

    async def _tell_shards(self, delta: Delta) -> None:
        if self.kind.on_metadata is None:
            return
        now_ms = self._around.host.now_ms()
        for number, shard in enumerate(self.shards(), 1):
            if number % TOLD_AT_ONCE == 0:
                await asyncio.sleep(0)
            if shard.is_closed:
                continue
            try:
                shard.decide_alone(self.kind.on_metadata, shard.machine, delta, now_ms)
            except KafkaError as error:
                log.warning("%s cannot follow the metadata: %s", shard.log.name, error)

    def _take_up(self, topic: Topic | None) -> None:
        """Have a shard for each partition that this broker leads, and for no other."""
        led = {}
        if topic is not None:
            for index in topic.partitions:
                partition = self._around.replicas.find(topic.name, index)
                if partition is not None and partition.is_leader:
                    led[index] = partition
        for index, shard in list(self._shards.items()):
            if not shard.log.is_of(led.get(index)):
                shard.close()
                del self._shards[index]
        for index, partition in led.items():
            if index not in self._shards:
                self._begin(index, partition)

    def _begin(self, index: int, partition: Partition) -> None:
        around, settings, kind = self._around, self._settings, self.kind
        shard = self._shards[index] = Shard(
            kind.new_machine(self._image, settings),
            CoordinatorLog(
                partition,
                kind.form,
                around.flushing,
                codec=kind.codec(settings),
                timeout_ms=settings.number(kind.timeout),
            ),
            around.host.now_ms,
            around.start_task,
        )
        shard.on_alone = self.on_alone
        if partition.log.end_offset == partition.log.start_offset:
            # As all are of a topic that was just made: its first client finds them ready.
            self._finish(shard)
        else:
            around.start_task(self._load(shard))

    async def _load(self, shard: Shard[M]) -> None:
        async with self._loads:
            await self._read_log(shard)

    async def _read_log(self, shard: Shard[M]) -> None:
        """Read the log into the machine; then answer."""
        source, offload = shard.log, self._around.host.offload
        bytes_max = self._settings.number(self.kind.load_buffer)
        offset = source.partition.log.start_offset
        try:
            while not shard.is_closed:
                found = await warmed(partial(source.find, offset, bytes_max), offload)
                if found is None:
                    self._finish(shard)
                    return
                offset = await offload(partial(source.load, found, offset, shard.machine))
        except (KafkaError, MalformedFrame, OSError):
            # As in Kafka, who cannot read its log does not coordinate.
            log.exception("%s cannot be loaded", source.name)
            shard.close()

    def _finish(self, shard: Shard[M]) -> None:
        if shard.is_closed:
            return
        self.kind.see(shard.machine, self._image, self._settings)
        shard.is_loaded = True
        try:
            shard.decide_alone(shard.machine.on_loaded, self._around.host.now_ms())
        except KafkaError as error:
            log.warning("%s was loaded, but has to wait: %s", shard.log.name, error)
            shard.is_loaded = False
            self._around.start_task(self._finish_later(shard))

    async def _finish_later(self, shard: Shard[M]) -> None:
        await asyncio.sleep(RETRY_MS / 1000)
        self._finish(shard)

    def close(self) -> None:
        """Coordinate nothing any more; who waits is sent away."""
        self._is_closed = True
        for shard in self._shards.values():
            shard.close()
        self._shards.clear()
