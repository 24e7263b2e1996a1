"""A transaction coordinator whose decisions are carried out at once."""

from dataclasses import replace
from itertools import count

import pytest

from strom.replicated.machine import Decision
from strom.transactions.beginning import NoProducer
from strom.transactions.ending import End
from strom.transactions.machine import Rules
from strom.transactions.machine import TransactionMachine as Machine
from strom.transactions.transaction import Producer, Transaction, record_of
from strom.wire.errors import KafkaError

RULES = Rules(
    version=2,
    expiration_ms=1_000_000,
    time_out_interval_ms=10_000,
    expire_interval_ms=3_600_000,
)
A, B = ("a", 0), ("b", 1)
TIMEOUT_MS = 60_000


class Table:
    """A machine whose decisions are carried out at once."""

    def __init__(self, version=2):
        self.machine = Machine(replace(RULES, version=version))
        self.version = version
        self.now_ms = 1_000
        self.ids = count(100)

    def do(self, decision: Decision):
        for record in decision.records:
            self.machine.apply(record)
        for key, value in decision.soft:
            self.machine.set_soft(key, value)
        return decision.reply

    def init(self, name="t", expected=None, timeout_ms=TIMEOUT_MS):
        def ask(spare_id):
            return self.machine.init_producer_id(
                name, timeout_ms, expected, spare_id, now_ms=self.now_ms
            )

        reply = self.do(ask(None))
        return self.do(ask(next(self.ids))) if reply is NoProducer.NEEDS_ID else reply

    def add(self, producer, *partitions, name="t", **by):
        decision = self.machine.add_partitions(
            name, producer, frozenset(partitions), version=self.version, now_ms=self.now_ms, **by
        )
        return self.do(decision)

    def end(self, producer, commit=True, version=None, name="t", **by):
        def ask(spare_id):
            asked = End(producer, commit, self.version if version is None else version, **by)
            return self.machine.end(name, asked, spare_id=spare_id, now_ms=self.now_ms)

        reply = self.do(ask(None))
        return self.do(ask(next(self.ids))) if reply is NoProducer.NEEDS_ID else reply

    def complete(self, name="t"):
        known = self.machine.prepared[name]
        self.do(self.machine.complete(name, known.producer, self.now_ms))

    def put(self, state, epoch=5, **other):
        """Have a transaction in a state, however it came there."""
        transaction = Transaction("t", Producer(7, epoch), TIMEOUT_MS, state, **other)
        self.machine.apply(record_of(transaction, self.machine.rules.version))
        return transaction.producer

    def state(self, name="t"):
        return self.machine.transactions[name].state

    def restart(self):
        """Go on with what the log has; soft state is lost."""
        again = Machine(self.machine.rules)
        for each in self.machine.transactions.values():
            again.apply(record_of(each, again.rules.version))
        self.machine = again


def refused(code):
    return pytest.raises(KafkaError, match=rf"^{code.name}")
