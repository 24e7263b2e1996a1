"""The publisher: image first, then settings, replicas, coordinators, then who waits for it."""

import asyncio
from types import SimpleNamespace
from uuid import UUID

from strom.broker.admission import OVERRIDES
from strom.broker.host import Host
from strom.broker.publisher import RECORDS_AT_ONCE, Publisher, cut
from strom.broker.quorum import Committed
from strom.metadata.image import Image
from strom.metadata.records import BROKER_RESOURCE, Config, TopicCreated
from strom.metadata.settings.values import BrokerSettings

NAME = "log.retention.ms"


class Replicas:
    """Takes its time to follow, and keeps what it was told."""

    def __init__(self):
        self.followed = []
        self.reconfigured = []
        self.may_follow = asyncio.Event()
        self.may_follow.set()

    async def follow(self, image, delta, settings):
        await self.may_follow.wait()
        self.followed.append((image.end_offset, sorted(image.topics_by_name)))

    async def reconfigure(self, image, settings):
        self.reconfigured.append(settings[NAME])


class Coordinators:
    """Keeps what it was told, and that the replicas had followed before."""

    def __init__(self, replicas):
        self.replicas = replicas
        self.followed = []

    async def follow(self, image, settings, delta):
        assert delta.after is image
        assert self.replicas.followed[-1][0] == image.end_offset
        self.followed.append(image.end_offset)


def publishing():
    quorum = SimpleNamespace(end_offset=0)
    replicas = Replicas()
    parts = SimpleNamespace(
        node_id=1,
        image=Image(),
        settings=BrokerSettings(),
        replicas=replicas,
        groups=Coordinators(replicas),
        transactions=Coordinators(replicas),
        host=Host(),
        address_limits={},
    )
    return Publisher(quorum, SimpleNamespace(settings=None)), quorum, parts


def topic(number):
    return TopicCreated(name=f"t{number}", topic_id=UUID(int=number))


async def test_many_commits_are_one_step_for_those_who_follow():
    publisher, _, parts = publishing()
    await publisher.publish(
        parts, [Committed((topic(1),), 5, 2), Committed((topic(2), topic(3)), 7, 2)]
    )
    followed = parts.groups.followed + parts.transactions.followed
    assert parts.image.end_offset == 7
    assert parts.replicas.followed == [(7, ["t1", "t2", "t3"])]
    assert followed == [7, 7]


def test_decisions_are_published_whole_and_a_few_at_a_time():
    few = RECORDS_AT_ONCE // 4
    sizes = [few, few, few, few, few, RECORDS_AT_ONCE * 3, few, 1]
    committed = [Committed(tuple(range(size)), number, 2) for number, size in enumerate(sizes)]
    assert [[each.end_offset for each in portion] for portion in cut(committed)] == [
        [0, 1, 2, 3],
        [4],
        [5],
        [6, 7],
    ]
    assert list(cut([])) == []


async def test_a_large_decision_is_in_one_image_and_others_have_their_turn_meanwhile():
    count = RECORDS_AT_ONCE * 3
    publisher, _, parts = publishing()
    images, is_done = [], asyncio.Event()

    async def look():
        while not is_done.is_set():
            images.append(len(parts.image.topics_by_name))
            await asyncio.sleep(0)

    records = tuple(topic(number) for number in range(1, count + 1))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(look())
        await asyncio.sleep(0)
        await publisher.publish(parts, [Committed(records, count, 2)])
        is_done.set()
    assert images == [0, 0, 0]
    assert len(parts.image.topics_by_name) == parts.replicas.followed[0][0] == count


async def test_who_waits_is_told_when_all_act_on_what_was_decided_and_not_before():
    publisher, quorum, parts = publishing()
    parts.replicas.may_follow.clear()
    quorum.end_offset = 5
    async with asyncio.TaskGroup() as tasks:
        first = tasks.create_task(publisher.wait_published())
        await asyncio.sleep(0)
        quorum.end_offset = 9
        second = tasks.create_task(publisher.wait_published())
        step = tasks.create_task(publisher.publish(parts, [Committed((topic(1),), 5, 2)]))
        await asyncio.sleep(0)
        before = first.done()
        parts.replicas.may_follow.set()
        await first
        between = step.done(), second.done()
        await publisher.publish(parts, [Committed((topic(2),), 9, 2)])
    await publisher.wait_published()
    assert (before, between) == (False, (True, False))


async def test_who_gave_up_waiting_keeps_nobody_else_from_being_told():
    publisher, quorum, parts = publishing()
    quorum.end_offset = 5
    async with asyncio.TaskGroup() as tasks:
        gone = tasks.create_task(publisher.wait_published())
        stays = tasks.create_task(publisher.wait_published())
        await asyncio.sleep(0)
        gone.cancel()
        await publisher.publish(parts, [Committed((topic(1),), 5, 2)])
        await stays
    assert gone.cancelled()


async def test_the_brokers_own_settings_are_followed_and_others_are_not():
    def change(resource):
        return Config(
            resource_type=BROKER_RESOURCE, resource_name=resource, name=NAME, value="1234"
        )

    publisher, _, parts = publishing()
    for number, resource in enumerate(("2", "1", ""), 1):
        await publisher.publish(parts, [Committed((change(resource),), number, 2)])
    followed, reconfigured = len(parts.replicas.followed), parts.replicas.reconfigured
    assert followed == 3
    assert reconfigured == [1234]


async def test_hosts_with_limits_of_their_own_are_looked_up_again_when_they_change(caplog):
    publisher, _, parts = publishing()
    seen = []
    for number, text in enumerate(("127.0.0.1:5", "a..b:6", None), 1):
        change = Config(resource_type=BROKER_RESOURCE, resource_name="", name=OVERRIDES, value=text)
        await publisher.publish(parts, [Committed((change,), number, 2)])
        seen.append(parts.address_limits)
    assert seen == [{"127.0.0.1": 5}, {"127.0.0.1": 5}, {}]
    assert "stay as they were: cannot find a..b" in caplog.text
