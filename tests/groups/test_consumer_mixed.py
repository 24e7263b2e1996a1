"""Members of both protocols in one group: what holds for one kind holds for all of them together.

The consumers of `test_consumer_history` do what they do there; beside them there are consumers of
the classic protocol, which join, sync and send heartbeats, each step by itself, and may be gone
before any of them. One member of the consumer protocol never leaves, so the group stays one.
"""

from hypothesis import settings
from hypothesis import strategies as some
from hypothesis.stateful import initialize, invariant, precondition, rule

from strom.groups.classic.leaving import Leaver
from strom.groups.consumer.group import Phase
from strom.wire.errors import ErrorCode, KafkaError
from tests.effort import examples
from tests.groups.classic_consumer import told, wants
from tests.groups.consumer_table import INTERVAL_MS, SESSION_MS, Table, pairs, topic_id
from tests.groups.test_consumer_history import NAMES, ROUNDS, TOPICS, Consumer, Group

OUT = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)
#: The longest time that the one that stays is silent for.
SILENCE_MS = 20_000


class ClassicConsumer:
    """A consumer of the classic protocol: it gives up only what it is told to, and says so."""

    def __init__(self, table, member_id, topics):
        self.table, self.id, self.topics = table, member_id, topics
        self.generation_id = -1
        self.holds = {}
        #: What it does next: join, sync or beat.
        self.next = "join"
        self.asked_ms = table.now_ms

    def step(self):
        if self.table.now_ms - self.asked_ms >= SESSION_MS:
            # It knows that it may be out. By its old id it would be taken in as a new member, as
            # in Apache Kafka, whatever it holds.
            self.holds, self.next = {}, "join"
        self.asked_ms = self.table.now_ms
        try:
            getattr(self, f"_{self.next}")()
        except KafkaError as error:
            self._heed(error.code)

    def _join(self):
        joined = self.table.classic_join(self.id, wants(*self.topics, owned=self.holds))
        if joined.error is ErrorCode.NONE:
            self.generation_id, self.next = joined.generation_id, "sync"
        else:
            self._heed(joined.error)

    def _sync(self):
        synced = self.table.classic_sync(self.id, self.generation_id)
        if synced.error is ErrorCode.NONE:
            self.holds, self.next = told(synced.assignment), "beat"
        else:
            self._heed(synced.error)

    def _beat(self):
        self._heed(self.table.classic_beat(self.id, self.generation_id))

    def _heed(self, code):
        if code is ErrorCode.NONE:
            return
        assert code in (*OUT, ErrorCode.REBALANCE_IN_PROGRESS), code
        self.next = "join"
        if code in OUT:
            # It is out, and begins anew as somebody else.
            self.holds, self.generation_id = {}, -1
            self.id += "'"


class MixedGroup(Group):
    """A consumer group with members of both protocols."""

    #: No rule here: classic members tell partitions by the names of their topics, so between
    #: two requests they may hold some of a topic that is gone, and of no other that is called so.
    delete = None

    def __init__(self):
        super().__init__()
        self.classics = []

    @initialize(
        counts=some.fixed_dictionaries({name: some.integers(1, 4) for name in NAMES[:2]}),
        interval_ms=some.sampled_from((0, INTERVAL_MS)),
    )
    def begin(self, counts, interval_ms):
        self.table = Table(counts, group_consumer_assignment_interval_ms=interval_ms)
        self.stays = Consumer("stays", list(NAMES))
        self._beat(self.stays)

    @rule(topics=TOPICS)
    @precondition(lambda self: len(self.classics) < 4)
    def join_classically(self, topics):
        self.ids += 1
        newcomer = ClassicConsumer(self.table, f"c{self.ids}", topics)
        self.classics.append(newcomer)
        newcomer.step()

    @rule(data=some.data(), steps=some.integers(1, 3))
    @precondition(lambda self: self.classics)
    def step_classically(self, data, steps):
        classic = data.draw(some.sampled_from(self.classics))
        for _ in range(steps):
            classic.step()

    @rule(data=some.data(), topics=TOPICS)
    @precondition(lambda self: self.classics)
    def subscribe_classically(self, data, topics):
        classic = data.draw(some.sampled_from(self.classics))
        classic.topics, classic.next = topics, "join"

    @rule(data=some.data(), tells=some.booleans())
    @precondition(lambda self: self.classics)
    def leave_classically(self, data, tells):
        classic = data.draw(some.sampled_from(self.classics))
        self.classics.remove(classic)
        if tells:
            self.table.classic_leave(Leaver(classic.id))

    @rule(ms=some.sampled_from((10, INTERVAL_MS, 5000, SILENCE_MS, 3 * SILENCE_MS)))
    def wait(self, ms):
        for each in [SILENCE_MS] * (ms // SILENCE_MS) or [ms]:
            self.table.advance(each)
            self._beat(self.stays)

    @invariant()
    def nobody_reads_what_another_reads(self):
        """Of those who are members: one that is out learns of it when it next asks."""
        if not hasattr(self, "stays"):
            return
        readers = {}
        members = {each.id: each for each in self._members()}
        for reader in self._readers():
            if reader.id not in members:
                continue
            held = {(topic_id(name), each) for name in reader.holds for each in reader.holds[name]}
            member = members[reader.id]
            assert held <= pairs(member.assigned) | pairs(member.revoking)
            for place in held:
                assert place not in readers, f"{reader.id} and {readers[place]} read {place}"
                readers[place] = reader.id

    def _readers(self):
        return [self.stays, *self.consumers.values(), *self.classics]

    def teardown(self):
        if not hasattr(self, "stays"):
            return
        assert self.table.replayed() == self.table.groups
        self._come_to_rest()
        assert self.table.group.phase is Phase.STABLE
        readers = {each.id: each for each in self._readers()}
        assert set(self.table.group.members) == set(readers)
        self.consumers = readers
        self._check_readers()

    def _come_to_rest(self):
        for _ in range(ROUNDS):
            self.table.advance(5000)
            for each in self._readers():
                if isinstance(each, ClassicConsumer):
                    each.step()
                else:
                    self._beat(each)
                self.a_partition_is_with_one_member()
                self.nobody_reads_what_another_reads()


TestMixedGroup = MixedGroup.TestCase
TestMixedGroup.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
