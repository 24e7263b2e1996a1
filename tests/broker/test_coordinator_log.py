"""What a coordinator knows when it begins: its log is read, whatever is in it (OFS-01)."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from strom.broker.coordination import java_hash
from strom.groups import records
from strom.groups.committing import Commit, NewOffset
from strom.groups.offsets import tombstone
from strom.groups.owners import Author
from strom.groups.records import OffsetCommitKey
from strom.records.compression import Codec
from strom.records.record import Producer
from strom.replicated.machine import KeyValue
from strom.wire.errors import ErrorCode
from tests.broker.coordinating import HERE, World, code_of, commit, coordinating, load, offsets
from tests.effort import examples
from tests.log.making import NOW, SMALL
from tests.patience import until_true


async def test_a_new_coordinator_has_what_the_one_before_had():
    world = World()
    async with coordinating(world) as coordinators:
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
        before = shard.machine.offsets
    async with coordinating(world) as coordinators:
        world.offloaded = 0
        assert code_of(lambda: coordinators.shard_for("g")) is (
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        )
        shard = await load(coordinators)
        assert offsets(shard) == {0: 198, 1: 199, 2: 197}
        assert offsets(shard, "done") == {0: 500}
        assert offsets(shard, "undone") == offsets(shard, "gone") == {}
        assert shard.machine.offsets.is_unstable("open", ("t", 0))
        shard.end_transaction(Producer(7, 0), 1, committed=True, version=0)
        assert offsets(shard, "open") == {0: 700}
        after = shard.machine.offsets
    assert len(world.replicas[0].log.segments) > 3
    assert {**before.by_group, "open": after.by_group["open"]} == after.by_group


@pytest.mark.parametrize("buffer_size", [1, 300, 5_000_000])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.ZSTD])
async def test_the_log_is_read_in_slices_off_the_loop(buffer_size, codec):
    settings = {
        "offsets_load_buffer_size": buffer_size,
        "offsets_topic_compression_codec": int(codec),
    }
    world = World(**settings)
    async with coordinating(world) as coordinators:
        for offset in range(50):
            commit(coordinators.shard_for("g"), offset)
        ((header, _), *_) = world.replicas[0].log.read_batches(0)
        assert header.codec == codec
    async with coordinating(world) as coordinators:
        world.offloaded = 0
        shard = await load(coordinators)
        assert (world.offloaded >= 50) == (buffer_size == 1)
        assert offsets(shard) == {0: 49}


async def test_a_log_that_begins_late_and_has_gaps_is_read():
    """As after compaction, and with records that nobody here knows."""
    world = World()
    async with coordinating(world) as coordinators:
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
    async with coordinating(world) as coordinators:
        assert offsets(await load(coordinators)) == {0: 99, 1: 1000}


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["set", "set", "delete", "pending", "end"]), st.integers(0, 2)),
        max_size=30,
    ),
    buffer_size=st.sampled_from([1, 300, 5_000_000]),
)
# What a transaction commits replaces what was there before, and is replaced by what comes later.
@example(steps=[("set", 0), ("pending", 0), ("set", 1), ("end", 0)], buffer_size=5_000_000)
@example(steps=[("set", 1), ("pending", 0), ("set", 0), ("end", 0)], buffer_size=5_000_000)
@settings(deadline=None, max_examples=examples(60))
def test_what_is_loaded_is_what_was_written_though_older_values_are_passed_over(steps, buffer_size):
    """OFS-01: values, deletions and transactions in any order."""
    world = World(offsets_load_buffer_size=buffer_size)

    async def play():
        async with coordinating(world) as coordinators:
            shard = coordinators.shard_for("g")
            write(shard, steps)
            written = durable(shard.machine.offsets)
        async with coordinating(world) as coordinators:
            assert durable((await load(coordinators)).machine.offsets) == written

    asyncio.run(play())


def write(shard, steps):
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

    def room_for_later(self, records):
        return 0


async def test_who_cannot_read_its_log_does_not_coordinate():
    """And is waited for by nobody: who lists all groups lists those of the other shards."""
    world = World(2)
    groups = {java_hash(each) % 2: each for each in ("g", "h")}
    async with coordinating(world, leaders=(HERE, HERE)) as coordinators:
        for group in groups.values():
            commit(coordinators.shard_for(group), 5, group)
        key = records.write_key(OffsetCommitKey(group="g", topic="t", partition=0))
        damaged = coordinators.led(0)
        damaged.log._form = Raw(key, b"\0\x63")
        damaged.log.append([KeyValue("k", "v")], NOW)
    async with coordinating(world, leaders=(HERE, HERE)) as coordinators:
        assert coordinators.is_loading
        await until_true(lambda: not coordinators.is_loading)
        code = code_of(lambda: coordinators.shard_for(groups[0]))
        assert code is ErrorCode.NOT_COORDINATOR
        assert [offsets(each, groups[1]) for each in coordinators.shards()] == [{0: 5}]


async def test_offsets_of_a_topic_that_was_deleted_before_the_start_are_cleaned_up():
    """TOP-06: the broker may have been killed before it came to it."""
    world = World()
    async with coordinating(world) as coordinators:
        commit(coordinators.shard_for("g"), 5)
    world.topics = []
    async with coordinating(world) as coordinators:
        shard = await load(coordinators)
        await until_true(lambda: not offsets(shard))
        assert shard.log.end_offset == 2


async def test_what_is_deleted_goes_in_as_many_batches_as_it_takes():
    """Otherwise it would be tried again for ever, and nothing else would expire meanwhile."""
    world = World(config=replace(SMALL, message_bytes_max=1000))
    async with coordinating(world) as coordinators:
        shard = coordinators.shard_for("g")
        for partition in range(100):
            commit(shard, 1, partition=partition)
        shard.run(shard.machine.delete_offsets, "g", [("t", each) for each in range(100)])
        assert offsets(shard) == {}
    async with coordinating(world) as coordinators:
        assert offsets(await load(coordinators)) == {}


async def test_what_is_one_fact_is_never_split():
    world = World(config=replace(SMALL, message_bytes_max=1000))
    async with coordinating(world) as coordinators:
        shard = coordinators.shard_for("g")
        new = [NewOffset("t", partition, 1) for partition in range(100)]
        asked = Commit("g", Author(), new)
        code = code_of(lambda: shard.run(shard.machine.commit_offsets, asked, NOW))
        assert (code, shard.log.end_offset) == (ErrorCode.UNKNOWN_SERVER_ERROR, 0)
