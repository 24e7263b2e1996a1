"""Has the controller decide for a handler, within the client's time, and waits until it shows.

When `decide` returns, what was decided is committed and this broker has taken it in: a client that
asks this broker next sees it. If time is up before that, the decision may or may not stand.
"""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import ParamSpec, TypeVar

from strom.broker.context import Parts
from strom.metadata.records import Record
from strom.replicated.machine import Decision
from strom.wire.errors import ErrorCode, KafkaError

#: For requests that bring no time of their own: `request.timeout.ms` of Kafka's admin client.
TIMEOUT_DEFAULT = timedelta(seconds=30)

Arguments = ParamSpec("Arguments")
Reply = TypeVar("Reply")


async def decide(
    parts: Parts,
    timeout: timedelta,  # noqa: ASYNC109 - the client's, and it has an answer of its own
    decision: Callable[Arguments, Decision[Record, Reply]],
    *args: Arguments.args,
    **kwargs: Arguments.kwargs,
) -> Reply:
    """Return the decision's reply once it shows; REQUEST_TIMED_OUT if that takes too long."""
    if timeout <= timedelta(0):
        # Kafka does not even begin.
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
    try:
        async with asyncio.timeout(timeout.total_seconds()):
            reply = parts.runtime.carry_out(decision, *args, **kwargs)
            await parts.runtime.wait_committed()
            await parts.publisher.wait_published()
    except TimeoutError:
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT) from None
    return reply
