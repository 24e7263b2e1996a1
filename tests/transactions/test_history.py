"""Whatever is asked of the coordinator, in whatever order: what must hold of transactions holds.

The model knows nothing of states and epochs. It numbers the transactions as their producers begin
them, remembers who came last to each transactional id, and what each producer asked for. From that:

- only the newest producer of an id ever gets anything into a transaction or ends one;
- a transaction ends once, in one way, and a request that was meant for an earlier one ends none:
  with version 2 whenever it comes, before if its producer had hung up by then;
- what was prepared stays prepared until it is completed, also over a restart;
- the log gives the state back, also after it was compacted; deciding changes nothing.
"""

from itertools import count

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from strom.transactions.beginning import NoProducer
from strom.transactions.ending import End
from strom.transactions.machine import EXPIRE, TIME_OUT, Rules, TransactionMachine
from strom.transactions.records import read, write_key, write_value
from strom.transactions.transaction import (
    EPOCH_MAX,
    NEXT_STATES,
    PREPARED,
    Producer,
    State,
    Transaction,
    record_of,
)
from strom.wire.errors import ErrorCode
from tests.effort import examples
from tests.replicated.replay import AnyHistory

NAMES = ["t", "u"]
CLIENTS = range(3)
PARTITIONS = [("a", 0), ("a", 1), ("__consumer_offsets", 3)]
TIMEOUT_MS, EXPIRATION_MS = 1_000, 50_000

names = st.sampled_from(NAMES)
clients = st.sampled_from(CLIENTS)


class Known:
    """What the model knows of one transactional id."""

    def __init__(self):
        self.owner = None
        #: The number of the open transaction, if there is one that its owner may write to.
        self.open = None
        self.numbers = 0
        #: By number: how it ended.
        self.outcomes = {}
        self.ending = None


class Transactions(AnyHistory):
    """Several clients that share transactional ids, repeat themselves and die."""

    def __init__(self):
        self.version = 2
        super().__init__()
        self.now_ms = 1
        self.spare = 100
        #: By name and client: the producer that the client takes itself for.
        self.held = {}
        self.known = {name: Known() for name in NAMES}
        #: Ends that were asked for: name, client, producer, outcome, the transaction meant, and by
        #: which connection.
        self.asked = []
        #: Those of them that have not come yet, whose clients wait no more.
        self.delayed = []
        self.numbers = count(1)
        self.connections = [next(self.numbers) for _ in CLIENTS]

    @initialize(version=st.sampled_from([0, 1, 2]), epoch=st.sampled_from([0, EPOCH_MAX - 4]))
    def begin(self, version, epoch):
        """Some have few epochs left."""
        self.version = version
        self.machine = self.new_machine()
        if epoch:
            used = Transaction("t", Producer(50, epoch), TIMEOUT_MS, updated_ms=self.now_ms)
            record = self.to_bytes(record_of(used, version))
            self.log.append(record)
            self.machine.apply(self.from_bytes(record))

    def new_machine(self):
        return TransactionMachine(Rules(self.version, EXPIRATION_MS, 10, 10))

    def state_of(self, machine):
        return dict(machine.transactions), dict(machine.prepared), dict(machine._ongoing)

    def to_bytes(self, record):
        return write_key(record.key), None if record.value is None else write_value(record.value)

    def from_bytes(self, data):
        return read(*data)

    def decide(self, ask):
        """Also carry the soft state, and look at every change that is made."""
        before = dict(self.machine.transactions)
        decision = None

        def asked():
            nonlocal decision
            decision = ask()
            return decision

        reply = super().decide(asked)
        if decision is not None:
            for key, value in decision.soft:
                self.machine.set_soft(key, value)
        for name, after in self.machine.transactions.items():
            self.check_change(before.get(name), after)
        return reply

    def check_change(self, before, after):
        if before is None or before == after:
            return
        assert after.state in NEXT_STATES[before.state]
        assert after.producer.epoch <= EPOCH_MAX
        if before.producer.id == after.producer.id:
            assert after.producer.epoch >= before.producer.epoch
        if before.state is State.ONGOING:
            assert after.partitions >= before.partitions

    def with_spare(self, ask):
        reply = self.decide(lambda: ask(None))
        if reply is NoProducer.NEEDS_ID:
            self.spare += 1
            reply = self.decide(lambda: ask(self.spare))
            assert reply is not NoProducer.NEEDS_ID
        return reply

    def is_refused(self, reply):
        return isinstance(reply, tuple) and isinstance(reply[0], ErrorCode)

    # What clients do.

    @rule(name=names, client=clients, says_epoch=st.booleans())
    def init(self, name, client, says_epoch):
        known, held = self.known[name], self.held.get((name, client))
        expected = held if says_epoch else None
        reply = self.with_spare(
            lambda spare: self.machine.init_producer_id(
                name, TIMEOUT_MS, expected, spare, now_ms=self.now_ms
            )
        )
        if self.is_refused(reply):
            return
        if reply is NoProducer.ABORTING:
            assert known.open is not None
            assert expected is None or known.owner == client, "a zombie aborted its successor's"
            known.ending, known.open = (known.open, False), None
            return
        assert known.open is None and known.ending is None
        if expected is not None and held.epoch >= 0:
            others = [each for (of, who), each in self.held.items() if of == name and who != client]
            assert all(each < reply for each in others if each.id == reply.id)
        known.owner = client
        self.held[name, client] = reply

    @rule(name=names, client=clients, partition=st.sampled_from(PARTITIONS))
    def add(self, name, client, partition):
        known, held = self.known[name], self.held.get((name, client), Producer(7, 0))
        reply = self.decide(
            lambda: self.machine.add_partitions(
                name,
                held,
                {partition},
                version=self.version,
                now_ms=self.now_ms,
                connection=self.connections[client],
            )
        )
        if self.is_refused(reply):
            return
        assert known.owner == client, "a zombie got something in"
        assert known.ending is None
        assert partition in self.machine.transactions[name].partitions
        if known.open is None:
            known.numbers += 1
            known.open = known.numbers

    @rule(name=names, client=clients, commit=st.booleans(), times=st.integers(1, 2))
    def end(self, name, client, commit, times=1):
        """Some ask twice at once, by the same connection."""
        request = self.asking_to_end(name, client, commit)
        if not commit or self.known[name].open is not None:
            # Nobody repeats what was refused: to commit what was not begun.
            self.asked.append(request)
        for _ in range(times):
            self.ask_to_end(*request)

    def asking_to_end(self, name, client, commit):
        held = self.held.get((name, client), Producer(7, 0))
        return name, client, held, commit, self.known[name].open, self.connections[client]

    @precondition(lambda self: any(each.open is not None for each in self.known.values()))
    @rule(data=st.data(), commit=st.booleans(), goes_on=st.booleans())
    def end_and_hang_up(self, data, commit, goes_on):
        """The network keeps the request; its client goes on by another connection."""
        begun = [name for name, each in self.known.items() if each.open is not None]
        name = data.draw(st.sampled_from(begun))
        client = self.known[name].owner
        self.delayed.append(self.asking_to_end(name, client, commit))
        self.connections[client] = next(self.numbers)
        if goes_on:
            self.end(name, client, commit)
            self.write_markers(name)
            self.add(name, client, PARTITIONS[0])

    @precondition(lambda self: self.delayed)
    @rule(data=st.data())
    def an_end_arrives_late(self, data):
        which = data.draw(st.sampled_from(range(len(self.delayed))))
        self.ask_to_end(*self.delayed.pop(which))

    @precondition(lambda self: self.asked and self.version == 2)
    @rule(data=st.data())
    def end_again(self, data):
        """A request that was delayed, or sent again, and no connection tells."""
        self.ask_to_end(*data.draw(st.sampled_from(self.asked)))

    def ask_to_end(self, name, client, producer, commit, number, connection):
        known, before = self.known[name], self.machine.transactions.get(name)
        reply = self.with_spare(
            lambda spare: self.machine.end(
                name,
                End(producer, commit, self.version, connection),
                spare_id=spare,
                now_ms=self.now_ms,
            )
        )
        after = self.machine.transactions.get(name)
        if self.is_refused(reply) or reply is NoProducer.DOUBTED:
            assert reply is not NoProducer.DOUBTED or connection != self.connections[client]
            assert after == before
            return
        if after != before:
            assert known.owner == client, "a zombie ended a transaction"
            if known.open is not None:
                assert number == known.open, "it was meant for another"
                known.ending, known.open = (known.open, commit), None
            else:
                assert not commit and self.version == 2
                known.ending = 0, False
            assert after.committed is commit
        elif number is not None and self.version == 2:
            assert known.outcomes.get(number, commit) is commit, "two outcomes were told"
        if self.version == 2 and self.held.get((name, client)) == producer:
            self.held[name, client] = reply

    # What happens to all of them.

    @precondition(lambda self: self.machine.prepared)
    @rule(data=st.data())
    def markers_are_written(self, data):
        self.write_markers(data.draw(st.sampled_from(sorted(self.machine.prepared))))

    def write_markers(self, name):
        known, prepared = self.known[name], self.machine.prepared[name]
        number, committed = known.ending
        assert prepared.committed is committed
        self.decide(lambda: self.machine.complete(name, prepared.producer, self.now_ms))
        assert self.machine.transactions[name].partitions == frozenset()
        known.outcomes[number], known.ending = committed, None

    @rule(name=names, client=clients)
    def a_late_completion_changes_nothing(self, name, client):
        held = self.held.get((name, client), Producer(7, 0))
        known = self.machine.prepared.get(name)
        if known is None or known.producer != held:
            decision = self.machine.complete(name, held, self.now_ms)
            assert decision.records == ()

    @rule(passed_ms=st.sampled_from([1, TIMEOUT_MS, EXPIRATION_MS]))
    def time_passes(self, passed_ms):
        self.now_ms += passed_ms
        self.decide(lambda: self.machine.on_timer(TIME_OUT, self.now_ms))
        for name in NAMES:
            known = self.known[name]
            if known.open is not None and name in self.machine.prepared:
                assert not self.machine.prepared[name].committed
                known.ending, known.open = (known.open, False), None
        self.decide(lambda: self.machine.on_timer(EXPIRE, self.now_ms))
        for name in NAMES:
            if name not in self.machine.transactions:
                assert self.known[name].open is None and self.known[name].ending is None
                self.known[name].owner = None

    @rule(compacted=st.booleans())
    def restart(self, compacted):
        if compacted:
            self.log = list({key: (key, value) for key, value in self.log}.values())
        again = self.new_machine()
        for data in self.log:
            again.apply(self.from_bytes(data))
        assert self.state_of(again) == self.state_of(self.machine)
        self.machine = again
        # Nobody's connection is there any more, nor what was on its way.
        self.delayed.clear()
        self.connections = [next(self.numbers) for _ in CLIENTS]

    @invariant()
    def the_model_and_the_machine_agree_on_what_is_open(self):
        for name, known in self.known.items():
            found = self.machine.transactions.get(name)
            assert (known.open is not None) == (found is not None and found.state is State.ONGOING)
            assert (known.ending is not None) == (found is not None and found.state in PREPARED)


TestTransactions = Transactions.TestCase
TestTransactions.settings = settings(
    max_examples=examples(150), stateful_step_count=40, deadline=None
)
