"""One partition's coordinator: its machine, and how its decisions are carried out.

    decide ─▶ append ─▶ apply ─▶ timers, soft state ─▶ answers, once it cannot be undone

With one replica that is at once. Who must wait for what others do waits with a ticket, which a
later decision answers.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Generic, ParamSpec, TypeVar, cast

from strom.broker.coordinator_log import CoordinatorLog
from strom.broker.pending import Pending, answer_of
from strom.broker.timers import Timers
from strom.records.control_key import ControlType
from strom.records.marker import write_marker
from strom.records.record import Producer
from strom.replicated.machine import (
    CoordinatorMachine,
    Decision,
    KeyValue,
    Ticket,
    TimerKey,
    Wait,
)
from strom.wire.errors import ErrorCode, KafkaError

log = logging.getLogger("strom.coordination")

#: When something that is due is tried again that could not be written, or that failed by a fault.
RETRY_MS = 500
FAULT_RETRY_MS = 60_000

Reply = TypeVar("Reply")
Arguments = ParamSpec("Arguments")
Outcome = Decision[KeyValue, object]
StartTask = Callable[[Coroutine[Any, Any, None]], object]

M = TypeVar("M", bound=CoordinatorMachine)
#: Those who wait, each with its answer.
Told = list[tuple[Pending, object]]
OnAlone = Callable[["Shard[M]", object], None]


def told_nobody(_shard: object, _reply: object) -> None:
    """What a decision that nobody asked for replies to nobody."""


def tell(told: Told) -> None:
    """Answer each."""
    for pending, answer in told:
        pending.settle(answer)


def refuse(told: Told, error: KafkaError) -> None:
    """Refuse each for the same reason."""
    for pending, _ in told:
        pending.settle(KafkaError(error.code, error.message))


class Shard(Generic[M]):
    """One partition's coordinator: its machine, and how its decisions are carried out."""

    def __init__(
        self,
        machine: M,
        log: CoordinatorLog,
        now_ms: Callable[[], int],
        steady_ms: Callable[[], int],
        start_task: StartTask,
    ) -> None:
        self.machine = machine
        self.log = log
        self.is_loaded = False
        self.is_closed = False
        #: Told the reply of each decision that nobody asked for, once it is committed.
        self.on_alone: OnAlone[M] = told_nobody
        self._now_ms = now_ms
        self._start_task = start_task
        self._timers = Timers(now_ms, steady_ms, self._on_timer)
        #: Those who wait for an answer that a later decision gives.
        self._waiting: dict[Ticket, list[Pending]] = {}
        #: Those whose answer is there, and told once it is committed.
        self._being_told: list[Told] = []

    @property
    def index(self) -> int:
        """The number of the partition."""
        return self.log.partition.index

    def run(
        self,
        decide: Callable[Arguments, Decision[KeyValue, Reply]],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Reply | Coroutine[Any, Any, Reply]:
        """Carry out one decision; return its reply, or what gives it once it cannot be undone."""
        reply = self.carry_out(decide(*args, **kwargs))
        assert not isinstance(reply, Pending)
        return reply

    async def execute(
        self,
        decide: Callable[Arguments, Decision[KeyValue, Reply | Wait]],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Reply:
        """Carry out one decision; return its reply once that cannot be undone."""
        reply = self.carry_out(decide(*args, **kwargs))
        if isinstance(reply, Pending):
            return cast(Reply, await answer_of(reply))
        return await reply if isinstance(reply, Coroutine) else reply

    def carry_out(
        self, decision: Decision[KeyValue, Reply | Wait]
    ) -> Reply | Coroutine[Any, Any, Reply] | Pending:
        """Carry out what was just decided; the answer may depend on others."""
        if self.is_closed:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        # No await from the decision to here and on to the end: the next one must see its effect.
        if decision.records:
            self._write(decision)
        for key, value in decision.soft:
            self.machine.set_soft(key, value)
        for timer, due_ms in decision.timers:
            self._timers.set(timer, due_ms)
        reply = decision.reply
        waiting = self._wait_for(reply.ticket) if isinstance(reply, Wait) else None
        end_offset = self.log.end_offset
        is_committed = self.log.is_committed(end_offset)
        if decision.answers:
            told = self._take_waiting(decision.answers)
            if is_committed:
                tell(told)
            else:
                # Not left to who asked: that one may be gone by then.
                self._being_told.append(told)
                self._start_task(self._tell_later(told, end_offset))
        if waiting is not None:
            return waiting
        assert not isinstance(reply, Wait)
        # Even a decision that wrote nothing may have read what is not committed yet.
        return reply if is_committed else self._reply_later(reply, end_offset)

    def _write(self, decision: Decision[KeyValue, object]) -> None:
        records, transaction = decision.records, decision.transaction
        self.log.append(records, self._now_ms(), transaction)
        if decision.outcome is not None and self.machine.take_over(decision.outcome):
            return
        apply = self.machine.apply
        for record in records:
            apply(record, transaction)

    async def _reply_later(self, reply: Reply, end_offset: int) -> Reply:
        await self.log.wait_committed(end_offset)
        return reply

    # Those who wait.

    def _wait_for(self, ticket: Ticket) -> Pending:
        pending = Pending(ticket, self._forget)
        self._waiting.setdefault(ticket, []).append(pending)
        return pending

    def _forget(self, pending: Pending) -> None:
        waiting = self._waiting.get(pending.ticket)
        if waiting is not None and pending in waiting:
            waiting.remove(pending)
            if not waiting:
                del self._waiting[pending.ticket]

    def _take_waiting(self, answers: Iterable[tuple[Ticket, object]]) -> Told:
        """Return whom the answers are for; who asks from now on waits for the next one."""
        # Who asked twice is answered twice.
        return [
            (pending, answer)
            for ticket, answer in answers
            for pending in self._waiting.pop(ticket, ())
        ]

    async def _tell_later(self, told: Told, end_offset: int) -> None:
        try:
            await self.log.wait_committed(end_offset)
        except KafkaError as error:
            refuse(told, error)
        else:
            tell(told)
        finally:
            self._being_told.remove(told)

    def _refuse(self, tickets: Iterable[Ticket], error: KafkaError) -> None:
        refuse(self._take_waiting([(each, None) for each in tickets]), error)

    # What happens by itself.

    def decide_alone(self, decide: Callable[..., Outcome], *args: object) -> None:
        """Carry out a decision that nobody asked for; raise a KafkaError if it cannot be."""
        decision = decide(*args)
        reply = self.carry_out(decision)
        assert not isinstance(reply, Pending)
        if isinstance(reply, Coroutine):
            self._start_task(self._see_through(reply, decision.reply))
        else:
            self.on_alone(self, reply)

    async def _see_through(self, coming: Coroutine[Any, Any, object], reply: object) -> None:
        try:
            await coming
        except KafkaError as error:
            log.warning("%s: a decision is not committed yet: %s", self.log.name, error)
            await self.wait_settled()
        if not self.is_closed:
            self.on_alone(self, reply)

    async def wait_settled(self) -> None:
        """Return once all that is written is committed, or this coordinates nothing any more.

        What was decided is in the log and in the machine: what follows from it is only put off.
        """
        end_offset = self.log.end_offset
        while not self.is_closed:
            await asyncio.sleep(RETRY_MS / 1000)
            with contextlib.suppress(KafkaError):
                await self.log.wait_committed(end_offset)
                return

    def _on_timer(self, key: TimerKey) -> None:
        try:
            self.decide_alone(self.machine.on_timer, key, self._now_ms())
        except KafkaError as error:
            log.warning("%s: what is due for %s has to wait: %s", self.log.name, key, error)
            self._put_off(key, RETRY_MS, error)
        except Exception:
            # A fault with one group must not stop the timers of the others, nor a chore for good.
            log.exception("%s: what was due for %s failed", self.log.name, key)
            self._put_off(key, FAULT_RETRY_MS, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))

    def _put_off(self, key: TimerKey, delay_ms: int, error: KafkaError) -> None:
        """Try again later; tell who waits for just that, by a ticket that begins like the key."""
        self._timers.set(key, self._now_ms() + delay_ms)
        self._refuse([each for each in self._waiting if each[: len(key)] == key], error)

    def end_transaction(
        self, producer: Producer, coordinator_epoch: int, *, committed: bool, version: int
    ) -> Coroutine[Any, Any, None] | None:
        """Write that the producer's transaction ended; None if that is committed at once."""
        if self.is_closed:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        now_ms = self._now_ms()
        marker = write_marker(
            ControlType.COMMIT if committed else ControlType.ABORT,
            producer=producer,
            coordinator_epoch=coordinator_epoch,
            now_ms=now_ms,
        )
        self.log.append_batch(marker, now_ms, transaction_version=version)
        self.machine.on_marker(producer.id, producer.epoch, committed=committed)
        end_offset = self.log.end_offset
        return None if self.log.is_committed(end_offset) else self.log.wait_committed(end_offset)

    def close(self) -> None:
        """Answer nobody any more: another broker coordinates, or none."""
        self.is_closed = True
        self._timers.close()
        error = KafkaError(ErrorCode.NOT_COORDINATOR)
        self._refuse(list(self._waiting), error)
        for told in self._being_told:
            refuse(told, error)
