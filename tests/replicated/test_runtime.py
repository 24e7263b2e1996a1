"""The runtime: decide, append, apply, wait, answer, in this order."""

import asyncio

import pytest

from strom.replicated.machine import Decision
from strom.replicated.runtime import Runtime
from strom.wire.errors import ErrorCode, KafkaError


class Story:
    """A machine and a log that note what is done to them; committing is up to the test."""

    def __init__(self):
        self.told = []
        self.end_offset = 0
        self.committed = 0
        self.moved = asyncio.Condition()

    def append(self, records):
        self.told.append(("append", *records))
        self.end_offset += len(records)

    def apply(self, record):
        self.told.append(("apply", record))

    async def wait_committed(self, end_offset):
        async with self.moved:
            await self.moved.wait_for(lambda: self.committed >= end_offset)
        self.told.append(("committed", end_offset))

    async def commit(self, end_offset):
        async with self.moved:
            self.committed = end_offset
            self.moved.notify_all()

    def decide(self, *records, reply="done"):
        self.told.append(("decide",))
        return Decision(records, reply)


async def test_records_are_in_the_log_before_they_are_state_and_committed_before_they_are_told():
    story = Story()
    runtime = Runtime(story, story)
    async with asyncio.TaskGroup() as group:
        reply = group.create_task(runtime.execute(story.decide, "a", "b", reply="made"))
        await asyncio.sleep(0)
        assert not reply.done()
        await story.commit(2)
    assert reply.result() == "made"
    assert story.told == [
        ("decide",),
        ("append", "a", "b"),
        ("apply", "a"),
        ("apply", "b"),
        ("committed", 2),
    ]


async def test_the_next_decision_sees_the_effect_of_one_that_is_not_committed():
    story = Story()
    runtime = Runtime(story, story)
    async with asyncio.TaskGroup() as group:
        group.create_task(runtime.execute(story.decide, "a"))
        # It wrote nothing, but it may have read what the first one did.
        later = group.create_task(runtime.execute(story.decide))
        await asyncio.sleep(0)
        assert story.told == [("decide",), ("append", "a"), ("apply", "a"), ("decide",)]
        assert not later.done()
        await story.commit(1)


async def test_a_refusal_writes_nothing():
    story = Story()

    def refuse():
        raise KafkaError(ErrorCode.INVALID_REQUEST)

    with pytest.raises(KafkaError):
        await Runtime(story, story).execute(refuse)
    assert story.told == []


async def test_what_cannot_be_written_is_not_state():
    class Deposed(Story):
        def append(self, records):
            raise KafkaError(ErrorCode.NOT_CONTROLLER)

    story = Deposed()
    with pytest.raises(KafkaError):
        await Runtime(story, story).execute(story.decide, "a")
    assert story.told == [("decide",)]
