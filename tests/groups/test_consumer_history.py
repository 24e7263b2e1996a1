"""Whatever members, topics and the clock do: one reader a partition, and the group comes to rest.

The model is what a consumer does: it holds what it was last told, and believes that it is a
member until it is told otherwise. Answers get lost. All speak the consumer protocol;
`test_consumer_mixed` has members of the classic one beside them, `test_consumer_migrating` groups
that go from one to the other.
"""

import functools

from hypothesis import settings
from hypothesis import strategies as some
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from strom.groups.consumer.gathering import TURN
from strom.groups.consumer.group import ConsumerGroup, Phase
from strom.replicated.machine import Wait
from strom.wire.errors import ErrorCode, KafkaError
from tests.effort import examples
from tests.groups.consumer_table import (
    GROUP,
    INTERVAL_MS,
    REBALANCE_MS,
    Table,
    pairs,
    plain,
    topic_id,
)

NAMES = ("ta", "tb", "ub")
PATTERNS = ("t.*", ".b", "none")
TOPICS = some.sets(some.sampled_from(NAMES), min_size=1).map(sorted)
FENCED = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)
#: Enough rounds for everybody to give up, to be given to, and for patterns to be looked at again.
ROUNDS = 40


class Consumer:
    """A consumer that uses the consumer protocol."""

    def __init__(self, member_id, topics, pattern=None, instance_id=None):
        self.id = member_id
        self.topics = topics
        self.pattern = pattern
        self.instance_id = instance_id
        self.epoch = 0
        self.holds = {}
        #: Whether the next heartbeat says everything: the last answer did not come.
        self.unsure = True
        self.told = None

    @property
    def subscription(self):
        return {"topics": self.topics} | ({"pattern": self.pattern} if self.pattern else {})

    def request(self, *, say):
        """Return what the next heartbeat says."""
        who = {"instance_id": self.instance_id}
        if self.epoch == 0:
            return who | self.subscription | {"owned": {}, "rebalance_timeout_ms": REBALANCE_MS}
        if self.unsure:
            return (
                who
                | self.subscription
                | {"owned": dict(self.holds), "rebalance_timeout_ms": REBALANCE_MS}
            )
        if say or self.told != self.holds:
            return who | {"owned": dict(self.holds)}
        return who

    def take(self, reply, said):
        self.unsure = False
        self.epoch = reply.epoch
        self.told = said.get("owned", self.told)
        if reply.assignment is not None:
            self.holds = plain(reply.assignment)

    def start_over(self):
        self.epoch, self.holds, self.told, self.unsure = 0, {}, None, True


class Group(RuleBasedStateMachine):
    """A consumer group among consumers."""

    def __init__(self):
        super().__init__()
        self.consumers = {}
        self.away = {}
        self.ids = 0

    @initialize(
        counts=some.fixed_dictionaries({name: some.integers(1, 4) for name in NAMES[:2]}),
        interval_ms=some.sampled_from((0, INTERVAL_MS)),
    )
    def begin(self, counts, interval_ms):
        self.table = Table(counts, group_consumer_assignment_interval_ms=interval_ms)

    # What can happen.

    @rule(topics=TOPICS, pattern=some.none() | some.sampled_from(PATTERNS), static=some.booleans())
    @precondition(lambda self: len(self.consumers) < 5)
    def join(self, topics, pattern, static):
        self.ids += 1
        member_id = f"m{self.ids}"
        consumer = Consumer(
            member_id,
            [] if pattern else topics,
            pattern,
            f"i{self.ids}" if static else None,
        )
        self.consumers[member_id] = consumer
        self._beat(consumer)

    @rule(data=some.data(), lost=some.booleans(), say=some.booleans())
    @precondition(lambda self: self.consumers)
    def beat(self, data, lost, say):
        self._beat(self._any(data), lost=lost, say=say)

    @rule(data=some.data())
    @precondition(lambda self: self.consumers)
    def beat_together(self, data):
        """Several ask in one turn, some twice, and some of these leave before it is over."""
        names = some.lists(some.sampled_from(sorted(self.consumers)), min_size=1, max_size=6)
        asked = [self.consumers[name] for name in data.draw(names)]
        since = len(self.table.answers)
        begun = [(each, *self._begin_beat(each)) for each in asked]
        for consumer in data.draw(some.sets(some.sampled_from(asked), max_size=1)):
            del self.consumers[consumer.id]
            self._ask(consumer, -1, {"instance_id": consumer.instance_id})
        self.table.end_turn()
        told = [ticket for ticket, _ in self.table.answers[since:] if ticket[0] == TURN]
        waits = {reply.ticket for _, _, reply in begun if isinstance(reply, Wait)}
        assert sorted(told) == sorted(waits), "each that waits is answered once, and nobody else"
        for each in begun:
            self._end_beat(*each)

    def _begin_beat(self, consumer):
        said = consumer.request(say=True)
        ask = functools.partial(self.table.ask, consumer.id, consumer.epoch, **said)
        return said, self._unless_refused(consumer, ask)

    def _end_beat(self, consumer, said, reply):
        if isinstance(reply, Wait):
            reply = self._unless_refused(consumer, lambda: self.table.answer_to(reply))
        if reply is None:
            consumer.unsure = True
        else:
            consumer.take(reply, said)

    @rule(data=some.data(), topics=TOPICS)
    @precondition(lambda self: self.consumers)
    def subscribe(self, data, topics):
        consumer = self._any(data)
        consumer.topics, consumer.unsure = topics, True
        self._beat(consumer)

    @rule(data=some.data())
    @precondition(lambda self: self.consumers)
    def leave(self, data):
        consumer = self._any(data)
        del self.consumers[consumer.id]
        self._ask(consumer, -1, {"instance_id": consumer.instance_id})

    @rule(data=some.data())
    @precondition(lambda self: any(each.instance_id for each in self.consumers.values()))
    def go_away(self, data):
        static = [each for each in self.consumers.values() if each.instance_id]
        consumer = data.draw(some.sampled_from(static))
        del self.consumers[consumer.id]
        self._ask(consumer, -2, {"instance_id": consumer.instance_id})
        self.away[consumer.id] = consumer

    @rule(data=some.data())
    @precondition(lambda self: self.away)
    def come_back(self, data):
        before = self.away.pop(data.draw(some.sampled_from(sorted(self.away))))
        self.ids += 1
        consumer = Consumer(f"m{self.ids}", before.topics, before.pattern, before.instance_id)
        self.consumers[consumer.id] = consumer
        self._beat(consumer)

    @rule(data=some.data())
    @precondition(lambda self: self.consumers)
    def crash(self, data):
        """Nothing is heard of it any more."""
        del self.consumers[self._any(data).id]

    @rule(name=some.sampled_from(NAMES), more=some.integers(1, 2))
    def grow(self, name, more):
        topic = self.table.image.topics_by_name.get(name)
        self.table.set_topic(name, more + (len(topic.partitions) if topic else 0))

    @rule(data=some.data())
    @precondition(lambda self: len(self.table.image.topics_by_name) > 1)
    def delete(self, data):
        self.table.delete_topic(
            data.draw(some.sampled_from(sorted(self.table.image.topics_by_name)))
        )

    @rule(ms=some.sampled_from((10, INTERVAL_MS, 5000, 20_000, 50_000)))
    def wait(self, ms):
        self.table.advance(ms)

    @rule()
    def fail_over(self):
        """The next coordinator knows what is in the log, which is all that must be known."""
        groups = self.table.groups
        self.table.restart()
        assert self.table.groups == groups

    def _any(self, data):
        return self.consumers[data.draw(some.sampled_from(sorted(self.consumers)))]

    def _beat(self, consumer, *, lost=False, say=False):
        said = consumer.request(say=say)
        before = self._member(consumer)
        reply = self._ask(consumer, consumer.epoch, said)
        if reply is not None:
            self._check_kept(consumer, before, said)
        if lost or reply is None:
            consumer.unsure = True
        else:
            consumer.take(reply, said)

    def _ask(self, consumer, epoch, said):
        return self._unless_refused(consumer, lambda: self.table.beat(consumer.id, epoch, **said))

    def _unless_refused(self, consumer, ask):
        try:
            return ask()
        except KafkaError as error:
            gone = (*FENCED, ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.FENCED_INSTANCE_ID)
            assert error.code in (*gone, ErrorCode.UNRELEASED_INSTANCE_ID)
            if error.code is not ErrorCode.UNRELEASED_INSTANCE_ID:
                consumer.start_over()
            return None

    def _member(self, consumer):
        group = self.table.group
        return None if group is None else group.members.get(consumer.id)

    def _check_kept(self, consumer, before, said):
        """Nothing is taken from a member that it shall have and still wants."""
        after = self._member(consumer)
        group = self.table.group
        if before is None:
            return
        wanted = {topic_id(name) for name in group.topics_of(after)}
        target = {
            (topic, each)
            for topic, partitions in group.targets.get(after.id, {}).items()
            for each in partitions
            if topic in wanted and topic in self.table.image.topics_by_id
        }
        assert pairs(before.assigned) & target <= pairs(after.assigned)

    # What must be true at any time.

    @invariant()
    def a_partition_is_with_one_member(self):
        owners = {}
        for member in self._members():
            for place in pairs(member.assigned) | pairs(member.revoking):
                assert place not in owners, f"{place} is with {owners[place]} and {member.id}"
                owners[place] = member.id
        group = self._group()
        if group is not None:
            found = {
                (topic, each): owner
                for topic, numbers in group.owners.items()
                for each, owner in numbers.items()
            }
            assert found == owners

    @invariant()
    def a_consumer_holds_only_what_is_its_own(self):
        for member in self._members():
            consumer = self.consumers.get(member.id)
            if consumer is None:
                continue
            held = {
                (topic_id(name), each) for name in consumer.holds for each in consumer.holds[name]
            }
            assert held <= pairs(member.assigned) | pairs(member.revoking)

    @invariant()
    def targets_are_disjoint_and_of_members(self):
        group = self._group()
        if group is None:
            return
        places = [
            (topic, each)
            for target in group.targets.values()
            for topic, partitions in target.items()
            for each in partitions
        ]
        assert len(places) == len(set(places))
        assert set(group.targets) <= set(group.members)

    @invariant()
    def every_member_has_a_session(self):
        for member in self._members():
            assert ("consumer-session", GROUP, member.id) in self.table.timers

    def _group(self):
        """The consumer group, if there is one."""
        group = self.table.groups.get(GROUP) if hasattr(self, "table") else None
        return group if isinstance(group, ConsumerGroup) else None

    def _members(self):
        group = self._group()
        return () if group is None else group.members.values()

    # And in the end.

    def teardown(self):
        if not hasattr(self, "table"):
            return
        assert self.table.replayed() == self.table.groups
        if self.consumers:
            self._come_to_rest()
            group = self.table.group
            assert group.phase is Phase.STABLE
            assert set(group.members) == set(self.consumers)
            self._check_readers()

    def _come_to_rest(self):
        """Everybody sends heartbeats; those who are gone run out of time."""
        for _ in range(ROUNDS):
            self.table.advance(5000)
            for consumer in list(self.consumers.values()):
                self._beat(consumer)
                self.a_partition_is_with_one_member()
                self.a_consumer_holds_only_what_is_its_own()

    def _check_readers(self):
        """Every partition that somebody wants is read, by one who wants it."""
        wanted, read = set(), []
        for consumer in self.consumers.values():
            names = self.table.group.topics_of(self.table.group.members[consumer.id])
            mine = {
                (name, each)
                for name in names
                if name in self.table.image.topics_by_name
                for each in range(len(self.table.image.topics_by_name[name].partitions))
            }
            held = {(name, each) for name in consumer.holds for each in consumer.holds[name]}
            assert held <= mine
            wanted |= mine
            read += held
        assert sorted(read) == sorted(wanted)


TestGroup = Group.TestCase
TestGroup.settings = settings(max_examples=examples(100), stateful_step_count=40, deadline=None)
