"""One consumer group and its coordinator around a table: a clock and topics to change, and a log.

`Client` is what a consumer does with the answers: it holds what it was told to, says so, and starts
over when it is fenced.
"""

from uuid import UUID

from immutables import Map

from strom.groups import records
from strom.groups.classic import joining, presence, syncing
from strom.groups.classic import leaving as classic_leaving
from strom.groups.classic.group import Protocol
from strom.groups.classic.joining import JoinRequest, Limits
from strom.groups.classic.syncing import SyncRequest
from strom.groups.consumer import coordinator
from strom.groups.consumer.gathering import turn_key
from strom.groups.consumer.group import ConsumerGroup
from strom.groups.consumer.request import Heartbeat
from strom.groups.machine import APPLY, EXPIRE, GroupMachine
from strom.groups.members import Beat, Leaving
from strom.metadata.config_decisions import GROUP_RESOURCE
from strom.metadata.image import Broker, Image, Partition, Topic
from strom.metadata.settings import BrokerSettings
from strom.replicated.machine import Decision, Wait
from strom.wire.errors import ErrorCode, KafkaError

GROUP = "g"
#: An arbitrary time to begin at.
START_MS = 1_000_000
SESSION_MS = 45_000
REBALANCE_MS = 60_000
#: As in the settings: members are assigned to together that come within this time.
INTERVAL_MS = 1000

BROKER = Broker(1, 0, UUID(int=6), (), (), None, False, False, (), None)
PARTITION = Partition((1,), (1,), 1, 0, 0, (UUID(int=5),))


def topic_id(name):
    """Return an id that is the same in every run."""
    return UUID(bytes=name.encode().rjust(16, b"\0")[-16:])


def pairs(held):
    """Return topics and partitions one by one."""
    return frozenset((topic, each) for topic, partitions in held.items() for each in partitions)


def plain(partitions):
    """Show partitions as {name: [numbers]}."""
    if partitions is None:
        return None
    names = {topic.bytes.lstrip(b"\0").decode(): sorted(each) for topic, each in partitions.items()}
    return dict(sorted(names.items()))


def comparable(outcome):
    """Return what was decided with refusals as values: errors are only equal to themselves."""
    if not isinstance(outcome, Decision):
        return outcome
    answers = [
        (ticket, str(answer) if isinstance(answer, KafkaError) else answer)
        for ticket, answer in outcome.answers
    ]
    return outcome._replace(answers=answers)


class Table:
    """Carries out decisions as a shard does, and checks of each that asking changes nothing."""

    def __init__(self, topics=None, **settings):
        named = {name.replace("_", "."): str(value) for name, value in settings.items()}
        self.machine = GroupMachine(Image(), BrokerSettings(named))
        self.now_ms = START_MS
        self.log = []
        self.timers = {}
        self.answers = []
        #: The timers that came, in order.
        self.came = []
        for name, count in (topics or {}).items():
            self.set_topic(name, count)

    # The coordinator.

    @property
    def groups(self):
        return self.machine.groups

    @property
    def soft(self):
        return self.machine.soft

    @property
    def group(self):
        return self.machine.group(GROUP)

    @property
    def watch(self):
        return self.soft.get(GROUP)

    # The cluster.

    @property
    def image(self):
        return self.machine.image

    @image.setter
    def image(self, image):
        self.machine.see(image, self.machine.settings)

    def set_racks(self, racks):
        """Have brokers, each in its rack."""
        self.image = self.image._replace(
            brokers=Map({id_: BROKER._replace(id=id_, rack=rack) for id_, rack in racks.items()})
        )

    def set_topic(self, name, count, replicas=(1,)):
        """Create a topic, or give it more partitions or other replicas."""
        partition = PARTITION._replace(replicas=replicas)
        partitions = Map(dict.fromkeys(range(count), partition))
        self._with(Topic(name, topic_id(name), partitions))

    def set_replicas(self, name, *replicas):
        """Have the partitions of a topic on these brokers, one after the other."""
        partitions = {n: PARTITION._replace(replicas=each) for n, each in enumerate(replicas)}
        self._with(Topic(name, topic_id(name), Map(partitions)))

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

    def carry_out(self, ask):
        """Decide twice, which must give the same; then do what was decided."""
        before = (dict(self.groups), dict(self.soft))
        outcomes = [self._attempt(ask) for _ in range(2)]
        assert comparable(outcomes[0]) == comparable(outcomes[1]), "asking twice gave two answers"
        assert (self.groups, self.soft) == before, "a decision changed the state"
        decision = outcomes[0]
        if not isinstance(decision, Decision):
            raise KafkaError(*decision)
        for key, value in decision.records:
            written = records.write_key(key), None if value is None else records.write_value(value)
            self.log.append(written)
            self.apply(self.groups, records.read(*written))
        became = decision.outcome
        if became is not None and before[0].get(became.id) is became.before:
            assert self.groups[became.id] == became.after, "the records lead elsewhere"
        for key, value in decision.soft:
            self.machine.set_soft(key, value)
        for key, due_ms in decision.timers:
            self.timers[key] = due_ms
            if due_ms is None:
                del self.timers[key]
        self.answers += decision.answers
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
        APPLY[type(key)](groups, key, value)

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
        groups = self.replayed()
        self.machine = GroupMachine(self.image, self.machine.settings)
        self.machine.groups |= groups
        self.timers = {}
        self.carry_out(lambda: self.machine.on_loaded(self.now_ms))
        del self.timers[EXPIRE, ""]

    def advance(self, by_ms):
        """Let time pass, and the timers come that are due meanwhile."""
        end_ms = self.now_ms + by_ms
        while self.timers:
            key = min(self.timers, key=lambda each: (self.timers[each], each))
            if self.timers[key] > end_ms:
                break
            self.now_ms = max(self.now_ms, self.timers.pop(key))
            self.came.append(key)
            self.carry_out(lambda key=key: self.machine.on_timer(key, self.now_ms))
        self.now_ms = end_ms

    # What members ask for.

    def beat(self, member_id, epoch, **said):
        """Send a heartbeat that comes alone in its turn; return what it is answered."""
        reply = self.ask(member_id, epoch, **said)
        if isinstance(reply, Wait):
            self.end_turn()
            reply = self.answer_to(reply)
        return reply

    def end_turn(self):
        """Have those who wait for it answered."""
        while turn_key(GROUP) in self.timers:
            assert self.timers.pop(turn_key(GROUP)) <= self.now_ms
            self.carry_out(lambda: self.machine.on_timer(turn_key(GROUP), self.now_ms))

    def answer_to(self, waiting):
        """Return what somebody was told who had to wait; raise what it was refused with."""
        *_, told = [answer for ticket, answer in self.answers if ticket == waiting.ticket]
        if isinstance(told, KafkaError):
            raise told
        return told

    def ask(self, member_id, epoch, **said):
        """Send a heartbeat as it comes from the wire; it may have to wait."""
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
        return self.carry_out(lambda: coordinator.beat(self.machine, request, self.now_ms))

    def join(self, member_id, *topics, **said):
        """Send the first heartbeat of a member."""
        if topics or "pattern" not in said:
            said["topics"] = topics
        return self.beat(member_id, 0, owned={}, rebalance_timeout_ms=REBALANCE_MS, **said)

    def classic(self, decide, classically, asked):
        """Ask something of the classic protocol, of whatever kind the group is."""
        group = self.group

        def ask():
            if isinstance(group, ConsumerGroup):
                return decide(self.machine, group, asked, self.now_ms)
            return classically(group)

        return self.carry_out(ask)

    def classic_join(self, member_id, metadata, **said):
        """Send a JoinGroup."""
        request = JoinRequest(
            GROUP,
            member_id,
            said.get("instance_id"),
            "client",
            "/127.0.0.1",
            said.get("session_timeout_ms", SESSION_MS),
            REBALANCE_MS,
            said.get("protocol_type", "consumer"),
            said.get("protocols", (Protocol("range", metadata),)),
            said.get("new_member_id", "new"),
            must_return=said.get("must_return", True),
        )
        limits = Limits(1000, 0)
        return self.classic(
            coordinator.join,
            lambda group: joining.join(group, request, limits=limits, now_ms=self.now_ms),
            request,
        )

    def classic_sync(self, member_id, generation_id, **said):
        """Send a SyncGroup."""
        request = SyncRequest(
            GROUP,
            member_id,
            said.get("instance_id"),
            generation_id,
            said.get("protocol_type", "consumer"),
            said.get("protocol", "range"),
            said.get("assignments", {}),
        )
        return self.classic(
            coordinator.sync,
            lambda group: syncing.sync(group, request, now_ms=self.now_ms),
            request,
        )

    def classic_beat(self, member_id, generation_id, instance_id=None):
        """Send a Heartbeat of the classic protocol."""
        request = Beat(GROUP, member_id, instance_id, generation_id)
        return self.classic(
            coordinator.beat_classic,
            lambda group: presence.heartbeat(
                group, member_id, instance_id, generation_id, now_ms=self.now_ms
            ),
            request,
        )

    def classic_leave(self, *leavers):
        """Send a LeaveGroup."""
        request = Leaving(GROUP, leavers)
        return self.classic(
            coordinator.leave,
            lambda group: classic_leaving.leave(group, leavers, now_ms=self.now_ms),
            request,
        )

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
