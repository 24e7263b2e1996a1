"""What becomes of partitions when their disk fails, and of checkpoints that many want to write."""

import asyncio
import errno
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
from strom.records.record import Record, write_batch
from strom.testing.disk import FakeDisk
from strom.wire.errors import ErrorCode, KafkaError


@pytest.fixture
def directory():
    disk = FakeDisk()
    LogDirectory.format(disk, "/data", Meta(1, "cluster", UUID(int=9)))
    return LogDirectory.open(disk, "/data")


async def test_two_who_checkpoint_at_once_write_one_after_the_other(directory):
    under_way, most = 0, 0

    async def offload(work):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.get_running_loop().run_in_executor(None, int)
        result = work()
        under_way -= 1
        return result

    replicas = Replicas(Host(disk=directory.disk, offload=offload), 1, [directory], None)
    writes = [replicas.checkpoint(directory, LOG_START, lambda _: 0) for _ in range(5)]
    await asyncio.gather(*writes)
    assert most == 1
    assert directory.failed is None


async def test_an_error_of_the_disk_takes_the_directory_out_of_use_and_ends_the_turn(directory):
    async def offload(_):
        raise OSError(5, "Input/output error")

    replicas = Replicas(Host(disk=directory.disk, offload=offload), 1, [directory], None)
    for _ in range(2):
        await replicas.checkpoint(directory, LOG_START, lambda _: 0)
    assert directory.failed is not None


# A disk that fails in the midst of it.

TOPIC_ID = UUID(int=7)
OTHER_NODE = 2


def created(index, topic_id=TOPIC_ID, **other):
    """The record of a new partition."""
    given = {
        "replicas": (1, OTHER_NODE),
        "isr": (1,),
        "leader": 1,
        "leader_epoch": 0,
        "partition_epoch": 0,
        "directories": (UUID(int=9), UUID(int=10)),
    }
    return PartitionCreated(partition_id=index, topic_id=topic_id, **(given | other))


def a_topic(partitions, leader=1, name="t", topic_id=TOPIC_ID):
    yield TopicCreated(name=name, topic_id=topic_id)
    for index in range(partitions):
        yield created(index, topic_id, isr=(leader,), leader=leader)


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

    def make_up(self):
        return asyncio.run(self.replicas.create_unmade(self.image, BrokerSettings()))

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
    following.disk.fail_next("write_at")
    following.take(PartitionChange(topic_id=TOPIC_ID, partition_id=0, leader=1, isr=(1,)))
    assert directory.failed is not None
    assert following.error_of(0) is ErrorCode.KAFKA_STORAGE_ERROR


def test_who_has_no_room_to_write_down_that_it_leads_does_so_before_its_first_batch(directory):
    following = Following(directory)
    following.take(*a_topic(partitions=1, leader=OTHER_NODE))
    following.disk.fail_next("write_at", errno.ENOSPC)
    following.take(PartitionChange(topic_id=TOPIC_ID, partition_id=0, leader=1, isr=(1,)))
    assert directory.failed is None
    partition = following.replicas.leader_of("t", 0)
    assert partition.log.epochs.entries == ()
    partition.append_own(memoryview(write_batch([Record(0, 1, b"k", b"v")])), 1)
    assert partition.log.epochs.entries == ((partition.leader_epoch, 0),)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT, errno.EMFILE])
@pytest.mark.parametrize("operation", ["make_directory", "create", "write_at", "truncate"])
def test_a_log_for_which_there_is_no_room_is_begun_later(directory, operation, error, caplog):
    following = Following(directory)
    following.disk.fail_next(operation, error)
    following.take(*a_topic(partitions=3))
    assert directory.failed is None
    assert {following.error_of(index) for index in range(3)} == {ErrorCode.KAFKA_STORAGE_ERROR}
    assert following.disk.directories("/data") == [], "nothing is left half made"
    assert [each.getMessage().split(":")[0] for each in caplog.records] == [
        "The log directory /data is tried again later"
    ]
    following.disk.is_full = True
    assert not following.make_up()
    following.disk.is_full = False
    assert following.make_up()
    assert [following.replicas.leader_of("t", index).index for index in range(3)] == [0, 1, 2]
    assert not following.make_up(), "nothing is left to be made"


def test_what_is_deleted_before_there_was_room_is_not_made(directory):
    following = Following(directory)
    following.disk.fail_next("create", errno.ENOSPC)
    following.take(*a_topic(partitions=2))
    following.take(RemoveTopic(topic_id=TOPIC_ID))
    assert not following.make_up()
    assert following.disk.directories("/data") == []
    assert following.error_of(0) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_log_that_cannot_be_made_on_a_broken_disk_takes_it_out_of_use(directory):
    following = Following(directory)
    following.disk.fail_next("create", errno.EIO)
    following.take(*a_topic(partitions=1))
    assert directory.failed is not None
    assert following.error_of(0) is ErrorCode.KAFKA_STORAGE_ERROR
    assert not following.make_up()


class Filling(FakeDisk):
    """A disk of whose directories one is full for some time."""

    full = None

    def open(self, path, *, create=False):
        if create and self.full and path.startswith(self.full):
            raise OSError(errno.ENOSPC, "No space left on device", path)
        return super().open(path, create=create)


UNASSIGNED = UUID(int=1)
ONE, TWO, GONE = UUID(int=101), UUID(int=102), UUID(int=103)


class Node:
    """The replicas of a broker with two directories, opened as often as one likes."""

    def __init__(self, *assigned, isr=(1,)):
        self.disk = Filling()
        for path, identifier in (("/one", ONE), ("/two", TWO)):
            LogDirectory.format(self.disk, path, Meta(1, "cluster", identifier))
        self.image = Image()
        records = [TopicCreated(name="t", topic_id=TOPIC_ID)]
        for index, directory in enumerate(assigned):
            places = (directory, UUID(int=10))
            records.append(created(index, isr=isr, leader=isr[0], directories=places))
        self.image = advance(Image(), records).after

    def start(self, *, lost=()):
        self.disk._held.clear()
        self.directories = [
            LogDirectory.lost(self.disk, path, OSError(5, "Input/output error"))
            if path in lost
            else LogDirectory.open(self.disk, path)
            for path in ("/one", "/two")
        ]
        self.replicas = Replicas(Host(disk=self.disk), 1, self.directories, None)
        asyncio.run(self.replicas.load(self.image, BrokerSettings()))
        return self.replicas

    def take(self, *records):
        delta = advance(self.image, records)
        self.image = delta.after
        asyncio.run(self.replicas.follow(self.image, delta, BrokerSettings()))

    def assign(self, index, directory):
        change = PartitionChange(
            topic_id=TOPIC_ID, partition_id=index, directories=(directory, UUID(int=10))
        )
        self.image = advance(self.image, [change]).after

    def places(self):
        """Return the directory of each partition; None for one that is offline."""
        found = {}
        for index in self.image.topics_by_id[TOPIC_ID].partitions:
            partition = self.replicas.find("t", index)
            found[index] = partition and partition.directory.path
            if partition is None:
                with pytest.raises(KafkaError, match="KAFKA_STORAGE_ERROR"):
                    self.replicas.leader_of("t", index)
        return found

    def logs(self):
        return {(path, name) for path in ("/one", "/two") for name in self.disk.directories(path)}


def test_a_directory_that_cannot_be_read_at_the_start_takes_only_its_partitions_along():
    node = Node(ONE, TWO)
    node.start()
    node.disk.break_reads("/two/t-1")
    replicas = node.start()
    assert node.places() == {0: "/one", 1: None}
    assert replicas.online_directories == node.directories[:1]
    assert replicas.news.is_set()


def test_a_partition_that_may_have_a_log_out_of_reach_is_not_begun_anew():
    """Nor is one that was not yet assigned when the broker went down: nobody knows where it is."""
    node = Node(ONE, TWO, UNASSIGNED, UNASSIGNED)
    node.start()
    assert node.places() == {0: "/one", 1: "/two", 2: "/one", 3: "/two"}
    node.start(lost=["/two"])
    assert node.places() == {0: "/one", 1: None, 2: "/one", 3: None}
    for index in (1, 3):
        node.take(PartitionChange(topic_id=TOPIC_ID, partition_id=index, leader=1, isr=(1,)))
    assert node.places() == {0: "/one", 1: None, 2: "/one", 3: None}
    node.start()
    assert node.places() == {0: "/one", 1: "/two", 2: "/one", 3: "/two"}


def test_a_new_partition_goes_where_there_is_room_and_one_that_is_assigned_waits():
    node = Node(UNASSIGNED, UNASSIGNED, TWO)
    node.disk.full = "/two/t-"
    replicas = node.start()
    assert node.places() == {0: "/one", 1: "/one", 2: None}
    assert replicas.is_complete
    node.disk.full = None
    assert asyncio.run(replicas.create_unmade(node.image, BrokerSettings()))
    assert node.places() == {0: "/one", 1: "/one", 2: "/two"}


def test_one_whose_directory_is_not_there_any_more_waits_for_it():
    node = Node(ONE, GONE)
    node.start()
    assert node.places() == {0: "/one", 1: None}
    assert node.logs() == {("/one", "t-0")}


def test_one_whose_records_others_have_is_begun_anew_unless_it_may_be_out_of_reach():
    node = Node(GONE, isr=(OTHER_NODE,))
    node.start(lost=["/two"])
    assert node.places() == {0: None}
    node.start()
    assert node.replicas.find("t", 0) is not None


def test_what_a_move_left_behind_is_not_served_while_the_newer_log_is_out_of_reach():
    node = Node(ONE)
    node.start()
    # The move was noted, and the broker went down before the old log was removed.
    node.disk.make_directory("/two/t-0")
    node.assign(0, TWO)
    node.start(lost=["/two"])
    assert node.places() == {0: None}
    assert ("/one", "t-0") in node.logs()


def test_a_new_topic_with_the_name_of_one_that_is_offline_is_created():
    node = Node(TWO, UNASSIGNED)
    node.start(lost=["/two"])
    assert node.places() == {0: None, 1: None}
    other = UUID(int=8)
    new = created(0, other, replicas=(1,), directories=(UNASSIGNED,))
    node.take(RemoveTopic(topic_id=TOPIC_ID), TopicCreated(name="t", topic_id=other), new)
    assert node.replicas.leader_of("t", 0).topic_id == other
    with pytest.raises(KafkaError, match="UNKNOWN_TOPIC"):
        node.replicas.leader_of("t", 1)


# What the controller has to be told.


def test_what_is_not_where_the_metadata_says_is_to_be_told():
    node = Node(ONE, UNASSIGNED)
    replicas = node.start()
    one, two = node.directories
    assert replicas.unnoted == {(TOPIC_ID, 1): two}
    assert replicas.news.is_set()
    replicas.relocate(replicas.find("t", 1), one)
    assert replicas.unnoted == {(TOPIC_ID, 1): one}
    replicas.fail(one, OSError(5, "Input/output error"))
    assert replicas.unnoted == {(TOPIC_ID, 1): one}, "so that it is known to be offline"
    node.take(RemoveTopic(topic_id=TOPIC_ID))
    assert replicas.unnoted == {}


def test_what_is_where_the_metadata_says_need_not_be_told():
    replicas = Node(ONE, TWO).start()
    assert replicas.unnoted == {}
    assert not replicas.news.is_set()
