"""A hundred members are restarted, ten at a time, in groups of either protocol (GRP-16, GRP-17).

The members are threads that speak the protocol themselves and read nothing. Whatever is under way,
a partition is with one of them at a time; in the end each has one again.
"""

import itertools
import threading
from uuid import uuid4

import pytest

from tests.conformance.raw import Raw
from tests.patience import PATIENCE_SECONDS, until, until_coordinated

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

MANY, AT_ONCE = 100, 10
BEAT_SECONDS = 0.3
#: Longer than anything that a busy machine is away for.
SESSION_MS = REBALANCE_MS = 60_000
LEFT, AWAY = -1, -2
SETTINGS = {
    "group.initial.rebalance.delay.ms": 200,
    "group.consumer.session.timeout.ms": SESSION_MS,
    "group.consumer.max.session.timeout.ms": SESSION_MS,
    "group.consumer.assignment.interval.ms": 100,
}


class World:
    """A group with its topic, and who holds which of its partitions."""

    def __init__(self, bootstrap, name):
        self.bootstrap, self.name = bootstrap, name
        self.members = []
        self.holders = {}
        self.lock = threading.Lock()
        new = {"name": name, "num_partitions": MANY, "replication_factor": 1}
        with Raw(bootstrap) as raw:
            (made,) = raw.ask("create_topics", 7, {"topics": [new], "timeout": 30_000})["topics"]
            assert made["error_code"] == "none", made
            self.topic_id = made["topic_id"]
            wait_for_coordinator(raw, name)

    def hold(self, member, partitions):
        """Note that the member has these now; they must be nobody else's."""
        with self.lock:
            for partition in [each for each, who in self.holders.items() if who is member]:
                if partition not in partitions:
                    del self.holders[partition]
            for partition in partitions:
                other = self.holders.setdefault(partition, member)
                assert other is member, f"{partition} is with two members at once"

    def begin(self, kind, instances):
        begun = [kind(self, each) for each in instances]
        self.members += begun
        for each in begun:
            each.start()

    def end(self, members):
        for each in members:
            each.ended.set()
        for each in members:
            each.join(PATIENCE_SECONDS)
            assert not each.is_alive(), "a member does not end"
            assert each.failure is None, each.failure
        self.members = [each for each in self.members if each not in members]

    def until_shared(self):
        def is_shared():
            failures = [each.failure for each in self.members if each.failure is not None]
            assert not failures, failures[0]
            return self.is_shared()

        until(is_shared, told=lambda: f"{len(self.holders)} partitions are held")

    def is_shared(self):
        with self.lock:
            holders = set(self.holders.values())
            return len(self.holders) == MANY and holders == set(self.members)

    def shares(self):
        """Which partition each instance has."""
        with self.lock:
            return {member.instance: each for each, member in self.holders.items()}


def wait_for_coordinator(raw, group):
    beat = {"group_id": group, "generation_id": 1, "member_id": "nobody"}
    until_coordinated(raw, group)
    until(lambda: raw.ask("heartbeat", 4, beat)["error_code"] == "unknown_member_id")


class Member(threading.Thread):
    """One life of a member."""

    def __init__(self, world, instance):
        super().__init__(daemon=True)
        self.world, self.instance = world, instance
        self.id = ""
        self.failure = None
        self.ended = threading.Event()

    def run(self):
        try:
            with Raw(self.world.bootstrap, client_id=self.name) as raw:
                # A round may wait for all the others.
                raw.socket.settimeout(PATIENCE_SECONDS)
                self.serve(raw)
        except Exception as error:  # noqa: BLE001 - told to who waits for this member
            self.failure = error
        finally:
            self.world.hold(self, ())


class ClassicMember(Member):
    """One that speaks the classic protocol; who leads gives a partition to each."""

    generation = -1

    def serve(self, raw):
        while not self.ended.is_set():
            self.world.hold(self, ())
            part = self.take_part(raw)
            if part is not None:
                self.world.hold(self, {int(part)} if part else ())
                self.beat(raw)
        self.world.hold(self, ())
        if self.instance is None:
            who = [{"member_id": self.id}]
            raw.ask("leave_group", 5, {"group_id": self.world.name, "members": who})

    def take_part(self, raw):
        """Join and fetch what it shall have; None if the round is over before that."""
        joined = self.join_group(raw)
        self.generation = joined["generation_id"]
        given = []
        if joined["leader"] == self.id and not joined["skip_assignment"]:
            ids = sorted(each["member_id"] for each in joined["members"])
            given = [
                {"member_id": each, "assignment": b"%d" % number} for number, each in enumerate(ids)
            ]
        asked = self.who() | {
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": given,
        }
        synced = raw.ask("sync_group", 5, asked)
        if synced["error_code"] == "rebalance_in_progress":
            return None
        assert synced["error_code"] == "none", synced
        return synced["assignment"]

    def join_group(self, raw):
        while True:
            asked = {
                "group_id": self.world.name,
                "member_id": self.id,
                "group_instance_id": self.instance,
                "session_timeout": SESSION_MS,
                "rebalance_timeout": REBALANCE_MS,
                "protocol_type": "consumer",
                "protocols": [{"name": "range", "metadata": b"the same for all"}],
            }
            answer = raw.ask("join_group", 9, asked)
            self.id = answer["member_id"]
            if answer["error_code"] == "none":
                return answer
            assert answer["error_code"] == "member_id_required", answer

    def beat(self, raw):
        """Send heartbeats until the group calls everybody in, or the end."""
        while not self.ended.wait(BEAT_SECONDS):
            code = raw.ask("heartbeat", 4, self.who())["error_code"]
            if code == "rebalance_in_progress":
                return
            assert code == "none", code

    def who(self):
        return {
            "group_id": self.world.name,
            "generation_id": self.generation,
            "member_id": self.id,
            "group_instance_id": self.instance,
        }

    @staticmethod
    def round_of(world):
        return max(each.generation for each in world.members)


class ConsumerMember(Member):
    """One that speaks the consumer protocol, and lets go at once of what it shall not have."""

    def serve(self, raw):
        self.id = str(uuid4())
        epoch, owned, says = 0, set(), self.introduction()
        while not self.ended.is_set():
            answer = self.ask(raw, epoch, says)
            assert answer["error_code"] == "none", answer
            epoch, says = answer["member_epoch"], {}
            given = answer["assignment"]
            wanted = owned if given is None else self.partitions_of(given)
            if wanted != owned:
                owned = wanted
                self.world.hold(self, owned)
                says = self.holding(owned)
                continue
            self.ended.wait(BEAT_SECONDS)
        self.world.hold(self, ())
        answer = self.ask(raw, LEFT if self.instance is None else AWAY, {})
        assert answer["error_code"] == "none", answer

    def ask(self, raw, epoch, says):
        who = {"group_id": self.world.name, "member_id": self.id, "member_epoch": epoch}
        return raw.ask("consumer_group_heartbeat", 1, who | {"instance_id": self.instance} | says)

    def introduction(self):
        return {
            "rebalance_timeout": REBALANCE_MS,
            "subscribed_topic_names": [self.world.name],
            "topic_partitions": [],
        }

    def holding(self, owned):
        parts = [{"topic_id": self.world.topic_id, "partitions": sorted(owned)}]
        return {"topic_partitions": parts if owned else []}

    @staticmethod
    def partitions_of(given):
        return {n for each in given["topic_partitions"] for n in each["partitions"]}

    @staticmethod
    def round_of(world):
        with Raw(world.bootstrap) as raw:
            asked = {"group_ids": [world.name]}
            (told,) = raw.ask("consumer_group_describe", 1, asked)["groups"]
        return told["group_epoch"]


@pytest.fixture
def world(broker, name):
    made = World(broker.bootstrap, name)
    yield made
    made.end(list(made.members))


KINDS = pytest.mark.parametrize(
    "kind", [ClassicMember, ConsumerMember], ids=["classic", "consumer"]
)


@KINDS
def test_grp_17_a_rolling_restart_of_a_hundred_members(world, kind):
    world.begin(kind, itertools.repeat(None, MANY))
    world.until_shared()
    before = kind.round_of(world)
    for _ in range(MANY // AT_ONCE):
        world.end(world.members[:AT_ONCE])
        world.begin(kind, itertools.repeat(None, AT_ONCE))
        world.until_shared()
    assert before < kind.round_of(world) <= before + 2 * MANY, "one for each that goes or comes"


@KINDS
def test_grp_16_a_rolling_restart_of_a_hundred_static_members_is_no_round(world, kind):
    world.begin(kind, [f"member-{number}" for number in range(MANY)])
    world.until_shared()
    before, shares = kind.round_of(world), world.shares()
    for _ in range(MANY // AT_ONCE):
        gone = world.members[:AT_ONCE]
        world.end(gone)
        world.begin(kind, [each.instance for each in gone])
        world.until_shared()
    assert kind.round_of(world) == before
    assert world.shares() == shares, "each has what it had"
