"""Coordinators over partitions of the offsets' topic, and how a test waits for them."""

import asyncio
import contextlib
from types import SimpleNamespace
from uuid import UUID

import pytest
from immutables import Map

from strom.broker.coordination import Coordinators, Kind, Surroundings
from strom.groups import records
from strom.groups.committing import Commit, NewOffset, Query
from strom.groups.machine import GroupMachine
from strom.groups.owners import Author
from strom.metadata.image import Image, Partition, Topic
from strom.metadata.settings.values import BrokerSettings
from strom.replication import partition as replica
from strom.wire.errors import KafkaError
from tests.log.making import NOW, SMALL, new_disk, open_log
from tests.patience import PATIENCE_SECONDS, until_true

TOPIC_ID = UUID(int=9)
TOPIC = "__consumer_offsets"
HERE, ELSEWHERE = 1, 2


async def refusal(work):
    """The code that the work ends with."""
    try:
        return await work
    except KafkaError as error:
        return error.code


class Flushing:
    """Syncs where it is told to, when the test says so."""

    def __init__(self):
        self.wanted = False
        self.works = True
        self.flushed = 0

    def on_appended(self, partition):
        return self.wanted

    async def flush(self, partition):
        self.flushed += 1
        if self.works:
            partition.log.recovery_point = partition.log.end_offset
        return self.works


class World:
    """A broker that leads some partitions of the offsets' topic."""

    def __init__(self, partitions=1, config=SMALL, **settings):
        self.disk = new_disk()
        self.config = config
        #: What there is besides: that for which offsets are committed.
        self.topics = ["t"]
        named = {name.replace("_", "."): str(value) for name, value in settings.items()}
        self.settings = BrokerSettings(named)
        self.replicas = {index: self.replica(index) for index in range(partitions)}
        self.flushing = Flushing()
        self.now_ms = NOW
        self.offloaded = 0

    def replica(self, index):
        path = f"/data/{TOPIC}-{index}"
        self.disk.make_directory(path)
        log = open_log(self.disk, self.config, path=path)
        log.name = TOPIC, index
        made = replica.Partition(TOPIC_ID, HERE, log, None)
        made.lead(0, (HERE,), log.end_offset)
        return made

    async def offload(self, work):
        self.offloaded += 1
        await asyncio.sleep(0)
        return work()

    def image(self, leaders):
        partitions = {
            index: Partition((HERE, ELSEWHERE), (HERE,), leader, 0, 0, (None, None))
            for index, leader in enumerate(leaders)
        }
        topics = [Topic(TOPIC, TOPIC_ID, Map(partitions))]
        topics += [Topic(name, UUID(bytes=name.encode() * 16), Map()) for name in self.topics]
        return Image(
            topics_by_id=Map({each.id: each for each in topics}),
            topics_by_name=Map({each.name: each for each in topics}),
        )

    def coordinators(self, start_task):
        def time():
            return self.now_ms

        host = SimpleNamespace(now_ms=time, steady_ms=time, offload=self.offload)
        found = SimpleNamespace(find=lambda topic, index: self.replicas.get(index))
        around = Surroundings(HERE, host, found, self.flushing, start_task)
        kind = Kind(
            topic=TOPIC,
            new_machine=GroupMachine,
            see=GroupMachine.see,
            on_metadata=GroupMachine.on_metadata,
            form=records,
            codec=lambda settings: settings.number("offsets.topic.compression.codec"),
            timeout="offsets.commit.timeout.ms",
            load_buffer="offsets.load.buffer.size",
        )
        return Coordinators(kind, around, self.settings)


@contextlib.asynccontextmanager
async def coordinating(world, leaders=(HERE,)):
    """Coordinators that follow an image with these leaders."""
    async with asyncio.TaskGroup() as tasks:
        coordinators = world.coordinators(tasks.create_task)
        await coordinators.follow(world.image(leaders), world.settings)
        async with asyncio.timeout(PATIENCE_SECONDS):
            yield coordinators
        coordinators.close()


def commit(shard, offset, group="g", partition=0, transaction=None):
    new = [NewOffset("t", partition, offset)]
    author = Author(is_transactional=transaction is not None)
    asked = Commit(group, author, new, transaction=transaction)
    return shard.run(shard.machine.commit_offsets, asked, NOW)


def offsets(shard, group="g"):
    told = shard.run(shard.machine.fetch_offsets, Query(group, None))
    return {each.partition: each.value.offset for _, found in told for each in found}


async def load(coordinators, key="g"):
    """Wait until the shard of the key answers."""
    await until_true(lambda: not coordinators.is_loading)
    return coordinators.shard_for(key)


def code_of(ask):
    with pytest.raises(KafkaError) as caught:
        ask()
    return caught.value.code
