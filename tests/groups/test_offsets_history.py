"""Whatever is asked about offsets, in whatever order: what Kafka promises of them holds.

The model is the list of all commits, in the order in which they were written, each with the
transaction that it is of. What a group has committed for a partition is the last one that counts.
The log, with its markers, gives the durable state back; also after its older values were compacted
away, and whether it is read with markers in the middle of a slice or not.
"""

from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as some
from hypothesis.stateful import invariant, rule

from strom.groups.committing import Commit, NewOffset, Query, Wanted
from strom.groups.machine import DELETED_TOPIC, EXPIRE, GroupMachine
from strom.groups.owners import Author
from strom.groups.records import NO_TOPIC_ID, OffsetCommitKey, read, write_key, write_value
from strom.metadata.image import Image
from strom.metadata.settings.values import BrokerSettings
from strom.wire.errors import ErrorCode
from tests.replicated.replay import AnyHistory

GROUPS, TOPICS, PARTITIONS, PRODUCERS = ["g", "h"], ["t", "u"], [0, 1], [1, 2]
PLACES = [(topic, partition) for topic in TOPICS for partition in PARTITIONS]
IDS = {"t": UUID(int=5), "u": UUID(int=6)}
RETENTION_MS = 10_080 * 60_000

groups = some.sampled_from(GROUPS)
places = some.sampled_from(PLACES)
producers = some.sampled_from(PRODUCERS)


class Written:
    """A commit, as the model knows it."""

    def __init__(self, offset, producer, at_ms):
        self.offset = offset
        #: The producer whose transaction decides, None if it counts already.
        self.producer = producer
        self.at_ms = at_ms


class OffsetHistory(AnyHistory):
    """Consumers, transactions, deletions and time, all on the same few partitions."""

    def __init__(self):
        super().__init__()
        self.now_ms = 1
        self.next_offset = 0
        #: By group and place: commits in the order in which they were written.
        self.model = {(group, place): [] for group in GROUPS for place in PLACES}

    def new_machine(self):
        return GroupMachine(Image(), BrokerSettings())

    def state_of(self, machine):
        offsets = machine.offsets
        pending = {
            producer: {spot: each.value for spot, each in of_producer.items()}
            for producer, of_producer in offsets.by_producer.items()
        }
        return offsets.by_group, pending, offsets.open, machine.groups

    def to_bytes(self, record):
        value = None if record.value is None else write_value(record.value)
        return write_key(record.key), value

    def from_bytes(self, data):
        return read(*data)

    def decide(self, ask):
        """Carry out a decision, with all that it says."""
        before = self.state_of(self.machine)
        first, second = ask(), ask()
        assert first == second, "asking twice gave two answers"
        assert self.state_of(self.machine) == before, "a decision changed the state"
        for record in first.records:
            data = self.to_bytes(record)
            self.log.append((data, first.transaction))
            self.machine.apply(self.from_bytes(data), first.transaction)
        for key, value in first.soft:
            self.machine.set_soft(key, value)
        return first

    def replay(self, log):
        machine = self.new_machine()
        for entry, transaction in log:
            if isinstance(entry, tuple):
                machine.apply(self.from_bytes(entry), transaction)
            else:
                machine.on_marker(*transaction, committed=entry)
        return machine

    # What happens.

    @rule(group=groups, chosen=some.lists(places, min_size=1, unique=True))
    def commit(self, group, chosen):
        self.write(group, chosen, None)

    @rule(group=groups, chosen=some.lists(places, min_size=1, unique=True), producer=producers)
    def commit_in_a_transaction(self, group, chosen, producer):
        self.write(group, chosen, producer)

    def write(self, group, chosen, producer):
        new = []
        for topic, partition in chosen:
            self.next_offset += 1
            new.append(NewOffset(topic, partition, self.next_offset, topic_id=IDS[topic]))
            written = Written(self.next_offset, producer, self.now_ms)
            self.model[group, (topic, partition)].append(written)
        transaction = None if producer is None else (producer, 0)
        author = Author(is_transactional=producer is not None)
        asked = Commit(group, author, new, transaction=transaction)
        done = self.decide(lambda: self.machine.commit_offsets(asked, self.now_ms))
        assert done.reply == [ErrorCode.NONE] * len(new)

    @rule(producer=producers, committed=some.booleans())
    def end_transaction(self, producer, committed):
        self.log.append((committed, (producer, 0)))
        self.machine.on_marker(producer, 0, committed=committed)
        for commits in self.model.values():
            for each in [each for each in commits if each.producer == producer]:
                if committed:
                    each.producer = None
                else:
                    commits.remove(each)

    @rule(group=groups, chosen=some.lists(places, min_size=1, unique=True))
    def delete(self, group, chosen):
        if group not in self.machine.group_ids():
            return
        self.decide(lambda: self.machine.delete_offsets(group, chosen))
        for place in chosen:
            self.model[group, place].clear()

    @rule(topic=some.sampled_from(TOPICS))
    def delete_topic(self, topic):
        key = (DELETED_TOPIC, topic, IDS[topic].hex)
        self.decide(lambda: self.machine.on_timer(key, self.now_ms))
        for (_, place), commits in self.model.items():
            if place[0] == topic:
                commits.clear()

    @rule(passed_ms=some.sampled_from([1, RETENTION_MS // 2, RETENTION_MS]))
    def expire(self, passed_ms):
        self.now_ms += passed_ms
        self.decide(lambda: self.machine.on_timer((EXPIRE, ""), self.now_ms))
        for commits in self.model.values():
            counting = [each for each in commits if each.producer is None]
            is_open = len(counting) < len(commits)
            if counting and not is_open and counting[-1].at_ms <= self.now_ms - RETENTION_MS:
                commits.clear()

    # What must hold.

    @invariant()
    def the_last_commit_that_counts_is_told(self):
        for group in GROUPS:
            topics = [Wanted(topic, NO_TOPIC_ID, PARTITIONS) for topic in TOPICS]
            told = self.machine.fetch_offsets(Query(group, topics)).reply
            for topic, found in told:
                for each in found:
                    commits = self.model[group, (topic, each.partition)]
                    counting = [one.offset for one in commits if one.producer is None]
                    offset = None if each.value is None else each.value.offset
                    assert offset == (counting[-1] if counting else None)

    @invariant()
    def offsets_are_unstable_while_a_transaction_may_change_them(self):
        for (group, (topic, partition)), commits in self.model.items():
            wanted = [Wanted(topic, NO_TOPIC_ID, [partition])]
            asked = Query(group, wanted, require_stable=True)
            ((_, (answer,)),) = self.machine.fetch_offsets(asked).reply
            is_open = any(each.producer is not None for each in commits)
            assert (answer.code is ErrorCode.UNSTABLE_OFFSET_COMMIT) == is_open

    @invariant()
    def replay_gives_the_state_back(self):
        assert self.state_of(self.replay(self.log)) == self.state_of(self.machine)

    @invariant()
    def so_does_the_compacted_log(self):
        """Of what was decided, the newest value of each key is enough."""
        ends = {}
        for number, (entry, transaction) in enumerate(self.log):
            if isinstance(entry, bool):
                ends.setdefault(transaction[0], []).append((number, entry))
        kept, seen = [], set()
        for number, (entry, transaction) in reversed(list(enumerate(self.log))):
            fate = True
            if transaction is not None and isinstance(entry, tuple):
                later = [way for at, way in ends.get(transaction[0], ()) if at > number]
                fate = later[0] if later else None
            if isinstance(entry, bool) or fate is None or (fate and entry[0] not in seen):
                kept.append((entry, transaction))
            if fate and isinstance(entry, tuple):
                seen.add(entry[0])
        replayed = self.replay(kept[::-1])
        assert self.state_of(replayed)[0] == self.state_of(self.machine)[0]


TestOffsetHistory = OffsetHistory.TestCase
TestOffsetHistory.settings = settings(deadline=None, stateful_step_count=30)


def test_a_key_of_the_model_is_a_key_of_the_log():
    assert (
        write_key(OffsetCommitKey(group="g", topic="t", partition=1))
        == b"\0\x01\0\x01g\0\x01t\0\0\0\x01"
    )
