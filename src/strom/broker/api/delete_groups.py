"""DeleteGroups (key 42): delete groups that have no members, with the offsets they committed.

Behaviour:
- Each group by itself: NON_EMPTY_GROUP if it has members, GROUP_ID_NOT_FOUND if there is none.
- A group that has nothing but offsets is a group too.
- Offsets that do not fit into one batch of the coordinator's log are written in several.

Versions:
- v0 to v2 differ in encoding only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING

from strom.broker.answers import NO_THROTTLE
from strom.broker.context import Context, Large
from strom.broker.turns import answer_of
from strom.groups.overview import delete, rounds_to_delete
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from kio.schema.delete_groups.v2 import request as asked
    from kio.schema.delete_groups.v2 import response as answer
else:
    answer = kafka_message("delete_groups", "response")

KEY = 42
VERSIONS = range(3)

#: Each is a decision, and a batch in the log.
GROUPS_AT_ONCE = 30


async def handle(
    request: asked.DeleteGroupsRequest, context: Context
) -> answer.DeleteGroupsResponse | Large:
    """Delete each group, once."""
    codes: dict[str, ErrorCode] = {}
    for group_id in dict.fromkeys(request.groups_names):
        codes[group_id] = await delete_one(group_id, context)
        if len(codes) % GROUPS_AT_ONCE == 0:
            await asyncio.sleep(0)
    return answer_of(len(codes), lambda: respond(codes))


def respond(codes: dict[str, ErrorCode]) -> answer.DeleteGroupsResponse:
    """Tell what became of each group."""
    return answer.DeleteGroupsResponse(
        throttle_time=NO_THROTTLE,
        results=tuple(
            answer.DeletableGroupResult(group_id=group_id, error_code=code)
            for group_id, code in codes.items()
        ),
    )


async def delete_one(group_id: str, context: Context) -> ErrorCode:
    """Delete a group, or say why not."""
    try:
        shard = context.parts.groups.shard_for(group_id)
        # All in one turn: nobody joins a group that is half gone. Who waits for the last of it
        # has waited for the rest.
        for _ in range(rounds_to_delete(shard.machine, group_id) - 1):
            reply = shard.run(delete, shard.machine, group_id)
            if isinstance(reply, Coroutine):
                reply.close()
        return await shard.execute(delete, shard.machine, group_id)
    except KafkaError as error:
        return error.code
