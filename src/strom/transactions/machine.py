"""The transaction coordinator's machine: the transactional ids of one partition of its log.

Who may begin is in `beginning.py`, how it ends in `ending.py`; here the state is kept, and what
changes it is put into records. The record of a transaction is the whole transaction: applying it
is one assignment, and compacting the log by transactional id loses nothing.

A transaction whose outcome is fixed is in `prepared` until its markers are written, whether it
came there by a request, by its time-out or from the log at a start. Whoever runs the machine
writes the markers and then asks to `complete` it; what happens by itself replies with the names.

Soft state is what each producer was `Heard` of: the epoch that it had before its newest one, and by
which connection it came. Kafka's log has no place for it either.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, NamedTuple

from strom.replicated.machine import Decision, KeyValue, TimerKey
from strom.transactions.beginning import (
    NoProducer,
    check_expected,
    check_producer,
    created,
    emptied,
    missing,
    next_producer,
    with_partitions,
)
from strom.transactions.ending import (
    End,
    check_end,
    completed,
    fenced,
    is_doubtful,
    is_forgotten,
    is_overdue,
    last_epoch_after,
    needs_id,
    prepared,
)
from strom.transactions.records import NO_EPOCH, TransactionLogKey, TransactionLogValue
from strom.transactions.transaction import (
    NO_CONNECTION,
    NOBODY,
    PREPARED,
    Producer,
    State,
    TopicPartition,
    Transaction,
    record_of,
    transaction_of,
)
from strom.wire.errors import ErrorCode, KafkaError

TIME_OUT: TimerKey = ("time-out",)
EXPIRE: TimerKey = ("expire",)
#: As many in one decision, so that its batch stays small; the rest follows at once.
ENDED_MAX = 100
#: And as many partitions of theirs, each of which may be of a topic with a long name.
PARTITIONS_MAX = 3000
EXPIRED_MAX = 1000
#: Who asks again sooner than that has not had the answer: both requests were delayed.
ASKS_AGAIN_MS_MIN = 10


class Heard(NamedTuple):
    """What is known of a transactional id's producer that is not in the log."""

    #: The epoch before its newest one: what a repeated request is recognised by.
    last_epoch: int = NO_EPOCH
    #: The newest connection by which it has added partitions to its newest transaction.
    connection: int = NO_CONNECTION
    #: An older one by which it was asked to end that, and told to ask again; and when.
    doubted: int = NO_CONNECTION
    doubted_ms: int = 0


UNHEARD = Heard()


@dataclass(frozen=True, slots=True)
class Rules:
    """What the settings and the cluster's features say about transactions."""

    #: The finalised level of `transaction.version`.
    version: int
    expiration_ms: int
    time_out_interval_ms: int
    expire_interval_ms: int


class TransactionMachine:
    """The transactional ids of one coordinator partition."""

    def __init__(self, rules: Rules) -> None:
        #: Replaced by whoever runs the machine when a setting or a feature changes.
        self.rules = rules
        self.transactions: dict[str, Transaction] = {}
        #: Those with a fixed outcome that may lack markers.
        self.prepared: dict[str, Transaction] = {}
        self._ongoing: dict[str, Transaction] = {}
        self._heard: dict[str, Heard] = {}

    # Decisions: read the state, change nothing.

    def init_producer_id(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: Producer | None,
        spare_id: int | None,
        *,
        now_ms: int,
    ) -> Decision[KeyValue, Producer | NoProducer]:
        """Give the transactional id's producer to who asks, and fence off who had it."""
        known = self.transactions.get(transactional_id)
        if known is None:
            if spare_id is None:
                return Decision((), NoProducer.NEEDS_ID)
            known = created(transactional_id, spare_id, timeout_ms)
        if known.state in PREPARED:
            # Who asks may know already what it will be once the markers are written.
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        if expected is not None:
            check_expected(known, expected)
        if known.state is State.ONGOING:
            return self._changed(NoProducer.ABORTING, (known, self._fenced(known, now_ms)))
        heard = self._heard.get(transactional_id, UNHEARD)
        given = next_producer(known, expected, heard.last_epoch, spare_id)
        if given is None:
            return Decision((), NoProducer.NEEDS_ID)
        producer, last_epoch = given
        changed = emptied(known, producer, timeout_ms, now_ms)
        return Decision(
            (record_of(changed, self.rules.version),),
            producer,
            soft=((transactional_id, heard._replace(last_epoch=last_epoch)),),
        )

    def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: AbstractSet[TopicPartition],
        *,
        version: int,
        now_ms: int,
        connection: int = NO_CONNECTION,
    ) -> Decision[KeyValue, None]:
        """Take the partitions into the transaction, beginning one if none is open."""
        if transactional_id in self.prepared:
            # Who asks may know already what it will be once the markers are written.
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        known = check_producer(self.transactions.get(transactional_id), producer)
        changed = with_partitions(known, partitions, version, now_ms)
        records = () if changed is None else (record_of(changed, self.rules.version),)
        return Decision(records, None, soft=self._came_by(known, connection))

    def verify_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Iterable[TopicPartition],
    ) -> Decision[KeyValue, dict[TopicPartition, ErrorCode]]:
        """Say of each partition whether it is in the producer's open transaction."""
        known = check_producer(self.transactions.get(transactional_id), producer)
        return Decision((), {each: missing(known, each) for each in partitions})

    def end(
        self,
        transactional_id: str,
        end: End,
        *,
        spare_id: int | None,
        now_ms: int,
    ) -> Decision[KeyValue, Producer | NoProducer]:
        """Fix the transaction's outcome; the reply is the producer as it goes on."""
        known, ends = check_end(self.transactions.get(transactional_id), end)
        raises, commit, version = end.raises_epoch, end.commit, end.version
        if not ends:
            return Decision((), known.producer if raises else NOBODY)
        heard = self._heard.get(transactional_id, UNHEARD)
        if is_doubtful(end, heard.connection):
            passed_ms = now_ms - heard.doubted_ms
            if end.connection != heard.doubted:
                heard = heard._replace(doubted=end.connection, doubted_ms=now_ms)
                soft = ((transactional_id, heard),)
                return Decision((), NoProducer.DOUBTED, soft=soft)
            if 0 <= passed_ms < ASKS_AGAIN_MS_MIN:
                return Decision((), NoProducer.DOUBTED)
        next_id = None
        if needs_id(known, version):
            if spare_id is None:
                return Decision((), NoProducer.NEEDS_ID)
            next_id = spare_id
        changed = prepared(known, commit=commit, version=version, next_id=next_id, now_ms=now_ms)
        return self._changed(changed.successor if raises else NOBODY, (known, changed))

    def complete(
        self, transactional_id: str, producer: Producer, now_ms: int
    ) -> Decision[KeyValue, object]:
        """Close the transaction that this producer had prepared: every marker is written."""
        known = self.prepared.get(transactional_id)
        if known is None or known.producer != producer:
            return Decision((), None)
        return Decision((record_of(completed(known, now_ms), self.rules.version),), None)

    def on_timer(self, key: TimerKey, now_ms: int) -> Decision[KeyValue, object]:
        """Abort what takes too long, and tell which; forget what is not used."""
        return self._time_out(now_ms) if key == TIME_OUT else self._expire(now_ms)

    def on_loaded(self, now_ms: int) -> Decision[KeyValue, object]:
        """Begin to look at the clock now and then; tell which transactions are to be finished."""
        rules = self.rules
        timers = (
            (TIME_OUT, now_ms + rules.time_out_interval_ms),
            (EXPIRE, now_ms + rules.expire_interval_ms),
        )
        return Decision((), tuple(sorted(self.prepared)), timers=timers)

    def _time_out(self, now_ms: int) -> Decision[KeyValue, object]:
        overdue = [each for each in self._ongoing.values() if is_overdue(each, now_ms)]
        ended = _portion(sorted(overdue, key=_name))
        is_over = len(ended) == len(overdue)
        again_ms = now_ms + self.rules.time_out_interval_ms if is_over else now_ms
        return self._changed(
            tuple(each.transactional_id for each in ended),
            *((each, self._fenced(each, now_ms)) for each in ended),
            timers=((TIME_OUT, again_ms),),
        )

    def _expire(self, now_ms: int) -> Decision[KeyValue, object]:
        limit_ms = self.rules.expiration_ms
        gone = sorted(
            name for name, each in self.transactions.items() if is_forgotten(each, limit_ms, now_ms)
        )
        again_ms = now_ms if len(gone) > EXPIRED_MAX else now_ms + self.rules.expire_interval_ms
        gone = gone[:EXPIRED_MAX]
        return Decision(
            tuple(KeyValue(TransactionLogKey(transactional_id=each), None) for each in gone),
            (),
            timers=((EXPIRE, again_ms),),
            soft=tuple((each, None) for each in gone),
        )

    def _fenced(self, transaction: Transaction, now_ms: int) -> Transaction:
        return fenced(transaction, version=self.rules.version, now_ms=now_ms)

    def _changed(
        self,
        reply: Producer | NoProducer | tuple[str, ...],
        *changes: tuple[Transaction, Transaction],
        timers: tuple[tuple[TimerKey, int | None], ...] = (),
    ) -> Decision[KeyValue, Any]:
        """Write what transactions have become that are about to end."""
        return Decision(
            tuple(record_of(after, self.rules.version) for _, after in changes),
            reply,
            timers=timers,
            soft=tuple(self._heard_after(before, after) for before, after in changes),
        )

    def _heard_after(self, before: Transaction, after: Transaction) -> tuple[str, Heard]:
        name = before.transactional_id
        heard = self._heard.get(name, UNHEARD)
        # What was doubted is for the transaction that ends.
        return name, Heard(last_epoch_after(before, after, heard.last_epoch), heard.connection)

    def _came_by(self, transaction: Transaction, connection: int) -> tuple[tuple[str, Heard], ...]:
        name = transaction.transactional_id
        heard = self._heard.get(name, UNHEARD)
        is_newer = connection > heard.connection
        if not is_newer and transaction.state is State.ONGOING:
            return ()
        if connection == heard.connection and heard.doubted == NO_CONNECTION:
            return ()
        # Another producer of the id, by an older connection, may begin a transaction of its own.
        return ((name, Heard(heard.last_epoch, connection)),)

    # State: the durable is changed by apply and by nothing else.

    def apply(self, record: KeyValue, transaction: tuple[int, int] | None = None) -> None:
        """Take the record as what its transactional id now is."""
        assert isinstance(record.key, TransactionLogKey)
        name = record.key.transactional_id
        self.prepared.pop(name, None)
        self._ongoing.pop(name, None)
        if record.value is None:
            self.transactions.pop(name, None)
            return
        assert isinstance(record.value, TransactionLogValue)
        known = self.transactions[name] = transaction_of(name, record.value)
        if known.state in PREPARED:
            self.prepared[name] = known
        elif known.state is State.ONGOING:
            self._ongoing[name] = known

    def take_over(self, outcome: object) -> bool:
        """No decision of this machine works its outcome out."""
        return False

    def set_soft(self, key: str, value: object) -> None:
        """Remember what the producer of the transactional id was heard of."""
        if value is None or value == UNHEARD:
            self._heard.pop(key, None)
        else:
            assert isinstance(value, Heard)
            self._heard[key] = value

    def on_marker(self, producer_id: int, producer_epoch: int, *, committed: bool) -> None:
        """Nothing here is written in anybody's transaction."""


def _name(transaction: Transaction) -> str:
    return transaction.transactional_id


def _portion(transactions: Sequence[Transaction]) -> Sequence[Transaction]:
    """Return as many of the first as one decision may write, but one at least."""
    count = weight = 0
    for each in transactions[:ENDED_MAX]:
        weight += len(each.partitions)
        if count and weight > PARTITIONS_MAX:
            break
        count += 1
    return transactions[:count]
