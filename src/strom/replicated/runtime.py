"""Runs the decisions of one machine: decide, append, apply, wait, answer.

The order is the point. The records are in the log before they are state; the next decision sees
the effect of this one although it is not committed yet; nobody is told anything that could
still be undone. There is no rollback: who loses the leadership throws the machine away and
builds it again from the log.
"""

from collections.abc import Callable, Sequence
from typing import Generic, ParamSpec, Protocol, TypeVar

from strom.replicated.machine import Decision, Machine

Record = TypeVar("Record")
RecordIn = TypeVar("RecordIn", contravariant=True)
Reply = TypeVar("Reply")
Arguments = ParamSpec("Arguments")


class ReplicatedLog(Protocol[RecordIn]):
    """The log that a runtime writes to."""

    @property
    def end_offset(self) -> int:
        """The offset that the next record will get."""

    def append(self, records: Sequence[RecordIn]) -> None:
        """Append the records as one batch, all or nothing; raise a KafkaError if not leader."""

    async def wait_committed(self, end_offset: int) -> None:
        """Return once all before the offset is committed; raise a KafkaError if it will not be."""


class Runtime(Generic[Record]):
    """Runs the decisions of one machine, one at a time."""

    def __init__(self, machine: Machine[Record], log: ReplicatedLog[Record]) -> None:
        self._machine = machine
        self._log = log

    async def execute(
        self,
        decide: Callable[Arguments, Decision[Record, Reply]],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Reply:
        """Run one decision; return its reply once the reply can no longer be undone."""
        reply = self.carry_out(decide, *args, **kwargs)
        await self.wait_committed()
        return reply

    def carry_out(
        self,
        decide: Callable[Arguments, Decision[Record, Reply]],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Reply:
        """Run one decision; its reply may be told after `wait_committed`, and not before."""
        # No await from here to the last apply: the next decision must see this one's effect.
        decision = decide(*args, **kwargs)
        if decision.records:
            self._log.append(decision.records)
        for record in decision.records:
            self._machine.apply(record)
        return decision.reply

    async def wait_committed(self) -> None:
        """Return once nothing that was decided by now can be undone."""
        # Even a decision that wrote nothing may have read what is not committed yet.
        await self._log.wait_committed(self._log.end_offset)
