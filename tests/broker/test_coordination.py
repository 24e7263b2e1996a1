"""Shards: decisions carried out over a partition, those who wait, and loading from the log.

Rows: OFS-01, GRP-06.
"""

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from immutables import Map

from strom.broker import shard as shards
from strom.broker.coordination import Coordinators, Kind, Surroundings, java_hash
from strom.broker.coordinator_log import CoordinatorLog
from strom.broker.shard import Shard
from strom.groups import records
from strom.groups.committing import Commit, NewOffset, Query
from strom.groups.machine import GroupMachine
from strom.groups.offsets import tombstone
from strom.groups.owners import Author
from strom.groups.records import OffsetCommitKey, OffsetCommitValue
from strom.metadata.image import Image, Partition, Topic
from strom.metadata.settings.values import BrokerSettings
from strom.records.batch import read_header
from strom.records.compression import Codec
from strom.records.record import Producer
from strom.replicated.machine import Decision, KeyValue, Wait
from strom.replication import partition as replica
from strom.wire.errors import ErrorCode, KafkaError
from tests.effort import examples
from tests.log.making import NOW, SMALL, new_disk, open_log

TOPIC_ID = UUID(int=9)
TOPIC = "__consumer_offsets"
HERE, ELSEWHERE = 1, 2
PATIENCE_SECONDS = 60


# Which partition coordinates what.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("g", 103),
        ("hello", 99162322),
        ("ä", 228),
        ("日本", 835047),
        # Java hashes the two halves of what does not fit into sixteen bits.
        ("\U0001f600", 1772899),
        # The smallest number there is: it has no positive counterpart.
        ("polygenelubricants", 0),
        # Below zero, where the sign goes and no bit of the rest changes.
        ("abc-tx", 1424438321),
    ],
)
def test_keys_are_hashed_as_java_does(text, expected):
    assert java_hash(text) == expected


def test_groups_are_where_apache_kafka_has_them():
    """As seen in the log directories of Apache Kafka 4.3.1."""
    seen = {
        "g": 3,
        "old": 19,
        "old2": 39,
        "old3": 40,
        "txg": 49,
        "nogroup": 10,
        "": 0,
        "abc-tx": 21,
    }
    assert {group: java_hash(group) % 50 for group in seen} == seen


# A shard over a log whose commits are up to the test.


class Log:
    """A log that the test commits."""

    name = "test-0"

    def __init__(self):
        self.told = []
        self.end_offset = 0
        self.committed = 0
        self.failure = None
        self.moved = asyncio.Condition()

    def append(self, appended, now_ms, transaction=None):
        if self.failure is not None:
            raise self.failure
        self.told.append(("append", *appended, transaction))
        self.end_offset += len(appended)

    def is_committed(self, end_offset):
        return self.committed >= end_offset

    async def wait_committed(self, end_offset):
        async with self.moved:
            await self.moved.wait_for(lambda: self.committed >= end_offset or self.failure)
        if self.failure is not None:
            raise self.failure

    async def commit(self, failure=None):
        async with self.moved:
            self.committed, self.failure = self.end_offset, failure
            self.moved.notify_all()


class Machine:
    """A machine that notes what is done to it."""

    def __init__(self, told):
        self.told = told
        self.due = Decision((), None)

    def apply(self, record, transaction=None):
        self.told.append(("apply", record, transaction))

    def set_soft(self, key, value):
        self.told.append(("soft", key, value))

    def on_timer(self, key, now_ms):
        self.told.append(("timer", key))
        if isinstance(self.due, Exception):
            raise self.due
        return self.due

    def on_marker(self, producer_id, producer_epoch, *, committed):
        self.told.append(("marker", producer_id, producer_epoch, committed))

    def on_loaded(self, now_ms):
        return Decision((), None)


def decided(*written, reply="done", **more):
    return Decision(written, reply, **more)


def sharding(scenario):
    async def run():
        log, clock = Log(), SimpleNamespace(now_ms=1000)
        machine = Machine(log.told)
        async with asyncio.TaskGroup() as tasks:
            shard = Shard(machine, log, lambda: clock.now_ms, tasks.create_task)
            async with asyncio.timeout(PATIENCE_SECONDS):
                result = await scenario(shard, log, clock)
            shard.close()
        return result

    return asyncio.run(run())


def test_what_is_committed_at_once_is_answered_at_once():
    async def scenario(shard, log, clock):
        log.committed = 100
        reply = shard.run(decided, "a", "b", transaction=(7, 1), soft=(("g", "s"),))
        return reply, log.told

    assert sharding(scenario) == (
        "done",
        [
            ("append", "a", "b", (7, 1)),
            ("apply", "a", (7, 1)),
            ("apply", "b", (7, 1)),
            ("soft", "g", "s"),
        ],
    )


def test_nobody_is_told_what_could_still_be_undone():
    async def scenario(shard, log, clock):
        async with asyncio.TaskGroup() as tasks:
            writer = tasks.create_task(shard.execute(decided, "a"))
            await asyncio.sleep(0)
            # It writes nothing, but it may have read what the first one wrote.
            reader = tasks.create_task(shard.execute(decided, reply="read"))
            await asyncio.sleep(0)
            before = writer.done(), reader.done()
            await log.commit()
        return before, writer.result(), reader.result()

    assert sharding(scenario) == ((False, False), "done", "read")


def test_what_cannot_be_written_changes_nothing():
    async def scenario(shard, log, clock):
        log.failure = KafkaError(ErrorCode.NOT_COORDINATOR)
        with pytest.raises(KafkaError):
            shard.run(decided, "a", soft=(("g", "s"),), timers=((("t",), 1000),))
        for _ in range(5):
            await asyncio.sleep(0)
        return log.told

    assert sharding(scenario) == []


def test_who_waits_is_answered_by_a_later_decision():
    async def scenario(shard, log, clock):
        log.committed = 100
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(shard.execute(decided, reply=Wait(("join", "m"))))
            again = tasks.create_task(shard.execute(decided, reply=Wait(("join", "m"))))
            await asyncio.sleep(0)
            before = waiting.done()
            shard.run(decided, answers=((("join", "m"), "joined"), (("join", "x"), "nobody")))
        return before, waiting.result(), again.result()

    assert sharding(scenario) == (False, "joined", "joined")


def test_who_completes_the_round_gets_its_answer_from_its_own_decision():
    async def scenario(shard, log, clock):
        log.committed = 100
        answers = ((("join", "m"), "joined"),)
        return await shard.execute(decided, "a", reply=Wait(("join", "m")), answers=answers)

    assert sharding(scenario) == "joined"


def test_answers_wait_until_what_they_say_is_committed_even_if_who_decided_is_gone():
    async def scenario(shard, log, clock):
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(shard.execute(decided, reply=Wait("m")))
            await asyncio.sleep(0)
            last = tasks.create_task(shard.execute(decided, "a", answers=(("m", "joined"),)))
            await asyncio.sleep(0)
            last.cancel()
            await asyncio.sleep(0)
            before = waiting.done()
            await log.commit()
        return before, waiting.result()

    assert sharding(scenario) == (False, "joined")


async def refusal(work):
    """The code that the work ends with."""
    try:
        return await work
    except KafkaError as error:
        return error.code


def test_answers_that_were_not_committed_are_refusals():
    async def scenario(shard, log, clock):
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(refusal(shard.execute(decided, reply=Wait("m"))))
            await asyncio.sleep(0)
            answers = (("m", "joined"),)
            last = tasks.create_task(refusal(shard.execute(decided, "a", answers=answers)))
            await asyncio.sleep(0)
            await log.commit(KafkaError(ErrorCode.NOT_COORDINATOR))
        return waiting.result(), last.result()

    assert sharding(scenario) == (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR)


def test_who_gave_up_waiting_is_forgotten():
    async def scenario(shard, log, clock):
        async with asyncio.TaskGroup() as tasks:
            gone = tasks.create_task(shard.execute(decided, reply=Wait("m")))
            await asyncio.sleep(0)
            assert "m" in shard._waiting
            gone.cancel()
        return dict(shard._waiting)

    assert sharding(scenario) == {}


def test_who_waits_for_a_shard_that_ends_must_look_elsewhere():
    async def scenario(shard, log, clock):
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(refusal(shard.execute(decided, reply=Wait("m"))))
            await asyncio.sleep(0)
            shard.close()
        return waiting.result(), await refusal(shard.execute(decided))

    assert sharding(scenario) == (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR)


async def until(condition):
    """Let the loop come round until it holds."""
    for _ in range(10_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to hold")


def test_timers_ask_the_machine_and_its_decision_is_carried_out():
    async def scenario(shard, log, clock):
        log.committed = 100
        shard.machine.due = decided("b")
        shard.run(decided, timers=((("session", "m"), 1000),))
        await until(lambda: len(log.told) == 3)
        return log.told

    assert sharding(scenario) == [
        ("timer", ("session", "m")),
        ("append", "b", None),
        ("apply", "b", None),
    ]


@pytest.mark.parametrize("failure", [KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS), ValueError()])
def test_what_is_due_and_fails_costs_no_other_timer(failure, monkeypatch):
    """And what only could not be written is tried again."""
    monkeypatch.setattr(shards, "RETRY_MS", 0)

    async def scenario(shard, log, clock):
        log.committed = 100
        shard.machine.due = failure
        shard.run(decided, timers=((("a",), 1000), (("b",), 1000)))
        await until(lambda: len(log.told) == 2)
        shard.machine.due = decided("x")
        if isinstance(failure, KafkaError):
            await until(lambda: log.told.count(("apply", "x", None)) == 2)
        return {told[1] for told in log.told if told[0] == "timer"}

    assert sharding(scenario) == {("a",), ("b",)}


# Over a partition.


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
        host = SimpleNamespace(now_ms=lambda: self.now_ms, offload=self.offload)
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


def coordinating(scenario, world=None, leaders=(HERE,)):
    """Play a scenario with coordinators that follow an image with these leaders."""
    world = world or World(len(leaders))

    async def run():
        async with asyncio.TaskGroup() as tasks:
            coordinators = world.coordinators(tasks.create_task)
            await coordinators.follow(world.image(leaders), world.settings)
            async with asyncio.timeout(PATIENCE_SECONDS):
                result = await scenario(coordinators, world)
            coordinators.close()
        return result

    return asyncio.run(run())


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
    await until(lambda: not coordinators.is_loading)
    return coordinators.shard_for(key)


def code_of(ask):
    with pytest.raises(KafkaError) as caught:
        ask()
    return caught.value.code


def test_a_commit_is_one_batch_and_answered_at_once():
    async def scenario(coordinators, world):
        shard = coordinators.shard_for("g")
        new = [NewOffset("t", each, each) for each in range(3)]
        codes = shard.run(shard.machine.commit_offsets, Commit("g", Author(), new), NOW)
        log = world.replicas[0].log
        ((header, _),) = log.read_batches(0)
        return codes, header.record_count, header.base_sequence, header.producer_id

    assert coordinating(scenario) == ([ErrorCode.NONE] * 3, 3, 0, -1)


def test_a_new_coordinator_has_what_the_one_before_had():
    world = World()

    async def write(coordinators, world):
        shard = coordinators.shard_for("g")
        for offset in range(200):
            commit(shard, offset, partition=offset % 3)
        commit(shard, 1, "gone")
        shard.run(shard.machine.delete_offsets, "gone", [("t", 0)])
        commit(shard, 500, "done", transaction=(5, 0))
        commit(shard, 600, "undone", transaction=(6, 0))
        commit(shard, 700, "open", transaction=(7, 0))
        producer = Producer(5, 0)
        assert shard.end_transaction(producer, 1, committed=True, version=0) is None
        shard.end_transaction(Producer(6, 0), 1, committed=False, version=0)
        return shard.machine.offsets

    async def read(coordinators, world):
        world.offloaded = 0
        assert code_of(lambda: coordinators.shard_for("g")) is (
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        )
        shard = await load(coordinators)
        assert offsets(shard) == {0: 198, 1: 199, 2: 197}
        assert offsets(shard, "done") == {0: 500}
        assert offsets(shard, "undone") == offsets(shard, "gone") == {}
        before = shard.machine.offsets.is_unstable("open", ("t", 0))
        shard.end_transaction(Producer(7, 0), 1, committed=True, version=0)
        return shard.machine.offsets, before, offsets(shard, "open")

    before = coordinating(write, world)
    after, was_unstable, opened = coordinating(read, world)
    assert len(world.replicas[0].log.segments) > 3
    assert was_unstable
    assert opened == {0: 700}
    assert {**before.by_group, "open": after.by_group["open"]} == after.by_group


@pytest.mark.parametrize("buffer_size", [1, 300, 5_000_000])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.ZSTD])
def test_the_log_is_read_in_slices_off_the_loop(buffer_size, codec):
    settings = {
        "offsets_load_buffer_size": buffer_size,
        "offsets_topic_compression_codec": int(codec),
    }
    world = World(**settings)

    async def write(coordinators, world):
        for offset in range(50):
            commit(coordinators.shard_for("g"), offset)
        ((header, _), *_) = world.replicas[0].log.read_batches(0)
        assert header.codec == codec

    async def read(coordinators, world):
        world.offloaded = 0
        shard = await load(coordinators)
        assert (world.offloaded >= 50) == (buffer_size == 1)
        return offsets(shard)

    coordinating(write, world)
    assert coordinating(read, world) == {0: 49}


def test_a_log_that_begins_late_and_has_gaps_is_read():
    """As after compaction, and with records that nobody here knows."""
    world = World()

    async def write(coordinators, world):
        shard = coordinators.shard_for("g")
        for offset in range(100):
            commit(shard, offset)
        # A type of record that share groups use, and one without a key.
        unknown = Raw(b"\0\x0b\0\x01g", b"\0\0x")
        shard.log._form = unknown
        shard.log.append([KeyValue("k", "v")], NOW)
        shard.log._form = records
        commit(shard, 1000, partition=1)
        world.replicas[0].log.raise_start_offset(50)

    async def read(coordinators, world):
        return offsets(await load(coordinators))

    coordinating(write, world)
    assert coordinating(read, world) == {0: 99, 1: 1000}


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["set", "set", "delete", "pending", "end"]), st.integers(0, 2)),
        max_size=30,
    ),
    buffer_size=st.sampled_from([1, 300, 5_000_000]),
)
@settings(deadline=None, max_examples=examples(60))
def test_what_is_loaded_is_what_was_written_though_older_values_are_passed_over(steps, buffer_size):
    """OFS-01: values, deletions and transactions in any order."""
    world = World(offsets_load_buffer_size=buffer_size)

    async def write(coordinators, world):
        shard = coordinators.shard_for("g")
        for offset, (step, number) in enumerate(steps):
            match step:
                case "set":
                    commit(shard, offset, partition=number)
                case "pending":
                    commit(shard, offset, partition=number, transaction=(number, 0))
                case "delete":
                    shard.log.append([tombstone("g", "t", number)], NOW)
                    shard.machine.apply(tombstone("g", "t", number))
                case "end":
                    committed = bool(offset % 2)
                    shard.end_transaction(Producer(number, 0), 1, committed=committed, version=0)
        return durable(shard.machine.offsets)

    async def read(coordinators, world):
        return durable((await load(coordinators)).machine.offsets)

    assert coordinating(write, world) == coordinating(read, world)


def durable(offsets):
    pending = {
        (producer, spot): each.value
        for producer, found in offsets.by_producer.items()
        for spot, each in found.items()
    }
    return offsets.by_group, pending, offsets.open


class Raw:
    """Writes the same bytes whatever it is given."""

    def __init__(self, key, value):
        self.key, self.value = key, value

    def write_key(self, key):
        return self.key

    def write_value(self, value):
        return self.value


def test_who_cannot_read_its_log_does_not_coordinate():
    """And is waited for by nobody: who lists all groups lists those of the other shards."""
    world = World(2)
    groups = {java_hash(each) % 2: each for each in ("g", "h")}

    async def write(coordinators, world):
        for group in groups.values():
            commit(coordinators.shard_for(group), 5, group)
        key = records.write_key(OffsetCommitKey("g", "t", 0))
        damaged = coordinators.led(0)
        damaged.log._form = Raw(key, b"\0\x63")
        damaged.log.append([KeyValue("k", "v")], NOW)

    async def read(coordinators, world):
        assert coordinators.is_loading
        await until(lambda: not coordinators.is_loading)
        code = code_of(lambda: coordinators.shard_for(groups[0]))
        return code, [offsets(each, groups[1]) for each in coordinators.shards()]

    coordinating(write, world, leaders=(HERE, HERE))
    found = coordinating(read, world, leaders=(HERE, HERE))
    assert found == (ErrorCode.NOT_COORDINATOR, [{0: 5}])


def test_offsets_of_a_topic_that_was_deleted_before_the_start_are_cleaned_up():
    """TOP-06: the broker may have been killed before it came to it."""
    world = World()

    async def write(coordinators, world):
        commit(coordinators.shard_for("g"), 5)

    async def read(coordinators, world):
        shard = await load(coordinators)
        await until(lambda: not offsets(shard))
        return shard.log.end_offset

    coordinating(write, world)
    world.topics = []
    assert coordinating(read, world) == 2


def test_what_is_larger_than_a_batch_may_be_is_refused_and_changes_nothing():
    world = World(config=replace(SMALL, message_bytes_max=500))

    async def scenario(coordinators, world):
        shard = coordinators.shard_for("g")
        new = [NewOffset("t", each, each) for each in range(20)]
        asked = Commit("g", Author(), new)
        code = code_of(lambda: shard.run(shard.machine.commit_offsets, asked, NOW))
        return code, shard.machine.group_ids(), world.replicas[0].log.end_offset

    assert coordinating(scenario, world) == (ErrorCode.UNKNOWN_SERVER_ERROR, [], 0)


def test_shards_come_and_go_with_the_lead():
    world = World(2)

    async def scenario(coordinators, world):
        first = coordinators.led(0)
        commit(first, 5)
        story = [code_of(lambda: coordinators.led(1)), len(coordinators.shards())]
        # The other broker takes over the first, and this one the second.
        world.replicas[0].resign()
        world.replicas[1].lead(1, (HERE,), 0)
        await coordinators.follow(world.image((ELSEWHERE, HERE)), world.settings)
        story += [code_of(lambda: coordinators.led(0)), code_of(lambda: commit(first, 6))]
        second = coordinators.led(1)
        commit(second, 7, "h")
        # And back: the log is what counts.
        world.replicas[0].lead(2, (HERE,), world.replicas[0].log.end_offset)
        await coordinators.follow(world.image((HERE, HERE)), world.settings)
        assert coordinators.led(1) is second
        await load(coordinators)
        return [*story, offsets(coordinators.led(0)), coordinators.led(0) is first]

    world.replicas[1].resign()
    not_here = ErrorCode.NOT_COORDINATOR
    assert coordinating(scenario, world, (HERE, ELSEWHERE)) == [
        not_here, 1, not_here, not_here, {0: 5}, False,
    ]  # fmt: skip


def test_a_new_epoch_of_the_same_leader_begins_a_new_shard():
    world = World()

    async def scenario(coordinators, world):
        first = coordinators.led(0)
        commit(first, 5)
        world.replicas[0].lead(1, (HERE,), world.replicas[0].log.end_offset)
        await coordinators.follow(world.image((HERE,)), world.settings)
        await load(coordinators)
        return first.is_closed, offsets(coordinators.led(0))

    assert coordinating(scenario, world) == (True, {0: 5})


def test_while_followers_are_behind_the_answer_waits():
    world = World(offsets_commit_timeout_ms=PATIENCE_SECONDS * 1000)
    world.replicas[0].lead(1, (HERE, ELSEWHERE), 0)

    async def scenario(coordinators, world):
        shard = coordinators.led(0)
        coming = commit(shard, 5)
        async with asyncio.TaskGroup() as tasks:
            reply = tasks.create_task(coming)
            await asyncio.sleep(0)
            before = reply.done()
            world.replicas[0].progress.on_fetch(ELSEWHERE, 1)
            world.replicas[0].wake_all()
        return before, reply.result()

    assert coordinating(scenario, world) == (False, [ErrorCode.NONE])


def test_when_followers_stay_behind_the_answer_is_a_refusal():
    world = World(offsets_commit_timeout_ms=50)
    world.replicas[0].lead(1, (HERE, ELSEWHERE), 0)

    async def scenario(coordinators, world):
        return await refusal(commit(coordinators.led(0), 5))

    assert coordinating(scenario, world) == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_without_enough_replicas_nothing_is_written():
    world = World()
    world.replicas[0].in_sync_min = 2

    async def scenario(coordinators, world):
        code = code_of(lambda: commit(coordinators.led(0), 5))
        return code, world.replicas[0].log.end_offset

    assert coordinating(scenario, world) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, 0)


def test_where_every_append_is_synced_the_answer_waits_for_it():
    world = World()
    world.flushing.wanted = True

    async def scenario(coordinators, world):
        coming = commit(coordinators.led(0), 5)
        assert world.flushing.flushed == 0
        return await coming, world.flushing.flushed

    assert coordinating(scenario, world) == ([ErrorCode.NONE], 1)


def test_what_cannot_be_synced_is_not_said_to_be_committed():
    world = World()
    world.flushing.wanted, world.flushing.works = True, False

    async def scenario(coordinators, world):
        with pytest.raises(KafkaError) as refused:
            await commit(coordinators.led(0), 5)
        return refused.value.code

    assert coordinating(scenario, world) == ErrorCode.NOT_COORDINATOR


def test_the_offsets_of_a_transaction_are_written_as_the_producers():
    async def scenario(coordinators, world):
        shard = coordinators.led(0)
        commit(shard, 5, transaction=(7, 3))
        shard.end_transaction(Producer(7, 3), 4, committed=True, version=0)
        return [
            (header.producer_id, header.producer_epoch, header.is_transactional, header.is_control)
            for header, _ in world.replicas[0].log.read_batches(0)
        ]

    assert coordinating(scenario) == [(7, 3, True, False), (7, 3, True, True)]


def test_without_the_topic_there_is_no_coordinator():
    async def scenario(coordinators, world):
        assert coordinators.leader_of("g", world.image((HERE, ELSEWHERE))) == ELSEWHERE
        await coordinators.follow(Image(), world.settings)
        return (
            coordinators.has_topic,
            coordinators.leader_of("g", Image()),
            code_of(lambda: coordinators.shard_for("g")),
        )

    assert coordinating(scenario) == (False, None, ErrorCode.NOT_COORDINATOR)


def test_a_batch_is_dated_by_the_brokers_clock():
    async def scenario(coordinators, world):
        world.now_ms = NOW + 12
        commit(coordinators.led(0), 5)
        ((header, batch),) = world.replicas[0].log.read_batches(0)
        assert read_header(batch) == header
        return header.base_timestamp

    assert coordinating(scenario) == NOW + 12


def test_offsets_are_kept_as_values():
    async def scenario(coordinators, world):
        commit(coordinators.led(0), 5)
        return coordinators.led(0).machine.offsets.by_group

    value = OffsetCommitValue(5, commit_timestamp_ms=NOW)
    assert coordinating(scenario) == {"g": {("t", 0): value}}


def test_the_log_of_a_shard_knows_its_name():
    world = World()
    assert (
        CoordinatorLog(world.replicas[0], records, world.flushing, codec=0, timeout_ms=1).name
        == f"{TOPIC}-0"
    )
