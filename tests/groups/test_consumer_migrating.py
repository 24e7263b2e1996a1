"""A group that goes from one protocol to the other and back, at any moment, while members read.

The members of `test_consumer_mixed` do what they do there, but nobody of the consumer protocol
has to stay: then the group is a classic one, whose members wait for each other and whose leader
shares the partitions. At no time is a partition with two members, whichever protocol they speak.
"""

from hypothesis import settings
from hypothesis import strategies as some
from hypothesis.stateful import invariant, precondition, rule

from strom.groups.consumer.embedded import read_subscription, write_assignment
from strom.replicated.machine import Wait
from strom.wire.errors import ErrorCode
from tests.effort import examples
from tests.groups.classic_consumer import told, wants
from tests.groups.consumer_table import INTERVAL_MS, topic_id
from tests.groups.test_consumer_history import TOPICS
from tests.groups.test_consumer_mixed import OUT, SILENCE_MS, ClassicConsumer, MixedGroup


class PatientConsumer(ClassicConsumer):
    """Waits for the others of a classic group, and shares the partitions if it leads it.

    As cooperative consumers do: it gives up what it does not want any more before it joins, and
    what somebody holds stays there.
    """

    def __init__(self, table, member_id, topics):
        super().__init__(table, member_id, topics)
        self.is_known = False
        #: What it waits with, and how many answers there were when it asked.
        self.ticket, self.since = None, 0
        self.joined = None

    def step(self):
        if self.ticket is None:
            super().step()
            return
        answers = [
            reply for ticket, reply in self.table.answers[self.since :] if ticket == self.ticket
        ]
        if answers:
            self.ticket, self.asked_ms = None, self.table.now_ms
            self._take(answers[-1])

    def hang_up(self):
        """Wait no more; it joins again."""
        if self.ticket is not None:
            self.ticket, self.next = None, "join"

    def _join(self):
        self.holds = {name: each for name, each in self.holds.items() if name in self.topics}
        self.since = len(self.table.answers)
        self._hear(
            self.table.classic_join(
                self.id if self.is_known else "",
                wants(*self.topics, owned=self.holds),
                new_member_id=self.id,
                must_return=False,
            )
        )

    def _sync(self):
        self.since = len(self.table.answers)
        given = {}
        if self.joined.members:
            given = share(self.table, self.joined.members)
        self._hear(self.table.classic_sync(self.id, self.generation_id, assignments=given))

    def _hear(self, reply):
        if isinstance(reply, Wait):
            self.ticket = reply.ticket
            # It may be the one that the others waited for.
            self.step()
        else:
            self._take(reply)

    def _take(self, reply):
        if reply.error is not ErrorCode.NONE:
            self._heed(reply.error)
        elif self.next == "join":
            self.joined, self.generation_id, self.is_known = reply, reply.generation_id, True
            self.next = "sync"
        else:
            self.holds = told(reply.assignment) if reply.assignment else {}
            self.next = "beat"

    def _heed(self, code):
        super()._heed(code)
        if code in OUT:
            self.is_known = False


def numbers(holds):
    """What is held, one by one."""
    return {(name, each) for name in holds for each in holds[name]}


def share(table, members):
    """Return what each member of a classic group gets from its leader."""
    wishes = {each.member_id: read_subscription(each.metadata) for each in members}
    held = {
        (topic.topic, number): member_id
        for member_id, wish in wishes.items()
        for topic in wish.owned_partitions
        for number in topic.partitions
    }
    given = {member_id: {} for member_id in wishes}
    for name in sorted({name for wish in wishes.values() for name in wish.topics}):
        topic = table.image.topics_by_name.get(name)
        for number in sorted(topic.partitions) if topic is not None else ():
            readers = [each for each, wish in wishes.items() if name in wish.topics]
            reader = held.get((name, number)) or min(
                readers, key=lambda each: sum(map(len, given[each].values()))
            )
            given[reader].setdefault(topic_id(name), set()).add(number)
    return {
        member_id: write_assignment(parts, 1, table.image) for member_id, parts in given.items()
    }


class MigratingGroup(MixedGroup):
    """A group of whichever protocol its members speak."""

    @rule(topics=TOPICS)
    @precondition(lambda self: len(self.classics) < 4)
    def join_classically(self, topics):
        self.ids += 1
        newcomer = PatientConsumer(self.table, f"c{self.ids}", topics)
        self.classics.append(newcomer)
        newcomer.step()

    @rule()
    @precondition(lambda self: self.stays.epoch > 0)
    def the_one_that_stays_leaves(self):
        self._ask(self.stays, -1, {})
        self.stays.start_over()

    @rule()
    def the_one_that_stays_comes_back(self):
        self._beat(self.stays)

    @rule(data=some.data(), tells=some.booleans())
    @precondition(lambda self: self.consumers)
    def all_consumers_go(self, data, tells):
        """So that nobody is left who speaks the consumer protocol."""
        for consumer in [*self.consumers.values(), self.stays]:
            if tells:
                self._ask(consumer, -1, {"instance_id": consumer.instance_id})
        self.consumers = {}
        self.stays.start_over()

    @rule(rounds=some.integers(1, 3))
    @precondition(lambda self: self.classics)
    def all_classics_go_on(self, rounds):
        for _ in range(rounds):
            for classic in self.classics:
                classic.step()

    @rule(data=some.data(), topics=TOPICS)
    @precondition(lambda self: self.classics)
    def subscribe_classically(self, data, topics):
        classic = data.draw(some.sampled_from(self.classics))
        classic.hang_up()
        classic.topics, classic.next = topics, "join"

    @rule()
    def fail_over(self):
        super().fail_over()
        for classic in self.classics:
            classic.hang_up()

    @rule(ms=some.sampled_from((10, INTERVAL_MS, 5000, SILENCE_MS, 3 * SILENCE_MS)))
    def wait(self, ms):
        for each in [SILENCE_MS] * (ms // SILENCE_MS) or [ms]:
            self.table.advance(each)
            if self.stays.epoch > 0:
                self._beat(self.stays)

    @invariant()
    def nobody_reads_what_another_reads(self):
        if not hasattr(self, "stays"):
            return
        super().nobody_reads_what_another_reads()
        group = self.table.group
        if group is None:
            return
        readers = {}
        for reader in self._readers():
            if reader.id not in group.members:
                continue
            for place in numbers(reader.holds):
                assert place not in readers, f"{reader.id} and {readers[place]} read {place}"
                readers[place] = reader.id

    def teardown(self):
        if not hasattr(self, "stays"):
            return
        self._beat(self.stays)
        super().teardown()


TestMigratingGroup = MigratingGroup.TestCase
TestMigratingGroup.settings = settings(
    max_examples=examples(60), stateful_step_count=40, deadline=None
)
