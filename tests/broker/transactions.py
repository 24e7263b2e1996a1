"""What tests of transactions in the broker share: a coordinator and partitions without a broker."""

import asyncio
from types import SimpleNamespace

from strom.log.appending import Appended
from strom.log.producers import Producers, read_marker
from strom.records.batch import read_header
from strom.transactions.machine import Rules, TransactionMachine
from strom.wire.errors import ErrorCode, KafkaError

RULES = Rules(2, 10**9, 10_000, 10_000)


class Shard:
    """A coordinator whose decisions are carried out at once, or when the test says so."""

    def __init__(self):
        self.machine = TransactionMachine(RULES)
        self.log = SimpleNamespace(partition=SimpleNamespace(leader_epoch=3))
        self.is_closed = False
        self.told = []
        #: Raised by the next decisions, one after the other.
        self.failures = []
        #: Awaited before a reply is given, if there is one.
        self.commit = None
        #: Awaited for what could not be committed at once.
        self.settled = asyncio.Event()

    def run(self, decide, *args, **kwargs):
        if self.failures:
            raise self.failures.pop(0)
        decision = decide(*args, **kwargs)
        for record in decision.records:
            self.told.append((decide.__name__, record.value.transaction_status))
            self.machine.apply(record)
        for key, value in decision.soft:
            self.machine.set_soft(key, value)
        return decision.reply if self.commit is None else self._later(decision.reply)

    async def _later(self, reply):
        await self.commit.wait()
        return reply

    async def wait_settled(self):
        await self.settled.wait()


class Partition:
    """A partition that takes markers, unless it is told to refuse them."""

    def __init__(self, told, place):
        self.told, self.place = told, place
        self.is_leader = True
        self.refusals = []
        self.committed = None
        self.log = SimpleNamespace(
            producers=Producers("t-0"),
            active=SimpleNamespace(is_loaded=True, offset_index_now=lambda: None),
        )

    def append_own(self, batch, now_ms, version=0):
        if self.refusals:
            raise KafkaError(self.refusals.pop(0))
        header = read_header(batch)
        kind = read_marker(header, bytes(batch)).type.name
        self.told.append((self.place, kind, header.producer_epoch, version))
        return Appended(0, 0, -1, False)

    def is_committed(self, last_offset):
        return self.committed is None or self.committed.is_set()

    async def wait_committed(self, last_offset, timeout_ms):
        await self.committed.wait()
        return True


class Replicas:
    """The partitions there are."""

    def __init__(self, told, *places):
        self.by_place = {each: Partition(told, each) for each in places}

    def find(self, topic, index):
        return self.by_place.get((topic, index))

    def leader_of(self, topic, index):
        found = self.find(topic, index)
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return found


class Image:
    """Which partitions the metadata has."""

    def __init__(self, replicas):
        self.places = set(replicas.by_place)

    def partition(self, topic, index):
        return "a partition" if (topic, index) in self.places else None
