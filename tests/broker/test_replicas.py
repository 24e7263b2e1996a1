"""What becomes of partitions when their disk fails, and of checkpoints that many want to write."""

import asyncio
from uuid import UUID

import pytest

from strom.broker.host import Host
from strom.broker.replicas import Replicas
from strom.log.checkpoints import LOG_START
from strom.log.directory import LogDirectory, Meta
from strom.metadata.delta import advance
from strom.metadata.image import Image
from strom.metadata.records import PartitionChange, PartitionCreated, RemoveTopic, TopicCreated
from strom.metadata.settings.values import BrokerSettings
from strom.testing.disk import FakeDisk
from strom.wire.errors import ErrorCode, KafkaError


@pytest.fixture
def directory():
    disk = FakeDisk()
    LogDirectory.format(disk, "/data", Meta(1, "cluster", UUID(int=9)))
    return LogDirectory.open(disk, "/data")


def test_two_who_checkpoint_at_once_write_one_after_the_other(directory):
    under_way, most = 0, 0

    async def offload(work):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.get_running_loop().run_in_executor(None, int)
        result = work()
        under_way -= 1
        return result

    async def run():
        replicas = Replicas(Host(disk=directory.disk, offload=offload), 1, [directory], None)
        writes = [replicas.checkpoint(directory, LOG_START, lambda _: 0) for _ in range(5)]
        await asyncio.gather(*writes)

    asyncio.run(run())
    assert most == 1
    assert directory.failed is None


def test_an_error_of_the_disk_takes_the_directory_out_of_use_and_ends_the_turn(directory):
    async def offload(_):
        raise OSError(5, "Input/output error")

    async def run():
        replicas = Replicas(Host(disk=directory.disk, offload=offload), 1, [directory], None)
        for _ in range(2):
            await replicas.checkpoint(directory, LOG_START, lambda _: 0)

    asyncio.run(run())
    assert directory.failed is not None


# A disk that fails in the midst of it.

TOPIC_ID = UUID(int=7)
OTHER_NODE = 2


def a_topic(partitions, leader=1):
    yield TopicCreated(name="t", topic_id=TOPIC_ID)
    for index in range(partitions):
        yield PartitionCreated(
            partition_id=index,
            topic_id=TOPIC_ID,
            replicas=(1, OTHER_NODE),
            isr=(leader,),
            leader=leader,
            leader_epoch=0,
            partition_epoch=0,
            directories=(UUID(int=9), UUID(int=10)),
        )


class Following:
    """Replicas that are brought what the records say."""

    def __init__(self, directory):
        self.disk = directory.disk
        self.removals = []
        self.replicas = Replicas(Host(disk=self.disk), 1, [directory], self.remove)
        self.image = Image()

    def remove(self, work):
        work.close()
        self.removals.append(work)

    def take(self, *records):
        delta = advance(self.image, records)
        self.image = delta.after
        asyncio.run(self.replicas.follow(self.image, delta, BrokerSettings()))

    def error_of(self, index):
        with pytest.raises(KafkaError) as raised:
            self.replicas.leader_of("t", index)
        return raised.value.code


def test_a_disk_that_fails_while_a_topic_is_deleted_takes_the_rest_of_it_along(directory):
    following = Following(directory)
    following.take(*a_topic(partitions=3))
    assert following.replicas.leader_of("t", 2)
    following.disk.fail_next("rename")
    following.take(RemoveTopic(topic_id=TOPIC_ID))
    assert directory.failed is not None
    assert {following.error_of(index) for index in range(3)} == {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    }
    assert following.removals == []


def test_who_cannot_write_down_that_it_leads_does_not(directory):
    following = Following(directory)
    following.take(*a_topic(partitions=1, leader=OTHER_NODE))
    following.disk.fail_next("rename")
    following.take(PartitionChange(topic_id=TOPIC_ID, partition_id=0, leader=1, isr=(1,)))
    assert directory.failed is not None
    assert following.error_of(0) is ErrorCode.KAFKA_STORAGE_ERROR


class Unreadable(FakeDisk):
    """A disk of whose directories one cannot be read from some time on."""

    broken = None

    def scan(self, path):
        if self.broken and path.startswith(self.broken):
            raise OSError(5, "Input/output error", path)
        return super().scan(path)


def test_a_directory_that_cannot_be_read_at_the_start_takes_only_its_partitions_along():
    disk = Unreadable()
    directories = []
    for number, path in enumerate(("/one", "/two"), 1):
        LogDirectory.format(disk, path, Meta(1, "cluster", UUID(int=number)))
        directories.append(LogDirectory.open(disk, path))
    image = Image()
    for record in (
        TopicCreated(name="t", topic_id=TOPIC_ID),
        *(
            PartitionCreated(
                partition_id=index,
                topic_id=TOPIC_ID,
                replicas=(1,),
                isr=(1,),
                leader=1,
                leader_epoch=0,
                partition_epoch=0,
                directories=(UUID(int=index + 1),),
            )
            for index in range(2)
        ),
    ):
        image = advance(image, [record]).after

    async def load():
        replicas = Replicas(Host(disk=disk), 1, directories, None)
        await replicas.load(image, BrokerSettings())
        return replicas

    asyncio.run(load())
    disk.broken = "/two/t-1"
    replicas = asyncio.run(load())
    assert replicas.leader_of("t", 0)
    with pytest.raises(KafkaError, match="KAFKA_STORAGE_ERROR"):
        replicas.leader_of("t", 1)
    assert replicas.online_directories == directories[:1]
    assert replicas.news.is_set()
