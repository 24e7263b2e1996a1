"""A machine whose durable state comes from a log: it decides, and it applies.

A *decision* reads the state and says what to write and what to answer; it changes nothing, so
asking twice gives the same answer. *apply* is the only writer of the durable state, and it takes
the records of a decision as they take them that come from the log at the next start. What
differs from machine to machine is the nouns; `runtime` runs any of them.

Coordinators have *soft* state besides: who is about to join, who waits. It is never logged and
may be lost. It changes by what a decision says of it, and by nothing else.
"""

from typing import Generic, NamedTuple, Protocol, TypeVar

Record = TypeVar("Record")
Reply = TypeVar("Reply", covariant=True)
RecordIn = TypeVar("RecordIn", contravariant=True)

#: Names a timer of a machine: ("session", group id, member id).
TimerKey = tuple[str, ...]
#: Names a request that waits for its answer: ("join", group id, member id). It begins with the key
#: of the timer that the answer comes with, if it comes with one.
Ticket = tuple[str, ...]
#: A producer's id and epoch.
Transaction = tuple[int, int]


class Decision(NamedTuple, Generic[Record, Reply]):
    """What to write, and what to answer once it is committed."""

    records: tuple[Record, ...]
    reply: Reply
    #: When the machine wants to be called again, by key; None forgets the timer of that key.
    timers: tuple[tuple[TimerKey, int | None], ...] = ()
    #: The soft state that changes, by key (a group id): the new value, or None for gone. It is
    #: set after the records are applied.
    soft: tuple[tuple[str, object], ...] = ()
    #: Answers for earlier requests that wait; told once the records are committed.
    answers: tuple[tuple[Ticket, object], ...] = ()
    #: The records are of this producer's transaction: they count when its marker comes.
    transaction: Transaction | None = None
    #: What the records lead to, where that was worked out on the way: the machine can take it over.
    outcome: object | None = None


class Wait(NamedTuple):
    """A reply that says: no answer yet; it comes as an answer for this ticket."""

    ticket: Ticket


class KeyValue(NamedTuple):
    """A record of a coordinator's log: its newest value for a key counts, None deletes it."""

    key: object
    value: object | None


class Machine(Protocol[RecordIn]):
    """What a runtime needs of a machine; its decisions are its own affair."""

    def apply(self, record: RecordIn) -> None:
        """Take the record as a fact: the only way the state changes."""


class CoordinatorMachine(Protocol):
    """What a shard needs of its machine, besides the decisions that requests ask for."""

    def apply(self, record: KeyValue, transaction: Transaction | None = None) -> None:
        """Take the record as a fact; one of a transaction counts once that is committed."""

    def take_over(self, outcome: object) -> bool:
        """Have a decision's outcome in place of applying its records, if it is still one."""

    def set_soft(self, key: str, value: object) -> None:
        """Replace the soft state of the key; None forgets it."""

    def on_timer(self, key: TimerKey, now_ms: int) -> Decision[KeyValue, object]:
        """Decide what follows from the time of that timer having come."""

    def on_marker(self, producer_id: int, producer_epoch: int, *, committed: bool) -> None:
        """Take it as a fact that the producer's transaction has ended."""

    def on_loaded(self, now_ms: int) -> Decision[KeyValue, object]:
        """Decide what to do first, now that the log was read: timers, unfinished work."""
