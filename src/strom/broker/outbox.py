# Compiled by mypyc.
"""Small answers wait here until the loop has done what came with their requests.

To send an answer wakes its client up, and that costs more than to make it. Members of a group, or
many producers on one machine, ask together: answered one by one, each answer wakes somebody who
then finds nothing more to do and sleeps again. So small answers go out when the turn of the loop is
over in which they were made, or as soon as CONNECTIONS_MAX wait: nobody waits for long, and
clients work while the next answers are made.

Each connection keeps its own answers in order, and gives up what it has put aside by itself when
something follows that does not wait, or when it closes. What stands here is who is to be asked.
"""

import asyncio
from typing import Final, Protocol

#: How many connections have answers put aside at most.
CONNECTIONS_MAX: Final = 16


class Sender(Protocol):
    """Who has answers to send."""

    def send_joined(self) -> None:
        """Send what was put aside, if anything is left of it."""


class Outbox:
    """Who has answers put aside, in the order in which they were made."""

    __slots__ = ("_is_awaited", "_loop", "_senders")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._senders: list[Sender] = []
        #: Whether the end of this turn will have all sent.
        self._is_awaited = False

    def put(self, sender: Sender) -> None:
        """Have the sender asked for its answers when the turn of the loop is over."""
        self._senders.append(sender)
        if len(self._senders) >= CONNECTIONS_MAX:
            self.send_all()
        elif not self._is_awaited:
            self._is_awaited = True
            self._loop.call_soon(self._on_turn_over)

    def send_all(self) -> None:
        """Send all that is put aside: something is next that takes long."""
        if self._senders:
            senders, self._senders = self._senders, []
            for each in senders:
                each.send_joined()

    def _on_turn_over(self) -> None:
        self._is_awaited = False
        self.send_all()
