"""Real clients in consumer groups (KIP-848): they come, go, crash and come back; the broker shares.

Rows: GRP-01 to GRP-05, GRP-11, GRP-16, GRP-18, OFS-02.
"""

import itertools
import signal
from collections import Counter

import pytest
from confluent_kafka.admin import NewPartitions

from tests import nodes
from tests.conformance.members import (
    ConfluentReader,
    Killed,
    NewReader,
    World,
    all_of,
    read_by,
    until,
    until_shared,
)
from tests.conformance.raw import Raw

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

SETTINGS = {
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.heartbeat.interval.ms": 200,
    "group.consumer.min.session.timeout.ms": 500,
    # Long, so that a machine that stalls puts nobody out.
    "group.consumer.session.timeout.ms": 30_000,
    "group.consumer.assignment.interval.ms": 100,
    "group.initial.rebalance.delay.ms": 200,
    "group.min.session.timeout.ms": 500,
    "offsets.topic.replication.factor": 1,
}
MANY = 100
#: The session of the one group that a member dies in.
SHORT_SESSION_MS = 3000
GROUP_RESOURCE = 32


@pytest.fixture
def world(broker, name):
    made = NewWorld(broker.bootstrap, name)
    yield made
    made.close()


class NewWorld(World):
    """Topics and a group of one test, as the consumer protocol tells of it."""

    def __init__(self, bootstrap, name):
        super().__init__(bootstrap, name)
        self.numbers = itertools.count()

    def send(self, topic, partitions, count=40):
        """Send values that nobody sent before, round the partitions; which."""
        sent = [f"v{next(self.numbers)}" for _ in range(count)]
        super().send(topic, partitions, sent)
        return sent

    def reader(self, kind=NewReader, *topics, **options):
        return super().reader(kind, *topics, **options)

    def describe(self):
        """What the broker tells of the group."""
        with Raw(self.bootstrap) as raw:
            asked = {"group_ids": [self.name]}
            (told,) = raw.ask("consumer_group_describe", 1, asked)["groups"]
            return told

    def kind(self):
        """Which kind of group it is now."""
        with Raw(self.bootstrap) as raw:
            found = raw.ask("list_groups", 5, {})["groups"]
        (kind,) = {each["group_type"] for each in found if each["group_id"] == self.name}
        return kind.lower()

    def shorten_session(self):
        """Have the group miss a member soon."""
        value = str(SHORT_SESSION_MS)
        config = {"name": "consumer.session.timeout.ms", "config_operation": 0, "value": value}
        what = {"resource_type": GROUP_RESOURCE, "resource_name": self.name, "configs": [config]}
        with Raw(self.bootstrap) as raw:
            (told,) = raw.ask("incremental_alter_configs", 1, {"resources": [what]})["responses"]
        assert told["error_code"] == "none", told

    def until_stable(self):
        until(lambda: self.describe()["group_state"] == "Stable", *self.readers)


def until_read(sent, *readers):
    until(lambda: set(read_by(*readers)) >= set(sent), *readers)


def test_members_share_the_partitions(world):
    """GRP-01, GRP-03, GRP-04."""
    topic = world.topic(2)
    three = [world.reader() for _ in range(3)]
    until(lambda: sorted(len(each.has) for each in three) == [0, 1, 1], *three)
    until_shared(three, all_of(topic, 2))
    world.until_stable()
    sent = world.send(topic, 2, 200)
    until_read(sent, *three)
    assert read_by(*three) == Counter(sent)


def test_a_group_grows_and_shrinks_and_nobody_is_stopped(world):
    """GRP-05: who keeps its partitions is not told of anything."""
    topic = world.topic(4)
    readers = [world.reader()]
    until_shared(readers, all_of(topic, 4))
    sent = world.send(topic, 4)
    until_read(sent, *readers)
    for _ in range(2):
        readers.append(world.reader())
        until_shared(readers, all_of(topic, 4))
        until(lambda: all(each.has for each in readers), *readers)
        world.until_stable()
    first = readers[0]
    # Nothing was taken only to come back.
    until(lambda: sum(map(len, first.taken)) == 4 - len(first.has), *readers)
    sent += world.send(topic, 4)
    until_read(sent, *readers)
    readers[0].end()
    until_shared(readers[1:], all_of(topic, 4))
    readers[1].end()
    until_shared(readers[2:], all_of(topic, 4))
    sent += world.send(topic, 4)
    until_read(sent, *readers)
    assert read_by(*readers) == Counter(sent), "nothing is left out, nothing is read twice"


def test_a_member_that_dies_without_a_word_is_replaced(world):
    """GRP-05."""
    world.shorten_session()
    topic = world.topic(2)
    lives = world.reader()
    until_shared([lives], all_of(topic, 2))
    dies = Killed(NewReader, world.bootstrap, world.name, topic)
    try:
        assert dies.wait_for_partitions(), "it never had a partition"
        until(lambda: len(lives.has) == 1, lives)
    finally:
        dies.kill()
    until_shared([lives], all_of(topic, 2))
    until(lambda: len(world.describe()["members"]) == 1, lives)


def test_grp_16_a_static_member_restarts_and_nobody_notices(world):
    topic = world.topic(3)
    stays, restarts = world.reader(instance="stays"), world.reader(instance="restarts")
    until_shared([stays, restarts], all_of(topic, 3))
    until(lambda: restarts.has and stays.has, stays, restarts)
    world.until_stable()
    had, epoch, given = restarts.has, world.describe()["group_epoch"], len(stays.given)
    restarts.end()
    again = world.reader(instance="restarts")
    until(lambda: again.has == had, again, stays)
    world.until_stable()
    assert world.describe()["group_epoch"] == epoch
    assert len(stays.given) == given


def test_a_group_goes_on_where_it_left_off(world):
    """GRP-18, OFS-02."""
    topic = world.topic(2)
    first = world.reader()
    sent = world.send(topic, 2)
    until_read(sent, first)
    first.end()
    more = world.send(topic, 2)
    second = world.reader()
    until_read(more, second)
    assert read_by(second) == Counter(more)


def test_topics_and_partitions_that_come_later_are_read(world):
    """GRP-11; the subscription is a regular expression."""
    world.topic(1, "-a")
    readers = [world.reader(NewReader, f"^{world.name}-[ab]") for _ in range(2)]
    until_shared(readers, all_of(f"{world.name}-a", 1))
    world.topic(3, "-c")
    grown = world.admin.create_partitions([NewPartitions(f"{world.name}-a", 3)])
    grown[f"{world.name}-a"].result()
    until_shared(readers, all_of(f"{world.name}-a", 3))
    world.topic(2, "-b")
    until_shared(readers, all_of(f"{world.name}-a", 3) + all_of(f"{world.name}-b", 2))


def test_grp_12_the_range_assignor_gives_the_same_numbers_of_all_topics(world):
    names = [world.topic(4, "-a"), world.topic(4, "-b")]
    readers = [world.reader(NewReader, *names, strategy="range") for _ in range(2)]
    until(lambda: [len(each.has) for each in readers] == [4, 4], *readers)
    assert world.describe()["assignor_name"] == "range"
    numbers = [{topic: set() for topic in names} for _ in readers]
    for reader, mine in zip(readers, numbers, strict=True):
        for topic, partition in reader.has:
            mine[topic].add(partition)
    assert all(mine[names[0]] == mine[names[1]] for mine in numbers)
    assert sorted(map(sorted, (mine[names[0]] for mine in numbers))) == [[0, 1], [2, 3]]


def test_members_of_both_protocols_change_places_and_nothing_is_left_out(world):
    """Classic to consumer and back, one member at a time, while there is always more to read."""
    topic = world.topic(4)
    readers = [world.reader(ConfluentReader) for _ in range(2)]
    until_shared(readers, all_of(topic, 4))
    sent = world.send(topic, 4)
    assert world.kind() == "classic"
    gone = []
    for kind, expected in (
        (NewReader, "consumer"),
        (NewReader, "consumer"),
        (ConfluentReader, "consumer"),
        (ConfluentReader, "classic"),
    ):
        readers.append(world.reader(kind))
        until_shared(readers, all_of(topic, 4))
        sent += world.send(topic, 4)
        gone.append(readers.pop(0))
        gone[-1].end()
        until_shared(readers, all_of(topic, 4))
        sent += world.send(topic, 4)
        until_read(sent, *readers, *gone)
        until(lambda expected=expected: world.kind() == expected, *readers)
    assert set(read_by(*readers, *gone)) == set(sent)


def test_a_group_of_a_hundred_members(world):
    topic = world.topic(MANY)
    readers = [world.reader() for _ in range(MANY)]
    until(lambda: all(len(each.has) == 1 for each in readers), *readers)
    until_shared(readers, all_of(topic, MANY))
    world.until_stable()
    sent = world.send(topic, MANY, 2 * MANY)
    until_read(sent, *readers)
    assert read_by(*readers) == Counter(sent)


def test_a_group_outlives_its_coordinator(name):
    """The broker is killed and comes back: members go on with what they have."""
    if nodes.outside_bootstrap():
        pytest.skip("this test ends the broker")
    process = nodes.StromProcess(nodes.new_directory("consumer-failover"), **SETTINGS)
    world = NewWorld(process.start().bootstrap, name)
    try:
        topic = world.topic(2)
        readers = [world.reader() for _ in range(2)]
        until(lambda: all(each.has for each in readers), *readers)
        until_shared(readers, all_of(topic, 2))
        sent = world.send(topic, 2)
        until_read(sent, *readers)
        world.until_stable()
        before, had = world.describe(), [each.has for each in readers]
        process.end(signal.SIGKILL)
        process.start()
        until(lambda: world.describe()["group_state"] == "Stable", *readers)
        assert world.describe()["group_epoch"] == before["group_epoch"]
        sent += world.send(topic, 2)
        until_read(sent, *readers)
        assert [each.has for each in readers] == had
    finally:
        world.close()
        process.remove()
