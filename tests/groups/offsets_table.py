"""The machine of groups, as far as their offsets go, and groups to put into it."""

from uuid import UUID

import pytest

from strom.groups.classic.group import ClassicGroup, Member, Phase, Protocol
from strom.groups.committing import Commit, NewOffset, Query, Wanted
from strom.groups.machine import EXPIRE, GroupMachine
from strom.groups.owners import Author
from strom.groups.records import NO_TOPIC_ID
from strom.metadata.image import Image
from strom.metadata.settings.values import BrokerSettings
from strom.wire.errors import KafkaError

MINUTE_MS = 60_000
RETENTION_MS = 10_080 * MINUTE_MS
TOPIC_ID, OTHER_ID = UUID(int=7), UUID(int=8)
NOBODY = Author(version=9)


class Table:
    """A machine, and what is done to it when a decision is carried out."""

    def __init__(self, **settings):
        named = {name.replace("_", "."): str(value) for name, value in settings.items()}
        self.machine = GroupMachine(Image(), BrokerSettings(named))
        self.now_ms = 1_000_000
        self.timers = {}

    def carry_out(self, decision):
        for record in decision.records:
            self.machine.apply(record, decision.transaction)
        for key, value in decision.soft:
            self.machine.set_soft(key, value)
        for key, due_ms in decision.timers:
            self.timers[key] = due_ms
        return decision.reply

    def commit(self, group="g", author=NOBODY, transaction=None, retention_ms=-1, **offsets):
        """Commit offsets of partitions, each given as topic_partition=offset."""
        new = []
        for name, offset in offsets.items():
            topic, _, partition = name.rpartition("_")
            new.append(NewOffset(topic, int(partition), offset, topic_id=TOPIC_ID))
        asked = Commit(group, author, new, retention_ms, transaction)
        return self.carry_out(self.machine.commit_offsets(asked, self.now_ms))

    def offsets(self, group="g", *, stable=False, topic_id=NO_TOPIC_ID, **partitions):
        """What is told of a group: of all its offsets, or of some partitions of some topics."""
        topics = None
        if partitions:
            topics = [Wanted(name, topic_id, wanted) for name, wanted in partitions.items()]
        query = Query(group, topics, require_stable=stable)
        told = self.carry_out(self.machine.fetch_offsets(query))
        return {
            (topic, each.partition): each.value.offset if each.value is not None else each.code
            for topic, found in told
            for each in found
        }

    def delete(self, group, *places):
        return self.carry_out(self.machine.delete_offsets(group, places))

    def become(self, group):
        """Have this classic group."""
        self.machine.set_soft(group.id, group)

    def expire(self):
        """Do what is due until nothing more is due now."""
        key, rounds = (EXPIRE, ""), 0
        while key is not None:
            self.timers.clear()
            self.carry_out(self.machine.on_timer(key, self.now_ms))
            key = next((each for each, due in self.timers.items() if due <= self.now_ms), None)
            rounds += 1
        return rounds


def member(topics=(), member_id="m"):
    topics_bytes = b"".join(len(t).to_bytes(2) + t.encode() for t in topics)
    subscription = b"\0\0" + len(topics).to_bytes(4) + topics_bytes + b"\xff\xff\xff\xff"
    protocols = (Protocol("range", subscription),)
    return Member(member_id, None, "c", "/h", 10_000, 60_000, protocols)


def stable_group(topics=(), protocol_type="consumer", group_id="g"):
    return ClassicGroup(
        group_id,
        phase=Phase.STABLE,
        generation_id=4,
        protocol_type=protocol_type,
        protocol="range",
        members={"m": member(topics)},
    )


def empty_group(since_ms, protocol_type="consumer"):
    return ClassicGroup("g", phase=Phase.EMPTY, since_ms=since_ms, protocol_type=protocol_type)


def refusal(ask):
    with pytest.raises(KafkaError) as caught:
        ask()
    return caught.value.code
