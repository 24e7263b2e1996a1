"""A machine whose durable state comes from a log: it decides, and it applies.

A *decision* reads the state and says what to write and what to answer; it changes nothing, so
asking twice gives the same answer. *apply* is the only writer of the state, and it takes
the records of a decision as they take them that come from the log at the next start. What
differs from machine to machine is the nouns; `runtime` runs any of them.
"""

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

Record = TypeVar("Record")
Reply = TypeVar("Reply", covariant=True)
RecordIn = TypeVar("RecordIn", contravariant=True)


@dataclass(frozen=True, slots=True)
class Decision(Generic[Record, Reply]):
    """What to write, and what to answer once it is committed."""

    records: tuple[Record, ...]
    reply: Reply


class Machine(Protocol[RecordIn]):
    """What a runtime needs of a machine; its decisions are its own affair."""

    def apply(self, record: RecordIn) -> None:
        """Take the record as a fact: the only way the state changes."""
