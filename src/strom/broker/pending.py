"""A request of a coordinator that waits for what others do: the answer is a later decision's.

It is called back rather than awaited: a group of a hundred has a hundred of these at once, and a
task for each would cost more than what it waits for.
"""

import asyncio
from collections.abc import Callable

from strom.replicated.machine import Ticket
from strom.wire.errors import KafkaError

#: What a pending request has been told before it was told anything.
UNTOLD = object()


class Pending:
    """One request that waits with its ticket."""

    __slots__ = ("_forget", "_told", "_whom", "ticket")

    def __init__(self, ticket: Ticket, forget: Callable[["Pending"], None]) -> None:
        self.ticket = ticket
        self._forget = forget
        self._told: object = UNTOLD
        self._whom: Callable[[object], None] | None = None

    def settle(self, answer: object) -> None:
        """Take the answer, or the refusal; only the first one counts."""
        if self._told is UNTOLD:
            self._told = answer
            self._call_back()

    def tell(self, whom: Callable[[object], None]) -> None:
        """Call back in a turn of its own, with the answer or a KafkaError."""
        self._whom = whom
        if self._told is not UNTOLD:
            self._call_back()

    def cancel(self) -> None:
        """Wait no more, and tell nobody."""
        self._whom = None
        self._forget(self)

    async def wait(self) -> object:
        """Return the answer or a KafkaError, for who has a task."""
        coming: asyncio.Future[object] = asyncio.get_running_loop().create_future()

        def tell(answer: object) -> None:
            if not coming.done():
                coming.set_result(answer)

        self.tell(tell)
        try:
            return await coming
        finally:
            self.cancel()

    def _call_back(self) -> None:
        if self._whom is not None:
            asyncio.get_running_loop().call_soon(self._whom, self._told)


async def answer_of(pending: Pending) -> object:
    """Wait for the answer; raise the refusal."""
    answer = await pending.wait()
    if isinstance(answer, KafkaError):
        raise answer
    return answer
