"""Has the controller decide for a handler, within the client's time, and waits until it shows.

When `decide` returns, what was decided is committed and this broker has taken it in: a client that
asks this broker next sees it. If time is up before that, the decision may or may not stand.

A request that is about many things is several decisions (`decide_in_turns`), with others' turns in
between. Nobody promises that all of them are done or none, as for Kafka's clients they never were.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import ParamSpec, TypeVar

from strom.broker.context import Parts
from strom.metadata.controller import Controller
from strom.metadata.records import Record
from strom.replicated.machine import Decision
from strom.wire.errors import ErrorCode, KafkaError

#: For requests that bring no time of their own: `request.timeout.ms` of Kafka's admin client.
TIMEOUT_DEFAULT = timedelta(seconds=30)

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
                replies.append(parts.runtime.carry_out(decision, parts.controller, portion))
            await parts.runtime.wait_committed()
            await parts.publisher.wait_published()
    except TimeoutError:
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT) from None
    return replies
