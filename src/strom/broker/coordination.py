"""The coordinators of this broker: one shard for each partition of an internal topic it leads.

    key ─hash─▶ partition ─▶ shard = machine + log + timers + who waits

A shard is begun when this broker comes to lead its partition, and answers once the log was read
back into its machine; until then clients hear COORDINATOR_LOAD_IN_PROGRESS. When the lead is
lost it is thrown away: nothing in it is worth keeping that is not in the log.

What is read is applied in a thread, slice by slice: nobody else touches a machine that is loading.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Generic, TypeVar

from strom.broker.coordinator_log import CoordinatorLog, RecordForm
from strom.broker.flushing import Flushing
from strom.broker.host import Host
from strom.broker.replicas import Replicas
from strom.broker.shard import RETRY_MS, OnAlone, Shard, StartTask, told_nobody
from strom.log.cold import warmed
from strom.metadata.delta import Delta
from strom.metadata.image import Image, Topic
from strom.metadata.records import NO_LEADER
from strom.metadata.settings.values import BrokerSettings
from strom.replicated.machine import (
    CoordinatorMachine,
    Decision,
    KeyValue,
)
from strom.replication.partition import Partition
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.primitives import MalformedFrame

log = logging.getLogger("strom.coordination")

#: How many keys' hashes are remembered.
HASHES_MAX = 10_000
#: How many logs are read at a time: their readers are the threads that serve everybody.
LOADS_AT_ONCE = 2
#: How many shards are told of a change of the metadata before others get their turn.
TOLD_AT_ONCE = 10

Outcome = Decision[KeyValue, object]

M = TypeVar("M", bound=CoordinatorMachine)


@lru_cache(HASHES_MAX)
def java_hash(text: str) -> int:
    """Return what Java's String.hashCode gives, without its sign, as Kafka uses it."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for index in range(0, len(units), 2):
        value = (31 * value + (units[index] << 8 | units[index + 1])) & 0xFFFFFFFF
    # The smallest number there is has no counterpart, and counts as 0.
    return value & 0x7FFFFFFF if value <= 0x80000000 else 0x100000000 - value


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
        self._why_missing = ""
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

    def note_missing(self, why: str) -> None:
        """Log why the topic cannot be made; once, as clients ask again and again."""
        if why != self._why_missing:
            self._why_missing = why
            log.warning("%s cannot be made, and nobody coordinates: %s", self.topic, why)

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
        """Whether some of the shards do not answer yet; one that cannot be read never will."""
        return any(not each.is_loaded and not each.is_closed for each in self._shards.values())

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
            self.take_up()
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

    def take_up(self) -> None:
        """Have a shard for each partition that this broker leads, and for no other."""
        led, topic = {}, self._topic
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
            around.host.steady_ms,
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
