"""One consumer group and its coordinator around a table: a clock and topics to change, and a log.

`Client` is what a consumer does with the answers: it holds what it was told to, says so, and starts
over when it is fenced.
"""

from uuid import UUID

from immutables import Map

from strom.groups import records
from strom.groups.classic.change import JOIN as CLASSIC_JOIN
from strom.groups.classic.change import SESSION as CLASSIC_SESSION
from strom.groups.classic.change import SYNC as CLASSIC_SYNC
from strom.groups.classic.group import ClassicGroup
from strom.groups.classic.leaving import on_timer as on_classic_timer
from strom.groups.classic.logged import read_group
from strom.groups.consumer import leaving, replay
from strom.groups.consumer.draft import Moment
from strom.groups.consumer.heartbeat import heartbeat
from strom.groups.consumer.limits import limits_of
from strom.groups.consumer.request import Heartbeat
from strom.metadata.config_decisions import GROUP_RESOURCE
from strom.metadata.image import Image, Partition, Topic
from strom.metadata.settings import BrokerSettings
from strom.replicated.machine import Wait
from strom.wire.errors import ErrorCode, KafkaError

GROUP = "g"
#: An arbitrary time to begin at.
START_MS = 1_000_000
SESSION_MS = 45_000
REBALANCE_MS = 60_000
#: As in the settings: members are assigned to together that come within this time.
INTERVAL_MS = 1000

PARTITION = Partition((1,), (1,), 1, 0, 0, (UUID(int=5),))


def topic_id(name):
    """Return an id that is the same in every run."""
    return UUID(bytes=name.encode().rjust(16, b"\0")[-16:])


def plain(partitions):
    """Show partitions as {name: [numbers]}."""
    if partitions is None:
        return None
    names = {topic.bytes.lstrip(b"\0").decode(): sorted(each) for topic, each in partitions.items()}
    return dict(sorted(names.items()))


class Table:
    """Carries out decisions as a shard does, and checks of each that asking changes nothing."""

    def __init__(self, topics=None, **settings):
        named = {name.replace("_", "."): str(value) for name, value in settings.items()}
        self.settings = BrokerSettings(named)
        self.image = Image()
        self.now_ms = START_MS
        self.log = []
        self.groups = {}
        self.soft = {}
        self.timers = {}
        self.answers = []
        #: The timers that came, in order.
        self.came = []
        for name, count in (topics or {}).items():
            self.set_topic(name, count)

    # The cluster.

    def set_topic(self, name, count):
        """Create a topic, or give it more partitions."""
        partitions = Map(dict.fromkeys(range(count), PARTITION))
        self._with(Topic(name, topic_id(name), partitions))

    def _with(self, topic):
        self.image = self.image._replace(
            topics_by_id=self.image.topics_by_id.set(topic.id, topic),
            topics_by_name=self.image.topics_by_name.set(topic.name, topic),
            end_offset=self.image.end_offset + 1,
        )

    def delete_topic(self, name):
        topic = self.image.topics_by_name[name]
        self.image = self.image._replace(
            topics_by_id=self.image.topics_by_id.delete(topic.id),
            topics_by_name=self.image.topics_by_name.delete(name),
            end_offset=self.image.end_offset + 1,
        )

    def set_group_config(self, **values):
        named = {name.replace("_", "."): str(value) for name, value in values.items()}
        configs = self.image.configs.set((GROUP_RESOURCE, GROUP), Map(named))
        self.image = self.image._replace(configs=configs)

    # What a shard does.

    @property
    def group(self):
        soft = self.soft.get(GROUP)
        return soft if isinstance(soft, ClassicGroup) else self.groups.get(GROUP)

    @property
    def watch(self):
        return self.soft.get(GROUP)

    @property
    def moment(self):
        return Moment(self.image, limits_of(GROUP, self.image, self.settings), self.now_ms)

    def carry_out(self, ask):
        """Decide twice, which must give the same; then do what was decided."""
        before = (dict(self.groups), dict(self.soft))
        outcomes = [self._attempt(ask) for _ in range(2)]
        assert outcomes[0] == outcomes[1], "asking twice gave two answers"
        assert (self.groups, self.soft) == before, "a decision changed the state"
        decision = outcomes[0]
        if isinstance(decision, tuple):
            raise KafkaError(*decision)
        for key, value in decision.records:
            written = records.write_key(key), None if value is None else records.write_value(value)
            self.log.append(written)
            self.apply(self.groups, records.read(*written))
        for key, value in decision.soft:
            self.soft[key] = value
            if value is None:
                del self.soft[key]
        for key, due_ms in decision.timers:
            self.timers[key] = due_ms
            if due_ms is None:
                del self.timers[key]
        self.answers += decision.answers
        assert not isinstance(decision.reply, Wait)
        return decision.reply

    @staticmethod
    def _attempt(ask):
        try:
            return ask()
        except KafkaError as error:
            return error.code, error.message

    @staticmethod
    def apply(groups, record):
        key, value = record
        if isinstance(key, records.GroupMetadataKey):
            groups.pop(key.group, None)
            if value is not None:
                groups[key.group] = read_group(key.group, value)
        else:
            replay.apply(groups, key, value)

    def replayed(self):
        """Return the groups as the log gives them back."""
        groups = {}
        for written in self.log:
            self.apply(groups, records.read(*written))
        return groups

    def written(self, since=0):
        """Return the records of the log."""
        return [records.read(*each) for each in self.log[since:]]

    def restart(self):
        """Lose all that is not in the log, as the next coordinator does."""
        self.groups, self.soft, self.timers = self.replayed(), {}, {}
        group = self.groups.get(GROUP)
        if group is not None and not isinstance(group, ClassicGroup):
            self.carry_out(lambda: leaving.on_loaded(group, self.moment))

    def advance(self, by_ms):
        """Let time pass, and the timers come that are due meanwhile."""
        end_ms = self.now_ms + by_ms
        while self.timers:
            key = min(self.timers, key=lambda each: (self.timers[each], each))
            if self.timers[key] > end_ms:
                break
            self.now_ms = max(self.now_ms, self.timers.pop(key))
            self.came.append(key)
            self.carry_out(lambda key=key: self._on_timer(key))
        self.now_ms = end_ms

    def _on_timer(self, key):
        if key[0] in (CLASSIC_SESSION, CLASSIC_JOIN, CLASSIC_SYNC):
            group = self.group if isinstance(self.group, ClassicGroup) else None
            return on_classic_timer(group, key, self.now_ms)
        return leaving.on_timer(self.group, key, self.moment, self.watch)

    # What members ask for.

    def beat(self, member_id, epoch, **said):
        """Send a heartbeat as it comes from the wire."""
        owned = said.pop("owned", None)
        if owned is not None:
            owned = {topic_id(name): frozenset(each) for name, each in owned.items()}
        names = said.pop("topics", None)
        request = Heartbeat(
            GROUP,
            member_id,
            epoch,
            said.pop("client_id", "client"),
            "/127.0.0.1",
            topic_names=None if names is None else frozenset(names),
            owned=owned,
            **said,
        )
        return self.carry_out(lambda: heartbeat(self.group, request, self.moment, self.watch))

    def join(self, member_id, *topics, **said):
        """Send the first heartbeat of a member."""
        if topics or "pattern" not in said:
            said["topics"] = topics
        return self.beat(member_id, 0, owned={}, rebalance_timeout_ms=REBALANCE_MS, **said)

    def client(self, member_id, *topics, **said):
        """Have a consumer join."""
        client = Client(self, member_id, topics, said)
        client.join()
        return client

    def refused(self, ask):
        """Return the code with which something is refused."""
        try:
            ask()
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE

    def settle(self, *clients):
        """Have the clients send heartbeats until nothing changes any more."""
        for _ in range(10):
            before = len(self.log)
            self.advance(INTERVAL_MS)
            for client in clients:
                client.beat()
            if len(self.log) == before:
                return
        raise AssertionError("the group does not come to rest")

    @property
    def shown(self):
        """Show the group: its epochs, and of each member epoch, state and what it holds."""
        group = self.group
        members = {
            key: (member.epoch, member.state.name, plain(member.assigned), plain(member.revoking))
            for key, member in sorted(group.members.items())
        }
        return group.epoch, group.assignment_epoch, members


class Client:
    """A consumer: it does at once what it is told, and says so in its next heartbeat."""

    def __init__(self, table, member_id, topics, said):
        self.table = table
        self.id = member_id
        self.topics = topics
        self.said = said
        self.epoch = 0
        self.holds = {}
        #: What it said last that it holds.
        self.told = None

    def join(self):
        self.holds, self.told = {}, None
        self._take(self.table.join(self.id, *self.topics, **self.said))

    def beat(self, **more):
        """Send a heartbeat; a member that is not known any more, or is fenced, starts over."""
        if self.told != self.holds:
            more.setdefault("owned", self.holds)
        said = {"instance_id": self.said.get("instance_id")} | more
        try:
            reply = self.table.beat(self.id, self.epoch, **said)
        except KafkaError as error:
            assert error.code in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)
            self.join()
            return
        self.told = said.get("owned", self.told)
        self._take(reply)

    def subscribe(self, *topics):
        self.topics = topics
        self.beat(topics=topics)

    def leave(self):
        self.table.beat(self.id, -1, instance_id=self.said.get("instance_id"))

    def go_away(self):
        self.table.beat(self.id, -2, instance_id=self.said["instance_id"])

    def _take(self, reply):
        self.epoch = reply.epoch
        if reply.assignment is not None:
            self.holds = plain(reply.assignment)
