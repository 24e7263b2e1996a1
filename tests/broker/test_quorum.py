"""The metadata log (CLU-10, CLU-11): flushed before told, whole after any crash, Kafka's files."""

import asyncio
import contextlib
import json
from random import Random
from uuid import UUID

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin import NewTopic as AskedTopic

from strom.broker.quorum import Quorum, QuorumConfig, Surroundings, read_bootstrap
from strom.broker.snapshots import SnapshotId, parse_file_name, read_snapshot
from strom.broker.storage import Plan, format_storage, inspect_storage
from strom.log.disk import RealDisk
from strom.log.files import OpenFiles
from strom.metadata.broker_decisions import Heartbeat
from strom.metadata.controller import Controller
from strom.metadata.delta import advance
from strom.metadata.records import NoOp, ProducerIds, Unknown
from strom.metadata.topic_decisions import Defaults, NewTopic
from strom.raft.voters import Listener, ReplicaKey
from strom.replicated.runtime import Runtime
from strom.testing.disk import FakeDisk, PowerCutError
from strom.wire.errors import ErrorCode, KafkaError
from tests import nodes
from tests.metadata.cluster import CLUSTER_ID, SomeRules, directory_of, registration_of
from tests.patience import PATIENCE_SECONDS, until

DIRECTORY_ID = directory_of(1)
KEY = ReplicaKey(1, DIRECTORY_ID)
METADATA = "/data/__cluster_metadata-0"


async def offload(run):
    run()
    # As a thread would: others get their turn before this one goes on.
    await asyncio.sleep(0)


class Place:
    """A disk with a formatted directory, and quorums on it, one after the other."""

    def __init__(self, disk=None, path="/data", **config):
        self.disk = disk or FakeDisk()
        self.path = path
        self.now_ms = 1_700_000_000_000
        self.config = QuorumConfig(**config)
        listeners = (Listener("CONTROLLER", "localhost", 9093),)
        plan = Plan(1, CLUSTER_ID, [(path, DIRECTORY_ID)], listeners)
        format_storage(self.disk, plan, now_ms=self.now_ms)
        self.meta = inspect_storage(self.disk, [path])[0].meta

    def open(self):
        at = Surroundings(OpenFiles(self.disk), lambda: self.now_ms, offload, Random(0))
        key = ReplicaKey(self.meta.node_id, self.meta.directory_id)
        return Quorum.open(self.path, key, self.config, at)

    def controller(self, quorum):
        return Controller(
            quorum.loaded_image, cluster_id=self.meta.cluster_id, node_id=1, rules=SomeRules()
        )

    @contextlib.asynccontextmanager
    async def running(self):
        """A quorum that leads, and whose log is flushed."""
        quorum = self.open()
        quorum.start()
        async with asyncio.TaskGroup() as group:
            task = group.create_task(quorum.run())
            yield quorum
            task.cancel()
        quorum.close()

    @contextlib.asynccontextmanager
    async def node(self):
        """A cluster of one: quorum, controller, runtime, registered broker."""
        async with self.running() as quorum:
            controller = self.controller(quorum)
            runtime = Runtime(controller, quorum)
            bootstrap = read_bootstrap(OpenFiles(self.disk), self.path)
            await runtime.execute(controller.bootstrap, bootstrap)
            registration = registration_of(
                1, cluster_id=self.meta.cluster_id, directories=(self.meta.directory_id,)
            )
            epoch = await runtime.execute(
                controller.register_broker,
                registration,
                broker_epoch=quorum.end_offset,
                has_session=False,
            )
            await runtime.execute(controller.heartbeat, Heartbeat(1, epoch))
            yield quorum, controller, runtime


@pytest.fixture
def place():
    return Place()


async def create(runtime, controller, name, count=1):
    return await runtime.execute(
        controller.create_topics,
        [NewTopic(name, count)],
        defaults=Defaults(1, 1),
        rng=Random(name),
        validate_only=False,
    )


async def test_the_only_voter_leads_and_opens_its_epoch(place):
    async with place.running() as quorum:
        assert (quorum.leader_id, quorum.leader_epoch) == (1, 1)
        assert quorum.end_offset == 3
        await quorum.wait_committed(3)
        assert quorum.high_watermark == 3
    assert json.loads(place.disk.read(f"{METADATA}/quorum-state"))["leaderEpoch"] == 1
    assert place.disk.read(f"{METADATA}/partition.metadata") == (
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
    )


async def test_each_start_has_a_higher_epoch_and_one_more_record(place):
    told = []
    for _ in range(3):
        async with place.running() as quorum:
            told.append((quorum.leader_epoch, quorum.end_offset))
    assert told == [(1, 3), (2, 4), (3, 5)]


async def test_what_was_decided_is_there_after_a_restart(place):
    async with place.node() as (_, controller, runtime):
        await create(runtime, controller, "flugdaten", 3)
        before = controller.image
    assert place.open().loaded_image._replace(end_offset=0, leader_epoch=0) == before


async def test_nobody_is_told_before_it_is_on_disk():
    with pytest.raises(OSError, match="Bad file"):
        place = Place()
        async with place.node() as (_, controller, runtime):
            await create(runtime, controller, "t")
            # The power goes, and nothing that was not synced has reached the disk.
            place.disk.crash()
            assert "t" in place.open().loaded_image.topics_by_name


async def test_many_decisions_share_one_flush():
    syncs = 0

    async def counting(run):
        nonlocal syncs
        syncs += 1
        await offload(run)

    place = Place()
    async with place.node() as (quorum, controller, runtime):
        quorum._offload = counting
        async with asyncio.TaskGroup() as group:
            for number in range(50):
                group.create_task(create(runtime, controller, f"t{number}"))
        assert len(controller.image.topics_by_name) == 50
    assert syncs <= 3


async def test_the_publisher_hears_of_a_commit_before_those_who_wait_for_it():
    told = []
    async with Place().running() as quorum:
        await quorum.wait_committed(quorum.end_offset)
        quorum.take_committed()

        async def publish():
            await quorum.wait_for_commits()
            told.extend(len(each.records) for each in quorum.take_committed())

        async def write():
            quorum.append([NoOp(), NoOp()])
            await quorum.wait_committed(quorum.end_offset)
            told.append("answered")

        async with asyncio.TaskGroup() as group:
            group.create_task(publish())
            group.create_task(write())
    assert told == [2, "answered"]


async def test_committed_records_lead_the_publisher_to_the_controllers_image(place):
    async with place.node() as (quorum, controller, runtime):
        await create(runtime, controller, "t", 2)
        image = quorum.loaded_image
        for batch in quorum.take_committed():
            delta = advance(
                image,
                batch.records,
                end_offset=batch.end_offset,
                leader_epoch=batch.leader_epoch,
            )
            image = delta.after
        assert image.end_offset == quorum.high_watermark
        assert image._replace(end_offset=0, leader_epoch=0) == controller.image


def test_a_node_without_a_vote_does_not_write(place):
    at = Surroundings(OpenFiles(place.disk), lambda: 0, offload, Random(0))
    quorum = Quorum.open("/data", ReplicaKey(1, UUID(int=99)), QuorumConfig(), at)
    quorum.start()
    with pytest.raises(KafkaError) as refused:
        quorum.append([NoOp()])
    assert refused.value.code is ErrorCode.NOT_CONTROLLER
    assert refused.value.message == "No controller appears to be active."


async def test_a_commit_that_takes_too_long_is_told():
    quorum = Place(commit_timeout_ms=1).open()
    quorum.start()
    with pytest.raises(KafkaError) as refused:
        await quorum.wait_committed(quorum.end_offset)
    assert refused.value.code is ErrorCode.REQUEST_TIMED_OUT


async def test_a_failing_disk_ends_the_run(place):
    quorum = place.open()
    quorum.start()
    place.disk.fail_next("sync")
    with pytest.raises(OSError, match=r"error"):
        await quorum.run()
    assert quorum.high_watermark == 0


# Snapshots.


async def test_a_snapshot_and_the_log_behind_it_give_the_cluster_back(place):
    async with place.node() as (quorum, controller, runtime):
        await create(runtime, controller, "before")
        image = controller.image._replace(
            end_offset=quorum.high_watermark, leader_epoch=quorum.leader_epoch
        )
        await quorum.write_snapshot(image)
        await quorum.write_snapshot(image)
        await create(runtime, controller, "after")
        end_offset = image.end_offset
        before = controller.image
    name = SnapshotId(end_offset, 1).file_name
    assert name == f"{end_offset:020}-0000000001.checkpoint"
    contents = read_snapshot(place.disk.read(f"{METADATA}/{name}"))
    assert contents.is_whole
    assert contents.voters.includes(KEY)
    assert place.open().loaded_image._replace(end_offset=0, leader_epoch=0) == before
    # Without the log in front of it too.
    place.disk.remove(f"{METADATA}/{0:020}.log")
    place.disk.remove(f"{METADATA}/{0:020}.index")
    place.disk.remove(f"{METADATA}/{0:020}.timeindex")
    assert place.open().loaded_image._replace(end_offset=0, leader_epoch=0) == before


async def test_a_snapshot_that_is_not_whole_is_not_used(place):
    async with place.node() as (quorum, controller, runtime):
        await create(runtime, controller, "t")
        image = controller.image._replace(end_offset=quorum.end_offset, leader_epoch=1)
        await quorum.write_snapshot(image)
        before = controller.image
    path = f"{METADATA}/{SnapshotId(image.end_offset, 1).file_name}"
    # Its footer is one batch of 75 bytes.
    place.disk.write(path, place.disk.read(path)[:-75])
    assert place.open().loaded_image._replace(end_offset=0, leader_epoch=0) == before


async def test_records_of_types_that_nobody_knows_yet_outlive_replay_and_snapshot(place):
    strange = Unknown(99, b"\x01\x63\x00 a later one")
    async with place.node() as (quorum, controller, _):
        quorum.append([strange])
        controller.apply(strange)
        await quorum.wait_committed(quorum.end_offset)
        image = controller.image._replace(end_offset=quorum.end_offset, leader_epoch=1)
        assert place.open().loaded_image.unknown == (strange,)
        await quorum.write_snapshot(image)
    assert place.open().loaded_image.unknown == (strange,)


async def test_a_snapshot_is_due_by_size_or_by_time():
    place = Place(snapshot_bytes=2000, snapshot_interval_ms=60_000)
    async with place.running() as quorum:
        assert not quorum.is_snapshot_due()
        place.now_ms += 60_000
        assert quorum.is_snapshot_due()
        await quorum.wait_committed(quorum.end_offset)
        image = quorum.loaded_image._replace(end_offset=quorum.end_offset, leader_epoch=1)
        await quorum.write_snapshot(image)
        place.now_ms += 60_000
        assert not quorum.is_snapshot_due(), "nothing happened since"
        for _ in range(30):
            quorum.append([NoOp()])
        assert quorum.is_snapshot_due()


async def take_snapshots(place, quorum, count, apart_ms=0):
    """Take snapshots one after the other; return their end offsets."""
    taken = []
    for _ in range(count):
        place.now_ms += apart_ms
        identifier = 1000 * quorum.end_offset
        quorum.append([ProducerIds(broker_id=1, next_producer_id=identifier)])
        await quorum.wait_committed(quorum.end_offset)
        image = quorum.loaded_image._replace(
            next_producer_id=identifier,
            end_offset=quorum.end_offset,
            leader_epoch=quorum.leader_epoch,
        )
        await quorum.write_snapshot(image)
        taken.append(image.end_offset)
    return taken


def snapshots_in(place):
    names = sorted(name for name, _ in place.disk.scan(METADATA))
    return [found.end_offset for name in names if (found := parse_file_name(name)) is not None]


def segments_in(place):
    return sorted(
        int(name.removesuffix(".log"))
        for name, _ in place.disk.scan(METADATA)
        if name.endswith(".log")
    )


async def test_old_snapshots_and_the_log_before_them_go_when_there_is_too_much():
    place = Place(retention_bytes=0)
    async with place.running() as quorum:
        *_, last = await take_snapshots(place, quorum, 3)
        assert quorum.start_offset == last
    assert snapshots_in(place) == segments_in(place) == [last]
    assert place.open().loaded_image.next_producer_id == 1000 * (last - 1)


@pytest.mark.parametrize(("is_log_allowed_for", "left"), [(True, 2), (False, 1)])
async def test_no_more_of_them_go_than_must(is_log_allowed_for, left):
    """What the log takes up counts, and it becomes shorter with every snapshot that goes."""
    place = Place(retention_bytes=-1)
    async with place.running() as quorum:
        taken = await take_snapshots(place, quorum, 3)
    assert snapshots_in(place) == [0, *taken]
    sizes = dict(place.disk.scan(METADATA))
    kept = [SnapshotId(end_offset, 1).file_name for end_offset in taken[-2:]]
    bytes_max = sum(sizes[name] for name in kept)
    if is_log_allowed_for:
        bytes_max += sum(sizes[f"{base_offset:020}.log"] for base_offset in taken[-2:])
        # The next start opens an epoch with one batch more.
        bytes_max += LEADER_CHANGE_BYTES
    place.config = QuorumConfig(retention_bytes=bytes_max)
    async with place.running() as quorum:
        await quorum.wait_committed(quorum.end_offset)
        await quorum.drop_old()
        assert quorum.start_offset == taken[-left]
    assert snapshots_in(place) == segments_in(place) == taken[-left:]


#: The batch with which a leader of one voter opens its epoch.
LEADER_CHANGE_BYTES = 100
DAY_MS = 24 * 60 * 60 * 1000


async def test_old_snapshots_and_the_log_before_them_go_when_they_are_too_old():
    place = Place(retention_ms=7 * DAY_MS)
    async with place.running() as quorum:
        taken = await take_snapshots(place, quorum, 3, apart_ms=DAY_MS)
        place.now_ms += 6 * DAY_MS
        await quorum.drop_old()
        # Formatting was nine days ago, the first snapshot eight, the second one just seven.
        assert snapshots_in(place) == segments_in(place) == taken[-2:]
        assert quorum.start_offset == taken[-2]
        place.now_ms += 1
    # How old they are is known from the files: a restart makes nothing younger.
    async with place.running() as quorum:
        await quorum.wait_committed(quorum.end_offset)
        await quorum.drop_old()
        assert snapshots_in(place) == segments_in(place) == taken[-1:]
        place.now_ms += 365 * DAY_MS
        await quorum.drop_old()
        assert snapshots_in(place) == taken[-1:], "the newest one has to stay"
    assert place.open().loaded_image.next_producer_id == 1000 * (taken[-1] - 1)


async def test_without_limits_every_snapshot_stays():
    place = Place(retention_ms=-1, retention_bytes=-1)
    async with place.running() as quorum:
        taken = await take_snapshots(place, quorum, 3, apart_ms=30 * DAY_MS)
        await quorum.drop_old()
    assert snapshots_in(place) == [0, *taken]


async def test_a_snapshot_that_does_not_say_how_old_it_is_goes_by_size_only(place):
    place.disk.write(f"{METADATA}/{SnapshotId(0, 0).file_name}", b"")
    async with place.running() as quorum:
        taken = await take_snapshots(place, quorum, 2, apart_ms=30 * DAY_MS)
    assert snapshots_in(place) == [0, *taken]


@pytest.mark.slow
def test_a_power_cut_at_any_point_leaves_all_that_was_told():
    async def story(place, told):
        async with place.node() as (quorum, controller, runtime):
            for number in range(3):
                await create(runtime, controller, f"t{number}")
                told.append(f"t{number}")
            image = controller.image._replace(end_offset=quorum.high_watermark, leader_epoch=1)
            await quorum.write_snapshot(image)
            await create(runtime, controller, "last")
            told.append("last")

    cuts = 0
    while True:
        place, told = Place(), []
        place.disk.cut_power_after(cuts)
        try:
            asyncio.run(story(place, told))
            break
        except (PowerCutError, OSError, BaseExceptionGroup):
            place.disk.crash(Random(cuts))
        quorum = place.open()
        assert set(told) <= set(quorum.loaded_image.topics_by_name)
        quorum.start()
        assert quorum.leader_id == 1
        cuts += 1
    assert cuts > 10


# Kafka itself.


@pytest.mark.java
@pytest.mark.slow
async def test_kafkas_dump_tool_reads_log_and_snapshots(kafka_tool, tmp_path):
    place = Place(RealDisk(), str(tmp_path))
    async with place.node() as (quorum, controller, runtime):
        await create(runtime, controller, "flugdaten", 2)
        image = controller.image._replace(end_offset=quorum.high_watermark, leader_epoch=1)
        await quorum.write_snapshot(image)
        snapshot = SnapshotId(image.end_offset, 1).file_name
    log = tmp_path / "__cluster_metadata-0"
    files = [
        log / f"{0:020}.log",
        log / snapshot,
        log / SnapshotId(0, 0).file_name,
        tmp_path / "bootstrap.checkpoint",
    ]
    done = kafka_tool(
        "kafka-dump-log", "--cluster-metadata-decoder", "--files", ",".join(map(str, files))
    )
    assert done.returncode == 0, done.stderr
    in_log, in_snapshot, in_voters, in_bootstrap = done.stdout.split("Dumping ")[1:]
    assert "isvalid: false" not in done.stdout
    assert "LeaderChange" in in_log
    for each in (in_log, in_snapshot):
        assert '"REGISTER_BROKER_RECORD","version":4' in each
        assert '"name":"flugdaten"' in each
        assert each.count('"PARTITION_RECORD","version":2') == 2
    for each in (in_snapshot, in_voters, in_bootstrap):
        assert "SnapshotHeader" in each
        assert "SnapshotFooter" in each
    assert '"host":"localhost","port":9093' in in_voters
    assert '"metadata.version","featureLevel":30' in in_bootstrap


def leaders(admin):
    """The leaders of the partitions of each topic."""
    topics = admin.list_topics(timeout=PATIENCE_SECONDS).topics
    return {
        name: {each.leader for each in topic.partitions.values()} for name, topic in topics.items()
    }


@pytest.mark.java
@pytest.mark.slow
async def test_a_cluster_goes_from_kafka_to_strom_and_back():
    if reason := nodes.java_missing():
        pytest.skip(reason)
    kafka = nodes.KafkaProcess(nodes.new_directory("metadata"))
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    try:
        kafka.start()
        admin.create_topics([AskedTopic("from.kafka", 2)])["from.kafka"].result()
        kafka.stop()
        place = Place(RealDisk(), str(kafka.directory))
        async with place.node() as (quorum, controller, runtime):
            assert quorum.leader_epoch == 2
            assert controller.image.metadata_version == 30
            led = controller.image.partition("from.kafka", 1)
            assert (led.leader, led.isr) == (1, (1,))
            await create(runtime, controller, "from-strom", 2)
            end_offset, leader_epoch = quorum.high_watermark, quorum.leader_epoch
            image = controller.image._replace(end_offset=end_offset, leader_epoch=leader_epoch)
            await quorum.write_snapshot(image)
        kafka.start()
        expected = {"from.kafka": {1}, "from-strom": {1}}
        # A broker that was just let in may not have its partitions yet.
        until(lambda: leaders(admin), lambda told: told == expected)
    finally:
        kafka.remove()
