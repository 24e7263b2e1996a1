"""Consumers of the classic protocol, alone and in groups, as a consumer group meets them."""

from strom.groups.classic.group import ClassicGroup, Phase
from strom.groups.consumer.embedded import (
    Subscription,
    TopicPartition,
    read_assignment,
    write_assignment,
)
from strom.wire.errors import ErrorCode
from strom.wire.messages import write_message
from strom.wire.primitives import INT16
from tests.groups.consumer_table import topic_id


def wants(*topics, owned=None, version=3, rack=None):
    """Return a subscription as a classic consumer writes it."""
    held = tuple(
        TopicPartition(topic=name, partitions=tuple(each)) for name, each in (owned or {}).items()
    )
    body = Subscription(topics=topics, user_data=None, owned_partitions=held, rack_id=rack)
    return INT16.pack(version) + write_message(body, version)


def told(data):
    """Return the assignment that a classic consumer is told."""
    return {each.topic: list(each.partitions) for each in read_assignment(data).assigned_partitions}


class Classic:
    """A consumer of the classic protocol that gives up only what it must."""

    def __init__(self, table, member_id, *topics, instance_id=None):
        self.table = table
        self.id = member_id
        self.topics = topics
        self.instance_id = instance_id
        self.generation_id = -1
        self.holds = {}

    def join(self):
        metadata = wants(*self.topics, owned=self.holds)
        return self.table.classic_join(self.id, metadata, instance_id=self.instance_id)

    def take_part(self):
        """Join and sync, as long as it is asked to."""
        for _ in range(5):
            joined = self.join()
            assert joined.error is ErrorCode.NONE
            self.id, self.generation_id = joined.member_id, joined.generation_id
            synced = self.table.classic_sync(
                self.id, self.generation_id, instance_id=self.instance_id
            )
            if synced.error is ErrorCode.NONE:
                self.holds = told(synced.assignment)
                return
            assert synced.error is ErrorCode.REBALANCE_IN_PROGRESS
        raise AssertionError("it is told to join again for ever")

    def beat(self):
        answer = self.table.classic_beat(self.id, self.generation_id, self.instance_id)
        if answer is ErrorCode.REBALANCE_IN_PROGRESS:
            self.take_part()
        else:
            assert answer is ErrorCode.NONE


def classic_group(table, *names, topics=("t",), assignments=None):
    """Make a classic group of these members, at rest."""
    for name in names:
        table.classic_join("", wants(*topics), must_return=False, new_member_id=name)
    table.advance(100)
    while isinstance(table.group, ClassicGroup) and table.group.phase is not Phase.COMPLETING:
        for name in names:
            if name not in table.group.joining:
                table.classic_join(name, wants(*topics))
        table.advance(100)
    shared = assignments or {
        name: write_assignment({topic_id("t"): {index}}, 1, table.image)
        for index, name in enumerate(names)
    }
    for name in (table.group.leader, *names):
        table.classic_sync(name, table.group.generation_id, assignments=shared)
    assert table.group.phase is Phase.STABLE
    members = []
    for name in names:
        member = Classic(table, name, *topics)
        member.generation_id = table.group.generation_id
        member.holds = told(table.group.members[name].assignment)
        members.append(member)
    return members
