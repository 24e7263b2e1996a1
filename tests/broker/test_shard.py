"""Shards: decisions carried out over a log, and those who wait for them."""

import asyncio
import contextlib

import pytest

from strom.broker import shard as shards
from strom.broker.pending import answer_of
from strom.broker.shard import Shard
from strom.replicated.machine import Decision, Wait
from strom.wire.errors import ErrorCode, KafkaError
from tests.broker.coordinating import refusal
from tests.patience import PATIENCE_SECONDS, until_true


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

    def take_over(self, outcome):
        self.told.append(("outcome", outcome))
        return outcome == "known"

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


@contextlib.asynccontextmanager
async def sharding():
    """A shard and its log, whose clock stands."""
    log = Log()

    def time():
        return 1000

    async with asyncio.TaskGroup() as tasks:
        shard = Shard(Machine(log.told), log, time, time, tasks.create_task)
        async with asyncio.timeout(PATIENCE_SECONDS):
            yield shard, log
        shard.close()


async def test_what_is_committed_at_once_is_answered_at_once():
    async with sharding() as (shard, log):
        log.committed = 100
        reply = shard.run(decided, "a", "b", transaction=(7, 1), soft=(("g", "s"),))
        assert reply == "done"
        assert log.told == [
            ("append", "a", "b", (7, 1)),
            ("apply", "a", (7, 1)),
            ("apply", "b", (7, 1)),
            ("soft", "g", "s"),
        ]


async def test_what_was_worked_out_is_not_applied_again_unless_the_machine_declines():
    async with sharding() as (shard, log):
        log.committed = 100
        for outcome in ("known", "of another state"):
            shard.run(decided, "a", outcome=outcome)
        assert [each for each in log.told if each[0] != "append"] == [
            ("outcome", "known"),
            ("outcome", "of another state"),
            ("apply", "a", None),
        ]


async def test_nobody_is_told_what_could_still_be_undone():
    async with sharding() as (shard, log):
        async with asyncio.TaskGroup() as tasks:
            writer = tasks.create_task(shard.execute(decided, "a"))
            await asyncio.sleep(0)
            # It writes nothing, but it may have read what the first one wrote.
            reader = tasks.create_task(shard.execute(decided, reply="read"))
            await asyncio.sleep(0)
            before = writer.done(), reader.done()
            await log.commit()
        assert (before, writer.result(), reader.result()) == ((False, False), "done", "read")


async def test_what_cannot_be_written_changes_nothing():
    async with sharding() as (shard, log):
        log.failure = KafkaError(ErrorCode.NOT_COORDINATOR)
        with pytest.raises(KafkaError):
            shard.run(decided, "a", soft=(("g", "s"),), timers=((("t",), 1000),))
        for _ in range(5):
            await asyncio.sleep(0)
        assert log.told == []


async def test_who_waits_is_answered_by_a_later_decision():
    async with sharding() as (shard, log):
        log.committed = 100
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(shard.execute(decided, reply=Wait(("join", "m"))))
            again = tasks.create_task(shard.execute(decided, reply=Wait(("join", "m"))))
            await asyncio.sleep(0)
            before = waiting.done()
            shard.run(decided, answers=((("join", "m"), "joined"), (("join", "x"), "nobody")))
        assert (before, waiting.result(), again.result()) == (False, "joined", "joined")


async def test_who_completes_the_round_gets_its_answer_from_its_own_decision():
    async with sharding() as (shard, log):
        log.committed = 100
        answers = ((("join", "m"), "joined"),)
        assert (
            await shard.execute(decided, "a", reply=Wait(("join", "m")), answers=answers)
            == "joined"
        )


async def test_answers_wait_until_what_they_say_is_committed_even_if_who_decided_is_gone():
    async with sharding() as (shard, log):
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(shard.execute(decided, reply=Wait(("m",))))
            await asyncio.sleep(0)
            last = tasks.create_task(shard.execute(decided, "a", answers=((("m",), "joined"),)))
            await asyncio.sleep(0)
            last.cancel()
            await asyncio.sleep(0)
            before = waiting.done()
            await log.commit()
        assert (before, waiting.result()) == (False, "joined")


async def test_answers_that_were_not_committed_are_refusals():
    async with sharding() as (shard, log):
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(refusal(shard.execute(decided, reply=Wait(("m",)))))
            await asyncio.sleep(0)
            answers = ((("m",), "joined"),)
            last = tasks.create_task(refusal(shard.execute(decided, "a", answers=answers)))
            await asyncio.sleep(0)
            await log.commit(KafkaError(ErrorCode.NOT_COORDINATOR))
        assert waiting.result() == ErrorCode.NOT_COORDINATOR
        assert last.result() == ErrorCode.NOT_COORDINATOR


async def test_who_gave_up_waiting_is_forgotten():
    async with sharding() as (shard, _):
        async with asyncio.TaskGroup() as tasks:
            gone = tasks.create_task(shard.execute(decided, reply=Wait(("m",))))
            await asyncio.sleep(0)
            assert ("m",) in shard._waiting
            gone.cancel()
        assert dict(shard._waiting) == {}


async def test_who_waits_for_a_shard_that_ends_must_look_elsewhere():
    async with sharding() as (shard, _):
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(refusal(shard.execute(decided, reply=Wait(("m",)))))
            await asyncio.sleep(0)
            shard.close()
        assert waiting.result() == ErrorCode.NOT_COORDINATOR
        assert await refusal(shard.execute(decided)) == ErrorCode.NOT_COORDINATOR


async def test_timers_ask_the_machine_and_its_decision_is_carried_out():
    async with sharding() as (shard, log):
        log.committed = 100
        shard.machine.due = decided("b")
        shard.run(decided, timers=((("session", "m"), 1000),))
        await until_true(lambda: len(log.told) == 3)
        assert log.told == [
            ("timer", ("session", "m")),
            ("append", "b", None),
            ("apply", "b", None),
        ]


@pytest.mark.parametrize("failure", [KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS), ValueError()])
async def test_what_is_due_and_fails_costs_no_other_timer(failure, monkeypatch):
    """And it is tried again: a chore that failed once would never be done."""
    monkeypatch.setattr(shards, "RETRY_MS", 0)
    monkeypatch.setattr(shards, "FAULT_RETRY_MS", 0)
    async with sharding() as (shard, log):
        log.committed = 100
        shard.machine.due = failure
        shard.run(decided, timers=((("a",), 1000), (("b",), 1000)))
        await until_true(lambda: len(log.told) == 2)
        shard.machine.due = decided("x")
        await until_true(lambda: log.told.count(("apply", "x", None)) == 2)
        assert {told[1] for told in log.told if told[0] == "timer"} == {("a",), ("b",)}


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (KafkaError(ErrorCode.KAFKA_STORAGE_ERROR), ErrorCode.KAFKA_STORAGE_ERROR),
        (ValueError(), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
async def test_all_who_wait_for_what_is_due_are_refused_if_it_fails(failure, told, monkeypatch):
    """They ask again; it is tried again too."""
    monkeypatch.setattr(shards, "RETRY_MS", 0)
    monkeypatch.setattr(shards, "FAULT_RETRY_MS", 0)
    async with sharding() as (shard, log):
        log.committed = 100
        shard.machine.due = failure
        async with asyncio.TaskGroup() as tasks:
            waiting = [
                tasks.create_task(refusal(shard.execute(decided, reply=Wait(("turn", "g", name)))))
                for name in "ab"
            ]
            other = shard.carry_out(decided(reply=Wait(("turn", "h", "a"))))
            await asyncio.sleep(0)
            shard.run(decided, timers=((("turn", "g"), 1000),))
        shard.machine.due = decided("b", answers=((("turn", "h", "a"), "answer"),))
        answer = await answer_of(other)
        assert ([each.result() for each in waiting], answer) == ([told, told], "answer")


async def test_who_asks_while_an_answer_is_being_committed_waits_for_the_next_one():
    async with sharding() as (shard, log):
        first = shard.carry_out(decided(reply=Wait(("m",))))
        shard.run(decided, "a", answers=((("m",), "one"),)).close()
        second = shard.carry_out(decided(reply=Wait(("m",))))
        shard.run(decided, "b", answers=((("m",), "two"),)).close()
        await asyncio.sleep(0)
        await log.commit()
        assert (await answer_of(first), await answer_of(second)) == ("one", "two")


async def test_whose_answer_is_not_committed_when_a_shard_ends_must_look_elsewhere():
    async with sharding() as (shard, log):
        pending = shard.carry_out(decided(reply=Wait(("m",))))
        shard.run(decided, "a", answers=((("m",), "answer"),)).close()
        await asyncio.sleep(0)
        shard.close()
        told = await refusal(answer_of(pending))
        await log.commit()
        assert told is ErrorCode.NOT_COORDINATOR


async def test_what_is_decided_alone_is_told_once_it_is_committed_however_late(monkeypatch):
    monkeypatch.setattr(shards, "RETRY_MS", 0)
    async with sharding() as (shard, log):
        alone = []
        shard.on_alone = lambda _, reply: alone.append(reply)
        shard.decide_alone(decided, "a")
        await asyncio.sleep(0)
        log.failure = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        async with log.moved:
            log.moved.notify_all()
        await asyncio.sleep(0)
        assert alone == []
        await log.commit()
        await until_true(lambda: alone)
        assert alone == ["done"]
