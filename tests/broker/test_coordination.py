"""Coordinators: which partition coordinates what, and when an answer may be given.

Rows: OFS-01, GRP-06.
"""

import asyncio
from dataclasses import replace

import pytest

from strom.broker.coordination import java_hash
from strom.broker.coordinator_log import CoordinatorLog
from strom.groups import records
from strom.groups.committing import Commit, NewOffset
from strom.groups.owners import Author
from strom.groups.records import OffsetCommitValue
from strom.metadata.image import Image
from strom.records.batch import read_header
from strom.records.record import Producer
from strom.wire.errors import ErrorCode, KafkaError
from tests.broker.coordinating import (
    ELSEWHERE,
    HERE,
    TOPIC,
    World,
    code_of,
    commit,
    coordinating,
    load,
    offsets,
    refusal,
)
from tests.log.making import NOW, SMALL
from tests.patience import PATIENCE_SECONDS


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


async def test_a_commit_is_one_batch_and_answered_at_once():
    world = World()
    async with coordinating(world) as coordinators:
        shard = coordinators.shard_for("g")
        new = [NewOffset("t", each, each) for each in range(3)]
        codes = shard.run(shard.machine.commit_offsets, Commit("g", Author(), new), NOW)
        log = world.replicas[0].log
        ((header, _),) = log.read_batches(0)
        assert codes == [ErrorCode.NONE] * 3
        assert header.record_count == 3
        assert header.base_sequence == 0
        assert header.producer_id == -1


async def test_what_is_larger_than_a_batch_may_be_is_refused_and_changes_nothing():
    world = World(config=replace(SMALL, message_bytes_max=500))
    async with coordinating(world) as coordinators:
        shard = coordinators.shard_for("g")
        new = [NewOffset("t", each, each) for each in range(20)]
        asked = Commit("g", Author(), new)
        code = code_of(lambda: shard.run(shard.machine.commit_offsets, asked, NOW))
        assert code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert shard.machine.group_ids() == []
        assert world.replicas[0].log.end_offset == 0


async def test_shards_come_and_go_with_the_lead():
    world = World(2)

    world.replicas[1].resign()
    not_here = ErrorCode.NOT_COORDINATOR
    async with coordinating(world, (HERE, ELSEWHERE)) as coordinators:
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
        assert [*story, offsets(coordinators.led(0)), coordinators.led(0) is first] == [
        not_here, 1, not_here, not_here, {0: 5}, False,
    ]  # fmt: skip


async def test_a_new_epoch_of_the_same_leader_begins_a_new_shard():
    world = World()
    async with coordinating(world) as coordinators:
        first = coordinators.led(0)
        commit(first, 5)
        world.replicas[0].lead(1, (HERE,), world.replicas[0].log.end_offset)
        await coordinators.follow(world.image((HERE,)), world.settings)
        await load(coordinators)
        assert (first.is_closed, offsets(coordinators.led(0))) == (True, {0: 5})


async def test_while_followers_are_behind_the_answer_waits():
    world = World(offsets_commit_timeout_ms=PATIENCE_SECONDS * 1000)
    world.replicas[0].lead(1, (HERE, ELSEWHERE), 0)
    async with coordinating(world) as coordinators:
        shard = coordinators.led(0)
        coming = commit(shard, 5)
        async with asyncio.TaskGroup() as tasks:
            reply = tasks.create_task(coming)
            await asyncio.sleep(0)
            before = reply.done()
            world.replicas[0].progress.on_fetch(ELSEWHERE, 1)
            world.replicas[0].wake_all()
        assert (before, reply.result()) == (False, [ErrorCode.NONE])


async def test_when_followers_stay_behind_the_answer_is_a_refusal():
    world = World(offsets_commit_timeout_ms=50)
    world.replicas[0].lead(1, (HERE, ELSEWHERE), 0)
    async with coordinating(world) as coordinators:
        assert await refusal(commit(coordinators.led(0), 5)) == ErrorCode.COORDINATOR_NOT_AVAILABLE


async def test_without_enough_replicas_nothing_is_written():
    world = World()
    world.replicas[0].in_sync_min = 2
    async with coordinating(world) as coordinators:
        code = code_of(lambda: commit(coordinators.led(0), 5))
        assert (code, world.replicas[0].log.end_offset) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, 0)


async def test_where_every_append_is_synced_the_answer_waits_for_it():
    world = World()
    world.flushing.wanted = True
    async with coordinating(world) as coordinators:
        coming = commit(coordinators.led(0), 5)
        assert world.flushing.flushed == 0
        assert (await coming, world.flushing.flushed) == ([ErrorCode.NONE], 1)


async def test_what_cannot_be_synced_is_not_said_to_be_committed():
    world = World()
    world.flushing.wanted, world.flushing.works = True, False
    async with coordinating(world) as coordinators:
        with pytest.raises(KafkaError) as refused:
            await commit(coordinators.led(0), 5)
        assert refused.value.code == ErrorCode.NOT_COORDINATOR


async def test_the_offsets_of_a_transaction_are_written_as_the_producers():
    world = World()
    async with coordinating(world) as coordinators:
        shard = coordinators.led(0)
        commit(shard, 5, transaction=(7, 3))
        shard.end_transaction(Producer(7, 3), 4, committed=True, version=0)
        assert [
            (header.producer_id, header.producer_epoch, header.is_transactional, header.is_control)
            for header, _ in world.replicas[0].log.read_batches(0)
        ] == [(7, 3, True, False), (7, 3, True, True)]


async def test_without_the_topic_there_is_no_coordinator():
    world = World()
    async with coordinating(world) as coordinators:
        assert coordinators.leader_of("g", world.image((HERE, ELSEWHERE))) == ELSEWHERE
        await coordinators.follow(Image(), world.settings)
        assert not coordinators.has_topic
        assert coordinators.leader_of("g", Image()) is None
        assert code_of(lambda: coordinators.shard_for("g")) == ErrorCode.NOT_COORDINATOR


async def test_a_batch_is_dated_by_the_brokers_clock():
    world = World()
    async with coordinating(world) as coordinators:
        world.now_ms = NOW + 12
        commit(coordinators.led(0), 5)
        ((header, batch),) = world.replicas[0].log.read_batches(0)
        assert read_header(batch) == header
        assert header.base_timestamp == NOW + 12


async def test_offsets_are_kept_as_values():
    value = OffsetCommitValue(offset=5, commit_timestamp_ms=NOW)
    async with coordinating(World()) as coordinators:
        commit(coordinators.led(0), 5)
        assert coordinators.led(0).machine.offsets.by_group == {"g": {("t", 0): value}}


def test_the_log_of_a_shard_knows_its_name():
    world = World()
    assert (
        CoordinatorLog(world.replicas[0], records, world.flushing, codec=0, timeout_ms=1).name
        == f"{TOPIC}-0"
    )
