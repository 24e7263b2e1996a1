"""Real clients in groups: they come, go, crash, stall, come back, and share all the while.

Rows: GRP-01 to GRP-05, GRP-08, GRP-10, GRP-11, GRP-12 to GRP-18, OFS-01 to OFS-04.
"""

import asyncio
import time
from collections import Counter

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from confluent_kafka.admin import NewPartitions

from tests import nodes
from tests.conformance.members import (
    READERS,
    AioReader,
    ConfluentReader,
    KafkaPythonReader,
    Killed,
    World,
    all_of,
    read_by,
    until,
    until_shared,
)
from tests.conformance.raw import Raw

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SETTINGS = {
    "group.initial.rebalance.delay.ms": 200,
    "group.min.session.timeout.ms": 500,
    "offsets.topic.replication.factor": 1,
}
MANY = 100
#: More than three heartbeats and three looks at the metadata of each reader.
QUIET_SECONDS = 1


@pytest.fixture
def world(broker, name):
    made = ClassicWorld(broker.bootstrap, name)
    yield made
    made.close()


@pytest.fixture(params=READERS, ids=lambda each: each.name)
def kind(request):
    return request.param


class ClassicWorld(World):
    """Topics and groups of one test, as the classic protocol tells of them."""

    def describe(self, group=""):
        with Raw(self.bootstrap) as raw:
            (told,) = raw.ask("describe_groups", 6, {"groups": [f"{self.name}{group}"]})["groups"]
            return told

    def state(self):
        """The group's state, and how many members it has."""
        told = self.describe()
        return told["group_state"], len(told["members"])


def values(count, word="v"):
    return [f"{word}{number}" for number in range(count)]


def test_members_share_the_partitions_and_groups_are_apart(world, kind):
    """GRP-01, GRP-02, GRP-03, GRP-04."""
    topic = world.topic(2)
    three = [world.reader(kind) for _ in range(3)]
    alone = world.reader(kind, group="-other")
    # Who came late would call the others in again, and be given what they had read.
    until(lambda: world.state() == ("Stable", 3), *three)
    until_shared(three, all_of(topic, 2))
    until_shared([alone], all_of(topic, 2))
    assert sorted(len(each.has) for each in three) == [0, 1, 1], "one has nothing to do"
    world.send(topic, 2, values(200))
    once = Counter(dict.fromkeys(values(200), 1))
    until(lambda: len(read_by(*three)) == len(read_by(alone)) == 200, *three, alone)
    assert read_by(*three) == read_by(alone) == once
    for each in three:
        assert len({partition for _, partition, _ in each.read}) == len(each.has)


def test_a_group_grows_and_shrinks_and_nothing_is_left_out(world, kind):
    """GRP-05, GRP-08: what was read is committed before each round, and not read again after it."""
    topic = world.topic(4)
    readers = [world.reader(kind)]
    until_shared(readers, all_of(topic, 4))
    world.send(topic, 4, values(40, "one"))
    until(lambda: len(read_by(*readers)) == 40, *readers)
    for _ in range(2):
        readers.append(world.reader(kind))
        until_shared(readers, all_of(topic, 4))
        until(lambda: all(each.has for each in readers), *readers)
    world.send(topic, 4, values(40, "three"))
    until(lambda: len(read_by(*readers)) == 80, *readers)
    readers[0].end()
    until_shared(readers[1:], all_of(topic, 4))
    readers[1].end()
    until_shared(readers[2:], all_of(topic, 4))
    world.send(topic, 4, values(40, "last"))
    until(lambda: len(read_by(*readers)) == 120, *readers)
    assert set(read_by(readers[2])) >= set(values(40, "last"))
    if kind is not KafkaPythonReader:
        # kafka-python has no more time for that commit than is left of a poll. If a machine stalls
        # it goes into the round without, and reads again: at least once is all that it promises.
        assert set(read_by(*readers).values()) == {1}, "nothing is read twice"


def test_a_member_that_dies_without_a_word_is_replaced(world, kind):
    """GRP-05, GRP-10."""
    topic = world.topic(2)
    lives = world.reader(kind)
    until_shared([lives], all_of(topic, 2))
    dies = Killed(kind, world.bootstrap, world.name, topic)
    try:
        (taken,) = dies.wait_for_partitions()
        until(lambda: lives.has == set(all_of(topic, 2)) - {taken}, lives)
    finally:
        dies.kill()
    until_shared([lives], all_of(topic, 2))
    assert len(world.describe()["members"]) == 1


def test_a_member_that_stalls_loses_its_work_and_comes_back(world, kind):
    topic = world.topic(2)
    works = world.reader(kind)
    stalls = world.reader(kind, max_poll_ms=2_000, session_ms=2_000)
    until_shared([works, stalls], all_of(topic, 2))
    until(lambda: len(stalls.has) == 1, works, stalls)
    stalls.stall()
    until(lambda: works.has == set(all_of(topic, 2)), works)
    stalls.go_on()
    until_shared([works, stalls], all_of(topic, 2))
    until(lambda: len(stalls.has) == 1, works, stalls)


def test_grp_16_a_static_member_restarts_without_a_round(world, kind):
    topic = world.topic(3)
    stays = world.reader(kind, instance="stays", session_ms=30_000)
    restarts = world.reader(kind, instance="restarts", session_ms=30_000)
    until_shared([stays, restarts], all_of(topic, 3))
    until(lambda: restarts.has and stays.has, stays, restarts)
    until(lambda: world.state() == ("Stable", 2))
    had, rounds = restarts.has, len(stays.given)
    ids = member_ids(world)
    restarts.end()
    again = world.reader(kind, instance="restarts", session_ms=30_000)
    until(lambda: again.has == had, again, stays)
    assert len(stays.given) == rounds, "the others noticed nothing"
    now = member_ids(world)
    assert now["stays"] == ids["stays"]
    assert now["restarts"] != ids["restarts"]
    with Raw(world.bootstrap) as raw:
        leaving = [{"member_id": "", "group_instance_id": each} for each in ("stays", "restarts")]
        raw.ask("leave_group", 5, {"group_id": world.name, "members": leaving})


def member_ids(world):
    return {each["group_instance_id"]: each["member_id"] for each in world.describe()["members"]}


def test_a_group_goes_on_where_it_left_off(world, kind):
    """GRP-18, OFS-01, OFS-02, OFS-03, OFS-04."""
    topic = world.topic(2)
    world.send(topic, 2, values(20))
    first = world.reader(kind)
    until(lambda: len(read_by(first)) == 20, first)
    first.end()
    world.send(topic, 2, values(6, "new"))
    second = world.reader(kind)
    until(lambda: len(read_by(second)) == 6, second)
    assert set(read_by(second)) == set(values(6, "new"))
    fresh = world.reader(kind, group="-fresh")
    until(lambda: len(read_by(fresh)) == 26, fresh)


def test_grp_11_more_partitions_call_everybody_in(world, kind):
    topic = world.topic(2)
    readers = [world.reader(kind) for _ in range(2)]
    until_settled(world, readers, all_of(topic, 2))
    before = rounds_of(readers)
    world.admin.create_partitions([NewPartitions(topic, 4)])[topic].result()
    until_shared(readers, all_of(topic, 4))
    until(lambda: sorted(len(each.has) for each in readers) == [2, 2], *readers)
    check_rounds(world, readers, before)


def test_grp_11_a_new_topic_calls_everybody_in_if_it_matches(world):
    """The subscription is a regular expression, which is the client's affair in this protocol."""
    first = all_of(world.topic(2, "-a"), 2)
    readers = [world.reader(ConfluentReader, f"^{world.name}-[ab]") for _ in range(2)]
    until_settled(world, readers, first)
    before = rounds_of(readers)
    world.topic(2, "-c")
    be_quiet(readers)
    assert rounds_of(readers) == before, "another topic is nobody's affair"
    second = all_of(world.topic(2, "-b"), 2)
    until_shared(readers, first + second)
    check_rounds(world, readers, before)


def until_settled(world, readers, partitions):
    """Wait until all are in, each has its part, and no round is under way."""
    until(lambda: all(each.has for each in readers), *readers)
    until_shared(readers, partitions)
    until(lambda: world.state() == ("Stable", len(readers)), *readers)


def rounds_of(readers):
    return [len(each.given) for each in readers]


def be_quiet(readers):
    """Let time go by in which whoever has a cause to join again does so."""
    end = time.monotonic() + QUIET_SECONDS
    until(lambda: time.monotonic() > end, *readers)


def check_rounds(world, readers, before):
    """See that there was the round that a change of the topics must cause, and none for nothing.

    A member joins again when it sees the change itself, and each looks at the metadata in its own
    time: so one round for each member is what clients may cause. The broker adds none.
    """
    be_quiet(readers)
    after = rounds_of(readers)
    added = [now - then for now, then in zip(after, before, strict=True)]
    assert all(1 <= each <= len(readers) for each in added), added
    be_quiet(readers)
    assert rounds_of(readers) == after, "it is quiet again"
    assert world.state() == ("Stable", len(readers))


def test_grp_17_a_rolling_restart_of_three_dynamic_members_takes_six_rounds(world):
    topic = world.topic(3)
    readers = [world.reader(ConfluentReader) for _ in range(3)]
    until_shared(readers, all_of(topic, 3))
    until(lambda: all(each.has for each in readers), *readers)
    rounds = 0
    for leaving in list(readers):
        stays = next(each for each in readers if each is not leaving)
        before = len(stays.given)
        readers.remove(leaving)
        leaving.end()
        until_given(stays, before + 1)
        until_shared(readers, all_of(topic, 3))
        readers.append(world.reader(ConfluentReader))
        # It may get what it had, which does not tell it from one that was not called in yet.
        until_given(stays, before + 2)
        until(lambda: world.state() == ("Stable", 3), *readers)
        until_shared(readers, all_of(topic, 3))
        rounds += len(stays.given) - before
    assert rounds == 6


def until_given(reader, times):
    until(lambda: len(reader.given) >= times, reader)


@pytest.fixture
def own_broker():
    """A broker to be stopped and killed."""
    if nodes.outside_bootstrap():
        pytest.skip("this test needs the broker's own process")
    process = nodes.StromProcess(nodes.new_directory("restarted"), **SETTINGS)
    yield process.start()
    process.remove()


# Not with kafka-python: it does not close the sockets of connections that were refused.
@pytest.mark.parametrize("kind", [ConfluentReader, AioReader], ids=lambda each: each.name)
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_restart_of_the_coordinator_is_no_round(own_broker, name, kind, how):
    world = ClassicWorld(own_broker.bootstrap, name)
    topic = world.topic(2)
    readers = [world.reader(kind, session_ms=30_000) for _ in range(2)]
    until_shared(readers, all_of(topic, 2))
    until(lambda: all(each.has for each in readers), *readers)
    world.send(topic, 2, values(10, "before"))
    until(lambda: len(read_by(*readers)) == 10, *readers)
    members, rounds = ids_of(world), [len(each.given) for each in readers]
    getattr(own_broker, how)()
    own_broker.start()
    world.send(topic, 2, values(10, "after"))
    until(lambda: len(read_by(*readers)) == 20, *readers)
    assert ids_of(world) == members
    assert [len(each.given) for each in readers] == rounds, "nobody was called in"
    world.close()


def ids_of(world):
    return {each["member_id"] for each in world.describe()["members"]}


# How the work is shared: two topics of three partitions each and two members, as in the book.


def two_by_three(world, kind, strategy, members=2):
    topics = [world.topic(3, suffix) for suffix in ("-a", "-b")]
    readers = [world.reader(kind, *topics, strategy=strategy) for _ in range(members)]
    everything = [place for topic in topics for place in all_of(topic, 3)]
    until_shared(readers, everything)
    until(lambda: all(each.has for each in readers), *readers)
    return readers, everything


def numbers(reader):
    """What a reader has, by topic."""
    return tuple(
        sorted(partition for topic, partition in reader.has if topic.endswith(suffix))
        for suffix in ("-a", "-b")
    )


@pytest.mark.parametrize("kind", READERS, ids=lambda each: each.name)
def test_grp_12_range_gives_the_same_numbers_of_all_topics_to_the_same_member(world, kind):
    readers, _ = two_by_three(world, kind, "range")
    assert sorted(numbers(each) for each in readers) == [([0, 1], [0, 1]), ([2], [2])]


@pytest.mark.parametrize("kind", READERS, ids=lambda each: each.name)
def test_grp_13_round_robin_spreads_all_partitions_evenly(world, kind):
    readers, _ = two_by_three(world, kind, "roundrobin")
    assert sorted(numbers(each) for each in readers) == [([0, 2], [1]), ([1], [0, 2])]


def test_grp_14_sticky_spreads_evenly_and_moves_as_little_as_possible(world):
    readers, everything = two_by_three(world, KafkaPythonReader, "sticky", members=3)
    assert sorted(len(each.has) for each in readers) == [2, 2, 2]
    leaving, *staying = readers
    had = {each: each.has for each in staying}
    leaving.end()
    until_shared(staying, everything)
    for each in staying:
        assert each.has > had[each], "it keeps what it had"
        assert len(each.has) == 3


def test_grp_15_cooperative_takes_only_what_moves(world):
    readers, everything = two_by_three(world, ConfluentReader, "cooperative-sticky")
    assert sorted(len(each.has) for each in readers) == [3, 3]
    before = {each: each.has for each in readers}
    taken = {each: len(each.taken) for each in readers}
    third = world.reader(
        ConfluentReader, *{topic for topic, _ in everything}, strategy="cooperative-sticky"
    )
    until_shared([*readers, third], everything)
    until(lambda: len(third.has) == 2, third, *readers)
    for each in readers:
        lost = [place for taking in each.taken[taken[each] :] for place in taking]
        assert set(lost) == before[each] - each.has, "what it keeps was never taken"
        assert len(lost) == 1


def test_a_hundred_members_in_one_group(world):
    """GRP-01, GRP-05."""
    topic = world.topic(MANY)
    asyncio.run(a_hundred(world, topic))


async def a_hundred(world, topic):
    once = dict.fromkeys((TopicPartition(topic, number) for number in range(MANY)), 1)
    consumers = [
        AIOKafkaConsumer(
            topic,
            bootstrap_servers=world.bootstrap,
            group_id=world.name,
            auto_offset_reset="earliest",
            session_timeout_ms=60_000,
            heartbeat_interval_ms=1_000,
            rebalance_timeout_ms=60_000,
            request_timeout_ms=90_000,
        )
        for _ in range(MANY)
    ]
    await asyncio.gather(*(each.start() for each in consumers))
    try:
        # In the middle of a round some have what others have had.
        while Counter(place for each in consumers for place in each.assignment()) != once:
            await asyncio.gather(*(each.getmany(timeout_ms=50) for each in consumers))
        assert {len(each.assignment()) for each in consumers} == {1}
        assert len(world.describe()["members"]) == MANY
        sent = values(2 * MANY)
        await asyncio.to_thread(world.send, topic, MANY, sent)
        read = Counter()
        while len(read) < len(sent):
            for given in await asyncio.gather(*(each.getmany(timeout_ms=50) for each in consumers)):
                read.update(each.value.decode() for some in given.values() for each in some)
        assert read == Counter(sent)
    finally:
        await asyncio.gather(*(each.stop() for each in consumers))
