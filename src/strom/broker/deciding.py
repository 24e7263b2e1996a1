"""Has the controller decide for a handler, within the client's time, and waits until it shows.

When `decide` returns, what was decided is committed and this broker has taken it in: a client that
asks this broker next sees it. If time is up before that, the decision may or may not stand.

A request that is about many things is several decisions (`decide_in_turns`), with others' turns in
between. Nobody promises that all of them are done or none, as for Kafka's clients they never were.

What cannot be cut, a topic of thousands of partitions, is worked out in a thread, with a copy of
the controller. A decision follows from the state alone: if the controller still has the one that
the copy began with, that is what it decides, and it goes where the copy is; if not, once more.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from functools import partial
from typing import Generic, NamedTuple, ParamSpec, TypeVar

from strom.broker.context import Parts
from strom.broker.quorum import written
from strom.metadata.controller import Controller
from strom.metadata.image import Image
from strom.metadata.records import Record
from strom.replicated.machine import Decision
from strom.wire.errors import ErrorCode, KafkaError

#: For requests that bring no time of their own: `request.timeout.ms` of Kafka's admin client.
TIMEOUT_DEFAULT = timedelta(seconds=30)

#: How often a large decision is worked out; then it is made at once, however long it takes.
ATTEMPTS_MAX = 3

Arguments = ParamSpec("Arguments")
Item = TypeVar("Item")
Reply = TypeVar("Reply")


async def decide(
    parts: Parts,
    timeout: timedelta,  # noqa: ASYNC109 - the client's, and it has an answer of its own
    decision: Callable[Arguments, Decision[Record, Reply]],
    *args: Arguments.args,
    **kwargs: Arguments.kwargs,
) -> Reply:
    """Return the decision's reply once it shows; REQUEST_TIMED_OUT if that takes too long."""
    (reply,) = await decide_in_turns(parts, timeout, ((),), lambda *_: decision(*args, **kwargs))
    return reply


async def decide_in_turns(
    parts: Parts,
    timeout: timedelta,  # noqa: ASYNC109 - as above
    portions: Iterable[Sequence[Item]],
    decision: Callable[[Controller, Sequence[Item]], Decision[Record, Reply]],
    is_large: Callable[[Sequence[Item]], bool] = lambda _: False,
) -> list[Reply]:
    """Return the reply to each portion once all show; REQUEST_TIMED_OUT if that takes too long."""
    if timeout <= timedelta(0):
        # Kafka does not even begin.
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
    replies: list[Reply] = []
    try:
        async with asyncio.timeout(timeout.total_seconds()):
            for portion in portions:
                if replies:
                    await asyncio.sleep(0)
                ahead = await _ahead(parts, decision, portion) if is_large(portion) else None
                replies.append(_carry_out(parts, decision, portion, ahead))
            await parts.runtime.wait_committed()
            await parts.publisher.wait_published()
    except TimeoutError:
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT) from None
    return replies


class _Ahead(NamedTuple, Generic[Reply]):
    """A decision that was worked out, and written, by a copy of the controller."""

    seen: Image
    copy: Controller
    decided: Decision[Record, Reply]
    batch: bytearray


async def _ahead(
    parts: Parts,
    decision: Callable[[Controller, Sequence[Item]], Decision[Record, Reply]],
    portion: Sequence[Item],
) -> _Ahead[Reply] | None:
    """Have a thread work the decision out; None if others always were decided on meanwhile."""

    def work_out(copy: Controller, now_ms: int) -> _Ahead[Reply]:
        seen = copy.image
        decided = decision(copy, portion)
        for record in decided.records:
            copy.apply(record)
        # A refusal decides on nothing, and there is no batch of nothing.
        batch = written(decided.records, now_ms) if decided.records else bytearray()
        return _Ahead(seen, copy, decided, batch)

    for _ in range(ATTEMPTS_MAX):
        work = partial(work_out, parts.controller.copy(), parts.host.now_ms())
        ahead = await parts.host.offload(work)
        if parts.controller.image is ahead.seen:
            return ahead
    return None


def _carry_out(
    parts: Parts,
    decision: Callable[[Controller, Sequence[Item]], Decision[Record, Reply]],
    portion: Sequence[Item],
    ahead: _Ahead[Reply] | None,
) -> Reply:
    if ahead is None or ahead.seen is not parts.controller.image:
        return parts.runtime.carry_out(decision, parts.controller, portion)
    # As in `carry_out`, no await from the look at the image to the end.
    if ahead.decided.records:
        parts.quorum.append_written(ahead.decided.records, ahead.batch)
    parts.controller.take_over(ahead.copy)
    return ahead.decided.reply
