"""Producer ids, given out one by one from blocks that the controller hands to this broker.

A block is in the metadata log before its first id is used, so no id is ever given out twice;
what is left of a block when the broker stops is lost, and there are 2^63 of them.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple


class Block(NamedTuple):
    """Producer ids that are this broker's to give out."""

    first_id: int
    size: int


class ProducerIds:
    """The block in use."""

    def __init__(self, allocate: Callable[[], Awaitable[Block]]) -> None:
        self._allocate = allocate
        self._next_id = 0
        self._end_id = 0
        #: Who comes while a block is on its way waits for that one.
        self._coming: asyncio.Future[None] | None = None

    async def next_id(self) -> int:
        """Return an id that nobody has; raise a KafkaError if the controller cannot be asked."""
        while self._next_id >= self._end_id:
            if self._coming is not None:
                await asyncio.shield(self._coming)
                continue
            await self._take_block()
        self._next_id += 1
        return self._next_id - 1

    async def _take_block(self) -> None:
        self._coming = asyncio.get_running_loop().create_future()
        try:
            block = await self._allocate()
            self._next_id, self._end_id = block.first_id, block.first_id + block.size
        finally:
            self._coming.set_result(None)
            self._coming = None
